"""The column of derivatives: an entry for each row of the operator table, against central differences of its NumPy meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

from gpuop.ir.build import Builder, collector
from gpuop.ir.derivatives import DERIVATIVES, ZERO, partial, times
from gpuop.ir.nodes import Apply, Cast, Const, Expr, Let, Ref, Stmt, Var
from gpuop.ir.ops import OPS
from gpuop.ir.types import BOOL, DOUBLE, FLOAT, INT, DType, Type

ANY = (-2.3, -0.7, 0.4, 1.8)
POSITIVE = (0.2, 0.9, 1.7, 3.1)
UNIT = (-0.9, -0.3, 0.2, 0.8)
DOMAINS = {
    **dict.fromkeys(("sqrt", "native_sqrt", "rsqrt", "log", "log2", "log10", "native_log2", "pow", "powr"), POSITIVE),
    **dict.fromkeys(("asin", "acos", "atanh"), UNIT),
    "log1p": POSITIVE,
    "acosh": (1.1, 1.7, 2.5, 9.0),
}
STEPS = ("ceil", "floor", "rint", "round", "trunc", "logb")
SMOOTH = {
    **dict.fromkeys(("neg", "hidden", "loaded", *STEPS), 1),
    **dict.fromkeys(("add", "sub", "mul", "div", "native_divide", "fmax", "fmin", "max", "min", "fmod"), 2),
    **dict.fromkeys(("remainder", "copysign", "hypot", "atan2", "pow", "powr"), 2),
    **dict.fromkeys(("sqrt", "fabs", "rsqrt", "cbrt", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10"), 1),
    **dict.fromkeys(("log1p", "sin", "cos", "tan", "sinpi", "cospi", "asin", "acos", "atan", "sinh", "cosh"), 1),
    **dict.fromkeys(("tanh", "asinh", "acosh", "atanh", "erf", "erfc", "native_sqrt", "native_exp2"), 1),
    **dict.fromkeys(("native_log2", "native_sin", "native_cos", "native_tan", "lgamma", "tgamma"), 1),
    "fma": 3,
}
WITH_INTEGERS = ("pown", "rootn", "ldexp")
OTHERS = {"choose", "nextafter"}  # each has a test of its own
CONSTANT = {
    "lt", "le", "gt", "ge", "eq", "ne", "not", "and", "or", "xor", "invert", "shl", "shr", "mod", "abs", "bytes_of", "halves_max",
    "halves_min", "mul_hi", "clz", "popcount", "ilogb", "remquo_bits", "nan",
}  # fmt: skip


def value_of(expr: Expr, values: dict[Var, Any]) -> Any:
    """An expression's value in NumPy."""
    match expr:
        case Ref(var):
            return values[var]
        case Const(value, kind):
            return np.asarray(value, kind.dtype.numpy)
        case Cast(arg, kind):
            return np.asarray(value_of(arg, values)).astype(kind.dtype.numpy)
        case Apply(op, args, kind):
            return OPS[op].computed([value_of(arg, values) for arg in args], kind.dtype)
    raise TypeError(type(expr))


def slopes(op: str, points: tuple[Any, ...], dtype: DType, tangent: float = 1.0) -> list[Any]:
    """The derivatives of a row by its floating operands, times a tangent."""
    kinds = [
        INT if np.asarray(p).dtype.kind == "i" else BOOL if np.asarray(p).dtype.kind == "b" else dtype for p in points
    ]
    args = [Var(f"x{k}", Type(kind)) for k, kind in enumerate(kinds)]
    values = {var: np.asarray(p).astype(var.type.dtype.numpy) for var, p in zip(args, points, strict=True)}
    out: list[Stmt] = []
    b = collector(out)
    refs = [Ref(arg) for arg in args]
    result = b.apply(op, *refs)
    got = [partial(b, op, refs, result, i) for i, kind in enumerate(kinds) if kind is dtype]
    t = Const(tangent, Type(dtype))
    terms = [g if g is ZERO else times(b, g, t) for g in got]
    with np.errstate(all="ignore"):
        for stmt in out:
            assert isinstance(stmt, Let)
            values[stmt.var] = value_of(stmt.value, values)
        return [0.0 if g is ZERO else value_of(g, values) for g in terms]  # type: ignore[arg-type]


def differences(op: str, points: tuple[Any, ...], i: int) -> Any:
    step = 1e-5 * np.maximum(1, np.abs(points[i]))
    ends = []
    for sign in (1, -1):
        moved = [np.asarray(p, np.float64) if k != i else p + sign * step for k, p in enumerate(points)]
        moved = [np.asarray(p) if np.asarray(points[k]).dtype.kind != "i" else points[k] for k, p in enumerate(moved)]
        ends.append(np.asarray(OPS[op].numpy(*moved), np.float64))
    return (ends[0] - ends[1]) / (2 * step)


