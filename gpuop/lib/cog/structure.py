"""Cog operators that rearrange points and elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError
from gpuop.dsl import *
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.decorator import operator
from gpuop.ir.types import FieldType, Shape
from gpuop.lib.cog.values import floating, grid_axes
from gpuop.lib.ndimage.interpolation.functions import map_coordinates
from gpuop.ops.create.computed_fields import zeros
from gpuop.ops.create.evenly_spaced import arange
from gpuop.ops.select.update import updated

BorderClamp, BorderZero, BorderCyclic, BorderValid, BorderFull = "clamp", "zero", "wrap", "valid", "full"
BORDERS = {name: word for name, word in vars().items() if name.startswith("Border")}
PADS = {BorderClamp: "edge", BorderZero: "constant", BorderCyclic: "wrap"}
MODES = {BorderClamp: "nearest", BorderZero: "grid-constant", BorderCyclic: "grid-wrap"}


def apply(field: Any, *where: Any) -> Any:
    """Parts of a field: `apply(f, 2)`, `apply(f, range(1, 3), range(4))`, or along the first axis at a 0D field.

    The value of a 0D field is truncated to an integer and clamped to the axis; Cog does not check it.
    """
    if isinstance(where[0], Field):
        return np.take(field, where[0].astype("int32"), axis=0, mode="clip")
    return field[tuple(slice(at.start, at.stop, at.step) if isinstance(at, range) else at for at in where)]


def of_border(name: str, border: Any, words: dict[str, str]) -> Any:
    """The name of a border in the functions underneath."""
    if border not in words:
        listed = ", ".join(f"cog.{each}" for each in BORDERS if BORDERS[each] in words)
        raise ArgumentError(f"cog.{name}: a border is {listed}, not {border!r}")
    return words[border]


def trim(field: Any, *shape: Any) -> Any:
    """The first points along each axis."""
    return field[tuple(slice(n) for n in _shape(shape))]


def _shape(arg: Any) -> Shape:
    """A shape from separate extents, or from one tuple."""
    return Shape(arg[0] if len(arg) == 1 else arg)


def expand(field: Any, border: str, *shape: Any) -> Any:
    """The field in the first corner of a larger, periodic grid.

    Along each axis the first half of the new points extends the field's end, and the second half, cyclically, its beginning,
    so filters by Fourier transforms see the border on both sides: 1 2 3 clamped to 7 points is 1 2 3 3 3 1 1.
    """
    new = [to - n for to, n in zip(_shape(shape), field.field_shape, strict=True)]
    widths = [(n - n // 2, n // 2) for n in new] + [(0, 0)] * len(field.tensor_shape)
    return np.roll(
        np.pad(field, widths, mode=of_border("expand", border, PADS)), [n // 2 - n for n in new], axis=grid_axes(field)
    )


def shift(field: Any, *by: int) -> Any:
    """The field shifted towards the end of each axis, by negative numbers towards its beginning; zeros move in."""
    widths = [(max(n, 0), max(-n, 0)) for n in by] + [(0, 0)] * len(field.tensor_shape)
    return np.pad(field, widths)[
        tuple(slice(max(-n, 0), max(-n, 0) + k) for n, k in zip(by, field.shape, strict=False))
    ]


def shiftCyclic(field: Any, *by: int) -> Any:
    """The field shifted as by `shift`, cyclically."""
    return np.roll(field, by, axis=grid_axes(field))


def flip(field: Any) -> Any:
    """The field flipped along every axis of the grid."""
    return np.flip(field, grid_axes(field))


def transpose(field: Any) -> Any:
    """Rows as columns; tensors stay as they are."""
    return np.swapaxes(field, 0, 1)


def reshape(field: Any, field_shape: Any, tensor_shape: Any = ()) -> Any:
    """The same numbers in Cog's order: all of the first tensor element come first, then all of the second.

    So twelve scalars become three 4-vectors whose elements are three numbers apart. `np.reshape(f, shape)` has the NumPy order,
    in which the elements of a tensor are contiguous.
    """
    split, count = len(field.field_shape), len(field.tensor_shape)
    grid, tensor = Shape(field_shape), Shape(tensor_shape)
    planes = np.moveaxis(field, tuple(range(split, split + count)), tuple(range(count)))
    axes = tuple(range(len(tensor)))
    turned: Any = np.moveaxis(np.reshape(planes, (*tensor, *grid)), axes, tuple(n + len(grid) for n in axes))
    return turned.with_tensor_order(len(tensor))


def replicate(field: Any, *shape: Any) -> Any:
    """A grid of this shape with the whole scalar field as the tensor of every point."""
    copies: Any = np.broadcast_to(field, (*_shape(shape), *field.shape))
    return copies.with_tensor_order(field.ndim)


def stack(*fields: Any) -> Any:
    """Fields of one type along a new first axis of the grid. Scalars become vectors by `vectorField`."""
    return np.stack(_each(fields), axis=0)


def vectorField(*fields: Any) -> Any:
    """Vectors from scalar fields; from a colour field red, green and blue, 0 to 1."""
    if len(fields) == 1 and isinstance(fields[0], Field) and fields[0].dtype == "unorm8":
        return fields[0][..., :3].astype("float32")
    return np.stack(_each(fields), axis=-1)


def matrixField(*fields: Any) -> Any:
    """Matrices whose rows are vector fields, or lists of scalar fields."""
    return np.stack([row if isinstance(row, Field) else vectorField(row) for row in _each(fields)], axis=-2)


def _each(fields: tuple[Any, ...]) -> Sequence[Any]:
    """Fields from separate arguments, or from one list."""
    return fields[0] if len(fields) == 1 and isinstance(fields[0], (tuple, list)) else fields


def select(fields: Sequence[Any], index: Any) -> Any:
    """The field of a list at the index in a 0D field; all NaN if the index is out of range."""
    number, count = index.astype("int32"), len(fields)
    chosen = np.take(np.stack(fields, axis=0), number, axis=0, mode="clip")
    return np.where((number >= 0) & (number < count), chosen, math.nan)


def downsample(field: Any, factor: int = 2, phase: int = 0) -> Any:
    """Every `factor`-th point along each axis, from `phase` on."""
    return field[(slice(phase, None, factor),) * len(field.field_shape)]


def upsample(field: Any, factor: int = 2, phase: int = 0) -> Any:
    """The points of a field with a spacing of `factor`, from `phase` on, among zeros."""
    larger = field.type.replace(field_shape=tuple(n * factor for n in field.field_shape))
    return updated(zeros(larger), (slice(phase, None, factor),) * len(field.field_shape), field)


def supersample(field: Any) -> Any:
    """Each point twice along each axis."""
    for axis in grid_axes(field):
        field = np.repeat(field, 2, axis=axis)
    return field


def subfield(field: Any, guide: Any, shape: Any, border: str = BorderClamp) -> Any:
    """A window of this shape whose first point lies at a 0D vector, between points by linear interpolation."""
    return _between("subfield", field, [n + guide[..., k] for k, n in enumerate(_ramps(Shape(shape)))], border)


def warp(field: Any, guide: Any, border: str = BorderClamp) -> Any:
    """At each point p the field at p - v, v being the guide's vector there, or a 0D one, by linear interpolation."""
    return _between("warp", field, [n - guide[..., k] for k, n in enumerate(_ramps(field.field_shape))], border)


