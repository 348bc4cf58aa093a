"""Work behind the calls of a process: jobs in one thread, whose work nobody waits for, the end of the process neither.

Python's lock knows no priorities: a thread that wants it waits for a switch interval, which is as long as a hundred calls of a
pipeline. So the interval is short while a job computes, and nothing but young garbage is collected. Beside a caller that never
rests a job would get little; so calls that count on it give it a turn each. Drivers compile without the lock, at low priority.
"""

from __future__ import annotations

import atexit
import gc
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from queue import Queue
from typing import TypeVar

from gpuop.base.system import in_forked_child, lower_priority
from gpuop.runtime.base.interruptible import Done, call_interruptibly

T = TypeVar("T")
SWITCH = 5e-5  # seconds that a thread waits for the interpreter, at most, while a job computes
TURN = 2e-3  # seconds that a call waits, at most
NEVER = (1 << 31) - 1  # collections between full ones, which take a tenth of a second and hold the lock

_jobs: Queue[Callable[[], None]] = Queue()
_starting = threading.Lock()
_worker: threading.Thread | None = None
_computing: Done | None = None  # while a job wants the interpreter: the end of that
_usual = sys.getswitchinterval(), gc.get_threshold()  # of the process, before a job computes
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


def give_turn() -> None:
    """Leave the interpreter to a job that computes, for a short time; nothing while there is none, or a driver compiles."""
    computing = _computing
    if computing is not None:
        computing.wait(TURN)


def in_driver(action: Callable[[], T]) -> T:
    """Run an action that takes long and leaves the interpreter to others; that of a job runs at low priority."""
    if threading.current_thread() is not _worker:
        return action()
    _end_computing()
    context = copy_context()
    try:
        return call_interruptibly(object(), lambda: context.run(_at_low_priority, action))
    finally:
        _begin_computing()


def _at_low_priority(action: Callable[[], T]) -> T:
    lower_priority()
    return action()


def _work() -> None:
    while True:
        job = _jobs.get()
        if not _ended:
            _begin_computing()
            job()
            _end_computing()
        del job  # the next one may be long in coming, and this one has arrays
        _jobs.task_done()


def _begin_computing() -> None:
    global _computing, _usual
    _usual = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH)
    gc.set_threshold(*_usual[1][:2], NEVER)
    _computing = Done()


def _end_computing() -> None:
    global _computing
    assert _computing is not None
    _restore()
    _computing.tell()
    _computing = None


def _restore() -> None:
    """Set the process as it was, but for what somebody else has set meanwhile."""
    interval, threshold = _usual
    if abs(sys.getswitchinterval() - SWITCH) < SWITCH / 10:
        sys.setswitchinterval(interval)
    if gc.get_threshold()[2] == NEVER:
        gc.set_threshold(*threshold)


def _end() -> None:
    global _ended
    _ended = True


def _in_child() -> None:
    """The thread stays with the parent, and its jobs."""
    global _worker, _jobs, _computing
    if _computing is not None:
        _restore()
    _worker, _jobs, _computing = None, Queue(), None
    _starting._at_fork_reinit()  # type: ignore[attr-defined]


atexit.register(_end)
in_forked_child(_in_child)