def test_every_row_has_an_entry():
    assert DERIVATIVES.keys() == OPS.keys()
    assert {*SMOOTH, *WITH_INTEGERS, *OTHERS, *CONSTANT} == OPS.keys()


@pytest.mark.parametrize("op", SMOOTH)
def test_slopes(op):
    domain = np.array(DOMAINS.get(op, ANY))
    grid = np.meshgrid(*[domain + 0.057 * k for k in range(SMOOTH[op])], indexing="ij")
    points = tuple(axis.ravel() for axis in grid)
    for dtype, tolerance in (DOUBLE, 1e-6), (FLOAT, 2e-4):
        for i, slope in enumerate(slopes(op, points, dtype, tangent=0.75)):
            expected = differences(op, points, i) * 0.75
            np.testing.assert_allclose(np.broadcast_to(slope, expected.shape), expected, tolerance, tolerance)
            assert np.asarray(slope).dtype in (dtype.numpy, np.dtype(float))


@pytest.mark.parametrize("op", WITH_INTEGERS)
@pytest.mark.parametrize("n", [-3, -1, 1, 2, 5])
def test_slopes_of_integer_exponents(op, n):
    points = (np.array(POSITIVE), np.full(4, n, np.int32))
    (slope,) = slopes(op, points, DOUBLE)
    np.testing.assert_allclose(slope, differences(op, points, 0), 1e-6)


@pytest.mark.parametrize(
    ("op", "points", "expected"),
    [
        ("fabs", (0.0,), [0]),
        ("sqrt", (0.0,), [np.inf]),
        ("cbrt", (0.0,), [np.inf]),
        ("hypot", (0.0, 0.0), [0, 0]),
        ("fmax", (2.0, 2.0), [1, 0]),
        ("min", (2.0, 2.0), [1, 0]),
        ("fmax", (np.nan, 2.0), [0, 1]),
        ("fmin", (2.0, np.nan), [1, 0]),
        ("pow", (0.0, 2.0), [0, 0]),
        ("pow", (0.0, 1.0), [1, 0]),
        ("pow", (0.0, 0.0), [0, 0]),
        ("pow", (3.0, 0.0), [0, np.log(3.0)]),
        ("pown", (0.0, np.int32(0)), [0]),
        ("pown", (0.0, np.int32(1)), [1]),
        ("rootn", (0.0, np.int32(1)), [1]),
        ("nextafter", (1.0, 2.0), [1, 0]),
        ("choose", (np.True_, 4.0, 5.0), [1, 0]),
        ("choose", (np.False_, 4.0, 5.0), [0, 1]),
        ("atan2", (3e200, 4e200), [4e-200 / 25, -3e-200 / 25]),
    ],
)
def test_kinks_and_ends(op, points, expected):
    for got, value in zip(slopes(op, tuple(map(np.asarray, points)), DOUBLE), expected, strict=True):
        np.testing.assert_allclose(got, value, 1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [(DOUBLE, 2e-14), (FLOAT, 2e-6)])
def test_digamma(dtype, tolerance):
    """Far out, beside the poles and at its root, where it is small."""
    points = np.array([1e-3, 0.4999, 0.5, 1, 1.4616321449683623, 7.5, 123.25, 4e7, -0.25, -7.5, -3.001, -40.375])
    (slope,) = slopes("lgamma", (points,), dtype)
    rounded = points.astype(dtype.numpy).astype(float)
    np.testing.assert_allclose(slope, scipy.special.digamma(rounded), tolerance * 20, tolerance)


def test_operands_that_do_not_count_give_no_nan():
    """An infinite tangent of the operand that was not taken counts for nothing."""
    assert slopes("choose", (np.True_, np.asarray(1.0), np.asarray(np.inf)), DOUBLE, np.inf)[1] == 0
    assert slopes("fmax", (np.asarray(1.0), np.asarray(2.0)), DOUBLE, np.inf)[0] == 0


@pytest.mark.parametrize("op", sorted(CONSTANT))
def test_integers_and_truths_have_none(op):
    """Their results are no floating values, so nothing depends on them smoothly."""
    b = Builder(lambda expr: Ref(Var("t", expr.type)))
    number = Const(3, Type(INT))
    result = Ref(Var("r", Type(BOOL if op in ("lt", "le", "gt", "ge", "eq", "ne", "not") else INT)))
    assert partial(b, op, [number] * OPS[op].arity, result, 0) is ZERO
