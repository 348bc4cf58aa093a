"""Gradients in pipelines, graphs and iterations: arrays of any sizes, precisions, and states."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

STEP = 0.25


@gp.operator
def smoothed(u):
    left = _readTensor(u, _row, _column - 1, border="reflect")
    right = _readTensor(u, _row, _column + 1, border="symmetric")
    return _readTensor(u) + STEP * (left + right - 2 * _readTensor(u))


def matrix(n: int):
    """The step along a row of n points: `reflect` on the left, `symmetric` on the right."""
    result = np.eye(n) * (1 - 2 * STEP)
    for k in range(n):
        result[k, abs(k - 1) if n > 1 else 0] += STEP
        result[k, min(k + 1, n - 1)] += STEP
    return result


def expected(a):
    """The gradient of the sum of the squares of two steps."""
    steps = np.linalg.matrix_power(matrix(a.shape[1]), 2)
    return 2 * a @ steps.T @ steps


def loss(u):
    return (smoothed(smoothed(u)) ** 2).sum()


def random(*shape: int):
    return np.random.default_rng(sum(shape)).random(shape).astype(np.float32)


@gp.pipeline
def energy(a):
    return loss(gp.ScalarField(a))


@gp.pipeline
def inside(a):
    return gp.grad(loss)(gp.ScalarField(a)) * 2


@gp.pipeline(dynamic=True)
def of_any_size(a):
    return gp.grad(loss)(gp.ScalarField(a))


def test_gradient_of_a_pipeline_is_a_pipeline_of_arrays(device):
    """Of sizes that come one after the other, whose kernels may take extents as arguments."""
    gradient, both = gp.grad(energy), gp.value_and_grad(energy)
    for shape in ((8, 9), (9, 10), (10, 3), (3, 8), (2, 1)):
        a = random(*shape)
        result = gradient(a)
        assert type(result) is np.ndarray and result.dtype == np.float32
        np.testing.assert_allclose(result, expected(a), rtol=1e-4, atol=1e-5)
        value, beside = both(a)
        np.testing.assert_allclose(value, ((a @ np.linalg.matrix_power(matrix(shape[1]), 2).T) ** 2).sum(), rtol=1e-4)
        assert beside.tobytes() == result.tobytes()


@pytest.mark.parametrize(("function", "factor"), [(inside, 2), (of_any_size, 1)])
def test_gradients_in_pipelines(device, function, factor):
    for shape in ((6, 7), (7, 8), (3, 5)):
        np.testing.assert_allclose(function(random(*shape)), factor * expected(random(*shape)), rtol=1e-4, atol=1e-5)


def test_unfused_gradients_have_the_same_bits(device):
    separate = gp.pipeline(optimize=False)(lambda a: gp.grad(loss)(gp.ScalarField(a)))
    assert separate(random(6, 7)).tobytes() == of_any_size(random(6, 7)).tobytes()


@pytest.mark.parametrize("mode", ["contract", "fast"])
def test_precision(device, mode):
    with gp.precision(mode):
        gradient = gp.grad(loss)(gp.ScalarField(random(6, 7)))
    np.testing.assert_allclose(gradient.numpy(), expected(random(6, 7)), rtol=1e-4, atol=1e-5)


def test_other_dtypes():
    half, single = random(6, 7).astype(np.float16), random(6, 7)
    gradient = gp.grad(lambda u: (u * u).sum())(gp.ScalarField(half)).numpy()
    assert gradient.dtype == np.float16 and np.array_equal(gradient, 2 * half)
    gradient = gp.grad(lambda u: (u.astype("float64") * u).sum())(gp.ScalarField(single)).numpy()
    assert gradient.dtype == np.float32 and np.array_equal(gradient, 2 * single)


def test_descent_in_an_iteration_and_in_a_graph():
    u = gp.ScalarField(random(6, 7))
    result = gp.iterate(lambda u: u - 0.1 * gp.grad(lambda v: (v * v).sum())(u), u, times=3)
    np.testing.assert_allclose(result.numpy(), random(6, 7) * 0.8**3, rtol=1e-5)
    graph = gp.ComputeGraph()
    with graph:
        state = gp.ScalarField(random(6, 7))
        state.next = state - 0.1 * gp.grad(lambda v: (v * v).sum())(state)
        graph.probe(state, "state")
    graph.step()
    graph.step()
    np.testing.assert_allclose(graph.read("state"), random(6, 7) * 0.8**2, rtol=1e-5)


@pytest.mark.parametrize("has_aux", [False, True])
@pytest.mark.parametrize("argnums", [0, (0,), (0, 1)])
def test_gradients_of_a_pipeline_are_traced_once(argnums, has_aux):
    """Whatever tuples lie in tuples of results: nothing warns of a third trace with equal arguments."""

    @gp.pipeline
    def product(a, b):
        a, b = gp.ScalarField(a), gp.ScalarField(b)
        return ((a * a * b).sum(), (a + b, (b,))) if has_aux else (a * a * b).sum()

    a, b = np.array([1.0, 2]), np.array([3.0, 5])
    slopes = 2 * a * b if argnums == 0 else (2 * a * b, a * a)[: len(argnums)]
    gradient, both = (function(product, argnums, has_aux=has_aux) for function in (gp.grad, gp.value_and_grad))
    with gp.use_device("reference"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            results = (gradient(a, b), both(a, b))
    aux = (a + b, (b,))
    value = (a * a * b).sum()
    same((slopes, aux) if has_aux else slopes, results[0])
    same(((value, aux), slopes) if has_aux else (value, slopes), results[1])


def same(expected, result):
    """Assert that values are equal, and lie in the same tuples."""
    assert isinstance(result, tuple) == isinstance(expected, tuple)
    if isinstance(expected, tuple):
        for each, other in zip(expected, result, strict=True):
            same(each, other)
    else:
        np.testing.assert_array_equal(result, expected)
