"""Work behind the calls of a process: one thread of low priority, whose work nobody waits for, the end of the process neither.

Python's lock knows no priorities: a thread that wants it waits for a switch interval, which is as long as a hundred calls of a
pipeline. So this thread releases it often, between its own calls of functions.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable
from queue import Queue
from typing import Any

from gpuop.base.system import in_forked_child, lower_priority

EVENTS, PAUSE = 500, 5e-5  # calls and returns between pauses, some 200 µs; seconds

_jobs: Queue[Callable[[], None]] = Queue()
_starting = threading.Lock()
_worker: threading.Thread | None = None
_ended = False  # whether the process ends


def later(job: Callable[[], None]) -> None:
    """Have a job done by the thread, which begins with the first one. A job raises nothing."""
    global _worker
    _jobs.put(job)
    with _starting:
        if _worker is None:
            _worker = threading.Thread(target=_work, name="gpuop compiles for sizes", daemon=True)
            _worker.start()


def settle() -> None:
    """Wait until all jobs are done."""
    _jobs.join()


class _Pauses:
    """Pauses between events of a thread's profile."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        self.count += 1
        if self.count >= EVENTS:
            self.count = 0
            time.sleep(PAUSE)


def _work() -> None:
    lower_priority()
    sys.setprofile(_Pauses())
    while True:
        job = _jobs.get()
        if not _ended:
            job()
        del job  # the next one may be long in coming, and this one has arrays
        _jobs.task_done()


def _end() -> None:
    global _ended
    _ended = True


def _in_child() -> None:
    """The thread stays with the parent, and its jobs."""
    global _worker, _jobs
    _worker, _jobs = None, Queue()
    _starting._at_fork_reinit()  # type: ignore[attr-defined]


atexit.register(_end)
in_forked_child(_in_child)
