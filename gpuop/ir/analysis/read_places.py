"""Read positions of kernels: coordinates as expressions, independent of the statements that compute them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpuop.ir.nodes import ATOMS, Block, Const, Expr, For, Let, Load, Read, Ref, Stmt, Var
from gpuop.ir.visit import blocks, loop_values, operands, values, with_operands


class Places:
    """Numbers the values of blocks: equal operations on equal values are one, also across loops with equal iterations.

    Args:
        turns: how often the blocks of a statement are taken to run.
    """

    def __init__(self, turns: Callable[[Stmt], float]) -> None:
        self.turns = turns
        self.refs: dict[Expr, Expr] = {}
        self.same: dict[Var, Expr] = {}
        self.counters: dict[range, Expr] = {}  # one for the counters of all loops with these iterations

    def reads(self, block: Block, runs: float = 1.0) -> Iterator[tuple[Read, object, float]]:
        """The reads of a block, each with its place and how often it runs."""
        for stmt in block:
            for value in values(stmt):
                numbered = self._numbered(with_operands(value, self._numbered))
                fixed = not any(isinstance(e, Ref) and e.var.mutable for e in (numbered, *operands(numbered)))
                if isinstance(numbered, Read):
                    element = None if isinstance(numbered.element, Const) else numbered.element
                    yield numbered, (numbered.point, element, numbered.border) if fixed else id(stmt), runs
                if isinstance(stmt, Let) and not stmt.var.mutable and fixed and not isinstance(value, Load):
                    atom = isinstance(numbered, ATOMS)
                    self.same[stmt.var] = numbered if atom else self.refs.setdefault(numbered, Ref(stmt.var))
            numbers = loop_values(stmt) if isinstance(stmt, For) else None
            if isinstance(stmt, For) and numbers is not None:
                self.same[stmt.var] = self.counters.setdefault(numbers, Ref(stmt.var))
            for inner in blocks(stmt):
                yield from self.reads(inner, runs * self.turns(stmt))

    def _numbered(self, expr: Expr) -> Expr:
        return self.same.get(expr.var, expr) if isinstance(expr, Ref) else expr
