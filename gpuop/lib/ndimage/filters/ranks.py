"""Rank filters of scipy.ndimage: the value of a window at an index of ascending order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.base.lru import BoundedCache
from gpuop.dsl.fields.field import Field
from gpuop.engine.jit.array_arguments import is_of_an_array, takes_arrays
from gpuop.ir.dtype_names import values_dtype, wide_float
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.filter_arguments import ImageEdge, edge, method_of, rank, result_dtype, window_axes
from gpuop.lib.ndimage.filters.extrema import compared_in, extremum, footprint_of, one_mode, taps_of
from gpuop.lib.ndimage.filters.neighbours import MOST, Around, Offset, neighbourhood, offsets_at
from gpuop.lib.ndimage.scalar_arguments import real, whole
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.sort.keys import key_of, value_of
from gpuop.ops.symbolic_numbers import scalar

METHODS = ("network", "counts")
WRITTEN_OUT = 64  # values of the largest selection network
# The same for integers of 32 and 64 bits, with more of which Intel's compiler crashes.
WIDE_INTEGERS = 25
_first_ranks: BoundedCache[Any, int] = BoundedCache(256)  # the rank that has a network of its own, by window


@takes_arrays()
def rank_filter(
    input: Any,
    rank: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.rank_filter: the value of a window at index `rank` of ascending order.

    Args:
        input, size, footprint, output, mode, cval, origin, axes: as in `minimum_filter`.
        rank: an integer; negative ones count from the greatest value.
        method: "network" discards values by comparisons of pairs, "counts" finds the result bit by bit, by counting lesser values.
            The default follows from the number of points of the window. Results are the same.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong ranks, windows, modes, axes, origins or methods; a ValueError and a RuntimeError.
        UnsupportedError: complex numbers; a TypeError.
    """
    return _ranked(input, lambda count: whole(rank, "rank"), size, footprint, output, mode, cval, origin, axes, method)


