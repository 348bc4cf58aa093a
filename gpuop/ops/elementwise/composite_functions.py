"""Elementwise NumPy functions in terms of others, in the kernel vocabulary: rows of `numpy_functions`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gpuop.dsl as k

Value = Any
LOG2 = math.log(2)


def lane_by_lane(function: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function of vectors that applies a function of scalars with a loop to each component."""

    def of(*values: Value) -> Value:
        count = max(x.type.lanes for x in values)
        lanes = [function(*(x[n] if x.type.lanes > 1 else x for x in values)) for n in range(count)]
        return k._vector(*lanes) if count > 1 else lanes[0]

    return of


def _like(number: float, x: Value) -> Value:
    return k._convert(number, x.type.dtype.name)


def _heaviside(x: Value, at_zero: Value) -> Value:
    return k._where(x == 0, at_zero, k._where(x < 0, _like(0.0, x), k._where(x > 0, _like(1.0, x), x)))


def _log_of_sum(exp_of: Callable[[Value], Value], log_of: Callable[[Value], Value], of_two: float) -> Any:
    """Return the logarithm of a sum of powers, without overflow or loss of the smaller one."""

    def of(x: Value, y: Value) -> Value:
        equal, greater = x + _like(of_two, x), k._where(x < y, y, x)
        return k._where(x == y, equal, greater + log_of(exp_of(-abs(x - y))))

    return of


def _log2_of_one_and(x: Value) -> Value:
    return k._log1p(x) * _like(1 / LOG2, x)


def _magnitude(x: Value) -> Value:
    return k._where(x < 0, -x, x) if x.type.kind == "i" else x


def _gcd(x: Value, y: Value) -> Value:
    """Return the greatest common divisor, by Euclid's algorithm."""
    great, left = k._var(_magnitude(x)), k._var(_magnitude(y))
    with k._while(left != 0):
        rest = k._var(great % left)
        great.assign(left)
        left.assign(rest)
    return _magnitude(great)


def _lcm(x: Value, y: Value) -> Value:
    great = _gcd(x, y)
    return k._where(great == 0, great, _magnitude(x) / k._where(great == 0, great + 1, great) * _magnitude(y))


def _bitwise_count(x: Value) -> Value:
    """Return the number of set bits of the magnitude."""
    return k._convert(k._popcount(_magnitude(x)), "uint8")


def _nextafter(x: Value, y: Value) -> Value:
    return k._nextafter(x, y)


TABLE: dict[str, tuple[str, Callable[..., Value]]] = {
    "heaviside": ("floating", _heaviside),
    "logaddexp": ("floating", _log_of_sum(k._exp, k._log1p, LOG2)),
    "logaddexp2": ("floating", _log_of_sum(k._exp2, _log2_of_one_and, 1.0)),
    "nextafter": ("floating", _nextafter),
    "gcd": ("integer", lane_by_lane(_gcd)),
    "lcm": ("integer", lane_by_lane(_lcm)),
    "bitwise_count": ("bit count", _bitwise_count),
}
