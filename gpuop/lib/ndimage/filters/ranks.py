"""Rank filters of scipy.ndimage: the value of a window at an index of ascending order."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.lib.ndimage.array_arguments import of_arrays
from gpuop.lib.ndimage.filter_arguments import edge, method_of, rank, result_dtype, window_axes
from gpuop.lib.ndimage.filters.extrema import compared_in, extremum, footprint_of, one_mode, taps_of
from gpuop.lib.ndimage.filters.neighbours import Around, neighbourhood
from gpuop.lib.ndimage.filters.radix_select import counted
from gpuop.lib.ndimage.scalar_arguments import real, whole

METHODS = ("network", "counts")
WRITTEN_OUT = 64  # values of the largest selection network
# The same for integers of 32 and 64 bits, with more of which Intel's compiler crashes.
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
    method: Any = None,
) -> Any:
    """scipy.ndimage.median_filter: `rank_filter` of the rank n // 2 of n values."""
    return _ranked(input, lambda count: count // 2, size, footprint, output, mode, cval, origin, axes, method)


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
    wide = np.dtype(computed).kind in "iu" and np.dtype(computed).itemsize > 2
    most = WIDE_INTEGERS if wide else WRITTEN_OUT
    if method == "network" and count > most:
        raise ArgumentError(
            f"`method='network'` is of windows of up to {most} points of {computed}, and this has {count}"
        )
    if method == "counts" or count > most:
        return counted(field, offsets, at, outside, computed, dtype, "rank_filter_counts")
    by_columns = sorted(offsets, key=lambda offset: offset[::-1])  # neighbours in a row share results of columns

    def selected(around: Around) -> Any:
        return k._select([around(offset) for offset in by_columns], at)

    return neighbourhood("rank_filter", field, selected, outside, computed, dtype, (tuple(offsets), at))
