"""Sorts, and what stands at a place of the order, with NumPy's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.ops.sort import radix_sort
from tests.conformance.compare import has_double, same
from tests.conftest import is_driver
from tests.harness import fused, image, same_bits
from tests.nightly import left_to_nightly

rng = np.random.default_rng(13)
# a shape, the order of its tensors, an axis: short rows and longer ones, rows and columns, tensors, all values
CASES = [
    ((3, 70), 0, -1), ((9,), 0, 0), ((5, 33, 2), 0, 1), ((35, 2), 1, 0), ((2, 3, 4), 1, 2), ((3, 2, 2), 2, 1),
    ((2, 3, 20), 0, None), ((4, 0), 0, 1), ((1,), 0, -1),
]  # fmt: skip
DTYPES = ("float32", "int8", "uint32", "float16", "bool", "int64", "uint16", "float64", "int32")


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Many that are equal, zeros of both signs, infinities and NaN."""
    some = [0, 1, 2, 100] if np.dtype(dtype).kind in "ub" else [-100, -1, 0, 1, 2, 100]
    array = np.asarray(rng.choice(some, shape)).astype(dtype)
    if dtype[0] == "f":
        array = np.where(rng.random(shape) < 0.3, rng.choice([-0.0, np.inf, -np.inf, np.nan], shape), array).astype(
            dtype
        )
    return array


def test_columns_of_as_many_rows():
    array = values((5, 5), "float32")
    with gp.use_device("reference"):
        f = gp.ScalarField(array)
        same(np.sort(f, axis=0).numpy(), np.sort(array, axis=0))
        same(np.argsort(f, axis=-2).numpy(), np.argsort(array, axis=0, kind="stable"))


@pytest.mark.parametrize("n", range(len(CASES)))
def test_each_as_numpy(device, n):
    if device != "reference" and n:
        left_to_nightly("compilers are slow; the reference runs them all")
    shape, order, axis = CASES[n]
    dtype = DTYPES[n]
    if dtype == "float64" and not has_double():
        pytest.skip("no double")
    x = values(shape, dtype)
    f = gp.Field(x, order)
    same(np.sort(f, axis), np.sort(x, axis, kind="stable"))
    same(np.argsort(f, axis, kind="stable"), np.argsort(x, axis, kind="stable"))


def test_rows_of_some_hundred(device):
    if device == "reference":
        pytest.skip("its rows of any length are sorted alike")
    x, y = values((2, 300), "float32"), values((2, 131), "int8")
    same(np.sort(gp.ScalarField(x)), np.sort(x, kind="stable"))
    same(gp.ScalarField(y).argsort(), np.argsort(y, kind="stable"))


@pytest.mark.parametrize(("dtype", "shape"), [("float32", (19, 37)), ("int64", (9, 21))])
def test_rows_side_by_side(device, dtype, shape):
    """Several rows of a thread, of which the last one lacks some; lengths between powers of two; zeros stay in their order."""
    x = values(shape, dtype)
    actual, want = np.sort(gp.ScalarField(x)), np.sort(x, kind="stable")
    same(actual, want)
    assert np.array_equal(np.signbit(actual.numpy()[want == 0]), np.signbit(want[want == 0]))


def test_several_chunks(device, monkeypatch):
    """Chunks of a row, tiles of a chunk, and digits of odd bits; places of equal values stay in order."""
    few = {"CPU_LEAST": 64, "GPU_LEAST": 64, "LANES": 16, "EACH": 2, "MORE": 3, "CPU_BITS": 3, "GPU_BITS": 3}
    for name, small in few.items():
        monkeypatch.setattr(radix_sort, name, small)
    x = rng.integers(-100, 100, (2, 149)).astype("int8")
    same(radix_sort.by_digits(gp.ScalarField(x), False, False), np.sort(x))
    same(radix_sort.by_digits(gp.ScalarField(x), True, False), np.argsort(x, kind="stable"))


def test_long_rows(device):
    if device == "reference":
        left_to_nightly("thousands of values take long")
    x = rng.integers(0, 200, 9000).astype("u1")
    same(np.sort(gp.ScalarField(x)), np.sort(x))
    if is_driver(device):
        x = values((15000,), "float32") + np.tile(np.float32([0, 0.5, 1e-3]), 5000)
        same(np.sort(gp.ScalarField(x)), np.sort(x, kind="stable"))
        same(np.argsort(gp.ScalarField(x)), np.argsort(x, kind="stable"))


