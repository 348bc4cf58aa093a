"""Incomplete tiles: local memory that threads read and only tail threads would have written.

Where the grid is no multiple of the work-group, the last groups have fewer threads. Their execution is followed without data:
positions are known, and the counters and conditions that follow from them. Anything else may be anything: conditions hold or not,
indices are anywhere. So the analysis over-approximates the writes of threads inside the grid, and every report is a true read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from gpuop.ir.analysis.local_init import Enough, Following
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import AXES, Apply, Array, Assign, Atomic, Block, For, If, Let, Load, Ref, Store, Var, While
from gpuop.ir.visit import expressions, used_by, walk, walk_expr


def check_tiles(kernel: Kernel) -> None:
    """Refuse a kernel whose threads read what tail threads would have written. Its work-groups must be known.

    Raises:
        SemanticError: at the line that reads.
    """
    local = [declared.array for declared in kernel.shared("local")]
    if kernel.whole or not local or not kernel.domain.threads:
        return
    groups = list(_edges(kernel))
    if not groups or not any(_memory(e) in local for e in (*expressions(kernel.body), *walk(kernel.body))):
        return
    try:
        with np.errstate(all="ignore"):
            Following(kernel, groups, _needed(kernel.body)).run()
    except Enough:
        pass


def _memory(what: object) -> object:
    return what.memory if isinstance(what, (Load, Atomic)) else None


def _edges(kernel: Kernel) -> Iterator[tuple[int, ...]]:
    """Work-groups that have tail threads: at the beginning and at the end of each axis."""
    axes = [(kernel.domain.extent(axis), size) for axis, size in zip(AXES, kernel.work_group, strict=False)]
    last = [-(-n // size) - 1 for n, size in axes]
    for group in product(*(sorted({0, end}) for end in last)):
        if any(at == end and n % size for at, end, (n, size) in zip(group, last, axes, strict=True)):
            yield group


def _needed(body: Block) -> set[Var]:
    """The variables that indices of local memory, conditions, choices and loops depend on."""
    sources: dict[Var, set[Var]] = {}
    roots: set[Var] = set()
    for stmt in walk(body):
        used = used_by(stmt)
        if isinstance(stmt, (Let, Assign)):
            sources.setdefault(stmt.var, set()).update(used)
            match stmt.value:
                case Load():
                    roots |= used
                case Apply(op="choose", args=(Ref(var=var), *_)):
                    roots.add(var)
        elif isinstance(stmt, (Store, Atomic)) and isinstance(stmt.memory, Array):
            roots |= {e.var for i in stmt.index for e in walk_expr(i) if isinstance(e, Ref)}
        elif isinstance(stmt, (If, For, While)):
            roots |= used | ({stmt.var} if isinstance(stmt, For) else set())
    needed: set[Var] = set()
    while roots:
        var = roots.pop()
        if var not in needed:
            needed.add(var)
            roots |= sources.get(var, set())
    return needed
