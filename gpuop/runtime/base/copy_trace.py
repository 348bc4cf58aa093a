"""Reports of copies to profilers: when they are enqueued, and their duration by the device's clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from gpuop.base.trace import HostSpan, observers
from gpuop.runtime.base.backend import Backend

UNOBSERVED = nullcontext()


class CopySpan(HostSpan):
    """A copy that is enqueued inside a `with`: an "upload", a "download", or a "copy" on the device.

    Args:
        waits: whether the host waits for it.

    Attributes:
        ran: gains the copy's events, for `Backend.span`.
        observed: whether a profiler is open.
    """

    __slots__ = ("copy", "queue", "ran")

    def __init__(self, copy: str, queue: Backend, waits: bool = True) -> None:
        self.name, self.began = "wait" if waits else "enqueue", 0.0
        self.copy, self.queue = copy, queue
        self.ran: list[Any] = []

    @property
    def observed(self) -> bool:
        return self.began > 0

    def __enter__(self) -> CopySpan:
        if observers:
            for observer in tuple(observers):
                observer.begin(self.queue)
            super().__enter__()
        return self

    def __exit__(self, *failed: object) -> None:
        if self.began:
            ended = self._end()
            for observer in tuple(observers) if failed[0] is None else ():
                observer.copied(self.copy, self.queue, self.ran, self.began, ended)


def between_marks(copy: str, queue: Backend, waits: bool = True) -> AbstractContextManager[None]:
    """Report a copy that is enqueued inside a `with`, timed by marks around it, if a profiler is open."""
    return _between_marks(copy, queue, waits) if observers else UNOBSERVED


@contextmanager
def _between_marks(copy: str, queue: Backend, waits: bool) -> Iterator[None]:
    with CopySpan(copy, queue, waits) as span:
        span.ran += [queue.record()] if span.observed else []
        yield
        span.ran += [queue.record()] if span.observed else []
