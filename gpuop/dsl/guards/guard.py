"""Snapshots of everything that a function depends on besides its arguments. Equal snapshots record, or trace, the same.

Only values that are certain to be constant count as constant. A snapshot holds the value of every captured object: names of
modules and closures, functions with their own captures, containers by content. Modules, classes and objects flow on into local
names and arguments of helpers, which nobody follows; so a snapshot holds each of their attributes that any captured function
accesses on any object.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable, Iterator
from enum import EnumMeta
from functools import partial
from importlib.util import resolve_name
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from gpuop.base.errors import described
from gpuop.dsl.fields.field import Field
from gpuop.dsl.guards.captured_names import ANY, Use, uses
from gpuop.dsl.guards.function_wrapper import Decorated
from gpuop.dsl.guards.sources import Owner, Scope, Unknown, decides_itself, holds_name, in_itself, is_owner, of_class
from gpuop.dsl.guards.trace_constants import BY_TEXT, PLAIN, is_constant
from gpuop.dsl.guards.watch import MISSING, Watched, members_of
from gpuop.ir.types import FieldType, Shape

MOST_VALUES = 2000  # values of a snapshot: to compare more would take longer than to record
MOST_BYTES = 1 << 16  # the largest array that is compared by its numbers
CONTAINERS = (list, dict, set, np.ndarray)
GENERATED = "<string>"  # the file of code that Python makes, as dataclasses do
_BUILTINS = vars(builtins)


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

    __slots__ = (
        "_asked", "_label", "_large", "_left", "_makes", "_of_object", "_owners", "_seen", "_watched", "values",
    )  # fmt: skip

    def __init__(self, parts: tuple[Any, ...], large_arrays: bool) -> None:
        self._watched = Watched(parts)
        self._seen: set[int] = set()
        self._owners: dict[int, Owner] = {}
        self._asked: dict[str, None] = {}
        self._makes, self._label, self._of_object = False, "an argument", False
        self._large, self._left = large_arrays, MOST_VALUES
        values = tuple(self._value(part) for part in parts)
        self.values = (*values, *self._attributes())
        self._owners.clear()  # what owns attributes may go

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Snapshot) and bool(self.values == other.values))

    __hash__ = None  # type: ignore[assignment]

    def holds(self, *parts: Any) -> bool:
        """Whether these are the same, and nothing has been bound anew or changed: then a new snapshot would be equal."""
        return self._watched.given_again(parts) and self.lasts()

    def lasts(self) -> bool:
        """Whether nothing that it has met has been bound anew or changed."""
        return self._watched.holds(self._is_equal)

    def changed(self) -> str:
        """What has been bound anew or changed first."""
        return next(self._watched.changed(self._is_equal), "what it captures has changed")

    def _is_equal(self, container: Any, values: Any) -> bool:
        """Whether a container has the contents that it had."""
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
            raise Unknown(f"one of more than {MOST_VALUES} values")
        if kind in (tuple, Shape, frozenset):
            return (kind, *map(self._value, value))
        if kind in CONTAINERS:
            return self._container(value)
        if is_constant(value):
            return Same(value)
        if isinstance(value, Field):
            return Same(value.node), value.type, value.type.names
        return self._code(value)

    def _code(self, value: Any) -> Any:
        """What stands for something that is called, or that attributes are asked of."""
        kind = type(value)
        if kind is FunctionType:
            return self._function(value)
        if kind is MethodType:
            return (MethodType, self._value(value.__self__), self._value(value.__func__))
        if kind is partial:
            return (partial, self._value(value.func), self._value(value.args), self._value(value.keywords))
        if isinstance(value, Decorated):
            return (kind, *(self._bound_value(vars(value), name, f"`{value.name}`") for name in value.recorded_by))
        if kind.__module__ == "functools" and isinstance(getattr(value, "__wrapped__", None), FunctionType):
            return (kind, self._value(value.__wrapped__))  # a cache of what it gives
        if is_owner(value):
            return self._owner(value)
        raise Unknown(described(value))

    def _container(self, value: Any) -> Any:
        members, label = members_of(value), self._label
        values = self._array(value) if type(value) is np.ndarray else (type(value), *map(self._value, members))
        self._watched.containers.append((value, values, members, label))
        return values

    def _array(self, array: Any) -> Any:
        if array.nbytes <= MOST_BYTES and not array.dtype.hasobject:
            return (np.ndarray, array.shape, array.dtype.str, array.tobytes())
        if self._large and not self._of_object:
            return Same(array)
        raise Unknown(
            f"an array of more than {MOST_BYTES >> 10} KiB" if not array.dtype.hasobject else described(array)
        )

    # --- functions ----------------------------------------------------------------------------------------------

    def _function(self, function: FunctionType) -> Any:
        if id(function) in self._seen:
            return Same(function.__code__)
        self._seen.add(id(function))
        self._watched.function(function)
        code, keywords = function.__code__, function.__kwdefaults__ or {}
        loads, asked = uses(code)
        self._ask(name for name in asked if name != "__class__" or code.co_filename != GENERATED)
        try:
            whose = f"`{function.__name__}`"
            named = [(n, self._bound_value(scope, n, whose)) for scope in (keywords, function.__dict__) for n in scope]
            return (code, self._value(function.__defaults__), *named, *self._loaded(function, loads))
        except Unknown as unknown:
            unknown.within = unknown.within or function.__name__
            raise

    def _loaded(self, function: FunctionType, loads: tuple[Use, ...]) -> Iterator[Any]:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for use in loads:
            if use.scope == "import":
                yield self._imported(use.name, function.__globals__)
            elif use.scope != "cell":
                value = self._global(use, function.__globals__)
                self._makes |= value is type and function.__code__.co_filename != GENERATED
                yield self._of(value, use)
            elif use.name in cells:  # others are variables of the function, for functions within
                yield self._of(self._watched.content(cells[use.name], use.name), use)

    def _imported(self, name: str, scope: dict[str, Any]) -> Any:
        """What stands for a module that is imported, and for the package that it is in."""
        try:
            full = resolve_name(name, scope.get("__package__") or "")
        except ImportError:
            raise Unknown(f"the module `{name}`") from None
        where = "the modules that are imported"
        return tuple(
            self._bound_value(sys.modules, each, where) for each in dict.fromkeys((full.partition(".")[0], full))
        )

    def _global(self, use: Use, scope: dict[str, Any]) -> Any:
        for place in (scope, _BUILTINS):
            value = self._watched.bound(place, use.name, f"module `{scope.get('__name__')}`")
            if value is not MISSING:
                return value
        if use.scope == "maybe":
            return None
        raise Unknown(f"the name `{use.name}`, which is not bound yet")

    def _bound_value(self, scope: Scope, name: str, where: str) -> Any:
        return self._under(name, self._watched.bound(scope, name, where))

    def _under(self, name: str, value: Any, of_object: bool = False) -> Any:
        """What stands for a value that has a name; objects are there to change, and so are arrays that they hold."""
        outer = self._label, self._of_object
        self._label, self._of_object = f"`{name}`", self._of_object or of_object
        try:
            return self._value(value)
        except Unknown as unknown:
            unknown.name = unknown.name or name
            raise
        finally:
            self._label, self._of_object = outer

    def _of(self, value: Any, use: Use) -> Any:
        """A value, or what is asked of it where that is a name of a module, a class or an object of one."""
        name, left, held = use.name, list(use.attributes), False
        while left:
            if isinstance(value, tuple) and left[0] in getattr(type(value), "_fields", ()):
                value = value[type(value)._fields.index(left[0])]  # type: ignore[attr-defined]
            elif holds_name(value, left[0]):
                held = held or not isinstance(value, (type, ModuleType))
                value = self._watched.bound(vars(value), left[0], f"`{name}`")
            else:
                break
            name = f"{name}.{left.pop(0)}"
        self._ask(left)
        return self._under(name, value, held)

    # --- modules, classes and objects ---------------------------------------------------------------------------

    def _ask(self, names: Iterable[str]) -> None:
        self._asked.update(dict.fromkeys(names))

    def _owner(self, value: Any) -> Any:
        """What stands for what attributes are asked of; `_attributes` has these."""
        found = self._owners.get(id(value))
        if found is None:
            found = self._owners[id(value)] = Owner(value, len(self._owners))
            for scope in found.scopes:
                self._watched.names_of(scope, found.name)
        if isinstance(value, (type, ModuleType)):
            members = value if isinstance(value, EnumMeta) else ()
            return (Same(value), found.number, *map(self._value, members))
        return (type(value), found.number, self._value(in_itself(value)))

    def _attributes(self) -> Iterator[Any]:
        """What stands for attributes of all that may be asked for them: those that are met make others known."""
        while True:
            whole, making = ANY in self._asked, self._makes or "__class__" in self._asked
            asked = [(o, n) for o in tuple(self._owners.values()) for n in o.wanted(dict(self._asked), whole)]
            new = [(o, n) for o, n in dict.fromkeys(asked) if n not in o.known]
            objects = (o.object for o in self._owners.values() if not isinstance(o.object, (type, ModuleType)))
            kinds = dict.fromkeys(map(type, objects)) if making else ()
            more = [c for c in kinds if id(c) not in self._owners and not is_constant(c)]
            if not new and not more:
                return
            for owner, name in new:
                owner.known.add(name)
                yield from ((owner.number, name, found) for found in self._found(owner, name))
            yield from map(self._value, more)

    def _found(self, owner: Owner, name: str) -> Iterator[Any]:
        for scope, in_class in owner.found(name):
            value = self._watched.bound(scope, name, owner.name)
            if in_class and type(value) is MemberDescriptorType:
                continue  # it is among what the object holds
            decides = of_class(value) if in_class else value
            if decides is value and in_class and decides_itself(value):
                raise Unknown(f"`{name}` of {owner.name}, {described(value)}")
            yield self._under(
                name, decides, of_object=not isinstance(owner.object, (type, ModuleType)) and not in_class
            )


def snapshot(*parts: Any, large_arrays: bool = False) -> Snapshot | None:
    """What functions and constants capture; None where it cannot be known, and they must run every time.

    Args:
        large_arrays: whether arrays of more than 64 KiB count as constant, but for objects'; else they are not known to be.
    """
    found = snapshot_or_reason(*parts, large_arrays=large_arrays)
    return found if isinstance(found, Snapshot) else None


def snapshot_or_reason(*parts: Any, large_arrays: bool) -> Snapshot | str:
    """What they capture; or why it cannot be known."""
    try:
        return Snapshot(parts, large_arrays)
    except Unknown as unknown:
        return str(unknown)
    except RecursionError:
        return "what it captures is nested too deep"
