"""Arrays of libraries whose functions run in a stream of the device, taken and made as the libraries themselves do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class Address(int):
    """The address of memory that others own, as a buffer."""

    address = property(int)


class StreamArrays(ABC):
    """Arrays of a library on a device, without the protocols of exchange.

    The library gives memory that is not referred to any more to later work of the same stream. So what runs in that stream, or
    between `follow` and `lead` of it, may use arrays that are freed meanwhile, as functions of the library do.

    Attributes:
        byte: the library's dtype of bytes.
        has_memory: False if memory of `empty` is in the order of the queue, not of the current stream.
    """

    byte: Any
    has_memory = True

    @abstractmethod
    def stream(self) -> int | None:
        """Return the stream in which functions of the library run now; None if they run on another device."""

    @abstractmethod
    def place(self, array: Any) -> tuple[int, Any]:
        """Return the address of the first element, and the strides in units of the library; 0 for what is no such array."""

    @abstractmethod
    def dtype(self, dtype: np.dtype[Any]) -> Any:
        """Return the dtype of the library; None if it has no such dtype."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: Any) -> tuple[Any, int]:
        """Return a new contiguous array in the order of the current stream, and its address; 0 if that is none of the device."""

    @abstractmethod
    def direct(self, stream: int) -> int | None:
        """Return the stream to launch in so that no event is needed for the order of a stream; None if there is none."""

    @abstractmethod
    def follow(self, stream: int) -> None:
        """Make later work of the queue wait for the work of a stream so far."""

    @abstractmethod
    def lead(self, stream: int) -> None:
        """Make later work of a stream wait for the work of the queue so far."""
