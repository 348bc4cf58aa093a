"""Geometric functions of the guide.

OpenCL 1.2 bounds only fast_normalize; the bounds here are those of OpenCL 3.0 for 4 components.
"""

from __future__ import annotations

import math
from functools import reduce

from gpuop.base.errors import SemanticError
from gpuop.ir.build import Builder
from gpuop.ir.expansions.registry import define, expand, floats, same
from gpuop.ir.nodes import Expr
from gpuop.ir.types import FLOAT, HALF

# The squares of components between 2^-low and 2^low neither overflow nor vanish; greater ones are multiplied by 2^-down
# first, and smaller ones by 2^up.
SCALES = {"float": (60, 70, 100), "double": (500, 600, 600)}


@define("geometric", 2, "dot", "Σ xᵢ · yᵢ from the first component on, every step rounded", ulp=math.inf)
def dot(b: Builder, x: Expr, y: Expr) -> Expr:
    return reduce(
        lambda total, product: b.apply("add", total, product), b.lanes(b.apply("mul", *floats(b, "dot", x, y)))
    )


@define(
    "geometric", 2, "cross", "x × y of 3-vectors, or of the first three of 4 components (the fourth is 0)", ulp=math.inf
)
def cross(b: Builder, x: Expr, y: Expr) -> Expr:
    if x.type.lanes != y.type.lanes or x.type.lanes not in (3, 4):
        raise SemanticError(f"_cross wants two 3-vectors or two 4-vectors, not {x.type} and {y.type}")
    x, y = floats(b, "cross", x, y)
    xs, ys = b.lanes(x), b.lanes(y)
    parts = [
        b.apply("sub", b.apply("mul", xs[i], ys[j]), b.apply("mul", xs[j], ys[i])) for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return b.pack([*parts, same(0.0, x.type)][: x.type.lanes])


@define("geometric", 1, "length", "√(Σ xᵢ²), which overflows only where the result does", ulp=4.75, double=9.5)
def length(b: Builder, x: Expr) -> Expr:
    (x,) = floats(b, "length", x)
    if x.type.lanes == 1:
        return b.apply("fabs", x)
    if x.type.dtype is HALF:
        return expand(b, "fast_length", x)
    scale, back = _scales(b, x)
    return b.apply("mul", expand(b, "fast_length", b.apply("mul", x, scale)), back)


@define("geometric", 2, "distance", "length(x - y)", ulp=10.5, double=13.5)
def distance(b: Builder, x: Expr, y: Expr) -> Expr:
    return expand(b, "length", b.apply("sub", *floats(b, "distance", x, y)))


@define(
    "geometric",
    1,
    "normalize",
    "x / length(x); zeros stay, infinite components count as ±1 among zeros",
    ulp=6,
    double=8.5,
)
def normalize(b: Builder, x: Expr) -> Expr:
    (arg,) = floats(b, "normalize", x)
    x = _widened(b, arg)
    infinite = b.apply("eq", b.apply("fabs", x), math.inf)
    scale = same(1.0, x.type) if arg.type.dtype is HALF or x.type.lanes == 1 else _scales(b, x)[0]
    scale = b.apply("choose", b.apply("eq", _greatest(b, x), math.inf), 0.0, scale)
    x = b.apply("choose", infinite, b.apply("copysign", same(1.0, x.type), x), b.apply("mul", x, scale))
    return b.cast(_divided(b, x), arg.type)


@define("geometric", 1, "fast_length", "√(Σ xᵢ²); squares may overflow", ulp=8193.5)
def fast_length(b: Builder, x: Expr) -> Expr:
    (x,) = floats(b, "fast_length", x)
    wide = _widened(b, x)
    size = b.apply("fabs", wide) if x.type.lanes == 1 else b.apply("sqrt", expand(b, "dot", wide, wide))
    return b.cast(size, x.type.scalar)


@define("geometric", 2, "fast_distance", "fast_length(x - y)", ulp=8199.5)
def fast_distance(b: Builder, x: Expr, y: Expr) -> Expr:
    return expand(b, "fast_length", b.apply("sub", *floats(b, "fast_distance", x, y)))


@define("geometric", 1, "fast_normalize", "x / fast_length(x); zeros stay", ulp=8192)
def fast_normalize(b: Builder, x: Expr) -> Expr:
    (x,) = floats(b, "fast_normalize", x)
    return b.cast(_divided(b, _widened(b, x)), x.type)


def _divided(b: Builder, x: Expr) -> Expr:
    """x by its length, which is neither too great nor too small to square."""
    size = expand(b, "fast_length", x)
    return b.apply("div", x, b.apply("choose", b.apply("eq", size, 0), 1.0, size))


def _widened(b: Builder, x: Expr) -> Expr:
    """half as float, whose squares hold every half's."""
    return b.cast(x, x.type.of(FLOAT)) if x.type.dtype is HALF else x


def _greatest(b: Builder, x: Expr) -> Expr:
    """The greatest component's size; NaNs do not count."""
    return reduce(lambda one, other: b.apply("fmax", one, other), b.lanes(b.apply("fabs", x)))


def _scales(b: Builder, x: Expr) -> tuple[Expr, Expr]:
    """A power of two that makes the components' squares safe, and its inverse."""
    middle, down, up = SCALES[x.type.dtype.c]
    most = _greatest(b, x)
    great, small = b.apply("gt", most, 2.0**middle), b.apply("lt", most, 2.0**-middle)

    def chosen(if_great: float, if_small: float) -> Expr:
        usual = b.apply("choose", small, same(if_small, x.type), same(1.0, x.type))
        return b.apply("choose", great, same(if_great, x.type), usual)

    return chosen(2.0**-down, 2.0**up), chosen(2.0**down, 2.0**-up)
