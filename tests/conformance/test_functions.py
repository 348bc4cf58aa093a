"""Every math, common and geometric function of the guide: scalars, vectors, half and double, against wider arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop import dsl
from gpuop.dsl import *
from gpuop.dsl import functions as table

from .compare import all_same, has_denormals, has_double, same, ulps
from .functions import BINARY, GEOMETRIC, OTHERS, SYMMETRIC_ZERO, TERNARY, UNARY, WITH_INTEGER, Case

rng = np.random.default_rng(23)
GUIDE = """acos acosh acospi asin asinh asinpi atan atan2 atanh atanpi atan2pi cbrt ceil copysign cos cosh cospi
native_divide erfc erf exp exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod hypot ilogb ldexp lgamma
lgamma_r log log2 log10 log1p logb mad maxmag minmag nan nextafter pow pown powr remainder remquo rint rootn
round rsqrt sin sinh sinpi sqrt tan tanh tanpi tgamma trunc dot cross distance length normalize
fast_distance fast_length fast_normalize clamp degrees max min mix radians sign"""
DTYPES = ("float32", "float16", "float64")


def test_no_function_is_forgotten() -> None:
    tested = {*UNARY, *BINARY, *WITH_INTEGER, *TERNARY, *GEOMETRIC, *OTHERS}
    assert tested == set(GUIDE.split()) and {f"_{name}" for name in tested} <= set(dsl.__all__)
    assert {name.lstrip("_") for name in table.generated()} <= tested, "a new function lacks its test"


def has(dtype: str) -> bool:
    return dtype != "float64" or has_double()


def grid(dtype: str, few: bool = False) -> Any:
    """Signed zeros, denormals, infinities, NaN, the largest values, integers, halves, and some of every magnitude."""
    info = np.finfo(dtype)
    some = [0, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 7, 100.3, math.inf, float(info.max), float(info.tiny)]
    denormal = (
        [float(info.smallest_subnormal), float(info.tiny) / 2]
        if has_denormals("double" if dtype == "float64" else "single")
        else []
    )
    more = (
        [] if few else [1e4, 1e5, 12345.678, 1e10, 1e30, 0.7071, math.pi, 1e-3, 1e-5, 1e-10, 1e-30, 20.5, 88.5, 700.5]
    )
    with np.errstate(over="ignore"):
        corners = np.array([s * v for v in some + denormal + more for s in (1, -1)] + [math.nan], np.float64).astype(
            dtype
        )
        spread = (
            []
            if few
            else np.concatenate(
                [
                    rng.uniform(-1, 1, 60),
                    rng.uniform(-10, 10, 60),
                    rng.standard_normal(60) * 10.0 ** rng.uniform(-4, 4, 60),
                ]
            )
        )
        return np.append(corners, np.asarray(spread)).astype(dtype)


def packed(functions: list[Any], *fields: gp.Field, lanes: int = 1) -> list[Any]:
    """The results of many functions in few kernels: four scalar results go into one output, ten outputs into one kernel."""
    width = 4 // lanes
    results: list[Any] = []
    for first in range(0, len(functions), 10 * width):
        part = functions[first : first + 10 * width]

        def body(*fields, part=tuple(part)):
            values = [function(*map(_readTensor, fields)) for function in part]
            return tuple(_vector(*values[k : k + width]) for k in range(0, len(values), width))

        outputs = gp.operator(body)(*fields)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        gp.evaluate(*outputs)
        arrays = [o.numpy().reshape(len(o.numpy()), -1) for o in outputs]
        results += [a[:, k : k + lanes] for a in arrays for k in range(0, a.shape[1], lanes)]
    return [r[:, 0] if lanes == 1 else r for r in results]


def function(name: str) -> Any:
    return getattr(dsl, f"_{name}")


def expected(case: Case, *arrays: Any) -> Any:
    with np.errstate(all="ignore"):
        return case.exact(*(a.astype(np.longdouble) if a.dtype.kind == "f" else a for a in arrays))


def check(name: str, case: Case, got: Any, *arrays: Any) -> None:
    """Within the bound of OpenCL 1.2, and the sign of zero where it is defined."""
    exact = expected(case, *arrays)
    wrong = np.zeros(got.shape, np.bool_)
    if math.isfinite(case.ulp):
        bound = 0.5 + case.ulp if case.ulp < 1 else 2 if got.dtype == np.float16 else case.ulp
        wrong = ulps(got, exact, not has_denormals("double" if got.dtype == np.float64 else "single")) > bound * (
            1 + 1e-6
        )
    else:
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(
                got.astype(np.longdouble),
                exact.astype(got.dtype).astype(np.longdouble),
                64 * np.finfo(got.dtype).eps,
                64 * np.finfo(got.dtype).eps,
                equal_nan=True,
            )
    if case.ulp == 0 and name not in SYMMETRIC_ZERO:
        with np.errstate(all="ignore"):
            rounded = exact.astype(got.dtype)
        wrong |= (got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded))
    if wrong.any():
        lines = [
            f"{name}({', '.join(str(a[i]) for a in arrays)}) = {got[i]}, not {exact[i]}"
            for i in np.flatnonzero(wrong)[:6]
        ]
        pytest.fail(f"{got.dtype}: {wrong.sum()} of {wrong.size} beyond {case.ulp} ulp:\n" + "\n".join(lines))


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_one_argument(device: str, dtype: str) -> None:
    if not has(dtype):
        pytest.skip("no double")
    x = grid(dtype)
    for name, got in zip(UNARY, packed([function(n) for n in UNARY], gp.Field(x)), strict=True):
        check(name, UNARY[name], got, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_two_arguments(device: str, dtype: str) -> None:
    if not has(dtype):
        pytest.skip("no double")
    corners = grid(dtype, few=True)
    x, y = np.stack(np.meshgrid(corners, corners), -1).reshape(-1, 2).T
    scatter = (rng.standard_normal((2, 300)) * 10.0 ** rng.uniform(-2, 2, (2, 300))).astype(dtype)
    x, y = np.append(x, scatter[0]), np.append(y, scatter[1])
    for name, got in zip(BINARY, packed([function(n) for n in BINARY], gp.Field(x), gp.Field(y)), strict=True):
        check(name, BINARY[name], got, x, y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_more_arguments(device: str, dtype: str) -> None:
    if not has(dtype):
        pytest.skip("no double")
    x = grid(dtype)
    n = rng.choice([0, 1, 2, 3, -1, -2, -3, 4, 5, 10, 31, -20, 149, -149], x.size).astype(np.int32)
    for name, got in zip(
        WITH_INTEGER, packed([function(k) for k in WITH_INTEGER], gp.Field(x), gp.Field(n)), strict=True
    ):
        check(name, WITH_INTEGER[name], got, x, n)
    a, b, c = rng.standard_normal((3, 200)).astype(dtype)
    low, high = np.minimum(b, c), np.maximum(b, c)
    got = packed([_fma, _mad, _clamp, _mix], *map(gp.Field, (a, low, high)))
    for name, result in zip(("fma", "mad", "clamp", "mix"), got, strict=True):
        check(name, TERNARY[name], result, a, low, high)


def test_vectors(device: str) -> None:
    """Of float3: the same as of its components, for every function; scalars spread."""
    x, y = rng.uniform(0.05, 0.95, (2, 12, 3)).astype(np.float32)
    n, s = rng.integers(1, 4, (12, 3)).astype(np.int32), rng.uniform(0.1, 0.9, 12).astype(np.float32)
    tables: tuple[tuple[dict[str, Case], tuple[Any, ...]], ...] = (
        (UNARY, (x,)),
        (BINARY, (x, y)),
        (WITH_INTEGER, (x, n)),
        (BINARY, (x, s)),
    )
    for cases, arguments in tables:
        names = [k for k in cases if k not in ("acosh",)]  # NaN below 1
        fields = [gp.Field(a, a.ndim - 1) for a in arguments]
        spread = [np.broadcast_to(a[:, None], x.shape) if a.ndim == 1 else a for a in arguments]
        for name, got in zip(names, packed([function(k) for k in names], *fields, lanes=3), strict=True):
            check(name, cases[name], got.ravel(), *(np.ascontiguousarray(a).ravel() for a in spread))


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_with_other_results(device: str, dtype: str) -> None:
    """nextafter, ilogb, lgamma_r, remquo: exact, and integers among their results."""
    if not has(dtype):
        pytest.skip("no double")
    corners = grid(dtype, few=True)
    x, y = (np.ascontiguousarray(v) for v in np.stack(np.meshgrid(corners, corners), -1).reshape(-1, 2).T)

    def body(f, g):
        a, b = _readTensor(f), _readTensor(g)
        log, sign = _lgamma_r(a)
        return _nextafter(a, b), _ilogb(a), log, sign, *_remquo(a, b)

    following, exponents, log, sign, rest, quotient = (r.numpy() for r in gp.operator(body)(gp.Field(x), gp.Field(y)))
    with np.errstate(all="ignore"):
        same(following, np.nextafter(x, y))
        whole = np.isfinite(x) & (x != 0)
        same(exponents[whole], np.frexp(x[whole])[1].astype(np.int32) - 1)
        check("lgamma", UNARY["lgamma"], log, x)
        check("remainder", BINARY["remainder"], rest, x, y)
        certain = np.isfinite(x) & ~((x <= 0) & (x == np.floor(x)))
        same(sign[certain], np.where((x < 0) & (np.floor(x) % 2 != 0), -1, 1)[certain].astype(np.int32))
        finite = np.isfinite(x) & np.isfinite(y) & (y != 0)
        n = [
            round((_ratio(a) - _ratio(r)) / _ratio(b))
            for a, r, b in zip(x[finite], rest[finite], y[finite], strict=True)
        ]
    same(quotient[finite], np.array([abs(k) % 128 * (1 if k > 0 else -1) for k in n], np.int32))


def _ratio(x: Any) -> Any:
    from fractions import Fraction

    return Fraction(float(x))


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
    got = gp.operator(body)(gp.Field(n))
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
    gp.evaluate(*got)
    np.testing.assert_allclose(got[1].numpy(), expected[1], rtol=1e-6)
    all_same((got[0], *got[2:]), (expected[0], *expected[2:]))
