"""What operators and pipelines have in common: they stand in the place of the function that they are made of."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

Made = TypeVar("Made", bound="Decorated")


class Decorated:
    """A function with another way to call it; in a class it is a method.

    Attributes:
        receiver: the object that it is a method of, if it is one: the first argument.
        recorded_by: the attributes that decide what is recorded.
    """

    recorded_by: ClassVar[tuple[str, ...]] = ("function", "receiver")

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        functools.update_wrapper(self, function)  # type: ignore[arg-type]  # what is made of it can be called
        self.function, self.name = function, name or function.__name__
        self.signature = inspect.signature(function)
        self.receiver: tuple[Any, ...] = ()

    def _is_receiver(self, value: Any) -> bool:
        """Whether an argument is the object: what that holds is captured, not what it equals, nor is it kept."""
        return any(value is receiver for receiver in self.receiver)

    def __get__(self: Made, instance: Any, owner: Any = None) -> Made:
        if instance is None:
            return self
        bound = object.__new__(type(self))
        bound.__dict__.update(vars(self), receiver=(instance,))
        return bound
