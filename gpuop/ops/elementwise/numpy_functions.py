"""Elementwise NumPy functions in the kernel vocabulary: a type rule (see `algebra.RULES`) and a body for each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gpuop.dsl as k

# --- elementwise NumPy functions in terms of others, in the kernel vocabulary: rows of `numpy_functions` --------------


LOG2 = math.log(2)
UNIT = 1 << 16  # the distance of two bfloat16 in the bits of floats


def lane_by_lane(function: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function of vectors that applies a function of scalars with a loop to each component."""

    def of(*values: Value) -> Value:
        count = max(x.type.lanes for x in values)
        lanes = [function(*(x[n] if x.type.lanes > 1 else x for x in values)) for n in range(count)]
        return k._vector(*lanes) if count > 1 else lanes[0]

    return of


def following_bfloat16(x: Value, y: Value) -> Value:
    """Return the neighbour of a bfloat16 towards another number, by arithmetic on the bits of the floats that hold them."""
    outwards = (x < y) == (x > 0)
    moved = k._as_float(k._as_int(x) + k._where(outwards, UNIT, -UNIT))
    least = k._as_float(k._where(y > 0, UNIT, UNIT - (1 << 31)))
    return k._where(x != x, x, k._where((x == y) | (y != y), y, k._where(x == 0, least, moved)))


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


COMPOSITES: dict[str, tuple[str, Callable[..., Value]]] = {
    "heaviside": ("floating", _heaviside),
    "logaddexp": ("floating", _log_of_sum(k._exp, k._log1p, LOG2)),
    "logaddexp2": ("floating", _log_of_sum(k._exp2, _log2_of_one_and, 1.0)),
    "nextafter": ("floating", _nextafter),
    "gcd": ("integer", lane_by_lane(_gcd)),
    "lcm": ("integer", lane_by_lane(_lcm)),
    "bitwise_count": ("bit count", _bitwise_count),
}


# --- ------------------------------------------------------------------------------------------------------------------


Value = Any
Function = Callable[..., Value]


def _floor_divide(x: Value, y: Value) -> Value:
    """Return x // y as NumPy does: for floats from the remainder, so that x == (x // y) * y + x % y to rounding."""
    if x.type.kind != "f":
        return x // y
    rest = k._fmod(x, y)
    quotient = (x - rest) / y
    quotient = k._where((rest != 0) & ((rest < 0) != (y < 0)), quotient - 1, quotient)
    whole = k._floor(quotient)
    whole = k._where(quotient - whole > 0.5, whole + 1, whole)
    exact = k._where(quotient != 0, whole, k._copysign(k._convert(0.0, quotient.type.dtype.name), x / y))
    return k._where(y == 0, x / y, exact)


def _remainder(x: Value, y: Value) -> Value:
    """Return the remainder with the divisor's sign."""
    rest = k._fmod(x, y) if x.type.kind == "f" else x % y
    if x.type.kind == "u":
        return rest
    shifted = k._where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)
    return k._where(rest == 0, k._copysign(rest, y), shifted) if x.type.kind == "f" else shifted


def _power(x: Value, y: Value) -> Value:
    """Return x ** y, of integers by squaring; negative exponents, in fields, give the whole part: 0, except for 1 and -1."""
    if x.type.kind == "f" or (y.constant is not None and y.constant >= 0):
        return x**y
    return lane_by_lane(_integer_power)(x, y)


def _integer_power(x: Value, y: Value) -> Value:
    base, left = k._var(x), k._var(y)
    result = k._var(k._convert(1, x.type.dtype.name))
    with k._while(left > 0):
        with k._if((left & 1) != 0):
            result *= base
        base *= base
        left >>= 1
    if x.type.kind == "u":
        return result
    unit = k._where(x == 1, 1, k._where(x == -1, 1 - 2 * (y & 1), 0))
    return k._where(y < 0, unit, result)


def _maximum(x: Value, y: Value) -> Value:
    return k._max(x, y) if _is_number(y) else k._where(x >= y, x, k._where(x != x, x, y))


def _minimum(x: Value, y: Value) -> Value:
    return k._min(x, y) if _is_number(y) else k._where(x <= y, x, k._where(x != x, x, y))


def _is_number(y: Value) -> bool:
    """Return whether y is known not to be NaN: then one comparison finds the extreme, which is x where x is NaN."""
    return y.type.kind != "f" or (y.constant is not None and y.constant == y.constant)


def _sign(x: Value) -> Value:
    zero, one = x * 0, x * 0 + 1
    if x.type.kind == "f":
        return k._where(x != x, x, k._sign(x) + 0.0)  # the sign of -0 is +0 in NumPy
    return k._where(x > 0, one, k._where(x < 0, zero - one, zero)) if x.type.kind == "i" else k._where(x > 0, one, zero)


def _signbit(x: Value) -> Value:
    one = k._convert(1.0, x.type.dtype.name)
    return k._copysign(one, x) < 0


def _invert(x: Value) -> Value:
    return ~x


def _left_shift(x: Value, y: Value) -> Value:
    """Return x << y; 0 for shifts by the width or more."""
    return k._where(_within(x, y), x << y, x * 0)


