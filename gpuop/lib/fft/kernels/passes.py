"""Passes of a Fourier transform along an axis: kernels that read and write fields of complex numbers, in natural order.

A transform of n = r₁·r₂·… values takes one pass per factor (Stockham autosort: Govindaraju et al., High performance discrete
Fourier transforms on graphics processors, SC 2008). In each pass but the last a thread transforms rᵢ values in registers. In the
last pass, and in passes of primes above 16, a thread computes one value at its own point, so that consumers fuse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import VectorField
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType, Shape
from gpuop.ops.layout.gather import own_place

IN_REGISTERS = 16  # most values that a thread transforms
MOST = 61  # the largest prime factor that passes support, as a sum
WRITTEN_OUT = 8  # most terms of a sum that is unrolled
LAST = (4, 2, 3, 5, 7, 8, 11, 13)
_tables: BoundedCache[Any, Field] = BoundedCache(64)


def table(key: tuple[Any, ...], dtype: str, numbers: Callable[[], np.ndarray[Any, Any]]) -> Field:
    """A field of complex numbers from a cache."""
    result = _tables.get((key, dtype))
    if result is None:
        values = numbers()
        parts = np.stack([values.real, values.imag], -1).astype(dtype)
        result = _tables[key, dtype] = VectorField(parts)
    return result


def roots(count: int, dtype: str) -> Field:
    """exp(-2πi·k/n)."""
    return table(("roots", count), dtype, lambda: np.exp(-2j * np.pi * np.arange(count) / count))


def factors(count: int) -> list[int]:
    """The radices of the passes for a length; empty if it has a large prime factor."""
    primes, rest = [], count
    for p in range(2, MOST + 1):
        while rest % p == 0:
            primes.append(p)
            rest //= p
    if rest > 1:
        return []
    large = [p for p in primes if p > IN_REGISTERS]
    small = count // int(np.prod(large, dtype=np.int64))
    if large or small <= WRITTEN_OUT:
        return _together(small) + large if large else [small]
    chosen = [[*_together(small // last), last] for last in LAST if small % last == 0]
    return min(chosen, key=len)


def _together(count: int) -> list[int]:
    result = []
    while count > 1:
        result.append(next(r for r in range(IN_REGISTERS, 1, -1) if count % r == 0))
        count //= result[-1]
    return result


def read(field: Field, place: Sequence[Any]) -> Pair:
    """The number at a point, of a field of pairs or of real numbers."""
    value = k._readTensor(field, *place, border="unchecked")
    return (value.x, value.y) if field.tensor_shape else (value, 0)


@dataclass(frozen=True)
class Pass:
    """A pass along an axis.

    Attributes:
        count: the number of values along the axis.
        radix: the number of values that are combined.
        done: the product of the radices of earlier passes.
        sign: the sign of the exponent.
        results: the number of results of the last pass.
        real: whether imaginary parts are left out.
    """

    axis: int
    count: int
    radix: int
    done: int
    sign: int
    results: int
    real: bool

    @property
    def last(self) -> bool:
        return self.done * self.radix == self.count

    def of(self, field: Field) -> Field:
        """The field after the pass."""
        shape = list(field.field_shape)
        shape[self.axis] = self.results if self.last else self.count
        kind = FieldType(shape, () if self.last and self.real else (2,), field.dtype)
        single = self.last or self.radix > IN_REGISTERS
        weights = [roots(self.count, field.dtype)] if self.radix > 1 else []
        name = f"fft_sum{self.radix}" if single else f"fft_radix{self.radix}"
        body = (lambda: self._sums(field, *weights)) if single else (lambda: self._butterflies(field, *weights))
        return library_call(name, (kind,), [field, *weights], body, self, whole=True)[0]

    def _butterflies(self, field: Field, weights: Field) -> None:
        shape, step = list(field.field_shape), self.count // self.radix
        shape[self.axis] = step
        k._globalThreads(Shape(shape))
        own = list(own_place(len(shape)))
        at, values = own[self.axis], []
        rest = at % self.done if self.done > 1 else 0
        for m in range(self.radix):
            own[self.axis] = at + m * step
            value = read(field, own)
            if m and self.done > 1:
                value = times(value, read(weights, [rest * (m * (step // self.done))]), -self.sign)
            values.append(value)
        first = (at - rest) * self.radix + rest
        for m, (x, y) in enumerate(transformed(values, self.sign)):
            own[self.axis] = first + m * self.done
            k._writeTensor(k._out0, k._vector(x, y), *own)

    def _sums(self, field: Field, *weights: Field) -> None:
        own = list(own_place(len(field.field_shape)))
        at, block, step = own[self.axis], self.done * self.radix, self.count // self.radix
        inside = at if self.last else at % block
        rest = inside % self.done if self.done > 1 else 0
        first = rest if self.last else (at - inside) / self.radix + rest
        own[self.axis] = first
        start = read(field, own)

        def term(m: Any, turn: Any) -> Pair:
            own[self.axis] = first + m * step
            return times(read(field, own), read(weights[0], [turn * (self.count // block)]), -self.sign)

        if self.radix <= WRITTEN_OUT:
            for m in range(1, self.radix):
                start = plus(start, term(m, inside * m % block if m > 1 else inside))
            x, y = start
        else:
            x, y = (k._var(k._convert(part, field.dtype)) for part in start)
            turn = k._var(inside)
            with k._for(1, self.radix) as m:
                more = term(m, turn)
                x += more[0]
                y += more[1]
                turn += inside
                turn -= k._where(turn >= block, block, 0)
        k._writeTensor(k._out0, x if self.last and self.real else k._vector(x, y))


# --- butterflies: discrete Fourier transforms of a few values in registers; complex numbers are pairs -----------------


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
