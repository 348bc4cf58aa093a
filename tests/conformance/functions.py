"""Expected values of the guide's math and common functions: 50 digits of mpmath's, NumPy's special values, and formulae."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import scipy.special
from mpmath import mp

Exact = Callable[..., Any]  # of arrays of longdouble, and of int32
PI = 4 * np.arctan(np.longdouble(1))
DIGITS = mpmath.workdps(50)


def wide(x: Any) -> Any:
    """An mpmath number with the 64 digits of a longdouble that it has."""
    sign, digits, exponent, length = x._mpf_
    shift = max(length - 64, 0)
    high, low = divmod(int(digits) >> shift, 2**32)
    size = np.ldexp(np.longdouble(high) * 2**32 + np.longdouble(low), np.clip(exponent + shift, -20000, 20000))
    return -size if sign else size


def digits(function: Exact, special: Exact) -> Exact:
    """mpmath's function where it has a value; NumPy's where arguments are infinite or NaN, or results zero or infinite."""

    def exact(*arrays: Any) -> Any:
        result = np.array(special(*arrays), np.longdouble)
        plain = np.isfinite(result) & (result != 0) & np.all([np.isfinite(a) for a in arrays], axis=0)
        with DIGITS:
            for i in np.flatnonzero(plain):
                values = (int(a[i]) if a.dtype.kind == "i" else mp.mpf(float(a[i])) for a in arrays)
                result[i] = wide(mp.mpf(function(*values)))
        return result

    return exact


def exactly(function: Callable[..., float]) -> Exact:
    """A function of Python's that makes no error on floats, or whose digits do not matter; domain errors give NaN."""

    def guarded(*args: Any) -> float:
        try:
            return function(*map(float, args))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return lambda *arrays: np.vectorize(guarded, otypes=[np.float64])(*arrays)


def round_away(x: Any) -> Any:
    whole = np.floor(np.abs(x))
    return np.copysign(whole + (np.abs(x) - whole >= 0.5), x)


def sine(x: Any, shift: float) -> Any:
    """sin(π(x + shift)), exact at multiples of one half."""
    r = np.fmod(x, 2) + shift
    quarters = np.rint(2 * r)
    value = np.sin(PI * (r - quarters / 2))
    other = np.cos(PI * (r - quarters / 2))
    turn = np.mod(quarters, 4)
    return np.select([turn == 0, turn == 1, turn == 2, turn == 3], [value, other, -value, -other], np.nan)


def tangent(x: Any) -> Any:
    s, c = sine(x, 0), sine(x, 0.5)
    return np.where(c == 0, np.where(np.mod(np.floor(x), 2) == 0, np.inf, -np.inf), s / np.where(c == 0, 1, c))


def logarithm_of_gamma(x: Any) -> Any:
    pole = np.isfinite(x) & (x <= 0) & (x == np.floor(x))
    return np.where(pole, np.inf, exactly(math.lgamma)(np.where(np.isneginf(x), np.inf, np.where(pole, 1, x))))


def gamma(x: Any) -> Any:
    value = scipy.special.gamma(x.astype(np.float64))
    return np.where((x < 0) & (x == np.floor(x)), np.nan, np.where(x == 0, np.copysign(np.inf, x), value))


def exponent(x: Any) -> Any:
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), np.frexp(x)[1] - 1.0, np.abs(x)))


def sign(x: Any) -> Any:
    return np.where(np.isnan(x), 0, np.where(x == 0, x, np.copysign(1, x)))


def by_magnitude(larger: bool) -> Exact:
    def choose(x: Any, y: Any) -> Any:
        first, second = (abs(x) > abs(y), abs(y) > abs(x)) if larger else (abs(x) < abs(y), abs(y) < abs(x))
        return np.where(first, x, np.where(second, y, (np.fmax if larger else np.fmin)(x, y)))

    return choose


def power_of_positive(x: Any, y: Any) -> Any:
    wrong = (
        (x < 0)
        | np.isnan(x)
        | np.isnan(y)
        | ((x == 0) & (y == 0))
        | (np.isinf(x) & (y == 0))
        | ((x == 1) & np.isinf(y))
    )
    return np.where(wrong, np.nan, np.power(np.abs(x), y))


def root(x: Any, n: Any) -> Any:
    size = np.power(np.abs(x), 1 / np.where(n == 0, 1, n).astype(x.dtype))
    return np.where(n == 0, np.nan, np.where(n % 2 != 0, np.copysign(size, x), np.where(x < 0, np.nan, size)))


