"""Fields of a CUDA device as CuPy arrays, whose work goes to the gpuop stream."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gpuop.base.errors import DeviceError
from gpuop.ir.layout import planar, strides_of
from gpuop.ir.types import FieldType
from gpuop.runtime.base import dlpack
from gpuop.runtime.base.backend import Buffer, Memory
from gpuop.runtime.cuda.arrays import ExportedBuffer
from gpuop.runtime.cuda.memory import CudaMemory


@contextmanager
def cupy_arrays(memory: CudaMemory, fields: Sequence[Memory]) -> Iterator[list[Any]]:
    """Give CuPy arrays in the memory of fields; the current CuPy stream inside the `with` is the gpuop stream."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as missing:
        raise DeviceError(
            f"a DeviceOperator on {memory.name} works with CuPy's arrays, and there is no CuPy ({missing}): install cupy-cuda12x "
            "or that of your CUDA, or take gp.HostOperator, whose values go to the host and back"
        ) from None
    with memory.active(), cupy.cuda.Device(memory.ordinal), _stream(cupy, memory):
        yield [_array(cupy, memory, kind, buffer) for kind, buffer in fields]


def _stream(cupy: Any, memory: CudaMemory) -> Any:
    """Return the stream as a CuPy stream; CuPy 14 takes objects with the CUDA stream protocol, older ones the handle."""
    from_external = getattr(cupy.cuda.Stream, "from_external", None)
    if from_external is None:
        return cupy.cuda.ExternalStream(memory.handle, memory.ordinal)
    return from_external(_Stream(memory.handle))


@dataclass(frozen=True)
class _Stream:
    handle: int

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the protocol's version, and the handle."""
        return 0, self.handle


def _array(cupy: Any, memory: CudaMemory, kind: FieldType, buffer: Buffer) -> Any:
    shape, strides = tuple(kind.array_shape), strides_of(kind, planar(kind))
    stored = kind.storage.numpy  # bools are bytes
    buffer = ExportedBuffer(
        memory, dlpack.DLPackMemory(int(buffer), shape, strides, stored, (dlpack.CUDA, memory.ordinal), False, buffer)
    )
    return cupy.from_dlpack(buffer).view(kind.array_dtype)
