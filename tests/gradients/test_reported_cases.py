"""Cases in which users of differentiable kernel languages got gradients that were wrong, or zero, without a word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.gradients.differences import check

rng = np.random.default_rng(11)
ROW = rng.random(6) + 0.3


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with gp.use_device("reference"):
        yield


@gp.operator
def squared(u):
    return _readTensor(u) ** 2


@gp.operator
def doubled(u):
    return _readTensor(u) * 2


def test_a_result_that_two_kernels_write() -> None:
    """Each operator has a result of its own: both count."""
    check(lambda u: squared(u) + doubled(u), lambda a: a * a + 2 * a, ROW)


def test_an_array_that_changes_after_the_record() -> None:
    """A field has the values that the array had; the gradient is that at them."""
    a = ROW.copy()
    out, pull = gp.vjp(squared, gp.Field(a))
    a[:] = 0
    np.testing.assert_allclose(pull(gp.Field(np.ones(6)))[0].numpy(), 2 * ROW, 1e-14)
    np.testing.assert_allclose(out.numpy(), ROW**2, 1e-14)


def test_pulls_may_be_repeated() -> None:
    """Nothing is consumed, added up or zeroed: twice the same bits, whatever was pulled between."""
    _, pull = gp.vjp(squared, gp.Field(ROW))
    seeds = [gp.Field(rng.random(6)) for _ in range(2)]
    first, other, again = (pull(seed)[0].numpy() for seed in (*seeds, seeds[0]))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(other, 2 * ROW * seeds[1].numpy(), 1e-14)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gradients_have_the_dtype_of_their_arguments(dtype: str) -> None:
    assert gp.grad(lambda u: squared(u).sum())(gp.ScalarField(ROW, dtype=dtype)).dtype == dtype


@gp.operator(inout="a")
def accumulated(a, b):
    before = _readTensor(a)
    _writeTensor(a, before * _readTensor(b) + before * before)


def test_a_value_that_is_read_and_then_overwritten() -> None:
    check(lambda a, b: accumulated(a, b) ** 2, lambda a, b: (a * b + a * a) ** 2, ROW, ROW[::-1].copy())


def test_the_gradient_of_an_intermediate_value() -> None:
    """The derivative of the rest of the program by it."""
    middle = squared(gp.Field(ROW))
    slope = gp.grad(lambda m: (doubled(m) ** 3).sum())(middle).numpy()
    np.testing.assert_allclose(slope, 24 * ROW**4, 1e-12)


# --- loops --------------------------------------------------------------------------------------------------------------


@gp.operator
def behind_a_loop(u, counts):
    x = _readTensor(u)
    before, total = x * x, _var(_convert_double(0))
    with _for(_min(_readTensor(counts), 4)) as k:
        total @= total + before * _convert_double(k + 1)
    return total * before


@gp.operator
def nested(u):
    total = _var(_readTensor(u))
    with _for(3) as i, _for(2) as j:
        total @= total * _readTensor(u, _column + i) + _convert_double(j)
    return total


@gp.operator
def continued(u):
    total = _var(_convert_double(0))
    with _for(5) as k:
        value = _readTensor(u, _column + k, border="wrap")
        with _if(value < 0.7):
            _continue()
        total @= total + value**3
    return total


@gp.operator
def one_component(u):
    v = _var(_double3(0.0, 1.0, 2.0))
    v.x = _readTensor(u)
    v.x = v.x * v.x
    v.y = v.x * v.y + v.x
    return v.x + v.y * v.z


@gp.operator
def of_an_array(u):
    parts = _doubleArray(4)
    with _for(4) as k:
        parts[k] = _readTensor(u, _column + k, border="wrap") ** 2
    with _for(1, 4) as k:
        parts[k] = parts[k] + parts[k - 1] * parts[0]
    return parts[3]


def shifted(a: Any, k: int) -> Any:
    return np.roll(a, -k)


def test_a_value_from_before_a_loop() -> None:
    counts = np.array([0, 1, 2, 3, 4, 9], np.int32)

    def expected(a: Any) -> Any:
        return a**4 * np.minimum(counts, 4) * (np.minimum(counts, 4) + 1) / 2

    check(lambda u: behind_a_loop(u, gp.ScalarField(counts)), expected, ROW)


def test_nested_loops_count_once() -> None:
    def expected(a: Any) -> Any:
        total = a
        for i in range(3):
            for j in range(2):
                total = total * a[np.minimum(np.arange(6) + i, 5)] + j
        return total

    check(nested, expected, ROW)


def test_continue() -> None:
    def expected(a: Any) -> Any:
        return sum(np.where(shifted(a, k) < 0.7, 0, shifted(a, k) ** 3) for k in range(5))

    check(continued, expected, ROW)


def test_components_that_are_overwritten() -> None:
    check(one_component, lambda a: a**2 + (a**2 + a**2) * 2, ROW)


def test_arrays_of_a_thread() -> None:
    def expected(a: Any) -> Any:
        parts = [shifted(a, k) ** 2 for k in range(4)]
        for k in range(1, 4):
            parts[k] = parts[k] + parts[k - 1] * parts[0]
        return parts[3]

    check(of_an_array, expected, ROW)


def test_loops_of_many_iterations() -> None:
    @gp.operator
    def long(u):
        x = _var(_readTensor(u))
        with _for(200):
            x @= x - 0.01 * x * x
        return x

    def expected(a: Any) -> Any:
        for _ in range(200):
            a = a - 0.01 * a * a
        return a

    check(long, expected, ROW)


# --- simulations --------------------------------------------------------------------------------------------------------

VELOCITIES = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
WEIGHTS = (4 / 9, *[1 / 9] * 4, *[1 / 36] * 4)


@gp.operator(outputs=lambda f: f.type)
def collided_and_streamed(f):
    """A step of the lattice Boltzmann method with nine velocities, relaxation 1.2, periodic."""
    parts = [_readTensorElement(f, _row - y, _column - x, k, border="wrap") for k, (y, x) in enumerate(VELOCITIES)]
    density = _var(parts[0])
    for part in parts[1:]:
        density @= density + part
    flow = [
        sum(v[axis] * part for v, part in zip(VELOCITIES, parts, strict=True) if v[axis]) / density for axis in (0, 1)
    ]
    square = flow[0] * flow[0] + flow[1] * flow[1]
    for k, ((y, x), w) in enumerate(zip(VELOCITIES, WEIGHTS, strict=True)):
        along = y * flow[0] + x * flow[1]
        rest = w * density * (1 + 3 * along + 4.5 * along * along - 1.5 * square)
        _writeTensorElement(_out0, parts[k] + 1.2 * (rest - parts[k]), k)


def streamed_array(f: Any) -> Any:
    parts = np.stack([np.roll(f[..., k], v, (0, 1)) for k, v in enumerate(VELOCITIES)], -1)
    density = parts.sum(-1)
    flow = [(parts * np.array([v[axis] for v in VELOCITIES])).sum(-1) / density for axis in (0, 1)]
    square = flow[0] ** 2 + flow[1] ** 2
    along = [y * flow[0] + x * flow[1] for y, x in VELOCITIES]
    rest = [w * density * (1 + 3 * a + 4.5 * a * a - 1.5 * square) for a, w in zip(along, WEIGHTS, strict=True)]
    return parts + 1.2 * (np.stack(rest, -1) - parts)


def test_steps_of_a_lattice_boltzmann_method() -> None:
    """Three of them; the gradient is not zero, and that of differences."""
    f = 0.1 + rng.random((2, 3, 9))

    def three(step: Any) -> Any:
        return lambda f: step(step(step(f)))

    out, pull = gp.vjp(three(collided_and_streamed), gp.Field(f, 1))
    np.testing.assert_allclose(out.numpy(), three(streamed_array)(f), 1e-12)
    weights, direction, step = rng.standard_normal(f.shape), rng.standard_normal(f.shape), 1e-6
    slope = (
        weights * (three(streamed_array)(f + step * direction) - three(streamed_array)(f - step * direction))
    ).sum()
    result = (pull(gp.Field(weights, 1))[0].numpy() * direction).sum()
    np.testing.assert_allclose(result, slope / (2 * step), 1e-7)
    assert abs(result) > 1e-3


@gp.operator
def advected(flow, quantity):
    """A quantity of two components at the places that the flow brings."""
    y, x = _readTensorElement(flow, 0), _readTensorElement(flow, 1)
    return _sampleTensor(quantity, offset=(0.3 * y, 0.3 * x), border="wrap")


def sampled_array(flow: Any, quantity: Any) -> Any:
    rows, columns = np.meshgrid(*map(np.arange, quantity.shape[:2]), indexing="ij")
    y, x = rows + 0.3 * flow[..., 0], columns + 0.3 * flow[..., 1]
    i, j = np.floor(y).astype(int), np.floor(x).astype(int)
    v, u = (y - i)[..., None], (x - j)[..., None]

    def at(a: Any, b: Any) -> Any:
        return quantity[a % quantity.shape[0], b % quantity.shape[1]]

    top, low = at(i, j) * (1 - u) + at(i, j + 1) * u, at(i + 1, j) * (1 - u) + at(i + 1, j + 1) * u
    return top * (1 - v) + low * v


def test_advection_of_several_components() -> None:
    """By the flow and by the quantity, to six digits: a share of the wrong sign of two per cent would show."""
    flow, quantity = rng.random((3, 4, 2)) + 0.1, rng.random((3, 4, 2))
    out, pull = gp.vjp(advected, gp.Field(flow, 1), gp.Field(quantity, 1))
    np.testing.assert_allclose(out.numpy(), sampled_array(flow, quantity), 1e-12)
    weights, step = rng.standard_normal(flow.shape), 1e-6
    bars = [bar.numpy() for bar in pull(gp.Field(weights, 1))]
    for number, bar in enumerate(bars):
        direction = rng.standard_normal(flow.shape)
        ends = []
        for side in (step, -step):
            args = [flow, quantity]
            args[number] = args[number] + side * direction
            ends.append((weights * sampled_array(*args)).sum())
        np.testing.assert_allclose((bar * direction).sum(), (ends[0] - ends[1]) / (2 * step), 1e-6)


def test_registration_from_no_displacement() -> None:
    """The slope by whole coordinates is that to the next point, not 0."""
    image = rng.random((4, 5))

    @gp.operator
    def warped(picture, shift):
        return _sampleTensor(picture, offset=(_readTensor(shift, 0), _readTensor(shift, 1)))

    slope = gp.grad(lambda shift: warped(gp.Field(image), shift).sum())(gp.Field(np.zeros(2))).numpy()
    down = np.diff(image, axis=0, append=image[-1:]).sum()
    np.testing.assert_allclose(slope, [down, np.diff(image, axis=1, append=image[:, -1:]).sum()], 1e-12)


def test_what_cannot_be_differentiated_does_not_answer() -> None:
    """An all-zero Jacobian is the worst of answers."""

    @gp.operator
    def endless(u):
        x = _var(_readTensor(u))
        with _while(x > 0.1):
            x @= x * 0.5
        return x

    with pytest.raises(gp.SemanticError, match=r"`gp\.jvp`"):
        gp.grad(lambda u: endless(u).sum())(gp.Field(ROW))
    host = gp.HostOperator(np.sin, gp.Field(ROW), outputs=gp.Field(ROW).type)
    assert host.numpy().any()
    with pytest.raises(gp.SemanticError, match="it runs on the host"):
        gp.grad(lambda u: gp.HostOperator(np.sin, u, outputs=u.type).sum())(gp.Field(ROW))
