"""Derivatives of `gp.iterate`. Expected values are central differences of the same loop in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from tests.borders import away
from tests.gradients.differences import check

rng = np.random.default_rng(17)


@gp.operator
def step(u, v, speed):
    around = _readTensor(u, _column - 1, border="wrap") + _readTensor(u, _column + 1, border="wrap")
    faster = _readTensor(v) + _readTensor(speed) * (around - 2 * _readTensor(u)) * _cos(_readTensor(u))
    return _readTensor(u) + 0.1 * faster, faster


def waves(u: Any, v: Any, speed: Any) -> Any:
    squared = speed * speed  # captured, and differentiated
    u, v = gp.iterate(lambda u, v: step(u, v, squared), (u, v), times=5)
    return u * v


def waves_of_arrays(u: Any, v: Any, speed: Any) -> Any:
    for _ in range(5):
        around = away(u, -1, border="wrap") + away(u, 1, border="wrap")
        v = v + speed**2 * (around - 2 * u) * np.cos(u)
        u = u + 0.1 * v
    return u * v


def test_states_and_captured_values(device: str) -> None:
    arrays = rng.random((3, 7))
    check(waves, waves_of_arrays, *arrays)
    tangents = rng.standard_normal((3, 7))
    pushed = gp.jvp(waves, tuple(map(gp.Field, arrays)), tuple(map(gp.Field, tangents)))[1].numpy()
    ends = [waves_of_arrays(*(arrays + side * 1e-6 * tangents)) for side in (1, -1)]
    np.testing.assert_allclose(pushed, (ends[0] - ends[1]) / 2e-6, 1e-6, 1e-8)


def test_a_value_in_two_states_and_integers_beside(device: str) -> None:
    u = gp.Field(rng.random(5) + 0.5)
    twice = gp.grad(lambda u: gp.iterate(lambda a, b: (b, a * b), (u, u), times=3)[1].sum())(u)
    np.testing.assert_allclose(twice.numpy(), 5 * u.numpy() ** 4, 1e-12)
    turns = gp.ScalarField(np.zeros(5, np.int32))

    def counted(u: Any) -> Any:
        x, n = gp.iterate(lambda x, n: (x * u, n + 1), (u, turns), times=4)
        return x * n

    np.testing.assert_allclose(gp.jvp(counted, (u,), (u,))[1].numpy(), 4 * 5 * u.numpy() ** 5, 1e-12)
    np.testing.assert_allclose(gp.grad(lambda u: counted(u).sum())(u).numpy(), 4 * 5 * u.numpy() ** 4, 1e-12)


def test_until_a_condition_holds(device: str) -> None:
    """Forward mode goes on for as many iterations as the function."""

    def root(a: Any) -> Any:
        return gp.iterate(lambda x: (x + a / x) * 0.5, a, until=lambda x: abs(x * x - a).max() < 1e-13, times=100)

    a = gp.Field(rng.random(4) + 1)
    np.testing.assert_allclose(gp.jvp(root, (a,), (a,))[1].numpy(), np.sqrt(a.numpy()) / 2, 1e-9)
