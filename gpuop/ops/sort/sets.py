"""NumPy functions of fields as sets of values, and the places of nonzero values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.operators.variants import either
from gpuop.ir.dtype_names import joined_dtype
from gpuop.ir.types import FieldType
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.data_dependent_shapes import integers, on_device, on_host
from gpuop.ops.elementwise.algebra import apply, astype
from gpuop.ops.elementwise.operands import wide_dtype
from gpuop.ops.layout.axes import Axis, a_field, axes_of
from gpuop.ops.layout.gather import Place, Reading, apart, gathered
from gpuop.ops.layout.join import stack
from gpuop.ops.layout.layouts import ravel, reshape, reshaped
from gpuop.ops.layout.reorder import take
from gpuop.ops.reduce.bins import Bins
from gpuop.ops.reduce.counting import counted
from gpuop.ops.reduce.kernels import Partial, by_groups
from gpuop.ops.reduce.reducers import Split, reducer_of
from gpuop.ops.scan.kernels import along_grid
from gpuop.ops.scan.scans import cumsum
from gpuop.ops.sort.radix_sort import single
from gpuop.ops.sort.search import count_passing, ordered
from gpuop.ops.sort.sorts import argsort, sort

ADVICE = "`np.where(mask, f, 0)` keeps all places"


class UniqueAll(NamedTuple):
    """The unique values, their first places, the inverse indices, and the counts."""

    values: Field
    indices: Field
    inverse_indices: Field
    counts: Field


class UniqueCounts(NamedTuple):
    """The unique values, and their counts."""

    values: Field
    counts: Field


class UniqueInverse(NamedTuple):
    """The unique values, and the inverse indices."""

    values: Field
    inverse_indices: Field


def unique_all(x: Any) -> UniqueAll:
    """numpy.unique_all."""
    return UniqueAll(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any) -> UniqueCounts:
    """numpy.unique_counts."""
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverse:
    """numpy.unique_inverse."""
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any) -> Field:
    """numpy.unique_values, in order."""
    return unique(x, equal_nan=False)  # type: ignore[no-any-return]


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Field:
    """numpy.isin: by a search in the sorted values."""
    sides = element, test_elements
    typed = [v for v in sides if isinstance(v, Field)]
    fields = [v if isinstance(v, Field) else Field(v, 0, wide_dtype(v, typed)) for v in sides]
    dtype = joined_dtype(*(ordered("isin", v).dtype for v in fields))  # holds the values of both
    values, among = (ordered("isin", v.astype(dtype)) for v in fields)
    row, out = sort(ravel(among)), values.type.replace(dtype="bool")
    count = row.size
    if not count or not values.size:
        return filled(out, bool(invert))

    def value(at: Place, read: Reading) -> Any:
        own = read.at(values, at)
        n = count_passing(count, lambda place: k._readTensor(row, place, border="unchecked") <= own)
        there = (n > 0) & (k._readTensor(row, n - 1) == own)
        return ~there if invert else there

    return gathered("isin", out, [values, row], value, bool(invert))


# --- places ---------------------------------------------------------------------------------------------------------------


def nonzero(a: Any) -> tuple[Field, ...]:
    """numpy.nonzero: a field of coordinates for each axis."""
    field = a_field("nonzero", a)
    if not field.ndim:
        raise SemanticError("nonzero: a field of one number has no axes; write `f != 0`")
    places = flatnonzero(field)
    return tuple(_coordinate(places, field, n) for n in range(field.ndim))


def argwhere(a: Any) -> Field:
    """numpy.argwhere: the coordinates of each place, as vectors."""
    return stack(nonzero(a), axis=1)


def flatnonzero(a: Any) -> Field:
    """numpy.flatnonzero: flat indices in row-major order."""
    field = ravel(a_field("flatnonzero", a))
    if not field.size:
        return filled(FieldType(0, (), "int64"), 0)
    return true_places("nonzero", ADVICE, field if field.dtype == "bool" else apply("not_equal", field, 0), "int64")


def _coordinate(places: Field, field: Field, axis: int) -> Field:
    shape = tuple(field.shape)
    return gathered(
        "nonzero", places.type, [places], lambda at, read: apart(read.at(places, at), shape)[axis], (shape, axis)
    )


# --- numpy.unique: the first of equal values among sorted ones --------------------------------------------------------


SORTED = "`np.sort(f)` has as many values as the field"
FEW = 1 << 15  # values for a sort on the host
CLOSE = 1 << 16  # range of integers that are counted instead of sorted


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """numpy.unique."""
    field = a_field("unique", ar)
    if axis is not None:
        raise SemanticError("unique compares the single values of a Field: leave out `axis=`")
    request = (True, return_index, return_inverse, return_counts)
    values = ordered("unique", field)
    flat = reshaped("unique", values, [Axis(field.type.array_shape.points)])
    if 0 < flat.field_shape.points <= FEW:
        result = _of_few(field, values, request, equal_nan)
    elif not flat.field_shape.points:
        none = filled(FieldType(0, (), "int64"), 0)
        result = [astype(flat, field.dtype), none, reshaped("unique", none, axes_of(field.type)), none]
    else:
        close = None if return_index else _of_close_integers(field, flat, return_inverse)
        result = close or _unique_parts(field, flat, return_index or return_inverse, equal_nan)
    chosen = tuple(part for part, want in zip(result, request, strict=True) if want)
    return chosen if len(chosen) > 1 else chosen[0]


def _of_few(field: Field, values: Field, request: tuple[bool, ...], equal_nan: bool) -> list[Field]:
    """Return the result for few values, which the host sorts before a device would begin; the values themselves are not wanted."""
    of_array: Any = np.unique
    result = of_array(on_host("unique", SORTED, values), *request[1:], equal_nan=equal_nan)
    arrays = iter(result if isinstance(result, tuple) else (result,))
    values = Field(next(arrays), 0, _dtype(field))
    _, index, inverse, counts = (Field(next(arrays)) if want and n else values for n, want in enumerate(request))
    return [values, index, reshaped("unique", inverse, axes_of(field.type)) if request[2] else values, counts]


def _dtype(field: Field) -> str:
    """Return the dtype of a field's values."""
    return "float32" if field.dtype == "unorm8" else str(field.dtype)


