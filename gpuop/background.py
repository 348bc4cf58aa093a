"""Threads beside the caller's: a lock that they take turns at, one that serves a graph's streams, one that steps it."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any
from weakref import WeakSet, finalize

LAST_WAIT = 2.0  # seconds that the end of the process waits for a step that is under way

Job = tuple["Future[Any]", Callable[[], Any]]


class Turns:
    """A re-entrant lock that goes to those who wait, before the thread that had it last may have it again.

    A graph that runs would otherwise hold its lock nearly always, and others would hardly ever get it.
    """

    def __init__(self) -> None:
        lock, self._next = threading.RLock(), threading.Lock()  # the second one is held by the first of those who wait
        self.wanted = self._next.locked  # whether anybody waits
        self._acquire, self.give_back = lock.acquire, lock.release
        self._is_mine: Callable[[], bool] = lock._is_owned  # type: ignore[attr-defined]

    def take(self) -> None:
        """As `with` does, for what runs often."""
        if (self.wanted() and not self._is_mine()) or not self._acquire(False):
            with self._next:  # who had it last, coming back, stands behind whoever holds this
                self._acquire()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self.give_back()


class Worker:
    """A thread that does jobs in order. It ends with this object, and does not keep the process alive."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        threading.Thread(target=_serve, args=(self._jobs,), name=name, daemon=True).start()
        finalize(self, self._jobs.put, None)

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        """Do this after what was submitted before."""
        future: Future[Any] = Future()
        self._jobs.put((future, work))
        return future


_serving = threading.local()


def _serve(jobs: SimpleQueue[Job | None]) -> None:
    _serving.now = True
    while (job := jobs.get()) is not None:
        future, work = job
        try:
            future.set_result(work())
        except BaseException as failed:  # noqa: BLE001 - raised again by who asks for the result
            future.set_exception(failed)
        del job, future, work  # what they hold is free while nothing is asked for


class Loop:
    """A thread that calls `turn` until that gives False, or raises, or `stop` is called."""

    def __init__(self, turn: Callable[[], bool]) -> None:
        self._turn, self._ending = turn, threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._repeat, name="gpuop graph", daemon=True)
        _loops.add(self)
        self._thread.start()

    def _repeat(self) -> None:
        try:
            while not self._ending.is_set() and self._turn():
                pass
        except BaseException as failed:  # noqa: BLE001 - raised again by `join`
            self._error = failed

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """No further turn begins."""
        self._ending.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end and raise what ended it, once. False, without waiting, in a thread that the loop waits for."""
        if threading.current_thread() is self._thread or getattr(_serving, "now", False):
            return False
        self._thread.join(timeout)
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True


_loops: WeakSet[Loop] = WeakSet()


@atexit.register
def _end() -> None:
    """A thread inside a driver must not outlive the interpreter."""
    for loop in list(_loops):
        loop.stop()
    for loop in list(_loops):
        loop._thread.join(LAST_WAIT)
