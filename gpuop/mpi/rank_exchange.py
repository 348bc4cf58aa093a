"""How points around parts go from rank to rank: through the hosts' memory, by MPI, or from GPU to GPU, by NCCL."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from gpuop.graphs.graph_window import GraphWindow
from gpuop.mpi.rank_grid import Region
from gpuop.runtime.base.backend import Array, Backend, Memory
from gpuop.runtime.cuda.cuda_device import Cuda
from gpuop.runtime.cuda.nccl import Nccl, nccl_library, new_id

Routes = Mapping[int, list[Region]]  # for each other rank the regions that go there, or come from it


class HostExchange:
    """Through the hosts' memory, which is page-locked where that is faster.

    Args:
        comm: a communicator of mpi4py's.
        window: whose points are given, and brought up to date.
        gives, gets: what goes to each rank, and comes from it.
    """

    how = "through the host's memory"

    def __init__(self, comm: Any, window: GraphWindow, gives: Routes, gets: Routes) -> None:
        self.comm, self.window, self.gives, self.gets = comm, window, gives, gets
        self.all = [region for regions in gets.values() for region in regions]
        self.found = self._memory(self.all)
        self.messages = {rank: self._memory(regions) for rank, regions in gives.items()}
        ends = accumulate(map(self._nbytes, gets.values()))
        self.replies = dict(zip(gets, np.split(self.found, [*ends]), strict=False))  # parts of `found`

    def _nbytes(self, regions: list[Region]) -> int:
        return sum(kind.nbytes for kind in self.window.parts(regions))

    def _memory(self, regions: list[Region]) -> Array:
        return self.window.backend.host_memory(self._nbytes(regions))

    def __call__(self) -> None:
        comm, window = self.comm, self.window
        coming = [comm.Irecv(reply, source=rank) for rank, reply in self.replies.items()]
        going = []
        for rank, regions in self.gives.items():
            window.take(regions, self.messages[rank])
            going.append(comm.Isend(self.messages[rank], dest=rank))
        for request in coming:
            request.Wait()
        window.put(self.all, self.found)
        for request in going:
            request.Wait()


class NcclExchange:
    """From one GPU's memory to the other's, in the order of the windows' streams: the host waits for nothing."""

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
    """How ranks exchange points; all of them ask together, and have the same answer."""
    nccl = _nccl(comm, backend)
    return partial(HostExchange, comm) if nccl is None else partial(NcclExchange, nccl)


def _nccl(comm: Any, backend: Backend) -> Nccl | None:
    """NCCL, where it is installed for all ranks, and each has a GPU of its own."""
    gpu = backend.memory.gpu if isinstance(backend, Cuda) and not backend.checked and nccl_library() else None
    gpus = comm.allgather(None if gpu is None else (platform.node(), gpu))
    if None in gpus or len({*gpus}) < len(gpus) or len(gpus) == 1:
        return None
    name = comm.allgather(new_id() if comm.Get_rank() == 0 else b"")[0]
    assert isinstance(backend, Cuda)
    return Nccl(backend.memory, len(gpus), comm.Get_rank(), name)
