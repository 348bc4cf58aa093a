"""Base class of operators and pipelines: a wrapper that takes the place of its function."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from operator import is_
from types import FunctionType
from typing import Any, ClassVar, SupportsIndex, TypeVar

from gpuop.base.errors import NearNames, SemanticError, UnsupportedError, described
from gpuop.base.misspelt import with_near_name
from gpuop.dsl.recorder.error_hints import unannotated

Chosen = bool | str | Iterable[str]  # arguments by their names; True: all
Dynamic = bool | tuple[str, ...]
PORTABLE = ".portable"
THROUGH_OBJECTS = 4  # first pickle protocol whose names may lead through a pickled object
UNNAMED = (
    " (to which no name in its module leads: cloudpickle sends its code, pickle cannot)"  # for the message of pickle
)
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
Wrapper = TypeVar("Wrapper", bound="FunctionWrapper")


class FunctionWrapper(NearNames):
    """A function with another call; in a class it is a method.

    Attributes:
        receiver: the bound object of a method, which is the first argument; empty for a function.
        dynamic: the names of arguments whose extents are arguments of kernels; True: of all.
        defaults: of the function's arguments, as the signature has them.
        first, preset: positional and keyword arguments of the wrapped `functools.partial`, if it is one.
        places: the number of arguments; -1 if some are not positional.
        recorded_by: the attributes that decide the recording.
        options: names of arguments of a call that are not those of the function.
        users: the public names, which completion offers; all others are for gpuop itself.
    """

    recorded_by: ClassVar[tuple[str, ...]] = ("function", "receiver", "first", "preset")
    options: ClassVar[tuple[str, ...]] = ()
    users: ClassVar[tuple[str, ...]] = ("name", "signature")

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self.first: tuple[Any, ...] = ()
        self.preset: dict[str, Any] = {}
        if isinstance(function, functools.partial):
            self.first, self.preset, function = function.args, function.keywords, function.func
        updated = (
            functools.WRAPPER_UPDATES if inspect.isfunction(function) else ()
        )  # a wrapper has attributes of its own
        functools.update_wrapper(self, function, updated=updated)  # type: ignore[arg-type]  # a wrapper can be called
        self.function, self.name = function, name or function.__name__
        self.signature, self.defaults = inspect.signature(function), defaults_of(function)
        parameters = self.signature.parameters.values()
        self.places = len(parameters) if all(p.kind in BY_POSITION for p in parameters) else -1
        self.receiver: tuple[Any, ...] = ()
        self.dynamic: Dynamic = False
        self._portable: Any = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}{self.signature}>"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name.startswith("__") or name in self.users]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        """Arguments of a call, after the bound ones. Raises TypeError as Python does."""
        positional = *self.receiver, *self.first, *args
        if len(positional) == self.places and not (kwargs or self.preset):
            named = dict(zip(self.signature.parameters, positional, strict=True))
            return inspect.BoundArguments(self.signature, named)  # equal to the result of `Signature.bind`
        defaults = defaults_of(self.function)
        if len(defaults) != len(self.defaults) or not all(map(is_, defaults, self.defaults)):
            self.signature, self.defaults = inspect.signature(self.function), defaults
        bound = bind(self.signature, positional, self.preset | kwargs, self.options)
        bound.apply_defaults()
        return bound

    def _is_receiver(self, value: Any) -> bool:
        """True if an argument is the bound object: its contents are captured, it is neither compared by value nor cached."""
        return any(value is receiver for receiver in self.receiver)

    def _declare(self, what: str, dynamic: Chosen) -> None:
        """Set `dynamic=` from its forms for users.

        Raises:
            SemanticError: there is no such argument.
        """
        if not isinstance(dynamic, (bool, str)) and not isinstance(dynamic, Iterable):
            raise SemanticError(
                f"`dynamic=` of {what} `{self.name}` is True, or names of arguments, not {described(dynamic)}"
            )
        self.dynamic = (
            dynamic if isinstance(dynamic, bool) else (dynamic,) if isinstance(dynamic, str) else tuple(dynamic)
        )
        for name in self.dynamic if isinstance(self.dynamic, tuple) else ():
            if name not in self.signature.parameters:
                names = ", ".join(f"`{n}`" for n in self.signature.parameters) or "none"
                raise SemanticError(
                    f"{what} `{self.name}` has no argument `{name}`, which is to be dynamic; it has {names}"
                )

    def _is_dynamic(self, name: str) -> bool:
        """True if an argument, or a member `name[0]` of one, has dynamic extents."""
        return self.dynamic if isinstance(self.dynamic, bool) else name.partition("[")[0] in self.dynamic

    def __get__(self: Wrapper, instance: Any, owner: Any = None) -> Wrapper:
        if instance is None:
            return self
        bound = object.__new__(type(self))
        bound.__dict__.update(vars(self), receiver=(instance,))
        return bound

    # --- copies, and other processes ----------------------------------------------------------------------------

    def __copy__(self: Wrapper) -> Wrapper:
        return self

    def __deepcopy__(self: Wrapper, memo: Any) -> Wrapper:
        return self

    def settings(self) -> tuple[Any, ...]:
        """Constructor arguments besides the function."""
        return ()

    @property
    def portable(self) -> Any:
        """The function under a name that leads to it (its own name leads here), or with its code if no name does."""
        if self._portable is None:
            f = self.function
            copy = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
            suffix = PORTABLE if _named(f.__module__, f.__qualname__) is self else UNNAMED
            copy.__module__, copy.__qualname__ = f.__module__, f.__qualname__ + suffix
            copy.__kwdefaults__, copy.__doc__ = f.__kwdefaults__, f.__doc__
            vars(copy).update(vars(f), settings=(type(self), self.settings()))
            self._portable = copy
        return self._portable

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        f = self.function
        alone = not (self.first or self.preset or self.receiver)
        if int(protocol) < THROUGH_OBJECTS and alone and _named(f.__module__, f.__qualname__) is self:
            return f.__qualname__
        return self.__reduce__()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.first or self.preset:
            return type(self), (functools.partial(self.function, *self.first, **self.preset), *self.settings())
        if self.receiver:
            return getattr, (*self.receiver, self.function.__name__)
        return _unpickle, (self.portable,)


def defaults_of(function: Callable[..., Any]) -> tuple[Any, ...]:
    """Defaults of the arguments of a function, which may be set at any time; those of other callables are in signatures alone."""
    by_name = getattr(function, "__kwdefaults__", None) or {}
    return getattr(function, "__defaults__", None), *by_name.keys(), *by_name.values()


def bind(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], options: Sequence[str] = ()
) -> inspect.BoundArguments:
    """Arguments of a call. The TypeError is that of Python, but an unknown name comes before a missing one.

    Args:
        options: names that the caller has taken out of the arguments.
    """
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as missing:
        wrong = missing
        try:
            signature.bind_partial(*args, **kwargs)
        except TypeError as unknown:
            wrong = unknown
        many = f"; it takes {unannotated(signature)}" if "too many" in str(wrong) else ""
        raise TypeError(f"{with_near_name(wrong, signature, options)}{many}") from None


def bind_of_library(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    """Arguments of a call of a library function.

    Raises:
        UnsupportedError: the arguments do not fit; it is a TypeError.
    """
    try:
        return bind(signature, args, kwargs)
    except TypeError as wrong:
        raise UnsupportedError(f"{name}: {wrong}") from None


def _named(module: str, name: str) -> Any:
    """Object of a module under a dotted name, or None."""
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _unpickle(portable: FunctionType) -> FunctionWrapper:
    """Wrapper that has this function; a new one where the function came with its code."""
    name = portable.__qualname__.removesuffix(PORTABLE).removesuffix(UNNAMED)
    existing = _named(portable.__module__, name)
    if isinstance(existing, FunctionWrapper) and existing.portable is portable:
        return existing
    cls, settings = vars(portable).pop("settings")
    portable.__qualname__ = name
    wrapper: FunctionWrapper = cls(portable, *settings)
    return wrapper


def check_function(what: str, function: Any) -> None:
    """Refuse an object without code to record; `what` would wrap it. A `functools.partial` of a function is accepted."""
    code = function.func if isinstance(function, functools.partial) else function
    if not inspect.isroutine(code) or not hasattr(code, "__code__"):
        raise SemanticError(f"{what} is made of a Python function, not of {described(function)}; write a `def`")
