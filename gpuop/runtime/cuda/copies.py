"""Copies of a CUDA stream: on the device, and to and from the host, asynchronous with page-locked memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuop.base.errors import DeviceError
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Array, Buffer, as_device_errors
from gpuop.runtime.base.compiled import CompilingBackend
from gpuop.runtime.base.copy_trace import between_marks
from gpuop.runtime.cuda.memory import CudaMemory
from gpuop.runtime.cuda.page_locked import lock_pages


class CudaCopies(CompilingBackend):
    """A device with copies in the order of its stream."""

    memory: CudaMemory

    @as_device_errors
    def write(self, buffer: Buffer, planes: Array) -> None:
        with between_marks("upload", self):
            self.memory.send(planes, buffer)

    def download(self, kind: FieldType, buffer: Buffer) -> Array:
        planes = np.empty((kind.planes, kind.field_shape.points), kind.storage.numpy)
        with between_marks("download", self):
            self._reported(lambda: self.memory.receive(buffer, planes))
        return planes

    @as_device_errors
    def copy(self, kind: FieldType, source: Buffer, target: Buffer) -> None:
        if kind.nbytes:
            with between_marks("copy", self, waits=False):
                self.memory.copy(source, target, kind.nbytes)

    def fetch(self, kind: FieldType, buffer: Buffer, array: Array) -> None:
        if kind.nbytes:
            with between_marks("download", self, waits=False):
                self._reported(lambda: self.memory.fetch(buffer, array))

    def bring(self, kind: FieldType, buffer: Buffer, array: Array) -> None:
        if kind.nbytes:
            with between_marks("upload", self, waits=False):
                self._reported(lambda: self.memory.bring(array, buffer))

    def host_memory(self, nbytes: int) -> Array:
        return self.memory.host_memory(max(nbytes, 1))[:nbytes]

    def locked(self, memory: Array) -> Array:
        return lock_pages(self.memory.cu, self.memory.active(), memory)

    def _reported(self, action: Callable[[], None]) -> None:
        """Raise errors of earlier kernels, which the driver reports at the next wait."""
        try:
            action()
        except DeviceError as failed:
            raise DeviceError(f"{self.name}: {failed}; CUDA is lost to this process, start another one") from None
