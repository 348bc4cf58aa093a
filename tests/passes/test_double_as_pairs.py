"""Doubles as pairs of floats on devices without double: within 2^-44 of NumPy's results, with its special values."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.without_doubles import NAMES, without_doubles

pytestmark = pytest.mark.skipif(not NAMES, reason="there is no OpenCL device")
BOUND = 2.0**-44
POINTS = 3001
RNG = np.random.default_rng(7)
X, Y = (RNG.standard_normal(POINTS) * 10.0 ** RNG.integers(-5, 6, POINTS) for _ in range(2))
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5, 1 - 2.0**-30, 2.0**-1 + 2.0**-40, 2.0**-130, 3e38, -1.0]
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.fixture(params=NAMES)
def hidden(request):
    with without_doubles(request.param) as backend:
        yield backend


def near(result, expected, scale=None):
    assert result.dtype == np.float64
    size = np.abs(expected) if scale is None else scale
    with np.errstate(invalid="ignore"):
        off, finite = np.abs(result - expected), np.isfinite(expected)
    assert np.all(off[finite] <= BOUND * size[finite])
    assert np.array_equal(np.isnan(result), np.isnan(expected))
    infinite = np.isinf(expected)
    assert np.array_equal(result[infinite], expected[infinite])


@gp.operator
def sums(a, b):
    x, y = _readTensor(a), _readTensor(b)
    return _vector(x + y, x - y, x * y, x / y)


@gp.operator
def roots(a, b):
    x, y = _readTensor(a), _readTensor(b)
    return _vector(_sqrt(_fabs(x)), _fma(x, y, 0.1), -x, _copysign(x, y))


@gp.operator
def steps(a, b):
    x, y = _readTensor(a), _readTensor(b)
    return _vector(_floor(x), _ceil(x), _trunc(y), _rint(y))


@gp.operator
def choices(a, b):
    x, y = _readTensor(a), _readTensor(b)
    larger = _var(x)
    with _if(y > x):
        larger @= y
    return _vector(_fmax(x, y), _fmin(x, y), larger, _where(x == y, 1.0, _where(x <= y, 2.0, 3.0)))


def test_sums_and_products(hidden):
    result = sums(gp.ScalarField(X), gp.ScalarField(Y)).numpy()
    size = np.abs(X) + np.abs(Y)
    for n, (expected, scale) in enumerate([(X + Y, size), (X - Y, size), (X * Y, None), (X / Y, None)]):
        near(result[:, n], expected, scale)
    result = roots(gp.ScalarField(X), gp.ScalarField(Y)).numpy()
    for n, expected in enumerate([np.sqrt(np.abs(X)), X * Y + 0.1, -X, np.copysign(X, Y)]):
        near(result[:, n], expected, np.abs(X * Y) + 1 if n == 1 else None)


def test_whole_numbers(hidden):
    x = np.concatenate(
        [X, RNG.integers(-(2**40), 2**40, 500) + RNG.choice([0, 0.25, 0.5, 0.75], 500), [0.5, 1.5, -0.5]]
    )
    result = steps(gp.ScalarField(x), gp.ScalarField(x)).numpy()
    for n, expected in enumerate([np.floor(x), np.ceil(x), np.trunc(x), np.rint(x)]):
        assert np.array_equal(result[:, n], expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values(hidden):
    x, y = (each.ravel() for each in np.meshgrid(SPECIAL, SPECIAL))
    fields = gp.ScalarField(x), gp.ScalarField(y)
    result = sums(*fields).numpy()
    far = np.float64(np.finfo(np.float32).max)
    tiny = 2.0**-149
    for n, expected in enumerate([x + y, x - y, x * y, x / y]):
        expected = np.where(np.abs(expected) > far, np.copysign(np.inf, expected), expected)
        near(result[:, n], expected, tiny / BOUND + (np.abs(x) + np.abs(y) if n < 2 else np.abs(expected)))
    result = choices(*fields).numpy()
    larger, order = np.where(y > x, y, x), np.where(x == y, 1.0, np.where(x <= y, 2.0, 3.0))
    for n, expected in enumerate([np.fmax(x, y), np.fmin(x, y), larger, order]):
        near(result[:, n], expected)
    kept = gp.operator(lambda f: _readTensor(f), name="kept")(gp.ScalarField(x)).numpy()
    assert np.array_equal(kept, x, equal_nan=True), "moves keep all bits"
    assert np.array_equal(np.signbit(kept), np.signbit(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", INTEGERS)
def test_conversions(hidden, dtype):
    ends = np.iinfo(dtype)
    whole = np.concatenate([[ends.min, ends.max, 0, 1], RNG.integers(ends.min, ends.max, 500, dtype)]).astype(dtype)
    near(gp.ScalarField(whole).astype("float64").numpy(), whole.astype(np.float64))
    x = np.concatenate([RNG.standard_normal(500) * 0.9 * ends.max, X, [2.5, -2.5, np.inf, -np.inf, np.nan]])
    result = gp.ScalarField(x).astype(dtype).numpy()
    inside = np.clip(np.trunc(np.where(np.isnan(x), 0, x)), float(ends.min), float(ends.max))
    assert np.all(np.abs(result.astype(np.float64) - inside) <= BOUND * np.abs(inside))


@gp.operator
def tabled(image):
    """A loop, a table, memory of a thread, and a border of doubles."""
    weights = _constantArray(np.array([0.1, 0.7, 0.2]))
    window = _doubleArray(3)
    with _for(3) as n:
        window[n] = _convert_double(_readTensor(image, _row, _column + n - 1, border="wrap"))
    total = _var(_convert_double(0))
    with _for(3) as n:
        total @= total + weights[n] * window[n]
    return total


def test_arrays_and_loops(hidden):
    image = RNG.integers(0, 255, (7, 90)).astype(np.uint8)
    result = tabled(gp.ScalarField(image)).numpy()
    padded = np.pad(image.astype(np.float64), ((0, 0), (1, 1)), "wrap")
    near(result, 0.1 * padded[:, :-2] + 0.7 * padded[:, 1:-1] + 0.2 * padded[:, 2:])
    shown = gp.pipeline(lambda x: tabled(gp.ScalarField(x))).explain(image)
    assert "double is computed in pairs of floats (2⁻⁴⁴), as the device has none" in shown


def test_a_sum_of_doubles(hidden):
    x = RNG.standard_normal((50, 61))
    assert abs(gp.ScalarField(x).sum().numpy() - x.sum()) <= BOUND * np.abs(x).sum()


@gp.operator
def weighed(a, b):
    return _readTensor(a) * 0.1 + _readTensor(b) / 3


def test_fused_bits(hidden):
    """A value in registers is the one that memory holds."""
    a, b = gp.ScalarField(X), gp.ScalarField(Y)
    fused = weighed(weighed(weighed(a, b), a), b).numpy()
    first = gp.ScalarField(weighed(a, b).numpy())
    second = gp.ScalarField(weighed(first, a).numpy())
    assert np.array_equal(weighed(second, b).numpy().view(np.uint64), fused.view(np.uint64))
