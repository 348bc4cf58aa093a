"""Basic slicing of fields, with NumPy's meaning over `array_shape`: grid axes first, then the tensor's."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.kinds_of_field import is_big_tensor
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.recorder.value import Value
from gpuop.errors import SemanticError, described
from gpuop.ir.types import Shape

ADVICE = "`.numpy()` gives an array, which takes every index of NumPy's"


@dataclass(frozen=True)
class Cut:
    """What is taken of an axis: `count` points from `start` on, `step` apart; None: one point, and the axis goes."""

    start: int
    step: int = 1
    count: int | None = None

    def place(self, own: Any) -> Any:
        """The coordinate in the field of a coordinate in the result; an index with an offset where that is all."""
        if self.step == 1:
            return own + self.start if self.start else own
        return self.start + self.step * own


def sliced(field: Field, index: Any) -> Field:
    """`field[index]` for integers, slices and an ellipsis; the field itself where that is all of it.

    Args:
        index: one index for each axis of `array_shape`, from the first on, or fewer. An integer takes its axis away
            (of the grid, or of the tensor), a slice keeps it.

    Returns:
        A field of the same dtype, without points where a grid axis keeps none.

    Raises:
        SemanticError: other indices, one outside, more of them than axes, or a slice that keeps no tensor element.
    """
    shape = field.type.array_shape
    cuts = _cuts(field, index)
    if all(cut == Cut(0, 1, n) for cut, n in zip(cuts, shape, strict=True)):
        return field
    grid, tensor = cuts[: len(field.field_shape)], cuts[len(field.field_shape) :]
    if 0 in (cut.count for cut in tensor):
        raise SemanticError(f"this slice keeps no tensor element of a {field.type} field; a tensor has at least one")
    out = field.type.replace(field_shape=_kept(grid), tensor_shape=_kept(tensor))
    tensor = [*tensor, *(Cut(0, 1, n) for n in field.type.parts[len(tensor) :])]
    whole = _elements(field, tensor) == list(range(field.type.planes))

    def body() -> None:
        point = _point(grid)
        if is_big_tensor(out):
            with k._forEachTensorElement(out.planes):
                element = _computed(field, tensor)
                k._writeTensorElement(k._out0, k._readTensorElement(field, *point, element, border="unchecked"))
        elif whole and not is_big_tensor(field):
            k._writeTensor(k._out0, k._readTensor(field, *point, border="unchecked"))
        else:
            for n, element in enumerate(_elements(field, tensor)):
                k._writeTensorElement(k._out0, k._readTensorElement(field, *point, element, border="unchecked"), n)

    return library_call("slice", (out,), [field], body, tuple(cuts))[0]


# --- what is taken --------------------------------------------------------------------------------------------------


def _cuts(field: Field, index: Any) -> list[Cut]:
    """A cut for every axis."""
    shape = field.type.array_shape
    given = list(index) if isinstance(index, tuple) else [index]
    for i in given:
        _check_kind(i)
    dots = [n for n, i in enumerate(given) if i is Ellipsis]
    if len(dots) > 1:
        raise SemanticError("an index has at most one ellipsis (`...`)")
    if len(given) - len(dots) > len(shape):
        raise SemanticError(
            f"{len(given) - len(dots)} indices for a {field.type} field, which has {len(shape)} axes "
            f"({len(field.field_shape)} of the grid, {len(field.tensor_shape)} of the tensor)"
        )
    at = dots[0] if dots else len(given)
    given[at : at + 1] = [slice(None)] * (len(shape) - len(given) + len(dots))
    return [_cut(i, n, axis) for axis, (i, n) in enumerate(zip(given, shape, strict=True))]


def _check_kind(index: Any) -> None:
    """Refuse what is neither an integer, a slice of integers, nor an ellipsis."""
    parts = (index.start, index.stop, index.step) if isinstance(index, slice) else (index,)
    for part in parts:
        if isinstance(part, Value):
            raise SemanticError(
                "a Field is indexed by Python's integers and slices; in a kernel read it with `_readTensor(f, row, column)`"
            )
        whole = isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_))
        if whole or (part is None and isinstance(index, slice)) or part is Ellipsis is index:
            continue
        what = "None (`np.newaxis`)" if part is None else described(part)
        raise SemanticError(f"a Field is indexed by integers, slices and `...`, not by {what}; {ADVICE}")


def _cut(index: Any, n: int, axis: int) -> Cut:
    if isinstance(index, slice):
        if index.step == 0:
            raise SemanticError("a slice has no step 0")
        start, stop, step = index.indices(n)
        count = len(range(start, stop, step))
        return Cut(start, step if count > 1 else 1, count)  # of one point or none no step matters, however large
    at = operator.index(index)
    if not -n <= at < n:
        raise SemanticError(f"index {at} is out of bounds for axis {axis} with size {n}")
    return Cut(at % n)


def _kept(cuts: Sequence[Cut]) -> Shape:
    return Shape(cut.count for cut in cuts if cut.count is not None)


# --- where it is ----------------------------------------------------------------------------------------------------


def _point(cuts: Sequence[Cut]) -> list[Any]:
    """Coordinates in the field of the thread's own point; none where they are the same."""
    own = iter((k._layer, k._row, k._column)[3 - len(_kept(cuts)) :])
    return [cut.start if cut.count is None else cut.place(next(own)) for cut in cuts]


def _strides(field: Field) -> list[int]:
    parts = field.type.parts
    return [Shape(parts[axis + 1 :]).points for axis in range(len(parts))]


def _elements(field: Field, cuts: Sequence[Cut]) -> list[int]:
    """The numbers in the field's tensor of the result's elements, in their order."""
    taken = np.arange(field.type.planes).reshape(tuple(field.type.parts))
    for axis, cut in reversed(list(enumerate(cuts))):
        taken = taken.take(cut.start if cut.count is None else cut.start + cut.step * np.arange(cut.count), axis)
    found: list[int] = taken.ravel().tolist()
    return found


def _computed(field: Field, cuts: Sequence[Cut]) -> Any:
    """The number in the field's tensor of the result's element that the thread is at."""
    rest, number = k._tensorElement, 0
    for cut, stride in reversed(list(zip(cuts, _strides(field), strict=True))):
        if cut.count is None:
            number = number + cut.start * stride
            continue
        number = number + cut.place(rest % cut.count) * stride
        rest = rest / cut.count
    return number


services.algebra["getitem"] = sliced
