"""Host memory that two ranks share, without a name in a file system: it is gone when both have ended."""

from __future__ import annotations

import mmap
import os
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
BOOT, PROCESSES = "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"


@dataclass(frozen=True)
class OfferedMemory:
    """The address of shared memory for another process of the host, with a proof that it is the right one."""

    process: int
    file: int
    name: str
    nbytes: int

    def map(self) -> Array:
        """Map the memory; OSError if this process may not."""
        path = f"/proc/{self.process}/fd/{self.file}"
        if not os.readlink(path).startswith(f"/memfd:{self.name}"):
            raise OSError(f"{path} is not what was offered")
        opened = os.open(path, os.O_RDWR)
        try:
            return np.frombuffer(mmap.mmap(opened, self.nbytes), np.uint8)
        finally:
            os.close(opened)


def host() -> str:
    """Return an id, equal for processes that can share memory; "" if the system cannot do this."""
    with suppress(OSError, AttributeError):
        os.close(os.memfd_create("gpuop"))
        with open(BOOT, encoding="ascii") as boot:
            return f"{boot.read()} {os.readlink(PROCESSES)}"
    return ""


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
        file = os.memfd_create(name)
        files.callback(os.close, file)
        os.posix_fallocate(file, 0, nbytes)  # now, and not by a signal on a write
        return OfferedMemory(os.getpid(), file, name, nbytes)
    return None


def _mapped(offer: OfferedMemory) -> Array | None:
    with suppress(OSError):
        return offer.map()
    return None
