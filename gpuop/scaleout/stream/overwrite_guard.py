"""Overwrite guards: a result in a file may replace arrays only."""

from __future__ import annotations

import json
import os
from typing import Any

from gpuop.base.errors import SemanticError

OF_GROUPS = {"zarr.json", ".zgroup", ".zattrs", ".zmetadata"}  # files of a zarr group itself
SHOWN = 3


def spare_in_zarr(path: str) -> None:
    """Raise a SemanticError if a new array would replace a non-empty group, or a folder that is no zarr."""
    if not os.path.lexists(path) or _is_array(path):
        return
    others = sorted(set(os.listdir(path)) - OF_GROUPS) if os.path.isdir(path) else [os.path.basename(path)]
    if others:
        raise SemanticError(
            f"`out=` {path} is no array and has {_list(others)}: give an array in it, as `{path}/data`, or delete it first"
        )


def spare_in_hdf5(h5py: Any, path: str, name: str) -> None:
    """Raise a SemanticError if a new dataset would replace others, a group, or a file that is not HDF5."""
    if not os.path.lexists(path) or not os.path.getsize(path):
        return
    if not h5py.is_hdf5(path):
        raise SemanticError(f"`out=` {path} is there and no HDF5 file: give another path, or delete it first")
    try:
        with h5py.File(path, "r") as file:
            replaced = file.get(name or "data")
            inside = sorted(replaced) if isinstance(replaced, h5py.Group) else None
            others = [] if name else sorted(set(file) - {"data"})
    except OSError:  # cut off while it was written
        return
    if inside is not None:
        raise SemanticError(
            f"`out=` {path}:/{name or 'data'} is a group with {_list(inside)}: give the name of an array, or of none that is there"
        )
    if others:
        raise SemanticError(
            f"`out=` {path} is there and has {_list(others)}: name the array to write, as `{path}:/data`, or delete it first"
        )


def _is_array(path: str) -> bool:
    if os.path.exists(os.path.join(path, ".zarray")):
        return True
    try:
        with open(os.path.join(path, "zarr.json"), encoding="utf-8") as file:
            return bool(json.load(file).get("node_type") == "array")
    except (OSError, ValueError, AttributeError):
        return False


def _list(names: list[str]) -> str:
    first = ", ".join(map(repr, names[:SHOWN])) or "nothing in it"
    return f"{first} and {len(names) - SHOWN} more" if len(names) > SHOWN else first
