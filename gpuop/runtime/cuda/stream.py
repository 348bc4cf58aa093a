"""CUDA's streams and events by the driver's own functions: PyCUDA's streams have no priorities."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

from gpuop.runtime.cuda.driver import Active, alone, returned, unasked

UNTIMED, BLOCKING = 2, 0  # CU_EVENT_DISABLE_TIMING; CU_STREAM_DEFAULT: it and the legacy default stream take turns
NOT_READY = 600  # CUDA_ERROR_NOT_READY


class StreamCalls:
    """Functions of the driver's, each a call of C's alone, for which Python's lock is free; DeviceError where one fails."""

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
    """An event of the driver's. The context is current where it is used."""

    __slots__ = ("__weakref__", "calls", "handle")

    def __init__(self, cu: Any, calls: StreamCalls, active: Active, flags: int) -> None:
        self.calls = calls
        self.handle = int(returned(cu.cuEventCreate(flags)))
        active.at_end(self, "cuEventDestroy_v2", self.handle)  # the driver frees one that is not reached yet when it is

    def reached(self) -> bool:
        """Whether what was enqueued before is done, or has failed."""
        return bool(self.calls.query(self.handle) != NOT_READY)

    def wait(self) -> None:
        self.calls.wait(self.handle)

    def seconds_till(self, last: CudaMark) -> float:
        """Between two marks that are reached."""
        found = ctypes.c_float()
        self.calls.elapsed(ctypes.byref(found), self.handle, last.handle)
        return 1e-3 * found.value


class CudaStream:
    """A stream, in order with the legacy default stream. The context is current where it is used.

    CUDA's least priority is the usual one, so that a stream of "low" priority is like one of "normal".
    """

    def __init__(self, cu: Any, active: Active, priority: str) -> None:
        status, _, greatest = cu.cuCtxGetStreamPriorityRange()
        returned((status,))
        self.handle = int(returned(cu.cuStreamCreateWithPriority(BLOCKING, greatest if priority == "high" else 0)))
        self.calls = StreamCalls()
        self.new_mark = partial(CudaMark, cu, self.calls, active)
        self.finish = partial(self.calls.finish, self.handle)

    def send(self, source: int, target: int, nbytes: int) -> None:
        """From the host's memory to the device's; from page-locked memory without waiting."""
        self.calls.to_device(target, source, nbytes, self.handle)

    def receive(self, source: int, target: int, nbytes: int) -> None:
        """From the device's memory to the host's; to page-locked memory without waiting."""
        self.calls.to_host(target, source, nbytes, self.handle)

    def copy(self, source: int, target: int, nbytes: int) -> None:
        self.calls.on_device(target, source, nbytes, self.handle)

    def record(self, mark: CudaMark) -> CudaMark:
        """The mark, reached when what is enqueued now is done."""
        self.calls.record(mark.handle, self.handle)
        return mark

    def follow(self, mark: CudaMark) -> None:
        """What is enqueued from now on waits for a mark."""
        self.calls.follow(self.handle, mark.handle, 0)
