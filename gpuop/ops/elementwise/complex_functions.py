"""Complex functions in terms of real ones: rows of `complex_algebra`, on pairs of a real and an imaginary part."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import gpuop.dsl as k

Value = Any
COMPLEX, REAL, TRUTH = "complex", "real", "bool"  # results: of the operands' dtype, of that of its parts, truth values


class PartLimits(NamedTuple):
    """PartLimits of a part's dtype.

    Attributes:
        far: beyond this the hyperbolic tangent is 1.
        large, less: from `large` on, hyperbolic sines and cosines are those of a number that is `less` smaller.
        vast, least: the same of numbers whose result is finite only beside the least sine.
        pole: below this distance from a pole squares underflow.
        bits: those of the mantissa.
    """

    far: float
    large: float
    less: float
    vast: float
    least: float
    pole: float
    bits: int


LIMITS = {
    "float": PartLimits(9, 80, 60, 140, 104, 1e-15, 24),
    "double": PartLimits(20, 700, 600, 1300, 1200, 1e-140, 52),
}
VAST = 1e9  # beyond this 1 is negligible beside the square, of float32 and float64
TINY = 2.0**-60  # smaller numbers are scaled up before a division
INFINITE = math.inf


def _limits(z: Value) -> PartLimits:
    return LIMITS[z.type.dtype.c]


def _infinite(x: Value) -> Value:
    return abs(x) == INFINITE


def _unknown(x: Value) -> Value:
    """Return whether a value is infinite or NaN."""
    return x - x != x - x


def _vast(z: Value) -> Value:
    return (abs(z.x) > VAST) | (abs(z.y) > VAST)


def _log_of_twice(z: Value) -> Value:
    """Return the logarithm of twice the magnitude."""
    return k._log(k._hypot(z.x / 4, z.y / 4)) + math.log(8)


def square(z: Value) -> Value:
    """Return z², without cancellation or a difference of infinities in the real part; of halves, as sums may overflow too."""
    x, y = z.x / 2, z.y / 2
    return k._vector((x - y) * (x + y) * 4 + 0.0, 2 * (z.x * z.y))


def reciprocal(z: Value) -> Value:
    """Return 1/z with the conjugate's signs, at zeros and infinities too."""
    quotient = k._complexDiv(k._float2(1, 0), z)
    return k._vector(k._copysign(quotient.x, z.x), k._copysign(quotient.y, -z.y))


def _growth(z: Value) -> tuple[Value, Value, Value]:
    """Return sinh and cosh of the real part, without a factor that results contain twice if they are large, and this factor.

    So products are infinite only if they overflow themselves (as in FreeBSD's msun, s_csinhf.c).
    """
    limits, size = _limits(z), abs(z.x)
    large, vast = size > limits.large, size > limits.vast
    less = k._copysign(size - k._where(vast, limits.least, k._where(large, limits.less, 0.0)), z.x)
    root = [k._convert(math.exp(part / 2), z.type.dtype.name) for part in (limits.least, limits.less)]
    return k._sinh(less), k._cosh(less), k._where(vast, root[0], k._where(large, root[1], 1.0))


def _sinh(z: Value) -> Value:
    sine, cosine, rest = _growth(z)
    real, imaginary = k._cos(z.y) * rest * sine * rest, k._sin(z.y) * rest * cosine * rest
    end = k._where(z.x == 0, z.x, k._where(_infinite(z.x), INFINITE, real))
    return k._vector(k._where(_unknown(z.y), end, real), k._where(z.y == 0, z.y, imaginary))


def _cosh(z: Value) -> Value:
    sine, cosine, rest = _growth(z)
    turn = k._sin(z.y)
    real, imaginary = k._cos(z.y) * rest * cosine * rest, turn * rest * sine * rest
    axis = k._copysign(0.0, z.x) * k._copysign(1.0, k._where(_unknown(z.y), z.y, turn))
    real = k._where(_infinite(z.x) & _unknown(z.y), INFINITE, real)
    return k._vector(real, k._where((z.x == 0) | (z.y == 0), axis, imaginary))


def _tanh(z: Value) -> Value:
    """Return tanh(z) by Kahan: nothing overflows near the axis, and far from it the real part is 1 or -1."""
    far = abs(z.x) > _limits(z).far
    sine, tangent = k._sinh(k._where(far, 0.0, z.x)), k._tan(z.y)
    square = 1 + tangent * tangent
    below = 1 + square * sine * sine
    near = k._vector(square * k._sqrt(1 + sine * sine) * sine / below, tangent / below)
    slope = k._sin(z.y) * k._cos(z.y)
    one = k._copysign(1.0, z.x)
    value = k._where(far, k._vector(one + 0.0 * slope, 4 * slope * k._exp(-2 * abs(z.x))), near)
    end = k._vector(one, k._copysign(0.0, k._where(_unknown(z.y), z.y, slope)))
    there = k._where(_infinite(z.x), end, value)
    return k._vector(k._where(z.x == 0, z.x, there.x), k._where((z.y == 0) & (z.x != z.x), z.y, there.y))


