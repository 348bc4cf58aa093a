"""`defjvp` and `defvjp`: rules of the user's own, in both modes, of operators and pipelines."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.testing import check_grads

rng = np.random.default_rng(17)


@gp.operator
def length(v):
    x = _readTensor(v)
    return _sqrt(_dot(x, x))


@length.defjvp
def length_jvp(primals, tangents):
    (v,), (t,) = primals, tangents
    size = length(v)
    return size, np.linalg.vecdot(v, t) / size


@gp.operator
def clipped(u, limit):
    return _fmin(_readTensor(u), limit)


@clipped.defvjp
def clipped_vjp(args, result, cotangent):
    """A slope that goes on behind the limit, as networks are trained with; it is not that of the function."""
    return cotangent * 2, None


def field(*values: float) -> Any:
    return gp.ScalarField(np.array(values, np.float64))


def test_tangents_and_their_transpose(device: str) -> None:
    v = gp.VectorField(rng.random((4, 3)) + 0.1, dtype="float64")
    check_grads(length, (v,), order=2)
    (gradient,) = gp.vjp(length, v)[1](field(1, 1, 1, 1))
    np.testing.assert_allclose(gradient.numpy(), v.numpy() / np.linalg.norm(v.numpy(), axis=-1)[:, None], 1e-14)


def test_cotangents(device: str) -> None:
    u = field(1, 2, 3)
    np.testing.assert_array_equal(gp.grad(lambda u: clipped(u, 2.5).sum())(u).numpy(), [2, 2, 2])
    np.testing.assert_array_equal(clipped(u, 2.5).numpy(), [1, 2, 2.5])
    with pytest.raises(gp.SemanticError) as error:
        gp.jvp(lambda u: clipped(u, 2.5), (u,), (u,))
    assert error.value.message == (
        "`clipped` has no tangent: its rule is one of cotangents; give it one of tangents with `defjvp`, or use `gp.vjp`"
    )


def test_forward_and_backward_of_two_results(device: str) -> None:
    @gp.operator
    def polar(x, y):
        a, b = _readTensor(x), _readTensor(y)
        return _hypot(a, b), _atan2(b, a)

    def forward(x, y):
        radius, angle = polar(x, y)
        return (radius, angle), (x, y, radius)

    def backward(rest, radius_bar, angle_bar):
        x, y, radius = rest
        return radius_bar * x / radius - angle_bar * y / radius**2, radius_bar * y / radius + angle_bar * x / radius**2

    polar.defvjp(forward, backward)
    check_grads(polar, (field(1, 2, 3), field(0.5, 0.1, 2)), modes=("rev",), order=2)


def test_functions_on_the_host(device: str) -> None:
    @gp.pipeline
    def on_host(u):
        return gp.HostOperator(np.sin, u, outputs=u.type)

    u = field(0.1, 0.7)
    for call, word in (
        (lambda: gp.grad(lambda u: on_host(u).sum())(u), "gradient"),
        (lambda: gp.jvp(on_host, (u,), (u,)), "tangent"),
    ):
        with pytest.raises(gp.SemanticError) as error:
            call()
        assert error.value.message.startswith(
            f"`sin` has no {word}: it runs on the host; call it in a function under `gp.pipeline`, and give that one a rule with"
        )
        assert error.value.loc.text.endswith("gp.HostOperator(np.sin, u, outputs=u.type)")
    on_host.defvjp(lambda u: (on_host(u), u), lambda u, cotangent: (cotangent * np.cos(u),))
    np.testing.assert_allclose(
        gp.grad(lambda u: (on_host(u) * u).sum())(u).numpy(), np.cos(u.numpy()) * u.numpy() + np.sin(u.numpy())
    )


def test_in_pipelines(device: str) -> None:
    @gp.pipeline
    def gradient(a):
        return gp.grad(lambda u: (clipped(u, 2.0) * u).sum())(gp.ScalarField(a))

    a = np.array([1.0, 3.0])
    np.testing.assert_array_equal(gradient(a), np.minimum(a, 2) + 2 * a)
    assert pickle.loads(pickle.dumps(length)) is length


def test_a_captured_value_that_a_pipeline_returns_keeps_its_own_rule(device: str) -> None:
    u = field(1, 2)
    square = u * u

    @gp.pipeline
    def constant(u):
        return square

    constant.defvjp(lambda args, result, cotangent: (cotangent * 100,))
    np.testing.assert_array_equal(gp.grad(lambda u: constant(u).sum())(u).numpy(), [100, 100])
    assert not gp.grad(lambda u: square.sum())(u).numpy().any()
    np.testing.assert_array_equal(gp.grad(lambda s: (s + 0).sum())(square).numpy(), [1, 1])


def test_wrong_rules_are_sentences() -> None:
    u = field(1, 2)

    @gp.operator
    def same(u):
        return _readTensor(u) + 0

    def message(rule: Any, call: Any) -> str:
        rule()
        with pytest.raises(gp.SemanticError) as error:
            call()
        return str(error.value.message)

    def gradient() -> Any:
        return gp.grad(lambda u: same(u).sum())(u)

    def tangent() -> Any:
        return gp.jvp(same, (u,), (u,))

    assert message(lambda: same.defjvp(lambda p, t: t[0]), tangent) == (
        "the rule of `same` returns a Field; it returns the result and its tangent, `out, tangent`"
    )
    assert message(lambda: same.defjvp(lambda p, t: (None, t[0].sum())), tangent) == (
        "the rule of `same` gives as tangent of its result a 0D float64 field; it is a 2 float64 field, or None for 0"
    )
    assert message(lambda: same.defjvp(lambda p, t: (None, t[0] * t[0])), gradient) == (
        "the rule of `same` has no transpose: its tangent is not linear in the tangents"
    )
    assert message(lambda: same.defvjp(lambda args, out, bar: bar), gradient) == (
        "the rule of `same` returns a Field; it returns a tuple with a gradient by each of 1 arguments, None for what has none"
    )
    assert message(lambda: None, lambda: same.defvjp(3)) == "`same.defvjp` takes a function, not an int"
