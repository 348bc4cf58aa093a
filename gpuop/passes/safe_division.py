"""Integer division that never traps: a zero divisor gives 0, and the least integer divided by -1 is itself."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import Builder, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Expr
from gpuop.ir.visit import walk
from gpuop.passes.ranges import Ranges
from gpuop.passes.rewrite import rewrite_bindings


def define_division(kernel: Kernel) -> Kernel:
    ranges = Ranges(kernel, anywhere=True)
    for stmt in walk(kernel.body):
        ranges.meet(stmt)
    return replace(kernel, body=rewrite_bindings(kernel.body, lambda b, expr: _rule(b, expr, ranges)))


def _rule(b: Builder, expr: Expr, ranges: Ranges) -> Expr | None:
    if not isinstance(expr, Apply) or expr.op not in ("div", "mod") or not expr.type.integer:
        return None
    x, y = expr.args
    least, most = ranges.range(y)
    if least > 0 or most < -1:
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
