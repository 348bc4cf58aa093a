"""Captured modules, classes and objects: the scopes that hold their attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import (
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any

from gpuop.base.errors import Loc
from gpuop.dsl.guards.function_wrapper import FunctionWrapper
from gpuop.dsl.guards.libraries import is_library_constant
from gpuop.dsl.guards.standard_library import is_defined_in
from gpuop.dsl.guards.trace_constants import PACKAGE, is_constant

# Modules of classes without state, and classes of immutable values
WITHOUT_STATE = ("typing", "abc", "enum", "collections.abc")
IMMUTABLE = (int, float, complex, str, bytes, tuple, frozenset)
HEAP_TYPE = 1 << 9
ALWAYS = ("shape", "dtype")  # accessed by gpuop itself on possible arrays
MAKING = ("__init__", "__new__")
OF_CLASSES = (*MAKING, "__class_getitem__", "__subclasshook__")
# Attributes that no dictionary has
IN_CLASSES = ("__name__", "__qualname__")
IN_FUNCTIONS = ("__annotations__", "__doc__", "__module__", *IN_CLASSES)
# Special methods that no operation calls, or only conversions to text, and those that `captured_names.py` sees called
SELDOM = {
    *MAKING, "__class_getitem__", "__copy__", "__deepcopy__", "__del__", "__delattr__", "__dir__", "__format__", "__getnewargs__",
    "__getstate__", "__init_subclass__", "__reduce__", "__reduce_ex__", "__replace__", "__repr__", "__set_name__", "__setattr__",
    "__setstate__", "__sizeof__", "__str__", "__subclasshook__",
}  # fmt: skip
Scope = Mapping[str, Any]


class Unknown(Exception):
    """A capture whose changes cannot be seen.

    Args:
        what: description of the object.

    Attributes:
        name, within: its name, and the function that uses it.
        loc: the line of that use.
    """

    loc: Loc | None = None

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what, self.name, self.within = what, "", ""

    def __str__(self) -> str:
        name = f"`{self.name}`, {self.what}" if self.name else self.what
        return f"{name}{self.within and f', which `{self.within}` uses'}, may be another each time"


class Attributes:
    """Mapping of attributes that no dictionary has: slots, and names of functions and classes."""

    __slots__ = ("names", "object")

    def __init__(self, object: Any, names: Iterable[str]) -> None:
        self.object, self.names = object, tuple(names)

    def get(self, name: str, default: Any) -> Any:
        """Value of an attribute, or the default if it is another one, or an empty slot."""
        return getattr(self.object, name, default) if name in self.names else default

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)


class Owner:
    """Module, class, function or object with attributes.

    Attributes:
        name: description in messages.
        scopes: mappings with its attributes; those of classes last, in the order of lookup in Python.
        own: the number of scopes that are of the object itself.
        lookups: names of the attributes that were looked up.
        everything: True for an object of a class of gpuop or a library, or of a class that inherits from one: its functions are not
            examined, so all its attributes count.
    """

    __slots__ = ("everything", "lookups", "name", "number", "object", "own", "scopes")

    def __init__(self, object: Any, number: int) -> None:
        self.object, self.number, self.lookups = object, number, set[str]()
        kind = type(object)
        own: list[Any]
        if kind is ModuleType:
            self.name, own, classes = f"module `{object.__name__}`", [vars(object)], []
        elif isinstance(object, type):
            own = [Attributes(object, IN_CLASSES)]
            self.name, classes = f"class `{object.__name__}`", changeable_classes(object)
        elif kind is FunctionType:
            self.name, own, classes = f"`{object.__name__}`", [Attributes(object, IN_FUNCTIONS)], []
        else:
            self.name, own, classes = f"a `{kind.__name__}`", _own_scopes(object), changeable_classes(kind)
        self.scopes: list[Scope] = [*own, *map(vars, classes)]
        self.own = len(own)
        inherits = any(map(is_library_constant, kind.__mro__[1:]))
        self.everything = not isinstance(object, (type, ModuleType)) and (is_constant(kind) or inherits)

    @property
    def is_lasting(self) -> bool:
        """True for a module that gives the same under any name at all times, unless a name is rebound."""
        return type(self.object) is ModuleType and self.object.__name__.partition(".")[0] in (PACKAGE, "numpy")

    def attributes_of(self, accessed: Mapping[str, None], whole: bool) -> Iterator[str]:
        """Names of the attributes that count, given the accessed ones; with `whole` all of them."""
        if type(self.object) is FunctionType:
            yield from (name for name in IN_FUNCTIONS if name in accessed)  # computed names are hardly these
            return
        yield from accessed
        yield from ALWAYS
        if type(self.object) is ModuleType:
            if not self.is_lasting:
                yield "__getattr__"
                yield from self.scopes[0] if whole else ()
            return
        if isinstance(self.object, type):
            yield from OF_CLASSES
        for place, scope in enumerate(self.scopes):
            everything = whole or (self.everything and place < self.own)
            for name in scope:
                if everything or _is_special(name, scope):
                    yield name

    def holders(self, name: str) -> Iterator[tuple[Scope, bool]]:
        """Scopes that have an attribute, or a slot for it, each with True if it is a class; `super()` uses those after the
        first.
        """
        for place, scope in enumerate(self.scopes):
            if scope.get(name, scope) is not scope or (isinstance(scope, Attributes) and name in scope.names):
                yield scope, place >= self.own


def is_owner(value: Any) -> bool:
    """True if the attributes determine a value: it is a module, or a class or an object defined in Python."""
    kind = type(value)
    if kind in (ModuleType, SimpleNamespace):
        return True
    if isinstance(value, type):
        return (kind is type or _is_stateless(kind)) and all(map(_is_known, value.__mro__))
    return all(map(_shows_state, kind.__mro__))


def holds_name(owner: Any, name: str) -> bool:
    """True if an attribute is an entry of the owner's own dictionary, and no descriptor or class overrides it."""
    kind = type(owner)
    if kind is ModuleType:
        if name not in vars(owner) and owner.__name__ in (PACKAGE, f"{PACKAGE}.dsl"):
            getattr(owner, name, None)  # loads it
        return name in vars(owner)
    if isinstance(owner, type):
        return kind is type and name in vars(owner) and not hasattr(type(vars(owner)[name]), "__get__")
    asks: Any = kind.__getattribute__
    plain = kind is SimpleNamespace or asks is object.__getattribute__
    return plain and not hasattr(kind, name) and name in getattr(owner, "__dict__", ())


