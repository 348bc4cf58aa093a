"""Memory that XLA has for a call of a function, in the stream that the call is part of."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpuop.ir.types import FieldType
from gpuop.runtime.cuda.stream_arrays import NOWHERE, CudaStreamArrays

_calls = threading.local()  # the stream of the call that a thread is in


@contextmanager
def in_stream(stream: int) -> Iterator[None]:
    """Let calls of pipelines with arrays of XLA run in a stream."""
    before, _calls.stream = getattr(_calls, "stream", None), stream
    try:
        yield
    finally:
        _calls.stream = before


class XlaArray:
    """A contiguous array of XLA, which is there until the work of its stream so far is done.

    Args:
        buffer: what XLA calls a function with.
        stream: of the call.
    """

    __slots__ = ("address", "dtype", "shape", "stream")

    def __init__(self, buffer: Any, stream: int) -> None:
        self.address: int = buffer.__cuda_array_interface__["data"][0]
        self.shape, self.dtype, self.stream = tuple(buffer.shape), np.dtype(buffer.dtype), stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        facts = {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "strides": None}
        return facts | {"version": 3, "stream": self.stream or 1}

    def written(self, lent: Any) -> XlaArray:
        """The array, whose values were written to the memory that is lent; its stream waits for them."""
        lent.__dlpack__(stream=self.stream or 1)
        return self


class XlaArrays(CudaStreamArrays):
    """Arrays of XLA. It has none for intermediate values, whose memory is gpuop's, in the order of the queue."""

    byte = np.dtype(np.uint8)
    has_memory = False

    def stream(self) -> int | None:
        return getattr(_calls, "stream", None)

    def place(self, array: Any) -> tuple[int, Any]:
        return (array.address, ()) if type(array) is XlaArray else NOWHERE

    def dtype(self, dtype: np.dtype[Any]) -> Any:
        return None

    def empty(self, shape: tuple[int, ...], dtype: Any) -> tuple[Any, int]:
        block = self.memory.allocate(FieldType(shape, (), "uint8"))
        return block, int(block)
