"""Forward mode of kernels and graphs. Expected values are central differences of NumPy's models, and closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.borders import CHECKED, away

rng = np.random.default_rng(17)
Array = Any
STEP = 1e-6


def field(array: Array) -> Any:
    return gp.ScalarField(array, dtype=array.dtype)


def differences(model: Callable[..., Array], arrays: tuple[Array, ...], tangents: tuple[Array, ...]) -> Array:
    """The derivative of a function of arrays in a direction."""
    ends = [model(*(x + side * STEP * t for x, t in zip(arrays, tangents, strict=True))) for side in (1, -1)]
    return (ends[0] - ends[1]) / (2 * STEP)


def check(
    f: Callable[..., Any], model: Callable[..., Array], *arrays: Array, make: Any = field, tolerance: float = 1e-7
) -> None:
    tangents = tuple(rng.standard_normal(x.shape) for x in arrays)
    value, slope = gp.jvp(f, tuple(map(make, arrays)), tuple(map(make, tangents)))
    np.testing.assert_allclose(value.numpy(), model(*arrays), 1e-12, 1e-12)
    np.testing.assert_allclose(slope.numpy(), differences(model, arrays, tangents), tolerance, tolerance)


@gp.operator
def diffused(u, border):
    """A window, a loop, a function of differences, a variable that is overwritten."""
    centre = _readTensor(u)
    flow = _var(centre * 0)
    with _for(-1, 2) as i:
        step = _readTensor(u, _row + i, _column + 2, border=border) - centre
        flow @= flow + step * _exp(-(step * step)) * flow + step
    with _if(flow > 0.3):
        flow @= flow * flow
    with _else():
        flow @= _sin(flow)
    return centre + flow


def diffused_model(u: Array, border: str, fill: float = 0) -> Array:
    flow = 0 * u
    for i in (-1, 0, 1):
        step = away(u, i, 2, border=border, fill=fill) - u
        flow = flow + step * np.exp(-(step**2)) * flow + step
    return u + np.where(flow > 0.3, flow**2, np.sin(flow))


@pytest.mark.parametrize("border", CHECKED)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (9, 11)], ids=str)
def test_windows_loops_and_branches(device: str, border: str, shape: tuple[int, int]) -> None:
    check(
        lambda u: diffused(diffused(u, border), border),
        lambda u: diffused_model(diffused_model(u, border), border),
        rng.random(shape),
    )


def test_outside_a_number_the_tangent_is_0(device: str) -> None:
    check(lambda u: diffused(u, 0.7), lambda u: diffused_model(u, "zero", 0.7), rng.random((3, 4)))


@gp.operator
def grown(x, rate):
    value, turns = _var(_readTensor(x)), _var(0)
    with _while((value < 3) & (turns < 50)):
        value @= value * (1 + _readTensor(rate)) + 0.1 * value * value
        turns @= turns + 1
        with _if(value > 2.5):
            _break()
    return value


def grown_model(x: Array, rate: Array) -> Array:
    value, on = x.copy(), x < 3
    while on.any():
        value = np.where(on, value * (1 + rate) + 0.1 * value * value, value)
        on = on & (value < 3) & (value <= 2.5)
    return value


def test_loops_without_a_bound(device: str) -> None:
    check(grown, grown_model, rng.random(7) + 0.1, np.asarray(0.2))


def test_parameters(device: str) -> None:
    """A scalar argument is differentiable as other fields are, and a scalar may be its tangent."""
    x, rate = rng.random(7) + 0.1, gp.Parameter(np.float64(0.2))
    _, slope = gp.jvp(lambda rate: grown(field(x), rate), (rate,), (gp.Parameter(np.float64(1.0)),))
    expected = differences(lambda rate: grown_model(x, rate), (np.asarray(0.2),), (np.asarray(1.0),))
    np.testing.assert_allclose(slope.numpy(), expected, 1e-7)


def test_private_arrays_and_components(device: str) -> None:
    @gp.operator
    def mixed(v):
        value = _readTensor(v)
        past = _doubleArray(3)
        with _for(0, 3) as i:
            past[i] = value.x * _convert_double(i + 1)
        turned = _var(value)
        turned.y = turned.x * value.z
        turned.x = past[2] * turned.y
        return turned * _dot(value, turned)

    def model(v: Array) -> Array:
        x, y, z = v[..., 0], v[..., 0] * v[..., 2], v[..., 2]
        turned = np.stack([3 * x * y, y, z], -1)
        return turned * (turned * v).sum(-1, keepdims=True)

    check(mixed, model, rng.random((4, 3)), make=lambda a: gp.VectorField(a, dtype="float64"))


def test_local_memory(device: str) -> None:
    @gp.operator
    def edges(u):
        _localThreads(4, 8)
        tile = _tile(u, 4, 8, halo=1, border="wrap")
        return tile[_localRow, _localColumn - 1] * tile[_localRow + 1, _localColumn] + _sqrt(
            tile[_localRow, _localColumn]
        )

    check(
        edges,
        lambda u: away(u, 0, -1, border="wrap") * away(u, 1, 0, border="wrap") + np.sqrt(u),
        rng.random((8, 16)) + 0.1,
    )


def test_groups_of_threads(device: str) -> None:
    @gp.operator
    def of_rows(u):
        _localThreads(1, 8)
        x = _readTensor(u)
        return (
            _reduceGroup(x * x, "max", over="column")
            + _reduceGroup(x, "mul", over="column") * x
            + _reduceGroup(_sin(x), "add", over="column")
            + _reduceGroup(x, lambda a, b: a + b + a * b, over="column")
            + _scanGroup(x, "mul", over="column") * _scanGroup(x * x, "add", inclusive=False, over="column")
            + _selectGroup(x, 3, over="column") * _broadcastGroup(x * x, 2, over="column")
            + _shuffleGroupUp(x * x, 1, over="column") * _shuffleGroupXor(x, 1, over="column")
        )

    def model(u: Array) -> Array:
        total = 0 * u
        for a, b in zip(u, total, strict=True):
            before = np.concatenate([[0], np.cumsum(a * a)[:-1]])
            up, swapped = np.concatenate([a[:1], a[:-1]]) ** 2, a.reshape(-1, 2)[:, ::-1].ravel()
            b += (a * a).max() + a.prod() * a + np.sin(a).sum() + (1 + a).prod() - 1
            b += np.cumprod(a) * before + np.sort(a)[3] * a[2] ** 2 + up * swapped
        return total

    check(of_rows, model, rng.random((3, 8)))


def test_atomic_sums_and_places(device: str) -> None:
    @gp.operator(outputs=lambda u: gp.FieldType(4, (), "float64"), default=2.0)
    def binned(u):
        _globalThreads(20)
        x = _readTensor(u)
        _atomic_add(_pointerTo(_out0, _column % 4), x * x)
        _atomic_sub(_pointerTo(_out0, _convert_int(x * 4)), x)

    def model(u: Array) -> Array:
        total = np.full(4, 2.0)
        np.add.at(total, np.arange(len(u)) % 4, u * u)
        np.subtract.at(total, (u * 4).astype(int), u)
        return total

    check(binned, model, rng.random(20))


def test_several_outputs_written_elsewhere(device: str) -> None:
    @gp.operator(outputs=lambda u: (u.type, u.type), default=(3.0, 0.0))
    def apart(u):
        x = _readTensor(u)
        with _if(_column % 2 == 0):
            _writeTensor(_out0, x * x, 9 - _column)
        _writeTensor(_out1, _exp(x))

    u, t = rng.random(10), rng.random(10)
    values, slopes = gp.jvp(apart, (field(u),), (field(t),))
    even = np.arange(10) % 2 == 0
    np.testing.assert_allclose(values[0].numpy(), np.where(even, u * u, 3)[::-1], 1e-14)
    np.testing.assert_allclose(slopes[0].numpy(), np.where(even, 2 * u * t, 0)[::-1], 1e-14)
    np.testing.assert_allclose(slopes[1].numpy(), np.exp(u) * t, 1e-14)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_updated_arguments(device: str, elsewhere: bool) -> None:
    @gp.operator(inout="a")
    def added(a, b):
        place = (9 - _column,) if elsewhere else ()
        with _if(_column > 3):
            _writeTensor(a, _readTensor(a, *place) * _readTensor(b), *place)

    def model(a: Array, b: Array) -> Array:
        places = np.arange(10)
        result = a.copy()
        moved = 9 - places if elsewhere else places
        result[moved[4:]] = a[moved[4:]] * b[4:]
        return result

    check(added, model, rng.random(10), rng.random(10))


@gp.operator
def moved(u, flow):
    return _sampleTensor(u, _row + _readTensor(flow), _column + 0.3 * _readTensor(flow))


def moved_model(u: Array, flow: Array) -> Array:
    row, column = (axis.astype(float) for axis in np.indices(u.shape))
    row, column = row + flow, column + 0.3 * flow
    top, left = np.floor(row), np.floor(column)
    s, t = row - top, column - left

    def at(i: Array, j: Array) -> Array:
        return u[np.clip(i, 0, u.shape[0] - 1).astype(int), np.clip(j, 0, u.shape[1] - 1).astype(int)]

    upper = at(top, left) * (1 - t) + at(top, left + 1) * t
    lower = at(top + 1, left) * (1 - t) + at(top + 1, left + 1) * t
    return upper * (1 - s) + lower * s


def test_samples_between_points(device: str) -> None:
    check(moved, moved_model, rng.random((6, 7)), 3 * rng.random((6, 7)))


def test_samples_at_points_have_the_slope_to_the_next(device: str) -> None:
    """A registration begins there; at the last point it is 0."""
    u = rng.random((6, 7))
    value, slope = gp.jvp(lambda flow: moved(field(u), flow), (field(0 * u),), (field(0 * u + 1),))
    np.testing.assert_array_equal(value.numpy(), u)
    np.testing.assert_allclose(slope.numpy(), away(u, 1, 0) - u + 0.3 * (away(u, 0, 1) - u), 1e-13, 1e-13)


def test_own_rounding_beside_samples_stays(device: str) -> None:
    @gp.operator
    def both(x, u):
        at = _readTensor(x)
        return _sampleTensor(u, at) + 10 * _ceil(at) * at

    u, x = rng.random(5), np.array([1.0, 2.0, 2.5])
    _, slope = gp.jvp(lambda x: both(x, field(u)), (field(x),), (field(0 * x + 1),))
    np.testing.assert_allclose(slope.numpy(), u[[2, 3, 3]] - u[[1, 2, 2]] + 10 * np.ceil(x), 1e-13)


def test_complex_numbers(device: str) -> None:
    z, t = (rng.random(5) + 1j * rng.random(5) for _ in range(2))
    fields = [gp.ComplexField(a, dtype="complex128") for a in (z, t)]
    for f, slope in (
        (lambda z: np.exp(z) / z, (np.exp(z) / z - np.exp(z) / z**2) * t),
        (lambda z: abs(z) ** 2, 2 * (z.conj() * t).real),
        (lambda z: np.conj(z) * np.sqrt(z), t.conj() * np.sqrt(z) + z.conj() * t / (2 * np.sqrt(z))),
    ):
        np.testing.assert_allclose(gp.jvp(f, fields[:1], fields[1:])[1].numpy(), slope, 1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_types_are_those_of_the_values(device: str, dtype: str) -> None:
    x, t = (rng.random(6).astype(dtype) for _ in range(2))
    value, slope = gp.jvp(lambda x: np.sin(x).astype("float64") * x.astype("float64"), (field(x),), (field(t),))
    assert (value.dtype, slope.dtype) == ("float64", "float64")
    expected = (np.cos(x.astype(float)) * x + np.sin(x)) * t
    np.testing.assert_allclose(slope.numpy(), expected, 4e-3 if dtype == "float16" else 1e-6)
    assert gp.jvp(np.sqrt, (field(x + np.asarray(1, dtype)),), (field(t),))[1].dtype == dtype


def test_what_does_not_depend_has_tangent_0(device: str) -> None:
    """Captured values are constants, though they are made of an argument; integers have no tangents."""
    x = field(rng.random(4))
    twice = x * 2
    _, slope = gp.jvp(lambda x: x * twice, (x,), (field(np.ones(4)),))
    np.testing.assert_array_equal(slope.numpy(), twice.numpy())
    slopes = gp.jvp(lambda x: (np.floor(x), twice, (x > 0.5), np.argsort(x)), (x,), (x,))[1]
    assert not slopes[0].numpy().any() and not slopes[1].numpy().any() and slopes[2:] == (None, None)
    assert gp.jvp(lambda x: x * x, (x,), (x,))[1].numpy().any()


def test_stop_gradient(device: str) -> None:
    x = rng.random(4)
    value, slope = gp.jvp(lambda x: x * gp.stop_gradient(x * x), (field(x),), (field(np.ones(4)),))
    np.testing.assert_allclose(value.numpy(), x**3, 1e-14)
    np.testing.assert_allclose(slope.numpy(), x**2, 1e-14)


def test_linearize(device: str) -> None:
    u, tangents = rng.random((5, 6)), rng.standard_normal((2, 5, 6))
    value, push = gp.linearize(lambda u: diffused(u, "wrap"), field(u))
    np.testing.assert_allclose(value.numpy(), diffused_model(u, "wrap"), 1e-12)
    for t in tangents:
        expected = differences(lambda u: diffused_model(u, "wrap"), (u,), (t,))
        np.testing.assert_allclose(push(field(t)).numpy(), expected, 1e-7, 1e-7)


def test_derivatives_of_derivatives(device: str) -> None:
    x = rng.random(5) + 0.5
    one = field(np.ones(5))

    def slope(f):
        return lambda x: gp.jvp(f, (x,), (one,))[1]

    third = slope(slope(slope(np.log)))
    np.testing.assert_allclose(third(field(x)).numpy(), 2 / x**3, 1e-12)


def test_in_pipelines(device: str) -> None:
    @gp.pipeline
    def slope(u, t):
        u, t = gp.ScalarField(u), gp.ScalarField(t)
        return gp.jvp(lambda u: diffused(u, "clamp"), (u,), (t,))[1]

    u, t = rng.random((2, 8, 9))
    np.testing.assert_allclose(slope(u, t), differences(lambda u: diffused_model(u, "clamp"), (u,), (t,)), 1e-7, 1e-7)


SIMPLE: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(),
    "mean": lambda x: np.mean(x, axis=0),
    "var": lambda x: np.var(x, axis=1),
    "std": lambda x: np.std(x),
    "norm": lambda x: np.linalg.norm(x),
    "max": lambda x: np.max(x, axis=0),
    "min": lambda x: np.min(x),
    "prod": lambda x: np.prod(x, axis=1),
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "cumprod": lambda x: np.cumprod(x, axis=0),
    "sort": lambda x: np.sort(x, axis=1),
    "median": lambda x: np.median(x, axis=0),
    "product": lambda x: x @ x.T,
    "take": lambda x: np.take(x, np.array([2, 0, 2]), axis=1),
    "pad": lambda x: np.pad(x, 2, mode="reflect"),
    "roll": lambda x: np.roll(x, 2, 1) * x[::-1],
    "where": lambda x: np.where(x > 0.5, np.sqrt(x), x * x),
    "clip": lambda x: np.clip(x, 0.2, 0.8) ** 2,
    "stack": lambda x: np.concatenate([x, np.exp(x)], axis=0),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_functions_of_numpy(device: str, name: str) -> None:
    check(SIMPLE[name], SIMPLE[name], rng.random((5, 7)) + 0.05)
