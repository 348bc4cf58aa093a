"""Rows in parts: where conditions ask on which side of some column a point is, they are known in each part.

So vectors that lie in one part compute only what counts there, and read no field beyond its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Expr
from gpuop.ir.types import BOOL
from gpuop.ir.visit import Copier, expressions
from gpuop.passes.schedules.lane_places import LanePlaces
from gpuop.passes.simplify import simplify

MOST = 17  # parts, each with a text of its own: one of each field that is put together at once, and an end
# how far behind the number that a column is compared with the answer changes, and what it is before
AT_FIRST = {"lt": (0, True), "le": (1, True), "ge": (0, False), "gt": (1, False)}
TURNED = {"lt": "gt", "le": "ge", "ge": "le", "gt": "lt"}  # with the sides exchanged


@dataclass(frozen=True)
class RowPart:
    """Some columns, from the first one to that behind the last, and the kernel as it is there."""

    start: int
    end: int
    kernel: Kernel


def parts_of_rows(kernel: Kernel) -> list[RowPart]:
    """The parts of a row; none where it is one, or many."""
    if kernel.named:
        return []
    found, columns = LanePlaces(kernel), kernel.domain.extent("column")
    sides = {e: side for e in expressions(kernel.body) if (side := _side(found, e)) is not None}
    cuts = sorted({0, columns, *(at for at, _ in sides.values() if 0 < at < columns)})
    if not 2 < len(cuts) <= MOST + 1:
        return []
    return [RowPart(a, b, _known(kernel, sides, a)) for a, b in pairwise(cuts)]


def _side(found: LanePlaces, e: Expr) -> tuple[int, bool] | None:
    """The column from which on a condition is another one, and whether it holds before; None of other conditions."""
    if not isinstance(e, Apply) or e.op not in AT_FIRST or e.type.lanes > 1:
        return None
    x, y = map(found.of, e.args)
    op = e.op
    if x is not None and y is not None and y.along:
        x, y, op = y, x, TURNED[op]
    if x is None or y is None or not x.along or y.along or x.low is None or y.low is None:
        return None
    if x.low != x.high or y.low != y.high:
        return None
    behind, holds = AT_FIRST[op]
    return y.low - x.low + behind, holds


def _known(kernel: Kernel, sides: dict[Expr, tuple[int, bool]], column: int) -> Kernel:
    """The kernel for the part that begins at a column."""
    known = {e: constant(holds == (column < at), BOOL) for e, (at, holds) in sides.items()}
    return simplify(replace(kernel, body=_Knowing(kernel, known).copy()))


class _Knowing(Copier):
    def __init__(self, kernel: Kernel, known: Mapping[Expr, Expr]) -> None:
        super().__init__(kernel.body)
        self.known = known

    def expr(self, expr: Expr) -> Expr:
        return self.known[expr] if expr in self.known else super().expr(expr)
