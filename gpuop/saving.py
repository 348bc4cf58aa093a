"""States in files: NumPy's .npz, written whole or not at all, and checked before anything is taken from it."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.errors import SemanticError
from gpuop.ir.types import FieldType
from gpuop.runtime.backend import Array
from gpuop.runtime.files import Path, replacing

FORMAT = "gpuop states"
VERSION = 1
Named = tuple[str, FieldType]  # a state: its name, which may be empty, and its type


def write(path: Path, tick: int, states: Sequence[tuple[str, FieldType, Array]]) -> None:
    """Write states, replacing the file at once: who reads it, or finds it after a crash, has the old or the new one."""
    head = {"format": FORMAT, "version": VERSION, "tick": tick, "states": [_described(n, t) for n, t, _ in states]}
    members: dict[str, Any] = {f"state{k}": array for k, (_, _, array) in enumerate(states)}
    with replacing(path) as file:
        np.savez(file, head=np.array(json.dumps(head)), **members)


def read(path: Path, expected: Sequence[Named]) -> tuple[int, list[Array]]:
    """The tick and the states of a file.

    Raises:
        SemanticError: it is no file of states, it is damaged, or its states are not the expected ones.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise SemanticError(f"{name} is no file that `graph.save` wrote, or it is cut off")
        try:
            with np.load(file, allow_pickle=False) as members:
                head = _head(name, members)
                _compare(name, head["states"], expected)
                return int(head["tick"]), [_state(members, k, kind) for k, (_, kind) in enumerate(expected)]
        except (ValueError, TypeError, KeyError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as damaged:
            raise SemanticError(f"{name} is damaged: {damaged}; take another one that `graph.save` wrote") from None


def _head(name: str, members: Any) -> dict[str, Any]:
    head = json.loads(str(members["head"])) if "head" in members else None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise SemanticError(f"{name} is an .npz file, but none that `graph.save` wrote")
    if head.get("version") != VERSION:
        raise SemanticError(
            f"{name} has version {head.get('version')} of the format, and this gpuop reads version {VERSION}; "
            "load it with the gpuop that saved it"
        )
    return head


def _compare(name: str, states: list[list[str]], expected: Sequence[Named]) -> None:
    if len(states) != len(expected):
        raise SemanticError(
            f"{name} has {len(states)} states, and this graph {len(expected)}; it was saved by another graph"
        )
    for number, (found, state) in enumerate(zip(states, expected, strict=True)):
        wanted = _described(*state)
        if found != wanted:
            raise SemanticError(
                f"state {number} of {name} is {' '.join(filter(None, found))}, and this graph's is "
                f"{' '.join(filter(None, wanted))}; it was saved by another graph"
            )


def _described(name: str, kind: FieldType) -> list[str]:
    return [name, str(kind)]


def _state(members: Any, number: int, kind: FieldType) -> Array:
    array: Array = members[f"state{number}"]
    dtype = "uint8" if kind.dtype == "unorm8" else kind.dtype
    if array.shape != tuple(kind.array_shape) or array.dtype != dtype:
        raise ValueError(f"state {number} is {array.dtype} of shape {array.shape}, for a {kind} field")
    return array
