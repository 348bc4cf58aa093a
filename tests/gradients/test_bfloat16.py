"""Derivatives of bfloat16: of its dtype, computed in float32; expected numbers are those of float32 by hand."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
import gpuop.ndimage as ndi
from gpuop.dsl import *
from tests.bfloat16 import nearest

rng = np.random.default_rng(31)
IMAGE, OTHER = nearest(rng.normal(size=(7, 19))), nearest(rng.normal(size=(7, 19)))


def bf(array):
    return gp.Field(array, 0, "bfloat16")


@gp.operator(outputs=lambda f, g: f.type)
def crossed(f, g):
    return _readTensor(f) * _readTensor(g, _row, _column + 1, border="zero") + _readTensor(f)


def test_a_kernel(device: str) -> None:
    """Σ w (f g₊ + f): by f it is w (g₊ + 1), by g the w f of the point before."""
    weights = nearest(rng.normal(size=(7, 19)))
    by_f, by_g = gp.grad(lambda f, g: (crossed(f, g) * bf(weights)).sum(), (0, 1))(bf(IMAGE), bf(OTHER))
    assert by_f.dtype == by_g.dtype == "bfloat16"
    after = np.pad(OTHER, ((0, 0), (0, 1)))[:, 1:]
    np.testing.assert_array_equal(by_f.numpy(), nearest(weights * (after + 1)))
    np.testing.assert_array_equal(by_g.numpy(), np.pad(nearest(weights * IMAGE), ((0, 0), (1, 0)))[:, :-1])
    result, slope = gp.jvp(lambda f, g: crossed(f, g), (bf(IMAGE), bf(OTHER)), (bf(weights), bf(IMAGE)))
    pushed = weights * (after + 1) + IMAGE * np.pad(IMAGE, ((0, 0), (0, 1)))[:, 1:]
    assert result.dtype == slope.dtype == "bfloat16"
    np.testing.assert_allclose(slope.numpy(), pushed, rtol=2**-8, atol=1e-6)


def test_shares_are_added_in_float(device: str) -> None:
    """The gradient of 300 uses of a number: as a bfloat16 sum it would stop at 256."""
    ones, number = bf(np.ones(300)), bf(1.0)
    assert float(gp.grad(lambda x: (ones * x).sum())(number)) == 300
    window = gp.grad(lambda f: ndi.correlate1d(f, np.ones(21)).sum())(bf(np.ones(400)))
    assert set(window.numpy()[21:-21]) == {21.0}

    def often(f):
        total = f * 1
        for _ in range(5):
            total = total + f * 0.00390625
        return total.sum()

    np.testing.assert_array_equal(gp.grad(often)(ones).numpy(), nearest(np.float32(1 + 5 / 256)))


@pytest.mark.parametrize(
    "call",
    [
        lambda f: ndi.gaussian_filter(f, 1.2),
        lambda f: np.sort(f, axis=1),
        lambda f: np.cumsum(f, axis=1) / 8,
        lambda f: np.exp(f / 4),
        lambda f: ndi.zoom(f, 1.5, order=1),
        lambda f: f.max(axis=0) * f.mean(axis=0),
        lambda f: np.where(f > 0, f, f * 0.125).T,
    ],
)
def test_functions(device: str, call: object) -> None:
    """Beside the gradient of float32."""

    def loss(f):
        return (call(f) * call(f)).astype("float32").sum()

    own, wide = gp.grad(loss)(bf(IMAGE)), gp.grad(loss)(gp.Field(IMAGE)).numpy()
    assert own.dtype == "bfloat16"
    np.testing.assert_allclose(own.numpy(), wide, atol=2**-6 * np.abs(wide).max())


def test_second_derivatives(device: str) -> None:
    product = gp.hvp(lambda f: (f * f * f).sum(), (bf(IMAGE),), (bf(OTHER),))
    product = product[0] if isinstance(product, tuple) else product
    assert product.dtype == "bfloat16"
    np.testing.assert_allclose(product.numpy(), 6 * IMAGE * OTHER, rtol=2**-6, atol=1e-3)
    batched = gp.vmap(gp.grad(lambda f: (f * f).sum()))(bf(IMAGE))
    np.testing.assert_array_equal(batched.numpy(), 2 * IMAGE)
