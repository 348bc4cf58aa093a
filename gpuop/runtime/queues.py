"""`gp.queue`: the queue for enqueued work; and events, work in a queue that threads, asyncio tasks and other queues wait for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import AbstractContextManager, suppress
from itertools import count
from typing import Any
from weakref import ref

from gpuop.base.errors import GpuopError, NearNames, SemanticError, StaysHere, described
from gpuop.base.finalizers import WeakKeys
from gpuop.base.misspelt import hinted
from gpuop.base.reentrant import context
from gpuop.base.system import in_forked_child
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.base.current_queue import chosen
from gpuop.runtime.devices import current

PRIORITIES = ("high", "normal", "low")
_numbers = count()


class Event(StaysHere, NearNames):
    """Work that a device was given. `await event` gives its result too, in asyncio, while other tasks run.

    Dropping an event cancels nothing.

    Args:
        queue: the queue of the work.
        began, ended: marks before and after the work.
        results: returns the result, once the work is done.
    """

    stays = "an Event is a mark in the queue of a device of this process; send what `event.result()` gives"

    def __init__(self, queue: Backend, began: Any, ended: Any, results: Callable[[], Any]) -> None:
        self._queue, self._began, self._ended, self._results = queue, began, ended, results
        self._result: tuple[Any] | None = None
        self._number = next(_numbers)
        _waiter_of(queue).add(self)

    def __repr__(self) -> str:
        return f"<Event on {self._queue.name}>"

    @property
    def done(self) -> bool:
        """Return whether the device is done with it; does not wait."""
        return self._queue.reached(self._ended)

    def wait(self) -> None:
        """Wait until it is done.

        Raises:
            DeviceError: the device failed at it.
        """
        self._queue.wait(self._ended)

    @property
    def seconds(self) -> float:
        """Return the device's seconds from the start of this work to its end, by its own clock; waits."""
        self.wait()
        return self._queue.between(self._began, self._ended)

    def result(self) -> Any:
        """Return the result; waits.

        Returns:
            Of `submit`, the arrays that `.numpy()` gives: one for one field, else a tuple; of `fetch`, the array that was filled.
            The same whenever it is asked for.

        Raises:
            DeviceError: the device failed at it.
        """
        self.wait()
        if self._result is None:
            self._result = (self._results(),)
        return self._result[0]

    def before(self, queue: Backend) -> None:
        """Make later work in a queue wait for this: on the device, if it is the same device."""
        if queue.main is self._queue.main:
            queue.follow(self._ended)
        else:
            self.wait()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._arrived().__await__()

    async def _arrived(self) -> Any:
        import asyncio

        if not self.done:
            loop = asyncio.get_running_loop()
            arrival = loop.create_future()

            def arrive() -> None:
                if not arrival.done():  # it is done if the task was cancelled
                    arrival.set_result(None)

            def tell() -> None:
                with suppress(RuntimeError):  # the loop is closed: no task waits any more
                    loop.call_soon_threadsafe(arrive)

            _waiter_of(self._queue).ask(self, tell)
            await arrival
        return await asyncio.to_thread(self.result)  # the result may be a large copy


class _Waiter:
    """Notifies those who wait for events of a queue, from a thread that lives while there are any.

    The thread takes the queue's events in their order, which is the order of their ends. Callbacks of a driver would run
    in its own threads, which then wait for the interpreter lock, and the device with them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: deque[tuple[int, ref[Event]]] = deque()
        self._callbacks: dict[int, list[Callable[[], None]]] = {}  # by event number
        self._thread: threading.Thread | None = None

    def add(self, event: Event) -> None:
        """Note an event when it is enqueued."""
        with self._lock:
            while self._thread is None and self._events and ((first := self._events[0][1]()) is None or first.done):
                self._events.popleft()
            self._events.append((event._number, ref(event)))

    def ask(self, event: Event, tell: Callable[[], None]) -> None:
        """Call `tell` once an event is done."""
        with self._lock:
            if not event.done:
                self._callbacks.setdefault(event._number, []).append(tell)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._serve, name="gpuop waits for a queue")
                    self._thread.start()  # no daemon: it must not be in a driver after the interpreter has ended
                return
        tell()

    def _serve(self) -> None:
        while True:
            with self._lock:
                if not self._callbacks:
                    self._thread = None
                    return
                number, event = self._events[0][0], self._events[0][1]()
            if event is not None:
                with suppress(GpuopError):  # the result of the event raises it
                    event.wait()
                del event
            with self._lock:
                self._events.popleft()
                callbacks = self._callbacks.pop(number, [])
            for tell in callbacks:
                tell()


_waiters: WeakKeys[Backend, _Waiter] = WeakKeys()


def _waiter_of(queue: Backend) -> _Waiter:
    return _waiters.get(queue) or _waiters.setdefault(queue, _Waiter())


in_forked_child(_waiters.clear)  # threads stay with the parent


@hinted
def queue(
    name: str, *, priority: str = "normal", after: Event | Collection[Event] = ()
) -> AbstractContextManager[Backend]:
    """Give what is evaluated inside a `with` to another queue of the device, beside its main one, in this thread or task.

        with gp.queue("io", priority="low", after=[done]):
            saved = result.fetch(out=array)

    What one queue has computed is there for all: who uses it waits for it, on the device, and memory is used again when all
    are done. A graph stays in the queue in which it first ran. Devices choose themselves what they run at once.

    Args:
        name: of the queue, which lives as long as the process; the same name and priority are the same queue.
        priority: "high", "normal" or "low", a hint: CUDA knows "high" and "normal", OpenCL all three where the driver has
            `cl_khr_priority_hints`.
        after: an Event, or several, that the queue waits for.

    Returns:
        A context manager, which gives the queue as a Backend; its `synchronize()` waits for that queue.

    Raises:
        SemanticError: no name, another priority, or what is no Event in `after`.
        DeviceError: no device works.
    """
    if not name or type(name) is not str:
        raise SemanticError(f'a queue has a name, as in `gp.queue("io")`, not {described(name)}')
    if priority not in PRIORITIES:
        raise SemanticError(f'the priority of a queue is "high", "normal" or "low", not {priority!r}')
    events: list[Event] = []
    for event in after if isinstance(after, (list, tuple, set, frozenset)) else (after,):
        if not isinstance(event, Event):
            raise SemanticError(f"`after=` takes Events, which `gp.submit` and `fetch` give, not {described(event)}")
        events.append(event)
    return _queue(name, priority, events)


@context
def _queue(name: str, priority: str, events: list[Event]) -> Iterator[Backend]:
    token = chosen.set((name, priority))
    try:
        backend = current()
        for event in events:
            event.before(backend)
        yield backend
    finally:
        chosen.reset(token)
