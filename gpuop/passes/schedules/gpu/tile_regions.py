"""Regions of a tile: the points of each part of a chain that a group computes, their threads, and their local memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce

from gpuop.base.records import dataclass
from gpuop.ir.analysis.footprints import Surrounding
from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder, constant
from gpuop.ir.extents import extent
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, Expr, FieldParam
from gpuop.ir.types import INT, Type
from gpuop.passes.instantiate import point_at
from gpuop.passes.schedules.common.register_windows import MIRRORED
from gpuop.passes.schedules.gpu.tile_chain import TileChain, TilePart, loaded

Span = tuple[int, int]  # numbers of points before and behind the tile
THREADS = 256  # of a work-group
WARP = 32  # threads that run in lockstep
WHOLE = 128  # bytes of memory that a warp reads in one access
LINE = 64  # bytes of a row that are read in vain, since memory is read in lines
LOADED = 4  # cost of a load, in operations
WAITING = 0.15  # cost of a thread that waits for others of its group, in operations
SPARE = 4  # rows by which strips may exceed `tall`
MOST_HELD = 96  # upper limit of the values of a window, for lack of registers
WINDOW = 64  # values of a window that a strip keeps in registers
SMALL = 4  # bytes: narrower results are written several at a time


@dataclass(frozen=True)
class Halo:
    """Points around a tile."""

    rows: Span = (0, 0)
    columns: Span = (0, 0)

    def along(self, axis: str) -> Span:
        return self.rows if axis == "row" else self.columns

    def joined(self, other: Halo) -> Halo:
        return Halo(_join(self.rows, other.rows), _join(self.columns, other.columns))

    def around(self, near: Surrounding) -> Halo:
        """The halo of a field that a region with this halo reads."""
        spans = [(max(-low, 0), max(high, 0)) for low, high in zip(near.low, near.high, strict=True)]
        rows = spans[-2] if len(spans) > 1 else (0, 0)
        (above, below), (left, right), columns = self.rows, self.columns, spans[-1]
        return Halo((above + rows[0], below + rows[1]), (left + columns[0], right + columns[1]))

    @property
    def mirrored(self) -> Halo:
        return Halo((max(self.rows),) * 2, (max(self.columns),) * 2)

    @property
    def far(self) -> tuple[int, int]:
        return max(self.rows), max(self.columns)


@dataclass(frozen=True)
class Region:
    """The points of a part that a group computes: the tile and a halo.

    Attributes:
        needed: the halo that other parts read; symmetric where a border mirrors.
        computed: the halo that strips cover; the points beyond `needed` are never used.
        strip: rows and columns that a thread computes together.
        count: numbers of strips down and across.
    """

    needed: Halo
    computed: Halo
    strip: tuple[int, int]
    count: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int]:
        return self.count[0] * self.strip[0], self.count[1] * self.strip[1]


class Tiles:
    """The regions of all parts, and the local memory of their fields.

    Args:
        rows, columns: extents of a tile.
        tall: rows, about, of a strip that shares its loads down a column.
        lanes: columns of a strip that shares its loads along a row; they are accessed at once.
        wide: whether groups of so many columns are aligned in memory.
    """

    def __init__(self, chain: TileChain, rows: int, columns: int, tall: int, lanes: int, wide: bool) -> None:
        self.chain, self.rows, self.columns = chain, rows, columns
        self.tall, self.lanes, self.wide = tall, lanes, wide
        self.regions: list[Region] = []
        self.arrays: dict[FieldParam, Array] = {}
        self.of: dict[FieldParam, Region] = {}
        needed = {param: Halo() for param in chain.local_fields}
        computed = dict(needed)
        aligned: set[FieldParam] = set()  # fields that strips of several columns read
        for part in reversed(chain.parts):
            fields = [param for param in part.kernel.written if param in needed and part.rule is not None]
            halos = [needed[field] for field in fields], [computed[field] for field in fields]
            region = self._region(part, *halos, not aligned.isdisjoint(fields))
            self.regions.insert(0, region)
            aligned.update(part.near if region.strip[1] > 1 else ())
            for field, near in part.near.items():
                if field in needed:
                    needed[field] = needed[field].joined(region.needed.around(near))
                    computed[field] = computed[field].joined(region.computed.around(near))
            for param in fields:
                self.of[param] = region
                planes = param.type.planes if chain.source.domain.elements == 1 else 1
                self.arrays[param] = Array(param.hint, Type(param.type.storage, planes), region.shape, "local")

    def _region(self, part: TilePart, needed: list[Halo], computed: list[Halo], aligned: bool) -> Region:
        need, covered = (reduce(Halo.joined, halos, Halo()) for halos in (needed, computed))
        if part.rule is not None and part.rule[0] in MIRRORED:
            need = need.mirrored
        covered = covered.joined(need)
        rows, columns = self.strip(part)
        down = self.rows + sum(covered.rows)
        step = self.lanes if aligned else columns
        left = -(-covered.columns[0] // step) * step
        across = -(-(left + self.columns + covered.columns[1]) // step) * step
        if rows > 1:
            heights = [n for n in range(1, min(rows + SPARE, down) + 1) if part.rule is not None or down % n == 0]
            rows = min(heights, key=lambda n: self._time(part, (n, columns), (down, across)))
        count = -(-down // rows), across // columns
        above = covered.rows[0]
        halo = Halo((above, count[0] * rows - self.rows - above), (left, across - self.columns - left))
        return Region(need, halo, (rows, columns), count)

    def _time(self, part: TilePart, strip: tuple[int, int], shape: tuple[int, int]) -> float:
        """The cost of a part for a group whose threads compute such strips, in operations: whole warps, and waiting."""
        count = -(-shape[0] // strip[0]) * -(-shape[1] // strip[1])
        warps, turns = -(-count // WARP) * WARP, -(-count // THREADS) * THREADS
        return (warps + WAITING * turns) * self._work(part, strip)

    def _work(self, part: TilePart, strip: tuple[int, int]) -> int:
        """The cost of a strip for a thread, in operations."""
        points, loads = strip[0] * strip[1], 0
        for near in part.near.values():
            rows, columns = loaded(near, self.lanes if strip[1] > 1 else 1)
            values = (strip[0] + rows[1] - rows[0]) * (strip[1] + columns[1] - columns[0])
            loads += values if values <= MOST_HELD else values * points
        return points * part.work + LOADED * loads

    def strip(self, part: TilePart) -> tuple[int, int]:
        """The rows and columns that a thread computes together: along the axis of the windows, so that these share loads."""
        across, down = (part.reach(axis) for axis in (-1, -2))
        if part.reads_in_loops:
            return 1, 1
        if not across and not self.wide:
            return self.tall, 1
        if not down and (self.wide or across):
            return 1, self.lanes
        small = min((p.type.storage.bits // 8 for p in part.kernel.written), default=SMALL) < SMALL
        if small and part.rule is None and self.wide and (down + self.tall) * (across + self.lanes) <= WINDOW:
            return self.tall, self.lanes
        return self.tall, 1

    def is_aligned(self, part: TilePart, region: Region) -> bool:
        """Return whether rows of the tile, without its halo, begin and end at lines of the memory that is read."""
        fields = [field for field in part.near if field not in self.arrays]
        lines = all(self.columns * field.type.storage.bits // 8 % WHOLE == 0 for field in fields)
        return self.wide and region.strip[1] == 1 and bool(fields) and lines and any(region.computed.columns)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def computed(self) -> float:
        """The operations for a point of a tile, those for the halo included."""
        each = zip(self.chain.parts, self.regions, strict=True)
        return sum(part.work * math.prod(region.shape) for part, region in each) / (self.rows * self.columns)

    @property
    def cost(self) -> float:
        """The cost of a group for a point of its tile, in operations: loads, and threads that wait or do nothing, included."""
        each = zip(self.chain.parts, self.regions, strict=True)
        return sum(self._time(part, region.strip, region.shape) for part, region in each) / (self.rows * self.columns)

    @property
    def bytes_read(self) -> float:
        """The bytes of fields that a group reads for a point of its tile, in whole cache lines."""
        return sum(nbytes * layers for nbytes, layers in self._reads())

    @property
    def bytes_beside(self) -> float:
        """The bytes of these in other layers than the first, which threads of a group do not share."""
        return sum(nbytes * (layers - 1) for nbytes, layers in self._reads())

    def _reads(self) -> Iterator[tuple[float, int]]:
        """For each field that a part reads: the bytes of one layer for a point of the tile, and the number of layers."""
        for part, region in zip(self.chain.parts, self.regions, strict=True):
            for field, near in part.near.items():
                if field not in self.arrays:
                    halo = region.computed.around(near)
                    line = (self.columns + sum(halo.columns)) * field.type.storage.bits // 8 + LINE
                    planes = field.type.planes if self.chain.source.domain.elements == 1 else 1
                    layers = math.prod(b - a + 1 for a, b in zip(near.low[:-2], near.high[:-2], strict=True))
                    yield (self.rows + sum(halo.rows)) * line * planes / (self.rows * self.columns), layers


def _join(a: Span, b: Span) -> Span:
    return max(a[0], b[0]), max(a[1], b[1])


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
    strip: tuple[Expr, Expr] = (constant(0, INT), constant(0, INT))


class Frame:
    """The tile of a group, and the coordinates of its points.

    Along an axis, for a tile that begins at `first` and has a halo of `before` points before it:

        region   0        before                          (counted from the start of the region)
        tile    -before   0                               (counted from the start of the tile)
        grid     first - before   first                   (may lie outside of the grid)
        real     the point of the grid that the border names for `grid`

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
        tile: Coordinates = {}
        grid: Coordinates = {}
        real: Coordinates = {}
        tests: list[Expr] = []
        for axis in self.axes:
            before, _ = region.computed.along(axis)
            tile[axis] = b.apply("sub", at[axis], before)
            grid[axis] = real[axis] = b.apply("add", self.first[axis], tile[axis])
            if not inner:
                halo = before, self.behind(region, axis)
                real[axis] = self._real(part, axis, grid[axis], halo, tests, b)
                tile[axis] = b.apply("sub", real[axis], self.first[axis])
        return TilePoint(at, tile, grid, real, tuple(tests))

    def _real(self, part: TilePart, axis: str, at: Expr, halo: tuple[int, int], tests: list[Expr], b: Builder) -> Expr:
        """The coordinate that the border names for one that may lie outside of the grid."""
        before, behind = halo
        n, end = self.source.domain.extent(axis), extent(self.source, axis)
        at = b.apply("min", at, self.beyond(axis, behind, b))  # points further out are not needed
        if part.rule is not None and self.tiles.chain.virtual:
            return at
        border = part.rule[0] if part.rule is not None else "clamp"
        coordinate = Coordinate(at, end, n, -before, n - 1 + behind)
        test = inside(b, coordinate) if border == "fill" else None
        tests += [] if test is None else [test]
        at = place(b, coordinate, border)
        mirrored = border in MIRRORED and (before or behind)
        return place(b, Coordinate(at, end, n, -1, n), "clamp") if mirrored else at  # shows its range

    def behind(self, region: Region, axis: str) -> int:
        """The number of points behind the grid that any group needs of a region."""
        return region.needed.along(axis)[1]

    def beyond(self, axis: str, more: int, b: Builder) -> Expr:
        """The coordinate so many points behind the last one of the grid."""
        op, n = ("add", more - 1) if more > 1 else ("sub", 1 - more)
        return b.apply(op, extent(self.source, axis), n) if n else extent(self.source, axis)

    def point(self, at: Coordinates) -> tuple[Expr, ...]:
        """The coordinates of a point of the grid."""
        return point_at(self.source, at)
