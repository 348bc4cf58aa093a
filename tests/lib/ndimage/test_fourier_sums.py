"""Dense weights by Fourier transforms beside SciPy's sums: values, edges, what stays exact, who chooses, and what is told."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.lib.fft.kernels.transform_node import fourier
from gpuop.lib.ndimage.filters import correlation

RANDOM = np.random.default_rng(11)
MODES = ("reflect", "mirror", "nearest", "wrap", "constant")
WINDOWS = [  # the shape of an image, of the weights, and the origin
    ((37,), (12,), 3),
    ((20, 31), (8, 7), (1, -1)),
    ((20, 31), (25, 50), (-12, 24)),
    ((9, 11, 13), (3, 4, 5), (0, 1, -2)),
    ((6, 7), (1, 5), 0),
]
FAR = {
    "float32": 5e-7,
    "float64": 1e-15,
    "complex64": 5e-7,
    "complex128": 1e-15,
}  # of the greatest value, times the sum of weights


def image_of(shape: tuple[int, ...], dtype: str) -> Any:
    image = RANDOM.random(shape) * 200 - (0 if dtype == "uint8" else 100)
    return (image + 1j * RANDOM.random(shape) if dtype.startswith("complex") else image).astype(dtype)


def close(result: Any, expected: Any, image: Any, weights: Any) -> None:
    assert result.dtype == expected.dtype and result.shape == expected.shape
    largest = max(float(np.abs(image).max()), 3) * np.abs(weights).sum()
    np.testing.assert_allclose(result, expected, rtol=0, atol=FAR.get(str(result.dtype), 0) * largest)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("shape", "window", "origin"), WINDOWS)
def test_floats(shape, window, origin, mode):
    with gp.use_device("reference"):
        for dtype in FAR:
            image, weights = image_of(shape, dtype), RANDOM.standard_normal(window)
            options = {"mode": mode, "cval": 2.5, "origin": origin}
            for name in ("convolve", "correlate"):
                result = getattr(ndimage, name)(image, weights, method="fft", **options)
                close(result, getattr(scipy.ndimage, name)(image, weights, **options), image, weights)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16"])
def test_integers_are_equal(dtype, mode):
    with gp.use_device("reference"):
        for shape, window, origin in WINDOWS:
            image, weights = image_of(shape, dtype), RANDOM.integers(-9, 9, window)
            options = {"mode": mode, "cval": 1, "origin": origin}
            for output in (None, "int64"):
                result = ndimage.convolve(image, weights, output, method="fft", **options)
                assert np.array_equal(result, scipy.ndimage.convolve(image, weights, output, **options))


def test_the_largest_integers_are_equal():
    image = np.where(RANDOM.random((90, 80)) < 0.5, -32768, 32767).astype("int16")
    weights = RANDOM.integers(-40, 41, (21, 23))
    with gp.use_device("reference"):
        result = ndimage.correlate(image, weights, "int64", method="fft")
    assert np.array_equal(result, scipy.ndimage.correlate(image, weights, "int64"))


def test_on_devices(device):
    weights, whole = RANDOM.standard_normal((15, 14)), RANDOM.integers(-9, 9, (15, 14))
    colours = image_of((40, 30, 3), "float32")
    result = ndimage.convolve(gp.VectorField(colours) * 2, weights, mode="mirror", method="fft") + 1
    expected = scipy.ndimage.convolve(colours * 2, weights, mode="mirror", axes=(0, 1)) + 1
    close(result.numpy(), expected, 2 * colours, weights)
    numbers = image_of((40, 30), "uint8")
    result = ndimage.convolve(gp.ScalarField(numbers), whole, "int32", method="fft").numpy()
    assert np.array_equal(result, scipy.ndimage.convolve(numbers, whole, "int32"))


def test_by_passes(monkeypatch, device):
    """As on devices without a library."""
    monkeypatch.setattr(correlation, "fourier", lambda *args: fourier(*args[:-1], "passes"))
    image, weights = image_of((41, 50), "float32"), RANDOM.standard_normal((9, 12))
    result = ndimage.correlate(gp.ScalarField(image), weights, method="fft").numpy()
    close(result, scipy.ndimage.correlate(image, weights), image, weights)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "complex128", "int8"])
def test_complex_weights(dtype):
    image = image_of((12, 19), dtype)
    weights = RANDOM.standard_normal((5, 6)) + 1j * RANDOM.standard_normal((5, 6))
    with gp.use_device("reference"):
        result = ndimage.convolve(image, weights, mode="constant", cval=1.5, method="fft")
    expected = scipy.ndimage.convolve(image, weights, mode="constant", cval=1.5)
    close(result, expected, image, weights)


@pytest.mark.parametrize("name", ["correlate1d", "convolve1d"])
def test_wide_lines(name):
    image, weights = image_of((30, 21), "float32"), RANDOM.standard_normal(44)
    options = {"axis": 0, "mode": "constant", "cval": 1, "origin": -5}
    with gp.use_device("reference"):
        result = getattr(ndimage, name)(image, weights, method="fft", **options)
        with pytest.raises(gp.ArgumentError, match=r"Invalid origin .* of 44 weights"):
            getattr(ndimage, name)(image, weights, origin=22, method="fft")
    close(result, getattr(scipy.ndimage, name)(image, weights, **options), image, weights)


def test_some_axes_and_windows_of_one_weight():
    image, weights = image_of((4, 15, 13), "float64"), RANDOM.standard_normal((6, 5))
    with gp.use_device("reference"):
        result = ndimage.correlate(image, weights, axes=(1, 2), method="fft")
        single = ndimage.correlate(image, [[[2.5]]], method="fft")
        assert ndimage.correlate(image[:0], weights, axes=(1, 2), method="fft").shape == (0, 15, 13)
    close(result, scipy.ndimage.correlate(image, weights, axes=(1, 2)), image, weights)
    assert np.array_equal(single, 2.5 * image)


# --- who chooses ------------------------------------------------------------------------------------------------------


def chosen(call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> tuple[bool, Any]:
    """Return whether transforms are planned, and the result."""
    calls: list[str] = []
    result = correlation.by_fft
    with monkeypatch.context() as patched:
        patched.setattr(correlation, "by_fft", lambda *args: calls.append(args[0]) or result(*args))
        return bool(call() is not None and calls), call()


def test_integers_of_arrays_are_transformed_by_default(monkeypatch):
    image, weights = image_of((60, 70), "uint8"), RANDOM.integers(-9, 9, (29, 30))
    few = np.where(RANDOM.random((29, 30)) < 0.1, weights, 0)
    with gp.use_device("reference"):
        for array, window, output, transformed in (
            (image, weights, "int32", True),
            (image, few, "int32", False),
            (image, weights[:12, :12], "int32", False),
            (image, weights + 0.5, "int32", False),
            (image, weights, "float32", False),
            (image.astype("float32"), weights, None, False),
            (image.astype("int32"), weights, None, False),
        ):
            call = functools.partial(ndimage.convolve, array, window, output)
            by_transform, result = chosen(call, monkeypatch)
            assert by_transform == transformed
            np.testing.assert_allclose(result, scipy.ndimage.convolve(array, window, output), rtol=1e-5, atol=0.5)
            if result.dtype.kind == "i":
                direct = ndimage.convolve(array, window, output, method="direct")
                assert np.array_equal(result, scipy.ndimage.convolve(array, window, output))
                assert np.array_equal(result, direct)


def test_infinities_stay_where_they_are_by_default():
    image, weights = image_of((30, 40), "float32"), RANDOM.random((20, 20))
    image[3, 4] = np.nan
    with gp.use_device("reference"):
        assert np.isnan(ndimage.convolve(image, weights, mode="constant")).mean() < 0.2
        assert np.isnan(ndimage.convolve(image, weights, mode="constant", method="fft")).all()


def test_more_weights_than_constants_have_numbers():
    image, weights = image_of((80, 75), "float32"), RANDOM.standard_normal((70, 72))
    with gp.use_device("reference"):
        result = ndimage.correlate(image, weights, method="fft")
        with pytest.raises(gp.ArgumentError, match="17500 weights are more than a table of a kernel holds"):
            ndimage.correlate(image, np.eye(125, 140) + RANDOM.random((125, 140)))
    close(result, scipy.ndimage.correlate(image, weights), image, weights)


def explained(image: Any, weights: Any, **options: Any) -> str:
    with gp.ComputeGraph(device="reference") as graph:
        graph.probe(ndimage.correlate(gp.ScalarField(image) * 2, weights, **options) + 1, "out")
    return graph.explain()


def test_explain_says_why():
    image, weights = image_of((50, 60), "uint8"), RANDOM.integers(-9, 9, (25, 26))
    text = explained(image.astype("float32"), weights, method="fft")
    assert "correlate_fft: by Fourier transforms of 75×90 points: `method='fft'` asks for it" in text
    assert "2 library calls" in text and text.startswith("3 kernels")  # what is before and behind is no pass more
    assert "multiply_correlate_extend on 75×90" in text and "correlate_fft_add on 50×60" in text
    text = explained(image.astype("float32"), weights)
    assert (
        "correlate: one after the other: `method='fft'` does less, but spreads an infinity or NaN to all sums" in text
    )
    assert "gives the same, but needs the whole image" in explained(image, weights, output="int32")
    assert "the weights, or `cval`, are not integers" in explained(image, weights + 0.5)
    assert "`method='fft'`" not in explained(image, weights, method="direct")
    assert "`method='fft'`" not in explained(image, weights[:3, :3])


def test_sums_that_take_ten_times_as_long_are_told_once():
    image, weights = image_of((300, 300), "float32"), RANDOM.standard_normal((70, 70))
    dear = "ndimage.convolve adds 4900 weights one after the other at every point: `method='fft'` takes a tenth of the time"
    whole = RANDOM.integers(1, 9, weights.shape)
    with gp.use_device("reference"):
        for array, window, output, messages in (
            (image, weights, None, f"{dear} on a CPU, or less, but spreads an infinity or NaN to all sums"),
            (
                image.astype("uint8"),
                whole,
                "int32",
                f"{dear} on a CPU, or less, and gives the same, but needs the whole image",
            ),
            (image.astype("uint8"), weights, "int32", None),  # it is not sure to give the same integers
            (image, weights[:40, :40], None, None),
        ):
            with warnings.catch_warnings(record=True) as reports:
                warnings.simplefilter("default")
                for _ in range(2):
                    ndimage.convolve(gp.ScalarField(array), window, output)
                ndimage.convolve(gp.ScalarField(array), window, output, method="direct")
            assert [str(each.message)[: len(messages or "")] for each in reports] == [messages] * (messages is not None)
            assert all(each.filename == __file__ for each in reports)


@pytest.mark.parametrize(
    ("dtype", "weights", "options", "message"),
    [
        (
            "uint8",
            [[1, 0.5]],
            {},
            "and may give other integers: the weights, or `cval`, are not integers; `output='fl",
        ),
        ("uint8", [[1, 2]], {"cval": 0.5, "mode": "constant"}, "the weights, or `cval`, are not integers"),
        ("float32", [[1, 2]], {"output": "int32"}, "and may give other integers: the field is of float32"),
        ("int64", [[1, 2]], {}, "their sums, of int64 with such weights, are too large to be exact"),
    ],
)
def test_integers_that_are_not_exact_are_refused(dtype, weights, options, message):
    image = image_of((50, 60), "int16").astype(dtype)
    with gp.use_device("reference"), pytest.raises(gp.ArgumentError, match=message):
        ndimage.correlate(image, weights, method="fft", **options)


def test_windows_of_programs_are_refused():
    weights = RANDOM.random((5, 5))
    smooth = gp.pipeline(lambda a: ndimage.correlate(gp.ScalarField(a), weights, method="fft"))
    with gp.use_device("reference"):
        text = str(smooth.footprint(np.zeros((64, 64), "float32")))
        with pytest.raises(gp.SemanticError, match="`correlate`"):
            smooth.window((64, 64), (0, 0), (32, 64))(np.zeros((34, 64), "float32"))
    assert "axis 0: must be whole: operator `correlate`" in text


def test_weights_are_transformed_once(monkeypatch):
    calls = []
    result = correlation.host_library
    monkeypatch.setattr(correlation, "host_library", lambda: calls.append(1) or result())
    image, weights = image_of((30, 40), "float32"), RANDOM.random((6, 6))
    with gp.use_device("reference"):
        for n in range(3):
            ndimage.convolve(image + n, weights, method="fft")
            ndimage.convolve(gp.ScalarField(image + n), weights, method="fft").numpy()
    assert len(calls) == 1
