"""Memory layout of a field: strides and offset of its elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from gpuop.base.records import dataclass
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import FieldType, Shape

ALTERNATING = (2, 3, 4)  # elements of points that accesses take apart, where these alternate in memory


@dataclass(frozen=True, slots=True)
class Layout:
    """Strides, in elements of the storage type; any may be negative.

    Attributes:
        point: the stride from one point to the next, along each axis of the grid.
        element: the stride from one tensor element to the next.
        row: the stride from one row of a matrix to the next, if rows are not contiguous.
        behind: how far the first element lies behind a multiple of 16 bytes; None where that is not known.
    """

    point: tuple[int, ...]
    element: int
    row: int | None = None
    behind: int | None = None

    def in_rows(self) -> bool:
        """Return whether neighbouring points of a row are neighbours in memory."""
        return self.point[-1:] in ((), (1,))

    @property
    def period(self) -> int:
        """The number of elements from one point of a row to the next, where these alternate in memory; else 1."""
        alternating = self.row is None and self.element == 1 and len(self.point) > 0 and self.point[-1] in ALTERNATING
        return self.point[-1] if alternating else 1

    def alternates(self, kind: FieldType) -> bool:
        """Return whether the elements of a row's points alternate in memory, without gaps."""
        return 1 < kind.planes == self.period

    def aligned(self, count: int) -> bool:
        """Return whether one access can take `count` neighbours from any column that is a multiple of `count`.

        Where elements of points alternate, as many accesses as these are take that many points.
        """
        if self.behind is None or not (self.in_rows() or self.period > 1):
            return count == 1
        element = 0 if self.period > 1 else self.element
        return math.gcd(count, self.behind, element, self.row or 0, *self.point[:-1]) == count

    def reach(self, kind: FieldType) -> int:
        """The greatest distance between two elements."""
        if self.row is None:
            along = [(self.element, kind.planes)]
        else:
            along = [*zip((self.row, self.element), kind.tensor_shape, strict=True)]
        along += zip(self.point, kind.field_shape, strict=True)
        return sum(abs(stride) * max(n - 1, 0) for stride, n in along)


@lru_cache(maxsize=1024)
def planar(kind: FieldType) -> Layout:
    """A plane for each tensor element, which is how fields are stored."""
    return Layout(row_major(kind.field_shape), kind.field_shape.points)


@lru_cache(maxsize=1024)
def own(kind: FieldType) -> Layout:
    """Layout of fields in gpuop memory, which starts at an address aligned for any access."""
    return replace(planar(kind), behind=0)


@lru_cache(maxsize=1024)
def interleaved(kind: FieldType) -> Layout:
    """Layout with the tensor of a point in one place, as in NumPy arrays."""
    return Layout(tuple(n * kind.planes for n in row_major(kind.field_shape)), 1)


@lru_cache(maxsize=1024)
def layout_of(kind: FieldType, strides: tuple[int, ...]) -> Layout:
    """The layout of an array of `array_shape`; strides are in elements."""
    split = len(kind.field_shape)
    point, tensor = strides[:split], strides[split:]
    if kind.dtype in COMPLEX_DTYPES:  # real and imaginary parts alternate; `interop.share` sees to contiguous tensors
        return Layout(tuple(2 * n for n in point), 1)
    if not tensor:
        return Layout(point, kind.field_shape.points)
    columns = kind.tensor_shape[-1]
    if len(tensor) == 2 and kind.tensor_shape[0] > 1 and columns > 1 and tensor[0] != columns * tensor[1]:
        return Layout(point, tensor[1], tensor[0])
    return Layout(point, tensor[0] if len(tensor) == 2 and columns == 1 else tensor[-1])


@lru_cache(maxsize=1024)
def strides_of(kind: FieldType, layout: Layout) -> tuple[int, ...]:
    """Strides of an array of `array_shape`, in elements of its dtype; a complex number is one element."""
    point = unfolded_strides(layout.point, kind.field_shape)
    if kind.dtype in COMPLEX_DTYPES:
        return (*(n // 2 for n in point), *row_major(kind.tensor_shape))
    columns = kind.tensor_shape[-1] if kind.tensor_shape else 1
    tensor = (layout.element * columns if layout.row is None else layout.row, layout.element)
    return (*point, *unfolded_strides(tensor[max(2 - len(kind.tensor_shape), 0) :], kind.tensor_shape))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of C arrays, in elements."""
    return tuple(Shape(shape[n + 1 :]).points for n in range(len(shape)))


def folded_strides(shape: Sequence[int], strides: Sequence[int], into: Sequence[int]) -> tuple[int, ...] | None:
    """The strides of an array in a shape that takes neighbouring axes together; None where they lie apart."""
    if tuple(shape) == tuple(into) or 0 in into:
        return tuple(strides) if len(shape) == len(into) else row_major(into)
    result, axis = list[int](), 0
    for n, extent in enumerate(into):
        count, last = 1, len(shape) - (len(into) - n - 1)  # each of the others has an axis at least
        group = list[int]()
        while axis < last and (not group or count < extent):
            count, axis = count * shape[axis], axis + 1
            group.append(axis - 1)
        longer = [a for a in group if shape[a] > 1] or group
        if any(strides[a] != strides[b] * shape[b] for a, b in pairwise(longer)):
            return None
        result.append(strides[longer[-1]])
    return tuple(result)


def unfolded_strides(strides: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a shape whose first axes are one in memory."""
    whole = list(strides)
    for n in reversed(shape[1 : len(shape) - len(strides) + 1]):
        whole.insert(0, whole[0] * n)
    return tuple(whole)
