"""Sites that kernels read and write, as functions of the threads' points: an axis times a factor, and a number, over a divisor."""

from __future__ import annotations

from collections.abc import Mapping

from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.analysis.affine import Affine, affine, position
from gpuop.ir.analysis.affine import number as exactly
from gpuop.ir.kernel import Kernel
from gpuop.ir.visit import walk

OWN = "own"  # the element of a thread that has one element of a big tensor


@dataclass(frozen=True, slots=True)
class Position:
    """A coordinate: `(factor · axis + number) / divisor`; `axis` is empty for a number."""

    axis: str
    factor: int
    number: int
    divisor: int = 1


@dataclass(frozen=True, slots=True)
class Site:
    """A place of a field that threads read or write, by their points.

    Attributes:
        point: its coordinates; None where data decide on them.
        element: the number of the tensor's element where it has more than kernels have lanes; OWN; None for the whole tensor.
    """

    field: ir.FieldParam
    point: tuple[Position, ...] | None
    element: int | str | None
    border: str = "unchecked"

    def is_own(self, kernel: Kernel) -> bool:
        """Return whether each thread accesses its own point."""
        own = tuple(Position(axis, 1, 0) for axis in kernel.domain.axes)
        return self.point == own and self.field.type.field_shape == kernel.domain.shape


class Sites:
    """The places of a kernel's accesses, whose variables are each assigned once."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        lets = (stmt for stmt in walk(kernel.body) if isinstance(stmt, ir.Let) and not stmt.var.mutable)
        self.values: Mapping[ir.Var, ir.Expr] = {stmt.var: stmt.value for stmt in lets}

    def site(self, access: ir.Read | ir.Write) -> Site:
        """The place of an access."""
        border = access.border if isinstance(access, ir.Read) and access.point is not None else "unchecked"
        return Site(access.field, self._point(access), self._element(access), border)

    def own(self, access: ir.Read | ir.Write) -> tuple[ir.Expr, ...]:
        """The coordinates of the thread's own point."""
        axes = self.kernel.domain.axes if access.field.type.field_shape else ()
        return tuple(ir.Index("global", axis) for axis in axes)

    def _point(self, access: ir.Read | ir.Write) -> tuple[Position, ...] | None:
        if access.point is None:
            axes = self.kernel.domain.axes if access.field.type.field_shape else ()
            return tuple(Position(axis, 1, 0) for axis in axes)
        along = [self.coordinate(each) for each in access.point]
        known = [each for each in along if each is not None]
        return tuple(known) if len(known) == len(along) else None

    def _element(self, access: ir.Read | ir.Write) -> int | str | None:
        element = access.element
        if element is None or access.field.type.planes == 1:
            return None
        if isinstance(element, ir.Const):
            return int(element.value)
        return OWN if element == ir.Index("global", "element") else "computed"

    def coordinate(self, expr: ir.Expr) -> Position | None:
        """An integer as a function of the thread's point; None where it is another one."""
        expr = self._value(expr)
        if isinstance(expr, ir.Apply) and expr.op in ("div", "shr") and expr.type.integer:
            return self._quotient(expr)
        form = affine(expr, self._leaf)
        if form is None or not form.is_exact or len(form.parts) > 1:
            return None
        axis, factor = next(iter(form.parts.items()), ("", 0))
        return Position(axis, factor, form.number)

    def _quotient(self, expr: ir.Apply) -> Position | None:
        """A quotient of an affine coordinate that is not negative, and a positive number."""
        dividend, divisor = self.coordinate(expr.args[0]), self._value(expr.args[1])
        if dividend is None or dividend.divisor > 1 or not isinstance(divisor, ir.Const):
            return None
        by = int(divisor.value) if expr.op == "div" else 1 << int(divisor.value)
        if dividend.factor != 1 or dividend.number < 0 or by < 1:
            return None
        return Position(dividend.axis, 1, dividend.number, by)

    def _value(self, expr: ir.Expr) -> ir.Expr:
        while isinstance(expr, ir.Ref) and expr.var in self.values:
            expr = self.values[expr.var]
        return expr

    def _leaf(self, expr: ir.Expr) -> Affine | None:
        value = self._value(expr)
        if isinstance(value, ir.Index) and value.axis != "element":
            if value.kind == "global" and value.axis in self.kernel.domain.axes:
                return position(value.axis, value.offset)
            extents = {"global": 0, "global_size": self.kernel.domain.extent(value.axis)}
            return exactly(extents[value.kind] + value.offset) if value.kind in extents else None
        if isinstance(value, ir.Stride):
            return exactly(value.value)
        return affine(value, self._leaf) if value is not expr and not isinstance(value, ir.Ref) else None
