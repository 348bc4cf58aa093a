"""Quantiles by each method of NumPy: values, shapes and kinds of dtypes for all dtypes, and shares that meet a place exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp

METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "linear",
    "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip
DTYPES = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64",
)  # fmt: skip
SELECTING = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
SHARES: tuple[Any, ...] = (0.3, 0.25, 2 / 11, 1, [0.1, 0.5, 1.0], [0, 1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
def test_dtypes(name: str, method: str) -> None:
    """Selected values keep their dtype, others are floats; of bools NumPy interpolates nothing."""
    function, scale = getattr(np, name), 100 if "percentile" in name else 1
    random = np.random.default_rng(0).random(11)
    with gp.use_device("reference"):
        for dtype in DTYPES:
            x = np.round(random * (1 if dtype == "bool" else 100)).astype(dtype)
            for share in SHARES:
                if dtype == "bool" and method not in SELECTING:
                    continue
                q = (np.array(share) * scale).tolist()
                actual, want = function(gp.ScalarField(x), q, method=method).numpy(), function(x, q, method=method)
                assert (actual.shape, actual.dtype.kind) == (np.shape(want), want.dtype.kind), (dtype, share)
                assert method not in SELECTING or actual.dtype == want.dtype, (dtype, share)
                np.testing.assert_allclose(
                    actual.astype(float), want.astype(float), rtol=1e-3, err_msg=f"{dtype} {share}"
                )


@pytest.mark.parametrize("method", METHODS)
def test_steps(device: str, method: str) -> None:
    """The values are the same if n q is a whole number, or is so but for rounding."""
    rows = np.sort(np.random.default_rng(1).random((2, 20)).astype("float32"))
    rows[1, 13:] = np.nan
    shares = [n / 20 for n in range(21)] + [n / 13 for n in range(1, 13)]
    for name in ("quantile", "nanquantile"):
        function = getattr(np, name)
        actual = function(gp.ScalarField(rows), shares, axis=1, method=method).numpy()
        np.testing.assert_allclose(actual, function(rows, shares, axis=1, method=method), rtol=1e-5, atol=1e-6)
