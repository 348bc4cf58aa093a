"""Checkpoints of graphs: states in an .npz file, written atomically and checked before a graph takes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.base.cache.atomic_files import Path, named, replacing
from gpuop.base.errors import SemanticError
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Array
from gpuop.runtime.files.archive import Archive, Damaged, Foreign, opened
from gpuop.runtime.files.validated_json import Item, document

FORMAT = "gpuop states"
VERSION = 1
MOST_LISTED = 12  # states that a message names
Named = tuple[str, FieldType]  # a state: its name, which may be empty, and its type


def write(path: Path, tick: int, states: Sequence[tuple[str, FieldType, Array]]) -> None:
    """Write states and replace the file atomically: readers, and a crash, see the old file or the new one."""
    head = {"format": FORMAT, "version": VERSION, "tick": tick, "states": [_described(n, t) for n, t, _ in states]}
    members: dict[str, Any] = {f"state{k}": array for k, (_, _, array) in enumerate(states)}
    with replacing(path) as file:
        np.savez(file, head=np.array(json.dumps(head)), **members)


def read(path: Path, expected: Sequence[Named]) -> tuple[int, list[Array]]:
    """The tick and the expected states of a file.

    States are identified by names and types, in any order; those that share both, or have no name, by their order.

    Raises:
        SemanticError: it is no file of states, it is damaged, or its states are not the expected ones.
        OSError: it cannot be opened.
    """
    name = named(path)
    try:
        with opened(name) as members:
            tick, described = _head(name, members)
            numbers = _numbers(name, described, expected)
            kinds = (kind for _, kind in expected)
            return tick, [members.array(f"state{k}.npy", kind) for k, kind in zip(numbers, kinds, strict=True)]
    except Foreign:
        raise SemanticError(f"{name} is not a file that `graph.save` wrote, or it is cut off") from None
    except Damaged as damaged:
        raise SemanticError(f"{name} is damaged: {damaged}; take another one that `graph.save` wrote") from None


def _head(name: str, members: Archive) -> tuple[int, list[list[str]]]:
    """The tick, and the names and types of the states."""
    head = document(members.text("head.npy")) if "head.npy" in members.names else Item({})
    if head.entries().get("format", Item(None)).value != FORMAT:
        raise SemanticError(f"{name} is an .npz file, but none that `graph.save` wrote")
    version = head.entry("version").whole()
    if version != VERSION:
        raise SemanticError(
            f"{name} has version {version} of the format, and this gpuop reads version {VERSION}; "
            "load it with the gpuop that saved it"
        )
    states = [[part.text() for part in state.members(2)] for state in head.entry("states").members()]
    return head.entry("tick").whole(), states


def _numbers(file: str, described: list[list[str]], expected: Sequence[Named]) -> list[int]:
    """The number in the file of each expected state."""
    states = [_described(*state) for state in expected]
    numbers = {key: k for k, key in enumerate(_keys(described))}
    keys = _keys(states)
    if sorted(numbers) != sorted(keys):
        raise SemanticError(
            f"{file} has the states {_listed(described)}, and this graph has {_listed(states)}; it was saved by another graph, or "
            "a variable has another name now (`field.name = …` gives a state its name back)"
        )
    return [numbers[key] for key in keys]


def _keys(states: Sequence[Sequence[str]]) -> list[tuple[str, str, int]]:
    """The key of each state: its name, its type, and its position among those that share both."""
    counts: Counter[tuple[str, str]] = Counter()
    keys = []
    for name, kind in states:
        keys.append((name, kind, counts[name, kind]))
        counts[name, kind] += 1
    return keys


def _listed(states: Sequence[Sequence[str]]) -> str:
    more = f" and {len(states) - MOST_LISTED} more" if len(states) > MOST_LISTED else ""
    return (", ".join(f"{name or 'nameless'} ({kind})" for name, kind in states[:MOST_LISTED]) or "none") + more


def _described(name: str, kind: FieldType) -> list[str]:
    return [name, str(kind)]
