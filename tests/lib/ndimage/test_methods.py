"""Algorithms that `method=` chooses, each beside SciPy: values, edges, what stays exact, and what `explain` says of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage

IMAGE = np.random.default_rng(7).random((23, 40)) * 200
WINDOWS = [  # the size, the mode, and the origin
    (5, "reflect", 0),
    (16, "mirror", -2),
    (28, "nearest", 0),
    (31, "constant", 3),
    (101, "wrap", 7),
]


@pytest.mark.parametrize(("size", "mode", "origin"), WINDOWS)
def test_nested_windows(size, mode, origin):
    options = {"mode": mode, "cval": 3, "origin": origin}
    with gp.use_device("reference"):
        for dtype, name in (
            ("uint8", "uniform_filter"),
            ("int16", "uniform_filter"),
            ("float64", "uniform_filter"),
            ("int16", "maximum_filter"),
            ("float64", "minimum_filter"),
        ):
            image = (IMAGE - 100 * (dtype == "int16")).astype(dtype)
            result = getattr(ndimage, name)(image, size, method="nested", **options)
            np.testing.assert_allclose(result, getattr(scipy.ndimage, name)(image, size, **options), rtol=1e-13)


def test_nested_windows_that_end_at_their_own_points():
    """Nothing is before the field, and `cval` is no value of its dtype."""
    image, options = IMAGE.astype("uint8"), {"mode": "constant", "cval": 2.5, "origin": -15, "output": "float64"}
    with gp.use_device("reference"):
        result = ndimage.uniform_filter1d(image, 31, method="nested", **options)
    np.testing.assert_allclose(result, scipy.ndimage.uniform_filter1d(image, 31, **options), rtol=1e-13)


def test_nested_windows_on_devices(device):
    image = IMAGE.astype("uint8")
    mean = ndimage.uniform_filter1d(gp.ScalarField(image), 16, 0, method="nested")
    result = ndimage.maximum_filter1d(mean, 17, method="nested")
    expected = scipy.ndimage.maximum_filter1d(scipy.ndimage.uniform_filter1d(image, 16, 0), 17)
    assert np.array_equal(result.numpy(), expected)


def test_sums_of_floats_are_exact_to_the_last_places_and_infinities_stay_where_they_are():
    image = (IMAGE - 1e4).astype("float32")
    image[3, 20] = np.inf
    reached = np.isinf(scipy.ndimage.maximum_filter(image, 33))
    with gp.use_device("reference"):
        result = ndimage.uniform_filter(image, 33, method="nested")
    assert np.array_equal(np.isinf(result), reached)
    image[3, 20] = 0
    expected = scipy.ndimage.uniform_filter(image.astype("float64"), 33)
    np.testing.assert_allclose(result[~reached], expected[~reached], rtol=3e-7)


def test_explain_says_how():
    image = gp.ScalarField(IMAGE.astype("uint8"))

    def said(**options):
        with gp.ComputeGraph(device="reference") as graph:
            graph.probe(ndimage.grey_dilation(image, **options), "out")
        return graph.explain()

    assert "maximum_filter1d_nested" in said(size=24)
    assert "nested" not in said(size=23)
    assert "nested" not in said(size=24, method="direct")
    assert "maximum_filter1d_of_3" in said(size=15, method="nested")


@pytest.mark.parametrize("sigma", [0.7, 4, (1.5, 60)])
@pytest.mark.parametrize("mode", ["reflect", "constant"])
def test_recursive_gaussians(sigma, mode):
    with gp.use_device("reference"):
        result = ndimage.gaussian_filter(IMAGE, sigma, mode=mode, cval=90, method="recursive")
    expected = scipy.ndimage.gaussian_filter(IMAGE, sigma, mode=mode, cval=90, truncate=9)
    np.testing.assert_allclose(result, expected, atol=5e-6 * np.ptp(IMAGE))


def test_recursive_gaussians_on_devices(device):
    image = IMAGE.astype("float32")
    result = ndimage.gaussian_filter1d(gp.ScalarField(image), 3, 0, method="recursive").numpy()
    np.testing.assert_allclose(result, scipy.ndimage.gaussian_filter1d(image, 3, 0, truncate=9), atol=1e-3)


def test_recursive_gaussians_in_chunks_and_of_what_is_constant():
    line = np.random.default_rng(8).random(1100)
    with gp.use_device("reference"):
        result = ndimage.gaussian_filter(line, 5.0, method="recursive", mode="wrap")
        assert (ndimage.gaussian_filter(np.full((9, 300), 173, "uint8"), 2.2, method="recursive") == 173).all()
        image = IMAGE.reshape(23, 20, 2)
        colours = ndimage.gaussian_filter(gp.VectorField(image), 2.0, method="recursive").numpy()
    np.testing.assert_allclose(result, scipy.ndimage.gaussian_filter(line, 5.0, mode="wrap", truncate=9), atol=5e-6)
    expected = scipy.ndimage.gaussian_filter(image, 2.0, axes=(0, 1), truncate=9)
    np.testing.assert_allclose(colours, expected, atol=1e-3)


RANKS = [  # the dtype, the rank, and the window
    ("uint8", 40, {"size": 9}),
    ("int16", 5, {"size": (3, 5), "mode": "constant", "cval": -30}),
    ("float32", 7, {"footprint": IMAGE[:4, :5] > 60, "mode": "constant", "cval": 2.5}),
    ("float64", 20, {"size": (4, 9), "mode": "wrap"}),
    ("float16", 40, {"size": (5, 13), "mode": "mirror"}),
    ("bool", 100, {"footprint": IMAGE[:11, :17] > 60}),
]


@pytest.mark.parametrize(("dtype", "rank", "options"), RANKS)
def test_ranks_by_counting(dtype, rank, options):
    image = IMAGE > 120 if dtype == "bool" else (IMAGE - 100 * (dtype != "uint8")).astype(dtype)
    with gp.use_device("reference"):
        result = ndimage.rank_filter(image, rank, method="counts", **options)
    reference = image.astype("float32") if dtype == "float16" else image
    assert np.array_equal(result, scipy.ndimage.rank_filter(reference, rank, **options))
    assert result.dtype == image.dtype


def test_ranks_by_counting_on_devices(device):
    image = IMAGE.astype("uint8")
    field = gp.ScalarField(image)
    result = ndimage.median_filter(field, (3, 4), mode="nearest", method="counts").numpy()
    assert np.array_equal(result, scipy.ndimage.median_filter(image, (3, 4), mode="nearest"))


STEPS = np.outer(np.arange(-3, 5), np.arange(7, 0, -1))
WEIGHTS = [  # the weights, how they are taken by default, and what else is given
    (STEPS, "separable", {"mode": "constant", "cval": 3, "origin": (1, -1)}),
    (STEPS + np.eye(8, 7), "direct", {"mode": "wrap"}),
    (np.multiply.outer(STEPS, [2])[..., 0] * 1.0, "separable", {"mode": "mirror"}),
    (np.where(STEPS % 2, 0, STEPS), "direct", {}),
    (np.random.default_rng(9).random((12, 13)), "direct", {"mode": "nearest"}),
]


@pytest.mark.parametrize(("weights", "method", "options"), WEIGHTS)
def test_weights_along_each_axis_and_large_windows(weights, method, options):
    with gp.use_device("reference"):
        for dtype in ("int16", "float64"):
            image = (IMAGE - 90).astype(dtype)
            expected = scipy.ndimage.convolve(image, weights, output="int32" if dtype == "int16" else None, **options)
            for chosen in (None, method):
                result = ndimage.convolve(image, weights, output=expected.dtype, method=chosen, **options)
                np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-9)
        with gp.ComputeGraph(device="reference") as graph:
            graph.probe(ndimage.convolve(gp.ScalarField(IMAGE), weights, **options), "out")
    assert ("2 operators" in graph.explain()) == (method == "separable")


def test_large_windows_on_devices(device):
    image = IMAGE.astype("float32")
    result = ndimage.correlate(gp.ScalarField(image), WEIGHTS[4][0]).numpy()
    np.testing.assert_allclose(result, scipy.ndimage.correlate(image, WEIGHTS[4][0]), rtol=1e-5)
