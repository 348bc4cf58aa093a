"""Basic slicing of fields, with NumPy semantics over `array_shape`: grid axes first, then the tensor's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import BoundsError, SemanticError, described
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.value import Value
from gpuop.ir.types import FieldType, is_integer
from gpuop.ops.layout.axes import Axis, axes_of, type_of
from gpuop.ops.layout.gather import Place, Reading, gathered

ADVICE = "`.numpy()` gives an array, which takes all indices of NumPy"


@dataclass(frozen=True)
class Cut:
    """The slice of an axis: `count` points from `start` on, `step` apart; None: one point, and the axis is dropped."""

    start: int
    step: int = 1
    count: int | None = None

    def place(self, own: Any) -> Any:
        """Return the field coordinate for a coordinate of the result; an index with an offset where that suffices."""
        if self.step == 1:
            return own + self.start if self.start else own
        return self.start + self.step * own

    def away(self, at: Any) -> Any:
        """Return the distance of a field coordinate from the first point of the slice, in the direction of the steps."""
        return at - self.start if self.step > 0 else self.start - at

    def among(self, at: Any) -> Any:
        """Return the coordinate in the result of a field coordinate in the slice."""
        away, step = self.away(at), abs(self.step)
        return away if step == 1 else away // step if isinstance(away, int) else away / step


@dataclass(frozen=True)
class FieldIndex:
    """An index of a field.

    Attributes:
        cuts: the slice of each axis of the field.
        new: the positions of new axes, each the number of field axes before it.
    """

    cuts: tuple[Cut, ...]
    new: tuple[int, ...] = ()

    def axes(self, kind: FieldType) -> list[Axis]:
        """The axes of the result: a new one is a grid axis, unless it comes after a tensor axis."""
        axes, items = list[Axis](), axes_of(kind)
        for n in range(len(items) + 1):
            axes += [Axis(1, any(axis.tensor for axis in axes))] * self.new.count(n)
            if n < len(items) and (count := self.cuts[n].count) is not None:
                axes.append(Axis(count, items[n].tensor, items[n].name))
        return axes

    def place(self, own: Place) -> list[Any]:
        """Return the place in the field for a place in the result."""
        axes, result = iter(own), list[Any]()
        for n, cut in enumerate(self.cuts):
            for _ in range(self.new.count(n)):
                next(axes)
            result.append(cut.start if cut.count is None else cut.place(next(axes)))
        return result

    def among(self, at: Place) -> list[Any]:
        """Return the place in the result for a place in the slice."""
        result = list[Any]()
        for n, cut in enumerate(self.cuts[: len(at)]):
            result += [0] * self.new.count(n)
            if cut.count is not None:
                result.append(cut.among(at[n]))
        return result + [0] * self.new.count(len(at))

    def whole(self, kind: FieldType) -> bool:
        """Return whether tensors stay as they are."""
        first = len(kind.field_shape)
        tensor = kind.tensor_shape
        return self.cuts[first:] == tuple(Cut(0, 1, n) for n in tensor) and not any(n > first for n in self.new)


def sliced(field: Field, index: Any) -> Field:
    """Return `field[index]` for integers, slices, `np.newaxis` and an ellipsis; the field itself if that is all of it.

    Args:
        index: one index for each axis of `array_shape`, from the first on, or fewer. An integer takes its axis away
            (of the grid, or of the tensor), a slice keeps it, None makes one.

    Returns:
        A field of the same dtype, without points where a grid axis keeps none.

    Raises:
        SemanticError: other indices, one outside, more of them than axes, or a slice that keeps no tensor element.
    """
    result = index_of(field, index)
    kind = field.type
    if result == FieldIndex(tuple(Cut(0, 1, n) for n in kind.array_shape)):
        return field
    if 0 in (cut.count for cut in result.cuts[len(kind.field_shape) :]):
        raise SemanticError(f"this slice keeps no tensor element of a {kind} field; a tensor has at least one")
    out, whole = type_of("this index", result.axes(kind), kind.dtype), result.whole(kind)
    first = len(kind.field_shape)
    return gathered(
        "slice",
        out,
        [field],
        lambda at, read: read.at(
            field, result.place(at) if not whole else FieldIndex(result.cuts[:first], result.new).place(at)
        ),
        result,
        whole,
    )


def sliced_from(field: Field, firsts: Mapping[int, Field], grid: Sequence[int]) -> Field:
    """Return some points of a grid, from a place that is a value (JAX: `dynamic_slice`); they must be inside.

    Args:
        firsts: by grid axis the first coordinate, a 0D field of an integer; 0 along others.
        grid: the extents of the result.
    """

    def value(at: Place, read: Reading) -> Any:
        return read.at(field, [own + k._readTensor(firsts[a]) if a in firsts else own for a, own in enumerate(at)])

    out = field.type.replace(field_shape=grid)
    return gathered("slice", out, [field, *firsts.values()], value, ("from", tuple(firsts)), True)


# --- what is taken --------------------------------------------------------------------------------------------------


def index_of(field: Field, index: Any) -> FieldIndex:
    """Parse an index as NumPy does."""
    shape = field.type.array_shape
    items = list(index) if isinstance(index, tuple) else [index]
    for i in items:
        _check_kind(i)
    dots = [n for n, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise SemanticError("an index has at most one ellipsis (`...`)")
    count = sum(i is not None and i is not Ellipsis for i in items)
    if count > len(shape):
        raise SemanticError(
            f"{count} indices for a {field.type} field, which has {len(shape)} axes "
            f"({len(field.field_shape)} of the grid, {len(field.tensor_shape)} of the tensor)"
        )
    at = dots[0] if dots else len(items)
    items[at : at + 1] = [slice(None)] * (len(shape) - count)
    cuts, new = list[Cut](), list[int]()
    for i in items:
        if i is None:
            new.append(len(cuts))
        else:
            cuts.append(_cut(i, shape[len(cuts)], len(cuts)))
    return FieldIndex(tuple(cuts), tuple(new))


def _check_kind(index: Any) -> None:
    """Refuse indices other than integers, slices of integers, None and an ellipsis."""
    parts: Sequence[Any] = (index.start, index.stop, index.step) if isinstance(index, slice) else (index,)
    for part in parts:
        if isinstance(part, Value):
            raise SemanticError(
                "a Field is indexed by Python integers and slices; in a kernel read it with `_readTensor(f, row, column)`"
            )
        if is_integer(part) or part is None or part is Ellipsis is index:
            continue
        raise SemanticError(
            f"a Field is indexed by integers, slices, `np.newaxis` and `...`, not by {described(part)}; {_advice(part)}"
        )


def _advice(index: Any) -> str:
    if isinstance(index, Field) and index.dtype == "bool":
        return "`np.where(mask, a, b)` chooses between values, `np.take(f, np.flatnonzero(mask))` takes those of a mask"
    if isinstance(index, (Field, np.ndarray, list)):
        return "`np.take(f, indices, axis)` takes what indices name"
    return ADVICE


def _cut(index: Any, n: int, axis: int) -> Cut:
    if isinstance(index, slice):
        if index.step == 0:
            raise SemanticError("a slice has no step 0")
        start, stop, step = index.indices(n)
        count = len(range(start, stop, step))
        return Cut(start, step if count > 1 else 1, count)  # without a second point no step matters
    at = int(index)
    if not -n <= at < n:
        raise BoundsError(f"index {at} is out of bounds for axis {axis} with size {n}")
    return Cut(at % n)