def _turned(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """Return a circular function from its hyperbolic one: f(z) = -i g(i z)."""

    def of(z: Value) -> Value:
        value = function(k._vector(-z.y, z.x))
        return k._vector(value.y, -value.x)

    return of


def _roots(z: Value) -> tuple[Value, Value]:
    """Return the square roots of 1 - z and of 1 + z."""
    return k._complexSqrt(k._vector(1 - z.x, -z.y)), k._complexSqrt(k._vector(1 + z.x, z.y))


def _arcsin(z: Value) -> Value:
    less, more = _roots(z)
    product = less.x * more.x - less.y * more.y
    near = k._vector(k._atan2(z.x, product), k._asinh(less.x * more.y - less.y * more.x))
    far = k._vector(k._atan2(z.x, abs(z.y)), k._copysign(_log_of_twice(z), z.y))
    value = k._where(_vast(z), far, near)
    return k._vector(k._where(z.x == 0, z.x, value.x), value.y)


def _arccos(z: Value) -> Value:
    less, more = _roots(z)
    near = k._vector(2 * k._atan2(less.x, more.x), k._asinh(more.x * less.y - more.y * less.x))
    far = k._vector(k._atan2(abs(z.y), z.x), k._copysign(_log_of_twice(z), -z.y))
    value = k._where(_vast(z), far, near)
    return k._vector(k._where(z.x == 0, math.pi / 2, value.x), value.y)


def _arccosh(z: Value) -> Value:
    less, more = k._complexSqrt(k._vector(z.x - 1, z.y)), k._complexSqrt(k._vector(z.x + 1, z.y))
    near = k._vector(k._asinh(less.x * more.x + less.y * more.y), 2 * k._atan2(less.y, more.x))
    value = k._where(_vast(z), k._vector(_log_of_twice(z), k._atan2(z.y, z.x)), near)
    return k._vector(value.x, k._where(z.x == 0, k._copysign(math.pi / 2, z.y), value.y))


def _arctanh(z: Value) -> Value:
    """Return arctanh(z) from the right half plane, where the logarithm of small numbers is exact; the left one mirrors it.

    Near the pole, where squares underflow, it is half the logarithm of 2 over the distance (FreeBSD's msun, s_catanf.c).
    """
    x, y, limits = abs(z.x), abs(z.y), _limits(z)
    pole = (x == 1) & (y < limits.pole)
    away = (1 - x) * (1 - x) + y * y
    turn = k._atan2(2 * z.y, (1 - x) * (1 + x) - y * y)
    size = k._log1p(k._where(pole, 2.0 ** (1 - limits.bits), 4 * x) / k._where(pole, y, away))
    size = k._where(pole, (size + limits.bits * math.log(2)) / 2, size / 4)
    near = k._vector(k._copysign(size, z.x), turn / 2)
    size = k._where(y > x, y, x)
    a, b = z.x / size, z.y / size
    small = k._where(_infinite(x) | _infinite(y), k._copysign(0.0, z.x), a / (a * a + b * b) / size)
    is_number = (z.y == z.y) & ((z.x == z.x) | _infinite(y))
    right = k._where(is_number, k._copysign(math.pi / 2, z.y), math.nan)
    value = k._where(_vast(z), k._vector(small, right), near)
    return k._vector(k._where(z.x == 0, z.x, value.x), value.y)


def _expm1(z: Value) -> Value:
    whole, half = k._complexExp(z), k._sin(z.y / 2)
    near = k._where(z.x == -INFINITE, -1, k._expm1(z.x) * k._cos(z.y) - 2 * half * half)
    return k._vector(k._where(z.x > _limits(z).large, whole.x, near), whole.y)


def _log1p(z: Value) -> Value:
    logarithm = k._complexLog(k._vector(z.x + 1, z.y))
    near = k._log1p(z.x * (2 + z.x) + z.y * z.y) / 2
    return k._vector(k._where(abs(z.x) + abs(z.y) < 0.5, near, logarithm.x), logarithm.y)


def _sign(z: Value) -> Value:
    """Return the sign of z; of a number that is infinite along an axis, the end of that axis."""
    at_end = [k._where(_infinite(part), k._copysign(1.0, part), 0.0) for part in (z.x, z.y)]
    small = (abs(z.x) < TINY) & (abs(z.y) < TINY)
    scaled = z * k._where(_vast(z), 1 / VAST, k._where(small, 1 / TINY, 1.0))
    part = k._where(_infinite(z.x) ^ _infinite(z.y), k._vector(*at_end), scaled)
    size = k._complexAbs(part)
    return k._where(size == 0, k._float2(0, 0), part / k._where(size == 0, 1.0, size))


TABLE: dict[str, tuple[str, Callable[..., Value]]] = {
    "sin": (COMPLEX, _turned(_sinh)),
    "cos": (COMPLEX, lambda z: _cosh(k._vector(-z.y, z.x))),
    "tan": (COMPLEX, _turned(_tanh)),
    "sinh": (COMPLEX, _sinh),
    "cosh": (COMPLEX, _cosh),
    "tanh": (COMPLEX, _tanh),
    "arcsin": (COMPLEX, _arcsin),
    "arccos": (COMPLEX, _arccos),
    "arctan": (COMPLEX, _turned(_arctanh)),
    "arcsinh": (COMPLEX, _turned(_arcsin)),
    "arccosh": (COMPLEX, _arccosh),
    "arctanh": (COMPLEX, _arctanh),
    "expm1": (COMPLEX, _expm1),
    "log1p": (COMPLEX, _log1p),
    "log2": (COMPLEX, lambda z: k._complexLog(z) * (1 / math.log(2))),
    "log10": (COMPLEX, lambda z: k._complexLog(z) * (1 / math.log(10))),
    "rint": (COMPLEX, lambda z: k._vector(k._rint(z.x), k._rint(z.y))),
    "sign": (COMPLEX, _sign),
}
