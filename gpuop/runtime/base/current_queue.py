"""The current queue of a device, for each thread and each asyncio task."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TypeVar

from gpuop.runtime.base.backend import Backend

Key = tuple[str, str]  # name and priority
Queue = TypeVar("Queue", bound=Backend)

chosen: ContextVar[Key | None] = ContextVar("queue of gpuop", default=None)


def in_use(device: Backend) -> Backend:
    """Return the current queue of a device; the main queue if none was chosen."""
    key = chosen.get()
    return device.main if key is None else queue_of(device, key)


def clone_queue(queue: Queue) -> Queue:
    """Return an object that becomes another queue of the device. (`copy.copy` would return the same one, as pickling does.)"""
    other: Queue = object.__new__(type(queue))
    vars(other).update(vars(queue))
    return other


def queue_of(device: Backend, key: Key) -> Backend:
    """Return a queue of a device; it is created on first use."""
    main = device.main
    queue = main.queues.get(key)
    if queue is None:
        new = main.another(key[1])
        new.queue_name = key[0]
        queue = main.queues.setdefault(key, new)  # another thread may have been first
        if main.alone is None:
            main.alone = main.record()  # from now on values have marks of their own
    return queue
