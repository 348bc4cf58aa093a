"""Semantics of operators in NumPy: C integer division, OpenCL corner cases, and functions that NumPy lacks.

Floating rows are evaluated in float64 and rounded, so the reference is at least as accurate as any device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def div(a: Array, b: Array) -> Array:
    """C division: truncates on integers; a zero divisor gives 0 (a pass makes devices agree)."""
    if a.dtype.kind == "f":
        return np.asarray(np.divide(a, b))
    quotient = np.where(b == 0, a.dtype.type(0), a // np.where(b == 0, b.dtype.type(1), b))
    inexact = (quotient * b != a) & ((a < 0) != (b < 0)) & (b != 0)
    return np.asarray(quotient + inexact.astype(a.dtype), a.dtype)


def mod(a: Array, b: Array) -> Array:
    """C remainder, with the sign of the dividend; a zero integer divisor gives 0."""
    if a.dtype.kind == "f":
        return np.asarray(np.fmod(a, b))
    return np.asarray(np.where(b == 0, a.dtype.type(0), a - div(a, b) * b), a.dtype)


def quiet(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """A NumPy function without warnings for NaN; signaling NaN too, on which C libraries differ."""
    return lambda a, b: function(a * 1, b * 1)


def convert(x: Array, target: np.dtype[Any], saturate: bool) -> Array:
    """Conversion between scalar types, as `Cast` means it."""
    if target.kind == "b":
        return np.asarray(x != 0)
    if target.kind in "iu" and x.dtype.kind == "f":
        low, high = np.iinfo(target).min, np.iinfo(target).max
        wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=math.inf, neginf=-math.inf))
        inside = np.where((wide > low) & (wide < high), wide, 0).astype(target)
        return np.asarray(np.where(wide >= high, target.type(high), np.where(wide <= low, target.type(low), inside)))
    if target.kind in "iu" and saturate and x.dtype.kind != "b":
        low, high = np.iinfo(target).min, np.iinfo(target).max
        own = np.iinfo(x.dtype)
        return np.asarray(np.clip(x, max(low, own.min), min(high, own.max)).astype(target))
    return x.astype(target)


def mul_hi(a: Array, b: Array) -> Array:
    """The high half of the product of 64-bit integers: of unsigned ones by halves, from which signs are taken off."""
    p, q = a.astype(np.uint64), b.astype(np.uint64)
    half, low = np.uint64(32), np.uint64(2**32 - 1)
    (ph, pl), (qh, ql) = (p >> half, p & low), (q >> half, q & low)
    middle = ph * ql + (pl * ql >> half)
    high = ph * qh + (middle >> half) + ((pl * qh + (middle & low)) >> half)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, q, np.uint64(0)) - np.where(b < 0, p, np.uint64(0))
    return np.asarray(high.astype(a.dtype))


def bytes_of(x: Array, y: Array, selector: Array) -> Array:
    """The word of four bytes of two words: each hexadecimal digit of the selector, 0 to 7, is where one of them was."""
    both = x.astype(np.uint64) | y.astype(np.uint64) << np.uint64(32)
    result = np.zeros_like(both)
    for k in range(4):
        digit = selector.astype(np.uint64) >> np.uint64(4 * k) & np.uint64(7)
        result |= (both >> np.uint64(8) * digit & np.uint64(255)) << np.uint64(8 * k)
    return result.astype(np.uint32)


def halves_max(x: Array, y: Array) -> Array:
    """The greater ones of both halves, which are unsigned."""
    low = np.uint32(0xFFFF)
    return np.asarray(np.maximum(x & low, y & low) | np.maximum(x & ~low, y & ~low))


def halves_min(x: Array, y: Array) -> Array:
    """The lesser ones of both halves."""
    low = np.uint32(0xFFFF)
    return np.asarray(np.minimum(x & low, y & low) | np.minimum(x & ~low, y & ~low))


def clz(x: Array) -> Array:
    """The number of leading zero bits, by halving the width."""
    bits = 8 * x.dtype.itemsize
    rest = x.astype(f"u{x.dtype.itemsize}")
    count = np.where(rest == 0, 1, 0)
    step = bits // 2
    while step:
        free = rest >> rest.dtype.type(bits - step) == 0
        count = count + np.where(free, step, 0)
        rest = np.where(free, rest << rest.dtype.type(step), rest)
        step //= 2
    return np.asarray(count.astype(x.dtype))


def popcount(x: Array) -> Array:
    """The number of bits that are 1, of every byte by a table."""
    each = np.array([n.bit_count() for n in range(256)], np.uint8)
    whole = np.ascontiguousarray(x)
    count = each[whole.view(np.uint8)].reshape(*whole.shape, x.dtype.itemsize).sum(-1)
    return np.asarray(count.reshape(x.shape).astype(x.dtype))


def elementwise(function: Callable[..., Any]) -> Callable[..., Array]:
    """A scalar function of the standard library over arrays; its domain errors give NaN, its overflows infinity."""

    def guarded(*args: float) -> float:
        try:
            return float(function(*args))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return lambda *arrays: np.asarray(np.frompyfunc(guarded, len(arrays), 1)(*arrays), np.float64)


def tgamma(x: Array) -> Array:
    value = elementwise(math.gamma)(x)
    return np.where((x == 0) | ((x < 0) & np.isposinf(value)), np.copysign(np.inf, x), value)


def lgamma(x: Array) -> Array:
    value = elementwise(math.lgamma)(x)
    return np.where((x <= 0) & (x == np.floor(x)), np.inf, value)


def ilogb(x: Array) -> Array:
    _, exponent = np.frexp(x)
    special = np.where(np.isnan(x) | np.isinf(x), np.iinfo(np.int32).max, np.iinfo(np.int32).min)
    return np.where(np.isfinite(x) & (x != 0), exponent - 1, special).astype(np.int32)


def logb(x: Array) -> Array:
    _, exponent = np.frexp(x)
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), exponent - 1.0, np.abs(x)))


def fma(a: Array, b: Array, c: Array) -> Array:
    """a·b + c rounded once: the errors of product and sum are known exactly (Dekker, Knuth)."""
    if a.dtype != np.float64:
        return _narrow_fma(*(x.astype(np.float64) for x in (a, b, c))).astype(a.dtype)
    product = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    lost = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    total, error = _sum(product, c)
    lost = lost + error
    return np.where(np.isfinite(lost) & (lost != 0), total + lost, total)  # 0 would be added to -0


def _narrow_fma(a: Array, b: Array, c: Array) -> Array:
    """To be rounded to half or float: rounded to odd, so that the second rounding is as good as the only one (Boldo)."""
    total, error = _sum(a * b, c)
    bits = np.atleast_1d(total).view(np.int64).reshape(np.shape(total))
    uneven = (bits & 1) == 0
    outwards = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where(np.isfinite(total) & (error != 0) & uneven, bits + outwards, bits)
    return np.where(np.isfinite(error), np.atleast_1d(odd).view(np.float64).reshape(np.shape(total)), total)


def _sum(x: Array, y: Array) -> tuple[Array, Array]:
    """x + y, rounded, and what rounding took away (Knuth's TwoSum)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _halves(x: Array) -> tuple[Array, Array]:
    """x as a sum of two numbers of half its digits, whose products are exact."""
    shifted = x * 134217729.0  # 2²⁷ + 1
    high = shifted - (shifted - x)
    return high, x - high


def round_away(x: Array) -> Array:
    """C round: halves go away from zero."""
    whole = np.trunc(x)
    return np.asarray(np.copysign(whole + np.copysign(np.abs(x - whole) >= 0.5, x), x))


def remainder(x: Array, y: Array) -> Array:
    """IEEE remainder: x - n·y, n the integer nearest to x/y, ties to even."""
    ok = np.isfinite(x) & (y != 0) & ~np.isnan(y)
    return np.where(ok, elementwise(math.remainder)(np.where(ok, x, 0.0), np.where(ok, y, 1.0)), np.nan)


def quotient_bits(x: Array, y: Array) -> Array:
    """The sign and the low seven bits of remainder's n."""
    ok = np.isfinite(x) & np.isfinite(y) & (y != 0)
    safe = np.where(ok, y, 1.0)
    near = np.fmod(np.where(ok, x, 0.0), 128 * safe)
    bits: Array = np.fmod(np.rint((near - remainder(near, safe)) / safe), 128).astype(np.int32)
    return bits


def rootn(x: Array, n: Array) -> Array:
    odd = n % 2 != 0
    root = np.power(np.abs(x).astype(np.longdouble), 1 / np.where(n == 0, 1, n).astype(np.longdouble)).astype(
        np.float64
    )
    value = np.where(odd, np.copysign(root, x), np.where((x < 0), np.nan, root))
    return np.where(n == 0, np.nan, value)


def pown(x: Array, n: Array) -> Array:
    return np.asarray(np.power(x, n.astype(np.float64)))


def powr(x: Array, y: Array) -> Array:
    undefined = (
        (x < 0)
        | ((x == 0) & (y == 0))
        | (np.isposinf(x) & (y == 0))
        | ((x == 1) & np.isinf(y))
        | np.isnan(x)
        | np.isnan(y)
    )
    return np.where(undefined, np.nan, np.power(np.abs(x), y))


def _quarters(x: Array) -> tuple[Array, Array, Array]:
    """The quarter turn nearest to the angle πx, modulo 4, and the sine and the cosine of the angle that is left."""
    r = np.fmod(np.where(np.isfinite(x), x, 0.0), 2.0)
    quarter = np.rint(2 * r)
    left = np.pi * (r - 0.5 * quarter)
    return quarter % 4, np.sin(left), np.cos(left)


def sinpi(x: Array) -> Array:
    """sin(πx), exact at multiples of one half."""
    quarter, s, c = _quarters(x)
    value = np.select([quarter == 0, quarter == 1, quarter == 2], [s, c, -s], -c)
    return np.where(np.isfinite(x), np.where(x == np.trunc(x), np.copysign(0.0, x), value), np.nan)


def cospi(x: Array) -> Array:
    quarter, s, c = _quarters(np.abs(x))
    value = np.select([quarter == 0, quarter == 1, quarter == 2], [c, -s, -c], s)
    return np.where(np.isfinite(x), value + 0.0, np.nan)  # -0 becomes 0


def nan(code: Array) -> Array:
    return np.full(code.shape, np.nan, {2: np.float16, 4: np.float32, 8: np.float64}[code.dtype.itemsize])
