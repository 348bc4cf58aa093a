"""NumPy's function that takes what other indices name at each place along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.errors import BoundsError, SemanticError
from gpuop.ops.axes import Axis, a_field, axes_of, numbered, of_field, type_of
from gpuop.ops.gather import Place, Reading, gathered
from gpuop.ops.layouts import ravel


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Field:
    """numpy.take_along_axis; a Field's indices that are out of bounds are those of the ends."""
    field = a_field("take_along_axis", arr)
    if axis is None:
        field, axis = ravel(field), 0
    n = numbered(axis, *of_field(field))
    extent = field.type.array_shape[n]
    given = _indices(field, indices, n, extent)
    axes = _shared(field, given, n)
    out, shape, theirs = type_of("take_along_axis", axes, field.dtype), field.type.array_shape, given.type.array_shape

    def value(at: Place, read: Reading) -> Any:
        index = k._convert_int(Reading().at(given, [0 if m == 1 else c for m, c in zip(theirs, at, strict=True)]))
        index = k._where(index < 0, index + extent, index)
        place = [0 if m == 1 else c for m, c in zip(shape, at, strict=True)]
        place[n] = k._max(0, k._min(index, extent - 1))
        return read.at(field, place)

    return gathered("take_along_axis", out, [field, given], value, n)


def _indices(field: Field, indices: Any, axis: int, extent: int) -> Field:
    """Integers that have the field's axes. What is known is looked at."""
    if isinstance(indices, Field):
        given = indices
    else:
        known = np.asarray(indices)
        outside = known[(known < -extent) | (known >= extent)] if known.dtype.kind in "iu" else known[:0]
        if outside.size:
            raise BoundsError(
                f"take_along_axis: index {outside[0]} is out of bounds for axis {axis} with size {extent}"
            )
        given = Field(known)
    if np.dtype(given.type.array_dtype).kind not in "iu" or given.dtype == "unorm8":
        raise SemanticError(f"take_along_axis: indices are integers, not a {given.type} field")
    if len(given.type.array_shape) != len(field.type.array_shape):
        raise SemanticError(
            f"take_along_axis: indices have the axes of a {field.type} field, not those of a {given.type} one"
        )
    if not extent and given.type.array_shape.points:
        raise SemanticError(f"take_along_axis: axis {axis} of a {field.type} field is empty")
    return given


def _shared(field: Field, given: Field, axis: int) -> list[Axis]:
    """The axes of the result: along the one the indices', along others both, of which one may have extent 1."""
    made = list[Axis]()
    for n, (own, other) in enumerate(zip(axes_of(field.type), given.type.array_shape, strict=True)):
        if n != axis and own.extent != other and 1 not in (own.extent, other):
            raise SemanticError(
                f"take_along_axis: the extents of axis {n} differ, {own.extent} and {other}, and none is 1"
            )
        length = other if n == axis or own.extent == 1 else own.extent
        made.append(Axis(length, own.tensor, own.name))
    return made
