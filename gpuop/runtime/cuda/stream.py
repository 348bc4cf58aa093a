"""CUDA streams and events through the driver API: PyCUDA streams have no priorities."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

from gpuop.runtime.cuda.driver import Active, alone, returned, unasked

UNTIMED, BLOCKING = 2, 0  # CU_EVENT_DISABLE_TIMING; CU_STREAM_DEFAULT: it and the legacy default stream take turns
NOT_READY = 600  # CUDA_ERROR_NOT_READY


class StreamCalls:
    """Driver functions, each one C call that releases the interpreter lock; DeviceError if one fails."""

    def __init__(self) -> None:
        handle, address, size = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t
        self.to_device = alone("cuMemcpyHtoDAsync_v2", address, handle, size, handle)
        self.to_host = alone("cuMemcpyDtoHAsync_v2", handle, address, size, handle)
        self.on_device = alone("cuMemcpyDtoDAsync_v2", address, address, size, handle)
        self.finish = alone("cuStreamSynchronize", handle)
        self.follow = alone("cuStreamWaitEvent", handle, handle, ctypes.c_uint)
        self.record = alone("cuEventRecord", handle, handle)
        self.wait = alone("cuEventSynchronize", handle)
        self.elapsed = alone("cuEventElapsedTime", ctypes.POINTER(ctypes.c_float), handle, handle)
        self.query = unasked("cuEventQuery", handle)


class CudaMark:
    """A CUDA event. The context is current where it is used."""

    __slots__ = ("__weakref__", "calls", "handle")

    def __init__(self, cu: Any, calls: StreamCalls, active: Active, flags: int) -> None:
        self.calls = calls
        self.handle = int(returned(cu.cuEventCreate(flags)))
        active.at_end(self, "cuEventDestroy_v2", self.handle)  # the driver waits until it is reached

    def reached(self) -> bool:
        """Return whether the work before it is done or has failed."""
        return bool(self.calls.query(self.handle) != NOT_READY)

    def wait(self) -> None:
        self.calls.wait(self.handle)

    def seconds_till(self, last: CudaMark) -> float:
        """Return the seconds between two reached marks."""
        milliseconds = ctypes.c_float()
        self.calls.elapsed(ctypes.byref(milliseconds), self.handle, last.handle)
        return 1e-3 * milliseconds.value


class CudaStream:
    """A stream that is ordered with the legacy default stream. The context is current where it is used.

    The least CUDA priority is the default one, so a stream of "low" priority equals one of "normal".
    """

    def __init__(self, cu: Any, active: Active, priority: str) -> None:
        status, _, greatest = cu.cuCtxGetStreamPriorityRange()
        returned((status,))
        self.handle = int(returned(cu.cuStreamCreateWithPriority(BLOCKING, greatest if priority == "high" else 0)))
        self.calls = StreamCalls()
        self.new_mark = partial(CudaMark, cu, self.calls, active)
        self.finish = partial(self.calls.finish, self.handle)

    def send(self, source: int, target: int, nbytes: int) -> None:
        """Copy from host to device memory; asynchronous with page-locked memory."""
        self.calls.to_device(target, source, nbytes, self.handle)

    def receive(self, source: int, target: int, nbytes: int) -> None:
        """Copy from device to host memory; asynchronous with page-locked memory."""
        self.calls.to_host(target, source, nbytes, self.handle)

    def copy(self, source: int, target: int, nbytes: int) -> None:
        self.calls.on_device(target, source, nbytes, self.handle)

    def record(self, mark: CudaMark) -> CudaMark:
        """Return a mark, which is reached when the work enqueued so far is done."""
        self.calls.record(mark.handle, self.handle)
        return mark

    def follow(self, mark: CudaMark) -> None:
        """Make later work wait for a mark."""
        self.calls.follow(self.handle, mark.handle, 0)
