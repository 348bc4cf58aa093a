"""Re-entrant context managers: they may be entered again, and within themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from functools import partial, wraps
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


class Entered(AbstractContextManager[Value], ContextDecorator, Generic[Value]):
    """A context manager that is a new context at each `with`."""

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


def context(function: Callable[Arguments, Iterator[Value]]) -> Callable[Arguments, Entered[Value]]:
    """`contextlib.contextmanager` whose object serves several `with`."""
    manager = contextmanager(function)

    @wraps(function)
    def reentrant(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Entered[Value]:
        return Entered(partial(manager, *args, **kwargs))

    return reentrant
