"""Complex functions in terms of real ones: rows of `complex_algebra`, on pairs of a real and an imaginary part."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gpuop.dsl as k

Value = Any
FAR = 9.0  # beyond this the hyperbolic tangent of a float32 is 1
VAST = 1e9  # beyond this 1 is negligible beside the square of a float32
TINY = 2.0**-60  # smaller numbers are scaled up before a division
INFINITE = math.inf


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
    return k._float2((x - y) * (x + y) * 4 + 0.0, 2 * (z.x * z.y))


def reciprocal(z: Value) -> Value:
    """Return 1/z with the conjugate's signs, at zeros and infinities too."""
    quotient = k._complexDiv(k._float2(1, 0), z)
    return k._float2(k._copysign(quotient.x, z.x), k._copysign(quotient.y, -z.y))


def _growth(z: Value) -> tuple[Value, Value, Value]:
    """Return sinh and cosh of the real part, without a factor that results contain twice if they are large, and this factor.

    So products are infinite only if they overflow themselves (as in FreeBSD's msun, s_csinhf.c).
    """
    size = abs(z.x)
    large, vast = size > 80, size > 140
    less = k._copysign(size - k._where(vast, 104.0, k._where(large, 60.0, 0.0)), z.x)
    return k._sinh(less), k._cosh(less), k._where(vast, math.exp(52), k._where(large, math.exp(30), 1.0))


def _sinh(z: Value) -> Value:
    sine, cosine, rest = _growth(z)
    real, imaginary = k._cos(z.y) * rest * sine * rest, k._sin(z.y) * rest * cosine * rest
    end = k._where(z.x == 0, z.x, k._where(_infinite(z.x), INFINITE, real))
    return k._float2(k._where(_unknown(z.y), end, real), k._where(z.y == 0, z.y, imaginary))


def _cosh(z: Value) -> Value:
    sine, cosine, rest = _growth(z)
    turn = k._sin(z.y)
    real, imaginary = k._cos(z.y) * rest * cosine * rest, turn * rest * sine * rest
    axis = k._copysign(k._convert_float(0.0), z.x) * k._copysign(
        k._convert_float(1.0), k._where(_unknown(z.y), z.y, turn)
    )
    real = k._where(_infinite(z.x) & _unknown(z.y), INFINITE, real)
    return k._float2(real, k._where((z.x == 0) | (z.y == 0), axis, imaginary))


def _tanh(z: Value) -> Value:
    """Return tanh(z) by Kahan: nothing overflows near the axis, and far from it the real part is 1 or -1."""
    far = abs(z.x) > FAR
    sine, tangent = k._sinh(k._where(far, 0.0, z.x)), k._tan(z.y)
    square = 1 + tangent * tangent
    below = 1 + square * sine * sine
    near = k._float2(square * k._sqrt(1 + sine * sine) * sine / below, tangent / below)
    slope = k._sin(z.y) * k._cos(z.y)
    one = k._copysign(k._convert_float(1.0), z.x)
    value = k._where(far, k._float2(one + 0.0 * slope, 4 * slope * k._exp(-2 * abs(z.x))), near)
    end = k._float2(one, k._copysign(k._convert_float(0.0), k._where(_unknown(z.y), z.y, slope)))
    there = k._where(_infinite(z.x), end, value)
    return k._float2(k._where(z.x == 0, z.x, there.x), k._where((z.y == 0) & (z.x != z.x), z.y, there.y))


