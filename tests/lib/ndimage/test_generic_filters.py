"""Functions of the user's: in filters of windows and of lines, and as places of interpolation, beside scipy.ndimage's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.dsl import _sin, _sqrt
from gpuop.engine.jit.pipeline import Pipeline

IMAGE = np.random.default_rng(15).random((7, 9)) * 9
WEIGHTS = np.random.default_rng(16).random(9)
RECORDED = {
    "mean": np.mean,
    "deviation": np.std,
    "extremes": np.ptp,
    "median": np.median,
    "product with weights": lambda b: (b * WEIGHTS).sum() + WEIGHTS @ b,
    "differences": lambda b: np.abs(b - b[4]).max() + b[0],
    "counts": lambda b: (b > b[4]).sum(),
    "choices": lambda b: np.where(b > 4, b, 1.5).sum(),
    "rows' extremes": lambda b: b.reshape(3, 3).max(axis=0).min() + b.reshape(3, 3).std(axis=-1).sum(),
    "rows": lambda b: b.reshape(3, 3).sum(axis=0)[1],
    "words of kernels": lambda b: _sqrt(b[2]) if not isinstance(b[2], float) else math.sqrt(b[2]),
}


def line(values, result, scale=1.0):
    result[...] = np.sort(values)[: len(result)] * scale


def weighted(values, result, scale=1.0):
    result[:] = np.convolve(values, [1.0, 2.0, -3.0, 0.5], "valid") * scale


def clipped(values, result, scale=1.0):
    np.copyto(result, np.maximum(values[1:-2] - values[3:], -1) / 3 + (values[:-3] > 4) * scale)
    result += np.sqrt(np.abs(values))[2:-1]


@pytest.fixture
def image():
    with gp.use_device("reference"):
        yield IMAGE


@pytest.mark.parametrize("function", RECORDED.values(), ids=list(RECORDED))
def test_functions_that_are_recorded(image, function):
    calls = []

    def counted(window):
        calls.append(window)
        return function(window)

    result = ndimage.generic_filter(gp.ScalarField(image), counted, size=3).numpy()
    np.testing.assert_allclose(result, scipy.ndimage.generic_filter(image, function, size=3), rtol=1e-13)
    assert len(calls) < 5  # not for each point


@pytest.mark.parametrize("mode", ["reflect", "mirror", "nearest", "wrap", "constant"])
def test_functions_that_are_called(image, mode):
    options = {"mode": mode, "cval": 2.5}
    for function in (lambda b: b[0] if b[0] > b[1] else b[2], lambda b: np.percentile(b, 30)):
        window = {"size": (4, 3), "origin": (-1, 1), "output": "int16"}
        result = ndimage.generic_filter(image, function, **window, **options)
        assert np.array_equal(result, scipy.ndimage.generic_filter(image, function, **window, **options))
    result = ndimage.generic_filter1d(image, line, 4, axis=0, origin=1, extra_arguments=(2.0,), **options)
    expected = scipy.ndimage.generic_filter1d(image, line, 4, axis=0, origin=1, extra_arguments=(2.0,), **options)
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("function", [weighted, clipped])
def test_functions_of_lines_that_are_recorded(image, function):
    calls = []

    def counted(*args):
        calls.append(args)
        function(*args)

    options = {"axis": 0, "origin": 1, "extra_arguments": (2.0,), "mode": "mirror"}
    result = ndimage.generic_filter1d(gp.ScalarField(image), counted, 4, **options).numpy()
    np.testing.assert_allclose(result, scipy.ndimage.generic_filter1d(image, function, 4, **options), rtol=1e-13)
    assert len(calls) < 5  # not for each line


def test_functions_of_lines_that_are_called(image):
    def some(values, result):
        result[1:] = values[: len(result) - 1] * values[0]
        result[0] = values.max()

    def one_by_one(values, result):
        for n in range(len(result)):
            result[n] = values[n] + values[n + 2]

    for function in (some, one_by_one):
        actual = ndimage.generic_filter1d(image, function, 3, output="float32")
        assert np.array_equal(actual, scipy.ndimage.generic_filter1d(image, function, 3, output="float32"))


def test_more_arguments_and_axes(image):
    def weighted(b, weights, more=0.0):
        return (b * weights).sum() + more

    options = {
        "footprint": [1, 0, 1],
        "axes": 1,
        "extra_arguments": (np.array([1.0, 3.0]),),
        "extra_keywords": {"more": 2.0},
    }
    result = ndimage.generic_filter(image, weighted, **options)
    np.testing.assert_allclose(result, scipy.ndimage.generic_filter(image, weighted, **options), rtol=1e-13)


def test_functions_are_asked_again_when_what_they_capture_has_changed(image):
    scale = 1.0
    scaled = lambda b: b[0] * scale  # noqa: E731
    first = ndimage.generic_filter(image, scaled, size=1)
    scale = 3.0
    np.testing.assert_allclose(ndimage.generic_filter(image, scaled, size=1), 3 * first, rtol=1e-13)


def test_functions_of_one_code_are_told_apart_by_what_they_capture(image, monkeypatch):
    traced = []
    result = Pipeline._trace_results
    monkeypatch.setattr(
        Pipeline, "_trace_results", lambda self, returned: traced.append(self) or result(self, returned)
    )

    def scaled(scale):
        return ndimage.generic_filter(image[:3], lambda b: b[0] * scale, size=1)

    for scale in (2.0, 3.0, 2.0, 3.0):
        np.testing.assert_allclose(scaled(scale), scale * image[:3], rtol=1e-13)
    assert len(traced) == 4  # what captures something else takes its place
    for _ in range(3):
        scaled(3.0)
    assert len(traced) == 4


@pytest.mark.parametrize(
    "mapping",
    [
        lambda p: (p[0] * 0.9 + 0.3, p[1] - p[0] / 7),
        lambda p: (p[0] + (_sin(p[1]) if not isinstance(p[1], int) else math.sin(p[1])), p[1] // 2),
        lambda p: (p[1], p[0]) if p[0] > 3 else p,
    ],
    ids=["arithmetic", "words of kernels", "decisions"],
)
def test_places_of_functions(image, mapping):
    result = ndimage.geometric_transform(image, mapping, order=1, mode="mirror", output_shape=(6, 5))
    expected = scipy.ndimage.geometric_transform(image, mapping, order=1, mode="mirror", output_shape=(6, 5))
    np.testing.assert_allclose(result, expected, rtol=1e-13)


def test_places_of_functions_are_part_of_the_kernel():
    moved = gp.pipeline(lambda a: ndimage.geometric_transform(gp.ScalarField(a), lambda p: (p[0] / 2, p[1]), order=1))
    with gp.use_device("reference"):
        assert "1 kernel for 2 operators" in moved.explain(IMAGE)


@pytest.mark.parametrize(
    "options",
    [
        {"size": 3},
        {"size": (2, 3), "mode": "constant", "cval": 5},
        {"footprint": np.array([[1, 0, 1], [0, 1, 0]], bool), "origin": (0, 1), "mode": "wrap"},
        {"size": (3, 2), "mode": "valid"},
        {"size": 3, "axes": 0, "mode": "grid-mirror"},
    ],
    ids=["size", "constant", "footprint", "valid", "axis"],
)
def test_functions_that_reduce_axes(image, options):
    for function in (
        np.mean,
        np.std,
        lambda v, axis: (v**2).sum(axis=axis),
        lambda v, axis: np.percentile(v, 30, axis=axis),
    ):
        for dtype in ("float32", "uint8"):
            result = ndimage.vectorized_filter(image.astype(dtype), function, **options)
            expected = scipy.ndimage.vectorized_filter(image.astype(dtype), function, **options)
            assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(result, expected, rtol=1e-5 if result.dtype == np.float32 else 1e-13)


def test_messages(image):
    with pytest.raises(ValueError, match="Either `size` or `footprint` must be provided, and not both"):
        ndimage.vectorized_filter(image, np.mean)
    with pytest.raises(ValueError, match="`batch_memory` is insufficient"):
        ndimage.vectorized_filter(image, np.mean, size=3, batch_memory=5)
    with pytest.raises(gp.SemanticError, match="the mapping gives 1 coordinates, and the field has 2 axes"):
        ndimage.geometric_transform(image, lambda p: p[:1])
    with pytest.raises(RuntimeError, match="invalid filter size 0"):
        ndimage.generic_filter1d(image, line, 0)
    with pytest.raises(TypeError, match="Complex type not supported"):
        ndimage.generic_filter(image.astype("F"), np.mean, size=3)
    with pytest.raises(ZeroDivisionError):  # the user's own
        ndimage.generic_filter(image, lambda b: 1 / 0, size=3)
