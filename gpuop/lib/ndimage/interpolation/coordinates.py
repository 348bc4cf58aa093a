"""Coordinates of interpolation: per-point places, affine maps, and coordinates along each axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.operators.variants import either
from gpuop.engine.jit.array_arguments import is_of_an_array
from gpuop.ir.numpy_semantics import fma
from gpuop.lib.ndimage.filter_arguments import SMALL, between_steps, checked_cval, each, rank, result_dtype
from gpuop.lib.ndimage.interpolation.kernels import Between, Knots, Spline, Table, any_of, between, knots_at, table_of
from gpuop.lib.ndimage.interpolation.periodic_zoom import MOST_COLUMNS, evenly
from gpuop.lib.ndimage.interpolation.spline_filters import check_mode, check_order
from gpuop.lib.ndimage.scalar_arguments import real
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.layout.gather import Place
from gpuop.ops.sort.radix_sort import single

SMALL_EXTENT = 2**20  # up to this extent float32 coordinates are exact enough to be mapped into a field


def spline_of(order: Any, mode: Any, cval: Any, prefilter: Any) -> Spline:
    """Return the spline of the arguments that all interpolation functions share."""
    return Spline(check_order(order), check_mode(mode), checked_cval(cval), bool(prefilter))


def axes_placed(field: Field) -> int:
    """Return the number of axes along which a field is interpolated."""
    if not rank(field):
        raise ArgumentError("input and output rank must be > 0: the field has one point")
    return rank(field)


def at_places(
    name: str,
    field: Field,
    spline: Spline,
    axes: Sequence[int],
    shape: Sequence[int],
    output: Any,
    places: Callable[[Place], Sequence[Any]],
    fields: Sequence[Field],
    key: Any,
) -> Field:
    """Interpolate the field at coordinates that a kernel computes.

    Args:
        axes: axes that are interpolated; along others the coordinates are those of the result's point.
        places: function from a point of the result to the coordinates along the axes.
        fields: fields that `places` reads.
        key: everything else that `places` depends on.
    """
    operator = between(field, spline, axes, shape, result_dtype(output, field))
    extents = [operator.coefficients.field_shape[axis] for axis in axes]
    small = operator.computed == "float32" and not operator.padding and max(extents) <= SMALL_EXTENT
    dtype = "float32" if small and all(f.dtype in SMALL for f in fields) else "float64"

    def knots(point: Place) -> list[Knots]:
        coordinates = [k._convert(at, dtype) for at in places(point)]
        return [
            knots_at(at + operator.padding if operator.padding else at, n, spline, operator.computed)
            for at, n in zip(coordinates, extents, strict=True)
        ]

    return operator.at(name, knots, fields, key)


def by_matrix(
    name: str,
    field: Field,
    spline: Spline,
    axes: Sequence[int],
    shape: Sequence[int],
    output: Any,
    matrix: Numbers,
    offset: Numbers,
    middle: Numbers,
) -> Field:
    """Interpolate the field at a matrix times the offset of the result's point from a centre, plus an offset.

    Kernels read the numbers as data, and are not compiled for them. Offsets from the centre of a rotation are multiples of 1/2, so
    a point that is mapped to the last point of the field does not land beyond it by rounding.
    """
    numbers = Field(np.column_stack([offset, matrix]), 0)
    middles = Field(middle, 0)
    turned = tuple(axes) if len(axes) < len(shape) else tuple(range(len(shape)))

    def places(point: Place) -> list[Any]:
        coordinates = []
        ways = [
            k._convert(point[axis], "float64") - k._readTensor(middles, column, border="unchecked")
            for column, axis in enumerate(turned)
        ]
        for row in range(len(axes)):
            at = k._readTensor(numbers, row, 0, border="unchecked")
            for column, way in enumerate(ways, 1):
                at = at + way * k._readTensor(numbers, row, column, border="unchecked")
            coordinates.append(at)
        return coordinates

    return at_places(name, field, spline, axes, shape, output, places, [numbers, middles], turned)


def along_line(n: int, factor: float, offset: float) -> Numbers:
    """Return `point * factor + offset` of n points, rounded once: a point on the last point of a field is not moved beyond it."""
    return fma(*(np.asarray(of, np.float64) for of in (np.arange(n), factor, offset)))


def steps_of(shift: Any, count: int) -> list[Any]:
    """Return the shift along each of `count` axes: numbers, and 0D fields."""
    if isinstance(shift, Field) and tuple(shift.shape) == (count,):
        shift = [shift[axis] for axis in range(count)]
    steps = [shift] * count if isinstance(shift, Field) else each(shift, count, "shift")
    wrong = next((step for step in steps if isinstance(step, Field) and step.shape), None)
    if wrong is not None:
        raise ArgumentError(f"`shift` is a number, or one for each of {count} axes, not a field of {wrong.type}")
    return steps


def moved(name: str, field: Field, spline: Spline, output: Any, steps: Sequence[Any]) -> Field:
    """Shift the field by values of fields, which kernels read."""
    fields = [step for step in steps if isinstance(step, Field)]
    numbers = [None if isinstance(step, Field) else real(step, "shift") for step in steps]

    def places(point: Place) -> list[Any]:
        read = (
            k._readTensor(step) if isinstance(step, Field) else number
            for step, number in zip(steps, numbers, strict=True)
        )
        return [at - step for at, step in zip(point, read, strict=True)]

    return at_places(name, field, spline, range(len(steps)), field.field_shape, output, places, fields, tuple(numbers))


def along_axes(name: str, field: Field, spline: Spline, at: Sequence[Numbers], output: Any) -> Field:
    """Interpolate the field at coordinates along each axis: linearly in one step, with other orders axis by axis."""
    dtype, axes = result_dtype(output, field), range(len(at))
    operator = between(field, spline, axes, [len(c) for c in at], dtype)
    if not field.field_shape.points:
        return filled(operator.out, spline.cval)
    tables = [
        table_of(c + operator.padding, n, spline, operator.computed)
        for c, n in zip(at, operator.coefficients.field_shape, strict=True)
    ]
    borders = tuple((t.outside, t.beyond) for t in tables)
    fields = [f for t in tables for f in (t.at, t.weights)]
    if spline.order < 2:
        result = operator.at(
            name, lambda point: [t.knots(p) for t, p in zip(tables, point, strict=False)], fields, borders
        )
        return either(single(), _evenly(operator, tables), result) if _is_even(operator, tables) else result
    line = operator.coefficients
    for axis in axes:
        last = axis == len(at) - 1
        shape = (*(len(c) for c in at[: axis + 1]), *line.field_shape[axis + 1 :])
        kind = operator.out if last else operator.out.replace(dtype=between_steps(line, operator.computed))
        step = replace(operator, coefficients=line, axes=(axis,), out=kind.replace(field_shape=shape))

        def knots(point: Place, axis: int = axis, last: bool = last) -> list[Knots]:
            of_axes = [t.knots(p) for t, p in zip(tables, point, strict=False)] if last else []
            flags = [k_.beyond for k_ in of_axes if k_.beyond is not None]
            return [replace(tables[axis].knots(point[axis]), beyond=any_of(flags) if flags else None)]

        own = fields if last else [tables[axis].at, tables[axis].weights]
        line = step.at(name, knots, own, (borders, last))
    return line


def _is_even(result: Between, tables: Sequence[Table]) -> bool:
    """Return whether a plane is read in blocks that repeat, so that CPUs shuffle vector loads, and nothing is to fuse with it."""
    plain = result.out.planes == 1 and result.coefficients.type.planes == 1
    floats = {result.coefficients.dtype, result.out.dtype, result.computed} == {"float32"}
    if len(tables) != 2 or tables[1].blocks is None or not (plain and floats):
        return False
    borders = any(t.outside or t.beyond for t in tables)
    return (
        is_of_an_array()
        and not borders
        and result.spline.order == 1
        and result.coefficients.field_shape[1] <= MOST_COLUMNS
    )


def _evenly(result: Between, tables: Sequence[Table]) -> Field:
    rows, columns = ((t.at, t.weights) for t in tables)
    assert tables[1].blocks is not None
    return evenly(result.coefficients, rows, columns, tables[1].blocks, result.out)


def of_degrees(angle: float) -> tuple[float, float]:
    """Return the cosine and sine of an angle, exact for multiples of 30° whose value is a multiple of 1/2."""
    degrees = real(angle, "angle")
    if not math.isfinite(degrees):
        raise ArgumentError(f"`angle` is a finite number of degrees, not {degrees}")
    turns, rest = divmod(degrees, 90.0)
    if rest > 45:
        across, along = math.cos(math.radians(90 - rest)), _sine(90 - rest)
    else:
        across, along = _sine(rest), math.cos(math.radians(rest))
    return ((along, across), (-across, along), (-along, -across), (across, -along))[int(turns % 4)]


def _sine(degrees: float) -> float:
    return 0.5 if degrees == 30 else math.sin(math.radians(degrees))


def plane_of(axes: Any, count: int) -> list[int]:
    """Return the two axes of a plane, in ascending order."""
    if count < 2:
        raise ArgumentError(f"input array should be at least 2D: it has {count} axes")
    several = list(axes)
    if len(several) != 2:
        raise ArgumentError(f"axes should contain exactly two values, not {axes}")
    if not all(float(axis).is_integer() for axis in several):
        raise ArgumentError(f"axes should contain only integer values, not {axes}")
    if not all(-count <= axis < count for axis in several):
        raise ArgumentError(f"invalid rotation plane specified: the field has {count} axes, not {axes}")
    return sorted(int(axis) % count for axis in several)
