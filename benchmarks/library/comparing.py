"""The distance of a result from the result of the reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import gpuop as gp

from .row import leaves

MOST = 2**24  # elements that are compared, about


def on_host(value: Any) -> Any:
    """An array of any library, or what else a result may hold, on the host."""
    for way in ("get", "numpy"):
        if hasattr(value, way) and not isinstance(value, np.ndarray):
            return getattr(value, way)()
    return value


def difference(ours: Any, theirs: Any) -> float:
    """The greatest difference, over the greatest magnitude of the reference; of integers and truth values the share that differ.

    Returns:
        0 of equal results; infinity of other shapes and of NaN and infinities at other places.
    """
    one, other = leaves(ours), leaves(theirs)
    if len(one) != len(other):
        return float("inf")
    return max((_apart(_some(a), _some(b)) for a, b in zip(one, other, strict=True)), default=0.0)


def _some(value: Any) -> Any:
    """On the host, every so many rows of what has very many elements: all of them take longer to come than to compute."""
    return _thin(on_host(value if isinstance(value, gp.Field) else _thin(value)))


def _thin(value: Any) -> Any:
    every = math.prod(getattr(value, "shape", ())) // MOST
    return value[::every] if every > 1 else value


def _apart(ours: Any, theirs: Any) -> float:
    if isinstance(theirs, (slice, str)):
        return 0.0 if ours == theirs else float("inf")
    one, other = np.asarray(ours), np.asarray(theirs)
    if one.shape != other.shape:
        return float("inf")
    if other.dtype.kind not in "fc" or one.dtype.kind not in "fc":
        return float(np.mean(one != other)) if one.size else 0.0
    return _relative(one, other)


def _relative(one: Any, other: Any) -> float:
    finite = np.isfinite(other)
    if not finite.all():
        if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
            return float("inf")
        one, other = one[finite], other[finite]
    if not one.size:
        return 0.0
    apart, scale = float(np.abs(one - other).max()), float(np.abs(other).max())
    return apart / scale if scale else apart
