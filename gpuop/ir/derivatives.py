"""The derivatives of the operator table: one entry for every row of `ops.py`.

An entry is a function of a builder, the operands, the result and the number of an operand, all of one type. It gives the partial
derivative of the result by that operand:
  an expression of the type of the result: a factor
  an expression of truth values: the result is that operand where it holds, and does not depend on it elsewhere
  ZERO: the result is constant, or constant between steps
`times` multiplies a tangent or a cotangent by it. At kinks: |x| has slope 0 at 0; of equal operands an extreme is the first one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum

from gpuop.ir.build import Builder, constant
from gpuop.ir.nodes import Const, Expr
from gpuop.ir.types import DOUBLE


class Zero(Enum):
    ZERO = 0


ZERO = Zero.ZERO
Partial = Expr | Zero
Derivative = Callable[[Builder, Sequence[Expr], Expr, int], Partial]
Unary = Callable[[Builder, Expr, Expr], Expr]  # of the operand and the result


def partial(b: Builder, op: str, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    """The partial derivative of a row's result by its operand number i, which is of a floating type."""
    return DERIVATIVES[op](b, args, result, i)


def times(b: Builder, factor: Expr, value: Expr) -> Expr:
    """A tangent or a cotangent times a partial derivative; 0, not NaN, where the result does not depend on the operand."""
    if factor.type.kind == "b":
        return b.apply("choose", factor, value, 0.0)
    if isinstance(factor, Const) and abs(factor.value) == 1:
        return value if factor.value == 1 else b.apply("neg", value)
    return b.apply("mul", factor, value)


def plus(b: Builder, total: Expr | None, factor: Expr, value: Expr) -> Expr:
    """A sum, None for 0, with one more product of a partial derivative."""
    if total is None:
        return times(b, factor, value)
    if isinstance(factor, Const) and factor.value == -1:
        return b.apply("sub", total, value)
    return b.apply("add", total, times(b, factor, value))


def _number(like: Expr, value: float) -> Const:
    """A scalar constant of the dtype of an expression."""
    return constant(value, like.type.dtype)


def _constants(*values: float) -> Derivative:
    return lambda b, args, result, i: _number(result, values[i]) if values[i] else ZERO


def _unary(slope: Unary) -> Derivative:
    return lambda b, args, result, i: slope(b, args[0], result)