def _turned(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """Return a circular function from its hyperbolic one: f(z) = -i g(i z)."""

    def of(z: Value) -> Value:
        value = function(k._float2(-z.y, z.x))
        return k._float2(value.y, -value.x)

    return of


def _roots(z: Value) -> tuple[Value, Value]:
    """Return the square roots of 1 - z and of 1 + z."""
    return k._complexSqrt(k._float2(1 - z.x, -z.y)), k._complexSqrt(k._float2(1 + z.x, z.y))


def _arcsin(z: Value) -> Value:
    less, more = _roots(z)
    product = less.x * more.x - less.y * more.y
    near = k._float2(k._atan2(z.x, product), k._asinh(less.x * more.y - less.y * more.x))
    far = k._float2(k._atan2(z.x, abs(z.y)), k._copysign(_log_of_twice(z), z.y))
    value = k._where(_vast(z), far, near)
    return k._float2(k._where(z.x == 0, z.x, value.x), value.y)


def _arccos(z: Value) -> Value:
    less, more = _roots(z)
    near = k._float2(2 * k._atan2(less.x, more.x), k._asinh(more.x * less.y - more.y * less.x))
    far = k._float2(k._atan2(abs(z.y), z.x), k._copysign(_log_of_twice(z), -z.y))
    value = k._where(_vast(z), far, near)
    return k._float2(k._where(z.x == 0, math.pi / 2, value.x), value.y)


def _arccosh(z: Value) -> Value:
    less, more = k._complexSqrt(k._float2(z.x - 1, z.y)), k._complexSqrt(k._float2(z.x + 1, z.y))
    near = k._float2(k._asinh(less.x * more.x + less.y * more.y), 2 * k._atan2(less.y, more.x))
    value = k._where(_vast(z), k._float2(_log_of_twice(z), k._atan2(z.y, z.x)), near)
    return k._float2(value.x, k._where(z.x == 0, k._copysign(k._convert_float(math.pi / 2), z.y), value.y))


def _arctanh(z: Value) -> Value:
    """Return arctanh(z) from the right half plane, where the logarithm of small numbers is exact; the left one mirrors it.

    Near the pole, where squares underflow, it is half the logarithm of 2 over the distance (FreeBSD's msun, s_catanf.c).
    """
    x, y = abs(z.x), abs(z.y)
    pole = (x == 1) & (y < 1e-15)
    away = (1 - x) * (1 - x) + y * y
    turn = k._atan2(2 * z.y, (1 - x) * (1 + x) - y * y)
    size = k._log1p(k._where(pole, 2.0**-23, 4 * x) / k._where(pole, y, away))
    size = k._where(pole, (size + math.log(2.0**24)) / 2, size / 4)
    near = k._float2(k._copysign(size, z.x), turn / 2)
    size = k._where(y > x, y, x)
    a, b = z.x / size, z.y / size
    small = k._where(_infinite(x) | _infinite(y), k._copysign(k._convert_float(0.0), z.x), a / (a * a + b * b) / size)
    is_number = (z.y == z.y) & ((z.x == z.x) | _infinite(y))
    right = k._where(is_number, k._copysign(k._convert_float(math.pi / 2), z.y), math.nan)
    value = k._where(_vast(z), k._float2(small, right), near)
    return k._float2(k._where(z.x == 0, z.x, value.x), value.y)


def _expm1(z: Value) -> Value:
    whole, half = k._complexExp(z), k._sin(z.y / 2)
    near = k._where(z.x == -INFINITE, -1, k._expm1(z.x) * k._cos(z.y) - 2 * half * half)
    return k._float2(k._where(z.x > 80, whole.x, near), whole.y)


def _log1p(z: Value) -> Value:
    logarithm = k._complexLog(k._float2(z.x + 1, z.y))
    near = k._log1p(z.x * (2 + z.x) + z.y * z.y) / 2
    return k._float2(k._where(abs(z.x) + abs(z.y) < 0.5, near, logarithm.x), logarithm.y)


def _sign(z: Value) -> Value:
    """Return the sign of z; of a number that is infinite along an axis, the end of that axis."""
    zero, one = k._convert_float(0.0), k._convert_float(1.0)
    at_end = [k._where(_infinite(part), k._copysign(one, part), zero) for part in (z.x, z.y)]
    small = (abs(z.x) < TINY) & (abs(z.y) < TINY)
    scaled = z * k._where(_vast(z), 1 / VAST, k._where(small, 1 / TINY, one))
    part = k._where(_infinite(z.x) ^ _infinite(z.y), k._float2(*at_end), scaled)
    size = k._complexAbs(part)
    return k._where(size == 0, k._float2(0, 0), part / k._where(size == 0, 1.0, size))


TABLE: dict[str, tuple[str, Callable[..., Value]]] = {
    "sin": ("complex64", _turned(_sinh)),
    "cos": ("complex64", lambda z: _cosh(k._float2(-z.y, z.x))),
    "tan": ("complex64", _turned(_tanh)),
    "sinh": ("complex64", _sinh),
    "cosh": ("complex64", _cosh),
    "tanh": ("complex64", _tanh),
    "arcsin": ("complex64", _arcsin),
    "arccos": ("complex64", _arccos),
    "arctan": ("complex64", _turned(_arctanh)),
    "arcsinh": ("complex64", _turned(_arcsin)),
    "arccosh": ("complex64", _arccosh),
    "arctanh": ("complex64", _arctanh),
    "expm1": ("complex64", _expm1),
    "log1p": ("complex64", _log1p),
    "log2": ("complex64", lambda z: k._complexLog(z) * (1 / math.log(2))),
    "log10": ("complex64", lambda z: k._complexLog(z) * (1 / math.log(10))),
    "rint": ("complex64", lambda z: k._float2(k._rint(z.x), k._rint(z.y))),
    "sign": ("complex64", _sign),
}
