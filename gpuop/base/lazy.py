"""Names of packages by tables of their modules."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from gpuop.base.misspelt import hinted


def defined(package: str, names: Mapping[str, str]) -> dict[str, Any]:
    """Objects of the modules of `gpuop.lib.…`, by name, for its face `gpuop.…`.

    Args:
        names: the names of each module, separated by spaces.
    """
    modules = {module: import_module(f"{package}.{module}") for module in names}
    face = package.replace(".lib.", ".")
    return {
        name: _public(face, getattr(modules[module], name)) for module, row in names.items() for name in row.split()
    }


def _public(face: str, value: Any) -> Any:
    """The function for users, pickled by its name in the face; others check keywords themselves."""
    if not inspect.isfunction(value) or hasattr(value, "__wrapped__"):
        return value
    function = hinted(value)
    function.__module__ = face
    return function
