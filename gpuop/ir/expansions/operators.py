"""What Python's operators and C's && and || are made of."""

from __future__ import annotations

from gpuop.errors import SemanticError
from gpuop.ir.build import Builder
from gpuop.ir.expansions.registry import define
from gpuop.ir.nodes import Expr


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


@define("", 2, "power", "x ** y of floating values")
def power(b: Builder, x: Expr, y: Expr) -> Expr:
    if x.type.integer and y.type.integer:
        raise SemanticError(
            "`**` of integers needs a constant exponent that is not negative; write `_pow(x, y)` for a float result"
        )
    return b.apply("pow", x, y)
