"""Work behind the calls of a process: jobs in one thread, whose work nobody waits for, the end of the process neither.

Python's lock knows no priorities: a thread that wants it waits for a switch interval, which is as long as a hundred calls of a
pipeline. So the interval is short while a job computes, and nothing but young garbage is collected. Beside a caller that never
rests a job would get little; so calls that wait for its result give it a turn each. Drivers compile without the lock, at low
priority. Many jobs, as of a folder of images, take half of the time, and their calls wait for none but their own.
"""

from __future__ import annotations

import atexit
import gc
import sys
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from queue import LifoQueue
from typing import TypeVar

from gpuop.base.system import in_forked_child, lower_priority
from gpuop.runtime.base.interruptible import Done, call_interruptibly

T = TypeVar("T")
SWITCH = 5e-5  # seconds that a thread waits for the interpreter, at most, while a job computes
TURN = 2e-3  # seconds that a call waits, at most
NEVER = (1 << 31) - 1  # collections between full ones, which take a tenth of a second and hold the lock


class BackgroundJob:
    """An action that is done behind the calls. It raises nothing.

    Attributes:
        computing: while it wants the interpreter: the end of that.
    """

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action
        self.computing: Done | None = None

    def run(self) -> None:
        action, self.action = self.action, None  # which has arrays
        assert action is not None
        self.begin()
        action()
        self.end()

    def begin(self) -> None:
        global _usual
        _usual = sys.getswitchinterval(), gc.get_threshold()
        sys.setswitchinterval(SWITCH)
        gc.set_threshold(*_usual[1][:2], NEVER)
        self.computing = Done()

    def end(self) -> None:
        assert self.computing is not None
        _restore()
        self.computing.tell()
        self.computing = None

    def give_turn(self) -> None:
        """Leave the interpreter to it for a short time; nothing while it waits for others, or for a driver."""
        computing = self.computing
        if computing is not None:
            computing.wait(TURN)


_jobs: LifoQueue[BackgroundJob] = LifoQueue()  # the last one is the most likely to be waited for
_starting = threading.Lock()
_worker: threading.Thread | None = None
_running: BackgroundJob | None = None
_usual = sys.getswitchinterval(), gc.get_threshold()  # of the process, before a job computes
_ended = False  # whether the process ends


def later(action: Callable[[], None]) -> BackgroundJob:
    """Have an action done by the thread, which begins with the first one."""
    global _worker
    job = BackgroundJob(action)
    _jobs.put(job)
    with _starting:
        if _worker is None:
            _worker = threading.Thread(target=_work, name="gpuop compiles for sizes", daemon=True)
            _worker.start()
    return job


def settle() -> None:
    """Wait until all jobs are done."""
    _jobs.join()


def is_job() -> bool:
    """Return whether this thread does a job."""
    return threading.current_thread() is _worker


def in_driver(action: Callable[[], T]) -> T:
    """Run an action that takes long and leaves the interpreter to others; that of a job runs at low priority."""
    job = _running
    if job is None or not is_job():
        return action()
    job.end()
    context = copy_context()
    try:
        return call_interruptibly(object(), lambda: context.run(_at_low_priority, action))
    finally:
        job.begin()


def _at_low_priority(action: Callable[[], T]) -> T:
    lower_priority()
    return action()


def _work() -> None:
    global _running
    while True:
        job = _running = _jobs.get()
        began = time.thread_time()
        if not _ended:
            job.run()
        _running = None
        del job
        _jobs.task_done()
        time.sleep(time.thread_time() - began)  # many jobs take half of the time of others


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
    global _worker, _jobs, _running
    if _running is not None and _running.computing is not None:
        _restore()
    _worker, _jobs, _running = None, LifoQueue(), None
    _starting._at_fork_reinit()  # type: ignore[attr-defined]


atexit.register(_end)
in_forked_child(_in_child)
