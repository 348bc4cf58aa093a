"""A CUDA device's memory: the primary context, one stream, a pool, and staging for arrays of the host."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from gpuop.errors import DeviceError
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Array, Buffer

DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
LEGACY = (0, 1)  # the numbers of the legacy default stream; the second is DLPack's
STAGE = 1 << 22  # bytes of each of two staging buffers: one is filled while the other is copied


def returned(result: tuple[Any, ...]) -> Any:
    """What a call of the driver returns beside its status.

    Raises:
        DeviceError: it failed.
    """
    status, *values = result
    if status:
        raise DeviceError(f"CUDA: {status.name}: {_text(status)}")
    return values[0] if values else None


def _text(status: Any) -> str:
    from cuda.bindings import driver as cu

    _, text = cu.cuGetErrorString(status)
    return text.decode() if text else "an error that the driver does not know"


class _Statuses(dict[int, None]):
    """What a status is taken for: None for 0, an error for others."""

    def __missing__(self, status: int) -> None:
        from cuda.bindings import driver as cu

        returned((cu.CUresult(status),))


def alone(name: str, *arguments: Any) -> Callable[..., None]:
    """A function of the driver's, as a call of C's alone: cuda-bindings' may run Python, where handlers of signals run too.

    Args:
        arguments: their types, of `ctypes`.

    Raises:
        DeviceError: the call failed; from what is returned.
    """
    function = ctypes.CDLL(DRIVER)[name]
    function.argtypes = arguments
    function.restype = _Statuses({0: None}).__getitem__
    return function


def keeping(owner: Any, part: partial[Any]) -> partial[Any]:
    """A part, by which what it needs lives."""
    vars(part)["owner"] = owner
    return part


class Block:
    """Memory of the device, given back when nobody refers to it any more. `int()` of it is its address."""

    __slots__ = ("__weakref__", "address")

    def __init__(self, address: int) -> None:
        self.address = address

    def __int__(self) -> int:
        return self.address


def _leave(context: Any, process: int) -> None:
    """Let no context be current when the process ends: the exception of a signal's handler may have come before one was left."""
    while os.getpid() == process and context.get_current() is not None:
        context.pop()


class Active:
    """Makes a context current in the thread that enters."""

    __slots__ = ("pop", "push")

    def __init__(self, push: Callable[[], None], pop: Callable[[], None]) -> None:
        self.push, self.pop = push, pop

    def __enter__(self) -> None:
        self.push()

    def __exit__(self, *_: object) -> None:
        self.pop()


