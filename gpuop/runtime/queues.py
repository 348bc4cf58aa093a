"""`gp.queue`: the queue for enqueued work, and the events that it waits for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager

from gpuop.base.errors import SemanticError, described
from gpuop.base.reentrant import context
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.base.current_queue import chosen
from gpuop.runtime.devices import current
from gpuop.runtime.events import Event

PRIORITIES = ("high", "normal", "low")


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
    return _inside(name, priority, events)


@context
def _inside(name: str, priority: str, events: list[Event]) -> Iterator[Backend]:
    token = chosen.set((name, priority))
    try:
        backend = current()
        for event in events:
            event.before(backend)
        yield backend
    finally:
        chosen.reset(token)
