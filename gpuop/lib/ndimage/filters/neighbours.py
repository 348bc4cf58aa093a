"""Neighbourhood operators: reads around each point, and stores of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.value import Value
from gpuop.ir.dtype_names import COMPLEX_DTYPES, part_dtype
from gpuop.ir.types import INT, ULONG, FieldType, Shape
from gpuop.lib.ndimage.filter_arguments import ImageEdge
from gpuop.ops.layout.gather import Place, Reading, gathered

Offset = tuple[Any, ...]  # along each axis of the grid: integers, or kernel values in loops
MOST = 128  # unrolled neighbours, at most
# Reader of the value at an offset, in the dtype of sums; optionally of another field, or with another edge.
Around = Callable[..., Any]


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
    """Return a field whose value at each point is a function of its neighbours, for each element of tensors by itself.

    Args:
        value: function of a reader; the reader returns the value at an offset, in the dtype `computed`.
        dtype: dtype of the result: integers are truncated and wrap around.
        key: everything that `value` depends on.
        others: further fields that are read.
        remark: reason for the method, for `explain`.
    """
    out = field.type.replace(dtype=dtype)

    def at_point(at: Place, read: Reading) -> Any:
        def around(offset: Offset, of: Field = field, outside: ImageEdge = edge) -> Any:
            return held_in(computed, read_around(of, at, offset, read, outside))

        return stored(value(around), out)

    return gathered(name, out, [field, *others], at_point, (edge, computed, dtype, key), remark=remark)


def in_dtype(field: Field, dtype: str) -> Field:
    """Return the field in a dtype as filters store it; for filters that have nothing to do."""
    out = field.type.replace(dtype=dtype)
    if field.dtype == dtype or out.element.kind not in "iu" or field.dtype in COMPLEX_DTYPES:
        return field.astype(dtype)

    def at_point(at: Place, read: Reading) -> Any:
        return stored(read.at(field, at), out)

    return gathered("astype", out, [field], at_point, ("wraps", dtype))


def padded_along(field: Field, axis: int, width: tuple[int, int], edge: ImageEdge, dtype: str) -> Field:
    """Pad a field along an axis by its border, by so many points before and behind it."""
    grid = list(field.field_shape)
    grid[axis] += sum(width)
    out = field.type.replace(dtype=dtype, field_shape=Shape(grid))

    def at_point(at: Place, read: Reading) -> Any:
        place = [*at[:axis], at[axis] - width[0], *at[axis + 1 :]]
        return stored(k._convert(read_at(field, place, [axis], read, edge), part_dtype(dtype)), out)

    return gathered("pad", out, [field], at_point, (axis, width, edge, dtype))


def read_around(field: Field, at: Place, offset: Offset, read: Reading, edge: ImageEdge) -> Any:
    """Return the value at an offset from a place."""
    place = [p if _none(o) else p + o for p, o in zip(at, offset, strict=False)] + list(at[len(offset) :])
    return read_at(field, place, [a for a, o in enumerate(offset) if not _none(o)], read, edge)


def read_at(field: Field, place: Place, axes: Sequence[int], read: Reading, edge: ImageEdge) -> Any:
    """Return the value at a place, which may be outside of the field along some axes."""
    if edge.border != "constant":
        return read.at(field, place, edge.border)
    if field.dtype in COMPLEX_DTYPES or field.type.element.holds(edge.cval):
        return read.at(field, place, edge.cval)
    inside = [test for a in axes for test in (place[a] >= 0, place[a] < field.field_shape[a])]
    own = k._convert(read.at(field, place, "clamp"), "float64")
    return k._where(k._and(inside), own, edge.cval) if inside else own


def _none(step: Any) -> bool:
    return isinstance(step, int) and step == 0


def combined(count: int, term: Callable[[Any], Any], operation: Callable[[Any, Any], Any], start: Any = None) -> Any:
    """Combine the terms 0 … count - 1 in order: unrolled if they are few, else in a loop."""
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
    """Return a function that looks up a number by its index: unrolled, or from a constant table of int32 or `dtype` in a loop."""

    def looked_up(n: Any) -> Any:
        if isinstance(n, int) or len(set(numbers)) == 1:
            return numbers[n if isinstance(n, int) else 0]
        whole = dtype != "int64" and all(isinstance(number, int) for number in numbers)
        return k._constantArray(np.array(numbers, np.int32 if whole else dtype))[n]

    return looked_up


def offsets_at(offsets: Sequence[Offset]) -> Callable[[Any], Offset]:
    """Return a function that looks up an offset by its index, as `numbers_at`."""
    along_axes = [numbers_at(numbers) for numbers in zip(*offsets, strict=True)]
    return lambda n: tuple(number(n) for number in along_axes)


def steps_along(axis: int, count: int, origin: int) -> Callable[[Any], Offset]:
    """Return a function from a step along an axis to an offset over `count` axes."""
    return lambda step: tuple(step - origin if a == axis else 0 for a in range(count))


def held_in(computed: str, value: Any) -> Any:
    """Convert a value to the dtype of sums; uint64 keeps its bits in int64, which wraps around."""
    if computed == "int64" and value.type.dtype is ULONG:
        return k._as_long(value)
    return k._convert(value, computed)


def stored(value: Any, out: FieldType) -> Any:
    """Convert a sum to a dtype: integers are truncated, modulo their range, as casts in C on most machines."""
    kind = out.element.kind
    if kind == "b":
        return k._convert(value, "int64") != 0
    if kind not in "iu" or (isinstance(value, Value) and value.type.dtype == out.element):
        return value
    bits = out.element.bits
    whole = value if value.type.dtype is INT and bits < 32 else held_in("int64", value)
    if out.dtype == "uint64":
        wrapped = k._as_ulong(whole)  # last bits, also of negative numbers
        return wrapped if value.type.kind == "i" else k._where(value < 0, wrapped, k._convert(value, "uint64"))
    if bits == 64:
        return whole
    low = whole & ((1 << bits) - 1)
    return low if kind == "u" else (low ^ (1 << (bits - 1))) - (1 << (bits - 1))
