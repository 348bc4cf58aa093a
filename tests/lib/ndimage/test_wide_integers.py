"""Integers of 64 bits in gpuop.ndimage: moved and chosen ones keep all bits, sums with whole weights are exact modulo 2^64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.engine.dump import source

WIDE = ("int64", "uint64")
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
# Functions of a module and an image whose results are some of its values: so they are the same of the values' ranks.
CHOICES: dict[str, Callable[[Any, Any], Any]] = {
    "shift": lambda m, a: m.shift(a, (1.2, -2), order=0, mode="nearest"),
    "zoom": lambda m, a: m.zoom(a, 1.7, order=0, mode="nearest"),
    "rotate": lambda m, a: m.rotate(a, 30, order=0, mode="reflect"),
    "map_coordinates": lambda m, a: m.map_coordinates(a, [[0, 1.2, 3.4], [5, 6.7, 8]], order=0, mode="mirror"),
    "affine_transform": lambda m, a: m.affine_transform(a, [[0.5, 0.2], [0, 1]], order=0, mode="nearest"),
    "affine_transform of a diagonal": lambda m, a: m.affine_transform(a, [0.5, 1.2], order=0, mode="wrap"),
    "geometric_transform": lambda m, a: m.geometric_transform(a, lambda p: (p[0] * 0.5, p[1]), order=0, mode="nearest"),
    "minimum_filter": lambda m, a: m.minimum_filter(a, 3),
    "maximum_filter1d": lambda m, a: m.maximum_filter1d(a, 5),
    "rank_filter": lambda m, a: m.rank_filter(a, 2, size=3),
    "median_filter": lambda m, a: m.median_filter(a, 5, mode="wrap"),
    "percentile_filter": lambda m, a: m.percentile_filter(a, 30, size=9, mode="mirror"),
    "grey_opening": lambda m, a: m.grey_opening(a, (3, 2)),
    "grey_dilation of a flat structure": lambda m, a: m.grey_dilation(a, structure=np.zeros((3, 3))),
    "grey_closing": lambda m, a: m.grey_closing(a, footprint=CROSS),
    "generic_filter": lambda m, a: m.generic_filter(a, np.max, 3),
}


def image(dtype: str, shape: tuple[int, ...] = (9, 11)) -> Any:
    ends = np.iinfo(dtype)
    return np.random.default_rng(3).integers(ends.min, ends.max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("dtype", WIDE)
def test_values_that_are_moved_or_chosen_are_kept(name: str, dtype: str, device: str) -> None:
    values, ranks = np.unique(array := image(dtype), return_inverse=True)
    expected = values[CHOICES[name](scipy.ndimage, ranks.reshape(array.shape).astype(np.int32))]
    result = CHOICES[name](ndimage, gp.ScalarField(array)).numpy()
    assert result.dtype == array.dtype and np.array_equal(result, expected)


@pytest.mark.parametrize("dtype", WIDE)
def test_what_is_outside(dtype: str, device: str) -> None:
    array = image(dtype)
    result = ndimage.shift(gp.ScalarField(array), (1, -2), order=0, cval=7.0).numpy()
    assert np.array_equal(result[1:, :-2], array[:-1, 2:])
    assert np.all(result[0] == 7) and np.all(result[:, -2:] == 7)


def summed(image: Any, weights: Any, mode: str, cval: int, dtype: str) -> Any:
    """The sums in Python's integers, in the last bits of a dtype."""
    places = np.arange(image.size).reshape(image.shape)
    around = [(n // 2, n - 1 - n // 2) for n in weights.shape]
    options = {"constant_values": -1} if mode == "constant" else {}
    padded = np.pad(places, around, {"reflect": "symmetric", "nearest": "edge"}.get(mode, mode), **options)
    values = np.append(image.ravel().astype(object), [cval])[padded]
    total = np.zeros(image.shape, object)
    for at, weight in np.ndenumerate(weights):
        part = tuple(slice(i, i + n) for i, n in zip(at, image.shape, strict=True))
        total = total + values[part] * int(weight)
    bits, low = 8 * np.dtype(dtype).itemsize, int(np.iinfo(dtype).min)
    return np.array([(value - low) % 2**bits + low for value in total.ravel()], dtype).reshape(image.shape)


WEIGHTS = {
    "one": np.array([[1]]),
    "few": np.array([[1, 2, 3], [4, -5, 6], [7, 8, -9]]),
    "even": np.array([[1, 1], [1, -1]]),
    "many": np.random.default_rng(1).integers(-3, 50, (11, 13)),
    "product": np.outer([1, 2, 1, 3, 1, 1, 2], [1, -2, 1, 2, 3, 1, 1]),
}


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("dtype", [*WIDE, "int32", "uint32", "int16", "uint16", "int8", "uint8"])
def test_sums_with_whole_weights(name: str, dtype: str, device: str) -> None:
    array, weights = image(dtype, (12, 13)), WEIGHTS[name]
    field = gp.ScalarField(array)
    for mode, cval, output in (
        ("reflect", 0, None),
        ("constant", 5, "int64"),
        ("wrap", 0, "uint64"),
        ("nearest", 0, "int16"),
    ):
        expected = summed(array, weights, mode, cval, output or dtype)
        result = ndimage.correlate(field, weights, output, mode, cval).numpy()
        assert result.dtype == expected.dtype and np.array_equal(result, expected), mode
    if name == "few":
        turned = ndimage.convolve(field, weights[::-1, ::-1]).numpy()
        assert np.array_equal(turned, summed(array, weights, "reflect", 0, dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_sums_about_the_ends_of_int32(dtype: str, device: str) -> None:
    """Of the greatest values: sums of int32 have a bit to spare or none, or other sums are taken."""
    array, ends = image(dtype, (12, 13)), np.iinfo(dtype)
    array[:6], array[6:9] = ends.max, ends.min
    greatest = max(-int(ends.min), int(ends.max))
    for total in (2**31 // greatest - 1, 2**31 // greatest + 1, 2**31):
        weights = np.array([[total // 2, 0], [total // 4, total - total // 2 - total // 4]])
        for signs in (weights, -weights, weights * [[1, 1], [-1, 1]]):
            expected = summed(array, signs, "reflect", 0, "int64")
            result = ndimage.correlate(gp.ScalarField(array), signs, "int64").numpy()
            assert np.array_equal(result, expected), (total, signs)


@pytest.mark.parametrize("method", [None, "separable"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_whole_products_of_weights_that_are_not_whole(dtype: str, method: Any) -> None:
    """Of windows that are filtered axis by axis, with weights of each axis that are parts of whole ones."""
    array = np.random.default_rng(5).integers(0, 200, (12, 13)).astype(dtype)
    for rows, columns in (([1, 2, 1], [2, 4, 2]), ([2, 3, 5], [3, 2, 6]), ([1, 3, 1], [1, 0, 2])):
        weights = np.outer(rows, columns)
        with gp.use_device("reference"):
            result = ndimage.correlate(array, weights, "int32", method=method)
        expected = scipy.ndimage.correlate(array, weights, "int32")
        assert np.abs(result - expected).max() <= (method is not None), "truncated sums of double may be one less"


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_sums_of_short_integers_have_no_doubles(dtype: str) -> None:
    calls: dict[str, Callable[[Any], Any]] = {
        "sobel": lambda f: ndimage.sobel(f, 0),
        "prewitt": lambda f: ndimage.prewitt(f, 1, mode="constant"),
        "laplace": lambda f: ndimage.laplace(f),
        "correlate": lambda f: ndimage.correlate(f, WEIGHTS["few"]),
        "product": lambda f: ndimage.correlate(f, WEIGHTS["product"], mode="constant", cval=3),
        "convolve1d": lambda f: ndimage.convolve1d(f, [1, 2, -3, 4], output="int32"),
    }
    for name, call in calls.items():
        field = gp.ScalarField(image(dtype, (12, 13)))
        assert "double" not in source([call(field)], "opencl"), name


@pytest.mark.parametrize("dtype", WIDE)
def test_derivatives(dtype: str, device: str) -> None:
    array = image(dtype, (12, 13))
    field = gp.ScalarField(array)
    across = {"sobel": np.outer([-1, 0, 1], [1, 2, 1]), "prewitt": np.outer([-1, 0, 1], [1, 1, 1])}
    for name, weights in across.items():
        result = getattr(ndimage, name)(field, 0, mode="nearest").numpy()
        assert np.array_equal(result, summed(array, weights, "nearest", 0, dtype)), name
    weights = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]])
    assert np.array_equal(ndimage.laplace(field).numpy(), summed(array, weights, "reflect", 0, dtype))


@pytest.mark.parametrize("dtype", ["uint8", "uint64", "float32", "float64"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_negative_results_wrap(dtype: str, device: str) -> None:
    array = np.random.default_rng(2).integers(0, 200, (12, 13)).astype(dtype)
    calls: dict[str, Callable[[Any, Any], Any]] = {
        "gaussian_laplace": lambda m, a: m.gaussian_laplace(a, 1.0, output="uint64"),
        "gaussian_filter": lambda m, a: m.gaussian_filter(a, 1.0, order=1, output="uint64"),
        "generic_filter": lambda m, a: m.generic_filter(a, lambda v: v[0] - v[3], 3, output="uint64"),
        "correlate": lambda m, a: m.correlate(a, [[-0.5, 0.2]], output="uint64"),
        "laplace": lambda m, a: m.laplace(a, output="uint64"),
        "spline_filter1d": lambda m, a: m.spline_filter1d(a, 3, output="uint64"),
    }
    for name, call in calls.items():
        result = call(ndimage, gp.ScalarField(array)).numpy()
        assert np.array_equal(result, call(scipy.ndimage, array)), name
