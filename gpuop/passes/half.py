"""half computes in float and rounds after every operation, which is what half arithmetic gives; devices need no fp16."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import Builder
from gpuop.ir.nodes import Apply, Cast, Expr, Kernel
from gpuop.ir.types import FLOAT, HALF, Type
from gpuop.passes.rewrite import rewrite_bindings

EXACT = {"choose", "neg", "fabs", "fmax", "fmin", "copysign", "nan"}  # of halves these are halves


def half_as_float(kernel: Kernel) -> Kernel:
    return replace(kernel, body=rewrite_bindings(kernel.body, _rule))


def _rule(b: Builder, expr: Expr) -> Expr | None:
    if not isinstance(expr, Apply) or expr.type != Type(HALF) or expr.op in EXACT:
        return None
    wide = [b.cast(a, Type(FLOAT)) if a.type == Type(HALF) else a for a in expr.args]
    return Cast(b.apply(expr.op, *wide), Type(HALF))
