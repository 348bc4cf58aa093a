"""Every math and common function of the guide: scalars, vectors, half and double, within the bound of its row."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop import dsl
from gpuop.dsl import *

from .accuracy import ENTRIES, TABLES, arguments, bound, denormals, errors, exact, function, grid, measured, packed
from .compare import all_same, compute, has_double, same
from .functions import ANY_ZERO

rng = np.random.default_rng(23)
GUIDE = """acos acosh acospi asin asinh asinpi atan atan2 atanh atanpi atan2pi cbrt ceil copysign cos cosh cospi
native_divide erfc erf exp exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod hypot ilogb ldexp lgamma
lgamma_r log log2 log10 log1p logb mad maxmag minmag nan nextafter pow pown powr remainder remquo rint rootn
round rsqrt sin sinh sinpi sqrt tan tanh tanpi tgamma trunc clamp degrees max min mix radians sign"""
OTHERS = {"nextafter", "nan", "ilogb", "lgamma_r", "remquo"}  # tested one by one
DTYPES = ("float32", "float16", "float64")


def test_no_function_is_forgotten() -> None:
    tested = {name for cases in TABLES.values() for name in cases} | OTHERS
    assert tested == set(GUIDE.split())
    assert {name for name, e in ENTRIES.items() if e.group in ("math", "common")} == tested
    assert {f"_{name}" for name in ENTRIES} <= set(dsl.__all__)


def test_every_function_says_what_it_is() -> None:
    for entry in ENTRIES.values():
        assert entry.group in ("integer", "math", "common", "geometric", "relational", "complex", "random")
        assert entry.doc
        assert entry.arity in (1, 2, 3)
        assert min(entry.ulp, entry.double) >= 0


def has(dtype: str) -> bool:
    return dtype != "float64" or has_double()


def check(name: str, actual: Any, expected: Any, off: Any, *arrays: Any) -> None:
    """Within the bound, and of the right sign where exact results are zero."""
    limit = bound(name, str(actual.dtype))
    wrong = off > limit * (1 + 1e-6)
    if ENTRIES[name].ulp == 0 and name not in ANY_ZERO:
        with np.errstate(all="ignore"):
            rounded = expected.astype(actual.dtype)
        wrong |= (actual == 0) & (rounded == 0) & (np.signbit(actual) != np.signbit(rounded))
    if wrong.any():
        lines = [
            f"{name}({', '.join(str(a[i]) for a in arrays)}) = {actual[i]}, not {expected[i]}"
            for i in np.flatnonzero(wrong)[:6]
        ]
        pytest.fail(f"{actual.dtype}: {wrong.sum()} of {wrong.size} beyond {limit} ulp:\n" + "\n".join(lines))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", TABLES)
def test_accuracy(device: str, kind: str, dtype: str) -> None:
    if not has(dtype):
        pytest.skip("no double")
    arrays = arguments(kind, dtype, denormals(dtype))
    for name, (actual, expected, off) in measured(kind, dtype).items():
        check(name, actual, expected, off, *arrays)


def test_vectors(device: str) -> None:
    """Of float3: the same as of its components, for every function; scalars spread."""
    x, y, z = rng.uniform(0.05, 0.95, (3, 12, 3)).astype(np.float32)
    n, s = rng.integers(1, 4, (12, 3)).astype(np.int32), rng.uniform(0.1, 0.9, 12).astype(np.float32)
    for kind, arrays in (("one", (x,)), ("two", (x, y)), ("integer", (x, n)), ("two", (x, s)), ("three", (x, y, z))):
        names = [k for k in TABLES[kind] if k != "acosh"]  # NaN below 1
        fields = [gp.Field(a, a.ndim - 1) for a in arrays]
        flat = tuple(np.broadcast_to(a if a.ndim > 1 else a[:, None], x.shape).ravel() for a in arrays)
        for name, actual in zip(names, packed([function(k) for k in names], *fields, lanes=3), strict=True):
            expected = exact(kind, name, flat)
            check(name, actual.ravel(), expected, errors(name, actual.ravel(), expected), *flat)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_with_other_results(device: str, dtype: str) -> None:
    """nextafter, ilogb, lgamma_r, remquo: exact, and integers among their results."""
    if not has(dtype):
        pytest.skip("no double")
    corners = grid(dtype, denormals(dtype), few=True)
    x, y = (np.ascontiguousarray(v) for v in np.stack(np.meshgrid(corners, corners), -1).reshape(-1, 2).T)

    def body(f, g):
        a, b = _readTensor(f), _readTensor(g)
        log, sign = _lgamma_r(a)
        return _nextafter(a, b), _ilogb(a), log, sign, *_remquo(a, b)

    following, exponents, log, sign, rest, quotient = compute(body, gp.Field(x), gp.Field(y))
    with np.errstate(all="ignore"):
        same(following, np.nextafter(x, y))
        whole = np.isfinite(x) & (x != 0)
        same(exponents[whole], np.frexp(x[whole])[1].astype(np.int32) - 1)
        for name, kind, actual, arrays in (("lgamma", "one", log, (x,)), ("remainder", "two", rest, (x, y))):
            expected = exact(kind, name, arrays)
            check(name, actual, expected, errors(name, actual, expected), *arrays)
        certain = np.isfinite(x) & ~((x <= 0) & (x == np.floor(x)))
        same(sign[certain], np.where((x < 0) & (np.floor(x) % 2 != 0), -1, 1)[certain].astype(np.int32))
        finite = np.isfinite(x) & np.isfinite(y) & (y != 0)
        n = [
            round((Fraction(float(a)) - Fraction(float(r))) / Fraction(float(b)))
            for a, r, b in zip(x[finite], rest[finite], y[finite], strict=True)
        ]
    same(quotient[finite], np.array([abs(k) % 128 * (1 if k > 0 else -1) for k in n], np.int32))


def test_nan_and_integer_arguments(device: str) -> None:
    n = np.array([1, 4, 9, 16, 100])

    def body(f):
        i = _convert_int(_readTensor(f))
        return (
            _sqrt(i),
            _pow(i, 2),
            _nan(_convert_uint(i)),
            _nan(_convert_ushort(i)),
            _max(i, 9),
            _clamp(i, 3, 10),
            _mix(i, 0, 0.5),
            _hypot(3, i * 0 + 4),
            _max(i, 9.5),
        )

    f = n.astype(np.float32)
    nan = np.full(5, np.nan, np.float32)
    actual = gp.operator(body)(gp.Field(n))
    i = n.astype(np.int32)
    expected = (
        np.sqrt(f),
        f * f,
        nan,
        nan.astype(np.float16),
        np.maximum(i, 9),
        np.clip(i, 3, 10),
        f / 2,
        f * 0 + 5,
        np.maximum(f, np.float32(9.5)),
    )
    gp.evaluate(*actual)
    np.testing.assert_allclose(actual[1].numpy(), expected[1], rtol=1e-6)
    all_same((actual[0], *actual[2:]), (expected[0], *expected[2:]))


@pytest.mark.parametrize("count", [1, 4, 33])
@pytest.mark.parametrize(("dtype", "bits"), [("float", 0x7F800001), ("double", 0xFFF0000000000001)])
def test_signaling_nan_is_a_nan_as_others(device: str, dtype: str, bits: int, count: int) -> None:
    """Functions that let a NaN through do so whatever its bits, in and out of vectors."""
    seen = _as_double if dtype == "double" else _as_float

    @gp.operator(outputs=(gp.FieldType((count,)),) * 4)
    def op(f):
        x, zero, inf = seen(_readTensor(f)), _convert(0, dtype), _convert(np.inf, dtype)
        values = (_fmax(x, zero), _fmin(zero, x), _hypot(x, inf), _pow(x, zero))
        return tuple(_convert_float(value) for value in values)

    unsigned = "uint64" if dtype == "double" else "uint32"
    results = op(gp.ScalarField(np.full(count, bits, unsigned)))
    assert [r.numpy().tolist() for r in results] == [[value] * count for value in (0.0, 0.0, np.inf, 1.0)]
