"""Common functions of the guide; min, max and clamp are in its integer table too."""

from __future__ import annotations

import math

from gpuop.ir import type_rules
from gpuop.ir.build import Builder
from gpuop.ir.expansions.registry import define, expand, floats, same
from gpuop.ir.nodes import Expr


def _extreme(name: str, test: str, doc: str) -> None:
    @define("common", 2, name, doc)
    def extreme(b: Builder, x: Expr, y: Expr) -> Expr:
        types, result = type_rules.arithmetic(f"_{name}", [x.type, y.type])
        x, y = b.cast(x, types[0], False), b.cast(y, types[1], False)
        return b.apply("choose", b.apply(test, x, y), y, x) if result.kind == "f" else b.apply(name, x, y)


_extreme("max", "lt", "y if x < y, otherwise x; of integers too")
_extreme("min", "gt", "y if y < x, otherwise x; of integers too")


@define("common", 3, "clamp", "min(max(x, low), high); of integers too")
def clamp(b: Builder, x: Expr, low: Expr, high: Expr) -> Expr:
    # one type for all three, which neither the minimum nor the maximum alone would choose
    types, _ = type_rules.arithmetic("_clamp", [x.type, low.type, high.type])
    x, low, high = (b.cast(each, type_, False) for each, type_ in zip((x, low, high), types, strict=True))
    return expand(b, "min", expand(b, "max", x, low), high)


@define("common", 3, "mix", "x + (y - x) · a, every step rounded", ulp=math.inf)
def mix(b: Builder, x: Expr, y: Expr, a: Expr) -> Expr:
    x, y, a = floats(b, "mix", x, y, a)
    return b.apply("add", x, b.apply("mul", b.apply("sub", y, x), a))


@define("common", 1, "degrees", "x · 180/π", ulp=2)
def degrees(b: Builder, x: Expr) -> Expr:
    return b.apply("mul", floats(b, "degrees", x)[0], 180 / math.pi)


@define("common", 1, "radians", "x · π/180", ulp=2)
def radians(b: Builder, x: Expr) -> Expr:
    return b.apply("mul", floats(b, "radians", x)[0], math.pi / 180)


@define("common", 1, "sign", "-1, ±0 or 1; 0 for NaN")
def sign(b: Builder, x: Expr) -> Expr:
    (x,) = floats(b, "sign", x)
    zero = b.apply(
        "choose", b.apply("eq", x, 0), b.apply("copysign", same(0.0, x.type), x), 0.0
    )  # constant, also where it is x
    return b.apply("choose", b.apply("gt", x, 0), 1.0, b.apply("choose", b.apply("lt", x, 0), -1.0, zero))
