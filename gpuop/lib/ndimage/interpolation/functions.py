"""Spline interpolation of scipy.ndimage: map_coordinates, affine_transform, geometric_transform, shift, zoom and rotate."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.fields.from_arrays import is_array
from gpuop.dsl.operators.gpu_operator import GPUOperator
from gpuop.engine.jit.array_arguments import takes_arrays
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.filter_arguments import advise, each, rank, result_dtype, with_more
from gpuop.lib.ndimage.filters.neighbours import in_dtype
from gpuop.lib.ndimage.interpolation.coordinates import (
    along_axes,
    along_line,
    at_places,
    axes_placed,
    by_matrix,
    moved,
    of_degrees,
    plane_of,
    spline_of,
    steps_of,
)
from gpuop.lib.ndimage.scalar_arguments import numbers_of, real
from gpuop.ops.layout.gather import Place, own_place


@takes_arrays("input", "coordinates")
def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """scipy.ndimage.map_coordinates: the field interpolated at coordinates.

    Args:
        input: a Field, or an array.
        coordinates: an array, or a Field, whose first axis has one element for each axis of `input`'s grid; for a Field also
            a sequence of a Field for each axis.
        output: a dtype, or an array; by default the dtype of `input`.
        order: order of the spline, 0 to 5: 0 is nearest neighbour, 1 is linear.
        mode: constant, grid-constant, nearest, mirror, reflect, wrap, grid-mirror or grid-wrap, as in SciPy.
        cval: value outside, for the modes constant and grid-constant.
        prefilter: whether `input` holds values to interpolate; else it holds spline coefficients, as from `spline_filter`.

    Returns:
        A lazy Field of the shape of the coordinates; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong orders, modes or coordinates; a ValueError and a RuntimeError.
        UnsupportedError: complex coordinates, or a complex `cval` of a real field; a TypeError.
    """
    spline, count = spline_of(order, mode, cval, prefilter), axes_placed(input)
    several = isinstance(coordinates, (tuple, list))
    fields = list(coordinates) if several else [coordinates]
    shape = _shape_of(fields, several, count)

    def places(point: Place) -> list[Any]:
        if several:
            return [k._readTensor(f) for f in fields]
        return [k._readTensor(fields[0], axis, *point, border="unchecked") for axis in range(count)]

    return at_places("map_coordinates", input, spline, range(count), shape, output, places, fields, several)


def _shape_of(fields: list[Field], several: bool, count: int) -> tuple[int, ...]:
    """Return the shape of a result at these coordinates, for a field of `count` axes."""
    if any(f.dtype in COMPLEX_DTYPES for f in fields):
        raise UnsupportedError("Complex type not supported: coordinates are real")
    shapes = {tuple(f.field_shape) for f in fields}
    result = len(fields) if several else (*fields[0].field_shape, 0)[0]
    if len(shapes) > 1 or result != count or not all(f.type.planes == 1 for f in fields):
        raise ArgumentError(
            f"invalid shape for coordinate array: its first axis has {count} elements, one for each axis of the field; "
            f"these are {', '.join(str(f.type) for f in fields)}"
        )
    shape = shapes.pop() if several else tuple(fields[0].field_shape)[1:]
    if not several and not shape:
        raise ArgumentError("input and output rank must be > 0")
    return shape


def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """scipy.ndimage.affine_transform: each point of the result is the value at `matrix @ point + offset`.

    Args:
        input, output, order, mode, cval, prefilter: as in `map_coordinates`.
        matrix: an array with a row for each axis of the grid; its diagonal; or homogeneous, with the offset as its last column.
        offset: a number, or one for each axis.
        output_shape: shape of the result; by default that of `input`, or of the array `output`.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong matrices, orders or modes; a ValueError and a RuntimeError.
    """
    if output_shape is None and output is not None and is_array(output):
        output_shape = tuple(output.shape)
    return _affine(input, matrix, offset, output_shape, output, order, mode, cval, prefilter)


@takes_arrays()
def _affine(
    input: Any,
    matrix: Any,
    offset: Any,
    output_shape: Any,
    output: Any,
    order: int,
    mode: str,
    cval: Any,
    prefilter: bool,
) -> Field:
    spline, count = spline_of(order, mode, cval, prefilter), axes_placed(input)
    shape = tuple(input.field_shape if output_shape is None else output_shape)
    if not shape:
        raise ArgumentError("input and output rank must be > 0")
    numbers, shift = _matrix(numbers_of(matrix, "matrix").astype(np.float64), offset, count, len(shape))
    if numbers.ndim == 1:
        at = [along_line(n, m, s) for n, s, m in zip(shape, shift, numbers, strict=True)]
        return along_axes("affine_transform", input, spline, at, output)
    return by_matrix(
        "affine_transform", input, spline, range(count), shape, output, numbers, shift, np.zeros(len(shape))
    )


def _matrix(matrix: Numbers, offset: Any, count: int, columns: int) -> tuple[Numbers, Numbers]:
    """Return the matrix, or its diagonal, and the offsets."""
    if matrix.ndim not in (1, 2) or matrix.shape[0] < 1:
        raise ArgumentError(f"no proper affine matrix provided: it has one or two axes, not shape {matrix.shape}")
    if matrix.ndim == 2 and matrix.shape[1] == count + 1 and matrix.shape[0] in (count, count + 1):
        last = [0] * count + [1]
        if matrix.shape[0] == count + 1 and not np.array_equal(matrix[count], last):
            raise ArgumentError(
                f"Expected homogeneous transformation matrix with shape {matrix.shape} for a field of {count} axes, but its "
                f"bottom row {matrix[count].tolist()} was not equal to {last}"
            )
        matrix, offset = matrix[:count, :count], matrix[:count, count]
    if matrix.shape[0] != count:
        raise ArgumentError(f"affine matrix has wrong number of rows, {matrix.shape[0]}: the field has {count} axes")
    if matrix.shape[-1] != columns:
        raise ArgumentError(
            f"affine matrix has wrong number of columns, {matrix.shape[-1]}: the result has {columns} axes"
        )
    return matrix, numbers_of(each(offset, count, "offset"), "offset").astype(np.float64)


@takes_arrays()
def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """scipy.ndimage.shift: the field shifted along each axis.

    Args:
        input, output, order, mode, cval, prefilter: as in `map_coordinates`.
        shift: the shift in points: a number, or one for each axis; also 0D fields, as Parameters, or a 1D field, as from
            `center_of_mass`.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong shifts, orders or modes; a ValueError and a RuntimeError.
    """
    spline, steps = spline_of(order, mode, cval, prefilter), steps_of(shift, axes_placed(input))
    if any(isinstance(step, Field) for step in steps):
        return moved("shift", input, spline, output, steps)
    at = [np.arange(n) + -real(step, "shift") for n, step in zip(input.field_shape, steps, strict=True)]
    return along_axes("shift", input, spline, at, output)


@takes_arrays()
def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Any:
    """scipy.ndimage.zoom: the field resampled to a multiple of its extent along each axis.

    Args:
        input, output, order, mode, cval, prefilter: as in `map_coordinates`.
        zoom: the factor: a number, or one for each axis.
        grid_mode: whether points are cells, and the outer edges are aligned; else the first and last points are aligned.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong factors, orders or modes; a ValueError and a RuntimeError.
    """
    spline, factors = spline_of(order, mode, cval, prefilter), each(zoom, axes_placed(input), "zoom")
    if prefilter and all(factor == 1 for factor in factors):
        return in_dtype(input, result_dtype(output, input))
    if grid_mode and mode in ("constant", "wrap"):
        advise(f"It is recommended to use mode = grid-{mode} instead of {mode} when grid_mode is True.")
    at = []
    for n, factor in zip(input.field_shape, factors, strict=True):
        points = round(n * real(factor, "zoom"))
        if points < 0:
            raise ArgumentError(f"zoom: a factor is 0 or more, not {factor}")
        at.append(_zoomed(n, points, grid_mode))
    return along_axes("zoom", input, spline, at, output)


def _zoomed(n: int, points: int, areas: bool) -> Numbers:
    """Return the places of so many points among n: the last one exactly at the last, or its area's end at the end."""
    if areas:
        return np.minimum((np.arange(points) + 0.5) * (n / points) - 0.5, n - 0.5) if points else np.arange(0.0)
    step = (n - 1) / (points - 1) if points > 1 else 1.0
    at = np.arange(points) * step
    return np.minimum(at, n - 1) if points > 1 else at


