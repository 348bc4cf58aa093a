"""Derivatives by rules of fields with more than three axes, whose nodes have fewer: expected values are differences in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
import gpuop.ndimage
from tests.gradients.differences import STEP, check

RNG = np.random.default_rng(3)
VALUES = RNG.permutation(48).astype(float) / 7 - 3
SHAPES = [(2, 2, 3, 4), (1, 2, 3, 4, 2)]


REDUCTIONS = {
    "sum": lambda u, axis: u.sum(axis=axis),
    "mean": lambda u, axis: u.mean(axis=axis),
    "max": lambda u, axis: u.max(axis=axis),
    "prod": lambda u, axis: (u * u + 1).prod(axis=axis),
    "var": lambda u, axis: u.var(axis=axis),
    "kept": lambda u, axis: u * u.sum(axis=axis, keepdims=True),
    "cumsum": lambda u, axis: np.cumsum(u, axis=axis if isinstance(axis, int) else axis[0]),
    "cumprod": lambda u, axis: np.cumprod(u * u * 0.1 + 1, axis=axis if isinstance(axis, int) else axis[0]),
    "sort": lambda u, axis: np.sort(u, axis=axis if isinstance(axis, int) else axis[0]),
    "several": lambda u, axis: u.sum(axis=axis) * np.max(u * 2, axis=axis) + u.sum(axis=axis),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_and_scans(name, shape):
    values, function = VALUES[: np.prod(shape)].reshape(shape), REDUCTIONS[name]
    for axis in (0, 1, 2, -1, (0, 1), (1, 3)):
        check(lambda u, axis=axis: function(u, axis), lambda u, axis=axis: function(u, axis), values, atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_tangents(name, shape):
    values, function = VALUES[: np.prod(shape)].reshape(shape), REDUCTIONS[name]
    step = RNG.standard_normal(shape)
    for axis in (0, 1, 2, -1, (0, 1)):
        own = gp.jvp(lambda u, axis=axis: function(u, axis), (gp.Field(values),), (gp.Field(step),))[1].numpy()
        ends = [function(values + sign * STEP * step, axis) for sign in (1, -1)]
        np.testing.assert_allclose(own, (ends[0] - ends[1]) / (2 * STEP), rtol=1e-6, atol=1e-6)


def test_bilateral_weights_of_pairs():
    """As MONAI's filters are written for pairs of points."""

    def filtered(u):
        distance = ((u[:, :, :, None] - u[:, :, None, :]) ** 2).sum(axis=1, keepdims=True)
        weights = np.exp(distance * -0.6)
        return (weights * u[:, :, None, :]).sum(axis=-1) / weights.sum(axis=-1)

    check(filtered, filtered, RNG.random((2, 2, 5)))


def test_transforms():
    values = VALUES.reshape(2, 2, 3, 4)
    for axis in (0, 1, 2, 3):
        check(
            lambda u, axis=axis: np.fft.fft(u, axis=axis).real,
            lambda u, axis=axis: np.fft.fft(u, axis=axis).real,
            values,
        )


@gp.pipeline
def scaled(u):
    return u * np.sum(u, axis=1, keepdims=True)


@scaled.defvjp
def _(args, out, bar):
    (u,) = args
    assert u.shape == out.shape == bar.shape == (2, 2, 3, 4)
    return (bar * np.sum(u, axis=1, keepdims=True) + np.sum(bar * u, axis=1, keepdims=True),)


def test_rules_of_users():
    check(scaled, lambda u: u * u.sum(axis=1, keepdims=True), VALUES.reshape(2, 2, 3, 4))


def test_iterations():
    def step(u):
        return u * 0.5 + u.sum(axis=1, keepdims=True) * 0.1

    def repeated(u):
        for _ in range(3):
            u = step(u)
        return u

    check(lambda u: gp.iterate(step, u, times=3), repeated, VALUES.reshape(2, 2, 3, 4))


@pytest.mark.parametrize("name", ["sum", "max", "prod", "cumsum", "cumprod", "sort"])
def test_batches(name):
    """An entry has three axes."""
    function = REDUCTIONS[name]
    for axis in (0, 1, 2):
        check(
            gp.vmap(lambda u, axis=axis: function(u, axis)),
            lambda u, axis=axis: np.stack([function(entry, axis) for entry in u]),
            VALUES.reshape(2, 2, 3, 4),
            atol=1e-7,
        )


def test_second_order():
    values, direction = VALUES.reshape(2, 2, 3, 4), RNG.standard_normal((2, 2, 3, 4))

    def slope(u):  # of the sum over axis 1, to the third power
        return 3 * np.broadcast_to(u.sum(axis=1, keepdims=True), u.shape) ** 2

    own = gp.hvp(lambda u: (u.sum(axis=1) ** 3).sum(), (gp.Field(values),), (gp.Field(direction),)).numpy()
    ends = [slope(values + sign * STEP * direction) for sign in (1, -1)]
    np.testing.assert_allclose(own, (ends[0] - ends[1]) / (2 * STEP), rtol=1e-5, atol=1e-5)
