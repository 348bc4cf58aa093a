"""Values that all points of a row have in common and that need no memory: a thread of several points computes them once."""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Expr, Index, Let, Load, Read, Ref, Var
from gpuop.ir.visit import Copier, walk_expr


class RowValues(Copier):
    """Copies the statements that compute such values, to go before those of the points."""

    def __init__(self, kernel: Kernel) -> None:
        self.invariant_vars: set[Var] = set()
        invariants = []
        for stmt in kernel.body:
            if isinstance(stmt, Let) and not stmt.var.mutable and self.has(stmt.value):
                invariants.append(stmt)
                self.invariant_vars.add(stmt.var)
        super().__init__(tuple(invariants))

    def has(self, expr: Expr) -> bool:
        """Whether an expression is the same for all points of a row."""
        return all(map(self._has, walk_expr(expr)))

    def _has(self, e: Expr) -> bool:
        if isinstance(e, Ref):
            return e.var in self.invariant_vars
        return e.axis != "column" if isinstance(e, Index) else not isinstance(e, (Read, Load))
