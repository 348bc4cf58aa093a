"""Ranks that are threads, for what asks a communicator of mpi4py's for little."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from queue import Queue
from typing import Any

import numpy as np

import gpuop as gp


class _World:
    def __init__(self, size: int) -> None:
        self.size, self.barrier = size, threading.Barrier(size, timeout=60)
        self.queues: dict[tuple[int, int], Queue[bytes]] = defaultdict(Queue)
        self.slots: list[Any] = [None] * size
        self.sent = 0


class _Request:
    def __init__(self, done: Callable[[], None]) -> None:
        self.Wait = done


class ThreadComm:
    """The methods of a communicator that a Domain uses."""

    def __init__(self, world: _World, rank: int) -> None:
        self.world, self.rank = world, rank

    def Dup(self) -> ThreadComm:
        return self

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.world.size

    def Isend(self, array: Any, dest: int) -> _Request:
        self.world.sent += array.nbytes
        self.world.queues[self.rank, dest].put(array.tobytes())
        return _Request(lambda: None)

    def Irecv(self, array: Any, source: int) -> _Request:
        def wait() -> None:
            data = self.world.queues[source, self.rank].get(timeout=60)
            assert len(data) == array.nbytes
            array[:] = memoryview(data)

        return _Request(wait)

    def barrier(self) -> None:
        self.world.barrier.wait()

    def allgather(self, value: Any) -> list[Any]:
        self.world.slots[self.rank] = value
        self.barrier()
        results = list(self.world.slots)
        self.barrier()
        return results

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        result = self.allgather(value)
        return result if self.rank == root else None


def on_ranks(size: int, work: Callable[[Any], Any], device: str) -> list[Any]:
    """The result or the exception of each rank."""
    world, result = _World(size), [None] * size

    def run(rank: int) -> None:
        try:
            with gp.use_device(device):
                result[rank] = work(ThreadComm(world, rank))
        except BaseException as error:  # noqa: BLE001 - it is looked at, or raised below
            result[rank] = error
            threading.Timer(0.2, world.barrier.abort).start()  # others may be about to raise their own

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wrong = [e for e in result if isinstance(e, BaseException) and not isinstance(e, threading.BrokenBarrierError)]
    if wrong:
        raise wrong[0]
    return result


class ThreadNccl:
    """NCCL among threads, on the reference's memory: it takes pairs of ranks in the order that both sides name them in."""

    def __init__(self, comm: ThreadComm) -> None:
        self.comm, self.exchanges = comm, 0

    def exchange(self, going: Any, coming: Any) -> None:
        for rank, (_, planes) in going:
            self.comm.Isend(planes, rank)
        for rank, (_, planes) in coming:
            data = np.empty(planes.nbytes, np.uint8)
            self.comm.Irecv(data, rank).Wait()
            planes[...] = data.view(planes.dtype).reshape(planes.shape)
        self.exchanges += 1
