"""The cases that a compiler of image pipelines tests its reverse mode with, in the words of gpuop, beside differences in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.gradients.differences import check

rng = np.random.default_rng(7)
ROW, SQUARE = rng.random(5) + 0.3, rng.random((4, 5)) + 0.3


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with gp.use_device("reference"):
        yield


# --- numbers ------------------------------------------------------------------------------------------------------------


@gp.operator
def of_numbers(u):
    x = _readTensor(u)
    total = _var(x * x + 3 * x - x / 7 + 2 / x)
    total @= total + _sin(x) + _cos(x) * _tan(x) + _asin(x / 9) + _acos(x / 9) + _atan(x) + _atan2(x, 2.0)
    total @= total + _exp(x) + _log(x) + _sqrt(x) + _rsqrt(x) + x**3 + _tanh(x) + _sinh(x) * _cosh(x)
    total @= total + _floor(x) + _ceil(x) + _round(x) + _trunc(x) + _fabs(x - 9)
    return total + _fmax(x, 0.5) + _fmin(x, 0.25) + _where(x > 0.6, x * x, -x) + _mix(x, x * x, 0.3)


def of_numbers_array(x: Any) -> Any:
    total = x * x + 3 * x - x / 7 + 2 / x
    total = (
        total
        + np.sin(x)
        + np.cos(x) * np.tan(x)
        + np.arcsin(x / 9)
        + np.arccos(x / 9)
        + np.arctan(x)
        + np.arctan2(x, 2)
    )
    total = total + np.exp(x) + np.log(x) + np.sqrt(x) + x**-0.5 + x**3 + np.tanh(x) + np.sinh(x) * np.cosh(x)
    total = total + np.floor(x) + np.ceil(x) + np.round(x) + np.trunc(x) + np.abs(x - 9)
    return total + np.fmax(x, 0.5) + np.fmin(x, 0.25) + np.where(x > 0.6, x * x, -x) + x + (x * x - x) * 0.3


@pytest.mark.parametrize("value", [0.4, 1.3])
def test_scalars(value: float) -> None:
    check(of_numbers, of_numbers_array, np.array(value))


def test_scalars_of_float32() -> None:
    x, step = np.array([0.4, 1.3]), 1e-6
    slope = gp.grad(lambda u: of_numbers(u).sum())(gp.ScalarField(x, dtype="float32")).numpy()
    np.testing.assert_allclose(slope, (of_numbers_array(x + step) - of_numbers_array(x - step)) / (2 * step), 2e-5)


# --- boxes, updates, reductions -----------------------------------------------------------------------------------------


def box(border: str) -> Any:
    @gp.operator
    def summed(u):
        return _readTensor(u, _column, border=border) * 2 + _readTensor(u, _column + 1, border=border) ** 2

    return summed


@gp.operator
def box_2d(u):
    total = _var(_convert_double(0))
    with _for(-1, 2) as i, _for(-1, 2) as j:
        total @= total + _readTensor(u, _row + i, _column + j)
    return total / 9


def around(a: Any) -> Any:
    padded = np.pad(a, 1, mode="edge")
    return sum(padded[i : i + a.shape[0], j : j + a.shape[1]] for i in range(3) for j in range(3)) / 9


def test_box_without_a_border_of_inner_points() -> None:
    """The loss looks at inner points alone, where reads stay inside."""
    inner = box("unchecked")
    check(lambda u: inner(u * u)[:-1], lambda a: a[:-1] ** 2 * 2 + a[1:] ** 4, ROW)


def test_box_with_a_border() -> None:
    check(box("clamp"), lambda a: 2 * a + np.append(a[1:], a[-1]) ** 2, ROW)


def test_box_of_two_dimensions() -> None:
    check(lambda u: box_2d(u) ** 2, lambda a: around(a) ** 2, SQUARE)


@gp.operator
def updated(u):
    x = _var(_readTensor(u))
    x @= x + _readTensor(u, _column + 1)
    y = x * 3
    x @= x * x * y
    return x + y


def test_updates_linear_and_not() -> None:
    def expected(a: Any) -> Any:
        x = a + np.append(a[1:], a[-1])
        return x * x * (3 * x) + 3 * x

    check(updated, expected, ROW)


@gp.operator
def convolved(u, kernel):
    total = _var(_convert_double(0))
    with _for(3) as k:
        total @= total + _readTensor(u, _column + k - 1) * _readTensor(kernel, k)
    return total * total


def test_convolution_by_both_operands() -> None:
    def expected(a: Any, w: Any) -> Any:
        padded = np.pad(a, 1, mode="edge")
        return sum(padded[k : k + a.size] * w[k] for k in range(3)) ** 2

    check(convolved, expected, ROW, rng.random(3))


@gp.operator
def spread_over_rows(line, picture):
    _globalThreads(picture.field_shape)
    return _readTensor(line, _column) * _readTensor(picture)


def test_line_in_two_dimensions() -> None:
    check(spread_over_rows, lambda a, b: a * b, ROW, SQUARE)


@gp.operator
def polynomial(x, coefficients):
    total, value = _var(_convert_double(0)), _readTensor(x)
    with _for(4) as k:
        total @= total * value + _readTensor(coefficients, k)
    return total


def test_horner_scheme() -> None:
    check(polynomial, lambda x, c: ((c[0] * x + c[1]) * x + c[2]) * x + c[3], ROW, rng.random(4))


@gp.operator
def in_order(u):
    total = _var(_readTensor(u))
    with _for(3) as k:
        total @= _sin(total) * _readTensor(u, _column + k) + total * total
    return total


def test_order_of_iterations() -> None:
    def expected(a: Any) -> Any:
        total = a
        for k in range(3):
            total = np.sin(total) * a[np.minimum(np.arange(5) + k, 4)] + total * total
        return total

    check(in_order, expected, ROW * 0.5)


@gp.operator
def of_a_disc(u):
    total = _var(_convert_double(0))
    with _for(-2, 3) as i, _for(-2, 3) as j, _if(i * i + j * j <= 4):
        total @= total + _readTensor(u, _row + i, _column + j, border="zero") ** 2
    return total


def test_condition_of_a_reduction() -> None:
    def expected(a: Any) -> Any:
        padded = np.pad(a, 2)
        near = [(i, j) for i in range(-2, 3) for j in range(-2, 3) if i * i + j * j <= 4]
        return sum(padded[2 + i : 2 + i + a.shape[0], 2 + j : 2 + j + a.shape[1]] ** 2 for i, j in near)

    check(of_a_disc, expected, SQUARE)


# --- resampling, other grids --------------------------------------------------------------------------------------------


@gp.operator
def at_data(table, places):
    _globalThreads(places.field_shape)
    place = _readTensor(places)
    low = _floor(place)
    n, share = _convert_int(low), place - low
    return _readTensor(table, n) * (1 - share) + _readTensor(table, n + 1) * share


@gp.operator
def at_data_2d(table, places):
    _globalThreads(places.field_shape)
    y, x = _readTensorElement(places, 0), _readTensorElement(places, 1)
    return _sampleTensor(table, y, x)


def test_linear_resampling_of_a_line() -> None:
    """By the table and by the places."""

    def expected(table: Any, places: Any) -> Any:
        low = np.floor(places).astype(int)
        share = places - low
        return table[low] * (1 - share) + table[np.minimum(low + 1, 4)] * share

    check(at_data, expected, ROW, np.array([0.2, 3.7, 1.5, 1.9]))


def test_linear_resampling_of_a_picture() -> None:
    def expected(table: Any, places: Any) -> Any:
        y, x = places[..., 0], places[..., 1]
        i, j = np.floor(y).astype(int), np.floor(x).astype(int)
        v, u = y - i, x - j
        top = table[i, j] * (1 - u) + table[i, j + 1] * u
        return top * (1 - v) + (table[i + 1, j] * (1 - u) + table[i + 1, j + 1] * u) * v

    places = np.array([[0.2, 3.7], [2.5, 0.4], [1.9, 2.1]])
    own, pull = gp.vjp(at_data_2d, gp.Field(SQUARE), gp.VectorField(places))
    weights = np.array([1.0, -2, 0.5])
    np.testing.assert_allclose(own.numpy(), expected(SQUARE, places), 1e-12)
    by_table, by_places = (bar.numpy() for bar in pull(gp.Field(weights)))
    step = 1e-6
    for result, arg, f in (
        (by_table, SQUARE, lambda a: expected(a, places)),
        (by_places, places, lambda p: expected(SQUARE, p)),
    ):
        for at in np.ndindex(arg.shape):
            moved = np.zeros(arg.shape)
            moved[at] = step
            slope = (weights * (f(arg + moved) - f(arg - moved))).sum() / (2 * step)
            np.testing.assert_allclose(result[at], slope, 1e-6, 1e-7)


@gp.operator
def by_fours(u):
    _globalThreads(u.field_shape[0] // 4)
    total = _var(_convert_double(0))
    with _for(4) as k:
        total @= total + _readTensor(u, 4 * _column + k) ** 2
    return total


@gp.operator
def quarters(u):
    _globalThreads(4 * u.field_shape[0])
    return _readTensor(u, _column / 4) ** 2 * _convert_double(_column + 1)


@gp.operator(outputs=lambda u: gp.FieldType(u.field_shape[::-1], (), "float64"))
def turned(u):
    return _readTensor(u, _column, _row) ** 2


def test_fewer_and_more_points() -> None:
    long = rng.random(8)
    check(by_fours, lambda a: (a.reshape(2, 4) ** 2).sum(1), long)
    check(quarters, lambda a: np.repeat(a, 4) ** 2 * np.arange(1, 4 * a.size + 1), ROW[:2])


def test_exchanged_axes() -> None:
    check(turned, lambda a: a.T**2, SQUARE)


@gp.operator(outputs=lambda u: u.type, default=2.0)
def sparse(u):
    _globalThreads(1)
    _writeTensor(_out0, _readTensor(u, 0) * 3, 1)
    _writeTensor(_out0, _readTensor(u, 2) ** 2, 3)


@gp.operator(outputs=lambda u: u.type)
def reversed_(u):
    _writeTensor(_out0, _readTensor(u) ** 2, u.field_shape[0] - 1 - _column)


@gp.operator(outputs=lambda u: gp.FieldType((5, 5), (), "float64"), default=0.0)
def diagonal(u):
    _globalThreads(5)
    _writeTensor(_out0, _readTensor(u, _column) ** 2, _column, _column)


def test_writes_at_other_places() -> None:
    check(sparse, lambda a: np.array([2, 3 * a[0], 2, a[2] ** 2, 2]), ROW)
    check(reversed_, lambda a: a[::-1] ** 2, ROW)
    check(diagonal, lambda a: np.diag(a**2), ROW)


# --- borders of two points with three reads -----------------------------------------------------------------------------

BORDERS = {"clamp": "edge", "zero": "constant", "wrap": "wrap", "symmetric": "symmetric", "reflect": "reflect"}


@pytest.mark.parametrize("border", BORDERS)
def test_borders_of_few_points(border: str) -> None:
    @gp.operator
    def three(u):
        reads = [_readTensor(u, _column + k, border=border) for k in (-1, 0, 2)]
        return reads[0] * 2 + reads[1] ** 2 + reads[2] ** 3

    def expected(a: Any) -> Any:
        wide = np.pad(a, 2, mode=BORDERS[border])
        return wide[1:3] * 2 + wide[2:4] ** 2 + wide[4:6] ** 3

    check(three, expected, ROW[:2])


# --- second order, several results, parameters --------------------------------------------------------------------------


def test_second_order_of_a_polynomial() -> None:
    u = gp.Field(ROW)
    slope = gp.grad(lambda u: gp.grad(lambda v: (v**4).sum())(u).sum())(u).numpy()
    np.testing.assert_allclose(slope, 12 * ROW**2, 1e-12)


def test_second_order_of_a_correlation() -> None:
    weights = np.array([0.5, -1.0, 2.0])
    matrix = np.zeros((5, 5))
    for i in range(5):
        for k, w in enumerate(weights):
            matrix[i, np.clip(i + k - 1, 0, 4)] += w
    direction = rng.random(5)
    loss: Callable[..., Any] = lambda u: (gp.ndimage.correlate1d(u, weights, mode="nearest") ** 2).sum()  # noqa: E731
    curved = gp.hvp(loss, (gp.Field(ROW),), (gp.Field(direction),)).numpy()
    np.testing.assert_allclose(curved, 2 * matrix.T @ (matrix @ direction), 1e-12)


@gp.operator(outputs=lambda u: (u.type, u.type))
def two_results(u):
    x, y = _readTensor(u), _readTensor(u, _column + 1)
    _writeTensor(_out0, x * y)
    _writeTensor(_out1, x + y * y)


def test_two_results() -> None:
    def expected(a: Any) -> Any:
        after = np.append(a[1:], a[-1])
        return a * after, a + after * after

    check(two_results, expected, ROW)


def test_named_dimensions_and_offsets() -> None:
    @gp.operator
    def neighbours(u):
        return _readTensor(u, offset=(1, 0)) * _readTensor(u, offset=(0, -1), border="wrap")

    def expected(a: Any) -> Any:
        return np.concatenate([a[1:], a[-1:]]) * np.roll(a, 1, 1)

    check(neighbours, expected, SQUARE, make=lambda a: gp.Field(a, dims="y:x"))


@gp.operator
def guarded(u):
    x = _readTensor(u)
    return _where(x > 0, _sqrt(x), 0.0) + _where(x != 0, x / x, 1.0)


def test_guarded_arms_give_no_nan() -> None:
    slope = gp.grad(lambda u: guarded(u).sum())(gp.Field(np.array([-1.0, 0, 4]))).numpy()
    np.testing.assert_array_equal(slope, [0, 0, 0.25])


def test_parameters_beside_numbers() -> None:
    extent, factor = 3, gp.Parameter(np.float64(0.7))

    @gp.operator
    def scaled(u, factor):
        total = _var(_convert_double(0))
        for k in range(extent):
            total @= total + _readTensor(u, _column + k) * _readTensor(factor) ** 2
        return total

    slope = gp.grad(lambda u, f: scaled(u, f).sum(), 1)(gp.Field(ROW), factor).numpy()
    total = sum(ROW[np.minimum(np.arange(5) + k, 4)].sum() for k in range(extent))
    np.testing.assert_allclose(slope, 2 * 0.7 * total, 1e-12)


# --- histograms ---------------------------------------------------------------------------------------------------------


def test_histograms_of_weights() -> None:
    """Once and several times; a kernel that adds with `_atomic_add` is refused in reverse mode, at its line."""
    bins = np.array([0, 2, 1, 2, 0], np.int32)

    def counted(a: Any) -> Any:
        return sum(np.bincount(bins if isinstance(a, np.ndarray) else gp.ScalarField(bins), a**k, 3) for k in (1, 2, 3))

    check(counted, counted, ROW)

    @gp.operator(outputs=lambda u, bins: gp.FieldType(3, (), "float64"))
    def added(u, bins):
        _globalThreads(u.field_shape)
        _atomic_add(_pointerTo(_out0, _readTensor(bins)), _readTensor(u))

    with pytest.raises(gp.SemanticError, match="`added` has no gradient"):
        gp.grad(lambda u: added(u, gp.ScalarField(bins)).sum())(gp.Field(ROW))
    u, tangent = gp.Field(ROW), gp.Field(ROW[::-1].copy())
    pushed = gp.jvp(lambda u: added(u, gp.ScalarField(bins)), (u,), (tangent,))[1].numpy()
    np.testing.assert_allclose(pushed, np.bincount(bins, ROW[::-1], 3), 1e-12)
