"""Fast guard checks: names, functions and containers of a snapshot, compared by identity."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import is_
from types import CellType, FunctionType, MappingProxyType
from typing import Any

import numpy as np

from gpuop.dsl.fields.field import Field
from gpuop.dsl.guards.sources import Scope
from gpuop.dsl.guards.trace_constants import BY_TEXT, PLAIN

MISSING = object()
FunctionParts = tuple[Any, Any, Any, int]


class Watch:
    """Objects that a snapshot met, each with its description for messages.

    Args:
        is_equal: compares a container with the key of its contents.

    Attributes:
        bindings, unbound, contents: bound and unbound names of dictionaries, and closure cells, for the check at every call.
        others: True if there are names of other scopes.
    """

    __slots__ = (
        "bindings", "cells", "containers", "contents", "functions", "is_equal", "kinds", "names", "others", "references",
        "scopes", "states", "unbound",
    )  # fmt: skip

    def __init__(self, parts: tuple[Any, ...], is_equal: Callable[[Any, Any], bool]) -> None:
        self.is_equal = is_equal
        self.references = [_reference(leaf) for leaf in _leaves(parts)]
        self.names: dict[tuple[int, str], tuple[Scope, str, Any, str]] = {}
        self.scopes: dict[int, tuple[Scope, tuple[str, ...], str]] = {}
        self.cells: dict[int, tuple[CellType, Any, str]] = {}
        self.functions: list[tuple[FunctionType, FunctionParts]] = []
        self.containers: list[tuple[Any, Any, tuple[Any, ...], str]] = []
        self.kinds: dict[int, tuple[Callable[[], Any], type, type, tuple[type, ...]]] = {}
        self.states: dict[Callable[[], Any], tuple[Any, str]] = {}
        self.complete()

    def complete(self) -> None:
        """Arrange names and variables for `holds`: no more will be watched."""
        plain = [each[:3] for each in self.names.values() if type(each[0]) in (dict, MappingProxyType)]
        self.bindings = [each for each in plain if each[2] is not MISSING]
        self.unbound = [(scope, name) for scope, name, value in plain if value is MISSING]
        self.others = len(plain) < len(self.names)
        self.contents = [each[:2] for each in self.cells.values()]

    def bound(self, scope: Scope, name: str, where: str) -> Any:
        """Value of a name in a scope, or MISSING."""
        value = scope.get(name, MISSING)
        self.names[id(scope), name] = scope, name, value, where
        return value

    def names_of(self, scope: Scope, where: str) -> None:
        """Watch the set of names of a scope."""
        self.scopes[id(scope)] = scope, tuple(scope), where

    def content(self, cell: CellType, name: str) -> Any:
        """Contents of a closure cell, or MISSING."""
        value = content(cell)
        self.cells[id(cell)] = cell, value, name
        return value

    def kind(self, value: Any) -> None:
        """Watch the class of an object or a module, or a class itself, and the bases."""
        cls = value if isinstance(value, type) else type(value)
        self.kinds[id(value)] = _reference(value), type(value), cls, cls.__mro__

    def state(self, state: Callable[[], Any], change: str) -> Any:
        """Watch a global state; the sentence says that it has changed."""
        value, _ = self.states.setdefault(state, (state(), change))
        return value

    def function(self, function: FunctionType) -> None:
        """Watch the code, defaults and attributes of a function."""
        self.functions.append((function, _parts(function)))

    def same_parts(self, parts: tuple[Any, ...]) -> bool:
        """True if these are the functions and objects of the snapshot."""
        leaves = [*_leaves(parts)]
        return len(leaves) == len(self.references) and all(map(is_, [each() for each in self.references], leaves))

    def holds(self) -> bool:
        """True if nothing has changed. This is checked at every call, and calls as few functions as may be."""
        if not self._same_names() or not self._same_kinds():
            return False
        for f, (code, defaults, keywords, attributes) in self.functions:
            if f.__code__ is not code or f.__defaults__ is not defaults or f.__kwdefaults__ is not keywords:
                return False
            if (f.__dict__ or attributes) and len(f.__dict__) != attributes:
                return False
        for container, values, members, _ in self.containers:
            if not (_is_same(container, members) or self.is_equal(container, values)):
                return False
        return True

    def _same_names(self) -> bool:
        """True if names and variables are bound to the same objects."""
        try:
            for scope, name, value in self.bindings:
                if scope[name] is not value:
                    return False
            for cell, value in self.contents:
                if cell.cell_contents is not value:
                    return False
        except KeyError:
            return False
        except ValueError:  # an empty cell
            return self._changed_names() is None
        for scope, name in self.unbound:
            if name in scope:
                return False
        return not self.others or self._changed_names() is None

    def _same_kinds(self) -> bool:
        """True if classes, their bases, sets of names and global states are the same."""
        for key in self.kinds:
            reference, kind, cls, bases = self.kinds[key]
            if type(reference()) is not kind or cls.__mro__ is not bases:
                return False
        for key in self.scopes:
            scope, names, _ = self.scopes[key]
            if tuple(scope) != names:
                return False
        return not self.states or all(state() == value for state, (value, _) in self.states.items())

    def _changed_names(self) -> str | None:
        """Sentence about the first name that is bound anew."""
        return next(self._rebound(), None)

    def changed(self) -> Iterator[str]:
        """Changes, a sentence each."""
        yield from self._rebound()
        for f, parts in self.functions:
            if not _identical(parts, _parts(f)):
                yield f"`{f.__name__}` has other code, defaults or attributes"
        for scope, names, where in self.scopes.values():
            for name in dict.fromkeys(scope).keys() ^ dict.fromkeys(names).keys():
                yield f"`{name}` of {where} is new or gone"
        for reference, kind, cls, bases in self.kinds.values():
            if type(reference()) is not kind:
                yield f"a `{kind.__name__}` is of class `{type(reference()).__name__}` now"
            elif cls.__mro__ is not bases:
                yield f"class `{cls.__name__}` has other bases"
        yield from (change for state, (value, change) in self.states.items() if state() != value)
        for container, values, members, name in self.containers:
            if not (_is_same(container, members) or self.is_equal(container, values)):
                yield f"{name} holds something else"

    def _rebound(self) -> Iterator[str]:
        for scope, name, value, where in self.names.values():
            if scope.get(name, MISSING) is not value:
                yield f"`{name}` of {where} is bound anew"
        for cell, value, name in self.cells.values():
            if content(cell) is not value:
                yield f"`{name}`, a variable around the function, is bound anew"


def content(cell: CellType) -> Any:
    """Contents of a closure cell, or MISSING."""
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return MISSING


def members_of(container: Any) -> tuple[Any, ...]:
    """Members of a container, with the keys of a dictionary; none of an array, whose numbers are no objects."""
    if type(container) is np.ndarray:
        return ()
    return tuple(chain.from_iterable(container.items()) if type(container) is dict else container)


def _leaves(parts: Iterable[Any]) -> Iterator[Any]:
    """Functions and objects among the parts. Numbers and arrays are keyed by content, and fields by node."""
    for part in parts:
        if type(part) in (tuple, list, set, frozenset, dict):
            yield from _leaves(part.values() if isinstance(part, dict) else part)
        elif type(part) not in PLAIN and type(part) not in BY_TEXT and not isinstance(part, (Field, np.ndarray)):
            yield part


def _reference(leaf: Any) -> Callable[[], Any]:
    """Function that returns the object while it lives: a weak reference where possible."""
    try:
        return weakref.ref(leaf)
    except TypeError:
        return lambda: leaf


def _is_same(container: Any, members: tuple[Any, ...]) -> bool:
    """True if a container holds the same objects; each of them is compared by itself."""
    return type(container) is not np.ndarray and _identical(members, members_of(container))


def _identical(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """True if these are the same objects."""
    return len(left) == len(right) and all(map(is_, left, right))


def _parts(f: FunctionType) -> FunctionParts:
    return f.__code__, f.__defaults__, f.__kwdefaults__, len(f.__dict__)
