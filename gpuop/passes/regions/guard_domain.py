"""The guard of the domain: tail threads, which rounding up to whole work-groups adds, are predicated; none returns early.

All threads must reach barriers, so each barrier region gets a condition of its own, and values for later regions move to
variables before it. (An early return of the tail threads segfaults or miscomputes on some drivers.)

    A; barrier; B      becomes      if (inside) { A } barrier; if (inside) { B }
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.build import collector
from gpuop.ir.kernel import Kernel
from gpuop.ir.visit import blocks, values, walk, walk_expr
from gpuop.passes.regions.barrier_regions import RegionGuard, hoist_barriers, uses_of
from gpuop.passes.regions.complete_iterations import complete_iterations


def guard_domain(kernel: Kernel) -> Kernel:
    kernel = hoist_barriers(complete_iterations(kernel))
    head: list[ir.Stmt] = [stmt for stmt in kernel.body if _is_shared(stmt)]
    body = tuple(stmt for stmt in kernel.body if not _is_shared(stmt))
    b = collector(head, hint="inside")
    test = b.all_of(
        b.apply("lt", ir.Index("global", axis), ir.Index("global_size", axis))
        for axis, size in zip(ir.GRID_AXES, kernel.work_group, strict=True)
        if not kernel.whole
        and (kernel.domain.extent(axis) % size or (kernel.is_open(axis) and size > 1 and not kernel.together))
    )
    if test is None:
        return kernel
    if any(isinstance(stmt, (ir.Barrier, ir.Collective)) for stmt in walk(body)):
        return replace(kernel, body=(*head, *Predication(kernel, test).block(body)))
    return replace(kernel, body=(*head, ir.If(test, body)))


def _is_shared(stmt: ir.Stmt) -> bool:
    """Return whether a statement declares shared memory, which C needs at the top of a kernel."""
    return isinstance(stmt, ir.Declare) and stmt.array.space != "private"


class Predication(RegionGuard):
    """Puts barrier regions under the condition that a thread is in the grid, except statements that decide about barriers."""

    def __init__(self, kernel: Kernel, test: ir.Expr) -> None:
        super().__init__(test, uses_of(kernel.body))
        self.for_all: set[int] = set()  # ids of the conditions and loops that all threads run, tail threads too
        # variables and arrays that decide about barriers: tail threads compute them too
        self.needed: set[ir.Var | ir.Array] = set()
        size = -1
        while size != len(self.for_all) + len(self.needed):
            size = len(self.for_all) + len(self.needed)
            self._scan(kernel.body, False)

    def _scan(self, block: ir.Block, leaving: bool) -> bool:
        """Collect the statements that all threads must run; return whether a block has any.

        Args:
            leaving: whether a `break` here leaves a loop that all threads run.
        """
        any_ = False
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
            if matters and not isinstance(stmt, ir.Collective):  # tail threads may contribute any value to it
                self.needed |= {symbol for v in values(stmt) for symbol in _symbols(v)}
            # an assignment or a barrier makes all threads run the block around it, a binding does not
            any_ |= matters and not isinstance(stmt, ir.Let)
        return any_

    def _is_needed(self, stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Let(var=var) | ir.Assign(var=var):
                return var in self.needed
            case ir.Store(memory=memory):
                return memory in self.needed
            # no barrier depends on an atomic operation's result, which differs between threads
            case ir.Declare() | ir.Write() | ir.Atomic() | ir.Wide() | ir.Barrier() | ir.Collective() | ir.Print():
                return False
            case ir.Assert() | ir.Comment() | ir.If() | ir.For() | ir.While() | ir.Break() | ir.Continue():
                return False
            case _:
                ir.assert_never(stmt)

    def is_for_all(self, stmt: ir.Stmt) -> bool:
        decides = isinstance(stmt, (ir.Barrier, ir.Collective, ir.Break, ir.Continue)) or id(stmt) in self.for_all
        return decides or self._is_needed(stmt)


def _symbols(expr: ir.Expr) -> Iterator[ir.Var | ir.Array]:
    """The variables and the thread's own arrays that an expression reads."""
    for e in walk_expr(expr):
        if isinstance(e, ir.Ref):
            yield e.var
        elif isinstance(e, ir.Load) and isinstance(e.memory, ir.Array) and e.memory.space == "private":
            yield e.memory
