"""Butterflies: discrete Fourier transforms of a few values in registers; complex numbers are pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Pair = tuple[Any, Any]  # real and imaginary part: values of the kernel, or 0


def plus(a: Pair, b: Pair) -> Pair:
    """The sum."""
    return a[0] + b[0], a[1] + b[1]


def minus(a: Pair, b: Pair) -> Pair:
    """The difference."""
    return a[0] - b[0], a[1] - b[1]


def times(a: Pair, b: Pair, sign: int = 1) -> Pair:
    """The product with a number, or with its conjugate if `sign` is negative."""
    x, y = (a[0] * b[0], a[1] * b[1]), (a[1] * b[0], a[0] * b[1])
    return (x[0] - x[1], y[0] + y[1]) if sign > 0 else (x[0] + x[1], y[0] - y[1])


def turned(z: Pair, part: int, of: int, sign: int) -> Pair:
    """The number times the twiddle factor exp(sign·2πi·part/of)."""
    eighth = (8 * part) % (8 * of)
    if eighth % of:
        angle = 2 * math.pi * (part % of) / of
        return times(z, (math.cos(angle), sign * math.sin(angle)))
    number = (sign * (eighth // of)) % 8
    for _ in range(number // 2):
        z = (0 - z[1] if not isinstance(z[1], int) else -z[1]), z[0]
    if number % 2:
        half = math.sqrt(0.5)
        z = (z[0] - z[1]) * half, (z[0] + z[1]) * half
    return z


def transformed(values: Sequence[Pair], sign: int) -> list[Pair]:
    """The unscaled transform of n values, with exp(sign·2πi/n)."""
    count = len(values)
    inner = next((n for n in (4, 2, 3, 5, 7) if count % n == 0 and count > n), 0)
    if not inner:
        return _four(values, sign) if count == 4 else _directly(values, sign)
    outer = count // inner
    rows = [transformed(values[n::outer], sign) for n in range(outer)]
    result: list[Pair] = [(0, 0)] * count
    for m in range(inner):
        column = [turned(row[m], n * m, count, sign) for n, row in enumerate(rows)]
        result[m::inner] = transformed(column, sign)
    return result


def _four(values: Sequence[Pair], sign: int) -> list[Pair]:
    a, b = plus(values[0], values[2]), minus(values[0], values[2])
    c, d = plus(values[1], values[3]), turned(minus(values[1], values[3]), 1, 4, sign)
    return [plus(a, c), plus(b, d), minus(a, c), minus(b, d)]


def _directly(values: Sequence[Pair], sign: int) -> list[Pair]:
    """The transform of a prime number of values: pairs from both ends share cosines and have opposite sines."""
    count = len(values)
    if count < 3:
        return list(values) if count < 2 else [plus(*values), minus(*values)]
    half = count // 2 + 1
    sums = [plus(values[m], values[count - m]) for m in range(1, half)]
    differences = [minus(values[m], values[count - m]) for m in range(1, half)]
    result = [values[0]] * count
    for each in sums:
        result[0] = plus(result[0], each)
    for n in range(1, half):
        even, odd = values[0], (0, 0)
        for m in range(1, half):
            angle = 2 * math.pi * (m * n % count) / count
            even = plus(even, (sums[m - 1][0] * math.cos(angle), sums[m - 1][1] * math.cos(angle)))
            odd = plus(odd, (differences[m - 1][0] * math.sin(angle), differences[m - 1][1] * math.sin(angle)))
        across = turned(odd, 1, 4, sign)
        result[n], result[count - n] = plus(even, across), minus(even, across)
    return result
