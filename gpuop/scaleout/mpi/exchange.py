"""Halo exchange between ranks: through host memory, by MPI messages, or between GPUs by NCCL."""

from __future__ import annotations

import mmap
import os
import platform
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from itertools import islice
from typing import Any
from uuid import uuid4

import numpy as np

from gpuop.base.records import dataclass
from gpuop.base.system import file_of_process, host, shared_file
from gpuop.engine.graphs.window import GraphWindow
from gpuop.engine.graphs.window_regions import bring_parts, fetch_parts
from gpuop.runtime.base.backend import Array, Backend, Buffer, Memory
from gpuop.runtime.base.current_queue import queue_of
from gpuop.runtime.cuda.device import Cuda
from gpuop.runtime.cuda.nccl import Nccl, nccl_library, new_id
from gpuop.scaleout.mpi.grid import Region

Routes = Mapping[int, list[Region]]  # for each other rank the regions that are sent to it, or come from it
COPYING = ("halos", "normal")  # a queue of each device
SHARED, MESSAGES = "through memory that ranks of a host share", "by messages"


class HostExchange:
    """Exchange through host memory, page-locked if that is faster; ranks of one host read each other's memory.

    A queue of the device copies, in parallel to the window's computation. There are two memories, for alternate exchanges:
    a message of a rank in one exchange also says that the rank has read all of the exchange before.

    Args:
        comm: an mpi4py communicator.
        window: the window whose points are sent and updated.
        gives, gets: the regions sent to each rank, and received from it.
    """

    def __init__(self, comm: Any, window: GraphWindow, gives: Routes, gets: Routes) -> None:
        self.comm, self.window, self.gives, self.gets = comm, window, gives, gets
        self.all = [region for regions in gets.values() for region in regions]
        self.queue, self.turn = queue_of(window.backend, COPYING), 0
        rooms, sizes = iter(window.room(self.all)), {rank: 2 * self._nbytes(gives[rank]) for rank in gives}
        self.rooms = {rank: list(islice(rooms, len(window.parts(regions)))) for rank, regions in gets.items()}
        out, into = shared(comm, sizes, gets.keys())
        self.how = " and ".join(filter(None, [SHARED * bool(out or into), MESSAGES * (len(into) < len(gets))]))
        self.out = {rank: self._turns(out.get(rank), gives[rank]) for rank in gives}
        self.into = {rank: self._turns(into.get(rank), gets[rank]) for rank in gets}
        others = gives.keys() | gets.keys()
        self.messages = {rank: self.out[rank] if rank in gives.keys() - out else _signal() for rank in others}
        self.heard = {rank: self.into[rank] if rank in gets.keys() - into else _signal() for rank in others}
        self.fetched = self.queue.record()

    def _nbytes(self, regions: list[Region]) -> int:
        return sum(kind.nbytes for kind in self.window.parts(regions))

    def _turns(self, both: Array | None, regions: list[Region]) -> list[Array]:
        """Return the memory for even and for odd exchanges."""
        backend, n = self.window.backend, self._nbytes(regions)
        return np.split(backend.host_memory(2 * n) if both is None else backend.locked(both), [n])

    def __call__(self) -> None:
        self.give(self.window.packed)
        self.get()

    def give(self, packed: Callable[[list[Region]], list[Buffer]]) -> None:
        """Copy the points for other ranks from the device, once they are computed; the host goes on.

        Args:
            packed: device memory with the points of the regions.
        """
        backend, queue = self.window.backend, self.queue
        outgoing = {rank: packed(regions) for rank, regions in self.gives.items()}
        queue.follow(backend.record())
        for rank, buffers in outgoing.items():
            fetch_parts(queue, self.window.parts(self.gives[rank]), buffers, self.out[rank][self.turn])
        self.fetched = queue.record()

    def get(self) -> None:
        """Wait for the points of other ranks, and copy them to the device, after its enqueued work."""
        comm, queue, window, turn = self.comm, self.queue, self.window, self.turn
        coming = {rank: comm.Irecv(each[turn], source=rank) for rank, each in self.heard.items()}
        queue.wait(self.fetched)
        going = [comm.Isend(each[turn], dest=rank) for rank, each in self.messages.items()]
        for rank, request in coming.items():
            request.Wait()
            if rank in self.gets:
                bring_parts(queue, window.parts(self.gets[rank]), self.rooms[rank], self.into[rank][turn])
        window.backend.follow(queue.record())
        window.place(self.all)
        for request in going:
            request.Wait()
        self.turn = 1 - turn


