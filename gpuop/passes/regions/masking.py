"""Mask what surplus threads must not do where there are barriers, which they must reach: each stretch of statements between
barriers stands in a condition of its own, and values that later stretches use move to variables before it.

(An early return of the surplus threads segfaults or miscomputes on some drivers.)
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import (
    Array,
    Assert,
    Assign,
    Atomic,
    Barrier,
    Block,
    Break,
    Comment,
    Continue,
    Declare,
    Expr,
    For,
    If,
    Let,
    Load,
    Print,
    Ref,
    Stmt,
    Store,
    Var,
    While,
    Wide,
    Write,
    assert_never,
)
from gpuop.ir.visit import blocks, values, walk_expr
from gpuop.passes.regions.barrier_regions import Stretches, uses_of


class Masking(Stretches):
    """The condition is whether a thread is one of the grid's; what decides about barriers stands outside it."""

    def __init__(self, kernel: Kernel, test: Expr) -> None:
        super().__init__(test, uses_of(kernel.body))
        self.joint: set[int] = set()  # statements with blocks that all threads run, surplus ones included
        self.needed: set[Var | Array] = set()  # what decides about barriers, so surplus threads compute it too
        known = -1
        while known != len(self.joint) + len(self.needed):
            known = len(self.joint) + len(self.needed)
            self._scan(kernel.body, False)

    def _scan(self, block: Block, leaving: bool) -> bool:
        """Find what all threads must run; whether the block has any of it. `leaving`: a break here leaves a joint loop."""
        found = False
        for stmt in block:
            loop = isinstance(stmt, (For, While))
            inner = [self._scan(b, id(stmt) in self.joint if loop else leaving) for b in blocks(stmt)]
            match stmt:
                case If() | For() | While():
                    matters = any(inner)
                    if matters:
                        self.joint.add(id(stmt))
                case Break() | Continue():
                    matters = leaving
                case _:
                    matters = isinstance(stmt, Barrier) or self._is_needed(stmt)
            if matters:
                self.needed |= {symbol for v in values(stmt) for symbol in _symbols(v)}
            # a binding is no reason for the block around it to be joint, an assignment or a barrier is
            found |= matters and not isinstance(stmt, Let)
        return found

    def _is_needed(self, stmt: Stmt) -> bool:
        match stmt:
            case Let(var=var) | Assign(var=var):
                return var in self.needed
            case Store(memory=memory):
                return memory in self.needed
            case Declare() | Write() | Atomic() | Wide() | Barrier() | Print() | Assert() | Comment():
                return False  # no barrier depends on an atomic operation's result, which differs between threads
            case If() | For() | While() | Break() | Continue():
                return False
            case _:
                assert_never(stmt)

    def is_joint(self, stmt: Stmt) -> bool:
        wanted = isinstance(stmt, (Barrier, Break, Continue)) or id(stmt) in self.joint
        return wanted or self._is_needed(stmt)


def _symbols(expr: Expr) -> Iterator[Var | Array]:
    """The variables and the thread's own arrays that an expression reads."""
    for e in walk_expr(expr):
        if isinstance(e, Ref):
            yield e.var
        elif isinstance(e, Load) and isinstance(e.memory, Array) and e.memory.space == "private":
            yield e.memory
