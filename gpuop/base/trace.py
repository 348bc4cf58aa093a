"""Host trace spans: recording, preparing, converting, planning, compiling, enqueuing and waiting, for observers."""

from __future__ import annotations

import threading
from time import perf_counter
from typing import Any, Protocol


class Observer(Protocol):
    """Receiver of events, called in the thread that causes them."""

    def begin(self, queue: Any) -> None:
        """A copy on the queue is about to be recorded."""

    def host(self, name: str, began: float, ended: float, own: float) -> None:
        """A host span, by the host clock, and its own time without nested spans, in seconds."""

    def copied(self, name: str, queue: Any, ran: list[Any], began: float, ended: float) -> None:
        """A copy, with the arguments of `Backend.span`; empty if no device clock was read."""

    def traced_again(self, name: str, reason: str) -> None:
        """A pipeline was traced once more."""


observers: list[Observer] = []
_local = threading.local()


def traced_again(name: str, reason: str) -> None:
    """Report that a pipeline was traced once more, if there is a reason."""
    for observer in tuple(observers) if reason else ():
        observer.traced_again(name, reason)


class HostSpan:
    """Host work inside a `with`: "record", "convert", "prepare", "plan", "compile", "enqueue" or "wait"."""

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
