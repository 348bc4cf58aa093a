"""Precisions on every device: "contract" has the bits of NumPy with fused multiply-adds, "fast" is within its bounds.

What is exact keeps its bits, whatever it is fused with.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.harness import same_bits

from .samples import available

rng = np.random.default_rng(23)
EPS = 2.0**-23


def _fma(a: Any, b: Any, c: Any) -> Any:
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    near = type(a)(float(exact))  # of a double, the result; a float may have been rounded twice
    around = (np.nextafter(near, type(a)(-np.inf)), near, np.nextafter(near, type(a)(np.inf)))
    return min(around, key=lambda v: (abs(Fraction(float(v)) - exact), int.from_bytes(v.tobytes(), "little") & 1))


def fma(a: Any, b: Any, c: Any) -> Any:
    """a · b + c, rounded once: the nearest number to the exact value, of two the even one."""
    dtype = np.result_type(a, b, c)
    columns = [np.broadcast_to(np.asarray(x, dtype), np.broadcast_shapes(*map(np.shape, (a, b, c)))) for x in (a, b, c)]
    flat = [_fma(*values) for values in zip(*(x.ravel() for x in columns), strict=True)]
    return np.array(flat, dtype).reshape(columns[0].shape)


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return rng.standard_normal(shape).astype(dtype)


def test_the_expected_values_are_rounded_once() -> None:
    """A case where rounding to double first gives another float: 1 + 2^-24 + 2^-70 is above the middle."""
    a, b = np.float32(2.0**-30), np.float32(2.0**-40)
    assert fma(a, b, np.float32(1)) == 1
    one, x = np.float32(1 + 2.0**-12), np.float32(1 + 2.0**-11)
    assert fma(one, one, -x) == 2.0**-24 and one * one - x == 0


# --- contract -----------------------------------------------------------------------------------------------------------


def variable_that_changes(a: Any, b: Any, c: Any) -> Any:
    v = _var(a)
    product = v * b
    v @= c
    return product + v


def in_a_loop(a: Any, b: Any, c: Any) -> Any:
    total = _var(c)
    with _for(3):
        total += a * b
    return total


def in_a_branch(a: Any, b: Any, c: Any) -> Any:
    product, total = a * b, _var(0.0)
    with _if(c > 0):
        total @= product + c
    return total


BODIES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (lambda a, b, c: a * b + c, fma),
    "sum from the left": (lambda a, b, c: c + a * b, fma),
    "difference": (lambda a, b, c: a * b - c, lambda a, b, c: fma(a, b, -c)),
    "difference from the left": (lambda a, b, c: c - a * b, lambda a, b, c: fma(-a, b, c)),
    "of two the second": (lambda a, b, c: a * b - b * c, lambda a, b, c: fma(-b, c, a * b)),
    "one that is used twice": (lambda a, b, c: c - (p := a * b) + p, lambda a, b, c: c - a * b + a * b),
    "with a constant": (lambda a, b, c: 0.1 - a * 0.3, lambda a, b, c: fma(-a, np.float32(0.3), np.float32(0.1))),
    "with one": (lambda a, b, c: a * -1 + b, lambda a, b, c: b - a),
    "a sum of sums": (lambda a, b, c: (a * b + c) * c + b, lambda a, b, c: fma(fma(a, b, c), c, b)),
    "vectors": (lambda a, b, c: (_float2(a, b) * _float2(b, c) + _float2(c, a)).y, lambda a, b, c: fma(b, c, a)),
    "a variable that changes": (variable_that_changes, lambda a, b, c: a * b + c),
    "a loop": (in_a_loop, lambda a, b, c: fma(a, b, fma(a, b, fma(a, b, c)))),
    "a branch": (in_a_branch, lambda a, b, c: np.where(c > 0, a * b + c, np.float32(0))),
}


PLAIN = {  # the others mean the same in NumPy
    BODIES["vectors"][0]: lambda a, b, c: b * c + a,
    variable_that_changes: lambda a, b, c: a * b + c,
    in_a_loop: lambda a, b, c: c + a * b + a * b + a * b,
    in_a_branch: lambda a, b, c: np.where(c > 0, a * b + c, np.float32(0)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("names", [list(BODIES)[:6], list(BODIES)[6:]], ids=["straight", "others"])
def test_products_join_the_sums_that_they_feed(device: str, names: list[str], dtype: str) -> None:
    if dtype not in available():
        pytest.skip(f"{device} has no {dtype}")
    names = [name for name in names if dtype == "float32" or name not in ("with a constant", "vectors")]
    arrays = [normal(37, dtype=dtype) for _ in range(3)]

    def all_of(f, g, h):
        return tuple(BODIES[name][0](_readTensor(f), _readTensor(g), _readTensor(h)) for name in names)

    for precision in ("exact", "contract"):
        fields = gp.operator(precision=precision)(all_of)(*map(gp.Field, arrays))
        gp.evaluate(*fields)
        for name, field in zip(names, fields, strict=True):
            body, joined = BODIES[name]
            want = joined if precision == "contract" else PLAIN.get(body, body)
            same_bits(field.numpy(), np.asarray(want(*arrays), field.dtype), f"{precision}: {name}")


WEIGHTS = np.float32([0.1, 0.25, 0.3, 0.25, 0.1])


@gp.operator
def along(f):
    return sum(float(w) * _readTensor(f, _row, _column + k - 2) for k, w in enumerate(WEIGHTS))


@gp.operator
def down(f):
    return sum(float(w) * _readTensor(f, _row + k - 2, _column) for k, w in enumerate(WEIGHTS))


@gp.operator
def sharpened(f, g):
    return _readTensor(f) * 1.7 - _readTensor(g) * 0.7


def blurred(a: Any, axis: int, joined: bool) -> Any:
    """The same in NumPy, with every product rounded or with multiply-adds."""
    padded = np.pad(a, [(2 * (i == axis),) * 2 for i in (0, 1)], mode="edge")
    taps = [np.take(padded, range(k, k + a.shape[axis]), axis) for k in range(5)]
    total = WEIGHTS[0] * taps[0]
    for w, tap in zip(WEIGHTS[1:], taps[1:], strict=True):
        total = fma(w, tap, total) if joined else total + w * tap
    return total


@pytest.mark.parametrize("optimize", [True, False], ids=["fused", "apart"])
def test_each_operator_keeps_its_own_bits_wherever_it_is_fused(device: str, optimize: bool) -> None:
    a = normal(7, 19)
    field = gp.ScalarField(a)
    rows, low = blurred(a, 1, True), blurred(blurred(a, 1, True), 0, False)
    want = fma(-low, np.float32(0.7), a * np.float32(1.7)), low * np.float32(0.5) + rows
    with gp.ComputeGraph(optimize=optimize, precision="contract") as graph:
        across = along(field)
        with gp.precision("exact"):
            both = down(across)
            other = both * 0.5 + across
        with gp.precision("fast"):
            roots = np.sqrt(across * across) / 3
        for name, value in (("sharp", sharpened(field, both)), ("other", other), ("roots", roots)):
            graph.probe(value, name)
    for name, expected in zip(("sharp", "other"), want, strict=True):
        same_bits(graph.read(name), expected, name)
    np.testing.assert_allclose(graph.read("roots"), np.abs(rows) / 3, rtol=4 * EPS)


# --- fast ---------------------------------------------------------------------------------------------------------------

SMALL, POSITIVE = rng.uniform(-6.25, 6.25, 60_000), np.exp(rng.uniform(-20, 20, 60_000))
# A function, the values, its meaning, and the bound of the error in units of 2^-23: of the result, and absolute.
BOUNDS: dict[str, tuple[Callable[..., Any], Any, Callable[..., Any], Callable[..., Any]]] = {
    "exp2": (lambda x: _exp2(x), SMALL * 10, np.exp2, lambda x, y: 16 * y),
    "exp": (lambda x: _exp(x), SMALL * 10, np.exp, lambda x, y: (16 + np.abs(x)) * y),
    "exp10": (lambda x: _exp10(x), SMALL * 4, lambda x: 10**x, lambda x, y: (16 + 3 * np.abs(x)) * y),
    "scaled exp": (lambda x: _exp(-(x * x) / 2), SMALL, lambda x: np.exp(-x * x / 2), lambda x, y: (18 + x * x) * y),
    "log2": (lambda x: _log2(x), POSITIVE, np.log2, lambda x, y: 8 + 4 * np.abs(y)),
    "log": (lambda x: _log(x), POSITIVE, np.log, lambda x, y: 8 + 4 * np.abs(y)),
    "log10": (lambda x: _log10(x), POSITIVE, np.log10, lambda x, y: 8 + 4 * np.abs(y)),
    "sin": (lambda x: _sin(x), SMALL, np.sin, lambda x, y: 2**11),
    "cos": (lambda x: _cos(x), SMALL, np.cos, lambda x, y: 2**11),
    "tan": (lambda x: _tan(x), SMALL / 5, np.tan, lambda x, y: 2**11 * (1 + y * y)),
    "pow": (lambda x: x**0.45, POSITIVE, lambda x: x**0.45, lambda x, y: (16 + 8 * np.abs(np.log(y))) * y),
    "powr": (lambda x: _powr(x, 1.5), POSITIVE, lambda x: x**1.5, lambda x, y: (16 + 8 * np.abs(np.log(y))) * y),
    "sqrt": (lambda x: _sqrt(x), POSITIVE, np.sqrt, lambda x, y: 3 * y),
    "rsqrt": (lambda x: 5 / _sqrt(x), POSITIVE, lambda x: 5 / np.sqrt(x), lambda x, y: 3 * y),
    "divided by a constant": (lambda x: x / 7, POSITIVE, lambda x: x / 7, lambda x, y: 2 * y),
    "quotient": (lambda x: 2 / x, POSITIVE, lambda x: 2 / x, lambda x, y: 3 * y),
    "quotients": (lambda x: 2 / (x + 1) + x / (x + 1), POSITIVE, lambda x: (2 + x) / (x + 1), lambda x, y: 8 * y),
}


@pytest.mark.parametrize("names", [list(BOUNDS)[:9], list(BOUNDS)[9:]], ids=["first", "second"])
def test_fast_is_within_its_bounds(device: str, names: list[str]) -> None:
    fields = [gp.Field(BOUNDS[name][1].astype(np.float32)) for name in names]

    @gp.operator(precision="fast")
    def several(*given):
        return tuple(BOUNDS[name][0](_readTensor(f)) for name, f in zip(names, given, strict=True))

    results = gp.evaluate(*several(*fields))
    for name, actual, field in zip(names, results, fields, strict=True):
        _, _, meaning, bound = BOUNDS[name]
        x = field.numpy().astype(np.float64)
        want = meaning(x)
        error, allowed = np.abs(actual.numpy() - want) / EPS, bound(x, want) + 0.5 * np.abs(want)
        assert np.all(error <= allowed), f"{name}: {np.max(error / allowed):.3g} times the bound"


def test_fast_exponentials_are_within_their_ulps(device: str) -> None:
    """Of dense samples, in units in the last place of float32, which are up to twice as many as 2^-23 of the result."""
    x = np.concatenate([np.linspace(-85, 87, 60_000), np.linspace(44, 47, 60_000)]).astype(np.float32)
    tenths = x * np.float32(0.43)

    @gp.operator(precision="fast")
    def several(f, g):
        return _exp2(_readTensor(f)), _exp(_readTensor(f)), _exp10(_readTensor(g))

    results = gp.evaluate(*several(gp.ScalarField(x), gp.ScalarField(tenths)))
    meanings = (
        (np.exp2(x.astype(np.float64)), 16),
        (np.exp(x.astype(np.float64)), 16 + 1.25 * np.abs(x)),
        (10 ** tenths.astype(np.float64), 16 + 3 * np.abs(tenths)),
    )
    for actual, (want, allowed) in zip(results, meanings, strict=True):
        error = np.abs(actual.numpy() - want) / np.spacing(want.astype(np.float32))
        assert np.all(error[want > 1e-37] <= np.broadcast_to(allowed, x.shape)[want > 1e-37]), np.max(error / allowed)


def test_fast_powers_and_quotients_are_within_their_ulps(device: str) -> None:
    """As above: dense samples of positive numbers, of which the bounds are of the result."""
    x = np.exp(np.linspace(-20, 20, 60_000)).astype(np.float32)
    names = ("pow", "powr", "sqrt", "rsqrt", "divided by a constant", "quotient", "quotients")

    @gp.operator(precision="fast")
    def several(f):
        return tuple(BOUNDS[name][0](_readTensor(f)) for name in names)

    for name, actual in zip(names, gp.evaluate(*several(gp.ScalarField(x))), strict=True):
        _, _, meaning, bound = BOUNDS[name]
        want = meaning(x.astype(np.float64))
        error, allowed = np.abs(actual.numpy() - want) / np.spacing(want.astype(np.float32)), bound(x, want) / want
        assert np.all(error <= allowed + 0.5), f"{name}: {np.max(error / (allowed + 0.5)):.3g} times the bound"
