"""half computes in float and rounds after every operation, which is what half arithmetic gives; devices need no fp16."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import Builder, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Cast, Expr
from gpuop.ir.types import FLOAT, HALF, SHORT, Type
from gpuop.passes.rewrite import rewrite_bindings

EXACT = {"choose", "neg", "fabs", "fmax", "fmin", "copysign", "nan"}  # of halves these are halves


def half_as_float(kernel: Kernel) -> Kernel:
    return replace(kernel, body=rewrite_bindings(kernel.body, _rule))


def _rule(b: Builder, expr: Expr) -> Expr | None:
    if not isinstance(expr, Apply) or expr.type != Type(HALF) or expr.op in EXACT:
        return None
    if expr.op == "nextafter":
        return _following(b, *expr.args)
    wide = [b.cast(a, Type(FLOAT)) if a.type == Type(HALF) else a for a in expr.args]
    return Cast(b.apply(expr.op, *wide), Type(HALF))


def _following(b: Builder, x: Expr, y: Expr) -> Expr:
    """nextafter, by counting in the bits."""
    outwards = b.apply("eq", b.apply("lt", x, y), b.apply("gt", x, 0))
    step = b.apply("choose", outwards, constant(1, SHORT), constant(-1, SHORT))
    moved = b.bits(b.apply("add", b.bits(x, Type(SHORT)), step), Type(HALF))
    least = b.apply("choose", b.apply("gt", y, 0), constant(2.0**-24, HALF), constant(-(2.0**-24), HALF))
    there = b.apply("or", b.apply("eq", x, y), b.apply("ne", y, y))
    moved = b.apply("choose", b.apply("eq", x, 0), least, moved)
    return Apply("choose", (b.apply("ne", x, x), x, b.apply("choose", there, y, moved)), Type(HALF))
