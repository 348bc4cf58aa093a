"""Barrier regions, the statements between two barriers, under a condition; values for later regions move to variables before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from gpuop.ir.build import constant
from gpuop.ir.nodes import Assign, Atomic, Barrier, Block, Comment, Declare, Expr, If, Let, Load, Ref, Stmt, Var
from gpuop.ir.visit import expressions, map_blocks, map_values, walk, walk_expr, with_operands


class RegionGuard:
    """Puts each barrier region of a block under a condition; the barriers stay outside.

    Args:
        test: the condition.
        uses: how often the kernel uses each variable.
    """

    def __init__(self, test: Expr, uses: Counter[Var]) -> None:
        self.test = test
        self.uses = uses
        self.outside: set[Var] = set()  # variables that are bound outside of the condition
        self.moved: dict[Var, Var] = {}

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        run: list[Stmt] = []
        for stmt in block:
            if isinstance(stmt, Declare) or (isinstance(stmt, Comment) and not run):
                out.append(stmt)
            elif self.is_for_all(stmt):
                self._flush(run, out)
                out.append(map_blocks(map_values(stmt, self._expr), self.block))
                self._note_outside(stmt)
            else:
                run.append(stmt)
        self._flush(run, out)
        return tuple(out)

    def is_for_all(self, stmt: Stmt) -> bool:
        """Whether all threads run a statement, so that it stands outside the condition."""
        return isinstance(stmt, Barrier)

    def _note_outside(self, stmt: Stmt) -> None:
        if isinstance(stmt, Let) and not stmt.var.mutable:
            self.outside.add(stmt.var)

    def _flush(self, run: list[Stmt], out: list[Stmt]) -> None:
        """Emit a region under the condition; variables that other regions use are declared before it."""
        ahead = self._ahead(run)
        here = uses_of(run)
        masked: list[Stmt] = []
        for stmt in run:
            var = stmt.var if isinstance(stmt, (Let, Atomic)) else None
            if id(stmt) in ahead:
                out.append(map_values(stmt, self._expr))
                self._note_outside(stmt)
            elif var is None or self.uses[var] == here[var]:
                masked.append(self._copied(stmt))
            else:
                masked += self._spread(stmt, var, out)
        if all(isinstance(stmt, Comment) for stmt in masked):
            out += masked
        else:
            out.append(If(self.test, tuple(masked)))
        run.clear()

    def _ahead(self, run: list[Stmt]) -> set[int]:
        """The bindings that other regions use and that any thread may compute, as they read neither memory nor variables."""
        here, free = uses_of(run), set(self.outside)
        for stmt in run:
            if isinstance(stmt, Let) and self._is_free(stmt, free) and not stmt.var.mutable:
                free.add(stmt.var)
        ahead: set[int] = set()
        needed: set[Var] = set()
        for stmt in reversed(run):
            used = isinstance(stmt, Let) and (stmt.var in needed or self.uses[stmt.var] > here[stmt.var])
            if isinstance(stmt, Let) and used and self._is_free(stmt, free):
                ahead.add(id(stmt))
                needed |= {e.var for e in walk_expr(stmt.value) if isinstance(e, Ref)}
        return ahead

    @staticmethod
    def _is_free(let: Let, free: set[Var]) -> bool:
        return all(not isinstance(e, Load) and (not isinstance(e, Ref) or e.var in free) for e in walk_expr(let.value))

    def _spread(self, stmt: Stmt, var: Var, out: list[Stmt]) -> list[Stmt]:
        """The binding as an assignment to a variable that is declared outside."""
        outer = var if var.mutable else self.moved.setdefault(var, replace(var, mutable=True))
        out.append(Let(outer, constant(0, var.type.dtype)))
        if isinstance(stmt, Let):
            return [Assign(outer, self._expr(stmt.value), stmt.loc)]
        inner = replace(var)
        copied = self._copied(stmt)
        assert isinstance(copied, Atomic)
        return [
            Atomic(copied.op, copied.memory, copied.index, copied.args, inner, None, copied.loc),
            Assign(outer, Ref(inner)),
        ]

    def _copied(self, stmt: Stmt) -> Stmt:
        return map_blocks(map_values(stmt, self._expr), lambda inner: tuple(map(self._copied, inner)))

    def _expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Ref) and expr.var in self.moved:
            return Ref(self.moved[expr.var])
        return with_operands(expr, self._expr)


def uses_of(block: Iterable[Stmt]) -> Counter[Var]:
    block = tuple(block)
    reads = Counter(e.var for e in expressions(block) if isinstance(e, Ref))
    return reads + Counter(stmt.var for stmt in walk(block) if isinstance(stmt, Assign))
