"""Square tiles of transposes, and their threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuop.ir.build import Builder
from gpuop.ir.nodes import Array, Expr, For, Index, Stmt
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import Type
from gpuop.ir.visit import blocks


@dataclass(frozen=True)
class Tiling:
    """Square tiles, and their threads.

    Attributes:
        axis: the axis of the grid along which rows of the transposed inputs lie.
        size: the rows, and the columns, of a tile.
        lanes: the neighbours of one access.
        rows, columns: the extents of a work-group; with 1 by 1, a thread has tiles of its own.
        align: each row of a tile of the outputs begins in memory at a multiple of so many elements.
    """

    axis: str
    size: int
    lanes: int
    rows: int
    columns: int
    align: int

    @property
    def depth(self) -> int:
        """The rows of a tile of an input: more than `size` where rows of outputs begin up to `align` - 1 elements earlier."""
        return -(-(self.size + self.align - 1) // self.rows) * self.rows

    @property
    def words(self) -> bool:
        """Whether the lanes of an access are a word of small elements, in rows that are not aligned for it."""
        return self.align > 1 < self.lanes

    def step(self, axis: str) -> int:
        """The distance between tiles along an axis of the grid: a word less than `size` where rows begin within a word."""
        return self.size - (self.lanes if self.words and axis == self.axis else 0)

    @property
    def shared(self) -> bool:
        return self.rows * self.columns > 1

    def filled_from(
        self, grid: Domain, away: Mapping[str, Expr], first: Mapping[str, Expr], b: Builder, axis: str, mirrored: bool
    ) -> Expr:
        """A coordinate of an input; a mirrored one is counted from the end of its axis of the grid.

        Args:
            away: the distance from the start of the tile along `self.axis`; the coordinate of the grid along columns.
            first: the first point of the tile by axis. A mirrored row begins at its last point.
        """
        extent = grid.extent(axis)
        if axis == self.axis:
            start = b.apply("sub", extent - self.size, first[axis]) if mirrored else first[axis]
            return b.apply("add", start, away[axis])
        here = away.get(axis, Index("global", axis))
        return b.apply("sub", extent - 1, here) if mirrored else here


def word(kind: Type) -> int:
    """The number of elements in a word of a bank of local memory."""
    return max(4 // (Array("", kind, ()).nbytes), 1)


def copies(stmt: Stmt) -> int:
    """The number of statements of a loop that is unrolled."""
    turns = stmt.unroll if isinstance(stmt, For) and isinstance(stmt.unroll, int) else 1
    return sum(map(copies, (inner for block in blocks(stmt) for inner in block))) * turns + 1
