"""Arrays of CuPy and PyTorch on a CUDA device: their addresses, their streams, and new ones."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gpuop.runtime.base.stream_arrays import StreamArrays
from gpuop.runtime.cuda.memory import LEGACY, CudaMemory

NOWHERE = 0, ()


class CudaStreamArrays(StreamArrays):
    """Arrays in the order of CUDA streams; the driver orders the legacy default stream and the only queue."""

    def __init__(self, memory: CudaMemory, ordinal: int) -> None:
        self.memory, self.ordinal = memory, ordinal

    def follow(self, stream: int) -> None:
        self.memory.release_ended(stream)
        if stream not in LEGACY or len(self.memory.streams) > 1:
            self.memory.follow(stream)

    def lead(self, stream: int) -> None:
        if stream not in LEGACY or len(self.memory.streams) > 1:
            self.memory.lead(stream)


class CupyArrays(CudaStreamArrays):
    """Arrays of CuPy."""

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
        return dtype

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.kind(shape, dtype)


class TorchArrays(CudaStreamArrays):
    """Tensors of PyTorch."""

    def __init__(self, memory: CudaMemory, ordinal: int) -> None:
        super().__init__(memory, ordinal)
        self.torch = torch = sys.modules["torch"]
        self.kind, self.strided, self.device = torch.Tensor, torch.strided, torch.device("cuda", ordinal)
        self.stream_of = getattr(torch._C, "_cuda_getCurrentRawStream", None) or self._stream_of

    def _stream_of(self, ordinal: int) -> int:
        return int(self.torch.cuda.current_stream(ordinal).cuda_stream)

    def stream(self) -> int | None:
        return self.stream_of(self.ordinal)

    def place(self, array: Any) -> tuple[int, Any]:
        if (
            type(array) is not self.kind
            or array.requires_grad
            or array.layout is not self.strided
            or array.get_device() != self.ordinal
            or array.is_conj()
            or array.is_neg()
        ):
            return NOWHERE
        return array.data_ptr(), array.stride()

    def dtype(self, dtype: np.dtype[Any]) -> Any:
        return getattr(self.torch, dtype.name, None)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.torch.empty(shape, dtype=dtype, device=self.device)


LIBRARIES: dict[str, type[CudaStreamArrays]] = {"cupy": CupyArrays, "torch": TorchArrays}
