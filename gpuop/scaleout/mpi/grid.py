"""The points of each rank on a grid, and the owners of the points around them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from gpuop.base.errors import SemanticError
from gpuop.base.records import dataclass
from gpuop.fusion.windows.footprint import Footprint, Place
from gpuop.fusion.windows.gather import pieces

Region = tuple[tuple[int, int], ...]  # for each axis the first point and the end


@dataclass(frozen=True)
class RankPiece:
    """Halo points of a rank: their owner, and their places; `there` is counted from the owner's window."""

    owner: int
    own: Region
    there: Region


@dataclass(frozen=True)
class RankGrid:
    """The parts of a grid, as equal as possible along each axis; ranks in row-major order.

    Attributes:
        grid: the extents.
        counts: the parts along each axis.
    """

    grid: Place
    counts: Place

    @staticmethod
    def of(grid: Place, ranks: int, axes: Sequence[int]) -> RankGrid:
        """Return parts for so many ranks along some axes, with the fewest points between them.

        Raises:
            SemanticError: there are fewer points.
        """
        choices = [c for c in _counts(ranks, len(axes)) if all(n <= grid[a] for n, a in zip(c, axes, strict=True))]
        if not choices:
            size = "×".join(str(grid[axis]) for axis in axes)
            raise SemanticError(
                f"{ranks} ranks do not each get a part of {size} points, along axes {tuple(axes)} of the grid {grid}; start "
                "fewer, or name more `axes=`"
            )
        best = min(choices, key=lambda c: sum((n - 1) / grid[a] for n, a in zip(c, axes, strict=True)))
        counts = dict(zip(axes, best, strict=True))
        return RankGrid(grid, tuple(counts.get(axis, 1) for axis in range(len(grid))))

    @property
    def ranks(self) -> int:
        return math.prod(self.counts)

    def own(self, rank: int) -> tuple[Place, Place]:
        """Return the first point of a rank's part, and its end."""
        place, left = list[int](), rank
        for count in reversed(self.counts):
            place.insert(0, left % count)
            left //= count
        ends = [self._bounds(axis, at) for axis, at in enumerate(place)]
        return tuple(a for a, _ in ends), tuple(b for _, b in ends)

    def around(self, rank: int, needed: Footprint) -> Iterator[RankPiece]:
        """Return the points of other ranks in a rank's window, or of its own if the grid wraps around."""
        own = tuple(zip(*self.own(rank), strict=True))
        window = needed.window(*self.own(rank))
        for parts in product(*(self._along(axis, *ends) for axis, ends in enumerate(window))):
            there = tuple(place for _, _, place in parts)
            if there != own:
                owner = 0
                for (at, _, _), count in zip(parts, self.counts, strict=True):
                    owner = owner * count + at
                yield RankPiece(owner, tuple(place for _, place, _ in parts), there)

    def _bounds(self, axis: int, at: int) -> tuple[int, int]:
        n, count = self.grid[axis], self.counts[axis]
        return at * n // count, (at + 1) * n // count

    def _along(self, axis: int, start: int, stop: int) -> list[tuple[int, tuple[int, int], tuple[int, int]]]:
        """Return the points along an axis: their owner, their place there, and in the window."""
        ranges = []
        for at, first, last in pieces(start, stop, self.grid[axis]):
            for owner in range(self.counts[axis]):
                a, b = self._bounds(axis, owner)
                a, b = max(a, first), min(b, last)
                if a < b:
                    ranges.append((owner, (a, b), (start + at + a - first, start + at + b - first)))
        return ranges


def _counts(ranks: int, axes: int) -> Iterator[Place]:
    """Give all factorizations of a number of parts over a number of axes."""
    if axes == 1:
        yield (ranks,)
        return
    for first in range(1, ranks + 1):
        if ranks % first == 0:
            yield from ((first, *more) for more in _counts(ranks // first, axes - 1))