class CudaMemory:
    """What is in the device's primary context, which CuPy, PyTorch and JAX use too.

    It is current only while something of ours needs it: a user's own context is as it was afterwards, and none is left
    when the process ends, which PyCUDA would not survive. Launches and copies go to one stream, in order; it waits for the
    legacy default stream, and that for it.
    """

    def __init__(self, name: str, ordinal: int) -> None:
        import pycuda.driver as drv
        from cuda.bindings import driver as cu

        self.drv, self.cu, self.name, self.ordinal = drv, cu, name, ordinal
        self.context = drv.Device(ordinal).retain_primary_context()
        self._active = Active(self.context.push, drv.Context.pop)
        if drv.Context.get_current() is None:
            atexit.register(_leave, drv.Context, os.getpid())
        self.lock = threading.RLock()
        self.retired: deque[tuple[Any, Any]] = deque()  # events, and what may be given back when they have happened
        self.events: list[Any] = []  # events that have happened and may be recorded again
        self.blocks: dict[weakref.ref[Block], int] = {}  # and their addresses
        self.ended: deque[weakref.ref[Block]] = deque()  # those that nobody refers to
        self.free = alone("cuMemFreeAsync", ctypes.c_uint64, ctypes.c_void_p)
        with self.active():
            self.stream = drv.Stream()
            self.handle = self.stream.handle
            self.cu_stream = cu.CUstream(self.handle)
            self.pool = self._make_pool(ordinal)
            self.staging = [(drv.pagelocked_empty(STAGE, np.uint8), drv.Event()) for _ in range(2)]
            self.copying = False  # through the staging buffers
            self.event = returned(cu.cuEventCreate(cu.CUevent_flags.CU_EVENT_DISABLE_TIMING))

    def active(self) -> Active:
        """The context is current in this thread, inside a `with`."""
        return self._active

    # --- allocation ---------------------------------------------------------------------------------------------

    def allocate(self, kind: FieldType) -> Block:
        """DeviceError, with sizes, when caches are emptied and there is still no memory."""
        size = max(kind.nbytes, 1)
        address = self._from_pool(size)
        if address is None:
            gc.collect()  # buffers in cycles go back to the pool
            with self.active():
                self._give_back()
            self.synchronize()  # raises the error of what failed
            with self.active():
                returned(self.cu.cuMemPoolTrimTo(self.pool, 0))
            address = self._from_pool(size)
        if address is None:
            total = self.drv.Device(self.ordinal).total_memory()
            raise DeviceError(
                f"{self.name}: no memory for a field of {kind} ({kind.nbytes} bytes; {self.free_bytes()} of the device's "
                f"{total} are free)"
            )
        return self._owned(address)

    def free_bytes(self) -> int:
        """What nobody on the device has taken."""
        with self.active():
            return int(self.drv.mem_get_info()[0])

    def _from_pool(self, size: int) -> int | None:
        with self.active():
            self._give_back()
            status, address = self.cu.cuMemAllocFromPoolAsync(size, self.pool, self.cu_stream)
        if status == self.cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            return None
        return int(returned((status, address)))

    def _owned(self, address: int) -> Block:
        """A block whose end is noted by a call of C's alone: a destructor of Python's would lose it to a signal's handler."""
        block = Block(address)
        self.blocks[weakref.ref(block, self.ended.append)] = address
        return block

    def _give_back(self) -> None:
        """In the order of the stream: what is enqueued may still use it."""
        with suppress(IndexError):  # no more have ended
            deque(map(self.free, map(self.blocks.pop, iter(self.ended.popleft, None)), repeat(self.handle)), maxlen=0)

    def _make_pool(self, ordinal: int) -> Any:
        """A pool of the driver's that keeps what is freed; CUDA 11.2 brought them."""
        cu, kinds = self.cu, self.cu.CUmemPool_attribute
        props = cu.CUmemPoolProps()
        props.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        props.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        props.location.id = ordinal
        pool = returned(cu.cuMemPoolCreate(props))
        kept = cu.cuuint64_t(2**64 - 1)
        returned(cu.cuMemPoolSetAttribute(pool, kinds.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, kept))
        return pool

    # --- copies -------------------------------------------------------------------------------------------------

    def send(self, array: Array, buffer: Buffer) -> None:
        """Copy an array to the device; it may change afterwards."""
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        with self.lock, self.active():
            self._begin_copying()
            for n, start in enumerate(range(0, flat.size, STAGE)):
                part = flat[start : start + STAGE]
                stage, done = self.staging[n % 2]
                done.synchronize()
                stage[: part.size] = part
                self.drv.memcpy_htod_async(int(buffer) + start, stage[: part.size], self.stream)
                done.record(self.stream)
            self.copying = False

    def receive(self, buffer: Buffer, array: Array) -> None:
        """Fill a contiguous array from the device; waits."""
        flat = array.reshape(-1).view(np.uint8)
        starts = range(0, flat.size, STAGE)
        with self.lock, self.active():
            self._begin_copying()
            for n, start in enumerate([*starts, *range(flat.size, flat.size + STAGE, STAGE)]):
                if start < flat.size:
                    stage, done = self.staging[n % 2]
                    done.synchronize()
                    size = min(STAGE, flat.size - start)
                    self.drv.memcpy_dtoh_async(stage[:size], int(buffer) + start, self.stream)
                    done.record(self.stream)
                if n:  # the one before has arrived while this one is on its way
                    stage, done = self.staging[(n - 1) % 2]
                    done.synchronize()
                    part = flat[(n - 1) * STAGE : n * STAGE]
                    part[:] = stage[: part.size]
            self.copying = False

    def _begin_copying(self) -> None:
        if self.copying:  # it was interrupted: no event may tell when the last copy is done
            self.stream.synchronize()
        self.copying = True

    def copy(self, source: Buffer, target: Buffer, nbytes: int) -> None:
        with self.active():
            self.drv.memcpy_dtod_async(int(target), int(source), nbytes, self.stream)

    def synchronize(self) -> None:
        try:
            with self.active():
                self.stream.synchronize()
        except self.drv.Error as failed:
            raise DeviceError(f"{self.name}: {failed}; the device's memory is lost to this process") from None

    def mark(self) -> Any:
        """An event that happens when what is enqueued now is done."""
        with self.active():
            event = self.drv.Event()
            event.record(self.stream)
        return event

    def retire(self, owner: Any) -> None:
        """Keep somebody's memory until what is enqueued now is done."""
        if sys.is_finalizing():
            return
        with self.lock, self.active():
            while self.retired and self.retired[0][0].query():
                self.events.append(self.retired.popleft()[0])
            event = self.events.pop() if self.events else self.drv.Event(self.drv.event_flags.DISABLE_TIMING)
            event.record(self.stream)
            self.retired.append((event, owner))

    # --- other streams ------------------------------------------------------------------------------------------

    def follow(self, stream: int) -> None:
        """What is enqueued from now on waits for what another stream has now."""
        self._order(stream, self.handle)

    def lead(self, stream: int) -> None:
        """What another stream gets from now on waits for what is enqueued now."""
        self._order(self.handle, stream)

    def _order(self, first: int, second: int) -> None:
        if first == second or first in LEGACY or second in LEGACY:  # the driver has ours and that one take turns
            return
        cu = self.cu
        with self.lock, self.active():
            returned(cu.cuEventRecord(self.event, first))
            returned(cu.cuStreamWaitEvent(second, self.event, 0))
