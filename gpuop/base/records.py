"""Data classes that are quick to define: half of the time to import gpuop was `dataclasses` generating and compiling methods.

`dataclass` is that of the standard library to checkers, and here but for what compiles: of the methods of a class only
`__init__` is generated, the others are closures over the names of its fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

Class = type[Any]


class _Missing:
    """The default of a field with a factory."""

    def __repr__(self) -> str:
        return "<factory>"


def _dataclass(
    cls: Class | None = None,
    /,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    """Class with the fields and methods of `dataclasses.dataclass`; as a decorator with or without arguments."""

    def defined(cls: Class) -> Class:
        cls.__doc__ = cls.__doc__ or cls.__name__  # else its signature, which takes long
        own = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
        members = fields(own)
        names = [each.name for each in members]
        if init:
            _add(own, "__init__", _init(own, members, frozen))
        if repr:
            _add(own, "__repr__", _repr([each.name for each in members if each.repr]))
        if eq:
            _compare(own, _values([each.name for each in members if each.compare]), frozen)
        if frozen:
            _freeze(own, {*names})
        if frozen and slots:
            _pickle(own, names)
        return own

    return defined if cls is None else defined(cls)


def _add(cls: Class, name: str, method: Callable[..., Any]) -> None:
    """Add a method, unless the class has its own."""
    if name not in cls.__dict__:
        method.__name__, method.__qualname__, method.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
        setattr(cls, name, method)


def _init(cls: Class, members: Sequence[Field[Any]], frozen: bool) -> Callable[..., None]:
    """Generate `__init__`, which is called too often to be a closure."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_missing": _Missing()}
    positional, by_name, body = ["self"], list[str](), list[str]()
    for each in members:
        name, default = each.name, f"_of_{each.name}"
        value, parameter = (name, name) if each.init else (default, "")
        if each.default_factory is not MISSING:
            names[default], parameter = each.default_factory, f"{name}=_missing"
            value = f"{default}() if {name} is _missing else {name}" if each.init else f"{default}()"
        elif each.default is not MISSING and (each.init or "__slots__" in cls.__dict__):  # else the class has it
            names[default], parameter = each.default, f"{name}={default}"
        elif not each.init:
            continue
        if each.init:
            (by_name if each.kw_only else positional).append(parameter)
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join([*positional, *(["*", *by_name] if by_name else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), names)
    method: Callable[..., None] = names["__init__"]
    method.__annotations__ = {**{each.name: each.type for each in members if each.init}, "return": None}
    return method


def _repr(names: Sequence[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def shown(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return shown


def _values(names: Sequence[str]) -> Callable[[Any], Any]:
    """Function that gives the values of fields as a tuple."""
    if not names:
        return lambda self: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda self: (get(self),)


def _compare(cls: Class, values: Callable[[Any], Any], frozen: bool) -> None:
    def equal(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    _add(cls, "__eq__", equal)
    if cls.__dict__.get("__hash__") is None:  # as Python sets it beside an own `__eq__`
        cls.__hash__ = hashed if frozen else None  # type: ignore[assignment]


def _freeze(cls: Class, names: set[str]) -> None:
    def assign(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    _add(cls, "__setattr__", assign)
    _add(cls, "__delattr__", delete)


def _pickle(cls: Class, names: Sequence[str]) -> None:
    """Let instances without a `__dict__` be pickled and copied, though their attributes cannot be set."""

    def restore(self: Any, state: Sequence[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    _add(cls, "__getstate__", lambda self: [getattr(self, name) for name in names])
    _add(cls, "__setstate__", restore)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass
