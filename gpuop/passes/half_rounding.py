"""Half arithmetic in float, rounded after every operation: the bits of half arithmetic, on devices without fp16."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import Builder, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Cast, Expr
from gpuop.ir.types import FLOAT, HALF, INT, SHORT, Type
from gpuop.passes.rewrite import rewrite_bindings

# operations whose results on halves are halves: no rounding is needed
EXACT = {"choose", "neg", "fabs", "fmax", "fmin", "copysign", "nan"}


def half_as_float(kernel: Kernel) -> Kernel:
    return replace(kernel, body=rewrite_bindings(kernel.body, _rule))


def _rule(b: Builder, expr: Expr) -> Expr | None:
    if not isinstance(expr, Apply) or expr.type != Type(HALF) or expr.op in EXACT:
        return None
    if expr.op == "nextafter":
        return _following(b, *expr.args)
    if expr.op == "fma":
        return Cast(_odd_sum(b, *expr.args), Type(HALF))
    wide = [b.cast(a, Type(FLOAT)) if a.type == Type(HALF) else a for a in expr.args]
    return Cast(b.apply(expr.op, *wide), Type(HALF))


def _odd_sum(b: Builder, x: Expr, y: Expr, z: Expr) -> Expr:
    """x · y + z rounded to odd in float, so that the rounding to half is correct (S. Boldo, G. Melquiond)."""
    x, y, z = (b.cast(a, Type(FLOAT)) for a in (x, y, z))
    product = b.apply("mul", x, y)  # exact
    total = b.apply("add", product, z)
    part = b.apply("sub", total, product)  # Knuth's TwoSum
    error = b.apply("add", b.apply("sub", product, b.apply("sub", total, part)), b.apply("sub", z, part))
    inexact = b.apply("or", b.apply("lt", error, 0), b.apply("gt", error, 0))
    bits = b.bits(total, Type(INT))
    outwards = b.apply("eq", b.apply("gt", error, 0), b.apply("gt", total, 0))
    moved = b.apply("add", bits, b.apply("choose", outwards, constant(1, INT), constant(-1, INT)))
    even = b.apply("eq", b.apply("and", bits, 1), 0)
    return b.apply("choose", b.apply("and", inexact, even), b.bits(moved, Type(FLOAT)), total)


def _following(b: Builder, x: Expr, y: Expr) -> Expr:
    """The neighbour of a half towards another number, by integer arithmetic on its bits."""
    outwards = b.apply("eq", b.apply("lt", x, y), b.apply("gt", x, 0))
    step = b.apply("choose", outwards, constant(1, SHORT), constant(-1, SHORT))
    moved = b.bits(b.apply("add", b.bits(x, Type(SHORT)), step), Type(HALF))
    least = b.apply("choose", b.apply("gt", y, 0), constant(2.0**-24, HALF), constant(-(2.0**-24), HALF))
    there = b.apply("or", b.apply("eq", x, y), b.apply("ne", y, y))
    moved = b.apply("choose", b.apply("eq", x, 0), least, moved)
    return Apply("choose", (b.apply("ne", x, x), x, b.apply("choose", there, y, moved)), Type(HALF))
