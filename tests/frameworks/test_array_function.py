"""Functions of arrays that frameworks find by names: derivatives and batches of NumPy's arrays, without a framework."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.frameworks import array_function as module
from gpuop.frameworks.array_function import array_function, function_of

rng = np.random.default_rng(31)


@gp.pipeline
def scaled(image, factor, rate):
    u, w = gp.ScalarField(image), gp.ScalarField(rate)
    return u * u * w * factor, u * w


@pytest.fixture
def arrays():
    """An image, a number, and a cotangent, or a tangent, of the image."""
    return rng.standard_normal((3, 4)), np.array(1.5), rng.standard_normal((3, 4))


@pytest.fixture
def function(arrays):
    with gp.use_device("reference"):
        yield function_of(scaled, "101", (2.0,), ())


def test_names_are_those_of_what_is_called(monkeypatch):
    """Another process has them too, whatever it calls first; and equal names with other constants do not exist."""

    def names(*factors):
        monkeypatch.setattr(module, "_names", {})
        monkeypatch.setattr(module, "_functions", {})
        return [function_of(scaled, "101", (factor,), ()).name for factor in factors]

    assert names(2.0, 3.0) == names(3.0, 2.0)[::-1]
    assert len({*names(2.0, 3.0)}) == 2


def test_results_without_cotangents_have_none(arrays, function):
    image, rate, bar = arrays
    first, second = function([image, rate])
    np.testing.assert_allclose(first, image * image * rate * 2)
    np.testing.assert_allclose(second, image * rate)
    both = function.pull([True, True], [False, True])([image, rate, bar])
    np.testing.assert_allclose(both[0], bar * rate)
    np.testing.assert_allclose(both[1], (bar * image).sum())
    (by_rate,) = function.pull([False, True], [True, False])([image, rate, bar])
    np.testing.assert_allclose(by_rate, (bar * image * image * 2).sum())


def test_tangents_and_batches(arrays, function):
    image, rate, tangent = arrays
    slopes = function.push([True, False])([image, rate, tangent])
    np.testing.assert_allclose(slopes[0], 4 * image * tangent * rate)
    np.testing.assert_allclose(slopes[1], tangent * rate)
    rates = rng.standard_normal(5)
    several = function.pull([True, False], [True, True]).mapped([False, True, False, True])
    bars = tangent, rng.standard_normal((5, 3, 4))
    (result,) = several([image, rates, *bars])
    each = rates[:, None, None]
    np.testing.assert_allclose(result, 4 * image * each * bars[0] + each * bars[1])
    assert array_function(several.name) is several
