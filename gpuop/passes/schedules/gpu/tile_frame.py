"""Coordinates of the points of tiles.

Along an axis, for a tile that begins at `first` and has a halo of `before` points before it:

    region   0        before                          (counted from the start of the region)
    tile    -before   0                               (counted from the start of the tile)
    grid     first - before   first                   (may lie outside of the grid)
    real     the point of the grid that the border names for `grid`
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Expr, Index
from gpuop.ir.types import INT
from gpuop.passes.schedules.gpu.tile_chain import MIRRORS, TilePart
from gpuop.passes.schedules.gpu.tile_regions import Region, Tiles

Coordinates = dict[str, Expr]  # by axis


@dataclass(frozen=True)
class TilePoint:
    """The coordinates of a point that a thread computes.

    Attributes:
        region: from the start of the region.
        tile: from the start of the tile, for the point `real`.
        grid: in the grid, or outside of it.
        real: the point of the grid that the border names.
        inside: tests of whether it is in the grid, where the border fills with a number.
        strip: row and column in the strip.
    """

    region: Coordinates
    tile: Coordinates
    grid: Coordinates
    real: Coordinates
    inside: tuple[Expr, ...] = ()
    strip: tuple[Expr, Expr] = field(default=(constant(0, INT), constant(0, INT)))


class Frame:
    """The tile of a group.

    Attributes:
        first: its first coordinate along each axis; set when the head of the kernel is built.
    """

    def __init__(self, kernel: Kernel, tiles: Tiles) -> None:
        self.source, self.tiles = kernel, tiles
        self.axes = kernel.domain.axes[-2:]
        self.size = {"row": tiles.rows, "column": tiles.columns}
        self.first: Coordinates = {}

    def place(self, part: TilePart, region: Region, at: Coordinates, inner: bool, b: Builder) -> TilePoint:
        """A point of a region; `inner` for a group in the interior, which has no points outside of the grid."""
        computed = {"row": region.computed.rows, "column": region.computed.columns}
        tile: Coordinates = {}
        grid: Coordinates = {}
        real: Coordinates = {}
        tests: list[Expr] = []
        for axis in self.axes:
            before = computed[axis][0]
            tile[axis] = b.apply("sub", at[axis], before)
            grid[axis] = real[axis] = b.apply("add", self.first[axis], tile[axis])
            if not inner:
                halo = before, self.last(region, axis) - self.source.domain.extent(axis) + 1
                real[axis] = self._real(part, axis, grid[axis], halo, tests, b)
                tile[axis] = b.apply("sub", real[axis], self.first[axis])
        return TilePoint(at, tile, grid, real, tuple(tests))

    def _real(self, part: TilePart, axis: str, at: Expr, halo: tuple[int, int], tests: list[Expr], b: Builder) -> Expr:
        """The coordinate that the border names for one that may lie outside of the grid."""
        before, behind = halo
        n = self.source.domain.extent(axis)
        at = b.apply("min", at, n - 1 + behind)  # points further out are not needed
        if part.rule is not None and self.tiles.chain.virtual:
            return at
        border = part.rule[0] if part.rule is not None else "clamp"
        coordinate = Coordinate(at, constant(n, INT), n, -before, n - 1 + behind)
        test = inside(b, coordinate) if border == "fill" else None
        tests += [] if test is None else [test]
        at = place(b, coordinate, border)
        mirrored = border in MIRRORS and (before or behind)
        return place(b, Coordinate(at, constant(n, INT), n, -1, n), "clamp") if mirrored else at  # shows its range

    def last(self, region: Region, axis: str) -> int:
        """The last point along an axis that any group needs of a region."""
        halo = {"row": region.needed.rows, "column": region.needed.columns}[axis]
        return self.source.domain.extent(axis) - 1 + halo[1]

    def point(self, at: Coordinates) -> tuple[Expr, ...]:
        """The coordinates of a point of the grid."""
        return tuple(at.get(axis, Index("global", axis)) for axis in self.source.domain.axes)
