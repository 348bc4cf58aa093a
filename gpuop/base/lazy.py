"""Names of packages by tables: lazy ones, which load their module at first use (PEP 562), and those of public modules."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def load(package: str, names: Mapping[str, str], name: str) -> Any:
    """Object of a package under a name, bound in the package so that this runs once.

    Args:
        names: the definition of each name of the package, as "package.module.name".
    """
    module, _, own = names[name].rpartition(".")
    value = vars(sys.modules[package])[name] = getattr(import_module(module), own)
    return value


def defined(package: str, names: Mapping[str, str]) -> dict[str, Any]:
    """Objects of the modules of a package, by name.

    Args:
        names: the names of each module, separated by spaces.
    """
    modules = {module: import_module(f"{package}.{module}") for module in names}
    return {name: getattr(modules[module], name) for module, row in names.items() for name in row.split()}
