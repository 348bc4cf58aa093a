"""Addresses of tensors in memory: coordinates with their ranges, and flat offsets of named strides."""

from __future__ import annotations

from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import GRID_AXES, Const, Expr, FieldParam, Index, Stride
from gpuop.ir.types import INT, LONG, Type
from gpuop.passes.ranges import Ranges

EXTENTS = {"layer": "layers", "row": "rows", "column": "columns"}


class Addresses:
    """Builds the arithmetic of addresses; operands are scalars.

    Attributes:
        ranges: the ranges of variables; bindings must be added in order.
    """

    def __init__(self, kernel: Kernel, b: Builder) -> None:
        self.kernel = kernel
        self.b = b
        self.ranges = Ranges(kernel)

    def all_of(self, tests: list[Expr | None]) -> Expr | None:
        needed = [t for t in tests if t is not None]
        for test in needed[1:]:
            needed[0] = self.b.apply("and", needed[0], test)
        return needed[0] if needed else None

    def planes(self, field: FieldParam, element: Expr | None) -> list[Expr]:
        return [element] if element is not None else [constant(k, INT) for k in range(field.type.planes)]

    def target(
        self, field: FieldParam, point: tuple[Expr, ...] | None, element: Expr | None
    ) -> tuple[Expr | None, list[Expr]]:
        """The target of a write: a test that it lies inside of the field (None: always), and an offset for each plane."""
        planes = self.planes(field, element)
        coordinates = self.coordinates(field, point)
        tests = [inside(self.b, c) for c in coordinates]
        if element is not None and not isinstance(element, Const):
            tests.append(inside(self.b, self.element(field, element)))
        at = self.offset(field, [c.at for c in coordinates])
        return self.all_of(tests), [self.plane(field, at, plane, clamped=False) for plane in planes]

    def coordinates(self, field: FieldParam, point: tuple[Expr, ...] | None) -> list[Coordinate]:
        grid = field.type.field_shape
        axes = GRID_AXES[3 - len(grid) :]
        indices = point if point is not None else [Index("global", axis) for axis in axes]
        out = []
        for axis, at, n in zip(axes, indices, grid, strict=True):
            low, high = (0, n - 1) if point is None and not self.kernel.whole else self.ranges.range(at)
            out.append(Coordinate(at, Stride(field, EXTENTS[axis], n, Type(INT)), n, low, high))
        return out

    def element(self, field: FieldParam, at: Expr) -> Coordinate:
        low, high = self.ranges.range(at)
        count = field.type.planes
        return Coordinate(at, Stride(field, "tensorElements", count, Type(INT)), count, low, high)

    def offset(self, field: FieldParam, point: list[Expr]) -> Expr:
        """The offset of a point within a plane."""
        grid, kind, layout = field.type.field_shape, self.index_type(field), self.kernel.layout(field)
        total: Expr = constant(0, kind.dtype)
        for n, (at, axis) in enumerate(zip(point, GRID_AXES[3 - len(grid) :], strict=True)):
            term = self.b.cast(at, kind)
            step = layout.point[n]
            if axis != "column" or step != 1:
                term = self.b.apply("mul", term, self.stride(field, f"{axis}Stride", step))
            total = term if n == 0 else self.b.apply("add", total, term)
        return total

    def plane(self, field: FieldParam, point: Expr, plane: Expr, clamped: bool) -> Expr:
        if field.type.planes == 1 and isinstance(plane, Const):
            return point
        if clamped and not isinstance(plane, Const):
            plane = place(self.b, self.element(field, plane), "clamp")
        layout = self.kernel.layout(field)
        if layout.row is not None:
            columns = field.type.tensor_shape[-1]
            point = self._along(field, point, self.b.apply("div", plane, columns), "tensorRowStride", layout.row)
            plane = self.b.apply("mod", plane, columns)
        return self._along(field, point, plane, "tensorStride", layout.element)

    def _along(self, field: FieldParam, point: Expr, count: Expr, what: str, step: int) -> Expr:
        """The offset, `count` steps further."""
        if count == constant(0, INT):
            return point
        far = self.b.apply("mul", self.b.cast(count, self.index_type(field)), self.stride(field, what, step))
        return self.b.apply("add", point, far)

    def stride(self, field: FieldParam, what: str, value: int) -> Stride:
        return Stride(field, what, value, self.index_type(field))

    def index_type(self, field: FieldParam) -> Type:
        """The type of offsets: int, or long in fields that extend over 2³¹ elements or more."""
        return Type(LONG if self.kernel.layout(field).reach(field.type) > 2**31 - 2 else INT)
