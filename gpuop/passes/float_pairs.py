"""Arithmetic of pairs of floats: the sum of two floats has about 47 bits, for devices without double.

The algorithms are those of M. Joldes, J.-M. Muller and V. Popescu, Tight and rigorous error bounds for basic building blocks of
double-word arithmetic, ACM TOMS 44 (2017): errors are below 2^-44 of the result. The second float is at most half a unit in the
last place of the first one, and 0 beside infinities and NaN. Numbers have the range of float.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpuop.ir.build import Builder, constant
from gpuop.ir.nodes import Const, Expr
from gpuop.ir.types import BOOL, FLOAT, INT, LONG, UINT, ULONG, DType, Type

SINGLE = Type(FLOAT)
BITS = 47  # of a pair: few enough that its second float holds the rest, and that a double in memory is the pair
OUTWARDS = 2.0**-43  # of a number that becomes an integer
GREATEST = float(np.finfo(np.float32).max)
LEAST_BITS, MANTISSA, BIAS, TOP = 29, 52, 1023, 0x7FF  # of doubles; the least bits are those that a float has not
ZERO = constant(0.0, FLOAT)


class Pair(NamedTuple):
    """Two floats whose sum is a number.

    Attributes:
        bits: those of the double that was loaded, which moves keep: it may have more than the pair.
    """

    high: Expr
    low: Expr = ZERO
    bits: Expr | None = None

    @property
    def parts(self) -> tuple[Expr, Expr]:
        return self.high, self.low

    @property
    def single(self) -> bool:
        """Return whether the second float is 0."""
        return self.low == ZERO


def pair_of(value: float) -> Pair:
    """Return the pair next to a number; an infinity beyond the range of float."""
    fraction, exponent = math.frexp(value)
    if math.isfinite(value):
        whole = math.floor(abs(fraction) * 2.0**BITS + 0.5)
        value = math.copysign(math.ldexp(whole, exponent - BITS), value)
    with np.errstate(over="ignore"):
        high = np.float32(value)
    low = np.float32(value - float(high)) if np.isfinite(high) else np.float32(0)
    return Pair(constant(high.item(), FLOAT), constant(low.item() or 0.0, FLOAT))


class PairArithmetic:
    """Operations of pairs, bound by a builder."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.apply = b.apply

    # --- sums and products ------------------------------------------------------------------------------------------

    def _sum(self, x: Expr, y: Expr) -> tuple[Expr, Expr]:
        """Return x + y and its error (Knuth)."""
        total = self.apply("add", x, y)
        part = self.apply("sub", total, x)
        rest = self.apply("sub", x, self.apply("sub", total, part))
        return total, self.apply("add", rest, self.apply("sub", y, part))

    def _quick(self, x: Expr, y: Expr) -> tuple[Expr, Expr]:
        """Return x + y and its error, where x is the greater (Dekker)."""
        total = self.apply("add", x, y)
        return total, self.apply("sub", y, self.apply("sub", total, x))

    def _product(self, x: Expr, y: Expr) -> tuple[Expr, Expr]:
        """Return x · y and its error."""
        product = self.apply("mul", x, y)
        return product, self.apply("fma", x, y, self.apply("neg", product))

    def _finite(self, x: Expr) -> Expr:
        return self.apply("le", self.apply("fabs", x), GREATEST)

    def _ruled(self, pair: tuple[Expr, Expr], rule: Expr) -> Pair:
        """Return the pair rounded to `BITS` bits, as doubles keep it in memory, or what floats give where it is not finite."""
        exponent = self.apply("and", self.b.bits(pair[0], Type(UINT)), constant(0x7F800000, UINT))
        unit = self.apply("mul", self.b.bits(exponent, SINGLE), 1.5 * 2.0 ** (24 - BITS))
        low = self.apply("sub", self.apply("add", pair[1], unit), unit)
        high, low = self._quick(pair[0], low)
        finite = self._finite(high)
        return Pair(self.apply("choose", finite, high, rule), self.apply("choose", finite, low, 0.0))

    def add(self, x: Pair, y: Pair) -> Pair:
        total, error = self._sum(x.high, y.high)
        if x.single and y.single:
            return self._ruled((total, error), total)
        if x.single or y.single:
            low = y.low if x.single else x.low
            return self._ruled(self._quick(total, self.apply("add", error, low)), total)
        low, rest = self._sum(x.low, y.low)
        near, far = self._quick(total, self.apply("add", error, low))
        return self._ruled(self._quick(near, self.apply("add", rest, far)), total)

    def sub(self, x: Pair, y: Pair) -> Pair:
        return self.add(x, self.neg(y))

    def mul(self, x: Pair, y: Pair) -> Pair:
        product, error = self._product(x.high, y.high)
        if x.single and y.single:
            return self._ruled((product, error), product)
        if x.single or y.single:
            one, low = (x.high, y.low) if x.single else (y.high, x.low)
            error = self.apply("fma", one, low, error)
        else:
            across = self.apply("fma", x.low, y.low, self.apply("mul", x.high, y.low))
            error = self.apply("add", error, self.apply("fma", x.low, y.high, across))
        return self._ruled(self._quick(product, error), product)

    def div(self, x: Pair, y: Pair) -> Pair:
        first = self.apply("div", x.high, y.high)
        rest = self.sub(x, self.mul(Pair(first), y))
        return self._ruled(self._quick(first, self.apply("div", rest.high, y.high)), first)

    def fma(self, x: Pair, y: Pair, z: Pair) -> Pair:
        return self.add(self.mul(x, y), z)

    def sqrt(self, x: Pair) -> Pair:
        root = self.apply("sqrt", x.high)
        rest = self.sub(x, Pair(*self._product(root, root)))
        return self._ruled(self._quick(root, self.apply("div", rest.high, self.apply("mul", root, 2.0))), root)

    # --- signs and choices ------------------------------------------------------------------------------------------

    def neg(self, x: Pair) -> Pair:
        return Pair(self.apply("neg", x.high), x.low if x.single else self.apply("neg", x.low))

    def fabs(self, x: Pair) -> Pair:
        low = x.low if x.single else self.apply("choose", self.apply("lt", x.high, 0.0), self.neg(x).low, x.low)
        return Pair(self.apply("fabs", x.high), low)

    def copysign(self, x: Pair, y: Pair) -> Pair:
        high = self.apply("copysign", x.high, y.high)
        low = x.low if x.single else self.apply("choose", self.apply("eq", high, x.high), x.low, self.neg(x).low)
        return Pair(high, low)

    def choose(self, test: Expr, x: Pair, y: Pair) -> Pair:
        low = ZERO if x.single and y.single else self.apply("choose", test, x.low, y.low)
        bits = None if x.bits is None or y.bits is None else self.apply("choose", test, x.bits, y.bits)
        return Pair(self.apply("choose", test, x.high, y.high), low, bits)

    def compare(self, op: str, x: Pair, y: Pair) -> Expr:
        high = self.apply(op, x.high, y.high)
        if x.single and y.single:
            return high
        low = self.apply(op, x.low, y.low)
        if op in ("eq", "ne"):
            return self.apply("and" if op == "eq" else "or", high, low)
        strictly = self.apply(op[0] + "t", x.high, y.high)
        return self.apply("or", strictly, self.apply("and", self.apply("eq", x.high, y.high), low))

    def _is_nan(self, x: Pair) -> Expr:
        return self.apply("ne", x.high, x.high)

    def fmax(self, x: Pair, y: Pair) -> Pair:
        return self.choose(self.apply("or", self.compare("gt", x, y), self._is_nan(y)), x, y)

    def fmin(self, x: Pair, y: Pair) -> Pair:
        return self.choose(self.apply("or", self.compare("lt", x, y), self._is_nan(y)), x, y)

    def max(self, x: Pair, y: Pair) -> Pair:
        return self.choose(self.apply("or", self.compare("gt", x, y), self._is_nan(x)), x, y)

    def min(self, x: Pair, y: Pair) -> Pair:
        return self.choose(self.apply("or", self.compare("lt", x, y), self._is_nan(x)), x, y)

    # --- integers ---------------------------------------------------------------------------------------------------

    def _stepwise(self, op: str, x: Pair) -> Pair:
        high = self.apply(op, x.high)
        if x.single:
            return Pair(high)
        whole = self.apply("eq", high, x.high)
        near, far = self._quick(high, self.apply(op, x.low))
        return Pair(self.apply("choose", whole, near, high), self.apply("choose", whole, far, 0.0))

    def floor(self, x: Pair) -> Pair:
        return self._stepwise("floor", x)

    def ceil(self, x: Pair) -> Pair:
        return self._stepwise("ceil", x)

    def trunc(self, x: Pair) -> Pair:
        return self.copysign(self.floor(self.fabs(x)), x)

    def round(self, x: Pair) -> Pair:
        return self.copysign(self.floor(self.add(self.fabs(x), pair_of(0.5))), x)

    def rint(self, x: Pair) -> Pair:
        """Return the nearest integer; halves of the first float are decided by the second one."""
        if x.single:
            return Pair(self.apply("rint", x.high))
        plain = self._stepwise("rint", x)
        off = self.apply("sub", x.high, plain.high)
        up = self.apply("and", self.apply("eq", off, 0.5), self.apply("gt", x.low, 0.0))
        down = self.apply("and", self.apply("eq", off, -0.5), self.apply("lt", x.low, 0.0))
        step = self.apply("choose", up, constant(1.0, FLOAT), self.apply("choose", down, constant(-1.0, FLOAT), ZERO))
        return Pair(self.apply("add", plain.high, step), plain.low)

    def fmod(self, x: Pair, y: Pair) -> Pair:
        """Return x - y · trunc(x / y) for quotients up to 2^44."""
        size, of = self.fabs(x), self.fabs(y)
        rest = self.sub(size, self.mul(of, self.floor(self.div(size, of))))
        rest = self.choose(self.apply("lt", rest.high, 0.0), self.add(rest, of), rest)
        rest = self.choose(self.compare("ge", rest, of), self.sub(rest, of), rest)
        far = self.apply("and", self._finite(x.high), self.apply("gt", of.high, GREATEST))
        return self.copysign(self.choose(far, size, rest), x)

    # --- conversions ------------------------------------------------------------------------------------------------

    def of(self, value: Expr) -> Pair:
        """Return a number of another type as a pair."""
        dtype = value.type.dtype
        if isinstance(value, Const):
            return pair_of(float(value.value))
        if dtype.kind == "f" or dtype.bits <= 16:
            return Pair(self.b.cast(value, SINGLE))
        if dtype.bits <= INT.bits:
            return self._of_word(self.b.cast(value, Type(LONG)))
        above = self._of_word(self.b.cast(self.apply("shr", value, 32), Type(LONG)))
        below = self._of_word(self.b.cast(self.apply("and", value, constant(0xFFFFFFFF, dtype)), Type(LONG)))
        return self.add(Pair(*(self.apply("mul", part, 2.0**32) for part in above.parts)), below)

    def _of_word(self, value: Expr) -> Pair:
        """Return a long of at most 33 bits as a pair."""
        high = self.b.cast(value, SINGLE)
        return Pair(high, self.b.cast(self.apply("sub", value, self.b.cast(high, Type(LONG))), SINGLE))

    def to(self, x: Pair, dtype: DType, saturate: bool) -> Expr:
        """Return the pair in another type."""
        if dtype is BOOL:
            return self.apply("ne", x.high, 0.0)
        if dtype.kind == "f" or x.single:
            return self.b.cast(x.high, Type(dtype), saturate)
        whole, wide = self.trunc(self._outwards(x)), ULONG if dtype is ULONG else LONG
        first = self.b.cast(whole.high, Type(wide))
        low = self.b.cast(self.b.cast(whole.low, Type(LONG)), Type(wide), False)
        near = self.apply("lt", self.apply("fabs", whole.high), 2.0**63)
        inside = self.apply("ge", whole.high, 0.0) if dtype is ULONG else near
        near = self.apply("and", self.apply("lt", whole.high, 2.0**64), inside) if dtype is ULONG else near
        total = self.apply("choose", near, self.apply("add", first, low), first)
        return self.b.cast(total, Type(dtype), saturate) if dtype is not wide else total

    def _outwards(self, x: Pair) -> Pair:
        """Return a computed number, a little further from 0: one that errors have brought below an integer is that integer."""
        if x.bits is not None:
            return x
        some = self.apply("mul", x.high, OUTWARDS)
        some = self.apply("choose", self.apply("lt", self.apply("fabs", x.high), 1 / OUTWARDS), some, 0.0)
        return Pair(*self._quick(x.high, self.apply("add", x.low, some)))

    def of_bits(self, bits: Expr) -> Pair:
        """Return the pair of a double with these bits, a ulong."""
        exponent = self.b.cast(self.apply("and", self.apply("shr", bits, MANTISSA), constant(TOP, ULONG)), Type(INT))
        mantissa = self.apply("and", bits, constant((1 << MANTISSA) - 1, ULONG))
        mantissa = self.apply("or", mantissa, constant(1 << MANTISSA, ULONG))
        step = 1 << (MANTISSA + 1 - BITS)
        rounded = self.apply("add", mantissa, constant(step // 2, ULONG))
        mantissa = self.apply("and", rounded, constant(2**64 - step, ULONG))
        above = self.b.cast(self.apply("shr", mantissa, LEAST_BITS), SINGLE)
        below = self.b.cast(self.apply("and", mantissa, constant((1 << LEAST_BITS) - 1, ULONG)), SINGLE)
        scale = self.apply("sub", exponent, BIAS + MANTISSA - LEAST_BITS)
        high = self.apply("ldexp", above, scale)
        low = self.apply("ldexp", below, self.apply("sub", scale, LEAST_BITS))
        high, low = self._quick(high, low)
        odd = self.apply("eq", exponent, TOP)
        shown = self.apply("shl", bits, 64 - MANTISSA)
        special = self.apply(
            "choose", self.apply("eq", shown, constant(0, ULONG)), constant(math.inf, FLOAT), constant(math.nan, FLOAT)
        )
        high = self.apply("choose", odd, special, high)
        low = self.apply("choose", self._finite(high), low, 0.0)
        negative = self.apply("ne", self.apply("shr", bits, 63), constant(0, ULONG))
        return self.choose(negative, self.neg(Pair(high, low)), Pair(high, low))._replace(bits=bits)

    def to_bits(self, x: Pair) -> Expr:
        """Return the bits of the double that a pair is, a ulong."""
        if x.bits is not None:
            return x.bits
        size = self.fabs(x)
        word = self.b.bits(size.high, Type(UINT))
        tiny = self.apply("lt", word, constant(1 << 23, UINT))  # denormals of float are normal doubles
        scaled = self.apply("choose", tiny, self.apply("mul", size.high, 2.0**64), size.high)
        word = self.b.bits(scaled, Type(UINT))
        own = self.b.cast(self.apply("shr", word, 23), Type(INT))
        exponent = self.apply("sub", own, self.apply("choose", tiny, constant(64, INT), constant(0, INT)))
        fraction = self.apply("and", word, constant((1 << 23) - 1, UINT))
        bits = self.apply("shl", self.b.cast(fraction, Type(ULONG)), LEAST_BITS)
        shifted = self.b.cast(self.apply("add", exponent, BIAS - 127), Type(ULONG), False)
        bits = self.apply("or", bits, self.apply("shl", shifted, MANTISSA))
        if not x.single:  # carries and borrows go into the exponent, as the bits of numbers count up
            bits = self.apply("add", bits, self._units(size.low, fraction, exponent))
        special = constant(TOP << MANTISSA, ULONG)
        nan = constant((TOP << MANTISSA) | (1 << (MANTISSA - 1)), ULONG)
        odd = self.apply("choose", self._is_nan(x), nan, special)
        bits = self.apply("choose", self._finite(x.high), bits, odd)
        bits = self.apply("choose", self.apply("eq", x.high, 0.0), constant(0, ULONG), bits)
        sign = self.apply("and", self.b.bits(x.high, Type(UINT)), constant(1 << 31, UINT))
        return self.apply("or", bits, self.apply("shl", self.b.cast(sign, Type(ULONG)), 32))

    def _units(self, low: Expr, fraction: Expr, exponent: Expr) -> Expr:
        """Return the second float in units of a double's last place, modulo 2^64; below a power of two they are half as large."""
        below = self.apply("and", self.apply("eq", fraction, constant(0, UINT)), self.apply("lt", low, 0.0))
        finer = self.apply("choose", below, constant(1, INT), constant(0, INT))
        units = self.apply("ldexp", low, self.apply("add", self.apply("sub", 127 + MANTISSA, exponent), finer))
        whole = self.b.cast(self.apply("rint", units), Type(LONG))
        return self.b.cast(whole, Type(ULONG), False)


BINARY: dict[str, Callable[[PairArithmetic, Pair, Pair], Pair]] = {
    "add": PairArithmetic.add,
    "sub": PairArithmetic.sub,
    "mul": PairArithmetic.mul,
    "div": PairArithmetic.div,
    "fmod": PairArithmetic.fmod,
    "copysign": PairArithmetic.copysign,
    "fmax": PairArithmetic.fmax,
    "fmin": PairArithmetic.fmin,
    "max": PairArithmetic.max,
    "min": PairArithmetic.min,
}
UNARY: dict[str, Callable[[PairArithmetic, Pair], Pair]] = {
    "neg": PairArithmetic.neg,
    "fabs": PairArithmetic.fabs,
    "sqrt": PairArithmetic.sqrt,
    "floor": PairArithmetic.floor,
    "ceil": PairArithmetic.ceil,
    "trunc": PairArithmetic.trunc,
    "round": PairArithmetic.round,
    "rint": PairArithmetic.rint,
}
