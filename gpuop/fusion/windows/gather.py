"""Windows of arrays in memory, of arrays in files."""

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
    """Points of a source, which go on at the other end; `copied` even where they lie together there."""
    if ends is None:
        return together(np.asarray(source[index] if index else source[...]), copied)
    found: Any = None
    for parts in product(*(pieces(a, b, n) for (a, b), n in zip(ends, grid, strict=True))):
        piece = np.asarray(source[(*index, *(slice(first, last) for _, first, last in parts))])
        if found is None and all(b - a == last - first for (a, b), (_, first, last) in zip(ends, parts, strict=True)):
            return together(piece, copied)
        if found is None:
            found = reused((*(b - a for a, b in ends), *piece.shape[len(ends) :]), piece.dtype)
        found[tuple(slice(at, at + last - first) for at, first, last in parts)] = piece
    return np.asarray(found)


def together(piece: Array, copied: bool = False) -> Array:
    """Points as they lie together in memory; `copied` even if they do."""
    if piece.flags.c_contiguous and not copied:
        return piece
    found = reused(piece.shape, piece.dtype)
    found[...] = piece
    return found


def pieces(start: int, stop: int, n: int) -> Iterator[tuple[int, int, int]]:
    """A range of an axis whose ends meet: where each piece begins in the window, and in the array its ends."""
    at = start
    while at < stop:
        first = at % n
        last = min(n, first + stop - at)
        yield at - start, first, last
        at += last - first
