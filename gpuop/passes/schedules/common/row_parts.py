"""Parts of rows in which conditions are constant: comparisons of the column, and quotients of it by a number not much smaller
than a row. This is index-set splitting.

    concatenate of a (10 columns) and b (14):   if (column < 10) x = a[column]; else x = b[column - 10];

    columns   0 ......... 9 | 10 ............. 23
    part          x = a[column]     x = b[column - 10]

A vector that lies in one part computes only what counts there, and reads no field beyond its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

from gpuop.base.records import dataclass
from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Expr, Index
from gpuop.ir.types import BOOL, INT, Type
from gpuop.ir.visit import Copier, expressions
from gpuop.passes.schedules.common.lane_positions import LanePositions
from gpuop.passes.simplify import simplify

MOST = 17  # parts, each with a text of its own: as many as concatenations have fields at most, and an end
# by comparison: the distance of the column where the result changes from the number, and the result before it
AT_FIRST = {"lt": (0, True), "le": (1, True), "ge": (0, False), "gt": (1, False)}
SWAPPED = {"lt": "gt", "le": "ge", "ge": "le", "gt": "lt"}  # the comparison with its sides exchanged


@dataclass(frozen=True)
class _Step:
    """A value that changes at some columns, the cuts; `value` returns the constant, or the column, that it is from a cut on."""

    cuts: tuple[int, ...]
    value: Callable[[int], Expr]


@dataclass(frozen=True)
class RowPart:
    """Columns from the first one to the one behind the last, and the kernel that is valid there."""

    start: int
    end: int
    kernel: Kernel


def parts_of_rows(kernel: Kernel) -> list[RowPart]:
    """The parts of a row; none where there is one, or too many."""
    if kernel.named:
        return []
    positions, columns = LanePositions(kernel), kernel.domain.extent("column")
    each = ((e, _side(positions, e) or _digit(positions, e, columns)) for e in expressions(kernel.body))
    steps = {e: step for e, step in each if step is not None}
    cuts = sorted({0, columns, *(at for step in steps.values() for at in step.cuts if 0 < at < columns)})
    if not 2 < len(cuts) <= MOST + 1:
        return []
    return [RowPart(a, b, _part(kernel, steps, a)) for a, b in pairwise(cuts)]


def _side(positions: LanePositions, e: Expr) -> _Step | None:
    """The step of a comparison of the column with a number; None for other expressions."""
    if not isinstance(e, Apply) or e.op not in AT_FIRST or e.type.lanes > 1:
        return None
    (x, y), op = map(positions.of, e.args), e.op
    if y is not None and y.varies:
        x, y, op = y, x, SWAPPED[op]
    if x is None or y is None or not x.varies or y.varies or not (x.is_exact and y.is_exact):
        return None
    assert x.low is not None and y.low is not None
    behind, holds = AT_FIRST[op]
    at = y.low - x.low + behind
    return _Step((at,), lambda column: constant(holds == (column < at), BOOL))


def _digit(positions: LanePositions, e: Expr, columns: int) -> _Step | None:
    """The step of a quotient, or a remainder, of the column and a number; None for other expressions."""
    if not isinstance(e, Apply) or e.op not in ("div", "mod") or e.type != Type(INT):
        return None
    x, y = map(positions.of, e.args)
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


def _part(kernel: Kernel, steps: Mapping[Expr, _Step], column: int) -> Kernel:
    """The kernel for the part that begins at a column."""
    values = {e: step.value(column) for e, step in steps.items()}
    return simplify(replace(kernel, body=_Substitution(kernel, values).copy()))


class _Substitution(Copier):
    def __init__(self, kernel: Kernel, values: Mapping[Expr, Expr]) -> None:
        super().__init__(kernel.body)
        self.values = values

    def expr(self, expr: Expr) -> Expr:
        return self.values[expr] if expr in self.values else super().expr(expr)
