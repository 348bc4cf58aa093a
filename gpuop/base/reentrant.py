"""Re-entrant context managers: they may be entered again, and within themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from functools import partial, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NoReturn, ParamSpec, TypeVar

from gpuop.base.errors import MissingError

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


class Entered(AbstractContextManager[Value], ContextDecorator, Generic[Value]):
    """A context manager that is a new context at each `with`."""

    def __init__(self, make: Callable[[], AbstractContextManager[Value]], name: str) -> None:
        self._make, self._open, self._name = make, threading.local(), name

    if not TYPE_CHECKING:  # checkers know that there are none

        def __getattr__(self, attribute: str) -> NoReturn:
            if attribute.startswith("_"):  # Python asks for these
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r}")
            raise MissingError(
                f"`gp.{self._name}(…)` alone has no attribute {attribute!r}: it begins with its block, "
                f"`with gp.{self._name}(…) as it:`, and `it` has attributes"
            )

    def __enter__(self) -> Value:
        context = self._make()
        value = context.__enter__()
        self._open.contexts = [*getattr(self._open, "contexts", ()), context]
        return value

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        context: AbstractContextManager[Value] = self._open.contexts.pop()
        return context.__exit__(kind, error, trace)


def context(function: Callable[Arguments, Iterator[Value]]) -> Callable[Arguments, Entered[Value]]:
    """`contextlib.contextmanager` whose object serves several `with`."""
    manager = contextmanager(function)

    @wraps(function)
    def reentrant(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Entered[Value]:
        return Entered(partial(manager, *args, **kwargs), function.__name__.strip("_"))

    return reentrant
