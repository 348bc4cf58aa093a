"""Which queue of a device is in use: a matter of each thread, and of each task of asyncio."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TypeVar

from gpuop.runtime.base.backend import Backend

Key = tuple[str, str]  # name and priority
Queue = TypeVar("Queue", bound=Backend)

chosen: ContextVar[Key | None] = ContextVar("queue of gpuop", default=None)


def in_use(device: Backend) -> Backend:
    """The queue of a device that is in use; its main one, if none was chosen."""
    key = chosen.get()
    return device.main if key is None else queue_of(device, key)


def twin(queue: Queue) -> Queue:
    """What is to be another queue of the device. (`copy.copy` would give the same one, which pickling names.)"""
    other: Queue = object.__new__(type(queue))
    vars(other).update(vars(queue))
    return other


def queue_of(device: Backend, key: Key) -> Backend:
    """A queue of a device, made when it is first asked for."""
    main = device.main
    found = main.queues.get(key)
    if found is None:
        made = main.another(key[1])
        made.queue_name = key[0]
        found = main.queues.setdefault(key, made)  # another thread may have been first
        if main.alone is None:
            main.alone = main.record()  # now that values have marks of their own
    return found
