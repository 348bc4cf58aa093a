"""Parameters in the place of numbers of library functions: the bits of the numbers, followed by fields when they are set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from tests.engine.test_number_arguments import planned

rng = np.random.default_rng(5)
IMAGE = rng.random((27, 33), np.float32)
FIELD = gp.ScalarField(IMAGE)
WEIGHTS = rng.random((2, 3, 3))

CALLS: dict[str, tuple[Callable[[Any, Any, Any], Any], Any, Any]] = {
    "gaussian_filter": (lambda m, a, p: m.gaussian_filter(a, p), 1.5, 1.53),
    "gaussian_filter axes": (lambda m, a, p: m.gaussian_filter(a, (p, 1.0)), 1.5, 1.53),
    "gaussian_filter1d": (lambda m, a, p: m.gaussian_filter1d(a, p), 1.5, 1.53),
    "gaussian_filter cval": (lambda m, a, p: m.gaussian_filter(a, 1.0, mode="constant", cval=p), 1.5, -2.5),
    "uniform_filter cval": (lambda m, a, p: m.uniform_filter(a, 3, mode="constant", cval=p), 1.5, -2.5),
    "correlate": (lambda m, a, p: m.correlate(a, p), *WEIGHTS),
    "grey_dilation": (lambda m, a, p: m.grey_dilation(a, structure=p), *WEIGHTS),
    "rotate": (lambda m, a, p: m.rotate(a, p, reshape=False), 20.0, 33.0),
    "shift": (lambda m, a, p: m.shift(a, p), 1.5, -2.25),
    "affine_transform": (lambda m, a, p: m.affine_transform(a, p), WEIGHTS[0, :2, :2], WEIGHTS[1, :2, :2]),
    "zoom": (lambda m, a, p: m.zoom(a, p, order=1), 1.4, 1.405),
}


def number(value: Any) -> Any:
    """The value that a Parameter of it has."""
    return float(np.float32(value)) if isinstance(value, float) else value


@pytest.mark.parametrize("name", CALLS)
def test_fields_follow(device, name):
    call, first, second = CALLS[name]
    parameter = gp.Parameter(first)
    field = call(ndimage, FIELD, parameter)
    for n, value in enumerate((first, second, first)):
        parameter.set(value)
        with planned() as plans:
            result = field.numpy()
        assert not plans or not n, "a value that is set makes a plan"
        assert result.tobytes() == call(ndimage, FIELD, number(value)).numpy().tobytes()
        np.testing.assert_allclose(result, call(scipy.ndimage, IMAGE, number(value)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CALLS)
def test_arrays_take_the_value_of_the_call(device, name):
    call, first, second = CALLS[name]
    parameter = gp.Parameter(first)
    for value in (first, second):
        parameter.set(value)
        result = call(ndimage, IMAGE, parameter)
        assert type(result) is np.ndarray
        assert result.tobytes() == call(ndimage, IMAGE, number(value)).tobytes()


def test_steps_of_a_graph_and_calls_of_a_pipeline_follow(device):
    sigma, amount = gp.Parameter(1.5), gp.Parameter(0.5)

    @gp.pipeline
    def sharpened(image):
        f = gp.ScalarField(image)
        return f + (f - ndimage.gaussian_filter(f, sigma)) * amount

    with gp.ComputeGraph() as graph:
        graph.probe(ndimage.gaussian_filter(FIELD * 2, sigma), "smooth")
    for value in (1.5, 1.52, 1.55):
        sigma.set(value)
        smooth = scipy.ndimage.gaussian_filter(IMAGE, number(value))
        np.testing.assert_allclose(sharpened(IMAGE), IMAGE + (IMAGE - smooth) * 0.5, rtol=1e-5, atol=1e-5)
        graph.step()
        np.testing.assert_allclose(graph.read("smooth"), 2 * smooth, rtol=1e-5, atol=1e-5)


def test_two_parameters_and_a_number():
    sigma, outside = gp.Parameter((1.5, 1.25)), gp.Parameter(3)
    field = ndimage.gaussian_filter(FIELD, sigma, mode="constant", cval=outside)
    with gp.use_device("reference"):
        for values, cval in (((1.5, 1.25), 3), ((1.51, 1.3), 3), ((1.51, 1.3), -7)):
            sigma.set(values)
            outside.set(cval)
            own = [number(v) for v in values]
            expected = scipy.ndimage.gaussian_filter(IMAGE, own, mode="constant", cval=cval)
            np.testing.assert_allclose(field.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_a_value_that_needs_other_kernels():
    sigma = gp.Parameter(1.5)
    field = ndimage.gaussian_filter(FIELD, sigma)  # here
    with gp.use_device("reference"):
        sigma.set(3.0)
        with pytest.raises(gp.SemanticError) as caught:
            field.numpy()
    assert (
        "gaussian_filter: a Parameter was set to 3.0, whose result has other kernels than that of the first value, as a window "
        "of another size has: fix what changes them, such as `radius=`, or call the function again"
    ) in str(caught.value)
    assert "# here" in str(caught.value)
    sigma.set(1.5)
    fixed = ndimage.gaussian_filter(FIELD, sigma, radius=8)
    with gp.use_device("reference"):
        sigma.set(3.0)
        expected = scipy.ndimage.gaussian_filter(IMAGE, 3.0, radius=8)
        np.testing.assert_allclose(fixed.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_a_value_that_decides_the_kernels():
    with pytest.raises(gp.UnsupportedError) as caught:
        ndimage.median_filter(FIELD, size=gp.Parameter(3))
    assert (
        "median_filter: the value of a Parameter decides here which kernels there are, as the size of a window does: give a "
        "number of Python's, and call the function again where another is wanted"
    ) in str(caught.value)
    with gp.use_device("reference"):
        result = ndimage.median_filter(IMAGE, size=gp.Parameter(3))
    assert np.array_equal(result, scipy.ndimage.median_filter(IMAGE, size=3))
