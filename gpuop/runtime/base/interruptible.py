"""Interruptible driver calls: slow calls run in threads of their own, so that signals are handled while one waits for an event."""

from __future__ import annotations

import atexit
import ctypes
import gc
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from gpuop.base.system import exit_before_libraries, in_forked_child
from gpuop.runtime.base.trace import note_compiling

T = TypeVar("T")
PATIENCE = 5.0  # seconds until a message says that it takes long


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


class _Call:
    """A call in a thread of its own, with its result or its exception once it is done."""

    def __init__(self, key: Hashable, action: Callable[[], Any], device: str, kernel: str, doing: str) -> None:
        self.key, self.action, self.device, self.kernel, self.doing = key, action, device, kernel, doing
        self.done = Done()
        self.result: Any = None
        self.error: BaseException | None = None
        self.quiet = not kernel
        threading.Thread(target=self.run, name="gpuop calls a driver", daemon=True).start()

    def run(self) -> None:
        try:
            self.result = self.action()
        except BaseException as failed:  # noqa: BLE001 - who waits raises it
            self.error = failed
        with _starting:
            _running.pop(self.key, None)
        self.done.tell()

    def tell(self) -> None:
        """Print a line, once, that the call takes long, with the device's other unfinished kernels: drivers compile one by one."""
        if not self.quiet:
            self.quiet = True
            before = [
                c.kernel for c in list(_running.values()) if c.device == self.device and c.kernel and c is not self
            ]
            note_compiling(self.device, f"{self.doing} the kernel `{self.kernel}`", PATIENCE, before)


_running: dict[Hashable, _Call] = {}
_starting = threading.Lock()
_abandoned = False  # whether a parent process loaded the drivers


def call_interruptibly(
    key: Hashable, action: Callable[[], T], device: str = "", kernel: str = "", doing: str = "compiling"
) -> T:
    """Run a call and return its result or raise its exception. A signal handler that raises ends the wait at once.

    The call itself goes on: another caller with the same `key` waits for that one.

    Args:
        device, kernel, doing: words of the message after PATIENCE seconds; without a kernel there is none.
    """
    with _starting:
        call = _running.get(key)
        if call is None:
            call = _running[key] = _Call(key, action, device, kernel, doing)
    if not call.done.wait(PATIENCE):
        call.tell()
        call.done.wait()
    if call.error is not None:
        raise call.error
    return cast(T, call.result)


def abandon() -> None:
    """Prepare a forked process to call no driver that the parent loaded, not even to release memory."""
    global _abandoned
    _abandoned = True
    ours = [thing for thing in gc.get_objects() if str(type(thing).__module__).split(".")[0] in ("gpuop", "pyopencl")]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(ours))


def _leave() -> None:
    """Leave drivers alone at exit while they are still at work: an unload would crash or hang.

    No object is released, and exit handlers of libraries do not run; Python's exit is as usual.
    """
    if _running or _abandoned:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(gc.get_objects()))
        exit_before_libraries()


atexit.register(_leave)
in_forked_child(_running.clear)  # threads stay with the parent
