"""Barrier regions, the statements between two barriers, under a condition; values for later regions move to variables before it.

So barriers are hoisted out of conditions: `if (c) { A; barrier; B }` becomes `if (c) { A } barrier; if (c) { B }`. The condition
is the same for all threads of a work-group, so one barrier more does no harm where it does not hold; and some drivers (PoCL 3.1)
miscompile barriers in conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Assign, Atomic, Barrier, Block, Comment, Declare, Expr, If, Let, Load, Ref, Stmt, Var
from gpuop.ir.visit import blocks, expressions, leaving, map_blocks, map_values, walk, walk_expr, with_operands
from gpuop.passes.rewrite import rewrite_statements


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
        """Return whether all threads run a statement, so that it stands outside the condition."""
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
        inner, copied = replace(var), self._copied(stmt)
        assert isinstance(copied, Atomic)
        return [replace(copied, var=inner, element=None), Assign(outer, Ref(inner))]

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


def hoist_barriers(kernel: Kernel) -> Kernel:
    inside = any(isinstance(inner, Barrier) for stmt in kernel.body for b in blocks(stmt) for inner in walk(b))
    return replace(kernel, body=rewrite_statements(kernel.body, _lifted)) if inside else kernel


def _lifted(stmt: Stmt) -> Block:
    if not isinstance(stmt, If) or not _waits(stmt):
        return (stmt,)
    out: list[Stmt] = []
    b = collector(out, stmt.loc)
    holds: Expr = stmt.cond
    if isinstance(holds, Ref) and holds.var.mutable:  # the branch may change it
        copy = replace(holds.var, mutable=False)
        out.append(Let(copy, holds, stmt.loc))
        holds = Ref(copy)
    fails = b.apply("not", holds) if stmt.orelse else holds
    for test, branch in ((holds, stmt.then), (fails, stmt.orelse)):
        out += RegionGuard(test, uses_of(branch)).block(branch)
    return tuple(out)


def _waits(stmt: If) -> bool:
    """Return whether a branch itself has a barrier, and no statement of the branches leaves a loop."""
    own = any(isinstance(inner, Barrier) for branch in blocks(stmt) for inner in branch)
    return own and not any(stmt for branch in blocks(stmt) for stmt in leaving(branch))
