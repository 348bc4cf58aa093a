"""A pool of host memory for results, which is reused once no array has it.

New memory of this size takes longer than copying its contents: the system takes it back when it is freed, and fills it with
zeros when it is touched again.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.base.finalizers import End
from gpuop.base.lru import BoundedCache

Array = NDArray[Any]
LEAST, MOST = 1 << 18, 1 << 27  # the least bytes of a pooled array, and the most of all free ones of a size
KEPT = 4  # free arrays of a size, and sizes
LINE = 64  # the alignment in bytes, that of CPU vectors

_free: BoundedCache[int, deque[End[Any]]] = BoundedCache(KEPT)  # free memory, by its bytes


class _PooledMemory:
    """The owner of the memory of arrays, as long as there are such arrays.

    A C call alone notes its end: an exception that a signal handler raises in a Python destructor would be lost.
    """

    def __init__(self, memory: Array, waiting: deque[End[Any]]) -> None:
        self.__array_interface__ = memory.__array_interface__
        self.ended = End(self, waiting.append)
        self.ended.left = memory


def reused(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A new array with undefined values, whose memory may have been that of another array."""
    nbytes = math.prod(shape) * dtype.itemsize
    if not LEAST <= nbytes <= MOST or dtype.hasobject:
        return np.empty(shape, dtype)
    waiting = _waiting(nbytes)
    try:
        memory = waiting.pop().left
    except IndexError:
        whole = np.empty(nbytes + LINE, np.uint8)
        first = -whole.ctypes.data % LINE
        memory = whole[first : first + nbytes]
    return np.asarray(_PooledMemory(memory, waiting)).view(dtype).reshape(shape)


def let_go() -> None:
    """Free the memory in the pool."""
    _free.clear()


def _waiting(nbytes: int) -> deque[End[Any]]:
    return _free.find(nbytes, lambda: deque(maxlen=min(KEPT, MOST // nbytes)))
