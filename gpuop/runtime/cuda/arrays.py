"""Arrays of CuPy, PyTorch, JAX, Numba and others on a CUDA device: imported and exported, ordered with their streams."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpuop.base.errors import DeviceError
from gpuop.base.records import dataclass
from gpuop.ir.layout import planar, row_major, strides_of
from gpuop.ir.types import FieldType
from gpuop.runtime.base import dlpack
from gpuop.runtime.base.backend import Buffer, Memory
from gpuop.runtime.cuda.memory import LEGACY, CudaMemory

MANAGED = 13  # DLDeviceType of memory that host and device share


class ImportedArray:
    """Imported memory of another library's array. It is returned when the enqueued work has used it."""

    __slots__ = ("__weakref__", "address", "array")

    def __init__(self, memory: CudaMemory, array: dlpack.DLPackMemory) -> None:
        self.array, self.address = array, array.address
        memory.retire_after(self, array.owner)

    def __int__(self) -> int:
        return self.address


def borrow(memory: CudaMemory, ordinal: int, array: Any) -> ImportedArray:
    """Import an array that has `__dlpack__` or `__cuda_array_interface__`; later work waits for its stream.

    Raises:
        DeviceError: it is on another device, or fields have no such type.
    """
    if hasattr(array, "__dlpack__"):
        if type(array).__module__ == "cupy" and array.device.id == ordinal:
            facts = array.__cuda_array_interface__
            if "stream" in facts:  # DLPack would ask the driver for the device, and create an event
                return ImportedArray(memory, _by_interface(memory, ordinal, array, facts))
        kind, number = map(int, array.__dlpack_device__())
        if kind not in (dlpack.CUDA, MANAGED) or number != ordinal:
            raise DeviceError(f"this array is not on {memory.name}: its DLPack device is {(kind, number)}")
        try:
            return ImportedArray(memory, dlpack.take(array.__dlpack__(stream=memory.handle)))
        except (BufferError, RuntimeError) as refused:
            raise DeviceError(f"its library does not export the memory of this array: {refused}") from None
    return ImportedArray(memory, _by_interface(memory, ordinal, array, array.__cuda_array_interface__))


def _by_interface(memory: CudaMemory, ordinal: int, array: Any, facts: Mapping[str, Any]) -> dlpack.DLPackMemory:
    dtype, shape = np.dtype(facts["typestr"]), tuple(facts["shape"])
    if facts.get("mask") is not None:
        raise DeviceError("an array with a mask has no counterpart among fields")
    if facts.get("stream"):
        memory.follow(facts["stream"])
    strides = facts.get("strides")
    steps = tuple(n // dtype.itemsize for n in strides) if strides else row_major(shape)
    address, read_only = facts["data"]
    return dlpack.DLPackMemory(address or 0, shape, steps, dtype, (dlpack.CUDA, ordinal), read_only, array)


class ExportedBuffer:
    """A buffer for other libraries: `__dlpack__` and `__cuda_array_interface__`."""

    def __init__(self, memory: CudaMemory, array: dlpack.DLPackMemory) -> None:
        self.memory, self.array = memory, array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.device

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        """Return a capsule; later work in the consumer's stream waits for the values."""
        consumer = LEGACY[1] if stream is None else int(stream)
        if consumer != -1:
            self.memory.lead(consumer)

        def done() -> None:
            """Let later work, which may reuse the memory, wait for the consumer's stream."""
            try:
                self.memory.follow(max(consumer, LEGACY[1]))
            except DeviceError:  # the stream is gone, and its work with it
                self.memory.synchronize()

        return dlpack.give(self.array, done)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        a = self.array
        return {
            "version": 3, "shape": a.shape, "typestr": a.dtype.str, "data": (a.address, False),
            "strides": tuple(n * a.dtype.itemsize for n in a.strides), "stream": self.memory.handle,
        }  # fmt: skip


@contextmanager
def cupy_arrays(memory: CudaMemory, fields: Sequence[Memory]) -> Iterator[list[Any]]:
    """Give CuPy arrays in the memory of fields; the current CuPy stream inside the `with` is the gpuop stream."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as missing:
        raise DeviceError(
            f"a DeviceOperator on {memory.name} works with CuPy arrays, and CuPy is not installed ({missing}): install "
            "cupy-cuda12x or the package for your CUDA, or take gp.HostOperator, whose values go to the host and back"
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
    stored = kind.memory_dtype  # bools are bytes
    buffer = ExportedBuffer(
        memory, dlpack.DLPackMemory(int(buffer), shape, strides, stored, (dlpack.CUDA, memory.ordinal), False, buffer)
    )
    return cupy.from_dlpack(buffer).view(kind.array_dtype)
