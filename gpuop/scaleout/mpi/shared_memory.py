"""Memory of the host that two ranks have, without a name in any file system: nothing of it is left when both are gone."""

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
    """Where another process of the host finds memory, and how it knows that it is this."""

    process: int
    file: int
    name: str
    nbytes: int

    def map(self) -> Array:
        """The memory; OSError where this process may not have it."""
        path = f"/proc/{self.process}/fd/{self.file}"
        if not os.readlink(path).startswith(f"/memfd:{self.name}"):
            raise OSError(f"{path} is not what was offered")
        opened = os.open(path, os.O_RDWR)
        try:
            return np.frombuffer(mmap.mmap(opened, self.nbytes), np.uint8)
        finally:
            os.close(opened)


def host() -> str:
    """The same for processes that can have each other's memory; "" where the system has none of this."""
    with suppress(OSError, AttributeError):
        os.close(os.memfd_create("gpuop"))
        with open(BOOT, encoding="ascii") as boot:
            return f"{boot.read()} {os.readlink(PROCESSES)}"
    return ""


def shared(comm: Any, gives: Mapping[int, int], gets: Collection[int]) -> tuple[dict[int, Array], dict[int, Array]]:
    """Memory that this rank has with others of its host; all ranks make theirs together.

    Args:
        comm: a communicator of mpi4py's.
        gives: how many bytes go to each rank.
        gets: the ranks of which some come.

    Returns:
        What both it and the getter have, by getters, and what both it and the giver have, by givers.
    """
    rank, here = comm.Get_rank(), host()
    with ExitStack() as files:
        offers = {to: offer for to, n in gives.items() if here and (offer := _offered(n, files)) is not None}
        told = comm.allgather((here, offers))
        mine = {to: array for to, offer in offers.items() if (array := _mapped(offer)) is not None}
        near = [giver for giver in gets if told[giver][0] == here and rank in told[giver][1]]
        theirs = {giver: array for giver in near if (array := _mapped(told[giver][1][rank])) is not None}
        both = comm.allgather((set(mine), set(theirs)))
    out = {to: array for to, array in mine.items() if rank in both[to][1]}
    return out, {giver: array for giver, array in theirs.items() if rank in both[giver][0]}


def _offered(nbytes: int, files: ExitStack) -> OfferedMemory | None:
    """Memory that others can map until the files are closed; None where the host has not so much."""
    with suppress(OSError):
        name = f"gpuop-{uuid4().hex}"
        made = os.memfd_create(name)
        files.callback(os.close, made)
        os.posix_fallocate(made, 0, nbytes)  # now, and not by a signal when it is written
        return OfferedMemory(os.getpid(), made, name, nbytes)
    return None


def _mapped(offer: OfferedMemory) -> Array | None:
    with suppress(OSError):
        return offer.map()
    return None
