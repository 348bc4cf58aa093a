"""Where the elements of a field lie in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from gpuop.ir.types import FieldType, Shape


@dataclass(frozen=True, slots=True)
class Layout:
    """Distances in elements of the storage type, any of which may be negative.

    Attributes:
        point: from one point to the next, along each axis of the grid.
        element: from one tensor element to the next.
    """

    point: tuple[int, ...]
    element: int

    def reach(self, kind: FieldType) -> int:
        """The greatest distance between two elements."""
        along = zip((*self.point, self.element), (*kind.field_shape, kind.planes), strict=True)
        return sum(abs(stride) * max(n - 1, 0) for stride, n in along)


@cache
def planar(kind: FieldType) -> Layout:
    """A plane for each tensor element, which is how fields are stored."""
    return Layout(row_major(kind.field_shape), kind.field_shape.points)


@cache
def interleaved(kind: FieldType) -> Layout:
    """The tensor of a point in one place, which is how NumPy's arrays are stored."""
    return Layout(tuple(n * kind.planes for n in row_major(kind.field_shape)), 1)


@cache
def layout_of(kind: FieldType, strides: tuple[int, ...]) -> Layout | None:
    """That of an array of `array_shape`, strides in elements; None where one distance between tensor elements does not do."""
    split = len(kind.field_shape)
    point, tensor = strides[:split], strides[split:]
    if kind.dtype == "complex64":
        return Layout(tuple(2 * n for n in point), 1)
    if not tensor:
        return Layout(point, kind.field_shape.points)
    rows = kind.tensor_shape[-1]
    if len(tensor) == 2 and kind.tensor_shape[0] > 1 and rows > 1 and tensor[0] != rows * tensor[1]:
        return None
    return Layout(point, tensor[0] if len(tensor) == 2 and rows == 1 else tensor[-1])


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of C's arrays, in elements."""
    return tuple(Shape(shape[n + 1 :]).points for n in range(len(shape)))
