"""Mathematical functions of the guide that are composed of others; most are table rows."""

from __future__ import annotations

import math

from gpuop.ir.build import Builder
from gpuop.ir.expansions.registry import define, floats
from gpuop.ir.nodes import Expr
from gpuop.ir.types import INT


def _magnitude(name: str, test: str, fallback: str, doc: str) -> None:
    @define("math", 2, name, doc)
    def magnitude(b: Builder, x: Expr, y: Expr) -> Expr:
        x, y = floats(b, name, x, y)
        ax, ay = b.apply("fabs", x), b.apply("fabs", y)
        other = b.apply("choose", b.apply(test, ay, ax), y, b.apply(fallback, x, y))
        return b.apply("choose", b.apply(test, ax, ay), x, other)


_magnitude("maxmag", "gt", "fmax", "x if |x| > |y|, y if |y| > |x|, otherwise fmax(x, y)")
_magnitude("minmag", "lt", "fmin", "x if |x| < |y|, y if |y| < |x|, otherwise fmin(x, y)")


def _over_pi(name: str, op: str, arity: int, ulp: float, doc: str) -> None:
    @define("math", arity, name, doc, ulp)
    def scaled(b: Builder, *args: Expr) -> Expr:
        return b.apply("mul", b.apply(op, *floats(b, name, *args)), 1 / math.pi)


_over_pi("acospi", "acos", 1, 5, "acos(x) / π")
_over_pi("asinpi", "asin", 1, 5, "asin(x) / π")
_over_pi("atanpi", "atan", 1, 5, "atan(x) / π")
_over_pi("atan2pi", "atan2", 2, 6, "atan2(y, x) / π")


@define("math", 1, "tanpi", "tan(πx)", ulp=6)
def tanpi(b: Builder, x: Expr) -> Expr:
    cosine = b.apply("cospi", x)
    cosine = b.apply("choose", b.apply("eq", cosine, 0), 0.0, cosine)  # not -0, which some devices give
    return b.apply("div", b.apply("sinpi", x), cosine)


@define("math", 3, "mad", "x · y + z, both steps rounded", ulp=math.inf)
def mad(b: Builder, x: Expr, y: Expr, z: Expr) -> Expr:
    x, y, z = floats(b, "mad", x, y, z)
    return b.apply("add", b.apply("mul", x, y), z)


@define("math", 2, "native_divide", "x / y", ulp=2.5, double=0)
def native_divide(b: Builder, x: Expr, y: Expr) -> Expr:
    return b.apply("div", *floats(b, "native_divide", x, y))


@define("math", 2, "fdim", "x - y where that is positive, else +0; NaN stays")
def fdim(b: Builder, x: Expr, y: Expr) -> Expr:
    x, y = floats(b, "fdim", x, y)
    return b.apply("choose", b.apply("le", x, y), 0.0, b.apply("sub", x, y))


@define("math", 1, "lgamma_r", "(log |Γ(x)|, the sign of Γ(x): 0 at the poles)", ulp=math.inf)
def lgamma_r(b: Builder, x: Expr) -> tuple[Expr, Expr]:
    (x,) = floats(b, "lgamma_r", x)
    whole = b.apply("floor", x)
    half = b.apply("mul", whole, 0.5)
    odd = b.apply("ne", half, b.apply("floor", half))
    negative = b.apply("lt", x, 0)
    sign = b.apply("choose", b.apply("and", negative, odd), -1, 1)
    pole = b.apply("and", b.apply("le", x, 0), b.apply("eq", x, whole))
    return b.apply("lgamma", x), b.cast(b.apply("choose", pole, 0, sign), x.type.of(INT))


@define("math", 2, "remquo", "(remainder(x, y), the sign and low seven bits of the rounded quotient)")
def remquo(b: Builder, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return b.apply("remainder", x, y), b.apply("remquo_bits", x, y)
