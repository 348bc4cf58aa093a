"""Snapshots of everything that a function depends on besides its arguments. Equal snapshots record, or trace, the same.

Only values that are certain to be constant count as constant. A snapshot holds the value of every captured object: names of
modules and closures, functions with their own captures, containers by content. Modules, classes and objects flow on into local
names and arguments of helpers, which nobody follows; so a snapshot holds each of their attributes that any captured function
accesses on any object.
"""

from __future__ import annotations

import sys
from abc import ABCMeta, get_cache_token
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum, EnumMeta
from functools import cached_property, partial
from importlib.util import resolve_name
from logging import Logger
from pathlib import PurePath
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from gpuop.base.errors import Loc, described
from gpuop.dsl.fields.field import Field
from gpuop.dsl.guards.captured_names import ANY, Use, line_of, uses
from gpuop.dsl.guards.function_wrapper import FunctionWrapper
from gpuop.dsl.guards.sources import (
    Attributes,
    Owner,
    Scope,
    Unknown,
    changeable_classes,
    holds_name,
    is_opaque_descriptor,
    is_owner,
    own_value,
    underlying,
)
from gpuop.dsl.guards.standard_library import SETTINGS, asking, decimal_context, registered
from gpuop.dsl.guards.trace_constants import BY_TEXT, FIELD_OF_TUPLE, PLAIN, is_constant
from gpuop.dsl.guards.watch import MISSING, Watch, members_of
from gpuop.ir.types import FieldType, Shape

MOST_VALUES = 2000  # values of a snapshot: comparing more takes longer than recording
MOST_BYTES = 1 << 16  # bytes of the largest array that is compared by its numbers
OWN = {Enum: ("_value_", "_name_"), EnumMeta: ("_member_map_",)}  # attributes that count beside accessed ones
CONTAINERS = (list, dict, set, np.ndarray)
GENERATED = "<string>"  # file name of code that Python generates, as for dataclasses
PATTERNS = {"MATCH_SEQUENCE": Sequence, "MATCH_MAPPING": Mapping}  # classes of objects that patterns take apart


class Identity:
    """Key of an object that is compared by identity."""

    __slots__ = ("object",)

    def __init__(self, object: Any) -> None:
        self.object = object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.object is other.object

    __hash__ = None  # type: ignore[assignment]


