"""Copies between a device and host memory, which may run in a queue of their own beside computation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.ir.types import FieldType

Array = NDArray[Any]
PAGE = 4096  # bytes


class HostCopies(ABC):
    """The copies of a queue to and from the host."""

    name: str

    @abstractmethod
    def write(self, buffer: Any, planes: Array) -> None:
        """Overwrite a buffer."""

    @abstractmethod
    def download(self, kind: FieldType, buffer: Any) -> Array:
        """Return the planes of a field in new memory; waits."""

    def fetch(self, kind: FieldType, buffer: Any, array: Array) -> None:
        """Enqueue a copy to a contiguous host array with the layout of the buffer; both are referred to until it is done."""
        raise AssertionError(f"{self.name} does not only enqueue")

    def bring(self, kind: FieldType, buffer: Any, array: Array) -> None:
        """Enqueue a copy from the host, or write at once: the array may not change until that is done."""
        self.write(buffer, array)

    @abstractmethod
    def keep(self, owner: Any) -> None:
        """Keep a reference to host memory until the work enqueued so far is done."""

    def host_memory(self, nbytes: int) -> Array:
        """Allocate host memory with the fastest copies to and from the device; by default page-aligned."""
        whole = np.empty(nbytes + PAGE, np.uint8)
        start = -whole.ctypes.data % PAGE
        return whole[start : start + nbytes]

    def locked(self, memory: Array) -> Array:
        """Page-lock whole pages of host memory for fast copies, if the driver can do that."""
        return memory
