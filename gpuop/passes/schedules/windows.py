"""Windows: the points around its own that a kernel reads at constant distances, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Const, Expr, FieldParam, Index, Read
from gpuop.ir.visit import expressions
from gpuop.passes.points_per_thread import elements, is_own, is_plain

Span = tuple[int, int]  # the least and the greatest offset
LONG = 32  # points along an axis from which on it does not matter how many they are


@dataclass(frozen=True)
class View:
    """An element of a field's tensor, seen through a border, on the line of columns that is `across` away along the other axes;
    0 along the axis that a thread walks.
    """

    field: FieldParam
    element: Expr
    border: str
    fill: Const | None
    across: tuple[int, ...]


@dataclass(frozen=True)
class Window:
    """How far a view reaches: along the axis that a thread walks, and along columns. The own point is inside."""

    rows: Span = (0, 0)
    columns: Span = (0, 0)

    def with_point(self, row: int, column: int) -> Window:
        return Window(_wider(self.rows, row), _wider(self.columns, column))

    @property
    def height(self) -> int:
        return self.rows[1] - self.rows[0] + 1

    @property
    def halo(self) -> int:
        return self.columns[1] - self.columns[0]


class Windows:
    """What a kernel reads of fields that have its grid, by threads that walk along an axis.

    Attributes:
        found: the window of each view.
    """

    def __init__(self, kernel: Kernel, axis: str) -> None:
        self.axes, self.axis = kernel.domain.axes, axis
        self.found: dict[View, Window] = {}
        reads = sorted(around(kernel), key=lambda read: not any(_distance(read, self.axes)))  # of own points last
        for read in reads:
            for element in elements(read.field, read.element):
                view, row, column = self.place(read, element)
                self.found[view] = self.found.get(view, Window()).with_point(row, column)

    def place(self, read: Read, element: Expr) -> tuple[View, int, int]:
        """The view that a read is part of, and how far away it is there."""
        away = dict(zip(self.axes, _distance(read, self.axes), strict=True))
        row, column, across = (
            away[self.axis],
            away["column"],
            (0 if a == self.axis else away[a] for a in self.axes[:-1]),
        )
        border = "clamp" if read.border == "unchecked" else read.border  # what is read before it is known to be wanted
        view = View(read.field, element, border, read.fill, tuple(across))
        if row or column or any(view.across):
            return view, row, column
        own = replace(view, border="clamp", fill=None)  # never outside, so any border is right
        same = (v for v in self.found if replace(v, border="clamp", fill=None) == own)
        return next(same, own), 0, 0


def walked(kernel: Kernel) -> str:
    """The axis along which a thread shares most of what it reads with its own next points."""
    axes = kernel.domain.axes
    spans = [(0, 0)] * len(axes)
    for read in around(kernel):
        spans = [_wider(span, n) for span, n in zip(spans, _distance(read, axes), strict=True)]
    reach = dict(zip(axes, (high - low for low, high in spans), strict=True))
    length = {axis: min(kernel.domain.extent(axis), LONG) for axis in axes}
    return max(axes[:-1], key=lambda axis: (reach[axis] * length[axis], length[axis]))


def refused_reads(kernel: Kernel) -> str:
    """Why its reads make no windows; empty where they do."""
    for read in around(kernel):
        if read.field.type.field_shape != kernel.domain.shape:
            return "it reads fields of another grid"
        if _away(read, kernel.domain.axes) is None:
            return "it reads at computed coordinates"
        if not is_plain(read.field, read.element, kernel):
            return "it reads computed elements of tensors"
    if not any(any(_distance(read, kernel.domain.axes)) for read in around(kernel)):
        return "it reads no neighbours"
    return ""


def around(kernel: Kernel) -> Iterator[Read]:
    """The reads whose place depends on the thread."""
    return (e for e in expressions(kernel.body) if isinstance(e, Read) and is_placed(e))


def is_placed(read: Read) -> bool:
    return is_own(read.field) and (read.point is None or not all(isinstance(at, Const) for at in read.point))


def _away(read: Read, axes: tuple[str, ...]) -> tuple[int, ...] | None:
    """The distance from the own point along each axis; None where it is not constant."""
    if read.point is None:
        return (0,) * len(axes)
    pairs = zip(read.point, axes, strict=True)
    if not all(isinstance(at, Index) and (at.kind, at.axis) == ("global", axis) for at, axis in pairs):
        return None
    return tuple(at.offset for at in read.point if isinstance(at, Index))


def _distance(read: Read, axes: tuple[str, ...]) -> tuple[int, ...]:
    away = _away(read, axes)
    assert away is not None
    return away


def _wider(span: Span, n: int) -> Span:
    return min(span[0], n), max(span[1], n)
