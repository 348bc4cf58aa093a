"""Quantiles of rows with infinities, NaN and numbers whose differences overflow are NumPy's: NaN where infinity × 0 is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp

INF, NAN = np.inf, np.nan
METHODS = (
    "linear", "hazen", "weibull", "median_unbiased", "normal_unbiased", "interpolated_inverted_cdf", "lower", "higher",
    "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
)  # fmt: skip
SHARES = [0.0, 0.25, 0.5, 0.7, 1.0]
ROWS = {
    1: [[INF], [-INF], [5.5]],
    2: [[1, INF], [-INF, INF], [-INF, 2], [INF, INF], [3e38, -3e38], [NAN, INF], [1, 2]],
    5: [[1, 2, 3, INF, INF], [-INF, -INF, 5, INF, 4], [NAN, 1, INF, -INF, 2], [3e38, -3e38, 0, 1, 3e38], [NAN, -INF, 3, NAN, 1]],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("count", ROWS)
@pytest.mark.parametrize("method", METHODS)
def test_quantiles(device: str, method: str, count: int) -> None:
    rows = np.array(ROWS[count], "float32")
    for name in ("quantile", "nanquantile"):
        _agree(name, rows, SHARES, method)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_percentiles_of_doubles(device: str) -> None:
    for name in ("percentile", "nanpercentile"):
        _agree(name, np.array(ROWS[5]), [0.0, 25.0, 100.0], "linear")


def _agree(name: str, rows: Any, shares: list[float], method: str) -> None:
    function = getattr(np, name)
    actual = function(gp.ScalarField(rows), shares, axis=1, method=method).numpy()
    np.testing.assert_allclose(
        actual, function(rows, shares, axis=1, method=method), rtol=1e-5, err_msg=f"{name} {rows}"
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whole_shares_and_medians_take_values(device: str) -> None:
    for rows in (np.array(of, "float32") for of in ROWS.values()):
        field = gp.ScalarField(rows)
        for share in ([0, 1], 0, 1, 0.0, 1.0):  # integers take values, floats may give NaN
            np.testing.assert_array_equal(np.quantile(field, share, axis=1).numpy(), np.quantile(rows, share, axis=1))
        for name in ("median", "nanmedian"):
            function = getattr(np, name)
            np.testing.assert_array_equal(function(field, axis=1).numpy(), function(rows, axis=1))
