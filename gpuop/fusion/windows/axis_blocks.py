"""Blocks along the axes of a grid, what is computed for each, and where in chunks lies what that needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod

from gpuop.fusion.windows.footprint import Footprint

Ends = tuple[int, int]
Chunks = tuple[int, ...]


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
    def points(self) -> int:
        return self.window[1] - self.window[0]


@dataclass(frozen=True)
class ChunkPiece:
    """Some points of a window, in one chunk: `places` of them in the chunk, and `there` in the window."""

    chunk: int
    places: slice
    there: slice


class GridBlocks:
    """The blocks of a grid, of windows that are equally long, so that all have the same kernels.

    Along axes with work-groups only points of blocks are computed.

    Args:
        chunks: along each axis.

    Attributes:
        axes: the blocks along each axis.
    """

    def __init__(self, footprint: Footprint, chunks: Sequence[Chunks]) -> None:
        self.chunks = tuple(chunks)
        periodic, groups = footprint.periodic, footprint.multiples
        self.axes = [
            _axis_blocks(each, footprint.halo[axis], axis in periodic, axis not in groups)
            for axis, each in enumerate(chunks)
        ]

    @cached_property
    def needed(self) -> list[list[list[ChunkPiece]]]:
        """For each axis and block where the points of the window lie."""
        axes = zip(self.axes, self.chunks, strict=True)
        return [[list(_pieces(block.window, each)) for block in blocks] for blocks, each in axes]

    @property
    def overhead(self) -> float:
        """Points of windows for each that is wanted: halos, and what windows are lengthened by."""
        axes = zip(self.axes, self.chunks, strict=True)
        return float(prod(sum(block.points for block in blocks) / sum(each) for blocks, each in axes))

    def at(self, place: Sequence[int]) -> list[AxisBlock]:
        return [self.axes[axis][k] for axis, k in enumerate(place)]


def _axis_blocks(chunks: Chunks, halo: Ends, periodic: bool, alike: bool) -> list[AxisBlock]:
    extent, (before, after) = sum(chunks), halo
    stops = list(accumulate(chunks))
    wanted = list(zip([0, *stops], stops, strict=False))
    if len(chunks) == 1:
        return [AxisBlock((0, extent), (0, extent), (0, extent))]
    if periodic:
        firsts = [max(0, b - max(chunks)) if alike else a for a, b in wanted]
        computed = [(a, a + max(chunks) if alike else ends[1]) for a, ends in zip(firsts, wanted, strict=True)]
        windows = [(a - before, b + after) for a, b in computed]
        return [AxisBlock(*each) for each in zip(wanted, computed, windows, strict=True)]
    windows = [(max(a - before, 0), min(b + after, extent)) for a, b in wanted]
    if not alike:
        return [AxisBlock(ends, ends, window) for ends, window in zip(wanted, windows, strict=True)]
    longest = max(b - a for a, b in windows)
    blocks = []
    for ends, (_, stop) in zip(wanted, windows, strict=True):
        first = max(stop - longest, 0)
        last = first + longest
        inside = first + before if first else 0, last - after if last < extent else extent
        blocks.append(AxisBlock(ends, inside, (first, last)))
    return blocks


def in_multiples(chunks: Chunks, of: int) -> Chunks:
    """Chunks like these whose ends are multiples of a number, but for the last one."""
    extent = sum(chunks)
    stops = {min(-(-stop // of) * of, extent) for stop in accumulate(chunks)}
    return tuple(b - a for a, b in pairwise([0, *sorted(stops)]))


def _pieces(window: Ends, chunks: Chunks) -> Iterator[ChunkPiece]:
    """Where the points of a window lie; those outside of the axis are counted from its other end."""
    extent, at = sum(chunks), window[0]
    stops = list(accumulate(chunks))
    while at < window[1]:
        inside = at % extent
        chunk = next(k for k, stop in enumerate(stops) if inside < stop)
        first = stops[chunk] - chunks[chunk]
        count = min(stops[chunk] - inside, window[1] - at)
        start = at - window[0]
        yield ChunkPiece(chunk, slice(inside - first, inside - first + count), slice(start, start + count))
        at += count
