"""C's arithmetic of kernels on single values: integers are Python's, wrapped; floats are NumPy's scalars, rounded each time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .values import Rejected

BITS = {"char": 8, "uchar": 8, "short": 16, "ushort": 16, "int": 32, "uint": 32, "long": 64, "ulong": 64}
REAL = {"half": np.float16, "float": np.float32, "double": np.float64}
NUMPY = {
    "bool": "bool", "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32",
    "long": "int64", "ulong": "uint64", "half": "float16", "float": "float32", "double": "float64",
}  # fmt: skip
OF_NUMPY = {v: k for k, v in NUMPY.items()} | {"unorm8": "float"}
RANKS = ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double")


def promoted(a: str, b: str) -> str:
    """C's order of ranks: the later of the two."""
    return max(a, b, key=RANKS.index)


def signed(t: str) -> bool:
    return t in BITS and not t.startswith("u")


def low(t: str) -> int:
    return -(1 << BITS[t] - 1) if signed(t) else 0


def high(t: str) -> int:
    return (1 << BITS[t] - signed(t)) - 1


def wrap(x: int, t: str) -> int:
    x &= (1 << BITS[t]) - 1
    return x - (1 << BITS[t]) if x > high(t) else x


def saturate(x: int, t: str) -> int:
    return min(max(x, low(t)), high(t))


def convert(x: Any, source: str, target: str, saturating: bool) -> Any:
    """One value of a type as another one."""
    if source == target:
        return x
    if target == "bool":
        return bool(x != 0)
    if target in REAL:
        if source in REAL:
            return REAL[target](x)
        wide = np.array(int(x), np.uint64 if source == "ulong" else np.int64)
        return wide.astype(REAL[target])[()]
    if source in REAL:
        if np.isnan(x):
            return 0
        return saturate(math.trunc(float(x)), target) if np.isfinite(x) else (high(target) if x > 0 else low(target))
    return saturate(int(x), target) if saturating else wrap(int(x), target)


def reinterpret(x: Any, source: str, target: str) -> Any:
    if source in REAL and np.isnan(x):
        raise Rejected("the bits of NaN")
    bits = np.array([x], NUMPY[source]).view(NUMPY[target])[0]
    if target in REAL:
        return bits
    return int(bits)


# --- operators of one type ----------------------------------------------------------------------------------------------


def quotient(x: int, y: int) -> int:
    """C's, truncated; of a zero divisor 0."""
    if y == 0:
        return 0
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": quotient,
    "%": lambda x, y: x - quotient(x, y) * y if y else 0, "//": lambda x, y: x // y if y else 0,
    "&": lambda x, y: x & y, "|": lambda x, y: x | y, "^": lambda x, y: x ^ y,
}  # fmt: skip
FLOATING: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y, "%": np.fmod,
}  # fmt: skip
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda x, y: x < y, "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y,
}  # fmt: skip


def binary(op: str, x: Any, y: Any, t: str) -> Any:
    """The operation on two values of the result's type."""
    if t == "bool":
        return bool(INTEGER[op](bool(x), bool(y)))
    return FLOATING[op](x, y) if t in REAL else wrap(INTEGER[op](x, y), t)


def shift(op: str, x: int, by: int, t: str) -> int:
    """By an amount modulo the width."""
    by &= BITS[t] - 1
    return wrap(x << by if op == "<<" else x >> by, t)


def unary(op: str, x: Any, t: str) -> Any:
    if op == "~":
        return wrap(~x, t)
    if t in REAL:
        return -x if op == "-" else abs(x)
    return wrap(-x if op == "-" else abs(x), t)


# --- functions ------------------------------------------------------------------------------------------------------------


def _unsigned(t: str) -> str:
    return t if t.startswith("u") else f"u{t}"


def _clz(x: int, t: str) -> int:
    return BITS[t] - (x & ((1 << BITS[t]) - 1)).bit_length()


def _rotate(x: int, n: int, t: str) -> int:
    width = BITS[t]
    n, x = n % width, x & ((1 << width) - 1)
    return wrap(x << n | x >> (width - n), t)


def _minimum(x: Any, y: Any, t: str) -> Any:
    return y if y < x else x


def _maximum(x: Any, y: Any, t: str) -> Any:
    return y if x < y else x


def _clamp(x: Any, lo: Any, hi: Any, t: str) -> Any:
    return _minimum(_maximum(x, lo, t), hi, t)


def _zeros(x: Any, y: Any) -> None:
    if x == 0 == y and np.signbit(x) != np.signbit(y):
        raise Rejected("either zero")


def _fmin(x: Any, y: Any, t: str) -> Any:
    _zeros(x, y)
    return np.fmin(x, y)


def _fmax(x: Any, y: Any, t: str) -> Any:
    _zeros(x, y)
    return np.fmax(x, y)


def _copysign(x: Any, y: Any, t: str) -> Any:
    if np.isnan(y):
        raise Rejected("the sign of NaN")
    return np.copysign(x, y)


def _round(x: Any, t: str) -> Any:
    whole = np.trunc(x)
    away = whole + np.copysign(type(x)(1), x) if abs(x - whole) >= 0.5 else whole
    return np.copysign(away, x) if np.isfinite(x) else x


INTEGERS: dict[str, tuple[int, Callable[..., Any]]] = {
    "_min": (2, _minimum), "_max": (2, _maximum), "_clamp": (3, _clamp),
    "_add_sat": (2, lambda x, y, t: saturate(x + y, t)), "_sub_sat": (2, lambda x, y, t: saturate(x - y, t)),
    "_hadd": (2, lambda x, y, t: (x + y) >> 1), "_rhadd": (2, lambda x, y, t: (x + y + 1) >> 1),
    "_mul_hi": (2, lambda x, y, t: (x * y) >> BITS[t]), "_clz": (1, _clz),
    "_popcount": (1, lambda x, t: (x & ((1 << BITS[t]) - 1)).bit_count()), "_rotate": (2, _rotate),
    "_mad_sat": (3, lambda x, y, z, t: saturate(x * y + z, t)),
    "_mad_hi": (3, lambda x, y, z, t: wrap(((x * y) >> BITS[t]) + z, t)),
    "_bitselect": (3, lambda x, y, m, t: wrap((x & ~m) | (y & m), t)),
    "_abs": (1, lambda x, t: abs(x)), "_abs_diff": (2, lambda x, y, t: abs(x - y)),
}  # fmt: skip
UNSIGNED = ("_abs", "_abs_diff")  # their results
REALS: dict[str, tuple[int, Callable[..., Any]]] = {
    "_floor": (1, lambda x, t: np.floor(x)), "_ceil": (1, lambda x, t: np.ceil(x)), "_trunc": (1, lambda x, t: np.trunc(x)),
    "_rint": (1, lambda x, t: np.rint(x)), "_round": (1, _round), "_sqrt": (1, lambda x, t: np.sqrt(x)),
    "_fabs": (1, lambda x, t: np.fabs(x)), "_fmin": (2, _fmin), "_fmax": (2, _fmax), "_copysign": (2, _copysign),
    "_min": (2, _minimum), "_max": (2, _maximum), "_clamp": (3, _clamp), "_fmod": (2, lambda x, y, t: np.fmod(x, y)),
    "_mad": (3, lambda x, y, z, t: x * y + z), "_mix": (3, lambda x, y, a, t: x + (y - x) * a),
}  # fmt: skip


def result_of(function: str, t: str) -> str:
    return _unsigned(t) if function in UNSIGNED else t
