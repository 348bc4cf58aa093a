"""Ranges of the integers of a kernel, from positions, counters, constants and narrow types."""

from __future__ import annotations

from gpuop.ir.analysis.intervals import LIMITS, Range, interval
from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import interleaved, planar
from gpuop.ir.nodes import Apply, Array, Cast, Const, Expr, FieldParam, For, Index, Let, Load, Ref, Stmt, Stride, Var
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, DType, Shape
from gpuop.ir.visit import loop_values, walk

AXIS_OF = {"layers": "layer", "rows": "row", "columns": "column"}
STEPS = ("layerStride", "rowStride", "columnStride")


class Ranges:
    """The ranges after the statements so far, which must be added in order, by `meet`.

    Args:
        anywhere: whether they are to hold for all extents that the kernel is for. Otherwise they are those of its extents, as is
            asked where a place is compared with one of these.

    Attributes:
        by_var: the ranges of counters and of immutable integers.
        open: fields with extents as arguments, with the greatest of these.
    """

    def __init__(self, kernel: Kernel, anywhere: bool = False) -> None:
        self.kernel, self.anywhere = kernel, anywhere
        self.by_var: dict[Var, Range] = {}
        most = dict(kernel.most) if anywhere else {}
        self.open = {
            param: Shape(most.get(name, n) for name, n in zip(names, param.type.field_shape, strict=True))
            for param, names in kernel.named
            if param is not None and any(names)
        }

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
                return self.stride(field, what, value)
            case Index():
                return self.kernel.bounds(expr, self.anywhere)
            case Load(memory=Array(space="constant", values=values)):
                return int(min(values)), int(max(values))
            case Cast(arg=arg) if arg.type.kind in "iub":
                return self.range(arg)
            case Apply():
                return self.result(expr)
        return LIMITS[expr.type.dtype]

    def stride(self, field: FieldParam, what: str, value: int) -> Range:
        """The bounds of an extent or a stride of a field."""
        if field not in self.open or what == "tensorElements":
            return value, value
        greatest = self.open[field]
        if what in AXIS_OF:
            return 1, Domain(greatest).extent(AXIS_OF[what])
        kind, own = field.type.replace(field_shape=greatest), planar(field.type)
        layout = planar(kind) if self.kernel.layout(field).element == own.element else interleaved(kind)
        return 1, {"tensorStride": layout.element, **dict(zip(STEPS[-len(greatest) :], layout.point, strict=True))}[
            what
        ]

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
    ranges, counters = Ranges(kernel, anywhere=True), set[Var]()
    for stmt in walk(kernel.body):
        if isinstance(stmt, For) and ranges.range(stmt.step)[0] > 0:
            counters.add(stmt.var)
        ranges.meet(stmt)
    return counters


def fits(bounds: Range, dtype: DType) -> bool:
    """Return whether a type holds all of the values."""
    least, most = LIMITS[dtype]
    return least <= bounds[0] and bounds[1] <= most
