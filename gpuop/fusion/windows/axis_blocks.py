"""Blocks along the axes of a grid: the points that are computed for each, and the chunks that have its window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod

from gpuop.base.records import dataclass
from gpuop.fusion.windows.footprint import Footprint

Ends = tuple[int, int]
Chunks = tuple[int, ...]


@dataclass(frozen=True)
class AxisBlock:
    """A block along an axis.

    Attributes:
        wanted: the points of the block: the first, and the one after the last.
        computed: the points that are computed for it; more than `wanted` if its window is lengthened to that of other blocks.
        window: the points of arguments that these need; along a periodic axis they may be below 0 or after the last.
    """

    wanted: Ends
    computed: Ends
    window: Ends

    @property
    def points(self) -> int:
        return self.window[1] - self.window[0]


@dataclass(frozen=True)
class ChunkPiece:
    """The points of a window in one chunk: `places` are their slice in the chunk, `there` that in the window."""

    chunk: int
    places: slice
    there: slice


class GridBlocks:
    """The blocks of a grid, with windows of equal length, so that all have the same kernels.

    Windows along axes with work-groups are not lengthened.

    Args:
        chunks: the chunks along each axis.

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
        """The pieces of the window in chunks, for each axis and block."""
        axes = zip(self.axes, self.chunks, strict=True)
        return [[list(_pieces(block.window, each)) for block in blocks] for blocks, each in axes]

    @property
    def overhead(self) -> float:
        """The ratio of points in windows to wanted points, with halos and lengthened windows."""
        axes = zip(self.axes, self.chunks, strict=True)
        return float(prod(sum(block.points for block in blocks) / sum(each) for blocks, each in axes))

    def at(self, place: Sequence[int]) -> list[AxisBlock]:
        return [self.axes[axis][k] for axis, k in enumerate(place)]


def _axis_blocks(chunks: Chunks, halo: Ends, periodic: bool, alike: bool) -> list[AxisBlock]:
    extent, (before, after) = sum(chunks), halo
    stops = list(accumulate(chunks))
    points = list(zip([0, *stops], stops, strict=False))
    if len(chunks) == 1:
        return [AxisBlock((0, extent), (0, extent), (0, extent))]
    if periodic:
        firsts = [max(0, b - max(chunks)) if alike else a for a, b in points]
        computed = [(a, a + max(chunks) if alike else ends[1]) for a, ends in zip(firsts, points, strict=True)]
        windows = [(a - before, b + after) for a, b in computed]
        return [AxisBlock(*each) for each in zip(points, computed, windows, strict=True)]
    windows = [(max(a - before, 0), min(b + after, extent)) for a, b in points]
    if not alike:
        return [AxisBlock(ends, ends, window) for ends, window in zip(points, windows, strict=True)]
    longest = max(b - a for a, b in windows)
    blocks = []
    for ends, (_, stop) in zip(points, windows, strict=True):
        first = max(stop - longest, 0)
        last = first + longest
        inside = first + before if first else 0, last - after if last < extent else extent
        blocks.append(AxisBlock(ends, inside, (first, last)))
    return blocks


def in_multiples(chunks: Chunks, of: int) -> Chunks:
    """Round the ends of chunks up to multiples of a number, except the last one."""
    extent = sum(chunks)
    stops = {min(-(-stop // of) * of, extent) for stop in accumulate(chunks)}
    return tuple(b - a for a, b in pairwise([0, *sorted(stops)]))


def _pieces(window: Ends, chunks: Chunks) -> Iterator[ChunkPiece]:
    """The pieces of a window in chunks; points outside of the axis wrap around."""
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
