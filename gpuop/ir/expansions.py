"""Functions made of table rows, expanded when they are recorded: no device, dialect or pass knows them.

Each takes a builder and operands and returns the result, or a tuple of results.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gpuop.errors import SemanticError
from gpuop.ir import rules
from gpuop.ir.build import Builder, constant
from gpuop.ir.nodes import Expr
from gpuop.ir.types import INT

Expansion = Callable[..., Expr | tuple[Expr, ...]]
EXPANSIONS: dict[str, tuple[int, Expansion]] = {}


def expansion(arity: int, *names: str) -> Callable[[Expansion], Expansion]:
    def register(function: Expansion) -> Expansion:
        for name in names or (function.__name__.rstrip("_"),):
            EXPANSIONS[name] = (arity, function)
        return function

    return register


def floats(b: Builder, name: str, *args: Expr) -> list[Expr]:
    """The operands converted to one floating type."""
    wanted, _ = rules.floating(name, [a.type for a in args])
    return [b.cast(a, t) for a, t in zip(args, wanted, strict=True)]


def scaled(b: Builder, name: str, op: str, factor: float, *args: Expr) -> Expr:
    return b.apply("mul", b.apply(op, *floats(b, name, *args)), factor)


# --- operators --------------------------------------------------------------------------------------------------


@expansion(2)
def floordiv(b: Builder, x: Expr, y: Expr) -> Expr:
    """Division rounded down."""
    quotient = b.apply("div", x, y)
    if quotient.type.kind == "f":
        return b.apply("floor", quotient)
    if quotient.type.kind == "u":
        return quotient
    x, y = b.cast(x, quotient.type, False), b.cast(y, quotient.type, False)
    inexact = b.apply("ne", b.apply("mul", quotient, y), x)
    opposite = b.apply("ne", b.apply("lt", x, 0), b.apply("lt", y, 0))
    down = b.apply("and", b.apply("and", inexact, opposite), b.apply("ne", y, 0))
    return b.apply("sub", quotient, b.cast(down, quotient.type, False))


@expansion(2)
def both(b: Builder, x: Expr, y: Expr) -> Expr:
    """C's &&."""
    return b.apply("and", _truth(b, x), _truth(b, y))


@expansion(2)
def either(b: Builder, x: Expr, y: Expr) -> Expr:
    """C's ||."""
    return b.apply("or", _truth(b, x), _truth(b, y))


def _truth(b: Builder, x: Expr) -> Expr:
    return x if x.type.kind == "b" else b.apply("ne", x, 0)


@expansion(1)
def absolute(b: Builder, x: Expr) -> Expr:
    """|x| in x's own type, as Python's abs."""
    if x.type.kind == "f":
        return b.apply("fabs", x)
    if x.type.kind == "u":
        return x
    return b.apply("choose", b.apply("lt", x, 0), b.apply("neg", x), x)


@expansion(2, "power")
def power(b: Builder, x: Expr, y: Expr) -> Expr:
    """`x ** y` of floating values."""
    if x.type.integer and y.type.integer:
        raise SemanticError(
            "`**` of integers needs a constant exponent that is not negative; write `_pow(x, y)` for a float result"
        )
    return b.apply("pow", x, y)


# --- common -----------------------------------------------------------------------------------------------------


def _extreme(name: str, test: str) -> None:
    def extreme(b: Builder, x: Expr, y: Expr) -> Expr:
        wanted, result = rules.arithmetic(f"_{name}", [x.type, y.type])
        x, y = b.cast(x, wanted[0], False), b.cast(y, wanted[1], False)
        return b.apply("choose", b.apply(test, x, y), y, x) if result.kind == "f" else b.apply(name, x, y)

    EXPANSIONS[name] = (2, extreme)


_extreme("max", "lt")  # y if x < y, otherwise x
_extreme("min", "gt")  # y if y < x, otherwise x


def expand(b: Builder, name: str, *args: Expr) -> Expr:
    """An expansion that has one result, by name."""
    result = EXPANSIONS[name][1](b, *args)
    assert not isinstance(result, tuple)
    return result


@expansion(3)
def clamp(b: Builder, x: Expr, low: Expr, high: Expr) -> Expr:
    return expand(b, "min", expand(b, "max", x, low), high)


@expansion(3)
def mix(b: Builder, x: Expr, y: Expr, a: Expr) -> Expr:
    x, y, a = floats(b, "_mix", x, y, a)
    return b.apply("add", x, b.apply("mul", b.apply("sub", y, x), a))


@expansion(1)
def degrees(b: Builder, x: Expr) -> Expr:
    return b.apply("mul", floats(b, "_degrees", x)[0], 180 / math.pi)


@expansion(1)
def radians(b: Builder, x: Expr) -> Expr:
    return b.apply("mul", floats(b, "_radians", x)[0], math.pi / 180)


@expansion(1)
def sign(b: Builder, x: Expr) -> Expr:
    """-1, ±0 or 1; 0 for NaN."""
    (x,) = floats(b, "_sign", x)
    zero = b.apply("choose", b.apply("eq", x, 0), x, 0.0)
    return b.apply("choose", b.apply("gt", x, 0), 1.0, b.apply("choose", b.apply("lt", x, 0), -1.0, zero))


