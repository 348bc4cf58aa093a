"""Hoisting of barriers out of conditions: `if (c) { A; barrier; B }` becomes `if (c) { A } barrier; if (c) { B }`.

The condition is the same for all threads of a work-group, so one barrier more does no harm where it does not hold; and some
drivers (PoCL 3.1) miscompile barriers in conditions.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import collector
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Barrier, Block, Expr, If, Let, Ref, Stmt
from gpuop.ir.visit import blocks, leaving, map_blocks, walk
from gpuop.passes.regions.barrier_regions import RegionGuard, uses_of


def hoist_barriers(kernel: Kernel) -> Kernel:
    inside = any(isinstance(inner, Barrier) for stmt in kernel.body for b in blocks(stmt) for inner in walk(b))
    return replace(kernel, body=_block(kernel.body)) if inside else kernel


def _block(block: Block) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        stmt = map_blocks(stmt, _block)
        out += _lifted(stmt) if isinstance(stmt, If) and _waits(stmt) else (stmt,)
    return tuple(out)


def _lifted(stmt: If) -> list[Stmt]:
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
    return out


def _waits(stmt: If) -> bool:
    """Whether a branch itself has a barrier, and no statement of the branches leaves a loop."""
    own = any(isinstance(inner, Barrier) for branch in blocks(stmt) for inner in branch)
    return own and not any(True for branch in blocks(stmt) for _ in leaving(branch))