class Snapshot:
    """Captured state: `values`, which are equal if nothing changed, and `watch`, a fast check of the same.

    Raises:
        Unknown: a captured object may change unseen.
    """

    __slots__ = (
        "_accessed", "_asking", "_functions", "_label", "_large", "_left", "_makes", "_of_object", "_owners", "values", "watch",
    )  # fmt: skip

    def __init__(self, parts: tuple[Any, ...], large_arrays: bool) -> None:
        self.watch = Watch(parts, partial(_is_equal, large_arrays))
        self._functions: set[int] = set()
        self._owners: dict[int, Owner] = {}
        self._accessed: dict[str, None] = {}
        self._asking: list[tuple[Any, Collection[str]]] = []
        self._makes, self._label, self._of_object = False, "an argument", False
        self._large, self._left = large_arrays, MOST_VALUES
        values = tuple(self._value(part) for part in parts)
        self.values = (*values, *self._attributes())
        self._check_asking()
        self.watch.complete()
        self._owners.clear()  # snapshots do not keep the owners alive

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Snapshot) and bool(self.values == other.values))

    __hash__ = None  # type: ignore[assignment]

    def holds(self, *parts: Any) -> bool:
        """True if these are the same parts and no captured object was rebound or changed: a new snapshot would be equal."""
        return self.watch.same_parts(parts) and self.watch.holds()

    def changed(self) -> str:
        """Sentence about the first change."""
        return next(self.watch.changed(), "what it captures has changed")

    # --- values -------------------------------------------------------------------------------------------------

    def _value(self, value: Any) -> Any:
        """Key of a value; equal values have equal keys."""
        self._left -= 1
        kind = type(value)
        if kind in PLAIN:
            return (kind, value, value.names) if kind is FieldType else (kind, value)
        if kind in BY_TEXT:
            change = "the context of `decimal` has changed"
            return (kind, repr(value), *(self.watch.state(decimal_context, change) if kind is Decimal else ()))
        if self._left < 0:
            raise Unknown(f"one of more than {MOST_VALUES} values")
        if kind in (tuple, Shape, frozenset):
            return (kind, *map(self._value, value))
        if kind in CONTAINERS:
            members, label = members_of(value), self._label
            values = self._array(value) if kind is np.ndarray else (kind, *map(self._value, members))
            self.watch.containers.append((value, values, members, label))
            return values
        if isinstance(value, ABCMeta):
            self.watch.state(get_cache_token, "a class was registered with an abstract class")
            return self._class_or_object(value), *map(Identity, registered(value))
        return self._class_or_object(value)

    def _class_or_object(self, value: Any) -> Any:
        if names := asking(value):
            return self._of_library(value, names)
        if is_constant(value):
            return Identity(value)
        if isinstance(value, Field):
            return Identity(value.node), value.type, value.type.names
        return self._code(value)

    def _of_library(self, value: Any, names: Collection[str]) -> Any:
        """Key of a path or a logger, or of their classes, some of whose attributes may change."""
        self._asking.append((value, names))
        if isinstance(value, PurePath):
            return type(value), str(value)
        if isinstance(value, Logger):
            return (Identity(value), *(self._bound_value(vars(value), n, f"logger `{value.name}`") for n in SETTINGS))
        return Identity(value)

    def _code(self, value: Any) -> Any:
        """Key of a callable, or of an object with attributes."""
        kind = type(value)
        if kind is FunctionType:
            return self._function(value)
        if kind is MethodType:
            return (MethodType, self._value(value.__self__), self._value(value.__func__))
        if kind is partial:
            return (partial, self._value(value.func), self._value(value.args), self._value(value.keywords))
        if isinstance(value, FunctionWrapper):
            return (kind, *(self._bound_value(vars(value), name, f"`{value.name}`") for name in value.recorded_by))
        if kind.__module__ == "functools" and isinstance(getattr(value, "__wrapped__", None), FunctionType):
            return (kind, self._value(value.__wrapped__))  # a cache of its results
        if is_owner(value):
            return self._owner(value)
        raise Unknown(described(value))

    def _array(self, array: Any) -> Any:
        if array.nbytes <= MOST_BYTES and not array.dtype.hasobject:
            return (np.ndarray, array.shape, array.dtype.str, array.tobytes())
        if self._large and not self._of_object and not array.dtype.hasobject:
            return Identity(array)
        raise Unknown(
            f"an array of more than {MOST_BYTES >> 10} KiB" if not array.dtype.hasobject else described(array)
        )

    # --- functions ----------------------------------------------------------------------------------------------

    def _function(self, function: FunctionType) -> Any:
        if id(function) in self._functions:
            return Identity(function.__code__)
        self._functions.add(id(function))
        self.watch.function(function)
        code, keywords = function.__code__, function.__kwdefaults__ or {}
        loads, accessed = uses(code)
        self._owners[id(function)] = Owner(function, len(self._owners))
        self._access(name for name in accessed if name != "__class__" or code.co_filename != GENERATED)
        try:
            owner = f"`{function.__name__}`"
            named = [(n, self._bound_value(scope, n, owner)) for scope in (keywords, function.__dict__) for n in scope]
            abstract = [self._value(cls) for pattern, cls in PATTERNS.items() if pattern in accessed]
            return (code, self._value(function.__defaults__), *named, *self._loaded(function, loads), *abstract)
        except Unknown as unknown:
            unknown.within = unknown.within or function.__name__
            unknown.loc = unknown.loc or Loc(code.co_filename, line_of(code, unknown.name.partition(".")[0]))
            raise

    def _loaded(self, function: FunctionType, loads: tuple[Use, ...]) -> Iterator[Any]:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for use in loads:
            if use.scope == "import":
                yield self._imported(use.name, function.__globals__)
            elif use.scope != "cell":
                value = self._global(use, function)
                self._makes |= value is type and function.__code__.co_filename != GENERATED
                yield self._loaded_value(value, use)
            elif use.name in cells:  # others are variables of the function itself, used by inner functions
                yield self._loaded_value(self.watch.content(cells[use.name], use.name), use)

    def _imported(self, name: str, scope: dict[str, Any]) -> Any:
        """Key of an imported module and of its package."""
        try:
            full = resolve_name(name, scope.get("__package__") or "")
        except ImportError:
            raise Unknown(f"the module `{name}`") from None
        where = "the modules that are imported"
        return tuple(
            self._bound_value(sys.modules, each, where) for each in dict.fromkeys((full.partition(".")[0], full))
        )

    def _global(self, use: Use, function: FunctionType) -> Any:
        scope = function.__globals__
        for place in (scope, function.__builtins__):
            value = self.watch.bound(place, use.name, f"module `{scope.get('__name__')}`")
            if value is not MISSING:
                return value
        if use.scope == "maybe":
            return None
        raise Unknown(f"the name `{use.name}`, which is not bound yet")

    def _bound_value(self, scope: Scope, name: str, where: str) -> Any:
        return self._under(name, self.watch.bound(scope, name, where))

    def _under(self, name: str, value: Any, of_object: bool = False) -> Any:
        """Key of a named value. Objects may change, and so may the arrays that they hold."""
        outer = self._label, self._of_object
        self._label, self._of_object = f"`{name}`", self._of_object or of_object
        try:
            return self._value(value)
        except Unknown as unknown:
            unknown.name = unknown.name or name
            raise
        finally:
            self._label, self._of_object = outer

    def _loaded_value(self, value: Any, use: Use) -> Any:
        """Key of a loaded value, or of the attribute accessed on it if a module, class or instance has that as a name."""
        name, left, of_object = use.name, list(use.attributes), False
        while left:
            if isinstance(value, tuple) and isinstance(getattr(type(value), left[0], None), FIELD_OF_TUPLE):
                self._watch_lookup(value, left[0])
                value = value[type(value)._fields.index(left[0])]  # type: ignore[attr-defined]
            elif holds_name(value, left[0]):
                of_object = of_object or not isinstance(value, (type, ModuleType))
                self._watch_lookup(value, left[0])
                value = self.watch.bound(vars(value), left[0], f"`{name}`")
            else:
                break
            name = f"{name}.{left.pop(0)}"
        self._access(left)
        return self._under(name, value, of_object)

    def _watch_lookup(self, value: Any, name: str) -> None:
        """Watch that an attribute is found in the same place: neither the class nor what it defines is another."""
        if isinstance(value, type):
            return  # the name itself is watched
        self.watch.kind(value)
        for scope in map(vars, changeable_classes(type(value))):
            for each in (name, "__getattribute__"):
                self.watch.bound(scope, each, f"class `{type(value).__name__}`")

    # --- modules, classes and objects ---------------------------------------------------------------------------

    def _access(self, names: Iterable[str]) -> None:
        self._accessed.update(dict.fromkeys(names))

    def _owner(self, value: Any) -> Any:
        """Key of an object with attributes; those are in `_attributes`."""
        owner = self._owners.get(id(value))
        if owner is None:
            owner = self._owners[id(value)] = Owner(value, len(self._owners))
            self.watch.kind(value)
            for scope in owner.scopes:
                if not isinstance(scope, Attributes):
                    self.watch.names_of(scope, owner.name)
        names = next((names for kind, names in OWN.items() if isinstance(value, kind)), ())
        own = [self._bound_value(vars(value), name, owner.name) for name in names]
        bases = map(Identity, value.__mro__ if isinstance(value, type) else type(value).__mro__)
        if isinstance(value, (type, ModuleType)):
            return (Identity(value), owner.number, *own, *bases)
        return (type(value), owner.number, *(own or [self._value(own_value(value))]), *bases)

    def _attributes(self) -> Iterator[Any]:
        """Keys of all attributes that may be accessed. Each may add owners and names, so this runs to a fixed point."""
        while True:
            whole, making = ANY in self._accessed, self._makes or "__class__" in self._accessed
            attributes = [
                (o, n) for o in tuple(self._owners.values()) for n in o.attributes_of(dict(self._accessed), whole)
            ]
            new = [(o, n) for o, n in dict.fromkeys(attributes) if n not in o.lookups]
            objects = (o.object for o in self._owners.values() if not isinstance(o.object, (type, ModuleType)))
            kinds = dict.fromkeys(map(type, objects)) if making else ()
            more = [c for c in kinds if id(c) not in self._owners and not is_constant(c)]
            if not new and not more:
                return
            for owner, name in new:
                owner.lookups.add(name)
                yield from ((owner.number, name, key) for key in self._attribute(owner, name))
            yield from map(self._value, more)

    def _check_asking(self) -> None:
        """Raise Unknown if the function asks a path or a logger for what may be another each time."""
        for value, names in self._asking:
            for name in self._accessed:
                if name == ANY or name in names:
                    what = "some attribute" if name == ANY else f"`{name}`"
                    raise Unknown(f"{what} of {described(value)}")
        self._asking.clear()

    def _attribute(self, owner: Owner, name: str) -> Iterator[Any]:
        if name == "__subclasses__" and isinstance(owner.object, type):
            raise Unknown(f"`{name}` of {owner.name}")
        for scope, in_class in owner.holders(name):
            value = self.watch.bound(scope, name, owner.name)
            if name == "__match_args__" and type(value) is tuple:
                self._access(value)  # by the pattern
            if value is MISSING:  # an empty slot
                yield None
                continue
            if type(value) is cached_property:
                self.watch.bound(vars(value), "func", owner.name)
            if in_class and type(value) is MemberDescriptorType:
                continue  # the slot of the object has the value
            decides = underlying(value) if in_class else value
            if decides is value and in_class and is_opaque_descriptor(value):
                raise Unknown(f"`{name}` of {owner.name}, {described(value)}")
            yield self._under(
                name, decides, of_object=not isinstance(owner.object, (type, ModuleType)) and not in_class
            )


