"""The chunks of a grid: as large as memory allows, of one shape, aligned with the chunks of stores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product

from gpuop.base.records import dataclass
from gpuop.base.system import physical_memory
from gpuop.fusion.windows.axis_blocks import GridBlocks
from gpuop.fusion.windows.footprint import Footprint, Place
from gpuop.runtime.devices import current

NEAR, FAR = 1 << 26, 1 << 30  # bytes of a window on a CPU, for its caches, and on a GPU
# computed points for each wanted one, above which windows grow, up to so many times as large
LITTLE, LARGER = 1.25, 4
SHARE = 32  # a window may use at most one part in so many of the device's memory


@dataclass(frozen=True)
class Chunking:
    """A grid in chunks; the last ones along an axis may be shorter.

    Attributes:
        needed: the footprint of windows.
        chunk: the extents of a chunk.
    """

    needed: Footprint
    chunk: Place

    @cached_property
    def blocks(self) -> GridBlocks:
        """The computed points of each chunk."""
        each = zip(self.chunk, self.needed.grid, strict=True)
        return GridBlocks(self.needed, [tuple(min(c, n - a) for a in range(0, n, c)) for c, n in each])

    @property
    def counts(self) -> Place:
        """The number of chunks along each axis."""
        return tuple(map(len, self.blocks.axes))

    def places(self) -> Iterator[Place]:
        """Give the chunks, by their numbers along each axis, in memory order."""
        return product(*map(range, self.counts))

    def points(self, place: Place) -> tuple[Place, Place]:
        """Return the first point of a chunk and its end."""
        start, stop = zip(*(block.wanted for block in self.blocks.at(place)), strict=True)
        return start, stop

    def computed(self, place: Place) -> tuple[Place, Place]:
        """Return the computed points of a chunk: its points, and more at the grid's ends, so that all windows have one shape."""
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
        """Return the share of computed points that are not wanted: halos, and the filling of short chunks."""
        return self.blocks.overhead - 1


def _window(needed: Footprint, chunk: Sequence[int]) -> Place:
    each = zip(chunk, needed.halo, needed.grid, strict=True)
    return tuple(min(c + a + b, n) if c < n else n for c, (a, b), n in each)


def choose_chunks(needed: Footprint, point: int, units: Sequence[int], near: int, most: int) -> Chunking:
    """Return chunks whose windows fit into memory: those with the fewest recomputed points; of equal ones, longer rows.

    Args:
        point: bytes of memory for each point.
        units: multiples for chunks, besides work-groups.
        near, most: bytes of a window, and the limit where larger windows recompute fewer points.
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
    """Return the number that windows' ends are multiples of along an axis."""
    return needed.multiples.get(axis, (1, ""))[0]


def _multiples(unit: int, extent: int) -> Iterator[int]:
    """Return multiples of a store's chunk (1, 2, 4 … times), and the whole axis."""
    size = max(unit, 1)
    while size < extent:
        yield size
        if size * 3 // 2 % max(unit, 1) == 0 and size * 3 // 2 < extent and size > 1:
            yield size * 3 // 2
        size *= 2
    yield extent


def window_bytes() -> tuple[int, int]:
    """Return the bytes of a window on the current device, and the most that it may have."""
    backend = current()
    on_cpu = backend.target.device == "cpu" or not backend.total_memory
    most = memory() // SHARE
    near = min(most, NEAR if on_cpu else FAR)
    return near, min(most, LARGER * near)


def memory() -> int:
    """Return the bytes of the current device's memory, or of the host's if the device does not report them."""
    return current().total_memory or physical_memory()
