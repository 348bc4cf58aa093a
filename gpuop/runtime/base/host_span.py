"""What the host does for devices, told to who observes: how long it plans, compiles, enqueues and waits; and copies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Protocol

from gpuop.runtime.base.backend import Backend


class Observer(Protocol):
    """Who is told, in the thread that does it."""

    def begin(self, queue: Backend) -> None:
        """A copy of the queue's is about to be noted."""

    def host(self, name: str, began: float, ended: float, own: float) -> None:
        """What the host did, by its clock, and how long it took without what is told by itself, in seconds."""

    def copied(self, name: str, queue: Backend, ran: list[Any], began: float, ended: float) -> None:
        """A copy, with what `Backend.span` takes; nothing where no device's clock was asked."""


observers: list[Observer] = []
_local = threading.local()


class HostSpan:
    """What the host does inside a `with`: "plan", "compile", "enqueue" or "wait"."""

    __slots__ = ("began", "inner", "name", "outer")

    def __init__(self, name: str) -> None:
        self.name, self.began = name, 0.0

    def __enter__(self) -> HostSpan:
        if observers:
            self.outer, self.inner = getattr(_local, "span", None), 0.0
            _local.span, self.began = self, perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        if self.began:
            self._end()

    def _end(self) -> float:
        ended = perf_counter()
        passed, _local.span = ended - self.began, self.outer
        if self.outer is not None:
            self.outer.inner += passed
        for observer in tuple(observers):
            observer.host(self.name, self.began, ended, passed - self.inner)
        return ended


class CopySpan(HostSpan):
    """A copy that is enqueued inside a `with`: an "upload", a "download", or a "copy" on the device.

    Args:
        waits: whether the host waits for it.

    Attributes:
        ran: gains what `Backend.span` takes of the copy.
        observed: whether anybody wants to know.
    """

    __slots__ = ("copy", "queue", "ran")

    def __init__(self, copy: str, queue: Backend, waits: bool = True) -> None:
        super().__init__("wait" if waits else "enqueue")
        self.copy, self.queue = copy, queue
        self.ran: list[Any] = []

    @property
    def observed(self) -> bool:
        return self.began > 0

    def __enter__(self) -> CopySpan:
        for observer in tuple(observers):
            observer.begin(self.queue)
        super().__enter__()
        return self

    def __exit__(self, *failed: object) -> None:
        if self.began:
            ended = self._end()
            for observer in tuple(observers) if failed[0] is None else ():
                observer.copied(self.copy, self.queue, self.ran, self.began, ended)


@contextmanager
def between_marks(copy: str, queue: Backend, waits: bool = True) -> Iterator[None]:
    """A copy that is enqueued inside a `with`, where only marks around it have the device's time."""
    with CopySpan(copy, queue, waits) as span:
        span.ran += [queue.record()] if span.observed else []
        yield
        span.ran += [queue.record()] if span.observed else []
