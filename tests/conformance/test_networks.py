"""Networks of minima and maxima compile in time, in every spelling: compilers may not try all ways through their choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *

COUNT = 25
Pair = Callable[[Any, Any], tuple[Any, Any]]
SPELLINGS: tuple[Pair, ...] = (
    lambda a, b: (_min(a, b), _max(a, b)),
    lambda a, b: (_clamp(a, -np.inf, b), _clamp(a, b, np.inf)),
    lambda a, b: (_where(b < a, b, a), _where(b < a, a, b)),
)
rng = np.random.default_rng(6)


def middle(values: list[Any], *pairs: Pair) -> Any:
    """The median: the least of the rest comes to place k, until the middle. Spellings take turns."""
    values = list(values)
    for k in range(len(values) // 2 + 1):
        for i in range(len(values) - 1, k, -1):
            values[i - 1], values[i] = pairs[i % len(pairs)](values[i - 1], values[i])
    return values[len(values) // 2]


def expected(x: Any) -> Any:
    return np.median(np.lib.stride_tricks.sliding_window_view(x, COUNT), axis=-1).astype(x.dtype)


def test_in_a_kernel(device: str) -> None:
    @gp.operator
    def median(f):
        return middle([_readTensor(f, _column + k) for k in range(COUNT)], *SPELLINGS)

    x = rng.random(100, np.float32)
    assert np.array_equal(median(gp.ScalarField(x)).numpy()[: 101 - COUNT], expected(x))


def test_of_fields(device: str) -> None:
    x = rng.random(100, np.float32)
    f = gp.ScalarField(x)
    windows = [f[k : k + 101 - COUNT] for k in range(COUNT)]
    result = middle(windows, lambda a, b: (np.minimum(a, b), np.maximum(a, b)))
    assert np.array_equal(result.numpy(), expected(x))


def test_choices_are_no_constants() -> None:
    """The front end of clang computes both ways of every choice if all values are constants."""

    @gp.operator
    def median(f):
        return middle([_readTensor(f, _column + k) for k in range(5)], *SPELLINGS)

    for target in ("opencl", "cuda"):
        lines = median.source(gp.FieldType(8), target=target).splitlines()
        assert any(" ? " in line for line in lines)
        assert not any(" ? " in line and "const " in line for line in lines)