def _signal() -> list[Array]:
    """Return the message to a rank that reads the points from shared memory."""
    return [np.zeros(1, np.uint8)] * 2


class NcclExchange:
    """Exchange between the memory of GPUs, in the order of the windows' streams: the host waits for nothing."""

    how = "from GPU to GPU, by NCCL"

    def __init__(self, nccl: Nccl, window: GraphWindow, gives: Routes, gets: Routes) -> None:
        self.nccl, self.window, self.gives, self.gets = nccl, window, gives, gets
        self.all = [region for regions in gets.values() for region in regions]

    def __call__(self) -> None:
        window = self.window
        going = [(rank, each) for rank, regions in self.gives.items() for each in self._of(regions, window.packed)]
        ranks = [rank for rank, regions in self.gets.items() for _ in window.parts(regions)]
        coming = list(zip(ranks, self._of(self.all, window.room), strict=True))
        self.nccl.exchange(going, coming)
        window.place(self.all)

    def _of(self, regions: list[Region], memory: Callable[[list[Region]], list[Any]]) -> list[Memory]:
        return list(zip(self.window.parts(regions), memory(regions), strict=True))


Exchanging = Callable[[GraphWindow, Routes, Routes], HostExchange | NcclExchange]


def exchanging(comm: Any, backend: Backend) -> Exchanging:
    """Return the exchange for these ranks; all ranks call it together, and get the same kind."""
    nccl = _nccl(comm, backend)
    return partial(HostExchange, comm) if nccl is None else partial(NcclExchange, nccl)


def _nccl(comm: Any, backend: Backend) -> Nccl | None:
    """Return NCCL if it is installed for all ranks, and each has a GPU of its own."""
    gpu = backend.memory.gpu if isinstance(backend, Cuda) and not backend.checked and nccl_library() else None
    gpus = comm.allgather(None if gpu is None else (platform.node(), gpu))
    if None in gpus or len({*gpus}) < len(gpus) or len(gpus) == 1:
        return None
    name = comm.allgather(new_id() if comm.Get_rank() == 0 else b"")[0]
    assert isinstance(backend, Cuda)
    return Nccl(backend.memory, len(gpus), comm.Get_rank(), name)


@dataclass(frozen=True)
class OfferedMemory:
    """The address of shared memory for another process of the host, with a proof that it is the right one."""

    process: int
    file: int
    name: str
    nbytes: int

    def map(self) -> Array:
        """Map the memory; OSError if this process may not."""
        opened = file_of_process(self.process, self.file, self.name)
        try:
            return np.frombuffer(mmap.mmap(opened, self.nbytes), np.uint8)
        finally:
            os.close(opened)


def shared(comm: Any, gives: Mapping[int, int], gets: Collection[int]) -> tuple[dict[int, Array], dict[int, Array]]:
    """Return memory that this rank shares with others of its host; all ranks call it together.

    Args:
        comm: an mpi4py communicator.
        gives: the number of bytes sent to each rank.
        gets: the ranks that send some.

    Returns:
        The memory shared with each receiver, by receivers, and with each sender, by senders.
    """
    rank, here = comm.Get_rank(), host()
    with ExitStack() as files:
        offers = {to: offer for to, n in gives.items() if here and (offer := _offered(n, files)) is not None}
        answers = comm.allgather((here, offers))
        mine = {to: array for to, offer in offers.items() if (array := _mapped(offer)) is not None}
        near = [giver for giver in gets if answers[giver][0] == here and rank in answers[giver][1]]
        theirs = {giver: array for giver in near if (array := _mapped(answers[giver][1][rank])) is not None}
        both = comm.allgather((set(mine), set(theirs)))
    out = {to: array for to, array in mine.items() if rank in both[to][1]}
    return out, {giver: array for giver, array in theirs.items() if rank in both[giver][0]}


def _offered(nbytes: int, files: ExitStack) -> OfferedMemory | None:
    """Return memory that others can map until the files are closed; None if the host has not enough."""
    with suppress(OSError):
        name = f"gpuop-{uuid4().hex}"
        file = shared_file(name, nbytes)
        files.callback(os.close, file)
        return OfferedMemory(os.getpid(), file, name, nbytes)
    return None


def _mapped(offer: OfferedMemory) -> Array | None:
    with suppress(OSError):
        return offer.map()
    return None