def _is_equal(large_arrays: bool, container: Any, values: Any) -> bool:
    """True if the contents of a container are still these values."""
    now = snapshot(container, large_arrays=large_arrays)
    return now is not None and now.values == (values,)


def snapshot(*parts: Any, large_arrays: bool = False) -> Snapshot | None:
    """Snapshot of the captures of functions and constants; None if they may change unseen, so that they must run every time.

    Args:
        large_arrays: arrays of more than 64 KiB count as constant, unless an object holds them; by default they do not.
    """
    result = snapshot_or_reason(*parts, large_arrays=large_arrays)
    return result if isinstance(result, Snapshot) else None


class Reason(str):
    """Reason for having no snapshot, and the line of the user that uses what may change, if known."""

    loc: Loc | None = None

    @classmethod
    def of(cls, unknown: Unknown) -> Reason:
        """The reason that an object gives."""
        reason = cls(unknown)
        reason.loc = unknown.loc
        return reason


def snapshot_or_reason(*parts: Any, large_arrays: bool) -> Snapshot | Reason:
    """Snapshot of the captures, or the reason for having none."""
    try:
        return Snapshot(parts, large_arrays)
    except Unknown as unknown:
        return Reason.of(unknown)
    except RecursionError:
        return Reason("what it captures is nested too deep")
