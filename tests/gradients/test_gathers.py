"""Cotangents of reads of neighbours: every border, fields smaller than the window, other grids, against differences in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.ir.text import show
from gpuop.ir.values import calls
from tests.gradients.differences import check

MODES = {"clamp": "edge", "zero": "constant", "wrap": "wrap", "symmetric": "symmetric", "reflect": "reflect"}


def random(*shape: int):
    return np.random.default_rng(sum(shape) + 3).random(shape) + 0.3


def at(a, border: str, *offsets: int):
    """The array at other places, which a border brings inside."""
    result = a
    for axis, offset in enumerate(offsets):
        n = a.shape[axis]
        places = np.arange(n) + offset
        if border == "clamp":
            inside = np.clip(places, 0, n - 1)
        elif border == "wrap":
            inside = places % n
        elif border == "symmetric":
            inside = np.minimum(places % (2 * n), (-1 - places) % (2 * n))
        elif border == "reflect":
            inside = np.minimum(places % max(2 * n - 2, 1), -places % max(2 * n - 2, 1))
        else:
            inside = np.clip(places, 0, n - 1)
            outside = (places < 0) | (places >= n)
            shape = [-1 if k == axis else 1 for k in range(a.ndim)]
            result = np.where(outside.reshape(shape), 0.0, np.take(result, inside, axis))
            continue
        result = np.take(result, inside, axis)
    return result


@gp.operator
def seven(u, border):
    total = _var(_convert_double(0))
    for k in range(-3, 4):
        value = _readTensor(u, _column + k, border=border)
        total @= total + value * value * (k + 4)
    return total * _readTensor(u)


@pytest.mark.parametrize("border", MODES)
@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_window_of_seven(device, border, n):
    """Fields of one, two and three points are smaller than the window."""
    check(
        lambda u: seven(u, border),
        lambda a: a * sum((k + 4) * at(a, border, k) ** 2 for k in range(-3, 4)),
        random(n),
    )


@gp.operator
def nine(u, border):
    total = _var(_convert_double(0))
    with _for(-1, 2) as i, _for(-1, 2) as j:
        total @= total + _readTensor(u, _row + i, _column + j, border=border) * (3 * i + j + 7)
    return _sin(total)


@pytest.mark.parametrize("border", MODES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (3, 4)])
def test_window_of_a_loop(device, border, shape):
    def expected(a):
        near = ((i, j) for i in (-1, 0, 1) for j in (-1, 0, 1))
        return np.sin(sum((3 * i + j + 7) * at(a, border, i, j) for i, j in near))

    check(lambda u: nine(u, border), expected, random(*shape))


@gp.operator
def diffused(u):
    centre = _readTensor(u)
    total = _var(centre)
    for row, column in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        d = _readTensor(u, _row + row, _column + column) - centre
        total @= total + 0.2 * d * _exp(-d * d)
    return total


def diffused_array(a):
    differences = [at(a, "clamp", *offset) - a for offset in ((0, 1), (0, -1), (1, 0), (-1, 0))]
    return a + sum(0.2 * d * np.exp(-d * d) for d in differences)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (4, 5)])
def test_chain_longer_than_the_field(device, shape):
    def chain(step):
        return lambda u: step(step(step(u)))

    check(chain(diffused), chain(diffused_array), random(*shape))


@gp.operator
def weighted(u, w):
    total = _var(_convert_double(0))
    with _for(3) as i, _for(3) as j:
        total @= total + _readTensor(u, _row + i - 1, _column + j - 1) * _readTensor(w, i, j)
    return total


def test_weights_in_a_field(device):
    """All threads read the same points of it: their shares are summed up."""

    def expected(a, w):
        return sum(at(a, "clamp", i - 1, j - 1) * w[i, j] for i in range(3) for j in range(3))

    check(weighted, expected, random(4, 5), random(3, 3))


@gp.operator
def thinned(u):
    _globalThreads(u.field_shape[0] // 2)
    return _readTensor(u, 2 * _column) * _readTensor(u, 2 * _column + 1) + _readTensor(u, 2 * _column + 2)


def test_every_second_point(device):
    check(thinned, lambda a: a[::2] * a[1::2] + np.append(a[2::2], a[-1]), random(8))


@gp.operator
def spread_out(u):
    _globalThreads(u.field_shape[0] * 3)
    value = _readTensor(u, _column // 3)
    return value * value


def test_points_that_several_threads_read(device):
    check(spread_out, lambda a: np.repeat(a * a, 3), random(4))


@pytest.mark.daily
@pytest.mark.parametrize("offset", [-2, -1, 0, 1])
@pytest.mark.parametrize("border", ["clamp", "zero"])
def test_rows_from_the_end(border, offset):
    """Some points have no thread that reads them, and some threads read outside."""

    @gp.operator
    def from_the_end(u):
        value = _readTensor(u, _columns - 1 + offset - _column, border=border)
        return value * value * _convert_double(_column + 3)

    def array(a):
        return at(a[::-1], border, -offset) ** 2 * np.arange(3, len(a) + 3)

    with gp.use_device("reference"):
        check(from_the_end, array, random(5))


@pytest.mark.daily
@pytest.mark.parametrize("threads", [10, 11, 12, 14])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_points_that_some_of_the_threads_read(before, threads):
    """Three threads read each point, fewer the first and the last ones, and none a point behind the last thread."""

    @gp.operator
    def spread(u):
        _globalThreads(threads)
        value = _readTensor(u, (_column + before) / 3)
        return value * value * _convert_double(_column + 3)

    def array(a):
        return a[np.minimum((np.arange(threads) + before) // 3, 3)] ** 2 * np.arange(3, threads + 3)

    with gp.use_device("reference"):
        check(spread, array, random(4))


@gp.operator
def quotient(u, w):
    return _readTensor(u, _row, _column + 2, border="zero") / _readTensor(w)


def test_threads_that_do_not_exist_divide_by_nothing():
    """A 0 in their place would be the divisor too."""
    with gp.use_device("reference"):
        check(quotient, lambda a, w: at(a, "zero", 0, 2) / w, random(3, 5), random(3, 5))


@gp.operator
def around(u, w):
    _globalThreads(w.field_shape[0])
    return _readTensor(u, _column + 1, border="wrap") * _readTensor(w)


def test_threads_that_go_around_a_field_of_another_grid():
    """More than once, or not quite once."""

    def array(a, w):
        return a[(np.arange(len(w)) + 1) % len(a)] * w

    with gp.use_device("reference"):
        for points, threads in ((3, 5), (3, 8), (7, 5), (5, 5)):
            check(around, array, random(points), random(threads))


@gp.operator
def columns(u):
    _globalThreads((u.field_shape[0], 3))
    value = _readTensor(u, _row)
    return value * value * _convert_double(_column + 1)


def test_axis_that_is_not_read_by(device):
    check(columns, lambda a: (a * a)[:, None] * np.arange(1, 4), random(4))


@pytest.mark.parametrize(
    "function",
    [
        lambda u: u[1:, ::2] * 2,
        lambda u: u[::-1, 3:0:-2] ** 2,
        lambda u: u.T * u.T,
        lambda u: np.pad(u * u, 2, mode="edge"),
        lambda u: np.pad(u, 3, mode="symmetric"),
        lambda u: np.roll(u * u, 2, axis=1),
        lambda u: np.repeat(u * u, 2, axis=1),
        lambda u: np.concatenate([u * u, u], axis=0),
        lambda u: np.stack([u * u, u], axis=0),
    ],
)
def test_layouts(device, function):
    check(function, function, random(4, 5))


# --- what is kept -------------------------------------------------------------------------------------------------------


@gp.operator
def bilateral(u):
    centre = _readTensor(u)
    total, weights = _var(_convert_double(0)), _var(_convert_double(0))
    for row in (-1, 0, 1):
        for column in (-1, 0, 1):
            value = _readTensor(u, _row + row, _column + column, border="wrap")
            weight = _exp(-(value - centre) * (value - centre))
            total @= total + weight * value
            weights @= weights + weight
    return total / weights


def kernels(function, *shape: int) -> list[str]:
    """The names of the kernels that a pull adds."""
    u = gp.ScalarField(random(*shape))
    _, pull = gp.vjp(function, u)
    names = [call.kernel.name for call in calls([pull(u)[0].node])]
    return [name for name in names if "_of_" in name]


def test_values_that_are_kept():
    """Nothing of a sum of functions of differences, one value of a function of a sum, two of a quotient of sums."""
    assert kernels(diffused, 6, 7) == ["adjoint_of_diffused"]
    assert kernels(lambda u: nine(u, "clamp"), 6, 7) == ["t_of_nine", "adjoint_of_nine"]
    assert kernels(bilateral, 6, 7) == ["t_of_bilateral", "t_of_bilateral", "adjoint_of_bilateral"]


def test_three_readers_share_a_value_that_is_dear():
    """Two compute it each for themselves, so that their kernel is one."""

    @gp.operator
    def dear(u, count):
        total = sum(_readTensor(u, _row, _column + n, border="wrap") for n in range(count))
        for _ in range(6):
            total = _sin(_exp(total))
        return total

    assert kernels(lambda u: dear(u, 2), 3, 7) == ["adjoint_of_dear"]
    assert kernels(lambda u: dear(u, 3), 3, 7)[1:] == ["adjoint_of_dear"]


def test_slopes_of_neighbours_are_shared():
    """Four exponentials, for the point and for its four neighbours."""
    _, pull = gp.vjp(diffused, u := gp.ScalarField(random(6, 7)))
    assert show(pull(u)[0].node.call.kernel).count("exp(") == 4


@gp.operator
def uneven(u):
    here, there = _readTensor(u), _readTensor(u, _row, _column + 1, border="wrap")
    ahead, back = there - here, here - there
    return ahead * ahead * ahead + 2.0 * _exp(back)


def test_differences_the_other_way_round():
    """One is the negative of the other, which functions that are not even tell apart."""
    with gp.use_device("reference"):
        check(uneven, lambda a: (np.roll(a, -1, 1) - a) ** 3 + 2 * np.exp(a - np.roll(a, -1, 1)), random(3, 5))


def test_quotient_of_sums(device):
    def expected(a):
        near = [at(a, "wrap", row, column) for row in (-1, 0, 1) for column in (-1, 0, 1)]
        weights = [np.exp(-((b - a) ** 2)) for b in near]
        return sum(w * b for w, b in zip(weights, near, strict=True)) / sum(weights)

    check(bilateral, expected, random(4, 5))


def test_gradient_of_a_chain_is_one_kernel():
    @gp.pipeline
    def gradient(a):
        return gp.grad(lambda u: (diffused(diffused(diffused(u))) ** 2).sum())(gp.ScalarField(a))

    a = random(64, 64).astype(np.float32)
    text = gradient.explain(a).splitlines()[0]
    assert text.startswith("1 kernel for")


@gp.operator
def in_three_axes(u):
    shifted = _readTensor(u, _layer + 1, _row - 1, _column + 2, border="reflect")
    return shifted * _readTensor(u, _layer - 1, _row, _column, border="wrap")


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 2, 1)])
def test_three_axes(device, shape):
    check(in_three_axes, lambda a: at(a, "reflect", 1, -1, 2) * at(a, "wrap", -1, 0, 0), random(*shape))


def test_field_without_points():
    assert gp.grad(lambda u: (u * u).sum())(gp.ScalarField(np.zeros((0, 4)))).numpy().shape == (0, 4)


@gp.operator
def apart(f, offset, border):
    return _readTensor(f, offset=offset, border=border) ** 2 + _readTensor(f)


@pytest.mark.parametrize("number", ["zero", 2.0])
@pytest.mark.parametrize("border", ["clamp", "wrap", "reflect"])
@pytest.mark.parametrize("offset", [(-1, 2), (1, -5), (2, 1)])
def test_places_outside_along_one_axis(offset, border, number):
    """A border for each axis, and an offset that lies outside wholly along one of them: what is read there is a number."""

    def array(a):
        rows, columns = at(a, border, offset[0]), np.arange(2) + offset[1]
        inside = (columns >= 0) & (columns < 2)
        return np.where(inside, rows[:, np.clip(columns, 0, 1)], 0.0 if number == "zero" else number) ** 2 + a

    check(lambda f: apart(f, offset, (border, number)), array, random(3, 2), make=gp.ScalarField)


@gp.operator
def wholly_apart(f, border):
    return _readTensor(f, offset=(-1, 2), border=border) ** 2


@pytest.mark.parametrize("number", ["zero", 2.0])
def test_no_place_inside(number):
    result = gp.grad(lambda f: wholly_apart(f, ("clamp", number)).sum())(gp.ScalarField(random(3, 2))).numpy()
    np.testing.assert_array_equal(result, np.zeros((3, 2)))
