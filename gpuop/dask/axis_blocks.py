"""Blocks along one axis of a grid, what is computed for each, and where in chunks lies what that needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

Ends = tuple[int, int]


@dataclass(frozen=True)
class AxisBlock:
    """A block along an axis.

    Attributes:
        wanted: the points of the block: the first, and the one behind the last.
        computed: those that are computed for it, which are more where its window is to be as long as others'.
        window: those that this needs of arguments; along an axis whose ends meet they may be below 0, or behind the last.
    """

    wanted: Ends
    computed: Ends
    window: Ends

    @property
    def inner(self) -> slice:
        """Those that are wanted, of those that are computed."""
        return slice(self.wanted[0] - self.computed[0], self.wanted[1] - self.computed[0])


@dataclass(frozen=True)
class Piece:
    """Some points of a window, in one chunk: `places` of them in the chunk, and `there` in the window."""

    chunk: int
    places: slice
    there: slice


def axis_blocks(chunks: Sequence[int], halo: Ends, periodic: bool) -> list[AxisBlock]:
    """The blocks of chunks; their windows are equally long, so that all have the same kernels."""
    extent, (before, after) = sum(chunks), halo
    stops = list(accumulate(chunks))
    wanted = list(zip([0, *stops], stops, strict=False))
    if len(chunks) == 1:
        return [AxisBlock((0, extent), (0, extent), (0, extent))]
    if periodic:
        longest = max(chunks)
        firsts = [max(0, b - longest) for _, b in wanted]
        return [
            AxisBlock(ends, (a, a + longest), (a - before, a + longest + after))
            for ends, a in zip(wanted, firsts, strict=True)
        ]
    windows = [(max(a - before, 0), min(b + after, extent)) for a, b in wanted]
    longest = max(b - a for a, b in windows)
    blocks = []
    for ends, (_, last) in zip(wanted, windows, strict=True):
        first = max(last - longest, 0)
        last = first + longest
        computed = first + before if first else 0, last - after if last < extent else extent
        blocks.append(AxisBlock(ends, computed, (first, last)))
    return blocks


def pieces(window: Ends, chunks: Sequence[int]) -> Iterator[Piece]:
    """Where the points of a window lie; those outside of the axis are counted from its other end."""
    extent, at = sum(chunks), window[0]
    stops = list(accumulate(chunks))
    while at < window[1]:
        inside = at % extent
        chunk = next(k for k, stop in enumerate(stops) if inside < stop)
        first = stops[chunk] - chunks[chunk]
        count = min(stops[chunk] - inside, window[1] - at)
        start = at - window[0]
        yield Piece(chunk, slice(inside - first, inside - first + count), slice(start, start + count))
        at += count
