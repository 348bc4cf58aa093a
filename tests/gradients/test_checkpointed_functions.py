"""`gp.checkpoint`: the same values and gradients, with less memory. Expected values are differences of loops in NumPy."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.gradients.differences import check

rng = np.random.default_rng(19)


@gp.operator
def curved(u, amount):
    x = _readTensor(u)
    left, right = _readTensor(u, _column - 1, border="wrap"), _readTensor(u, _column + 1, border="wrap")
    return x + _readTensor(amount) * (left + right - 2 * x) * x


def curved_in_numpy(u: Any, amount: Any) -> Any:
    return u + amount * (np.roll(u, 1) + np.roll(u, -1) - 2 * u) * u


def test_arguments_and_captured_values(device: str) -> None:
    """Gradients by arguments, and by a captured value that is computed of another argument; nested functions."""

    def chain(u: Any, v: Any, amount: Any) -> Any:
        squared = amount * amount
        inner = gp.checkpoint(lambda u: curved(curved(u, squared), squared))

        @gp.checkpoint
        def outer(u: Any, v: Any) -> dict[str, Any]:
            u = inner(u) * v
            return {"u": inner(u), "both": (u + v, v)}

        last = outer(u, v=v)
        return last["u"] * last["both"][0] + np.sort(last["both"][1])

    def in_numpy(u: Any, v: Any, amount: Any) -> Any:
        twice = lambda u: curved_in_numpy(curved_in_numpy(u, amount**2), amount**2)  # noqa: E731
        u = twice(u) * v
        return twice(u) * (u + v) + np.sort(v)

    check(chain, in_numpy, *rng.random((2, 6)), np.array(0.4))


def test_other_modes(device: str) -> None:
    """Forward mode, second derivatives and batches."""
    u, t = rng.random((2, 6))
    twice = gp.checkpoint(lambda u: curved(curved(u, gp.Field(np.float64(0.3))), gp.Field(np.float64(0.3))))
    plain = lambda x: curved_in_numpy(curved_in_numpy(x, 0.3), 0.3)  # noqa: E731
    slope = gp.jvp(twice, (gp.Field(u),), (gp.Field(t),))[1].numpy()
    np.testing.assert_allclose(slope, (plain(u + 1e-6 * t) - plain(u - 1e-6 * t)) / 2e-6, 1e-7)
    energy = lambda u: (twice(u) ** 3).sum()  # noqa: E731
    total = lambda x: (plain(x) ** 3).sum()  # noqa: E731
    eye = 1e-3 * np.eye(6)
    both = [(total(u + s + h * t) - total(u - s + h * t)) / 2e-3 for h in (1e-4, -1e-4) for s in eye]
    expected = (np.array(both[:6]) - both[6:]) / 2e-4
    np.testing.assert_allclose(gp.hvp(energy, (gp.Field(u),), (gp.Field(t),)).numpy(), expected, 1e-4, 1e-4)
    again = gp.grad(lambda u: (gp.grad(energy)(u) * gp.Field(t)).sum())(gp.Field(u)).numpy()
    np.testing.assert_allclose(again, expected, 1e-4, 1e-4)
    rows = rng.random((3, 6))
    for row, own in zip(rows, gp.vmap(gp.grad(energy))(gp.Field(rows)).numpy(), strict=True):
        first = [(total(row + s) - total(row - s)) / 2e-6 for s in 1e-6 * np.eye(6)]
        np.testing.assert_allclose(own, first, 1e-5, 1e-8)


@gp.operator
def stencil(u):
    x = _readTensor(u)
    left, right = _readTensor(u, _row, _column - 1) - x, _readTensor(u, _row, _column + 1) - x
    return x + 0.1 * (left / (1 + left * left) + right / (1 + right * right))


def of_segments(wrapped: Any, optimize: bool) -> Any:
    def segment(u: Any) -> Any:
        for _ in range(4):
            u = stencil(u)
        return u

    def loss(u: Any) -> Any:
        for _ in range(4):
            u = wrapped(segment)(u)
        return (u * u).sum()

    return gp.pipeline(optimize=optimize)(lambda a: gp.grad(loss)(gp.ScalarField(a)))


@pytest.mark.parametrize("optimize", [False, True])
def test_equal_calls_are_not_made_one(optimize: bool) -> None:
    """Sixteen steps in four segments: three of each four states are computed again, right before they are read."""
    a = rng.random((8, 24)).astype(np.float32)
    plain, less = (of_segments(wrapped, optimize) for wrapped in (lambda f: f, gp.checkpoint))
    with gp.use_device("reference:sm_90"):
        np.testing.assert_array_equal(less(a), plain(a))
        without, kept = (json.loads(f.explain(a, format="json")) for f in (plain, less))
    numbers = [(each["kernel_count"], each["buffer_bytes"] // a.nbytes) for each in (without, kept)]
    if optimize:
        assert numbers[0][1] >= 16 > 8 >= numbers[1][1]
        return
    # all 16 states; without checkpoints between segments the four that begin them, three of one segment, and two cotangents
    assert numbers == [(16 + 20, 19), (16 + 20 + 12, 9)]


def test_several_segments_of_equal_arguments(device: str) -> None:
    u = gp.Field(rng.random(5))
    cubed = gp.checkpoint(lambda u: u * u * u)
    gradient = gp.grad(lambda u: (cubed(u) + cubed(u) * cubed(u)).sum())(u).numpy()
    np.testing.assert_allclose(gradient, 3 * u.numpy() ** 2 + 6 * u.numpy() ** 5, 1e-12)


def test_results_that_are_arguments_or_constants(device: str) -> None:
    u, constant = gp.Field(rng.random(5)), gp.Field(rng.random(5))
    through = gp.checkpoint(lambda u: (u, constant, 3, constant * 2))
    gradient = gp.grad(lambda u: (through(u)[0] * through(u)[1] * through(u)[2] + through(u)[3]).sum())(u)
    np.testing.assert_allclose(gradient.numpy(), 3 * constant.numpy(), 1e-12)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(gp.SemanticError) as error:
        gp.checkpoint(3)
    assert error.value.message == "checkpoint takes a function of fields, not an int"