# --- math -------------------------------------------------------------------------------------------------------


def _magnitude(name: str, test: str, fallback: str) -> None:
    def magnitude(b: Builder, x: Expr, y: Expr) -> Expr:
        x, y = floats(b, f"_{name}", x, y)
        ax, ay = b.apply("fabs", x), b.apply("fabs", y)
        other = b.apply("choose", b.apply(test, ay, ax), y, b.apply(fallback, x, y))
        return b.apply("choose", b.apply(test, ax, ay), x, other)

    EXPANSIONS[name] = (2, magnitude)


_magnitude("maxmag", "gt", "fmax")
_magnitude("minmag", "lt", "fmin")


def _over_pi(name: str, op: str, arity: int) -> None:
    EXPANSIONS[name] = (arity, lambda b, *args: scaled(b, f"_{name}", op, 1 / math.pi, *args))


_over_pi("acospi", "acos", 1)
_over_pi("asinpi", "asin", 1)
_over_pi("atanpi", "atan", 1)
_over_pi("atan2pi", "atan2", 2)


@expansion(1)
def tanpi(b: Builder, x: Expr) -> Expr:
    cosine = b.apply("cospi", x)
    cosine = b.apply("choose", b.apply("eq", cosine, 0), 0.0, cosine)  # not -0, which some devices give
    return b.apply("div", b.apply("sinpi", x), cosine)


@expansion(3)
def mad(b: Builder, x: Expr, y: Expr, z: Expr) -> Expr:
    x, y, z = floats(b, "_mad", x, y, z)
    return b.apply("add", b.apply("mul", x, y), z)


@expansion(2)
def native_divide(b: Builder, x: Expr, y: Expr) -> Expr:
    return b.apply("div", *floats(b, "_native_divide", x, y))


@expansion(2)
def fdim(b: Builder, x: Expr, y: Expr) -> Expr:
    """x - y where positive, else +0; NaN stays."""
    x, y = floats(b, "_fdim", x, y)
    return b.apply("choose", b.apply("le", x, y), 0.0, b.apply("sub", x, y))


@expansion(1)
def lgamma_r(b: Builder, x: Expr) -> tuple[Expr, Expr]:
    """(log |Γ(x)|, the sign of Γ(x)); the sign is 0 at the poles, as OpenCL leaves it."""
    (x,) = floats(b, "_lgamma_r", x)
    whole = b.apply("floor", x)
    half = b.apply("mul", whole, 0.5)
    odd = b.apply("ne", half, b.apply("floor", half))
    negative = b.apply("lt", x, 0)
    sign_ = b.apply("choose", b.apply("and", negative, odd), -1, 1)
    pole = b.apply("and", b.apply("le", x, 0), b.apply("eq", x, whole))
    return b.apply("lgamma", x), b.cast(b.apply("choose", pole, 0, sign_), x.type.of(INT))


@expansion(2)
def remquo(b: Builder, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """(the IEEE remainder, the sign and low seven bits of the rounded quotient)."""
    return b.apply("remainder", x, y), b.apply("remquo_bits", x, y)


# --- geometric --------------------------------------------------------------------------------------------------


@expansion(2)
def dot(b: Builder, x: Expr, y: Expr) -> Expr:
    products = b.lanes(b.apply("mul", *floats(b, "_dot", x, y)))
    total = products[0]
    for product in products[1:]:
        total = b.apply("add", total, product)
    return total


@expansion(2)
def cross(b: Builder, x: Expr, y: Expr) -> Expr:
    """Of 3-vectors, or of the first three components of 4-vectors (the fourth is 0)."""
    if x.type.lanes != y.type.lanes or x.type.lanes not in (3, 4):
        raise SemanticError(f"_cross wants two 3-vectors or two 4-vectors, not {x.type} and {y.type}")
    x, y = floats(b, "_cross", x, y)
    xs, ys = b.lanes(x), b.lanes(y)
    parts = [
        b.apply("sub", b.apply("mul", xs[i], ys[j]), b.apply("mul", xs[j], ys[i])) for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return b.pack([*parts, constant(0.0, x.type.dtype)][: x.type.lanes])


@expansion(1, "length", "fast_length")
def length(b: Builder, x: Expr) -> Expr:
    (x,) = floats(b, "_length", x)
    return b.apply("fabs", x) if x.type.lanes == 1 else b.apply("sqrt", expand(b, "dot", x, x))


@expansion(2, "distance", "fast_distance")
def distance(b: Builder, x: Expr, y: Expr) -> Expr:
    return expand(b, "length", b.apply("sub", *floats(b, "_distance", x, y)))


@expansion(1, "normalize", "fast_normalize")
def normalize(b: Builder, x: Expr) -> Expr:
    """x / |x|; a zero vector stays zero."""
    (x,) = floats(b, "_normalize", x)
    size = expand(b, "length", x)
    return b.apply("div", x, b.apply("choose", b.apply("eq", size, 0), 1.0, size))
