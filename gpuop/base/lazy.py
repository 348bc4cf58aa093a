"""Names of packages by tables of their modules."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def defined(package: str, names: Mapping[str, str]) -> dict[str, Any]:
    """Objects of the modules of a package, by name.

    Args:
        names: the names of each module, separated by spaces.
    """
    modules = {module: import_module(f"{package}.{module}") for module in names}
    return {name: getattr(modules[module], name) for module, row in names.items() for name in row.split()}
