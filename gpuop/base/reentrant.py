"""Re-entrant context managers: they may be entered again, and within themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from functools import partial, wraps
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar

Given = ParamSpec("Given")
Value = TypeVar("Value")


class Entered(AbstractContextManager[Value], ContextDecorator, Generic[Value]):
    """What is a new context at each `with`."""

    def __init__(self, make: Callable[[], AbstractContextManager[Value]]) -> None:
        self._make, self._open = make, threading.local()

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


def context(function: Callable[Given, Iterator[Value]]) -> Callable[Given, Entered[Value]]:
    """`contextlib.contextmanager`, of which one object serves several `with`."""
    begun = contextmanager(function)

    @wraps(function)
    def made(*args: Given.args, **kwargs: Given.kwargs) -> Entered[Value]:
        return Entered(partial(begun, *args, **kwargs))

    return made
