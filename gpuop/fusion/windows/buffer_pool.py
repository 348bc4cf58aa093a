"""Memory of results that is used again once no array has it: to get new memory takes longer than to copy what it has.

Systems take memory of this size back when it is freed, and fill it with zeros when it is touched again.
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
LEAST, MOST = 1 << 18, 1 << 27  # bytes of arrays that are worth it, and that all of a size have which wait to be used
KEPT = 4  # arrays of a size that wait, and sizes
LINE = 64  # bytes that arrays begin at multiples of, as wide as vectors of CPUs

_free: BoundedCache[int, deque[End[Any]]] = BoundedCache(KEPT)  # memory that waits, by its bytes


class _Lent:
    """What an array's memory belongs to, while there are such arrays. Its end is noted by a call of C's alone: what a signal's
    handler raises in a destructor of Python's is lost."""

    def __init__(self, memory: Array, waiting: deque[End[Any]]) -> None:
        self.__array_interface__ = memory.__array_interface__
        self.ended = End(self, waiting.append)
        self.ended.left = memory


def reused(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A new array, whose values are any; its memory may have been another's."""
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
    return np.asarray(_Lent(memory, waiting)).view(dtype).reshape(shape)


def let_go() -> None:
    """Give back the memory that waits to be used."""
    _free.clear()


def _waiting(nbytes: int) -> deque[End[Any]]:
    return _free.find(nbytes, lambda: deque(maxlen=min(KEPT, MOST // nbytes)))