def _of_close_integers(field: Field, flat: Field, places: bool) -> list[Field] | None:
    """Return the result for integers in a small range, which are counted instead of sorted; None for others."""
    dtype = np.dtype(flat.type.array_dtype)
    if dtype.kind not in "iu":
        return None
    flat = on_device("unique", SORTED, flat)
    low, high = integers(flat.min(), flat.max())
    if high - low >= CLOSE:
        return None
    computed = str(dtype) if dtype.itemsize > 2 else "int32"  # differences are exact, or wrap around
    above = astype(apply("subtract", astype(flat, computed), low), "int32")
    every = on_device("unique", SORTED, counted("unique", above, Bins(high - low + 1, "own")))
    there = apply("not_equal", every, 0)
    result = true_places("unique", SORTED, there, "int32")
    values = astype(apply("add", astype(result, computed), low), _dtype(field))
    if not places:
        return [values, result, result, take(every, result, mode="clip")]
    inverse = take(cumsum(there) - 1, above, mode="clip")
    return [values, result, reshaped("unique", inverse, axes_of(field.type)), take(every, result, mode="clip")]


def _unique_parts(field: Field, flat: Field, places: bool, equal_nan: bool) -> list[Field]:
    """Return the values, their first places, the inverse indices, and the counts."""
    order = on_device("unique", SORTED, argsort(flat)) if places else flat
    row = take(flat, order, mode="clip") if places else on_device("unique", SORTED, sort(flat))
    changes = on_device("unique", SORTED, _changes(row, equal_nan))
    starts = true_places("unique", SORTED, changes, "int32")
    values = astype(take(row, starts, mode="clip"), _dtype(field))
    if not places:
        return [values, starts, starts, _lengths(starts, row.field_shape.points)]
    inverse = reshaped("unique", _inverse(order, astype(cumsum(changes), "int32")), axes_of(field.type))
    return [values, take(order, starts, mode="clip"), inverse, _lengths(starts, row.field_shape.points)]


