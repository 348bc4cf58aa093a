"""Into which parts a grid is cut: as large as memory allows, of one shape, by the chunks that stores have."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from gpuop.fusion.windows.axis_blocks import GridBlocks
from gpuop.fusion.windows.footprint import Footprint, Place
from gpuop.runtime.devices import current

NEAR, FAR = 1 << 26, 1 << 30  # bytes of a window on a CPU, whose caches are small, and on a GPU
# times the points that are wanted; where more are computed, windows are up to so many times as large
LITTLE, LARGER = 1.25, 4
SHARE = 32  # of a device's memory a window may have at most one part in so many


@dataclass(frozen=True)
class Chunking:
    """A grid in chunks; the last ones along an axis may be shorter.

    Attributes:
        needed: what windows need.
        chunk: the extents of a chunk.
    """

    needed: Footprint
    chunk: Place

    @cached_property
    def blocks(self) -> GridBlocks:
        """What is computed for each chunk."""
        each = zip(self.chunk, self.needed.grid, strict=True)
        return GridBlocks(self.needed, [tuple(min(c, n - a) for a in range(0, n, c)) for c, n in each])

    @property
    def counts(self) -> Place:
        """Chunks along each axis."""
        return tuple(map(len, self.blocks.axes))

    def places(self) -> Iterator[Place]:
        """The chunks, by their numbers along each axis, in the order of memory."""
        return product(*map(range, self.counts))

    def points(self, place: Place) -> tuple[Place, Place]:
        """The points of a chunk: the first one, and the one behind the last."""
        start, stop = zip(*(block.wanted for block in self.blocks.at(place)), strict=True)
        return start, stop

    def computed(self, place: Place) -> tuple[Place, Place]:
        """What is computed for a chunk: its points, and at the grid's ends some more, so that all windows have one shape."""
        start, stop = zip(*(block.computed for block in self.blocks.at(place)), strict=True)
        return start, stop

    def __str__(self) -> str:
        grid, chunk = ("×".join(map(str, each)) for each in (self.needed.grid, self.chunk))
        halo = ", ".join(f"{a}+{b}" for a, b in self.needed.halo)
        share = f"{self.recomputed:.1%} of points recomputed"
        count = math.prod(self.counts)
        return f"{count} chunk{'s' * (count > 1)} of {chunk} of a grid {grid}, halo {halo}, {share}"

    @property
    def recomputed(self) -> float:
        """The points that windows have besides those that are wanted, by these: halos, and what short chunks are filled with."""
        return self.blocks.overhead - 1


def _window(needed: Footprint, chunk: Sequence[int]) -> Place:
    each = zip(chunk, needed.halo, needed.grid, strict=True)
    return tuple(min(c + a + b, n) if c < n else n for c, (a, b), n in each)


def chosen(needed: Footprint, point: int, units: Sequence[int], near: int, most: int) -> Chunking:
    """Chunks whose windows fit into memory: those of which the least is recomputed; of alike ones, of longer rows.

    Args:
        point: bytes of memory for each point.
        units: what chunks are multiples of, besides work-groups.
        near, most: bytes of a window, and those that it may have where little more is recomputed for it.
    """
    units = [math.lcm(max(u, 1), multiple(needed, axis)) for axis, u in enumerate(units)]
    sizes = [
        [*_multiples(u, n)] if a not in needed.whole else [n]
        for a, (u, n) in enumerate(zip(units, needed.grid, strict=True))
    ]

    def overhead(chunk: Place, window: Place) -> float:
        return math.prod(-(-n // c) * w / n for w, c, n in zip(window, chunk, needed.grid, strict=True))

    def cost(chunk: Place) -> tuple[bool, float, Place]:
        window = _window(needed, chunk)
        nbytes = float(point * math.prod(window))
        least = nbytes if nbytes > near else int(20 * overhead(chunk, window))
        return nbytes > near, least, tuple(-n for n in chunk[::-1])

    while True:
        best = min(product(*sizes), key=cost)
        if overhead(best, _window(needed, best)) <= LITTLE or 2 * near > most:
            return Chunking(needed, best)
        near *= 2


def multiple(needed: Footprint, axis: int) -> int:
    """What windows' ends are multiples of along an axis."""
    return needed.multiples.get(axis, (1, ""))[0]


def _multiples(unit: int, extent: int) -> Iterator[int]:
    """Multiples of a store's chunk: of one and twice as many, and so on, and the axis as it is."""
    size = max(unit, 1)
    while size < extent:
        yield size
        if size * 3 // 2 % max(unit, 1) == 0 and size * 3 // 2 < extent and size > 1:
            yield size * 3 // 2
        size *= 2
    yield extent


def window_bytes() -> tuple[int, int]:
    """The bytes that a window has on the device in use, and that it may have."""
    backend = current()
    on_cpu = backend.target.device == "cpu" or not backend.total_memory
    most = memory() // SHARE
    near = min(most, NEAR if on_cpu else FAR)
    return near, min(most, LARGER * near)


def memory() -> int:
    """The bytes of memory that the device in use has; the host's where it does not say so."""
    return current().total_memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
