"""Everyday functions of images on devices without double: no text has any, and results are those of SciPy and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.base.lru import forget_all
from gpuop.codegen import generate
from tests.without_doubles import NAMES, without_doubles

scipy = pytest.importorskip("scipy.ndimage")
pytestmark = pytest.mark.skipif(not NAMES, reason="there is no OpenCL device")

SHAPE = 61, 83
DTYPES = {"uint8": 250, "uint16": 60000, "float32": 1}
WEIGHTS = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16
UNEVEN = np.array([[0.3, -1.7, 0.2], [2.1, 4.4, 0], [1.9, -2.3, 1]])
# no place falls on the border by rounding, where a place of double is inside or outside by its last bit
MATRIX, OFFSET = np.array([[0.9123, -0.2071], [0.1037, 1.1311]]), np.array([2.713, 1.237])
PLACES = np.random.default_rng(1).random((2, 40, 50)) * np.array(SHAPE)[:, None, None]


def statistics(module, image):
    labels = (np.arange(image.size).reshape(SHAPE) // 83 % 7).astype(np.int32)
    names = "sum_labels", "mean", "variance"
    return np.array([np.asarray(getattr(module, name)(image, labels, np.arange(7)), np.float64) for name in names])


FUNCTIONS = {
    "gaussian_filter": lambda m, x: m.gaussian_filter(x, 2),
    "uniform_filter": lambda m, x: m.uniform_filter(x, 5),
    "sobel": lambda m, x: m.sobel(x, 0),
    "laplace": lambda m, x: m.laplace(x),
    "median_filter": lambda m, x: m.median_filter(x, 3),
    "correlate": lambda m, x: m.correlate(x, WEIGHTS),
    "convolve": lambda m, x: m.convolve(x, UNEVEN / 8),
    "zoom": lambda m, x: m.zoom(x, 1.7, order=1),
    "rotate": lambda m, x: m.rotate(x, 21.3, order=1),
    "affine_transform": lambda m, x: m.affine_transform(x, MATRIX, OFFSET, order=1),
    "map_coordinates": lambda m, x: m.map_coordinates(x, PLACES, order=1),
    "distance_transform_edt": lambda m, x: m.distance_transform_edt(x > x.max() // 3),
    "label": lambda m, x: m.label(x > x.max() / 2)[0],
    "statistics": statistics,
    "histogram": lambda m, x: m.histogram(x, 0, float(x.max()), 16),
}


@pytest.fixture
def texts(monkeypatch, tmp_path):
    """All generated texts: nothing is cached."""
    written, printed = [], generate._printed

    def kept(*args):
        written.append(printed(*args))
        return written[-1]

    monkeypatch.setattr(generate, "_printed", kept)
    monkeypatch.setattr(config, "cache", tmp_path)
    forget_all()
    yield written
    forget_all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_everyday_functions(name, function, dtype, texts):
    image = (np.random.default_rng(5).random(SHAPE) * DTYPES[dtype]).astype(dtype)
    expected = np.asarray(FUNCTIONS[function](scipy, image))
    with without_doubles(name):
        result = np.asarray(FUNCTIONS[function](gp.ndimage, image))
    assert texts and not any("double" in source.text or "double" in source.needs for source in texts)
    assert result.shape == expected.shape
    off = np.abs(result.astype(np.float64) - expected.astype(np.float64))
    if result.dtype.kind in "iu":
        assert off.max() <= (1 if function not in ("label", "histogram", "median_filter") else 0)
    else:
        largest = np.abs(expected).max()
        assert off.max() <= (2e-7 if result.dtype == np.float32 or image.dtype == np.float32 else 1e-12) * largest * 4
