"""What all points of a row have in common, whatever is in memory: a thread that has several of them computes it once."""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Expr, Index, Let, Load, Read, Ref, Var
from gpuop.ir.visit import Copier, walk_expr


class RowValues(Copier):
    """Copies the statements that compute such values, for expressions that stand before those of the points."""

    def __init__(self, kernel: Kernel) -> None:
        self.known: set[Var] = set()
        found = []
        for stmt in kernel.body:
            if isinstance(stmt, Let) and not stmt.var.mutable and self.has(stmt.value):
                found.append(stmt)
                self.known.add(stmt.var)
        super().__init__(tuple(found))

    def has(self, expr: Expr) -> bool:
        """Whether an expression is the same for all points of a row."""
        return all(map(self._has, walk_expr(expr)))

    def _has(self, e: Expr) -> bool:
        if isinstance(e, Ref):
            return e.var in self.known
        return e.axis != "column" if isinstance(e, Index) else not isinstance(e, (Read, Load))
