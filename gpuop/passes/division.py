"""Integer division never traps: a zero divisor gives 0, and the lowest integer divided by -1 stays what it is."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import Builder, constant
from gpuop.ir.nodes import Apply, Const, Expr, Kernel, Stride
from gpuop.passes.rewrite import rewrite_bindings


def define_division(kernel: Kernel) -> Kernel:
    return replace(kernel, body=rewrite_bindings(kernel.body, _rule))


def _rule(b: Builder, expr: Expr) -> Expr | None:
    if not isinstance(expr, Apply) or expr.op not in ("div", "mod") or not expr.type.integer:
        return None
    x, y = expr.args
    if isinstance(y, Stride) or (isinstance(y, Const) and y.value not in (0, -1)):
        return None
    dtype = expr.type.dtype
    bad = b.apply("eq", y, 0)
    on_zero: Expr = constant(0, dtype)
    if dtype.kind == "i":  # x / -1 is -x, x % -1 is 0
        minus = b.apply("eq", y, -1)
        on_zero = b.apply("choose", minus, b.apply("neg", x), 0) if expr.op == "div" else on_zero
        bad = b.apply("or", bad, minus)
    quotient = b.bind(Apply(expr.op, (x, b.apply("choose", bad, 1, y)), expr.type))
    return Apply("choose", (bad, on_zero, quotient), expr.type)
