"""Arrays of CuPy, PyTorch and Numba on a CUDA device: their addresses, their streams, and new ones."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np

from gpuop.ir.bfloat16 import BFLOAT16, CODED
from gpuop.runtime.base.stream_arrays import StreamArrays
from gpuop.runtime.cuda.memory import CudaMemory

NOWHERE = 0, ()
PER_THREAD = 2  # the number of the default stream of a thread, which depends on the current context


class CudaStreamArrays(StreamArrays):
    """Arrays in the order of CUDA streams; the driver orders the legacy default stream and the only queue."""

    def __init__(self, memory: CudaMemory, ordinal: int) -> None:
        self.memory, self.ordinal = memory, ordinal

    def direct(self, stream: int) -> int | None:
        memory = self.memory
        if memory.let_go or memory.retired:
            memory.release_ended(stream)
        if stream > PER_THREAD:
            return stream if memory is memory.streams[0] else None  # another queue has a priority of its own
        return memory.handle if memory.ordered_by_driver(stream) else None

    def follow(self, stream: int) -> None:
        self.memory.follow(stream)

    def lead(self, stream: int) -> None:
        self.memory.lead(stream)


class CupyArrays(CudaStreamArrays):
    """Arrays of CuPy."""

    byte = np.dtype(np.uint8)

    def __init__(self, memory: CudaMemory, ordinal: int) -> None:
        super().__init__(memory, ordinal)
        cupy = sys.modules["cupy"]
        self.kind, self.device_in_use = cupy.ndarray, cupy.cuda.runtime.getDevice
        self.current_stream = cupy.cuda.get_current_stream

    def stream(self) -> int | None:
        return self.current_stream().ptr if self.device_in_use() == self.ordinal else None

    def place(self, array: Any) -> tuple[int, Any]:
        if type(array) is not self.kind or (data := array.data).device_id != self.ordinal:
            return NOWHERE
        return data.ptr, array.strides

    def dtype(self, dtype: np.dtype[Any]) -> Any:
        return None if dtype == CODED else dtype

    def empty(self, shape: tuple[int, ...], dtype: Any) -> tuple[Any, int]:
        array = self.kind(shape, dtype)
        return array, array.data.ptr


class TorchArrays(CudaStreamArrays):
    """Tensors of PyTorch."""

    def __init__(self, memory: CudaMemory, ordinal: int) -> None:
        super().__init__(memory, ordinal)
        self.torch = torch = sys.modules["torch"]
        self.kind, self.strided, self.device = torch.Tensor, torch.strided, torch.device("cuda", ordinal)
        self.byte, self.new, self.complex = torch.uint8, torch.empty, (torch.complex64, torch.complex128)
        current = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        if current is not None:
            self.stream = partial(current, ordinal)  # type: ignore[method-assign]  # one call of C

    def stream(self) -> int | None:
        return int(self.torch.cuda.current_stream(self.ordinal).cuda_stream)

    def place(self, array: Any) -> tuple[int, Any]:
        if (
            type(array) is not self.kind
            or array.requires_grad
            or array.layout is not self.strided
            or array.device != self.device
            or array.is_neg()
            or (array.dtype in self.complex and array.is_conj())
        ):
            return NOWHERE
        return array.data_ptr(), array.stride()

    def dtype(self, dtype: np.dtype[Any]) -> Any:
        return getattr(self.torch, BFLOAT16 if dtype == CODED else dtype.name, None)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> tuple[Any, int]:
        array = self.new(shape, dtype=dtype, device=self.device)
        return array, array.data_ptr()


class NumbaArrays(CudaStreamArrays):
    """Arrays of Numba that are in the order of its default stream; new ones lie on the device of its current context."""

    byte = np.dtype(np.uint8)

    def __init__(self, memory: CudaMemory, ordinal: int) -> None:
        super().__init__(memory, ordinal)
        cuda = sys.modules["numba.cuda"]
        self.kind, self.new = cuda.cudadrv.devicearray.DeviceNDArray, cuda.device_array
        self.default = PER_THREAD if sys.modules["numba"].config.CUDA_PER_THREAD_DEFAULT_STREAM else 0

    def stream(self) -> int | None:
        return self.default

    def place(self, array: Any) -> tuple[int, Any]:
        if type(array) is not self.kind or array.stream or not array.size:
            return NOWHERE
        memory = array.gpu_data
        return (
            (memory.device_ctypes_pointer.value, array.strides) if memory.context.device.id == self.ordinal else NOWHERE
        )

    def dtype(self, dtype: np.dtype[Any]) -> Any:
        return None if dtype == CODED else dtype

    def empty(self, shape: tuple[int, ...], dtype: Any) -> tuple[Any, int]:
        array = self.new(shape, dtype)
        return array, self.place(array)[0]


LIBRARIES: dict[str, type[CudaStreamArrays]] = {"cupy": CupyArrays, "torch": TorchArrays, "numba": NumbaArrays}
