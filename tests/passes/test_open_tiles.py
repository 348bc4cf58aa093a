"""Tiles of GPUs with extents as arguments: one text for all sizes of a kind, results of kernels for one size."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.passes.dynamic_extents import opened
from tests.as_gpus import AS_A_GPU, used
from tests.runtime.cuda_on_host.compiled import COMPILER
from tests.runtime.cuda_on_host.host_device import ON_HOST

DEVICES = [
    "opencl:0" + AS_A_GPU,
    "reference:sm_90" + AS_A_GPU,
    pytest.param(ON_HOST, marks=pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")),
]
MODES = ("reflect", "nearest", "mirror", "wrap", "constant")
rng = np.random.default_rng(7)


def blurred(mode):
    return lambda image: ndimage.gaussian_filter(gp.ScalarField(image), 1.0, mode=mode, cval=0.5)


def blurred_photo(photo):
    return ndimage.gaussian_filter(gp.VectorField(photo).astype("float32"), 1.0)


def edges(image):
    """Windows in the input itself, of two operators, and a position."""
    f = gp.ScalarField(image)
    return gp.operator(lambda a: _readTensor(a) * (_row + 2 * _columns) + _rows)(ndimage.uniform_filter(f, 5))


def text_of(function, shape, dtype="float32"):
    return gp.pipeline(function, dynamic=True).source(np.zeros(shape, dtype), target="cuda:sm_90")


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(265, 280), (270, 277)])
def test_images_of_all_borders(on, mode, shape):
    image = rng.random(shape, np.float32)
    with used(on):
        result = gp.pipeline(blurred(mode), dynamic=True)(image)
        assert np.array_equal(result, gp.pipeline(blurred(mode), dynamic=False)(image))
    expected = scipy.ndimage.gaussian_filter(image.astype("float64"), 1.0, mode=mode, cval=0.5)
    assert np.allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize("on", DEVICES[1:])
@pytest.mark.parametrize("shape", [(265, 280), (270, 277)])
def test_elements_of_photos(on, shape):
    """A group computes one element of the points of its tile."""
    photo = rng.integers(0, 256, (*shape, 3), np.uint8)
    with used(on):
        result = gp.pipeline(blurred_photo, dynamic=True)(photo)
    expected = scipy.ndimage.gaussian_filter(photo.astype("float64"), (1.0, 1.0, 0.0))
    assert np.allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("shape", [(264, 288), (301, 299)])
def test_positions_and_extents_in_tiles(on, shape):
    image = rng.random(shape, np.float32)
    with used(on):
        result = gp.pipeline(edges, dynamic=True)(image)
    row, columns = np.indices(shape)[0], shape[1]
    expected = scipy.ndimage.uniform_filter(image.astype("float64"), 5) * (row + 2 * columns) + shape[0]
    assert np.allclose(result, expected, rtol=1e-5)


def test_one_text_for_sizes_of_a_kind():
    texts = {
        shape: text_of(blurred("reflect"), shape) for shape in [(1080, 1920), (333, 500), (1080, 1921), (501, 333)]
    }
    assert texts[1080, 1920] == texts[333, 500] and texts[1080, 1921] == texts[501, 333]
    assert "neighbours<float, 4>::store(" in texts[333, 500] and "neighbours<" not in texts[501, 333]
    assert all(text.count("__global__") == 1 and "__shared__" in text for text in texts.values())


def test_small_images_have_no_tiles():
    assert "__shared__" not in text_of(blurred("reflect"), (60, 80))


def test_bundles_are_for_small_images_too():
    """They have one text for all sizes, so none of tiles."""

    @gp.operator(dynamic=True)
    def mean(f):
        places = [(row, column) for row in range(-2, 3) for column in range(-2, 3)]
        return sum(_readTensor(f, _row + r, _column + c, border="clamp") for r, c in places) / 25

    kernel = mean(gp.ScalarField(np.zeros((900, 800), np.float32))).node.call.kernel
    target = target_named("cuda:sm_90")
    every, tiled = (opened(kernel, target, streamed) for streamed in (False, True))
    assert max(every.least) < 40 < 20_000 < min(every.most) and every.together is None
    assert min(tiled.least) > 100 and tiled.together is not None
