"""Mask what surplus threads must not do where there are barriers, which they must reach: each barrier region stands in a
condition of its own, and values that later regions use move to variables before it.

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
    Collective,
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
from gpuop.passes.regions.barrier_regions import RegionGuard, uses_of


class Masking(RegionGuard):
    """The condition is whether a thread is one of the grid's; statements that decide about barriers stand outside it."""

    def __init__(self, kernel: Kernel, test: Expr) -> None:
        super().__init__(test, uses_of(kernel.body))
        self.for_all: set[int] = set()  # ids of the conditions and loops that all threads run, surplus ones included
        self.needed: set[Var | Array] = (
            set()
        )  # variables and arrays that decide about barriers: surplus threads compute them too
        known = -1
        while known != len(self.for_all) + len(self.needed):
            known = len(self.for_all) + len(self.needed)
            self._scan(kernel.body, False)

    def _scan(self, block: Block, leaving: bool) -> bool:
        """Find what all threads must run; whether a block has any of it. `leaving`: a break here leaves a loop of all threads."""
        found = False
        for stmt in block:
            loop = isinstance(stmt, (For, While))
            inner = [self._scan(b, id(stmt) in self.for_all if loop else leaving) for b in blocks(stmt)]
            match stmt:
                case If() | For() | While():
                    matters = any(inner)
                    if matters:
                        self.for_all.add(id(stmt))
                case Break() | Continue():
                    matters = leaving
                case _:
                    matters = isinstance(stmt, (Barrier, Collective)) or self._is_needed(stmt)
            if matters and not isinstance(
                stmt, Collective
            ):  # whose lanes that are no threads of the grid give anything
                self.needed |= {symbol for v in values(stmt) for symbol in _symbols(v)}
            # an assignment or a barrier makes all threads run the block around it, a binding does not
            found |= matters and not isinstance(stmt, Let)
        return found

    def _is_needed(self, stmt: Stmt) -> bool:
        match stmt:
            case Let(var=var) | Assign(var=var):
                return var in self.needed
            case Store(memory=memory):
                return memory in self.needed
            case Declare() | Write() | Atomic() | Wide() | Barrier() | Collective() | Print() | Assert() | Comment():
                return False  # no barrier depends on an atomic operation's result, which differs between threads
            case If() | For() | While() | Break() | Continue():
                return False
            case _:
                assert_never(stmt)

    def is_for_all(self, stmt: Stmt) -> bool:
        wanted = isinstance(stmt, (Barrier, Collective, Break, Continue)) or id(stmt) in self.for_all
        return wanted or self._is_needed(stmt)


def _symbols(expr: Expr) -> Iterator[Var | Array]:
    """The variables and the thread's own arrays that an expression reads."""
    for e in walk_expr(expr):
        if isinstance(e, Ref):
            yield e.var
        elif isinstance(e, Load) and isinstance(e.memory, Array) and e.memory.space == "private":
            yield e.memory
