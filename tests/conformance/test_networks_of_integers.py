"""Sorting networks and trees of integers, alone and in a reduction: texts of many extremes that need one another."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.conftest import INTERPRETERS

from .compare import same

rng = np.random.default_rng(17)


def median(values: list) -> object:
    n = len(values)
    for i in range(n // 2 + 1):
        for j in range(n - 1 - i):
            values[j], values[j + 1] = _min(values[j], values[j + 1]), _max(values[j], values[j + 1])
    return values[n // 2]


@pytest.mark.parametrize("dtype", ["int32", "uint64"])
def test_medians(device: str, dtype: str) -> None:
    n = 9 if device in INTERPRETERS else 25

    @gp.operator
    def of_row(f):
        return median([_readTensor(f, _column + k) for k in range(n)])

    x = rng.integers(0, 99, 100).astype(dtype)
    wide = np.lib.stride_tricks.sliding_window_view(np.pad(x, (0, n - 1), "edge"), n)
    same(of_row(gp.ScalarField(x)), np.sort(wide, axis=1)[:, n // 2])


def test_medians_in_a_reduction(device: str) -> None:
    @gp.operator
    def of_square(f):
        return median([_readTensor(f, _row + k // 3 - 1, _column + k % 3 - 1) for k in range(9)])

    x = rng.integers(-99, 99, (40, 20)).astype(np.int32)
    wide = np.lib.stride_tricks.sliding_window_view(np.pad(x, 1, "edge"), (3, 3)).reshape(40, 20, 9)
    same(of_square(gp.ScalarField(x)).max(axis=0), np.sort(wide, axis=2)[..., 4].max(axis=0))


@pytest.mark.parametrize("dtype", ["int32", "uint64", "uint8"])
def test_trees(device: str, dtype: str) -> None:
    """Each extreme of two that nothing else needs; by calls, and by choices."""
    n = 24 if device in INTERPRETERS else 256 if dtype == "int32" else 128

    @gp.operator
    def of_row(f):
        values = [_readTensor(f, _column + k) for k in range(n)]
        while len(values) > 1:
            pairs = list(zip(values[::2], values[1::2], strict=True)) if len(values) % 2 == 0 else [tuple(values)]
            values = [_where(a >= b, a, b) if len(values) > 8 else _max(a, b, *rest) for a, b, *rest in pairs]
        return values[0]

    x = rng.integers(0, 99, 300).astype(dtype)
    wide = np.lib.stride_tricks.sliding_window_view(np.pad(x, (0, n - 1), "edge"), n)
    same(of_row(gp.ScalarField(x)), wide.max(axis=1))


@pytest.mark.parametrize("dtype", ["int64", "uint16"])
def test_extremes_of_small_fields(device: str, dtype: str) -> None:
    """One thread finds them, in a tree of all values."""
    x = rng.integers(0, 99, (7, 4, 3, 3)).astype(dtype)
    field = gp.Field(x, 2)
    for name in ("max", "argmin"):
        same(getattr(field, name)(), getattr(np, name)(x))
