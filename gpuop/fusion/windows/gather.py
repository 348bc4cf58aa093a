"""Gathering of windows from arrays in memory or in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.fusion.windows.buffer_pool import reused
from gpuop.fusion.windows.footprint import Place

Array = NDArray[Any]


def window_of(
    source: Any, index: Place, ends: Sequence[tuple[int, int]] | None, grid: Place, copied: bool = False
) -> Array:
    """The points of a window of a source, contiguous; they wrap around its ends. `copied` forces a copy."""
    if ends is None:
        return together(np.asarray(source[index] if index else source[...]), copied)
    result: Any = None
    for parts in product(*(pieces(a, b, n) for (a, b), n in zip(ends, grid, strict=True))):
        piece = np.asarray(source[(*index, *(slice(first, last) for _, first, last in parts))])
        if result is None and all(b - a == last - first for (a, b), (_, first, last) in zip(ends, parts, strict=True)):
            return together(piece, copied)
        if result is None:
            result = reused((*(b - a for a, b in ends), *piece.shape[len(ends) :]), piece.dtype)
        result[tuple(slice(at, at + last - first) for at, first, last in parts)] = piece
    return np.asarray(result)


def together(piece: Array, copied: bool = False) -> Array:
    """Make an array contiguous; `copied` forces a copy."""
    if piece.flags.c_contiguous and not copied:
        return piece
    result = reused(piece.shape, piece.dtype)
    result[...] = piece
    return result


def pieces(start: int, stop: int, n: int) -> Iterator[tuple[int, int, int]]:
    """The pieces of a range of a periodic axis: the start of each in the window, and its ends in the array."""
    at = start
    while at < stop:
        first = at % n
        last = min(n, first + stop - at)
        yield at - start, first, last
        at += last - first