@takes_arrays()
def median_filter(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.median_filter: `rank_filter` of the rank n // 2 of n values."""
    return _ranked(input, lambda count: count // 2, size, footprint, output, mode, cval, origin, axes, method)


@takes_arrays()
def percentile_filter(
    input: Any,
    percentile: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.percentile_filter: `rank_filter` of a percentage of the window; -20 is 80."""

    def at(count: int) -> int:
        share = real(percentile, "percentile")
        share += 100.0 if share < 0 else 0.0
        if not 0 <= share <= 100:
            raise ArgumentError(f"invalid percentile {percentile}: it is in -100 … 100")
        return count - 1 if share == 100 else int(float(count) * share / 100.0)

    return _ranked(input, at, size, footprint, output, mode, cval, origin, axes, method)


def _ranked(
    field: Field,
    rank_of: Any,
    size: Any,
    footprint: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
    method: Any,
) -> Field:
    chosen, method = window_axes(axes, rank(field)), method_of(method, METHODS)
    window = footprint_of(size, footprint, len(chosen))
    count = int(window.sum())
    at = rank_of(count)
    at = at + count if at < 0 else at
    if not 0 <= at < count:
        raise ArgumentError(f"rank {at} is not within filter footprint size {count}")
    if at in (0, count - 1):
        which = "maximum" if at else "minimum"
        return extremum(which, field, None, window, None, output, mode, cval, origin, chosen)
    one_mode(mode)
    offsets = [offset for offset, _ in taps_of(field, window, chosen, origin, np.zeros(window.shape))]
    outside, dtype = edge(mode, cval, field), result_dtype(output, field)
    computed = compared_in(field, outside)
    wide = values_dtype(computed).kind in "iu" and values_dtype(computed).itemsize > 2
    most = WIDE_INTEGERS if wide else WRITTEN_OUT
    if method == "network" and count > most:
        raise ArgumentError(
            f"`method='network'` takes windows of up to {most} points of {computed}, and this one has {count}"
        )
    if method == "counts" or count > most:
        return counted(field, offsets, at, outside, computed, dtype, "rank_filter_counts")
    return _selected(field, offsets, at, outside, computed, dtype)


def _selected(field: Field, offsets: Sequence[Offset], at: int, outside: ImageEdge, computed: str, dtype: str) -> Field:
    """Return the window's value at an index of ascending order, by a network."""
    by_columns = sorted(offsets, key=lambda offset: offset[::-1])  # neighbours in a row share results of columns

    def selected(around: Around) -> Any:
        return k._select([around(offset) for offset in by_columns], at)

    whole = values_dtype(computed).kind in "iub" and at != len(offsets) // 2  # medians have the fastest networks
    if whole and is_of_an_array():
        window = field.type, tuple(offsets), outside, computed, dtype
        if _first_ranks.find(window, lambda: at) != at:
            return _by_data(field, by_columns, at, outside, computed, dtype)
    return neighbourhood("rank_filter", field, selected, outside, computed, dtype, (tuple(offsets), at))


def _by_data(field: Field, offsets: Sequence[Offset], at: int, outside: ImageEdge, computed: str, dtype: str) -> Field:
    """Return the window's value at an index that the kernel gets as an argument: all ranks of a window share it.

    A window with NaN has no order, so which of its values comes first follows from the network: this one is for integers.
    """
    number = scalar(at, "int32")

    def selected(around: Around) -> Any:
        index, (result, *others) = k._readTensor(number), k._sort([around(offset) for offset in offsets])
        for n, value in enumerate(others, 1):
            result = k._where(index == n, value, result)
        return result

    key = tuple(offsets), "a rank that is an argument"
    remark = "sorts the window and takes any rank, as others were wanted before"
    return neighbourhood("rank_filter", field, selected, outside, computed, dtype, key, [number], remark)


# --- rank selection in large windows, bit by bit ----------------------------------------------------------------------
# The result is the greatest key that at most `rank` values are less than.
# Each bit is set unless too many values of the window are less than the result with it. This takes comparisons and counts only, of
# keys as short as the values, which SIMD lanes are used well by; no thread waits for another one.


def counted(
    field: Field, offsets: Sequence[Offset], at: int, outside: ImageEdge, computed: str, dtype: str, name: str
) -> Field:
    """Return the window's value at index `at` of ascending order.

    Args:
        offsets: offsets of the window's points, in row-major order.
        computed: dtype of comparisons.
    """
    computed = wide_float(computed)
    kind = field.type.replace(dtype=computed)
    keys, edge = _keys(field, kind), outside
    if outside.border == "constant":
        edge = ImageEdge("constant", _key_of_number(outside.cval, kind))
    short = "uint32" if keys.dtype == "uint64" else keys.dtype  # lanes of one width, if it can hold the count
    counts = np.promote_types(short, np.min_scalar_type(len(offsets))).name

    def value_at(around: Around) -> Any:
        bits = 8 * np.dtype(keys.dtype).itemsize
        pivot, bit = k._var(k._convert(0, keys.dtype)), k._var(k._convert(1 << (bits - 1), keys.dtype))
        with k._for(bits):
            tried, less = k._var(pivot | bit), k._var(k._convert(0, counts))
            _over(offsets, around, lambda value: less.assign(less + k._convert(value < tried, counts)))
            pivot.assign(k._where(less <= at, tried, pivot))
            bit.assign(bit >> 1)
        if keys is field:
            return pivot
        key = k._convert(pivot, "uint64" if bits == 64 else "uint32")
        return k._convert(value_of(key, kind), computed)

    return neighbourhood(name, keys, value_at, edge, keys.dtype, dtype, (tuple(offsets), at, computed))


def _over(offsets: Sequence[Offset], around: Around, each: Any) -> None:
    """Call `each` with each value of a window: boxes in loops over the axes, other windows unrolled, or from a table."""
    low, high = np.min(offsets, axis=0), np.max(offsets, axis=0)
    if np.prod(high - low + 1) == len(offsets):
        with k._for([int(n) for n in high - low + 1]) as place:
            each(around(tuple(n + int(first) for n, first in zip(place, low, strict=True))))
    elif len(offsets) <= MOST:
        for offset in offsets:
            each(around(offset))
    else:
        with k._for(len(offsets)) as n:
            each(around(offsets_at(offsets)(n)))


def _keys(field: Field, kind: FieldType) -> Field:
    """Return order-preserving unsigned keys of the field's values, of the same size."""
    if kind.element.kind == "u" and kind.dtype == field.dtype:
        return field
    size = 8 * np.dtype(kind.array_dtype).itemsize
    short = f"uint{max(size, 32) if kind.element.kind == 'f' else size}"

    def at_point(at: Place, read: Reading) -> Any:
        return k._convert(key_of(k._convert(read.at(field, at), kind.dtype), kind), short)

    return gathered("rank_filter_keys", kind.replace(dtype=short), [field], at_point, (kind.dtype, rank(field)))


def _key_of_number(number: Any, kind: FieldType) -> int:
    """Return the key of a number, as `_keys` computes it."""
    value = np.asarray(number, kind.array_dtype)
    if value.dtype.kind != "f":
        return int(value) - (int(np.iinfo(value.dtype).min) if value.dtype.kind == "i" else 0)
    value = (value + 0.0).astype(np.float64 if value.dtype.itemsize == 8 else np.float32)
    bits = int(value.view(f"u{value.dtype.itemsize}"))
    top = 1 << (8 * value.dtype.itemsize - 1)
    return 2 * top - 1 - bits if bits & top else bits | top
