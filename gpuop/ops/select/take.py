"""Values by integer indices in fields, along leading axes or at each place along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import BoundsError, SemanticError
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.ir.types import is_integer
from gpuop.ops.layout.axes import Axis, a_field, axes_of, numbered, of_field, type_of
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.layout.layouts import ravel
from gpuop.ops.layout.shape_functions import broadcast_arrays
from gpuop.ops.layout.slicing import index_of, sliced


def indexed(field: Field, index: Any) -> Field:
    """Return `field[index]`: a slice, or points by Fields of integers along the first axes, mixed with integers.

    Args:
        index: as for `sliced`; or for each of the first grid axes an integer or a Field of integers, which broadcast.
            A Field's indices out of bounds are clamped.

    Returns:
        A field with the axes of these Fields, and then the axes without an index.
    """
    parts = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(i, Field) and _whole(i) for i in parts):
        return sliced(field, index)
    if not all(is_integer(i) or (isinstance(i, Field) and _whole(i)) for i in parts):
        raise SemanticError(
            "Fields of integers are indices with integers alone; `np.take(f, indices, axis)` takes along one axis"
        )
    if len(parts) > (rank := len(field.field_shape)):
        raise SemanticError(f"{len(parts)} indices of Fields for a {field.type} field, whose grid has {rank} axes")
    starts = [cut.start for cut in index_of(field, tuple(0 if isinstance(i, Field) else i for i in parts)).cuts]
    fields = broadcast_arrays(*(i for i in parts if isinstance(i, Field)))
    count, extents = len(fields[0].field_shape), field.field_shape
    axes = [*axes_of(fields[0].type), *axes_of(field.type)[len(parts) :]]
    named = tuple(n for n, i in enumerate(parts) if isinstance(i, Field))

    def value(at: Place, read: Reading) -> Any:
        place = [*starts[: len(parts)], *at[count:]]
        for n, each in zip(named, fields, strict=True):
            place[n] = _inside(Reading().at(each, at[:count]), extents[n])
        return read.at(field, place)

    out = type_of("this index", axes, field.dtype)
    return gathered("index", out, [field, *fields], value, (named, tuple(starts[: len(parts)])))


def _inside(index: Any, extent: int) -> Any:
    """Return a place on an axis: negative indices count from the end; others out of bounds are clamped."""
    index = k._convert_int(index)
    index = k._where(index < 0, index + extent, index)
    return k._max(0, k._min(index, extent - 1))


def _whole(field: Field) -> bool:
    return np.dtype(field.type.array_dtype).kind in "iu" and field.dtype != "unorm8" and not field.tensor_shape


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Field:
    """numpy.take_along_axis; a Field's indices out of bounds are clamped."""
    field = a_field("take_along_axis", arr)
    if axis is None:
        field, axis = ravel(field), 0
    n = numbered(axis, *of_field(field))
    extent = field.type.array_shape[n]
    places = _indices(field, indices, n, extent)
    axes = _shared(field, places, n)
    out, shape, theirs = type_of("take_along_axis", axes, field.dtype), field.type.array_shape, places.type.array_shape

    def value(at: Place, read: Reading) -> Any:
        index = Reading().at(places, [0 if m == 1 else c for m, c in zip(theirs, at, strict=True)])
        place = [0 if m == 1 else c for m, c in zip(shape, at, strict=True)]
        place[n] = _inside(index, extent)
        return read.at(field, place)

    return gathered("take_along_axis", out, [field, places], value, n)


def _indices(field: Field, indices: Any, axis: int, extent: int) -> Field:
    """Return indices with as many axes as the field; known ones are checked."""
    if isinstance(indices, Field):
        fields = indices
    else:
        numbers = np.asarray(indices)
        outside = numbers[(numbers < -extent) | (numbers >= extent)] if numbers.dtype.kind in "iu" else numbers[:0]
        if outside.size:
            raise BoundsError(
                f"take_along_axis: index {outside[0]} is out of bounds for axis {axis} with size {extent}"
            )
        fields = Field(numbers)
    if np.dtype(fields.type.array_dtype).kind not in "iu" or fields.dtype == "unorm8":
        raise SemanticError(f"take_along_axis: indices are integers, not a {fields.type} field")
    if len(fields.type.array_shape) != len(field.type.array_shape):
        raise SemanticError(
            f"take_along_axis: indices have the axes of a {field.type} field, not those of a {fields.type} one"
        )
    if not extent and fields.type.array_shape.points:
        raise SemanticError(f"take_along_axis: axis {axis} of a {field.type} field is empty")
    return fields


def _shared(field: Field, fields: Field, axis: int) -> list[Axis]:
    """Return the axes of the result: the indices' one along `axis`; others broadcast."""
    result = list[Axis]()
    for n, (own, other) in enumerate(zip(axes_of(field.type), fields.type.array_shape, strict=True)):
        if n != axis and own.extent != other and 1 not in (own.extent, other):
            raise SemanticError(
                f"take_along_axis: the extents of axis {n} differ, {own.extent} and {other}, and none is 1"
            )
        length = other if n == axis or own.extent == 1 else own.extent
        result.append(Axis(length, own.tensor, own.name))
    return result


services.algebra["getitem"] = indexed
