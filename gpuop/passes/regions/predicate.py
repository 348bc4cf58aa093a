"""Mask what surplus threads must not do where there are barriers, which they must reach: each barrier region stands in a
condition of its own, and values that later regions use move to variables before it.

(An early return of the surplus threads segfaults or miscomputes on some drivers.)
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuop.ir import nodes as ir
from gpuop.ir.kernel import Kernel
from gpuop.ir.visit import blocks, values, walk_expr
from gpuop.passes.regions.barrier_regions import RegionGuard, uses_of


class Masking(RegionGuard):
    """The condition is whether a thread is one of the grid's; statements that decide about barriers stand outside it."""

    def __init__(self, kernel: Kernel, test: ir.Expr) -> None:
        super().__init__(test, uses_of(kernel.body))
        self.for_all: set[int] = set()  # ids of the conditions and loops that all threads run, surplus ones included
        self.needed: set[ir.Var | ir.Array] = (
            set()
        )  # variables and arrays that decide about barriers: surplus threads compute them too
        known = -1
        while known != len(self.for_all) + len(self.needed):
            known = len(self.for_all) + len(self.needed)
            self._scan(kernel.body, False)

    def _scan(self, block: ir.Block, leaving: bool) -> bool:
        """Find what all threads must run; whether a block has any of it. `leaving`: a break here leaves a loop of all threads."""
        found = False
        for stmt in block:
            loop = isinstance(stmt, (ir.For, ir.While))
            inner = [self._scan(b, id(stmt) in self.for_all if loop else leaving) for b in blocks(stmt)]
            match stmt:
                case ir.If() | ir.For() | ir.While():
                    matters = any(inner)
                    if matters:
                        self.for_all.add(id(stmt))
                case ir.Break() | ir.Continue():
                    matters = leaving
                case _:
                    matters = isinstance(stmt, (ir.Barrier, ir.Collective)) or self._is_needed(stmt)
            if matters and not isinstance(
                stmt, ir.Collective
            ):  # whose lanes that are no threads of the grid give anything
                self.needed |= {symbol for v in values(stmt) for symbol in _symbols(v)}
            # an assignment or a barrier makes all threads run the block around it, a binding does not
            found |= matters and not isinstance(stmt, ir.Let)
        return found

    def _is_needed(self, stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Let(var=var) | ir.Assign(var=var):
                return var in self.needed
            case ir.Store(memory=memory):
                return memory in self.needed
            case (
                ir.Declare()
                | ir.Write()
                | ir.Atomic()
                | ir.Wide()
                | ir.Barrier()
                | ir.Collective()
                | ir.Print()
                | ir.Assert()
                | ir.Comment()
            ):
                return False  # no barrier depends on an atomic operation's result, which differs between threads
            case ir.If() | ir.For() | ir.While() | ir.Break() | ir.Continue():
                return False
            case _:
                ir.assert_never(stmt)

    def is_for_all(self, stmt: ir.Stmt) -> bool:
        wanted = isinstance(stmt, (ir.Barrier, ir.Collective, ir.Break, ir.Continue)) or id(stmt) in self.for_all
        return wanted or self._is_needed(stmt)


def _symbols(expr: ir.Expr) -> Iterator[ir.Var | ir.Array]:
    """The variables and the thread's own arrays that an expression reads."""
    for e in walk_expr(expr):
        if isinstance(e, ir.Ref):
            yield e.var
        elif isinstance(e, ir.Load) and isinstance(e.memory, ir.Array) and e.memory.space == "private":
            yield e.memory