def _changes(row: Field, equal_nan: bool) -> Field:
    """Return where a value differs from the one before it."""

    def changes(at: Place, read: Reading) -> Any:
        own, before = read.at(row, at), read.at(row, [at[0] - 1], "clamp")
        differs = own != before
        if equal_nan and own.type.kind == "f":
            differs = differs & ((own == own) | (before == before))
        return differs | (at[0] == 0)

    return gathered("unique", row.type.replace(dtype="bool"), [row], changes, equal_nan)


def _lengths(starts: Field, points: int) -> Field:
    count = starts.field_shape.points

    def length(at: Place, read: Reading) -> Any:
        end = k._where(at[0] + 1 < count, read.at(starts, [at[0] + 1], "clamp"), points)
        return end - read.at(starts, at)

    return gathered("unique", starts.type.replace(dtype="int64"), [starts], length, points)


def _inverse(order: Field, numbers: Field) -> Field:
    """Return the inverse indices."""

    def body() -> None:
        k._globalThreads(numbers.field_shape)
        k._writeTensor(k._out0, k._readTensor(numbers) - 1, k._convert_int(k._readTensor(order)))

    return library_call("unique", (order.type,), [numbers, order], body, "inverse", whole=True)[0]


# --- places of true values --------------------------------------------------------------------------------------------
# Each chunk counts its own, then writes after those of the chunks before it.


LANES, SHARE = 256, 32  # threads for a chunk, and the values of each


def true_places(name: str, advice: str, mask: Field, dtype: str) -> Field:
    """Return the places of true values in a grid of one dimension, in order; evaluated, as the number of them is unknown."""
    mask = on_device(name, advice, mask)
    (points,) = mask.field_shape
    parts = Split(points, LANES, SHARE, -(-points // (LANES * SHARE)))
    adder = replace(reducer_of("sum", mask.type, 1), accumulator="int32", result="int32")
    counts = reshape(by_groups(adder, Partial(mask), 1, False, parts).values, (parts.chunks,))
    ends = on_device(name, advice, along_grid(adder, counts, 0, True))
    (count,) = integers(ends[-1])
    out, key = FieldType(count, (), dtype), (parts, dtype)

    def alone() -> None:
        _alone(mask, ends, parts)

    def together() -> None:
        _together(mask, ends, parts)

    ways = (
        library_call(name, (out,), [mask, ends], way, (*key, way.__name__), whole=True)[0] for way in (alone, together)
    )
    return either(single(), *ways)


def _start(ends: Field) -> Any:
    """Return the number of true values before a group's chunk."""
    before = k._readTensor(ends, k._max(k._groupColumn - 1, 0), border="unchecked")
    return k._where(k._groupColumn == 0, 0, before)


def _alone(mask: Field, ends: Field, parts: Split) -> None:
    """Write with one thread for a chunk. It writes at each value without a branch: false values write the last place again."""
    k._globalThreads(parts.chunks)
    k._localThreads(1)
    first = k._groupColumn * parts.size
    start, end = _start(ends), k._readTensor(ends, k._groupColumn, border="unchecked")
    with k._if(start < end):
        written, place = k._var(start), k._var(first)
        with k._for(first, k._min(first + parts.size, parts.count)) as at:
            truth = k._readTensor(mask, at, border="unchecked")
            place.assign(k._where(truth, at, place))
            written.assign(written + k._convert_int(truth))
            k._writeTensor(k._out0, place, k._max(written - 1, start))


def _together(mask: Field, ends: Field, parts: Split) -> None:
    """Write with a work-group for a chunk: neighbours take neighbouring values, and write side by side."""
    k._globalThreads(parts.chunks * parts.width)
    k._localThreads(parts.width)
    written = k._var(_start(ends))
    with k._for(parts.share) as turn:
        at = k._groupColumn * parts.size + turn * parts.width + k._localColumn
        truth = k._readTensor(mask, k._min(at, parts.count - 1), border="unchecked") & (at < parts.count)
        upto = k._scanGroup(k._convert_int(truth), lambda a, b: a + b)
        with k._if(truth):
            k._writeTensor(k._out0, at, written + upto - 1)
        written.assign(written + k._broadcastGroup(upto, parts.width - 1))
