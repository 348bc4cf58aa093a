"""Names of packages by tables of their modules, and imports of many modules."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from gpuop.base.garbage import uncollected
from gpuop.base.misspelt import hinted


def defined(package: str, names: Mapping[str, str]) -> dict[str, Any]:
    """Objects of the modules of `gpuop.lib.…`, by name, for its face `gpuop.…`.

    Args:
        names: the names of each module, separated by spaces.
    """
    modules = {module: imported(f"{package}.{module}") for module in names}
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


def imported(name: str) -> Any:
    """Import a module without collections of garbage. Its objects then count as old: the next collection would look at all."""
    with uncollected() as collects:
        try:
            return import_module(name)
        finally:
            if collects and not gc.get_freeze_count():  # else the user has frozen some, which stay so
                gc.freeze()
                gc.unfreeze()  # to the oldest generation
