"""scipy.ndimage's rank filters: the value of a window that has so many others before it in order."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.errors import ArgumentError
from gpuop.ir.types import FieldType
from gpuop.ndimage.extrema import compared_in, extremum, footprint_of, one_mode, taps_of
from gpuop.ndimage.filter_arguments import axes_of, edge, rank, result_dtype
from gpuop.ndimage.neighbours import Around, neighbourhood, offsets_at
from gpuop.ndimage.of_arrays import of_arrays
from gpuop.ops.sort_keys import key_of

WRITTEN_OUT = 64  # values that are selected from by comparisons of pairs
# The same of integers of 32 and 64 bits, of more of which Intel's compiler dies.
WIDE_INTEGERS = 25


@of_arrays()
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
) -> Any:
    """scipy.ndimage.rank_filter: the value of a window that `rank` others come before.

    Args:
        input, size, footprint, output, mode, cval, origin, axes: as of `minimum_filter`.
        rank: an integer; negative ones count from the greatest value.

    Returns:
        A lazy Field; of an array, an array of the same library.

    Raises:
        ArgumentError: wrong ranks, windows, modes, axes or origins; a ValueError and a RuntimeError.
        UnsupportedError: complex numbers; a TypeError.
    """
    return _ranked(input, lambda count: operator.index(rank), size, footprint, output, mode, cval, origin, axes)


@of_arrays()
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
) -> Any:
    """scipy.ndimage.median_filter: `rank_filter` of the rank n // 2 of n values."""
    return _ranked(input, lambda count: count // 2, size, footprint, output, mode, cval, origin, axes)


@of_arrays()
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
) -> Any:
    """scipy.ndimage.percentile_filter: `rank_filter` of a share of the window, in percent; -20 is 80."""

    def at(count: int) -> int:
        share = percentile + 100.0 if percentile < 0 else percentile
        if not 0 <= share <= 100:
            raise ArgumentError(f"invalid percentile {percentile}: it is in -100 … 100")
        return count - 1 if share == 100 else int(float(count) * share / 100.0)

    return _ranked(input, at, size, footprint, output, mode, cval, origin, axes)


def _ranked(
    field: Field, rank_of: Any, size: Any, footprint: Any, output: Any, mode: Any, cval: Any, origin: Any, axes: Any
) -> Field:
    chosen = axes_of(axes, rank(field))
    held = footprint_of(size, footprint, len(chosen))
    count = int(held.sum())
    at = rank_of(count)
    at = at + count if at < 0 else at
    if not 0 <= at < count:
        raise ArgumentError(f"rank {at} is not within filter footprint size {count}")
    if at in (0, count - 1):
        which = "maximum" if at else "minimum"
        return extremum(which, field, None, held, None, output, mode, cval, origin, chosen)
    one_mode(mode)
    offsets = [offset for offset, _ in taps_of(field, held, chosen, origin, np.zeros(held.shape))]
    outside, dtype = edge(mode, cval), result_dtype(output, field)
    computed = compared_in(field, outside)
    place = offsets_at(offsets)
    by_columns = sorted(offsets, key=lambda offset: offset[::-1])  # neighbours in a row share what is made of columns

    def selected(around: Around) -> Any:
        wide = np.dtype(computed).kind in "iu" and np.dtype(computed).itemsize > 2
        if count <= (WIDE_INTEGERS if wide else WRITTEN_OUT):
            return k._select([around(offset) for offset in by_columns], at)
        return _by_bits(lambda n: around(place(n)), count, at, field.type.replace(dtype=computed))

    return neighbourhood("rank_filter", field, selected, outside, computed, dtype, (tuple(offsets), at))


def _by_bits(value: Callable[[Any], Any], count: int, at: int, kind: FieldType) -> Any:
    """The value that `at` others come before, bit by bit of what has the order of the values: of those that begin with the
    bits that are known, as many as go on with 0 come first."""
    bits = max(kind.element.bits, 32) if kind.element.kind == "f" else kind.element.bits
    unsigned = "uint64" if bits == 64 else "uint32"
    found, before, chosen = k._var(k._convert(0, unsigned)), k._intVar(at), k._var(value(0))
    with k._for(bits) as turn:
        low = k._convert(bits - 1 - turn, unsigned)
        zeros = k._intVar()
        with k._for(count) as n:
            zeros += k._convert_int((key_of(value(n), kind) >> low) == (found >> low))
        with k._if(before >= zeros):
            before -= zeros
            found |= k._convert(1, unsigned) << low
    with k._for(count) as n:
        own = value(n)
        with k._if(key_of(own, kind) == found):
            chosen @= own
    return chosen
