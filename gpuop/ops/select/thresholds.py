"""Known edges as values of the compared dtype: comparisons are then exact, and need no wider dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuop.dsl.fields.from_arrays import Array as Numbers


def least(edges: Numbers, dtype: np.dtype[Any], above: bool = False) -> Numbers:
    """Return for each edge the least value of a dtype that is not less, or `above` it; edges without such a value are left out.

    NaN is greater than all numbers, as in NumPy sorts.
    """
    if dtype.kind != "f":
        ends = np.iinfo(dtype)
        low, high = int(ends.min), int(ends.max)
        near = [max(e, low - 1) for e in edges.tolist() if e <= high]  # Python compares exactly
        whole = [math.floor(e) + 1 if above else math.ceil(e) for e in near]
        return np.array([max(n, low) for n in whole if n <= high], dtype)
    exact = edges.astype(np.float64)
    exact = exact[~np.isnan(exact)] if above else exact
    with np.errstate(over="ignore"):
        result = exact.astype(dtype)
    result = np.where(result < exact, np.nextafter(result, dtype.type(np.inf)), result)
    if above:
        higher = np.nextafter(result, dtype.type(np.inf))
        result = np.where(exact == np.inf, dtype.type(np.nan), np.where(result <= exact, higher, result))
    return result.astype(dtype)


def greatest(edge: Any, dtype: np.dtype[Any]) -> Numbers:
    """Return the greatest value of a dtype that is not above an edge: one, or none."""
    if dtype.kind != "f":
        ends = np.iinfo(dtype)
        whole = min(math.floor(edge), int(ends.max)) if math.isfinite(edge) else int(ends.max) if edge > 0 else None
        return np.array([] if whole is None or whole < ends.min else [whole], dtype)
    with np.errstate(over="ignore"):
        result = np.asarray(edge, np.float64).astype(dtype)
    return np.atleast_1d(np.nextafter(result, dtype.type(-np.inf)) if float(result) > float(edge) else result)


def first_at(edge: float, dtype: str, above: bool = False) -> int:
    """Return the least integer of a dtype that is not below an edge, or `above` it, when both are compared in double.

    If there is none, the result is the dtype's maximum plus 1.
    """
    ends = np.iinfo(dtype)
    low, high = int(ends.min), int(ends.max) + 1
    while low < high:
        middle = (low + high) // 2
        reached = float(middle) > edge if above else float(middle) >= edge
        low, high = (low, middle) if reached else (middle + 1, high)
    return low
