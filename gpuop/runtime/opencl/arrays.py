"""Host memory of NumPy arrays as buffers, and buffers of CPU devices as arrays: they are mapped, without copies."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from gpuop.base.system import LARGE_PAGES, ask_for_large_pages
from gpuop.runtime.base.backend import Array, Memory
from gpuop.runtime.base.host_arrays import array_in

BYTE = np.dtype(np.uint8)


def new_buffer(cl: Any, context: Any, size: int, device: str) -> Any:
    """Allocate a buffer."""
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, size)
    if device == "cpu" and size >= LEAST:
        in_large_pages(cl, context, buffer)
    return buffer


def reach(array: Array) -> int:
    """Return the bytes from an array's first element to its last, if no stride is negative."""
    return int(sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))) + array.itemsize


def memory_of(array: Array) -> Any:
    """Return the memory of an array as bytes: pyopencl takes no other array with gaps or without write access."""
    return (ctypes.c_char * reach(array)).from_address(array.ctypes.data)


def bring(cl: Any, queue: Any, buffer: Any) -> None:
    """Write a wrapped buffer back to its array: OpenCL guarantees the host nothing before a map."""
    if isinstance(buffer, cl.Buffer):
        whole = 0, (buffer.size,), BYTE
        mapped, _ = cl.enqueue_map_buffer(queue, buffer, cl.map_flags.READ, *whole, is_blocking=True)
        mapped.base.release(queue)


@contextmanager
def mapped_arrays(cl: Any, queue: Any, inputs: Sequence[Memory], outputs: Sequence[Memory]) -> Iterator[list[Array]]:
    """Give arrays of fields when the enqueued work is done; later work waits for the end of the `with`."""
    flags, mapped = cl.map_flags.READ | cl.map_flags.WRITE, dict[int, Any]()

    def memory(kind: Any, buffer: Any) -> Array:
        if not kind.nbytes:
            return np.empty(0, np.uint8)
        if not isinstance(buffer, cl.Buffer):  # host memory, which needs no map
            queue.finish()
            return np.frombuffer(buffer.mem, np.uint8, kind.nbytes)
        if id(buffer) not in mapped:
            mapped[id(buffer)] = cl.enqueue_map_buffer(
                queue, buffer, flags, 0, (kind.nbytes,), np.uint8, is_blocking=True
            )[0]
        array: Array = mapped[id(buffer)]
        return array

    try:
        read = [array_in(kind, memory(kind, buffer), False) for kind, buffer in inputs]
        yield read + [array_in(kind, memory(kind, buffer), True) for kind, buffer in outputs]
    finally:
        for each in mapped.values():
            each.base.release(queue)


LEAST = 1 << 22  # bytes; NumPy asks for arrays from this size on too


def in_large_pages(cl: Any, context: Any, buffer: Any) -> None:
    """Ask for large pages in the memory of a new buffer, which was not accessed yet."""
    if LARGE_PAGES is None:
        return
    queue, unread = _idle(cl, context), cl.map_flags.WRITE_INVALIDATE_REGION
    mapped, _ = cl.enqueue_map_buffer(queue, buffer, unread, 0, (buffer.size,), np.dtype(np.uint8), is_blocking=True)
    ask_for_large_pages(mapped.ctypes.data, buffer.size)
    mapped.base.release(queue).wait()


@lru_cache(maxsize=4)
def _idle(cl: Any, context: Any) -> Any:
    """Return a queue without work."""
    return cl.CommandQueue(context)


PRIORITY = 0x1096  # CL_QUEUE_PRIORITY_KHR
PRIORITIES = {"high": 1, "normal": 2, "low": 4}


def new_queue(cl: Any, context: Any, device: Any, priority: str) -> Any:
    """Return a pyopencl queue, with a priority if the driver has priorities."""
    timed = cl.command_queue_properties.PROFILING_ENABLE
    if "cl_khr_priority_hints" not in device.extensions:
        return cl.CommandQueue(context, properties=timed)
    properties = [cl.queue_properties.PROPERTIES, timed, PRIORITY, PRIORITIES[priority]]
    return cl.CommandQueue(context, properties=properties)


class OwnersByMark:
    """Host memory that queues of a device use until marks are reached.

    Args:
        reached: returns whether a mark is reached.
    """

    def __init__(self, reached: Callable[[Any], bool]) -> None:
        self.reached = reached
        self.owners: dict[Any, Any] = {}  # by mark

    def add(self, mark: Any, owner: Any) -> None:
        self.owners[mark] = owner
        self.let_go()

    def let_go(self) -> None:
        """Release the memory of reached marks, in whichever order the queues reach them."""
        for mark in filter(self.reached, list(self.owners)):
            self.owners.pop(mark, None)
