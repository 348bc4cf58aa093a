"""Inlining of temporaries that are used once into the expressions that use them; variables that the user named stay."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, Block, Expr, FieldParam, For, Let, Load, Ref, Stmt, Var, While
from gpuop.ir.visit import blocks, expressions, map_blocks, map_values, walk_expr, with_operands

MAX_NODES = 14  # nodes of an expression up to which it is inlined, so that lines stay readable


def inline_once(kernel: Kernel) -> Kernel:
    uses = Counter(e.var for e in expressions(kernel.body) if isinstance(e, Ref))
    return replace(kernel, body=_Inliner(uses, kernel.shared_memory).block(kernel.body))


class _Inliner:
    def __init__(self, uses: Counter[Var], overwritten: set[FieldParam]) -> None:
        self.uses, self.overwritten = uses, overwritten
        self.waiting: dict[Var, Let] = {}  # bindings that have not been printed yet

    def block(self, block: Block) -> Block:
        return self.sequence(block, None)[0]

    def sequence(self, block: Block, tail: Expr | None) -> tuple[Block, Expr | None]:
        """A block, and an expression that is evaluated after it."""
        outer, self.waiting = self.waiting, {}
        out: list[Stmt] = []
        for stmt in block:
            if blocks(stmt):
                if self.waiting:
                    inner_vars = {e.var for inner in blocks(stmt) for e in expressions(inner) if isinstance(e, Ref)}
                    out += self.release(inner_vars)
                if isinstance(stmt, For):  # C evaluates these before every turn
                    out += self.release({b.var for b in (stmt.stop, stmt.step) if isinstance(b, Ref)}, unstable=True)
                stmt = stmt if isinstance(stmt, While) else map_values(stmt, self.expr)
                out += self.release(set(self.waiting), unstable=True)
                if isinstance(stmt, While):  # the condition is part of the head, so that `while (c)` prints if possible
                    head, cond = self.sequence(stmt.head, stmt.cond)
                    assert cond is not None
                    out.append(replace(stmt, head=head, cond=cond, body=self.block(stmt.body)))
                else:
                    out.append(map_blocks(stmt, self.block))
                continue
            stmt = map_values(stmt, self.expr)
            if isinstance(stmt, Let) and self.postpone(stmt):
                self.waiting[stmt.var] = stmt
                continue
            if not isinstance(stmt, Let):
                out += self.release(set(self.waiting), unstable=True)
            out.append(stmt)
        tail = None if tail is None else self.expr(tail)
        out += self.release(set(self.waiting))
        self.waiting = outer
        return tuple(out), tail

    def postpone(self, stmt: Let) -> bool:
        once = self.uses[stmt.var] == 1 and not stmt.var.mutable and stmt.var.temporary
        return once and sum(1 for _ in walk_expr(stmt.value)) <= MAX_NODES

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Ref) and expr.var in self.waiting:
            return self.waiting.pop(expr.var).value
        return with_operands(expr, self.expr)

    def release(self, needed: set[Var], unstable: bool = False) -> list[Stmt]:
        """Emit waiting bindings that are wanted; with `unstable` only those whose value a coming statement could change."""
        now = [var for var, let in self.waiting.items() if var in needed and (not unstable or self.unstable(let.value))]
        return [self.waiting.pop(var) for var in now]

    def unstable(self, expr: Expr) -> bool:
        """Return whether a statement may change the value of an expression, by a variable or memory."""
        return any(
            e.var.mutable if isinstance(e, Ref) else isinstance(e, Load) and self.changes(e.memory)
            for e in walk_expr(expr)
        )

    def changes(self, memory: Array | FieldParam) -> bool:
        return memory.written if isinstance(memory, Array) else memory in self.overwritten
