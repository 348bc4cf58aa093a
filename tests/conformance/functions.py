"""What the guide's functions should give: NumPy's and SciPy's functions in a wider type, and formulae where they have none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

PI = 4 * np.arctan(np.longdouble(1))


@dataclass(frozen=True)
class Case:
    """A function's exact value, of wide arguments; its error bound in ULP of float; 0 means correctly rounded."""

    exact: Callable[..., Any]
    ulp: float = 0.0


def exactly(function: Callable[..., float]) -> Callable[..., Any]:
    """A function of Python's that makes no error on floats; domain errors give NaN."""

    def guarded(*args: Any) -> float:
        try:
            return function(*map(float, args))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return lambda *arrays: np.vectorize(guarded, otypes=[np.float64])(*arrays)


def round_away(x: Any) -> Any:
    return np.copysign(
        np.where(np.abs(x) < 2.0**60, np.floor(np.abs(x) + np.where(np.abs(x) < 2.0**52, 0.5, 0)), np.abs(x)), x
    )


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


def by_magnitude(larger: bool) -> Callable[..., Any]:
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


UNARY = {
    "acos": Case(np.arccos, 4),
    "acosh": Case(np.arccosh, 4),
    "acospi": Case(lambda x: np.arccos(x) / PI, 5),
    "asin": Case(np.arcsin, 4),
    "asinh": Case(np.arcsinh, 4),
    "asinpi": Case(lambda x: np.arcsin(x) / PI, 5),
    "atan": Case(np.arctan, 5),
    "atanh": Case(np.arctanh, 5),
    "atanpi": Case(lambda x: np.arctan(x) / PI, 5),
    "cbrt": Case(np.cbrt, 2),
    "ceil": Case(np.ceil),
    "cos": Case(np.cos, 4),
    "cosh": Case(np.cosh, 4),
    "cospi": Case(lambda x: sine(x, 0.5), 4),
    "erf": Case(exactly(math.erf), 16),
    "erfc": Case(exactly(math.erfc), 16),
    "exp": Case(np.exp, 3),
    "exp2": Case(np.exp2, 3),
    "exp10": Case(lambda x: np.power(type(PI)(10), x), 3),
    "expm1": Case(np.expm1, 3),
    "fabs": Case(np.abs),
    "floor": Case(np.floor),
    "lgamma": Case(logarithm_of_gamma, math.inf),
    "log": Case(np.log, 3),
    "log10": Case(np.log10, 3),
    "log1p": Case(np.log1p, 2),
    "log2": Case(np.log2, 3),
    "logb": Case(exponent),
    "rint": Case(np.rint),
    "round": Case(round_away),
    "rsqrt": Case(lambda x: 1 / np.sqrt(x), 2),
    "sin": Case(np.sin, 4),
    "sinh": Case(np.sinh, 4),
    "sinpi": Case(lambda x: sine(x, 0), 4),
    "sqrt": Case(np.sqrt),
    "tan": Case(np.tan, 5),
    "tanh": Case(np.tanh, 5),
    "tanpi": Case(tangent, 6),
    "tgamma": Case(gamma, 16),
    "trunc": Case(np.trunc),
    "degrees": Case(lambda x: x * (180 / PI), 2),
    "radians": Case(lambda x: x * (PI / 180), 2),
    "sign": Case(sign),
}
BINARY = {
    "atan2": Case(np.arctan2, 6),
    "atan2pi": Case(lambda y, x: np.arctan2(y, x) / PI, 6),
    "copysign": Case(np.copysign),
    "fdim": Case(lambda x, y: np.where(x <= y, 0, x - y)),
    "fmax": Case(np.fmax),
    "fmin": Case(np.fmin),
    "fmod": Case(np.fmod),
    "hypot": Case(np.hypot, 4),
    "maxmag": Case(by_magnitude(True)),
    "minmag": Case(by_magnitude(False)),
    "pow": Case(np.power, 16),
    "powr": Case(power_of_positive, 16),
    "remainder": Case(exactly(math.remainder)),
    "native_divide": Case(np.divide, 4),
    "max": Case(lambda x, y: np.where(x < y, y, x)),
    "min": Case(lambda x, y: np.where(y < x, y, x)),
}
WITH_INTEGER = {
    "ldexp": Case(lambda x, n: np.ldexp(x, n)),
    "pown": Case(lambda x, n: np.power(x, n.astype(x.dtype)), 16),
    "rootn": Case(root, 16),
}
TERNARY = {
    "fma": Case(lambda a, b, c: a * b + c, 0.01),
    "mad": Case(lambda a, b, c: a * b + c, math.inf),
    "clamp": Case(lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    "mix": Case(lambda x, y, a: x + (y - x) * a, math.inf),
}
GEOMETRIC = ("dot", "cross", "distance", "length", "normalize", "fast_distance", "fast_length", "fast_normalize")
OTHERS = ("nextafter", "nan", "ilogb", "lgamma_r", "remquo")  # tested one by one
SYMMETRIC_ZERO = {
    "fmax",
    "fmin",
    "maxmag",
    "minmag",
    "rsqrt",
    "sinpi",
    "cospi",
    "tanpi",
}  # the sign of a zero is anyone's
