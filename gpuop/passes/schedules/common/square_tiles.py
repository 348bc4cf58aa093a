"""Square tiles of transposes, and who handles them."""

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
    """Square tiles, and who handles them.

    Attributes:
        axis: of the grid, along which the rows of what is read transposed lie.
        size: rows and columns of a tile.
        lanes: neighbours that are accessed at once.
        rows, columns: threads of a work-group; a thread alone has tiles of its own.
        align: elements at a multiple of which each row of a tile of the outputs begins in memory; those of lanes are aligned.
    """

    axis: str
    size: int
    lanes: int
    rows: int
    columns: int
    align: int

    @property
    def depth(self) -> int:
        """Rows of a tile of what is read: more than columns, as rows of outputs begin up to `align` elements earlier."""
        return -(-(self.size + self.align - 1) // self.rows) * self.rows

    @property
    def words(self) -> bool:
        """Whether lanes are words of rows that are not aligned for them."""
        return self.align > 1 < self.lanes

    def step(self, axis: str) -> int:
        """From one tile to the next along an axis of the grid: a word less where rows begin in the middle of one."""
        return self.size - (self.lanes if self.words and axis == self.axis else 0)

    @property
    def shared(self) -> bool:
        return self.rows * self.columns > 1

    def filled_from(
        self, grid: Domain, away: Mapping[str, Expr], first: Mapping[str, Expr], b: Builder, axis: str, mirrored: bool
    ) -> Expr:
        """A coordinate of what is read, which is counted from the end of an axis of the grid where it is mirrored.

        Args:
            away: how far into the tile along `self.axis`; the grid's coordinate along the columns.
            first: where the tile begins. A mirrored row of it begins where its last point is.
        """
        extent = grid.extent(axis)
        if axis == self.axis:
            start = b.apply("sub", extent - self.size, first[axis]) if mirrored else first[axis]
            return b.apply("add", start, away[axis])
        here = away.get(axis, Index("global", axis))
        return b.apply("sub", extent - 1, here) if mirrored else here


def word(kind: Type) -> int:
    """How many elements a bank of local memory has in a row."""
    return max(4 // (Array("", kind, ()).nbytes), 1)


def copies(stmt: Stmt) -> int:
    """The statements that a loop becomes when it is expanded."""
    turns = stmt.unroll if isinstance(stmt, For) and isinstance(stmt.unroll, int) else 1
    return sum(map(copies, (inner for block in blocks(stmt) for inner in block))) * turns + 1
