"""Statistics of kernels for reports: arithmetic per thread, and an estimate of registers."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from gpuop.base.records import dataclass
from gpuop.ir.analysis.stages import stages
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Assign, Atomic, Block, Collective, Declare, Expr, For, If, Let, Stmt, Var, While
from gpuop.ir.target import Target
from gpuop.ir.visit import blocks, operands, times, used_by, values, walk, walk_expr
from gpuop.passes.coarsen import widen
from gpuop.passes.coarsening_factor import PointsPerThread, points_per_thread
from gpuop.passes.lower_fields import lower_fields
from gpuop.passes.pipeline import PIPELINE
from gpuop.passes.temporaries import inline_once

REGISTER = 32  # bits
Live = frozenset[Var]


@dataclass(frozen=True)
class Operations:
    """The operations of a thread; not `exact` if a loop with computed bounds was counted as one iteration."""

    count: int
    exact: bool


def before(kernel: Kernel, end: object) -> Kernel:
    """The kernel as it is before a pass."""
    for pass_, _ in PIPELINE:
        if pass_ is end:
            break
        kernel = pass_(kernel)
    return kernel


@lru_cache(maxsize=128)  # every explanation of a plan needs it
def operations(kernel: Kernel) -> Operations:
    """The arithmetic that users wrote: operators and functions on each component of a vector; not addresses and borders.

    Both branches of a condition count; loops count by their iterations, if known; stages count once.
    """
    counted = [_counted(before(each, lower_fields).body) for each in stages(kernel)]
    return Operations(sum(c.count for c in counted), all(c.exact for c in counted))


def _counted(block: Block) -> Operations:
    count, exact = 0, True
    for stmt in block:
        count += sum(_lanes(e) for value in values(stmt) for e in walk_expr(value) if isinstance(e, Apply))
        inner = [_counted(b) for b in blocks(stmt)]
        iterations = times(stmt)
        exact &= iterations is not None and all(i.exact for i in inner)
        count += sum(i.count for i in inner) * (1 if iterations is None else iterations)
    return Operations(count, exact)


def _lanes(expr: Expr) -> int:
    return max(e.type.lanes for e in (expr, *operands(expr)))


def points_of_thread(kernel: Kernel, target: Target) -> PointsPerThread:
    """The number of points of a thread on a target, and the reason why there are not more."""
    return points_per_thread(replace(before(kernel, widen), target=target))


@lru_cache(maxsize=128)
def registers(kernel: Kernel) -> int:
    """An estimate: the most values of the lowered kernel that are needed later at any one point, in units of 32 bits.

    A double counts twice, a private array whole, and the thread's position is always needed. Drivers' compilers order
    statements anew and may do with fewer, or need more for addresses. Of stages, that which needs most counts.
    """
    most = 0
    for stage in stages(kernel):
        lowered = before(stage, inline_once)
        arrays = [stmt.array for stmt in walk(lowered.body) if isinstance(stmt, Declare)]
        private = sum(-(-array.nbytes * 8 // REGISTER) for array in arrays if array.space == "private")
        axes = len(lowered.domain.axes) + (lowered.domain.elements > 1)
        most = max(most, values_kept(lowered) + private + axes)
    return most


def values_kept(kernel: Kernel) -> int:
    """The most values that are needed later at any one point, in units of 32 bits."""
    liveness = _Liveness()
    liveness.block(kernel.body, frozenset())
    return liveness.most


class _Liveness:
    """Walks a block backwards; `most` is the size of the largest set of live variables."""

    def __init__(self) -> None:
        self.most = 0

    def block(self, block: Block, after: Live) -> Live:
        """The live variables before the block, from those after it."""
        live, size = set(after), sum(map(_size, after))
        for stmt in reversed(block):
            if blocks(stmt):
                live = set(self.nested(stmt, frozenset(live)))
                size = sum(map(_size, live))
            else:
                variable = stmt.var if isinstance(stmt, (Let, Assign, Atomic, Collective)) else None
                if variable in live:
                    live.remove(variable)
                    size -= _size(variable)
                fresh = used_by(stmt) - live
                live |= fresh
                size += sum(map(_size, fresh))
            self.most = max(self.most, size)
        return frozenset(live)

    def nested(self, stmt: Stmt, live: Live) -> Live:
        used = used_by(stmt)
        match stmt:
            case If(then=then, orelse=orelse):
                return self.block(then, live) | self.block(orelse, live) | used
            case For(var=var, body=body):
                around = live | used  # the bounds are needed at every turn
                turn = self.block(body, around)
                return self.block(body, around | turn) - {var} | around
            case While(head=head, body=body):
                turn = self.block(head, self.block(body, live) | live | used)
                return self.block(head, self.block(body, live | turn) | live | used)
        raise AssertionError(f"no blocks are known of a {type(stmt).__name__}")


def _size(var: Var) -> int:
    return max(1, var.type.dtype.bits // REGISTER) * var.type.lanes
