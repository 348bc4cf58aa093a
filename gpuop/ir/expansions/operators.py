"""Expansions of the Python operators and of C && and ||."""

from __future__ import annotations

from gpuop.base.errors import SemanticError
from gpuop.ir.build import Builder, constant
from gpuop.ir.expansions.registry import define
from gpuop.ir.nodes import Const, Expr
from gpuop.ir.types import INT, Type, promote


@define("", 2, "floordiv", "x / y rounded down")
def floordiv(b: Builder, x: Expr, y: Expr) -> Expr:
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


@define("", 2, "both", "C's x && y")
def both(b: Builder, x: Expr, y: Expr) -> Expr:
    return b.apply("and", _truth(b, x), _truth(b, y))


@define("", 2, "either", "C's x || y")
def either(b: Builder, x: Expr, y: Expr) -> Expr:
    return b.apply("or", _truth(b, x), _truth(b, y))


def _truth(b: Builder, x: Expr) -> Expr:
    return x if x.type.kind == "b" else b.apply("ne", x, 0)


@define("", 1, "absolute", "|x| in x's own type, as Python's abs")
def absolute(b: Builder, x: Expr) -> Expr:
    if x.type.kind == "f":
        return b.apply("fabs", x)
    if x.type.kind == "u":
        return x
    return b.apply("choose", b.apply("lt", x, 0), b.apply("neg", x), x)


@define("", 2, "power", "x ** y of floating values, and of integers to a constant")
def power(b: Builder, x: Expr, y: Expr) -> Expr:
    """Products, roots and quotients where NumPy has such for a constant exponent: pow may differ in the last bit."""
    n = y.value if isinstance(y, Const) else None
    if x.type.kind != "f" and y.type.kind != "f":
        if n is None or n < 0:
            raise SemanticError(
                "`**` of integers needs a constant exponent that is not negative; write `_pow(x, y)` for a float result"
            )
        return _product(b, b.cast(x, Type(INT, x.type.lanes)) if x.type.kind == "b" else x, int(n))
    if n not in (0, 1, 2, 0.5, -1):
        return b.apply("pow", x, y)
    x = b.cast(x, Type(promote(x.type.dtype, y.type.dtype), x.type.lanes), saturate=False)
    if n in (0.5, -1):
        return b.apply("sqrt", x) if n == 0.5 else b.apply("div", 1, x)
    return _product(b, x, int(n))


def _product(b: Builder, x: Expr, factors: int) -> Expr:
    """Power of x with this exponent, by squaring."""
    if factors < 2:
        return x if factors else b.cast(constant(1, x.type.dtype), x.type)
    half = _product(b, x, factors // 2)
    square = b.apply("mul", half, half)
    return b.apply("mul", square, x) if factors % 2 else square
