"""The memory of a CUDA device: the primary context, a pool, deferred frees for each stream, and staging for host arrays."""

from __future__ import annotations

import atexit
import copy
import ctypes
import gc
import os
import threading
import weakref
from collections import deque
from contextlib import suppress
from itertools import repeat
from typing import Any

import numpy as np

from gpuop.base.errors import DeviceError
from gpuop.base.finalizers import CALL
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Array, Buffer
from gpuop.runtime.cuda.driver import Active, alone, page_locked, returned
from gpuop.runtime.cuda.stream import UNTIMED, CudaMark, CudaStream

LEGACY = (0, 1)  # the numbers of the legacy default stream; the second is DLPack's
STAGE = 1 << 22  # bytes of each of two staging buffers: one is filled while the other is copied


class Block:
    """Device memory, freed when no reference is left. `int()` of it is its address.

    Attributes:
        table: the bytes of a table that was uploaded, which kernels are passed by value; other memory has none.
    """

    __slots__ = ("__weakref__", "address", "table")
    table: bytes

    def __init__(self, address: int) -> None:
        self.address = address

    def __int__(self) -> int:
        return self.address


class ForeignBlock:
    """Memory of another stream, referred to until the work enqueued here has used it."""

    __slots__ = ("__weakref__", "address", "owner")

    def __init__(self, owner: Buffer) -> None:
        self.owner, self.address = owner, int(owner)

    @property
    def table(self) -> bytes:
        result: bytes = self.owner.table
        return result

    def __int__(self) -> int:
        return self.address


def _leave(context: Any, process: int) -> None:
    """Leave all contexts at exit: the exception of a signal handler may have come before one was left."""
    while os.getpid() == process and context.get_current() is not None:
        context.pop()


