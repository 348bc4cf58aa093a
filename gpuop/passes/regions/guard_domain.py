"""The guard of the domain: tail threads, which rounding up to whole work-groups adds, are predicated; none returns early."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import collector
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import GRID_AXES, Barrier, Collective, Declare, Expr, If, Index, Stmt
from gpuop.ir.visit import walk
from gpuop.passes.regions.complete_iterations import complete_iterations
from gpuop.passes.regions.hoist_barriers import hoist_barriers
from gpuop.passes.regions.predicate import Predication


def guard_domain(kernel: Kernel) -> Kernel:
    kernel = hoist_barriers(complete_iterations(kernel))
    head: list[Stmt] = [stmt for stmt in kernel.body if _is_shared(stmt)]
    body = tuple(stmt for stmt in kernel.body if not _is_shared(stmt))
    b = collector(head, hint="inside")
    test: Expr | None = None
    for axis, size in zip(GRID_AXES, kernel.work_group, strict=True):
        if not kernel.whole and (kernel.domain.extent(axis) % size or (kernel.is_open(axis) and size > 1)):
            one = b.apply("lt", Index("global", axis), Index("global_size", axis))
            test = one if test is None else b.apply("and", test, one)
    if test is None:
        return kernel
    if any(isinstance(stmt, (Barrier, Collective)) for stmt in walk(body)):
        return replace(kernel, body=(*head, *Predication(kernel, test).block(body)))
    return replace(kernel, body=(*head, If(test, body)))


def _is_shared(stmt: Stmt) -> bool:
    """Whether a statement declares shared memory, which C needs at the top of a kernel."""
    return isinstance(stmt, Declare) and stmt.array.space != "private"
