"""How far from its own position an integer of a thread is: positions, what is added to them, and what is clamped."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gpuop.ir.analysis.intervals import LIMITS
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import AXES, Apply, Cast, Const, Expr, Index, Let, Ref, Stmt, Var
from gpuop.ir.types import INT
from gpuop.passes.ranges import Ranges, fits

Span = tuple[float, float]
ANY = (-math.inf, math.inf)


@dataclass(frozen=True)
class Near:
    """An integer that is the thread's position along an axis and from `low` to `high` more.

    Attributes:
        of_group: whether it is so far from the first position of the work-group instead.
    """

    axis: str
    low: int
    high: int
    of_group: bool = False


def group_of(kernel: Kernel, axis: str) -> int:
    """The threads of a work-group along an axis, where it is known that there are groups; 0 where a target decides."""
    size = 1 if kernel.group is None else kernel.group[AXES.index(axis)]
    return size if isinstance(size, int) else 0


class Nearness:
    """What is known behind the statements that were met, which are to be met in order; more than schedules can use.

    Attributes:
        ranges: between which numbers integers are, wherever the thread is.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.ranges = kernel, Ranges(kernel)
        self.known: dict[Var, Near] = {}
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
                self.known[stmt.var] = near
            if isinstance(stmt.value, Cast) and stmt.value.arg.type.kind == "f":
                self.ranges.known[stmt.var] = self._whole(stmt.value)

    def near(self, expr: Expr) -> Near | None:
        """How far an integer is from a position; None of what is near to none."""
        match expr:
            case Index(kind="global", axis=axis, offset=offset):
                return Near(axis, offset, offset)
            case Index(kind="group", axis=axis, offset=offset) if group_of(self.kernel, axis) == 1:
                return Near(axis, offset, offset)
            case Apply(op="mul", args=args):
                return self._first_of_group(*args) or self._first_of_group(*args[::-1])
            case Ref(var=var):
                return self.known.get(var)
            case Cast(arg=arg, type=kind) if arg.type.integer and kind.integer:
                found = self.near(arg)
                return found if fits(self.ranges.range(arg), kind.dtype) else None
            case Apply(op="add" | "sub", args=args) | Apply(op="min" | "max", args=args):
                found = self._of_two(expr, *args)
            case Apply(op="choose", args=(_, x, y)):
                found = self._of_two(expr, x, y)
            case _:
                return None
        inside = found is not None and fits(self._bounds(found), expr.type.dtype)
        return found if inside else None

    def _first_of_group(self, group: Expr, size: Expr) -> Near | None:
        """The number of a work-group times the points that it has."""
        index = self._value(group)
        if not isinstance(index, Index) or index.kind != "group" or index.offset or not isinstance(size, Const):
            return None
        return Near(index.axis, 0, 0, True) if size.value == group_of(self.kernel, index.axis) else None

    def _value(self, expr: Expr) -> Expr:
        return self.values.get(expr.var, expr) if isinstance(expr, Ref) else expr

    def _of_two(self, expr: Apply, x: Expr, y: Expr) -> Near | None:
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
                return Near(near.axis, near.low + more, near.high + more, not near.of_group)
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
                return Near(axis, min(lows), min(highs))
            case "max":
                return Near(axis, max(lows), max(highs))
        return Near(axis, min(lows), max(highs))

    def _as_near(self, near: Near | None, expr: Expr, axis: str) -> Near | None:
        """Any integer within bounds is so far from a position at most."""
        if near is not None and near.of_group:
            near = Near(near.axis, near.low - group_of(self.kernel, near.axis) + 1, near.high)
        if near is not None:
            return near if near.axis == axis else None
        least, most = self.ranges.range(expr)
        return Near(axis, least - (self.kernel.domain.extent(axis) - 1), most) if axis else None

    def _bounds(self, near: Near) -> tuple[int, int]:
        return near.low, near.high + self.kernel.domain.extent(near.axis) - 1

    def exact(self, expr: Expr) -> Near | None:
        """A position and a constant."""
        near = self.near(expr)
        return near if near is not None and near.low == near.high else None

    # --- floats, which become integers ------------------------------------------------------------------------------

    def _span(self, expr: Expr) -> Span:
        """Between which numbers a float is, if it is not NaN."""
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
        """Of `y < x ? x : y`, or with the other sign; NaN stays what it is."""
        a, b = self._span(x), self._span(y)
        pick = max if test == "lt" else min
        return pick(a[0], b[0]), pick(a[1], b[1])

    def _whole(self, cast: Cast) -> tuple[int, int]:
        """Between which integers a float's conversion is; that of NaN is 0."""
        limits = LIMITS[cast.type.dtype]
        low, high = self._span(cast.arg)
        if not cast.saturate or cast.type.dtype.bits < INT.bits:
            return limits
        least = limits[0] if low < limits[0] else min(math.floor(low), 0)
        most = limits[1] if high > limits[1] else max(math.ceil(high), 0)
        return least, most
