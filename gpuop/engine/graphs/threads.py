"""Threads of a graph: the lock that they share with callers, the worker of sensors and actuators, the loop of `run`."""

from __future__ import annotations

import _thread
import atexit
import threading
from collections.abc import Callable, Iterable
from contextvars import copy_context
from functools import partial
from itertools import repeat
from queue import SimpleQueue
from typing import Any

from gpuop.base.finalizers import WeakKeys, at_end
from gpuop.base.system import in_forked_child
from gpuop.runtime.base.interruptible import Done

LAST_WAIT = 2.0  # seconds that the end of the process waits for a step that is under way


class FairLock(_thread.RLock):  # type: ignore[misc]
    """A fair re-entrant lock, for `with`: waiting threads get it before the last owner gets it again.

    Otherwise a running graph would hold its lock nearly always and starve other threads.

    A signal handler may raise an exception after any Python call, so a lock that `acquire()` had taken might
    stay locked for ever. None runs right after a `for` gets an item from an iterator of C, so the lock is taken by
    getting an item of `map(self.acquire, …)`; `__exit__` of RLock, which is a C function, releases it.
    """

    def __init__(self) -> None:
        self._next = threading.Lock()  # held by the first thread that waits for this lock
        self.wanted = self._next.locked  # True while a thread waits
        self._tries = map(self.acquire, repeat(False))  # an item: an attempt that does not wait
        self._waits = map(self.acquire, repeat(True))  # an item: wait, and take it
        self._ends = iter(self.release, True)  # an item: release it
        self._free: Iterable[bool] = self._tries  # empty while a thread waits, so that nobody overtakes it

    def __enter__(self) -> None:  # type: ignore[override]
        owned = False
        for owned in self._free:  # noqa: B007
            break
        if owned:
            return
        if self._is_owned():  # type: ignore[attr-defined]
            for _ in self._waits:
                return
        try:
            with self._next:  # a thread that returns for the lock queues behind the one that holds this
                self._free = ()
                for owned in self._waits:  # noqa: B007
                    break
                self._free = self._tries
        except BaseException:
            self._free = self._tries
            if owned:
                for _ in self._ends:
                    break
            raise


class Job:
    """Work for another thread.

    Attributes:
        value: the result of the work, once it is done.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work: Callable[[], Any] | None = work
        self._done = Done()
        self.value: Any = None
        self._error: BaseException | None = None

    def do(self) -> None:
        """Run the work, once, in the thread that serves."""
        work, self.work = self.work, None  # releases the references of the work when it is done
        if work is not None:
            try:
                self.value = work()
            except BaseException as failed:  # noqa: BLE001 - raised again where the result is read
                self._error = failed
            self._done.tell()

    def wait(self) -> BaseException | None:
        """Wait until it is done; return its error."""
        self._done.wait()
        return self._error


class Worker:
    """A thread that runs jobs in order, with the device in use where it was created.

    It ends with this object, and does not keep the process alive.
    """

    def __init__(self, name: str) -> None:
        jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.ask = jobs.put  # queues a job; one that is queued twice runs once
        threading.Thread(target=copy_context().run, args=(_serve, jobs), name=name, daemon=True).start()
        at_end(self, partial(jobs.put, None))


_serving = threading.local()


def _serve(jobs: SimpleQueue[Job | None]) -> None:
    _serving.now = True
    while (job := jobs.get()) is not None:
        job.do()
        del job


class Loop:
    """A thread that calls `step`, with the device in use here, until it returns False or raises, or `stop` is called."""

    def __init__(self, step: Callable[[], bool]) -> None:
        self._step, self._ending, self._done = step, False, Done()
        self._error: BaseException | None = None
        self._threads: list[int] = []  # the identity of the thread, once it is started
        self._ended = False

    @property
    def alive(self) -> bool:
        return bool(self._threads) and not self._ended

    def start(self) -> None:
        _loops[self] = None
        repeat_here = partial(copy_context().run, self._repeat)
        self._threads.extend(
            map(_thread.start_new_thread, (repeat_here,), ((),))
        )  # one C call: no signal handler runs between the start and the note of it

    def _repeat(self) -> None:
        try:
            while not self._ending and self._step():
                pass
        except BaseException as failed:  # noqa: BLE001 - raised again by `join`
            self._error = failed
        self._ended = True
        self._done.tell()

    def stop(self) -> None:
        """Let no further step begin."""
        self._ending = True

    def join(self, seconds: float = -1) -> bool:
        """Wait for the end and raise its error, once. False, without waiting, in a thread that the loop waits for."""
        if threading.get_ident() in self._threads or getattr(_serving, "now", False):
            return False
        if self._threads:
            self._done.wait(seconds)
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True


_loops: WeakKeys[Loop, None] = WeakKeys()


@atexit.register
def _end() -> None:
    """Stop all loops at exit: a thread inside a driver must not outlive the interpreter."""
    for loop in list(_loops):
        loop.stop()
    for loop in list(_loops):
        if loop.alive:
            loop._done.wait(LAST_WAIT)


in_forked_child(_loops.clear)  # threads stay with the parent