class CudaMemory:
    """Objects in the device's primary context, which CuPy, PyTorch and JAX use too.

    The context is current only during gpuop calls: the user's context is restored afterwards, and none is left
    when the process ends, which PyCUDA would not survive. Launches and copies go to one stream, in order; it waits for the
    legacy default stream, and vice versa. Memory of a stream is freed in its order; another stream that uses it keeps a
    reference until it is done (`ForeignBlock`).
    """

    def __init__(self, name: str, ordinal: int) -> None:
        import pycuda.driver as drv
        from cuda.bindings import driver as cu

        self.drv, self.cu, self.name, self.ordinal = drv, cu, name, ordinal
        self.context = drv.Device(ordinal).retain_primary_context()
        self._active = Active(self.context.push, drv.Context.pop)
        if drv.Context.get_current() is None:
            atexit.register(_leave, drv.Context, os.getpid())
        self.retiring = threading.RLock()
        self.retired: deque[tuple[CudaMark, Any]] = deque()  # marks, and the objects to release when they are reached
        self.marks: list[CudaMark] = []  # reached marks, to be recorded again
        self.streams: list[CudaMemory] = []  # the memory object of each stream
        self.free = alone("cuMemFreeAsync", ctypes.c_uint64, ctypes.c_void_p)
        with self.active():
            self.pool = self._make_pool(ordinal)
            self._begin("normal")

    def _begin(self, priority: str) -> None:
        """Create a stream, and the objects that go with it."""
        self.lock = threading.RLock()
        self.blocks: dict[weakref.ref[Block], int] = {}  # and their addresses
        self.ended: deque[weakref.ref[Block]] = deque()  # blocks without references
        self.owners: dict[weakref.ref[Any], Any] = {}  # owners of imported memory, by its object here
        self.let_go: deque[weakref.ref[Any]] = deque()  # imported objects without references
        self.stream = CudaStream(self.cu, self._active, priority)
        self.handle = self.stream.handle
        self.cu_stream = self.cu.CUstream(self.handle)
        self.staging = [(self.host_memory(STAGE), self._recorded()) for _ in range(2)]
        self.copying = False  # whether a copy uses the staging buffers
        self.event = returned(self.cu.cuEventCreate(UNTIMED))
        self.streams.append(self)

    def another(self, priority: str) -> CudaMemory:
        """Return the same memory for another stream."""
        other = copy.copy(self)
        with self.active():
            other._begin(priority)
        return other

    def active(self) -> Active:
        """Make the context current in this thread, inside a `with`."""
        return self._active

    # --- allocation ---------------------------------------------------------------------------------------------

    def allocate(self, kind: FieldType) -> Block:
        """Allocate memory; DeviceError, with sizes, if there is none even after caches are emptied."""
        size = max(kind.nbytes, 1)
        address = self._from_pool(size)
        if address is None:
            gc.collect()  # buffers in reference cycles go back to the pool
            self.trim()
            address = self._from_pool(size)
        if address is None:
            total = self.drv.Device(self.ordinal).total_memory()
            raise DeviceError(
                f"{self.name}: no memory for a field of {kind} ({kind.nbytes} bytes; {self.free_bytes()} of the device's "
                f"{total} are free)"
            )
        block = Block(
            address
        )  # its finalizer is one C call: a signal handler could interrupt a Python destructor and lose it
        self.blocks[weakref.ref(block, self.ended.append)] = address
        return block

    def trim(self) -> None:
        """Return unused memory to the driver; DeviceError for failed work."""
        for each in self.streams:
            each._retire_let_go()
        self._synchronize_all()
        with self.active():
            self._release()
            for each in self.streams:
                each._give_back()
        self._synchronize_all()
        with self.active():
            returned(self.cu.cuMemPoolTrimTo(self.pool, 0))

    @property
    def gpu(self) -> str:
        """Return the identity of the GPU on the host, whatever its number in this process."""
        return str(self.drv.Device(self.ordinal).pci_bus_id())

    def free_bytes(self) -> int:
        """Return the free bytes of the device."""
        with self.active():
            return int(self.drv.mem_get_info()[0])

    def _from_pool(self, size: int) -> int | None:
        self._retire_let_go()
        with self.active():
            if self.retired:
                self._release()
            self._give_back()
            status, address = self.cu.cuMemAllocFromPoolAsync(size, self.pool, self.cu_stream)
        if status == self.cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            return None
        return int(returned((status, address)))

    def _give_back(self) -> None:
        """Free blocks in the order of the stream: enqueued work may still use them."""
        if not self.ended:
            return
        with suppress(IndexError):  # no more blocks have ended
            deque(map(self.free, map(self.blocks.pop, iter(self.ended.popleft, None)), repeat(self.handle)), maxlen=0)

    def _make_pool(self, ordinal: int) -> Any:
        """Create a driver pool that keeps freed memory (since CUDA 11.2)."""
        cu, kinds = self.cu, self.cu.CUmemPool_attribute
        props = cu.CUmemPoolProps()
        props.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        props.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        props.location.id = ordinal
        pool = returned(cu.cuMemPoolCreate(props))
        threshold = cu.cuuint64_t(2**64 - 1)
        returned(cu.cuMemPoolSetAttribute(pool, kinds.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, threshold))
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
                done.wait()
                stage[: part.size] = part
                self.stream.send(stage.ctypes.data, int(buffer) + start, part.size)
                self.stream.record(done)
            self.copying = False

    def receive(self, buffer: Buffer, array: Array) -> None:
        """Fill a contiguous array from the device; waits."""
        flat, starts = array.reshape(-1).view(np.uint8), range(0, array.nbytes, STAGE)
        with self.lock, self.active():
            self._begin_copying()
            for n, start in enumerate([*starts, *range(flat.size, flat.size + STAGE, STAGE)]):
                if start < flat.size:
                    stage, done = self.staging[n % 2]
                    done.wait()
                    self.stream.receive(int(buffer) + start, stage.ctypes.data, min(STAGE, flat.size - start))
                    self.stream.record(done)
                if n:  # the previous part has arrived while this one is on its way
                    stage, done = self.staging[(n - 1) % 2]
                    done.wait()
                    part = flat[(n - 1) * STAGE : n * STAGE]
                    part[:] = stage[: part.size]
            self.copying = False

    def _begin_copying(self) -> None:
        if self.copying:  # an interrupted copy: no event may tell when the last part is done
            self.stream.finish()
        self.copying = True

    def fetch(self, buffer: Buffer, array: Array) -> None:
        """Enqueue a copy to a contiguous host array, which waits only if that is not page-locked."""
        try:
            with self.active():
                self.stream.receive(int(buffer), array.ctypes.data, array.nbytes)
        finally:
            self.retire((buffer, array))

    def bring(self, array: Array, buffer: Buffer) -> None:
        """Enqueue a copy from a host array, likewise."""
        try:
            with self.active():
                self.stream.send(array.ctypes.data, int(buffer), array.nbytes)
        finally:
            self.retire((buffer, array))

    def host_memory(self, nbytes: int) -> Array:
        """Allocate page-locked host memory, for all contexts."""
        return page_locked(self.cu, self._active, nbytes)

    def copy(self, source: Buffer, target: Buffer, nbytes: int) -> None:
        with self.active():
            self.stream.copy(int(source), int(target), nbytes)

    def synchronize(self) -> None:
        try:
            with self.active():
                self.stream.finish()
        except DeviceError as failed:
            raise DeviceError(f"{self.name}: {failed}; the device's memory is lost to this process") from None

    def _synchronize_all(self) -> None:
        for each in self.streams:
            each.synchronize()

    def mark(self) -> CudaMark:
        """Return a mark, which is reached when the work enqueued so far is done."""
        with self.active():
            return self._recorded()

    def _recorded(self) -> CudaMark:
        return self.stream.record(self.stream.new_mark(0))

    def retire(self, owner: Any) -> None:
        """Keep a reference to an object until the work enqueued so far is done."""
        with self.retiring, self.active():
            self._release()
            mark = self.marks.pop() if self.marks else self.stream.new_mark(UNTIMED)
            self.retired.append((self.stream.record(mark), owner))

    def retire_after(self, thing: Any, owner: Any) -> None:
        """Keep an owner until no reference to an object is left and the work enqueued at the next call is done."""
        self._retire_let_go()
        self.owners[weakref.ref(thing, self.let_go.append)] = owner

    def _retire_let_go(self) -> None:
        """Retire the owners of ended objects. Their ends are noted by one C call, like those of blocks."""
        if not self.let_go:
            return
        with self.retiring, suppress(IndexError):  # a signal handler was here meanwhile
            ended = repeat(self.let_go.popleft, len(self.let_go))
            owners: list[Any] = []
            self.retire(owners)
            owners.extend(map(self.owners.pop, map(CALL, ended)))

    def release_ended(self, stream: int) -> None:
        """Release what earlier calls have used and is not referred to any more, if their work is done and no capture is."""
        with self.active():
            captures = stream not in LEGACY and returned(self.cu.cuStreamIsCapturing(stream))
            if not captures:  # events may not be asked for during a capture
                self._retire_let_go()
                self._release()

    def _release(self) -> None:
        """Release retired objects whose marks are reached."""
        with self.retiring:
            while self.retired and self.retired[0][0].reached():
                self.marks.append(self.retired.popleft()[0])

    # --- other streams ------------------------------------------------------------------------------------------

    def follow(self, stream: int) -> None:
        """Make later work wait for the work of another stream so far."""
        self._order(stream, self.handle)

    def lead(self, stream: int) -> None:
        """Make later work of another stream wait for the work enqueued so far."""
        self._order(self.handle, stream)

    def ordered_by_driver(self, stream: int) -> bool:
        """Return whether work of a stream and of the queue is in order without events.

        The legacy stream and one queue are. Two queues are not in order with each other by what does nothing in that stream.
        """
        return stream in LEGACY and not self.streams[1:]

    def _order(self, first: int, second: int) -> None:
        if first == second or self.ordered_by_driver(first) or self.ordered_by_driver(second):
            return
        cu = self.cu
        with self.lock, self.active():
            returned(cu.cuEventRecord(self.event, first))
            returned(cu.cuStreamWaitEvent(second, self.event, 0))
