"""Derivatives of mapped functions, and mapped derivatives, beside central differences of NumPy's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.borders import away

rng = np.random.default_rng(47)
STEP = 1e-6


def differences(function: Callable[[np.ndarray], float], x: np.ndarray) -> np.ndarray:
    """The gradient of a function of an array."""
    result = np.empty_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = STEP
        result[place] = (function(x + step) - function(x - step)) / (2 * STEP)
    return result


def squares(f, w):
    @gp.operator
    def near(f, w):
        places = (_layer, _row, _column)[3 - len(f.field_shape) :]
        value = _readTensor(f, *(p + 1 for p in places), border="reflect") - 2 * _readTensor(f) * _readTensor(w)
        return value * value

    return np.sum(near(f, w)) + (f * gp.stop_gradient(f)).sum()


def of_numpy(x: np.ndarray, w: np.ndarray, constant: np.ndarray) -> float:
    near = away(x, *(1,) * x.ndim, border="reflect") - 2 * x * w
    return float((near * near).sum() + (x * constant).sum())


@pytest.mark.parametrize("grid", [(5,), (3, 5), (2, 3, 5)], ids=str)
def test_gradients(device, grid):
    """By a mapped argument and by one that entries share, which has the sum of theirs."""
    x, w = rng.standard_normal((3, *grid)), rng.standard_normal(grid)
    fields = gp.ScalarField(x), gp.ScalarField(w)
    by_x = np.stack([differences(lambda e, c=a: of_numpy(e, w, c), a) for a in x])
    by_w = differences(lambda e: sum(of_numpy(a, e, a) for a in x), w)
    mapped = gp.vmap(gp.grad(squares), in_axes=(0, None))(*fields)
    np.testing.assert_allclose(mapped.numpy(), by_x, rtol=1e-5, atol=1e-5)
    whole = gp.grad(lambda f, w: gp.vmap(squares, in_axes=(0, None))(f, w).sum(), argnums=(0, 1))(*fields)
    for result, expected in zip(whole, (by_x, by_w), strict=True):
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("grid", [(3, 5), (2, 3, 5)], ids=str)
def test_tangents(device, grid):
    x, t, w = (rng.standard_normal((3, *grid)) for _ in range(3))
    expected = [
        float((differences(lambda e, b=b, c=a: of_numpy(e, b, c), a) * d).sum())
        for a, b, d in zip(x, w, t, strict=True)
    ]
    fields = [gp.ScalarField(a) for a in (x, w, t)]
    _, whole = gp.jvp(lambda f: gp.vmap(squares)(f, fields[1]), (fields[0],), (fields[2],))
    mapped = gp.vmap(lambda f, w, d: gp.jvp(lambda e: squares(e, w), (f,), (d,))[1])(*fields)
    for result in (whole, mapped):
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_rules_of_functions(device):
    """Sums, means and extremes have rules of their own, which entries have too."""

    def f(a):
        return np.max(a) * np.mean(a) + np.sum(a * a)

    x = rng.standard_normal((3, 4, 5))
    expected = np.stack([differences(f, a) for a in x])
    for g in (gp.vmap(gp.grad(f)), gp.grad(lambda a: gp.vmap(f)(a).sum())):
        np.testing.assert_allclose(g(gp.ScalarField(x)).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_what_entries_share_gets_the_sum_of_their_cotangents():
    """Of a rule of its own too, whose cotangents are those of one entry."""

    @gp.operator
    def product(f, w):
        return _readTensor(f) * _readTensor(w)

    @product.defvjp
    def back(inputs, value, cotangent):
        f, w = inputs
        return cotangent * w, cotangent * f * 2.0  # twice the gradient, so that nothing else stands for it

    x, w = rng.standard_normal((3, 4)), rng.standard_normal(4)
    fields = gp.ScalarField(x), gp.ScalarField(w)
    with gp.use_device("reference"):
        result = gp.grad(lambda f, w: gp.vmap(product, in_axes=(0, None))(f, w).sum(), argnums=(0, 1))(*fields)
        np.testing.assert_allclose(result[0].numpy(), np.stack([w] * 3))
        np.testing.assert_allclose(result[1].numpy(), 2.0 * x.sum(0))
