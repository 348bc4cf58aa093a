"""Instantiation of the body of a kernel at points other than the thread's own, for threads that have several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import GRID_AXES, Block, Declare, Expr, Index, Read, Stmt, Write
from gpuop.ir.thread_grid import Domain
from gpuop.ir.visit import Copier, expressions
from gpuop.passes.coarsening_factor import is_own


class Instance(Copier):
    """Copies the body, or some statements of it, for a position; accesses to the thread's own point get explicit coordinates."""

    def __init__(self, source: Kernel, by_index: Mapping[Index, Expr], body: Block | None = None) -> None:
        super().__init__(source.body if body is None else body)
        self.by_index = by_index
        for stmt in source.shared("constant"):
            self.arrays.pop(stmt.array, None)

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Index):
            return self.by_index.get(expr, expr)
        if isinstance(expr, Read) and expr.point is None and is_own(expr.field):
            expr = replace(expr, point=own_point(len(expr.field.type.field_shape)))
        return super().expr(expr)

    def stmt(self, stmt: Stmt) -> Block:
        if isinstance(stmt, Write) and stmt.point is None:
            stmt = replace(stmt, point=own_point(len(stmt.field.type.field_shape)))
        return super().stmt(stmt)


def positions(kernel: Kernel, domain: Domain) -> list[Index]:
    """The position indices that a kernel uses, and those of a point of a grid."""
    indices = [e for e in expressions(kernel.body) if isinstance(e, Index) and e.axis in GRID_AXES]
    return list(dict.fromkeys([*indices, *(Index("global", axis) for axis in domain.axes)]))


def own_point(axes: int) -> tuple[Expr, ...]:
    return tuple(Index("global", axis) for axis in GRID_AXES[3 - axes :])


def without_tables(kernel: Kernel) -> Block:
    return tuple(stmt for stmt in kernel.body if not (isinstance(stmt, Declare) and stmt.array.space == "constant"))
