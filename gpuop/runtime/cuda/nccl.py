"""NCCL: copies between the GPU memory of processes, in the order of their streams."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import Any

from gpuop.base.errors import DeviceError
from gpuop.runtime.base.backend import Memory
from gpuop.runtime.cuda.memory import CudaMemory
from gpuop.runtime.cuda.nvrtc import in_wheels

PACKAGES = ("nvidia-nccl-cu13", "nvidia-nccl-cu12")
NAME = "libnccl.so.2"
ID_BYTES, BYTES = 128, 1  # NCCL_UNIQUE_ID_BYTES, ncclUint8


class _Id(ctypes.Structure):
    _fields_ = (("internal", ctypes.c_char * ID_BYTES),)


@cache
def nccl_library() -> ctypes.CDLL | None:
    """Return the NCCL library, if it is installed."""
    for path in chain(in_wheels(PACKAGES, NAME), (NAME,)):
        with suppress(OSError):
            library = ctypes.CDLL(path)
            library.ncclGetErrorString.restype = ctypes.c_char_p
            return library
    return None


def _function(name: str, *arguments: Any) -> Callable[..., None]:
    """Return an NCCL function that raises a DeviceError when it fails."""
    library = nccl_library()
    assert library is not None
    function = library[name]
    function.argtypes = arguments

    def call(*arguments: Any) -> None:
        status = function(*arguments)
        if status:
            raise DeviceError(f"NCCL: {name}: {library.ncclGetErrorString(status).decode()}")

    return call


def new_id() -> bytes:
    """Return the id by which the ranks of a communicator find one another."""
    result = _Id()
    _function("ncclGetUniqueId", ctypes.POINTER(_Id))(ctypes.byref(result))
    return bytes(result)


class Nccl:
    """A communicator of ranks with a GPU each. All ranks create theirs together; it lasts as long as the process.

    Args:
        memory: the memory of this rank's GPU.
        ranks, rank: the number of ranks, and the number of this one.
        name: the `new_id` of one of them.

    Raises:
        DeviceError: NCCL cannot create it.
    """

    def __init__(self, memory: CudaMemory, ranks: int, rank: int, name: bytes) -> None:
        self.memory, comm, number = memory, ctypes.c_void_p(), ctypes.c_int
        handle, size = ctypes.c_void_p, ctypes.c_size_t
        start = _function("ncclCommInitRank", ctypes.POINTER(handle), number, _Id, number)
        with memory.active():
            start(ctypes.byref(comm), ranks, _Id.from_buffer_copy(name), rank)
        self._handle = comm.value
        self._begin, self._end = _function("ncclGroupStart"), _function("ncclGroupEnd")
        self._send = _function("ncclSend", handle, size, number, number, handle, handle)
        self._receive = _function("ncclRecv", handle, size, number, number, handle, handle)

    def exchange(self, going: Sequence[tuple[int, Memory]], coming: Sequence[tuple[int, Memory]]) -> None:
        """Enqueue sends of memory to other ranks and receives from them, in the order of both streams."""
        stream = self.memory.handle
        with self.memory.active():
            self._begin()
            try:
                for rank, (kind, buffer) in going:
                    self._send(int(buffer), kind.nbytes, BYTES, rank, self._handle, stream)
                for rank, (kind, buffer) in coming:
                    self._receive(int(buffer), kind.nbytes, BYTES, rank, self._handle, stream)
            finally:
                self._end()