UNARY: dict[str, Exact] = {
    "acos": digits(mp.acos, np.arccos),
    "acosh": digits(mp.acosh, np.arccosh),
    "acospi": digits(lambda x: mp.acos(x) / mp.pi, lambda x: np.arccos(x) / PI),
    "asin": digits(mp.asin, np.arcsin),
    "asinh": digits(mp.asinh, np.arcsinh),
    "asinpi": digits(lambda x: mp.asin(x) / mp.pi, lambda x: np.arcsin(x) / PI),
    "atan": digits(mp.atan, np.arctan),
    "atanh": digits(mp.atanh, np.arctanh),
    "atanpi": digits(lambda x: mp.atan(x) / mp.pi, lambda x: np.arctan(x) / PI),
    "cbrt": digits(lambda x: mp.sign(x) * mp.cbrt(abs(x)), np.cbrt),
    "ceil": np.ceil,
    "cos": digits(mp.cos, np.cos),
    "cosh": digits(mp.cosh, np.cosh),
    "cospi": digits(mp.cospi, lambda x: sine(x, 0.5)),
    "erf": digits(mp.erf, exactly(math.erf)),
    "erfc": digits(mp.erfc, exactly(math.erfc)),
    "exp": digits(mp.exp, np.exp),
    "exp2": digits(lambda x: mp.power(2, x), np.exp2),
    "exp10": digits(lambda x: mp.power(10, x), lambda x: np.power(type(PI)(10), x)),
    "expm1": digits(mp.expm1, np.expm1),
    "fabs": np.abs,
    "floor": np.floor,
    "lgamma": digits(lambda x: mp.re(mp.loggamma(x)), logarithm_of_gamma),
    "log": digits(mp.log, np.log),
    "log10": digits(mp.log10, np.log10),
    "log1p": digits(mp.log1p, np.log1p),
    "log2": digits(lambda x: mp.log(x) / mp.log(2), np.log2),
    "logb": exponent,
    "rint": np.rint,
    "round": round_away,
    "rsqrt": digits(lambda x: 1 / mp.sqrt(x), lambda x: 1 / np.sqrt(x)),
    "sin": digits(mp.sin, np.sin),
    "sinh": digits(mp.sinh, np.sinh),
    "sinpi": digits(mp.sinpi, lambda x: sine(x, 0)),
    "sqrt": digits(mp.sqrt, np.sqrt),
    "tan": digits(mp.tan, np.tan),
    "tanh": digits(mp.tanh, np.tanh),
    "tanpi": digits(lambda x: mp.sinpi(x) / mp.cospi(x), tangent),
    "tgamma": digits(mp.gamma, gamma),
    "trunc": np.trunc,
    "degrees": digits(lambda x: x * 180 / mp.pi, np.positive),
    "radians": digits(lambda x: x * mp.pi / 180, np.positive),
    "sign": sign,
}
BINARY: dict[str, Exact] = {
    "atan2": digits(mp.atan2, np.arctan2),
    "atan2pi": digits(lambda y, x: mp.atan2(y, x) / mp.pi, lambda y, x: np.arctan2(y, x) / PI),
    "copysign": np.copysign,
    "fdim": lambda x, y: np.where(x <= y, 0, x - y),
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fmod": np.fmod,
    "hypot": digits(mp.hypot, np.hypot),
    "maxmag": by_magnitude(True),
    "minmag": by_magnitude(False),
    "pow": digits(mp.power, np.power),
    "powr": digits(mp.power, power_of_positive),
    "remainder": exactly(math.remainder),
    "native_divide": digits(mp.fdiv, np.divide),
    "max": lambda x, y: np.where(x < y, y, x),
    "min": lambda x, y: np.where(y < x, y, x),
}
WITH_INTEGER: dict[str, Exact] = {
    "ldexp": np.ldexp,
    "pown": digits(mp.power, lambda x, n: np.power(x, n.astype(x.dtype))),
    "rootn": digits(lambda x, n: mp.sign(x) ** (n % 2) * mp.power(abs(x), mp.mpf(1) / n), root),
}
TERNARY: dict[str, Exact] = {
    "fma": digits(lambda x, y, z: mp.fadd(mp.fmul(x, y, exact=True), z), lambda x, y, z: x * y + z),
    "clamp": lambda x, low, high: np.fmin(np.fmax(x, low), high),
}
# Every step is rounded to the type, so the results are NumPy's of the type itself.
IN_STEPS: dict[str, Exact] = {
    "mad": lambda x, y, z: x * y + z,
    "mix": lambda x, y, a: x + (y - x) * a,
}
ANY_ZERO = {"fmax", "fmin", "maxmag", "minmag", "rsqrt", "sinpi", "cospi", "tanpi"}  # the sign of a zero is anyone's
# OpenCL 1.2 leaves lgamma open, and near its zeros at 1, 2 and between negative integers no device is close relatively:
# the bound is so many ULP of the result, or of 1 where that is greater.
LGAMMA = 16.0
