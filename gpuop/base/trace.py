"""Host trace spans: recording, preparing, converting, planning, compiling, enqueuing and waiting, for observers."""

from __future__ import annotations

import threading
from time import perf_counter
from typing import Any, Protocol


class Observer(Protocol):
    """Who is told, in the thread that does it."""

    def begin(self, queue: Any) -> None:
        """A copy of the queue's is about to be noted."""

    def host(self, name: str, began: float, ended: float, own: float) -> None:
        """What the host did, by its clock, and how long it took without what is told by itself, in seconds."""

    def copied(self, name: str, queue: Any, ran: list[Any], began: float, ended: float) -> None:
        """A copy, with what `Backend.span` takes; nothing where no device's clock was asked."""

    def traced_again(self, name: str, reason: str) -> None:
        """A pipeline was traced once more."""


observers: list[Observer] = []
_local = threading.local()


def traced_again(name: str, reason: str) -> None:
    """Tell that a pipeline was traced once more, where there is a reason."""
    for observer in tuple(observers) if reason else ():
        observer.traced_again(name, reason)


class HostSpan:
    """What the host does inside a `with`: "record", "convert", "prepare", "plan", "compile", "enqueue" or "wait"."""

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
