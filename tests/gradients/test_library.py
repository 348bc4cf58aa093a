"""Derivatives of reductions, scans and sorts, in both modes. Expected values are central differences of NumPy's own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop.dsl import *
from gpuop.testing import check_grads
from tests.gradients.differences import check

rng = np.random.default_rng(17)
STEP = 1e-6

FIRST_ROWS = np.arange(15).reshape(3, 5) < 9
CASES: dict[str, Callable[[Any], Any]] = {
    "sum of all": lambda x: np.sum(x),
    "mean": lambda x: np.mean(x * x, axis=0),
    "max": lambda x: np.max(x, axis=0),
    "max of all": lambda x: np.max(x),
    "min": lambda x: np.min(x, axis=1),
    "nanmax": lambda x: np.nanmax(np.where(x > 0.9003, np.nan, x), axis=1),
    "nanvar": lambda x: np.nanvar(np.where(x > 0.9003, np.nan, x), axis=1),
    "nanstd of all": lambda x: np.nanstd(np.where(x > 0.9003, np.nan, x)),
    "var of some": lambda x: np.var(x, axis=0, where=FIRST_ROWS if x.shape == (3, 5) else True),
    "running maximum": lambda x: np.maximum.accumulate(x, axis=1),
    "running minimum": lambda x: np.minimum.accumulate(x, axis=0),
    "ptp": lambda x: np.ptp(x, axis=0),
    "prod": lambda x: np.prod(x, axis=0),
    "prod of all": lambda x: np.prod(x),
    "var": lambda x: np.var(x, axis=1),
    "std of all": lambda x: np.std(x),
    "norm": lambda x: np.linalg.norm(x, axis=1),
    "cumsum": lambda x: np.cumsum(x * x, axis=1),
    "cumsum of all": lambda x: np.cumsum(x),
    "cumprod": lambda x: np.cumprod(x, axis=0),
    "sort": lambda x: np.sort(x, axis=1) ** 2,
    "sort of columns": lambda x: np.sort(x * x, axis=0),
    "median": lambda x: np.median(x, axis=1),
    "percentile": lambda x: np.percentile(x, 30, axis=1),
}


@pytest.mark.parametrize("shape", [(3, 5), (4, 40)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_functions(device: str, name: str, shape: tuple[int, int]) -> None:
    f = CASES[name]
    a = rng.permutation(np.linspace(0.3, 1.2, int(np.prod(shape)))).reshape(shape)  # nothing is close to equal
    check(f, f, a)
    tangent = rng.standard_normal(shape)
    slope = gp.jvp(f, (gp.Field(a),), (gp.Field(tangent),))[1].numpy()
    expected = (f(a + STEP * tangent) - f(a - STEP * tangent)) / (2 * STEP)
    np.testing.assert_allclose(slope, expected, 1e-6, 1e-7)


@pytest.mark.parametrize("name", ["max", "prod", "cumprod", "sort"])
def test_second_order(device: str, name: str) -> None:
    check_grads(CASES[name], (gp.Field(rng.permutation(np.linspace(0.3, 1.2, 6)).reshape(2, 3)),), order=2)


def gradient(f: Callable[[Any], Any], values: Any) -> Any:
    return gp.grad(lambda x: f(x).sum())(gp.ScalarField(np.array(values, np.float64))).numpy().tolist()


def test_equal_extremes_share(device: str) -> None:
    """As in JAX."""
    assert gradient(np.max, [1, 3, 3, 2]) == [0, 0.5, 0.5, 0]
    assert gradient(np.min, [1, 1, 1, 1]) == [0.25, 0.25, 0.25, 0.25]
    x = gp.ScalarField(np.array([1.0, 3, 3]))
    assert gp.jvp(np.max, (x,), (gp.ScalarField(np.array([8.0, 1, 3])),))[1].numpy() == 2


def test_products_with_zeros(device: str) -> None:
    assert gradient(np.prod, [2, 0, 3, 4]) == [0, 24, 0, 0]
    assert gradient(np.prod, [0, 0, 3]) == [0, 0, 0]
    assert gradient(np.cumprod, [2, 0, 3]) == [1, 8, 0]


def test_equal_values_are_sorted_in_their_order(device: str) -> None:
    def weighed(x: Any) -> Any:
        return np.sort(x) * gp.ScalarField(np.array([1.0, 2, 3, 4]))

    assert gradient(weighed, [5, 1, 5, 1]) == [3, 1, 4, 2]


LABELS = np.array([2, 0, 1, 2, 2, 5, 0], np.int32)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (
            np.bincount(LABELS if isinstance(x, np.ndarray) else gp.ScalarField(LABELS), weights=x, minlength=6) ** 2
        ),
        lambda x: np.histogram(
            LABELS if isinstance(x, np.ndarray) else gp.ScalarField(LABELS), 3, (0, 3), weights=x * x
        )[0],
    ],
)
def test_weights_of_bins(device: str, f: Callable[[Any], Any]) -> None:
    """Of a value in no bin the weight counts for nothing."""
    x = rng.random(7)
    check(f, f, x)
    check_grads(f, (gp.Field(x),), modes=("fwd",))


REGIONS = np.array([[1, 1, 0, 3], [3, 1, 2, 3]], np.int32)


@pytest.mark.parametrize("name", ["minimum", "maximum", "sum_labels", "mean", "variance", "median"])
@pytest.mark.parametrize("index", [(1, 3, 2), (3, 1), 1, None], ids=str)
def test_measurements_of_labels(device: str, name: str, index: Any) -> None:
    x = rng.permutation(np.linspace(0.3, 1.2, 8)).reshape(2, 4)
    measure, reference = getattr(gp.ndimage, name), getattr(scipy.ndimage, name)
    labels = gp.ScalarField(REGIONS)
    check(lambda x: measure(x, labels, index), lambda x: np.asarray(reference(x, REGIONS, index)), x)
    check_grads(lambda x: measure(x, labels, index), (gp.Field(x),), modes=("fwd",))


def test_equal_extremes_of_a_label_share(device: str) -> None:
    x = gp.ScalarField(np.array([1.0, 3, 3, 3, 2]))
    labels = gp.ScalarField(np.array([1, 1, 1, 2, 2], np.int32))
    slope = gp.grad(lambda x: gp.ndimage.maximum(x, labels, (1, 2, 7)).sum())(x)
    assert slope.numpy().tolist() == [0, 0.5, 0.5, 1, 0]


OF_FOUR_AXES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: np.sum(x * x, axis=(0, 2)),
    "max": lambda x: np.max(x, axis=1),
    "prod": lambda x: np.prod(x, axis=(1, 3)),
    "cumsum": lambda x: np.cumsum(x * x, axis=1),
    "cumprod": lambda x: np.cumprod(x, axis=0),
    "sort": lambda x: np.sort(x, axis=1),
    "remainder": lambda x: x % 0.7,
    "inv": lambda x: np.linalg.inv(x + 2 * np.eye(2)),
    "product": lambda x: x @ x.swapaxes(-1, -2),
    "median": lambda x: np.median(x, axis=1),
    "mean and variance": lambda x: (x - x.mean(axis=(0, 1), keepdims=True)) / (x.var(axis=(0, 1), keepdims=True) + 1),
}


@pytest.mark.parametrize("name", OF_FOUR_AXES)
def test_fields_of_four_axes(name: str) -> None:
    """Their first axes are one in memory; rules see them apart."""
    f, a = OF_FOUR_AXES[name], rng.permutation(np.linspace(0.3, 1.2, 24)).reshape(2, 3, 2, 2)
    with gp.use_device("reference"):
        check(f, f, a)
        tangent = rng.standard_normal(a.shape)
        slope = gp.jvp(f, (gp.Field(a),), (gp.Field(tangent),))[1].numpy()
    expected = (f(a + STEP * tangent) - f(a - STEP * tangent)) / (2 * STEP)
    np.testing.assert_allclose(slope, expected, 1e-6, 1e-7)
