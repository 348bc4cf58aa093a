"""Calls with a keyword that a function does not have: the message names the nearest one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from gpuop.base.errors import meant

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type[Any])


def keywords(signature: inspect.Signature) -> list[str]:
    """The names that a call may spell out."""
    return [p.name for p in signature.parameters.values() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]


def with_near_name(wrong: TypeError, signature: inspect.Signature, options: Sequence[str] = ()) -> str:
    """Python message about the arguments of a call, with the nearest valid name.

    Args:
        options: names that the call takes besides those of the signature.
    """
    before, unexpected, name = str(wrong).partition("unexpected keyword argument ")
    near = meant(name[1:-1], [*keywords(signature), *options])
    return f"{before}{unexpected}{name}{near}" if unexpected else str(wrong)


def hinted(function: Function) -> Function:
    """The function, or constructor, with the nearest keyword in the TypeError of a call with a wrong one."""
    own = f"{function.__qualname__}() got an unexpected keyword argument "

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as wrong:
            if not str(wrong).startswith(own):
                raise
            signature = inspect.signature(function)
            names = [name for name in keywords(signature) if name != "self"]
            shown = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
            message = with_near_name(wrong, signature).replace(function.__qualname__, shown)
            others = "" if "Did you" in message else f"; it takes {', '.join(names) or 'no arguments'}"
            raise TypeError(f"{message}{others}") from None

    return cast(Function, call)


def hinted_methods(cls: Class) -> Class:
    """The class, whose public methods are `hinted`."""
    for name, value in list(vars(cls).items()):
        if inspect.isfunction(value) and not name.startswith("_"):
            setattr(cls, name, hinted(value))
    return cls
