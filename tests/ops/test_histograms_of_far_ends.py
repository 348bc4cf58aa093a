"""numpy.histogram between ends whose distance, or its inverse, is beyond the greatest number of the dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp

Ends = tuple[float, float]  # in units of the greatest number, or of the least normal one
FAR: list[Ends] = [(-0.95, 0.95), (-1, 1), (-0.95, 0.2), (-0.1, 0.95), (-0.4, 0.45), (0, 1), (0.5, 1)]
NEAR: list[Ends] = [(0, 1), (0, 64), (-8, 8), (1, 9)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 1000])
def test_between_the_values_that_are_farthest_apart(device: str, dtype: str, count: int) -> None:
    """NumPy, which has no such bins, has those of halves."""
    for ends in FAR:
        values = _values(dtype, ends, np.finfo(dtype).max)
        with np.errstate(over="ignore"):  # of the edge that NumPy replaces by the end
            _, edges = np.histogram(values * values.dtype.type(0.5), count)
        edges = np.concatenate([edges[:-1] * 2, values.max(keepdims=True)])
        _agree(values, edges, count)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_between_far_ends_that_are_known(device: str, dtype: str) -> None:
    largest = np.finfo(dtype).max
    for low, high in FAR:
        values, ends = _values(dtype, (low, high), largest), (0.9 * low * float(largest), 0.9 * high * float(largest))
        if dtype == "float64" and not np.isfinite(ends[1] - ends[0]):
            with pytest.raises(
                gp.SemanticError, match=r"histogram: the ends of `range=`, -\S+ and \S+, are too far apart for float64"
            ):
                np.histogram(gp.ScalarField(values), 7, ends)
        else:
            _agree(values, np.histogram_bin_edges(values, 7, ends), 7, ends)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("with_ends", [False, True])
def test_between_ends_beside_0(device: str, dtype: str, with_ends: bool) -> None:
    for ends in NEAR:
        values = _values(dtype, ends, np.finfo(dtype).tiny)
        args = (7, (float(values.min()), float(values.max()))) if with_ends else (7,)
        _agree(values, np.histogram_bin_edges(values, *args), *args)


def _values(dtype: str, ends: Ends, unit: Any) -> Any:
    """A thousand, both ends among them."""
    shares = np.concatenate([ends, np.random.default_rng(0).uniform(*ends, 998)])
    return (shares.astype(dtype) * np.dtype(dtype).type(unit)).astype(dtype)


def _agree(values: Any, edges: Any, *args: Any) -> None:
    inside = values[(values >= edges[0]) & (values <= edges[-1])]
    bins = np.minimum(np.searchsorted(edges, inside, "right") - 1, edges.size - 2)
    result: Any = np.histogram(gp.ScalarField(values), *args)
    counts, between = result
    np.testing.assert_array_equal(between.numpy(), edges)
    np.testing.assert_array_equal(counts.numpy(), np.bincount(bins, minlength=edges.size - 1))