def own_value(value: Any) -> Any:
    """Text of the number or string that an object is besides its attributes, the members of a tuple, or None."""
    if isinstance(value, tuple):
        return tuple(tuple.__iter__(value))
    if isinstance(value, frozenset):
        return frozenset(frozenset.__iter__(value))
    base = next((base for base in IMMUTABLE if isinstance(value, base)), None)
    return None if base is None else base.__repr__(value)


def underlying(attribute: Any) -> Any:
    """Function behind an attribute of a class, or the attribute itself."""
    match attribute:
        case staticmethod() | classmethod():
            return attribute.__func__
        case property():
            return attribute.fget
        case cached_property():
            return attribute.func
        case _:
            return attribute


def is_opaque_descriptor(attribute: Any) -> bool:
    """True if unknown code decides the value of a class attribute."""
    transparent = type(attribute) is FunctionType or isinstance(attribute, FunctionWrapper) or is_constant(attribute)
    return hasattr(type(attribute), "__get__") and not transparent


def _is_special(name: str, scope: Scope) -> bool:
    """True if a name is of a method that operators and functions of Python call."""
    if name[:2] != "__" or name in SELDOM:
        return False
    value = scope.get(name, None)
    return isinstance(value, (FunctionType, classmethod, property)) or (callable(value) and not isinstance(value, type))


def _own_scopes(object: Any) -> list[Any]:
    slots = [
        name for cls in type(object).__mro__ for name, place in vars(cls).items() if type(place) is MemberDescriptorType
    ]
    return [*([vars(object)] if hasattr(object, "__dict__") else ()), *([Attributes(object, slots)] if slots else ())]


def changeable_classes(kind: type) -> list[type]:
    """Classes of an object whose attributes may change."""
    return [cls for cls in kind.__mro__ if not _is_constant(cls)]


def _is_constant(cls: type) -> bool:
    return _is_stateless(cls) or is_constant(cls)


def _is_stateless(cls: type) -> bool:
    return is_defined_in(WITHOUT_STATE, cls) or cls is SimpleNamespace


def _is_known(cls: type) -> bool:
    """True if a class is constant, or defined in Python."""
    return _is_constant(cls) or _is_python(cls)


def _shows_state(cls: type) -> bool:
    """True if what a class gives its objects is in attributes; a class in C keeps it elsewhere, as a deque its members."""
    if cls.__module__ == "builtins":
        return cls in (object, *IMMUTABLE)
    return _is_stateless(cls) or _is_python(cls)


def _is_python(cls: type) -> bool:
    """True if a class is defined in Python: classes in C have own methods of other types."""
    of_c = (MethodDescriptorType, WrapperDescriptorType, GetSetDescriptorType)
    own = [vars(cls)[name] for name in vars(cls).keys() - SELDOM - {"__dict__", "__weakref__"}]
    return bool(cls.__flags__ & HEAP_TYPE) and not any(isinstance(v, of_c) and v.__objclass__ is cls for v in own)
