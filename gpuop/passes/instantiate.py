"""Instantiation: copies of a recorded body at points other than the thread's own, for threads that have several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gpuop.base.errors import Loc
from gpuop.ir.extents import extent
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import GRID_AXES, Assign, Block, Declare, Expr, Index, Let, Read, Stmt, Write
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import Shape
from gpuop.ir.visit import Copier, expressions
from gpuop.passes.coarsening_factor import is_own

At = Mapping[str, Callable[[int], Expr]]  # by axis, the coordinate at a distance from a point


class Instance(Copier):
    """Copies the body of a kernel, or some statements of it, at a point. Three methods say how, which subclasses override:

        position    an index   -> the coordinate of the point             default: that of `by_index`, else the thread's own
        loaded      a read     -> the value, loaded from elsewhere        default: None, the field is read
        written     a write    -> its stores to elsewhere                 default: the field is written

    Accesses to the thread's own point get explicit coordinates. All copies share the constant tables, whose declarations go.
    """

    def __init__(self, kernel: Kernel, by_index: Mapping[Index, Expr] | None = None, body: Block | None = None) -> None:
        super().__init__(kernel.body if body is None else body)
        self.kernel, self.by_index = kernel, by_index or {}
        for stmt in kernel.shared("constant"):
            self.arrays.pop(stmt.array, None)

    def position(self, index: Index) -> Expr:
        return self.by_index.get(index, index)

    def loaded(self, read: Read, loc: Loc | None, out: list[Stmt]) -> Expr | None:
        """The value of a read; the statements that load it go to `out`."""
        return None

    def written(self, write: Write) -> Block:
        if write.point is None:
            write = replace(write, point=own_point(len(write.field.type.field_shape)))
        return super().stmt(write)

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Index):
            return self.position(expr)
        if isinstance(expr, Read) and expr.point is None and is_own(expr.field):
            expr = replace(expr, point=own_point(len(expr.field.type.field_shape)))
        return super().expr(expr)

    def stmt(self, stmt: Stmt) -> Block:
        match stmt:
            case Declare(array=array) if array.space == "constant":
                return ()
            case Let(value=Read() as read) | Assign(value=Read() as read):
                out: list[Stmt] = []
                value = self.loaded(read, stmt.loc, out)
                return super().stmt(stmt) if value is None else (*out, self.renamed(replace(stmt, value=value)))
            case Write():
                return self.written(stmt)
        return super().stmt(stmt)


def positions(kernel: Kernel) -> list[Index]:
    """The position indices that a kernel uses, and those of its point."""
    indices = [e for e in expressions(kernel.body) if isinstance(e, Index) and e.axis in GRID_AXES]
    return list(dict.fromkeys([*indices, *(Index("global", axis) for axis in kernel.domain.axes)]))


def indices_at(kernel: Kernel, at: At, grid: Kernel | None = None) -> dict[Index, Expr]:
    """The values of the position indices of a kernel, or of a stage of `grid`: extents, and coordinates along some axes."""
    return {
        index: extent(grid or kernel, index.axis) if index.kind == "global_size" else at[index.axis](index.offset)
        for index in positions(kernel)
        if index.kind == "global_size" or index.axis in at
    }


def own_point(axes: int) -> tuple[Expr, ...]:
    return tuple(Index("global", axis) for axis in GRID_AXES[3 - axes :])


def point_at(kernel: Kernel, at: Mapping[str, Expr]) -> tuple[Expr, ...]:
    """The point of the grid with these coordinates along some axes, and those of the thread along the others."""
    return tuple(at.get(axis, Index("global", axis)) for axis in kernel.domain.axes)


def without_tables(kernel: Kernel) -> Block:
    return tuple(stmt for stmt in kernel.body if not (isinstance(stmt, Declare) and stmt.array.space == "constant"))


def of_threads(kernel: Kernel, shape: Shape, body: Block, **changes: Any) -> Kernel:
    """The kernel whose grid is one of threads, with this body behind the constant tables."""
    domain, body = Domain(shape, kernel.domain.elements), (*kernel.shared("constant"), *body)
    return replace(kernel, **{"domain": domain, "body": body, "points": kernel.domain.shape, **changes})
