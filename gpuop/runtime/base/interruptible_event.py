"""An event to wait for, which a signal handler that raises leaves intact."""

from __future__ import annotations

import threading


class Done:
    """A one-time event that one thread sets.

    The lock of a `threading.Event` may stay locked for ever when a handler raises, and an interrupted `Thread.join` takes
    the thread for dead. One iteration of `for` acquires this lock: no handler runs until the body releases it.
    """

    def __init__(self) -> None:
        self._pending = threading.Lock()
        self._pending.acquire()
        self.tell = self._pending.release

    def wait(self, seconds: float = -1) -> bool:
        """Wait, for ever or for some seconds; return whether the event is set."""
        done = False
        for done in map(self._pending.acquire, (True,), (seconds,)):  # noqa: B007
            break
        if done:
            self._pending.release()
        return done