def _right_shift(x: Value, y: Value) -> Value:
    """Return x >> y; the sign for shifts by the width or more."""
    return k._where(_within(x, y), x >> y, x >> x.type.dtype.bits - 1 if x.type.kind == "i" else x * 0)


def _within(x: Value, y: Value) -> Value:
    below = y < x.type.dtype.bits
    return below if y.type.kind == "u" else below & (y >= 0)


def _square(x: Value) -> Value:
    return x * x


def _identity(x: Value) -> Value:
    return x


def _zero(x: Value) -> Value:
    return k._convert(0, x.type.dtype.name)


def _whole(rounded: Function) -> Function:
    """Return a rounding function, which leaves integers as they are."""
    return lambda x: rounded(x) if x.type.kind == "f" else x


def _by_kind(floating: Function, integer: Function) -> Function:
    return lambda x, y: (floating if x.type.kind == "f" else integer)(x, y)


def _divide(x: Value, y: Value) -> Value:
    return x / y


def _compared(compare: Function) -> Function:
    """Return a comparison, also of signed and unsigned integers without a common type: negative ones are less."""

    def compared(x: Value, y: Value) -> Value:
        if (x.type.kind == "i") == (y.type.kind == "i"):
            return compare(x, y)
        unsigned = compare(k._convert(x, "uint64"), k._convert(y, "uint64"))
        less, more = k._convert(-1, "int64"), k._convert(0, "int64")
        below = (x < 0, compare(less, more)) if x.type.kind == "i" else (y < 0, compare(more, less))
        return k._where(*below, unsigned)

    return compared


TABLE: dict[str, tuple[str, Function]] = {
    "add": ("arithmetic", lambda x, y: x + y),
    "subtract": ("arithmetic", lambda x, y: x - y),
    "multiply": ("arithmetic", lambda x, y: x * y),
    "negative": ("arithmetic", lambda x: -x),
    "positive": ("arithmetic", _identity),
    "square": ("arithmetic", _square),
    "absolute": ("arithmetic", abs),
    "divide": ("division", _divide),
    "true_divide": ("division", _divide),
    "conjugate": ("arithmetic", _identity),
    "reciprocal": ("arithmetic", lambda x: 1 / x),
    "floor_divide": ("integral", _floor_divide),
    "remainder": ("integral", _remainder),
    "fmod": ("integral", lambda x, y: x % y),
    "power": ("integral", _power),
    "floor": ("order", _whole(k._floor)),
    "ceil": ("order", _whole(k._ceil)),
    "trunc": ("order", _whole(k._trunc)),
    "fmax": ("order", _by_kind(k._fmax, k._max)),
    "fmin": ("order", _by_kind(k._fmin, k._min)),
    "maximum": ("order", _maximum),
    "minimum": ("order", _minimum),
    "clip": ("order", lambda x, low, high: _minimum(_maximum(x, low), high)),
    "sign": ("integral", _sign),
    "less": ("comparison", _compared(lambda x, y: x < y)),
    "less_equal": ("comparison", _compared(lambda x, y: x <= y)),
    "greater": ("comparison", _compared(lambda x, y: x > y)),
    "greater_equal": ("comparison", _compared(lambda x, y: x >= y)),
    "equal": ("equality", _compared(lambda x, y: x == y)),
    "not_equal": ("equality", _compared(lambda x, y: x != y)),
    "bitwise_and": ("bits", lambda x, y: x & y),
    "bitwise_or": ("bits", lambda x, y: x | y),
    "bitwise_xor": ("bits", lambda x, y: x ^ y),
    "invert": ("bits", _invert),
    "left_shift": ("shift", _left_shift),
    "right_shift": ("shift", _right_shift),
    "logical_and": ("logic", lambda x, y: x & y),
    "logical_or": ("logic", lambda x, y: x | y),
    "logical_xor": ("logic", lambda x, y: x ^ y),
    "logical_not": ("logic", _invert),
    "isnan": ("test", lambda x: x != x),
    "isinf": ("test", lambda x: (x == x) & (x - x != x - x)),
    "isfinite": ("test", lambda x: x - x == x - x),
    "signbit": ("test", _signbit),
}
# NumPy name: kernel name. They compute in float32 or float64.
NAMES = {
    "sqrt": "sqrt", "cbrt": "cbrt", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2",
    "log10": "log10", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "arctan2": "atan2", "hypot": "hypot", "rint": "rint", "fabs": "fabs", "copysign": "copysign",
    "degrees": "degrees", "radians": "radians", "rad2deg": "degrees", "deg2rad": "radians",
}  # fmt: skip
TABLE.update(COMPOSITES)
TABLE.update({numpy_name: ("floating", getattr(k, f"_{name}")) for numpy_name, name in NAMES.items()})
# Real numbers only; complex numbers have the rows of `complex_algebra`.
PARTS: dict[str, tuple[str, Function]] = {
    "real": ("order", _identity),
    "imag": ("order", _zero),
    "angle": ("floating", lambda x: k._atan2(_zero(x), x)),
}
EVERY = TABLE | PARTS
