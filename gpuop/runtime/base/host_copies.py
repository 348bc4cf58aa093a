"""Copies between a device and the host's memory, which others of its queues run beside its work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.ir.types import FieldType

Array = NDArray[Any]
PAGE = 4096  # bytes


class HostCopies(ABC):
    """What a queue copies to and from the host."""

    name: str

    @abstractmethod
    def write(self, buffer: Any, planes: Array) -> None:
        """Overwrite a buffer."""

    @abstractmethod
    def download(self, kind: FieldType, buffer: Any) -> Array:
        """The planes of a field, in memory of the caller's; waits."""

    def fetch(self, kind: FieldType, buffer: Any, array: Array) -> None:
        """Enqueue a copy of a buffer to a contiguous array of the host, which lies alike; both are kept until that is done."""
        raise AssertionError(f"{self.name} does not only enqueue")

    def bring(self, kind: FieldType, buffer: Any, array: Array) -> None:
        """Enqueue the copy back, or write it: the array may not change until that is done."""
        self.write(buffer, array)

    @abstractmethod
    def keep(self, owner: Any) -> None:
        """Keep memory of the host's until what is enqueued now is done."""

    def host_memory(self, nbytes: int) -> Array:
        """Bytes of the host that copies to and from the device are fastest with; here they begin a page."""
        whole = np.empty(nbytes + PAGE, np.uint8)
        start = -whole.ctypes.data % PAGE
        return whole[start : start + nbytes]

    def locked(self, memory: Array) -> Array:
        """Whole pages of the host's, with which copies are as fast from now on, where the driver can have that."""
        return memory
