"""Index analysis for halos: the distance of an index from the thread's position, through sums, clamps and choices."""

from __future__ import annotations

import math
from dataclasses import replace

from gpuop.base.records import dataclass
from gpuop.ir.analysis.intervals import LIMITS
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import AXES, Apply, Cast, Const, Expr, Index, Let, Ref, Stmt, Var
from gpuop.ir.types import INT
from gpuop.passes.ranges import Ranges, fits

Span = tuple[float, float]
ANY = (-math.inf, math.inf)


@dataclass(frozen=True)
class OffsetRange:
    """An integer from `low` to `high` more than the thread's position along an axis.

    It is no `Affine`, because minima, maxima and choices of such integers are such integers too.

    Attributes:
        of_group: True if it is relative to the first position of the work-group instead.
    """

    axis: str
    low: int
    high: int
    of_group: bool = False


def group_of(kernel: Kernel, axis: str) -> int:
    """The threads of a work-group along an axis; 1 without groups, 0 if the target chooses them."""
    size = 1 if kernel.group is None else kernel.group[AXES.index(axis)]
    return size if isinstance(size, int) else 0


class IndexHalo:
    """The analysis of the indices of a body, statement by statement, in order.

    Attributes:
        ranges: the ranges of integers over all threads.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.ranges = kernel, Ranges(kernel)
        self.offsets: dict[Var, OffsetRange] = {}
        self.values: dict[Var, Expr] = {}
        self.spans: dict[Var, Span] = {}

    def meet(self, stmt: Stmt) -> None:
        self.ranges.meet(stmt)
        if not isinstance(stmt, Let) or stmt.var.mutable or stmt.value.type.lanes > 1:
            return
        self.values[stmt.var] = stmt.value
        if stmt.value.type.kind == "f":
            self.spans[stmt.var] = self._span(stmt.value)
        elif stmt.value.type.kind in "iu":
            near = self.near(stmt.value)
            if near is not None:
                self.offsets[stmt.var] = near
            if isinstance(stmt.value, Cast) and stmt.value.arg.type.kind == "f":
                self.ranges.by_var[stmt.var] = self._whole(stmt.value)

    def near(self, expr: Expr) -> OffsetRange | None:
        """The distance of an integer from a position; None if it is not bounded."""
        match expr:
            case Index(kind="global", axis=axis, offset=offset):
                return OffsetRange(axis, offset, offset)
            case Index(kind="group", axis=axis, offset=offset) if group_of(self.kernel, axis) == 1:
                return OffsetRange(axis, offset, offset)
            case Apply(op="mul", args=args):
                return self._first_of_group(*args) or self._first_of_group(*args[::-1])
            case Ref(var=var):
                return self.offsets.get(var)
            case Cast(arg=arg, type=kind) if arg.type.integer and kind.integer:
                result = self.near(arg)
                return result if fits(self.ranges.range(arg), kind.dtype) else None
            case Apply(op="add" | "sub", args=args) | Apply(op="min" | "max", args=args):
                result = self._of_two(expr, *args)
            case Apply(op="choose", args=(_, x, y)):
                result = self._of_two(expr, x, y)
            case _:
                return None
        inside = result is not None and fits(self._bounds(result), expr.type.dtype)
        return result if inside else None

    def _first_of_group(self, group: Expr, size: Expr) -> OffsetRange | None:
        """The first position of a work-group: its number times its extent; None for other products."""
        index = self._value(group)
        if not isinstance(index, Index) or index.kind != "group" or index.offset or not isinstance(size, Const):
            return None
        return OffsetRange(index.axis, 0, 0, True) if size.value == group_of(self.kernel, index.axis) else None

    def _value(self, expr: Expr) -> Expr:
        return self.values.get(expr.var, expr) if isinstance(expr, Ref) else expr

    def _of_two(self, expr: Apply, x: Expr, y: Expr) -> OffsetRange | None:
        a, b = self.near(x), self.near(y)
        if expr.op in ("add", "sub"):
            if (a is None) == (b is None) or (expr.op == "sub" and a is None):
                return None
            near, other = (a, y) if a is not None else (b, x)
            assert near is not None
            place = self._value(other)
            own = isinstance(place, Index) and (place.kind, place.axis) == ("local", near.axis)
            if own and isinstance(place, Index) and near.of_group == (expr.op == "add"):
                more = place.offset if near.of_group else -place.offset
                return OffsetRange(near.axis, near.low + more, near.high + more, not near.of_group)
            least, most = self.ranges.range(other)
            if expr.op == "sub":
                least, most = -most, -least
            return replace(near, low=near.low + least, high=near.high + most)
        axis = a.axis if a is not None else b.axis if b is not None else ""
        a, b = (self._as_near(each, e, axis) for each, e in ((a, x), (b, y)))
        if not axis or a is None or b is None:
            return None
        lows, highs = (a.low, b.low), (a.high, b.high)
        match expr.op:
            case "min":
                return OffsetRange(axis, min(lows), min(highs))
            case "max":
                return OffsetRange(axis, max(lows), max(highs))
        return OffsetRange(axis, min(lows), max(highs))

    def _as_near(self, near: OffsetRange | None, expr: Expr, axis: str) -> OffsetRange | None:
        """The distance of an integer from positions of an axis; one without a position is bounded by its range."""
        if near is not None and near.of_group:
            near = OffsetRange(near.axis, near.low - group_of(self.kernel, near.axis) + 1, near.high)
        if near is not None:
            return near if near.axis == axis else None
        least, most = self.ranges.range(expr)
        return OffsetRange(axis, least - (self.kernel.domain.extent(axis) - 1), most) if axis else None

    def _bounds(self, near: OffsetRange) -> tuple[int, int]:
        return near.low, near.high + self.kernel.domain.extent(near.axis) - 1

    def exact(self, expr: Expr) -> OffsetRange | None:
        """The distance, if it is a constant."""
        near = self.near(expr)
        return near if near is not None and near.low == near.high else None

    # --- floats, which become integers ------------------------------------------------------------------------------

    def _span(self, expr: Expr) -> Span:
        """The range of a float that is not NaN."""
        match expr:
            case Const(value=value):
                return (float(value), float(value)) if value == value else ANY
            case Ref(var=var):
                return self.spans.get(var, ANY)
            case Apply(op="floor" | "ceil" | "rint" | "round" | "trunc", args=(x,)):
                low, high = self._span(x)
                return (low, high) if math.isinf(low) or math.isinf(high) else (math.floor(low), math.ceil(high))
            case Apply(op="choose", args=(Ref(var=condition), x, y)):
                test = self.values.get(condition)
                if isinstance(test, Apply) and test.op in ("lt", "gt") and test.args == (y, x):
                    return self._extreme(test.op, x, y)
        return ANY

    def _extreme(self, test: str, x: Expr, y: Expr) -> Span:
        """The range of `y < x ? x : y`, the maximum, or with the other sign the minimum; NaN stays NaN."""
        a, b = self._span(x), self._span(y)
        pick = max if test == "lt" else min
        return pick(a[0], b[0]), pick(a[1], b[1])

    def _whole(self, cast: Cast) -> tuple[int, int]:
        """The range of a float's conversion to an integer; that of NaN is 0."""
        limits = LIMITS[cast.type.dtype]
        low, high = self._span(cast.arg)
        if not cast.saturate or cast.type.dtype.bits < INT.bits:
            return limits
        least = limits[0] if low < limits[0] else min(math.floor(low), 0)
        most = limits[1] if high > limits[1] else max(math.ceil(high), 0)
        return least, most