def _ramps(shape: Shape) -> list[Any]:
    """The index along each axis of a grid."""
    lines = (np.reshape(arange(n), (-1,) + (1,) * (len(shape) - 1 - axis)) for axis, n in enumerate(shape))
    return [np.broadcast_to(line, shape) for line in lines]


def _between(name: str, field: Any, place: list[Any], border: str) -> Any:
    return map_coordinates(floating(field), place, order=1, mode=of_border(name, border, MODES))


@operator(outputs=lambda field, diameter: _of_windows(field, diameter))
def subfields(field: Any, diameter: int) -> None:
    """All windows of a scalar field: a field of one window's size, whose vectors have an element for each window."""
    own = (_layer, _row, _column)[3 - len(field.field_shape) :]
    with _forEachTensorElement(_of_windows(field, diameter).tensor_shape):
        first = _unravel(_tensorElement, tuple(n - diameter + 1 for n in field.field_shape))
        value = _readTensor(field, *(at + n for at, n in zip(own, first, strict=True)), border="unchecked")
        _writeTensorElement(_out0, value, _tensorElement)


def _of_windows(field: Any, diameter: int) -> FieldType:
    count = math.prod(n - diameter + 1 for n in field.field_shape)
    return FieldType((diameter,) * len(field.field_shape), (count,), field.dtype)


@operator(outputs=lambda field, indices: _elements(field, indices))
def vectorElements(field: Any, indices: Any) -> None:
    """The elements of vectors at the indices in other vectors; either field may be 0D; NaN for indices out of range."""
    with _forEachTensorElement(indices.tensor_shape):
        index = _convert_int(_readTensorElement(indices, _tensorElement))
        there = (index >= 0) & (index < field.tensor_shape[0])
        element = _readTensorElement(field, _where(there, index, 0))
        _writeTensorElement(_out0, _where(there, element, math.nan), _tensorElement)


def _elements(field: Any, indices: Any) -> FieldType:
    return FieldType(field.field_shape or indices.field_shape, indices.tensor_shape, floating(field).dtype)
