"""Memory that calls with small arrays of the host share: what lies in it goes to the device and back by one copy each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from gpuop.base.records import dataclass
from gpuop.runtime.base.launch_list import LaunchList, Values

LEAST, MOST = 1 << 16, 1 << 22  # bytes of a stage; larger arrays are copied part by part


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Memory of the host, and as much of the device.

    Attributes:
        host: bytes, which NumPy arrays may lie in.
        address: of the memory of the device.
        owner: the owner of that memory.
    """

    host: Any
    address: int
    owner: Any


class Stages(ABC):
    """The stages of a queue: each is used by one call at a time, and waits for the next one.

    Attributes:
        idle: stages that no call uses, by size.
    """

    def __init__(self) -> None:
        self.idle: dict[int, list[Stage]] = {}

    def taken(self, size: int) -> Stage:
        """Return a stage of a size from `size_of`, which the caller adds to `idle` when its results are read.

        Raises:
            DeviceError, MemoryError: the device or the host has no memory for it.
        """
        try:
            return self.idle[size].pop()
        except (KeyError, IndexError):
            self.idle.setdefault(size, [])
            return self.new(size)

    def let_go(self) -> None:
        """Forget the stages that no call uses."""
        for stages in [*self.idle.values()]:
            stages.clear()

    @abstractmethod
    def new(self, size: int) -> Stage:
        """Return a new stage."""

    @abstractmethod
    def run(self, stage: Stage, launches: LaunchList, values: Values, sent: int, end: int) -> None:
        """Copy the first `sent` bytes to the device, launch, copy the bytes between there and `end` back, and wait.

        Raises:
            DeviceError: the device failed.
        """


def size_of(nbytes: int) -> int | None:
    """Return the size of a stage with so many bytes; None if there are no such large ones."""
    return None if nbytes > MOST else max(LEAST, 1 << (nbytes - 1).bit_length())
