"""What a function depends on besides its arguments: whether it would record, or trace, the same again.

Only what is known to be constant counts as such. A snapshot holds the values of everything that is captured: names of
modules and closures, functions with what these capture, containers by their contents.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from functools import partial
from itertools import chain
from operator import is_
from types import CellType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.constants import BY_TEXT, PLAIN, is_constant
from gpuop.dsl.operators.decorated import Decorated
from gpuop.dsl.operators.uses import Use, uses
from gpuop.ir.types import FieldType, Shape

MOST_VALUES = 2000  # values of a snapshot: to compare more would take longer than to record
MOST_BYTES = 1 << 16  # the largest array that is compared by its numbers
CONTAINERS = (list, dict, set, np.ndarray)
_MISSING = object()
_BUILTINS = vars(builtins)


class Unknown(Exception):
    """It depends on something whose changes cannot be seen."""


class Same:
    """An object that is compared by identity."""

    __slots__ = ("object",)

    def __init__(self, object: Any) -> None:
        self.object = object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.object is other.object

    __hash__ = None  # type: ignore[assignment]


class Snapshot:
    """What was captured: `values`, which are equal where nothing changed, and how to see that at once.

    Raises:
        Unknown: it cannot be known.
    """

    __slots__ = ("_cells", "_containers", "_functions", "_large", "_left", "_names", "_seen", "values")

    def __init__(self, parts: tuple[Any, ...], large_arrays: bool) -> None:
        self._names: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
        self._cells: dict[int, tuple[CellType, Any]] = {}
        self._functions: list[tuple[FunctionType, Any, Any, Any, int]] = []
        self._containers: list[tuple[Any, Any, tuple[Any, ...]]] = []
        self._seen: set[int] = set()
        self._large, self._left = large_arrays, MOST_VALUES
        self.values = tuple(self._value(part) for part in parts)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Snapshot) and bool(self.values == other.values))

    __hash__ = None  # type: ignore[assignment]

    def holds(self) -> bool:
        """Whether nothing has been bound anew or changed: then a new snapshot would be equal."""
        for scope, name, value in self._names.values():
            if scope.get(name, _MISSING) is not value:
                return False
        for cell, value in self._cells.values():
            if _content(cell) is not value:
                return False
        for f, code, defaults, keywords, attributes in self._functions:
            if f.__code__ is not code or f.__defaults__ is not defaults or f.__kwdefaults__ is not keywords:
                return False
            if len(f.__dict__) != attributes:
                return False
        return all(self._holds(*each) for each in self._containers)

    def _holds(self, container: Any, values: Any, members: tuple[Any, ...]) -> bool:
        """Whether a container has equal contents: the same objects, each of which is looked at by itself, or equal ones."""
        if type(container) is not np.ndarray and _are(members, _members(container)):
            return True
        now = snapshot(container, large_arrays=self._large)
        return now is not None and now.values == (values,)

    # --- values -------------------------------------------------------------------------------------------------

    def _value(self, value: Any) -> Any:
        """What stands for a value; equal for equal ones."""
        self._left -= 1
        kind = type(value)
        if kind in PLAIN:
            return (kind, value, value.names) if kind is FieldType else (kind, value)
        if kind in BY_TEXT:
            return (kind, repr(value))
        if self._left < 0:
            raise Unknown
        if kind in (tuple, Shape, frozenset):
            return (kind, *map(self._value, value))
        if kind in CONTAINERS:
            return self._container(value)
        if is_constant(value):
            return Same(value)
        if isinstance(value, Field):
            return Same(value.node), value.type, value.type.names
        return self._called(value)

    def _called(self, value: Any) -> Any:
        """What stands for something that is called."""
        if type(value) is FunctionType:
            return self._function(value)
        if type(value) is partial:
            return (partial, self._value(value.func), self._value(value.args), self._value(value.keywords))
        if isinstance(value, Decorated):
            return (type(value), *(self._named(vars(value), name) for name in value.recorded_by))
        raise Unknown

    def _container(self, value: Any) -> Any:
        members = () if type(value) is np.ndarray else _members(value)
        values = self._array(value) if type(value) is np.ndarray else (type(value), *map(self._value, members))
        self._containers.append((value, values, members))
        return values

    def _array(self, array: Any) -> Any:
        if array.nbytes <= MOST_BYTES and not array.dtype.hasobject:
            return (np.ndarray, array.shape, array.dtype.str, array.tobytes())
        if self._large:
            return Same(array)
        raise Unknown

    # --- functions ----------------------------------------------------------------------------------------------

    def _function(self, function: FunctionType) -> Any:
        if id(function) in self._seen:
            return Same(function.__code__)
        self._seen.add(id(function))
        code, defaults, keywords = function.__code__, function.__defaults__, function.__kwdefaults__
        self._functions.append((function, code, defaults, keywords, len(function.__dict__)))
        used = uses(code)
        if used is None:
            raise Unknown
        named = [(n, self._named(scope, n)) for scope in (keywords or {}, function.__dict__) for n in scope]
        return (code, self._value(defaults), *named, *self._loaded(function, used))

    def _loaded(self, function: FunctionType, used: tuple[Use, ...]) -> Iterator[Any]:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for use in used:
            if use.scope != "cell":
                yield self._asked(self._global(use, function.__globals__), use.attributes)
            elif use.name in cells:  # others are variables of the function, for functions within
                cell = cells[use.name]
                value = _content(cell)
                self._cells[id(cell)] = cell, value
                yield self._asked(value, use.attributes)

    def _global(self, use: Use, scope: dict[str, Any]) -> Any:
        for place in (scope, _BUILTINS):
            value = self._bound(place, use.name)
            if value is not _MISSING:
                return value
        if use.scope == "maybe":
            return None
        raise Unknown

    def _bound(self, scope: dict[str, Any], name: str) -> Any:
        value = scope.get(name, _MISSING)
        self._names[id(scope), name] = scope, name, value
        return value

    def _named(self, scope: dict[str, Any], name: str) -> Any:
        return self._value(self._bound(scope, name))

    def _asked(self, value: Any, attributes: tuple[str, ...]) -> Any:
        """A value, or what is asked of it where that is a name of a module, a class or an object of one."""
        for name in attributes:
            if isinstance(value, tuple) and name in getattr(type(value), "_fields", ()):
                value = value[type(value)._fields.index(name)]  # type: ignore[attr-defined]
            elif _holds_name(value, name):
                value = self._bound(vars(value), name)
            else:
                break
        return self._value(value)


def _holds_name(owner: Any, name: str) -> bool:
    """Whether an attribute is what the owner's own dictionary has, which nothing else decides."""
    kind = type(owner)
    if kind is ModuleType:
        return True
    if isinstance(owner, type):
        return kind is type and name in vars(owner) and not hasattr(type(vars(owner)[name]), "__get__")
    asks: Any = kind.__getattribute__
    plain = kind is SimpleNamespace or asks is object.__getattribute__
    return plain and not hasattr(kind, name) and name in getattr(owner, "__dict__", ())


def _members(container: Any) -> tuple[Any, ...]:
    return tuple(chain.from_iterable(container.items()) if type(container) is dict else container)


def _are(some: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Whether these are the same objects."""
    return len(some) == len(others) and all(map(is_, some, others))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return _MISSING


def snapshot(*parts: Any, large_arrays: bool = False) -> Snapshot | None:
    """What functions and constants capture; None where it cannot be known, and they must run every time.

    Args:
        large_arrays: whether arrays of more than 64 KiB count as constant; otherwise they are not known to be.
    """
    try:
        return Snapshot(parts, large_arrays)
    except (Unknown, RecursionError):
        return None