METHODS = ("linear", "hazen", "weibull", "median_unbiased", "normal_unbiased", "interpolated_inverted_cdf")
METHODS += ("lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "closest_observation")


def close(actual: gp.Field, want: Any) -> None:
    assert actual.type.array_shape == np.shape(want)
    np.testing.assert_allclose(actual.numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(device, dtype):
    """By real parts, then by imaginary ones; a NaN comes last, one of the real part behind others; equal ones stay in order."""
    if dtype == "complex128" and not has_double():
        pytest.skip("no double")
    parts = np.array([0.0, -0.0, 1, -1, 2.5, np.inf, -np.inf, np.nan, 1e-9, 3])
    local = np.random.default_rng(8)
    z = np.empty((5, 40), dtype)
    z.real, z.imag = local.choice(parts, z.shape), local.choice(parts, z.shape)
    f = gp.ScalarField(z)
    results = [(axis, np.sort(f, axis), np.argsort(f, axis)) for axis in (-1, 0, None)]
    gp.evaluate(*(field for _, *fields in results for field in fields))
    for axis, values, places in results:
        assert np.array_equal(places.numpy(), np.argsort(z, axis, kind="stable")), axis
        want = np.take_along_axis(z if axis is not None else z.ravel(), places.numpy(), -1 if axis is None else axis)
        assert values.dtype == dtype and np.array_equal(values.numpy(), want, equal_nan=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_statistics(device):
    x, few = image(3, 7, 5), image(2, 20)
    few[0, 3], few[1] = np.nan, np.nan
    f, g = gp.Field(x, 1), gp.ScalarField(few)
    close(np.nanmedian(g, axis=1), np.nanmedian(few, axis=1))
    close(np.median(g, axis=0), np.median(few, axis=0))
    close(np.percentile(f, [5, 60], axis=1), np.percentile(x, [5, 60], axis=1))
    if device == "reference":
        close(np.median(f), np.median(x))
        close(np.median(f, axis=(0, 2), keepdims=True), np.median(x, axis=(0, 2), keepdims=True))
        close(np.median(gp.ScalarField(np.arange(12)), keepdims=True), np.median(np.arange(12), keepdims=True))
        close(np.nanmedian(gp.ScalarField(np.arange(6, dtype="u1"))), 2.5)
        for method in METHODS:
            close(np.quantile(f, 0.37, axis=0, method=method), np.quantile(x, 0.37, axis=0, method=method))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_quantiles_of_numbers(device):
    """Each row has another number of values."""
    x = image(4, 21)
    x[0, :5], x[1], x[3, 20] = np.nan, np.nan, np.nan
    f = gp.ScalarField(x)
    close(np.nanquantile(f, 0.3, axis=1), np.nanquantile(x, 0.3, axis=1))
    if device == "reference":
        close(np.nanpercentile(f, [0, 37, 100], axis=0), np.nanpercentile(x, [0, 37, 100], axis=0))
        close(np.nanquantile(f, 0.4, keepdims=True), np.nanquantile(x, 0.4, keepdims=True))
        close(np.nanquantile(gp.ScalarField(np.arange(6)), 0.3), np.nanquantile(np.arange(6), 0.3))
        for method in METHODS:
            close(np.nanquantile(f, 0.37, axis=1, method=method), np.nanquantile(x, 0.37, axis=1, method=method))


@pytest.mark.parametrize("method", ["lower", "higher", "nearest"])
def test_quantiles_that_are_values_of_integers(method):
    for x in (
        np.int32([2**24 + 1, 2**24 + 3, 2**30 + 1, 5]),
        np.uint8([1, 200, 3]),
        np.int64([2**62 + 1, 7, -(2**62)]),
    ):
        same(np.quantile(gp.ScalarField(x), 0.4, method=method), np.asarray(np.quantile(x, 0.4, method=method)))


@pytest.mark.parametrize("name", ["nanargmin", "nanargmax"])
def test_places_of_numbers(name):
    x = np.array([[np.nan, 3, 1, 1], [5, np.nan, np.inf, -np.inf]], "f")
    same(getattr(np, name)(gp.ScalarField(x), axis=1), getattr(np, name)(x, axis=1))
    same(getattr(np, name)(gp.ScalarField(x)), np.asarray(getattr(np, name)(x)))


def test_in_graphs_and_pipelines(device):
    """Operators before ranks are computed in their kernel."""
    x = image(4, 20)
    _, results = fused(lambda: {"rows": np.sort(gp.ScalarField(x) * 2, axis=1)})
    same_bits(results["rows"], np.sort(x * 2, axis=1))
    piped = gp.pipeline(lambda a: np.median(gp.ScalarField(a), axis=1))
    np.testing.assert_allclose(piped(x), np.median(x, axis=1), rtol=1e-6)
