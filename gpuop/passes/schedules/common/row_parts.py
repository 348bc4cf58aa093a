"""Rows in parts: where conditions ask on which side of some column a point is, and where columns are divided by a number that is
not much smaller than a row, the answers are known in each part.

So vectors that lie in one part compute only what counts there, and read no field beyond its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Expr, Index
from gpuop.ir.types import BOOL, INT, Type
from gpuop.ir.visit import Copier, expressions
from gpuop.passes.schedules.common.lane_positions import LanePlaces
from gpuop.passes.simplify import simplify

MOST = 17  # parts, each with a text of its own: one of each field that is put together at once, and an end
# how far behind the number that a column is compared with the answer changes, and what it is before
AT_FIRST = {"lt": (0, True), "le": (1, True), "ge": (0, False), "gt": (1, False)}
TURNED = {"lt": "gt", "le": "ge", "ge": "le", "gt": "lt"}  # with the sides exchanged


@dataclass(frozen=True)
class _Step:
    """A value that is another one behind each of some columns: `value` says which one, or which column, it is from a cut on."""

    cuts: tuple[int, ...]
    value: Callable[[int], Expr]


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
    known = {e: step for e in expressions(kernel.body) if (step := _side(found, e) or _digit(found, e, columns))}
    cuts = sorted({0, columns, *(at for step in known.values() for at in step.cuts if 0 < at < columns)})
    if not 2 < len(cuts) <= MOST + 1:
        return []
    return [RowPart(a, b, _known(kernel, known, a)) for a, b in pairwise(cuts)]


def _side(found: LanePlaces, e: Expr) -> _Step | None:
    """A condition that asks on which side of a column the point is."""
    if not isinstance(e, Apply) or e.op not in AT_FIRST or e.type.lanes > 1:
        return None
    (x, y), op = map(found.of, e.args), e.op
    if y is not None and y.varies:
        x, y, op = y, x, TURNED[op]
    if x is None or y is None or not x.varies or y.varies or not (x.is_exact and y.is_exact):
        return None
    assert x.low is not None and y.low is not None
    behind, holds = AT_FIRST[op]
    at = y.low - x.low + behind
    return _Step((at,), lambda column: constant(holds == (column < at), BOOL))


def _digit(found: LanePlaces, e: Expr, columns: int) -> _Step | None:
    """What is left of a column, or how often, when it is divided by a number."""
    if not isinstance(e, Apply) or e.op not in ("div", "mod") or e.type != Type(INT):
        return None
    x, y = map(found.of, e.args)
    if x is None or y is None or not x.varies or y.varies or not (x.is_exact and y.is_exact):
        return None
    assert x.low is not None and y.low is not None
    first, by, is_rest = x.low, y.low, e.op == "mod"
    if first < 0 or by <= 0 or columns > MOST * by:
        return None

    def value(column: int) -> Expr:
        times = (column + first) // by
        return Index("global", "column", first - times * by) if is_rest else constant(times, INT)

    return _Step(tuple(range(-first % by, columns, by)), value)


def _known(kernel: Kernel, known: Mapping[Expr, _Step], column: int) -> Kernel:
    """The kernel for the part that begins at a column."""
    values = {e: step.value(column) for e, step in known.items()}
    return simplify(replace(kernel, body=_Knowing(kernel, values).copy()))


class _Knowing(Copier):
    def __init__(self, kernel: Kernel, known: Mapping[Expr, Expr]) -> None:
        super().__init__(kernel.body)
        self.known = known

    def expr(self, expr: Expr) -> Expr:
        return self.known[expr] if expr in self.known else super().expr(expr)
