"""Differences of results, compared in parallel: large ones have a gigabyte."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
PART = 1 << 22  # values that a thread compares at once


@dataclass(frozen=True)
class Difference:
    """Of an array from the expected one.

    Attributes:
        far: the share of values that are farther away than they may be; those that are no numbers count too.
        bits: whether all are equal.
    """

    far: float
    bits: bool


def compared(found: Array, expected: Array, error: float) -> Difference:
    """Two arrays of one shape and dtype; `error` is relative to the largest expected value where that is above 1."""
    if found.size == 0:
        return Difference(0.0, True)
    axis = max(range(found.ndim), key=found.shape.__getitem__) if found.ndim else 0
    pieces = max(1, found.size // PART)
    parts = [np.array_split(np.atleast_1d(a), pieces, axis) for a in (found, expected)]
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        largest = max(pool.map(_largest, parts[1]))
        done = list(pool.map(_compared, *parts, [error * max(1.0, largest)] * len(parts[0])))
    return Difference(sum(far for far, _ in done) / found.size, all(bits for _, bits in done))


def _largest(a: Array) -> float:
    return max(abs(float(a.max(initial=0))), abs(float(a.min(initial=0))))


def _compared(found: Array, expected: Array, allowed: float) -> tuple[int, bool]:
    """The number of values that are far, and whether all are equal."""
    if np.array_equal(found, expected):
        return 0, True
    away = np.abs(np.subtract(found, expected, dtype=None if found.dtype == np.float32 else np.float64))
    return found.size - int(np.count_nonzero(away <= allowed)), False
