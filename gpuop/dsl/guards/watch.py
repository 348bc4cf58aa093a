"""Fast guard checks: names, functions and containers of a snapshot, compared by identity."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import is_
from types import CellType, FunctionType
from typing import Any

import numpy as np

from gpuop.dsl.fields.field import Field
from gpuop.dsl.guards.sources import Scope
from gpuop.dsl.guards.trace_constants import BY_TEXT, PLAIN

MISSING = object()
FunctionParts = tuple[Any, Any, Any, int]


class Watched:
    """What a snapshot has met, each with what a reader knows it by."""

    __slots__ = ("cells", "containers", "functions", "given", "names", "scopes")

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.given = [_reference(leaf) for leaf in _leaves(parts)]
        self.names: dict[tuple[int, str], tuple[Scope, str, Any, str]] = {}
        self.scopes: dict[int, tuple[Scope, tuple[str, ...], str]] = {}
        self.cells: dict[int, tuple[CellType, Any, str]] = {}
        self.functions: list[tuple[FunctionType, FunctionParts]] = []
        self.containers: list[tuple[Any, Any, tuple[Any, ...], str]] = []

    def bound(self, scope: Scope, name: str, where: str) -> Any:
        """What a scope has under a name, or MISSING."""
        value = scope.get(name, MISSING)
        self.names[id(scope), name] = scope, name, value, where
        return value

    def names_of(self, scope: Scope, where: str) -> None:
        """Which names a scope has."""
        self.scopes[id(scope)] = scope, tuple(scope), where

    def content(self, cell: CellType, name: str) -> Any:
        """What a cell holds, or MISSING."""
        value = content(cell)
        self.cells[id(cell)] = cell, value, name
        return value

    def function(self, function: FunctionType) -> None:
        """What calls of a function run and take."""
        self.functions.append((function, _parts(function)))

    def given_again(self, parts: tuple[Any, ...]) -> bool:
        """Whether these are the functions and objects that were given."""
        leaves = tuple(_leaves(parts))
        return len(leaves) == len(self.given) and all(g() is leaf for g, leaf in zip(self.given, leaves, strict=True))

    def holds(self, is_equal: Callable[[Any, Any], bool]) -> bool:
        """Whether all is as it was.

        Args:
            is_equal: says it of a container and of what stood for its contents.
        """
        for scope, name, value, _ in self.names.values():
            if scope.get(name, MISSING) is not value:
                return False
        for cell, value, _ in self.cells.values():
            if content(cell) is not value:
                return False
        for f, parts in self.functions:
            if not _are(parts, _parts(f)):
                return False
        for scope, names, _ in self.scopes.values():
            if tuple(scope) != names:
                return False
        return all(_is_same(c, members) or is_equal(c, values) for c, values, members, _ in self.containers)

    def changed(self, is_equal: Callable[[Any, Any], bool]) -> Iterator[str]:
        """What is another now, as sentences say it."""
        yield from self._bound_anew()
        for f, parts in self.functions:
            if not _are(parts, _parts(f)):
                yield f"`{f.__name__}` has other code, defaults or attributes"
        for scope, names, where in self.scopes.values():
            for name in dict.fromkeys(scope).keys() ^ dict.fromkeys(names).keys():
                yield f"`{name}` of {where} is new or gone"
        for container, values, members, name in self.containers:
            if not (_is_same(container, members) or is_equal(container, values)):
                yield f"{name} holds something else"

    def _bound_anew(self) -> Iterator[str]:
        for scope, name, value, where in self.names.values():
            if scope.get(name, MISSING) is not value:
                yield f"`{name}` of {where} is bound anew"
        for cell, value, name in self.cells.values():
            if content(cell) is not value:
                yield f"`{name}`, a variable around the function, is bound anew"


def content(cell: CellType) -> Any:
    """What a cell holds, or MISSING."""
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return MISSING


def members_of(container: Any) -> tuple[Any, ...]:
    """What a container holds, of a dictionary its keys too; of an array nothing: its numbers are no objects."""
    if type(container) is np.ndarray:
        return ()
    return tuple(chain.from_iterable(container.items()) if type(container) is dict else container)


def _leaves(parts: Iterable[Any]) -> Iterator[Any]:
    """The functions and objects that are given: numbers and arrays are told by their contents, and fields by their nodes."""
    for part in parts:
        if type(part) in (tuple, list, set, frozenset, dict):
            yield from _leaves(part.values() if isinstance(part, dict) else part)
        elif type(part) not in PLAIN and type(part) not in BY_TEXT and not isinstance(part, (Field, np.ndarray)):
            yield part


def _reference(leaf: Any) -> Callable[[], Any]:
    """What gives an object while it is there: what is kept of it keeps it alive only where it must."""
    try:
        return weakref.ref(leaf)
    except TypeError:
        return lambda: leaf


def _is_same(container: Any, members: tuple[Any, ...]) -> bool:
    """Whether a container holds the same objects, each of which is looked at by itself."""
    return type(container) is not np.ndarray and _are(members, members_of(container))


def _are(some: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Whether these are the same objects."""
    return len(some) == len(others) and all(map(is_, some, others))


def _parts(f: FunctionType) -> FunctionParts:
    return f.__code__, f.__defaults__, f.__kwdefaults__, len(f.__dict__)
