"""numpy.histogram of 64-bit integers beside edges that are floating numbers: both are compared in double, as NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp

EDGES: dict[str, tuple[Any, ...]] = {
    "count": (10,),
    "range": (7, (2**60, 2**60 + 4000)),
    "integers": ([2**60, 2**60 + 1000, 2**60 + 2000, 2**60 + 4000],),
    "floats": (np.array([2**60, 2**60 + 1000, 2**60 + 2000, 2**60 + 4000], "float64"),),
}


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("edges", EDGES)
def test_beyond_what_doubles_hold(device: str, dtype: str, edges: str) -> None:
    values = (2**60 + np.random.default_rng(0).integers(0, 4000, 500)).astype(dtype)
    _agree(values, *EDGES[edges])
    if edges in ("integers", "floats"):
        field = gp.ScalarField(np.asarray(EDGES[edges][0]))
        np.testing.assert_array_equal(
            np.histogram(gp.ScalarField(values), field)[0].numpy(), np.histogram(values, *EDGES[edges])[0]
        )


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_beside_the_first_integer_that_doubles_do_not_hold(device: str, dtype: str) -> None:
    values = (2**53 + np.arange(64)).astype(dtype)
    _agree(values, 8)
    _agree(values, np.arange(2.0**53, 2.0**53 + 65, 4))
    _agree(np.array([np.iinfo(dtype).min, 5, np.iinfo(dtype).max], dtype), 4)


def _agree(values: Any, *args: Any) -> None:
    for actual, want in zip(np.histogram(gp.ScalarField(values), *args), np.histogram(values, *args), strict=True):
        np.testing.assert_array_equal(actual.numpy(), want)
