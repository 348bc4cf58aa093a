"""Operators of the values around each point: how they are read, and how results are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.value import Value
from gpuop.ir.types import ULONG, FieldType, Shape
from gpuop.lib.ndimage.filter_arguments import ImageEdge
from gpuop.ops.layout.gather import Place, Reading, gathered

Offset = tuple[Any, ...]  # along each axis of the grid: integers, or values of the kernel in loops
MOST = 128  # neighbours that are written out
Around = Callable[
    ..., Any
]  # the value there, in the dtype of the sum; of another field, or with another edge where they are given


def neighbourhood(
    name: str,
    field: Field,
    value: Callable[[Around], Any],
    edge: ImageEdge,
    computed: str,
    dtype: str,
    key: Any,
    others: Sequence[Field] = (),
    remark: str = "",
) -> Field:
    """A field whose value at each point is made of those around it, of each element of tensors by itself.

    Args:
        value: of a function that reads at an offset, in the dtype `computed`.
        dtype: of the result: integers are truncated and wrap around.
        key: all that `value` depends on.
        others: fields that are read too.
        remark: why its values are taken in this way, for `explain`.
    """
    out = field.type.replace(dtype=dtype)

    def at_point(at: Place, read: Reading) -> Any:
        def around(offset: Offset, of: Field = field, outside: ImageEdge = edge) -> Any:
            return held_in(computed, read_around(of, at, offset, read, outside))

        return stored(value(around), out)

    return gathered(name, out, [field, *others], at_point, (edge, computed, dtype, key), remark=remark)


def in_dtype(field: Field, dtype: str) -> Field:
    """The field in the dtype of a filter's results, as filters write it: where they have nothing to do."""
    out = field.type.replace(dtype=dtype)
    if field.dtype == dtype or out.element.kind not in "iu" or field.dtype == "complex64":
        return field.astype(dtype)

    def at_point(at: Place, read: Reading) -> Any:
        return stored(read.at(field, at), out)

    return gathered("astype", out, [field], at_point, ("wraps", dtype))


def padded_along(field: Field, axis: int, width: tuple[int, int], edge: ImageEdge, dtype: str) -> Field:
    """A field with what is outside of it, so many points before and behind it along an axis."""
    grid = list(field.field_shape)
    grid[axis] += sum(width)
    out = field.type.replace(dtype=dtype, field_shape=Shape(grid))

    def at_point(at: Place, read: Reading) -> Any:
        place = [*at[:axis], at[axis] - width[0], *at[axis + 1 :]]
        return stored(k._convert(read_at(field, place, [axis], read, edge), dtype), out)

    return gathered("pad", out, [field], at_point, (axis, width, edge, dtype))


def read_around(field: Field, at: Place, offset: Offset, read: Reading, edge: ImageEdge) -> Any:
    """What is at an offset from a place."""
    place = [p if _none(o) else p + o for p, o in zip(at, offset, strict=False)] + list(at[len(offset) :])
    return read_at(field, place, [a for a, o in enumerate(offset) if not _none(o)], read, edge)


def read_at(field: Field, place: Place, axes: Sequence[int], read: Reading, edge: ImageEdge) -> Any:
    """What is at a place, which may be outside of the field along some axes."""
    if edge.border != "constant":
        return read.at(field, place, edge.border)
    if field.dtype == "complex64" or field.type.element.holds(edge.cval):
        return read.at(field, place, edge.cval)
    inside = [test for a in axes for test in (place[a] >= 0, place[a] < field.field_shape[a])]
    own = k._convert(read.at(field, place, "clamp"), "float64")
    return k._where(k._and(inside), own, edge.cval) if inside else own


def _none(step: Any) -> bool:
    return isinstance(step, int) and step == 0


def combined(count: int, term: Callable[[Any], Any], operation: Callable[[Any, Any], Any], start: Any = None) -> Any:
    """The terms 0 … count - 1 combined from the first on: written out where they are few, else in a loop."""
    if count <= MOST:
        total = start
        for n in range(count):
            total = term(n) if total is None else operation(total, term(n))
        return total
    total = k._var(term(0) if start is None else start)
    with k._for(int(start is None), count) as n:
        total @= operation(total, term(n))
    return total


def numbers_at(numbers: Sequence[float], dtype: str = "float64") -> Callable[[Any], Any]:
    """What looks up one of some numbers: itself, or in a loop in a table of the kernel, of int or of a dtype."""

    def looked_up(n: Any) -> Any:
        if isinstance(n, int) or len(set(numbers)) == 1:
            return numbers[n if isinstance(n, int) else 0]
        whole = dtype != "int64" and all(isinstance(number, int) for number in numbers)
        return k._constantArray(np.array(numbers, np.int32 if whole else dtype))[n]

    return looked_up


def offsets_at(offsets: Sequence[Offset]) -> Callable[[Any], Offset]:
    """What looks up one of some offsets, as `numbers_at` does."""
    along_axes = [numbers_at(numbers) for numbers in zip(*offsets, strict=True)]
    return lambda n: tuple(number(n) for number in along_axes)


def steps_along(axis: int, count: int, origin: int) -> Callable[[Any], Offset]:
    """What makes offsets of steps along one of so many axes."""
    return lambda step: tuple(step - origin if a == axis else 0 for a in range(count))


def held_in(computed: str, value: Any) -> Any:
    """A value in the dtype of sums; in int64, which wraps around, uint64 has its bits."""
    if computed == "int64" and value.type.dtype is ULONG:
        return k._as_long(value)
    return k._convert(value, computed)


def stored(value: Any, out: FieldType) -> Any:
    """A sum as a dtype holds it: integers without their fraction, modulo their range, as C's casts on most machines."""
    kind = out.element.kind
    if kind == "b":
        return k._convert(value, "int64") != 0
    if kind not in "iu" or (isinstance(value, Value) and value.type.dtype == out.element):
        return value
    whole = held_in("int64", value)
    if out.dtype == "uint64":
        wrapped = k._as_ulong(whole)  # of what is negative, as of the other dtypes the last bits
        return wrapped if value.type.kind == "i" else k._where(value < 0, wrapped, k._convert(value, "uint64"))
    bits = out.element.bits
    if bits == 64:
        return whole
    low = whole & ((1 << bits) - 1)
    return low if kind == "u" else (low ^ (1 << (bits - 1))) - (1 << (bits - 1))
