"""Weighted windows: separable ones axis by axis, and large ones in loops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.dsl.builtins.shared_memory import CONSTANT_BYTES
from gpuop.dsl.fields.field import Field
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.lib.ndimage.filter_arguments import EXACT, INTEGERS, ImageEdge, between_steps, computed_in, rank, summed_in
from gpuop.lib.ndimage.filters.neighbours import MOST, Around, combined, neighbourhood, numbers_at, offsets_at

Numbers = np.ndarray[Any, Any]
EPSILON = 2.0**-52  # SciPy takes weights that differ by less as equal, and smaller ones as 0
WORTH = 49  # weights from which on separable windows are filtered axis by axis


def factors_of(window: Numbers, whole: bool) -> list[Numbers] | None:
    """Return weights along each axis whose outer product is the window; None if it is not separable.

    Args:
        whole: require integer factors, so that sums of integers stay exact.
    """
    if sum(n > 1 for n in window.shape) < 2 or not window.any():
        return None
    if whole and not (np.array_equal(window, np.rint(window)) and np.abs(window).max() < EXACT):
        return None
    middle = np.unravel_index(np.argmax(np.abs(window)), window.shape)
    lines = [window[tuple(slice(None) if b == a else at for b, at in enumerate(middle))] for a in range(window.ndim)]
    parts = [line / (np.gcd.reduce(line.astype(np.int64)) if whole else window[middle]) for line in lines]
    parts[0] = parts[0] * (window[middle] / reduce(np.multiply.outer, parts)[middle])
    near = 0.0 if whole else 8 * EPSILON * abs(window[middle])
    good = np.allclose(reduce(np.multiply.outer, parts), window, rtol=0, atol=near)
    return parts if good and not (whole and (parts[0] % 1).any()) else None


def one_by_one(
    field: Field, parts: Sequence[Numbers], shifts: Sequence[int], at: ImageEdge, dtype: str, along: Any
) -> Field:
    """Filter axis by axis; intermediate values have the dtype of sums."""
    whole = np.array(reduce(np.multiply.outer, parts))
    exact = all(np.array_equal(part, np.rint(part)) for part in parts)
    sums = summed_in(field, dtype, whole, at) if exact else computed_in(field, dtype)
    between = between_steps(field, sums)
    computed = (
        "int32" if between == "int32" else None
    )  # it holds the sums of the whole window, and so those of its parts
    axes = [a for a, part in enumerate(parts) if part.size > 1]
    scale = np.prod([part.sum() for a, part in enumerate(parts) if a not in axes])
    for a in axes:
        kind = dtype if a == axes[-1] else between
        weights = parts[a] * scale if a == axes[0] else parts[a]
        field = along(field, weights, a, kind, at, shifts[a] - parts[a].size // 2, computed=computed)
        if at.border == "constant":
            outside = at.cval * float(weights.sum())
            if between == "int64":
                outside = (int(at.cval) * int(weights.sum()) + 2**63) % 2**64 - 2**63
            at = ImageEdge("constant", outside if between in COMPLEX_DTYPES else np.asarray(outside, between).item())
    return field


def added(
    name: str, field: Field, window: Numbers, shifts: Sequence[int], at: ImageEdge, dtype: str, remark: str = ""
) -> Field:
    """Return the weighted sums of a window.

    Raises:
        ArgumentError: the weights do not fit into a constant table of a kernel.
    """
    computed = summed_in(field, dtype, window, at)
    number = int if computed in INTEGERS else float
    if not has_table(field, window, at, computed):
        raise ArgumentError(
            f"{window.size} weights are more than a table of a kernel holds: `method='fft'` takes any number"
        )
    dense = _is_dense(field, window, at)
    taps = [
        (tuple(i - shift for i, shift in zip(place, shifts, strict=True)), number(weight))
        for place, weight in np.ndenumerate(window)
        if abs(weight) > EPSILON
    ]
    table = numbers_at([weight for _, weight in taps], computed)
    place = offsets_at([offset for offset, _ in taps])

    def total(around: Around) -> Any:
        if not taps:
            return around((0,) * rank(field)) * number(0)
        if len(taps) > MOST and dense:
            return _in_loops(around, np.where(np.abs(window) > EPSILON, window, 0).astype(computed), shifts)
        return combined(len(taps), lambda n: around(place(n)) * table(n), lambda total, term: total + term)

    return neighbourhood(name, field, total, at, computed, dtype, (tuple(taps), window.shape), remark=remark)


def has_table(field: Field, window: Numbers, at: ImageEdge, computed: str) -> bool:
    """Return whether the weights fit into constant tables of kernels, with their offsets if zeros are left out."""
    count, each = _count(window), np.dtype(computed).itemsize
    nbytes = window.size * each if _is_dense(field, window, at) else count * (each + 4 * window.ndim)
    return count <= MOST or nbytes <= CONSTANT_BYTES


def _count(window: Numbers) -> int:
    """Return the number of nonzero weights."""
    return int(np.count_nonzero(np.abs(window) > EPSILON))


def _is_dense(field: Field, window: Numbers, at: ImageEdge) -> bool:
    """Return whether a loop runs over all weights: there are no zeros, or they are the fewer and all values are finite."""
    finite = field.type.element.kind in "iub" and bool(np.isfinite(at.cval))
    return _count(window) == window.size or (finite and 2 * _count(window) > window.size)


def _in_loops(around: Around, window: Numbers, shifts: Sequence[int]) -> Any:
    weights = k._constantArray(window)
    # -0.0 is the neutral element of float addition: -0.0 + 0.0 is 0.0, and -0.0 + -0.0 is -0.0.
    total = k._var(k._convert(-0.0 if window.dtype.kind == "f" else 0, str(window.dtype)))
    with k._for(window.shape) as place:
        offset = tuple(n - shift for n, shift in zip(place, shifts, strict=True))
        total.assign(total + around(offset) * weights[tuple(place)])
    return total
