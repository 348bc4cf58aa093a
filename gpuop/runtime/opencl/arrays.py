"""Host memory of NumPy arrays as buffers, and buffers of CPU devices as arrays: they are mapped, without copies."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpuop.runtime.base.backend import Array, Memory
from gpuop.runtime.base.host_arrays import array_in
from gpuop.runtime.opencl.large_pages import in_large_pages

BYTE = np.dtype(np.uint8)


def new_buffer(cl: Any, context: Any, size: int, device: str) -> Any:
    """Allocate a buffer."""
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, size)
    if device == "cpu":
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
