"""Waiting for another thread, so that the exception of a signal's handler leaves nothing behind."""

from __future__ import annotations

import threading


class Done:
    """Whether something is done, which a thread says once.

    The lock of a `threading.Event` may stay taken for ever when a handler raises, and a `Thread.join` that is interrupted
    takes the thread for dead. A turn of `for` takes this lock, behind which no handler runs before it is given back.
    """

    def __init__(self) -> None:
        self._pending = threading.Lock()
        self._pending.acquire()
        self.tell = self._pending.release

    def wait(self, seconds: float = -1) -> bool:
        """Wait, for ever or that long; whether it is done."""
        done = False
        for done in map(self._pending.acquire, (True,), (seconds,)):  # noqa: B007
            break
        if done:
            self._pending.release()
        return done