@takes_arrays()
def rotate(
    input: Any,
    angle: Any,
    axes: Any = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """scipy.ndimage.rotate: the field rotated about its centre in the plane of two axes.

    Args:
        input, output, order, mode, cval, prefilter: as in `map_coordinates`.
        angle: the angle in degrees.
        axes: the two axes of the plane.
        reshape: whether the result has the extents of the rotated field; else those of `input`.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong axes, orders or modes; a ValueError and a RuntimeError.
    """
    spline, plane = spline_of(order, mode, cval, prefilter), plane_of(axes, rank(input))
    cosine, sine = of_degrees(angle)
    turn = np.array([[cosine, sine], [-sine, cosine]])
    inside = np.array([input.field_shape[axis] for axis in plane])
    extents = inside
    if reshape:
        corners = turn @ [[0, 0, inside[0], inside[0]], [0, inside[1], 0, inside[1]]]
        extents = (np.ptp(corners, axis=1) + 0.5).astype(int)
    shape = list(input.field_shape)
    for axis, n in zip(plane, extents, strict=True):
        shape[axis] = int(n)
    return by_matrix("rotate", input, spline, plane, shape, output, turn, (inside - 1) / 2, (extents - 1) / 2)


# --- scipy.ndimage.geometric_transform: interpolation at places that a user function returns --------------------------


Mapping = Callable[..., Sequence[Any]]


def geometric_transform(
    input: Any,
    mapping: Mapping,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: Any = None,
) -> Any:
    """scipy.ndimage.geometric_transform: interpolation at the coordinates that a user function maps each point to.

    Args:
        input, output, order, mode, cval, prefilter: as in `map_coordinates`.
        mapping: gets a tuple of the point's coordinates, and the extra arguments; returns a coordinate for each axis of the grid.
            It is recorded once, with coordinates in double precision, and may use all of `gpuop.dsl`. A function that cannot be
            recorded, as it branches on values or calls other libraries, is called for each point on the host, as in SciPy.
        output_shape: shape of the result; by default that of `input`.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong orders or modes, or another number of coordinates; a ValueError and a RuntimeError.
    """
    function = with_more(mapping, extra_arguments, extra_keywords)
    return _transformed(input, function, output_shape, output, order, mode, cval, prefilter)


@takes_arrays()
def _transformed(
    input: Any,
    mapping: Mapping,
    output_shape: Any,
    output: Any,
    order: int,
    mode: str,
    cval: Any,
    prefilter: bool,
) -> Field:
    spline, count = spline_of(order, mode, cval, prefilter), axes_placed(input)
    shape = tuple(input.field_shape if output_shape is None else output_shape)
    if not shape:
        raise ArgumentError("input and output rank must be > 0")
    fields: Sequence[Field] = ()
    with contextlib.suppress(Exception):  # a function that cannot be recorded is called
        fields = _recorded(mapping, shape, count)
    fields = fields or _called(mapping, shape, count)

    def places(point: Any) -> list[Any]:
        return [k._readTensor(f) for f in fields]

    return at_places("geometric_transform", input, spline, range(count), shape, output, places, fields, None)


def _checked(place: Sequence[Any], count: int) -> list[Any]:
    result = list(place)
    if len(result) != count:
        raise ArgumentError(f"the mapping gives {len(result)} coordinates, and the field has {count} axes")
    return result


def _recorded(mapping: Mapping, shape: tuple[int, ...], count: int) -> Sequence[Field]:
    """Return the places as fields that kernels compute."""
    with GPUOperator(*[FieldType(shape, (), "float64")] * count) as result:
        point = tuple(k._convert(at, "float64") for at in own_place(len(shape)))
        for n, at in enumerate(_checked(mapping(point), count)):
            k._writeTensor(getattr(k, f"_out{n}"), k._convert(at, "float64"))
    return result.outputs


def _called(mapping: Mapping, shape: tuple[int, ...], count: int) -> Sequence[Field]:
    """Return the places as fields of values, one call for each point."""
    places = np.empty((count, *shape))
    for point in np.ndindex(*shape):
        places[(slice(None), *point)] = _checked(mapping(point), count)
    return [Field(along, 0) for along in places]