def _zero(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    return ZERO


def _of_integers(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    """Results that are integers or truth values are constants; so are operands."""
    assert result.type.kind != "f"
    return ZERO


# --- products, quotients, powers ----------------------------------------------------------------------------------------


def _mul(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    return args[1 - i]


def _fma(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    return args[1 - i] if i < 2 else _number(result, 1.0)


def _div(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    return b.apply("div", 1.0, args[1]) if i == 0 else b.apply("neg", b.apply("div", result, args[1]))


def _power(op: str) -> Derivative:
    """xʸ: y·xʸ⁻¹, which is 0 where y is 0; and xʸ·log x, which is 0 where x is 0."""

    def slope(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
        x, y = args
        if i == 1:
            return b.apply("mul", result, b.apply("log", b.apply("choose", b.apply("eq", x, 0.0), 1.0, x)))
        return _power_rule(b, op, x, y, b.apply("sub", y, 1.0), y)

    return slope


def _pown(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    x, n = args
    if i == 1:
        return ZERO
    return _power_rule(b, "pown", x, n, b.apply("sub", n, 1), b.cast(n, result.type))


def _power_rule(b: Builder, op: str, x: Expr, exponent: Expr, less: Expr, factor: Expr) -> Expr:
    """factor · x^less, of a factor that is the exponent; 0 where that is 0, whatever x is."""
    if isinstance(less, Const) and less.value == 1:
        return b.apply("mul", factor, x)
    slope = b.apply("mul", factor, b.apply(op, x, less))
    if isinstance(exponent, Const) and exponent.value != 0:
        return slope
    return b.apply("choose", b.apply("eq", exponent, 0), 0.0, slope)


def _rootn(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    n = args[1]
    if i == 1:
        return ZERO
    power = b.apply("pown", result, b.apply("sub", n, 1))
    return b.apply("div", 1.0, b.apply("mul", b.cast(n, result.type), power))


def _ldexp(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    return b.apply("ldexp", _number(result, 1.0), args[1]) if i == 0 else ZERO


def _cbrt(b: Builder, x: Expr, r: Expr) -> Expr:
    return b.apply("div", 1.0 / 3.0, b.apply("mul", r, r))


def _hypot(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    """0 at the origin, where there is no slope."""
    return b.apply("div", args[i], b.apply("choose", b.apply("eq", result, 0.0), 1.0, result))


# --- functions of one operand -------------------------------------------------------------------------------------------


def _scaled(factor: float) -> Unary:
    return lambda b, x, r: b.apply("mul", r, factor)


def _over(factor: float) -> Unary:
    return lambda b, x, r: b.apply("div", factor, x)


def _of(op: str, factor: float = 1.0) -> Unary:
    """A factor times another function of the operand."""

    def slope(b: Builder, x: Expr, r: Expr) -> Expr:
        value = b.apply(op, x)
        return b.apply("neg", value) if factor == -1 else value if factor == 1 else b.apply("mul", value, factor)

    return slope


def _square_plus(b: Builder, x: Expr, number: float) -> Expr:
    return b.apply("add", b.apply("mul", x, x), number)


def _one_minus_square(b: Builder, x: Expr) -> Expr:
    """1 − x², exact where |x| is close to 1."""
    return b.apply("mul", b.apply("sub", 1.0, x), b.apply("add", 1.0, x))


def _over_root(factor: float, square: Callable[[Builder, Expr], Expr]) -> Unary:
    return lambda b, x, r: b.apply("div", factor, b.apply("sqrt", square(b, x)))


def _gauss(factor: float) -> Unary:
    return lambda b, x, r: b.apply("mul", b.apply("exp", b.apply("neg", b.apply("mul", x, x))), factor)


def _atan2(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    """The other coordinate over the squared radius, without squares that overflow."""
    y, x = args
    radius = b.apply("hypot", y, x)
    other = x if i == 0 else b.apply("neg", y)
    return b.apply("div", b.apply("div", other, radius), radius)


def _digamma(b: Builder, x: Expr) -> Expr:
    """ψ(x), the slope of log |Γ(x)|: by the series of Stirling behind a shift, and by the reflection ψ(1 − x) − π·cot(πx) below ½.

    It is made of rows that have derivatives, so that derivatives of any order follow from it.
    """
    below = b.apply("lt", x, 0.5)
    y = b.apply("choose", below, b.apply("sub", 1.0, x), x)
    shift = 10 if x.type.dtype is DOUBLE else 4
    total = b.apply("div", 1.0, y)
    for n in range(1, shift):
        total = b.apply("add", total, b.apply("div", 1.0, b.apply("add", y, float(n))))
    z = b.apply("add", y, float(shift))
    square = b.apply("mul", z, z)
    series: Expr = _number(x, 0.0)
    for factor in _STIRLING:
        series = b.apply("div", b.apply("add", series, factor), square)
    total = b.apply("add", b.apply("add", total, b.apply("div", 0.5, z)), series)
    psi = b.apply("sub", b.apply("log", z), total)
    turned = b.apply("choose", below, x, 0.25)  # sin(πx) is not 0 there
    cotangent = b.apply("div", b.apply("cospi", turned), b.apply("sinpi", turned))
    return b.apply("sub", psi, b.apply("choose", below, b.apply("mul", cotangent, math.pi), _number(x, 0.0)))


# --- piecewise ----------------------------------------------------------------------------------------------------------


def sign(b: Builder, x: Expr) -> Expr:
    """1, −1, or 0 of 0 and NaN."""
    below = b.apply("choose", b.apply("lt", x, 0.0), -1.0, _number(x, 0.0))
    return b.apply("choose", b.apply("gt", x, 0.0), 1.0, below)


def _extreme(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    first = b.apply("eq", result, args[0])
    return first if i == 0 else b.apply("not", first)


def _rest(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    """x − n·y of an integer n."""
    if i == 0:
        return _number(result, 1.0)
    return b.apply("neg", b.apply("rint", b.apply("div", b.apply("sub", args[0], result), args[1])))


def _copysign(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    return b.apply("mul", sign(b, args[0]), b.apply("copysign", _number(result, 1.0), args[1])) if i == 0 else ZERO


def _choose(b: Builder, args: Sequence[Expr], result: Expr, i: int) -> Partial:
    return ZERO if i == 0 else args[0] if i == 1 else b.apply("not", args[0])


# --- the table ----------------------------------------------------------------------------------------------------------

_LN2, _LN10, _PI = math.log(2), math.log(10), math.pi
_STIRLING = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)  # B₂ₙ / 2n, from n = 7 down
_UNARY: dict[str, Unary] = {
    "sqrt": lambda b, x, r: b.apply("div", 0.5, r),
    "rsqrt": lambda b, x, r: b.apply("mul", b.apply("div", r, x), -0.5),
    "cbrt": _cbrt,
    "exp": lambda b, x, r: r,
    "exp2": _scaled(_LN2),
    "exp10": _scaled(_LN10),
    "expm1": lambda b, x, r: b.apply("add", r, 1.0),
    "log": _over(1.0),
    "log2": _over(1 / _LN2),
    "log10": _over(1 / _LN10),
    "log1p": lambda b, x, r: b.apply("div", 1.0, b.apply("add", x, 1.0)),
    "sin": _of("cos"),
    "cos": _of("sin", -1),
    "tan": lambda b, x, r: _square_plus(b, r, 1.0),
    "sinpi": _of("cospi", _PI),
    "cospi": _of("sinpi", -_PI),
    "asin": _over_root(1.0, _one_minus_square),
    "acos": _over_root(-1.0, _one_minus_square),
    "atan": lambda b, x, r: b.apply("div", 1.0, _square_plus(b, x, 1.0)),
    "sinh": _of("cosh"),
    "cosh": _of("sinh"),
    "tanh": lambda b, x, r: _one_minus_square(b, r),
    "asinh": _over_root(1.0, lambda b, x: _square_plus(b, x, 1.0)),
    "acosh": _over_root(1.0, lambda b, x: b.apply("mul", b.apply("sub", x, 1.0), b.apply("add", x, 1.0))),
    "atanh": lambda b, x, r: b.apply("div", 1.0, _one_minus_square(b, x)),
    "lgamma": lambda b, x, r: _digamma(b, x),
    "tgamma": lambda b, x, r: b.apply("mul", r, _digamma(b, x)),
    "erf": _gauss(2 / math.sqrt(_PI)),
    "erfc": _gauss(-2 / math.sqrt(_PI)),
    "fabs": lambda b, x, r: sign(b, x),
    "native_sqrt": lambda b, x, r: b.apply("native_divide", 0.5, r),
    "native_exp2": _scaled(_LN2),
    "native_log2": lambda b, x, r: b.apply("native_divide", 1 / _LN2, x),
    "native_sin": _of("native_cos"),
    "native_cos": _of("native_sin", -1),
    "native_tan": lambda b, x, r: _square_plus(b, r, 1.0),
}
_STEPS = ("ceil", "floor", "rint", "round", "trunc", "logb")
_TRUTHS = ("lt", "le", "gt", "ge", "eq", "ne", "not", "ilogb", "remquo_bits", "nan")
_INTEGERS = ("mod", "and", "xor", "or", "invert", "shl", "shr", "abs", "bytes_of", "halves_max", "halves_min", "mul_hi")
DERIVATIVES: dict[str, Derivative] = {
    **{op: _unary(slope) for op, slope in _UNARY.items()},
    **dict.fromkeys(_STEPS, _zero),
    **dict.fromkeys((*_TRUTHS, *_INTEGERS, "clz", "popcount"), _of_integers),
    **dict.fromkeys(("neg",), _constants(-1.0)),
    **dict.fromkeys(("hidden", "loaded"), _constants(1.0)),
    **dict.fromkeys(("max", "min", "fmax", "fmin"), _extreme),
    **dict.fromkeys(("fmod", "remainder"), _rest),
    "add": _constants(1.0, 1.0),
    "sub": _constants(1.0, -1.0),
    "mul": _mul,
    "fma": _fma,
    "div": _div,
    "native_divide": _div,
    "pow": _power("pow"),
    "powr": _power("powr"),
    "pown": _pown,
    "rootn": _rootn,
    "ldexp": _ldexp,
    "hypot": _hypot,
    "atan2": _atan2,
    "copysign": _copysign,
    "nextafter": _constants(1.0, 0.0),
    "choose": _choose,
}
