"""Ranges of the integers of a kernel, from positions, counters, constants and narrow types."""

from __future__ import annotations

from gpuop.ir.analysis.intervals import LIMITS, Range, interval
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Array, Cast, Const, Expr, For, Index, Let, Load, Ref, Stmt, Stride, Var
from gpuop.ir.types import INT, DType
from gpuop.ir.visit import loop_values, walk


class Ranges:
    """The ranges after the statements so far, which must be added in order, by `meet`.

    Attributes:
        by_var: the ranges of counters and of immutable integers.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.by_var: dict[Var, Range] = {}
        self.open = {param for param, names in kernel.named if any(names)}  # fields with extents as arguments

    def meet(self, stmt: Stmt) -> None:
        if isinstance(stmt, For):
            self.by_var[stmt.var] = self.counter(stmt)
        elif isinstance(stmt, Let) and not stmt.var.mutable and stmt.value.type.kind in "iu":
            self.by_var[stmt.var] = self.range(stmt.value)

    def range(self, expr: Expr) -> Range:
        """The bounds of an integer or bool; those of its type where no better ones are known."""
        bounds = self.exact(expr)
        return bounds if isinstance(expr, Ref) or fits(bounds, expr.type.dtype) else LIMITS[expr.type.dtype]

    def exact(self, expr: Expr) -> Range:
        """The bounds of the value as if it could not overflow."""
        match expr:
            case Ref(var=var) if var in self.by_var:  # most are
                return self.by_var[var]
            case Const(value=value):
                return int(value), int(value)
            case Stride(field=field, what=what, value=value):
                return (1 if field in self.open and what != "tensorElements" else value), value
            case Index():
                return self.kernel.bounds(expr)
            case Load(memory=Array(space="constant", values=values)):
                return int(min(values)), int(max(values))
            case Cast(arg=arg) if arg.type.kind in "iub":
                return self.range(arg)
            case Apply():
                return self.result(expr)
        return LIMITS[expr.type.dtype]

    def result(self, expr: Apply) -> Range:
        """The bounds of the result of an operation, as if it could not overflow."""
        if all(a.type.kind in "iub" for a in expr.args):
            return interval(expr.op, [self.range(a) for a in expr.args], expr.type.dtype)
        return LIMITS[expr.type.dtype]

    def counter(self, loop: For) -> Range:
        """The range of a loop's counter inside the loop."""
        if values := loop_values(loop):
            return min(values), max(values)
        start, stop, step = (self.range(e) for e in (loop.start, loop.stop, loop.step))
        if step[0] > 0:
            return start[0], max(stop[1] - 1, start[0])
        return (min(stop[0] + 1, start[1]), start[1]) if step[1] < 0 else LIMITS[INT]


def rising(kernel: Kernel) -> set[Var]:
    """The counters of loops whose steps are above 0."""
    ranges, counters = Ranges(kernel), set[Var]()
    for stmt in walk(kernel.body):
        if isinstance(stmt, For) and ranges.range(stmt.step)[0] > 0:
            counters.add(stmt.var)
        ranges.meet(stmt)
    return counters


def fits(bounds: Range, dtype: DType) -> bool:
    """Return whether a type holds all of the values."""
    least, most = LIMITS[dtype]
    return least <= bounds[0] and bounds[1] <= most
