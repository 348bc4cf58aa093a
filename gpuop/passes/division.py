"""Integer division never traps: a zero divisor gives 0, and the lowest integer divided by -1 stays what it is."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import Builder, constant, fold
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Const, Expr, Index, Let, Ref, Stride, Var
from gpuop.ir.ops import OPS
from gpuop.ir.visit import walk
from gpuop.passes.rewrite import rewrite_bindings


def define_division(kernel: Kernel) -> Kernel:
    known: dict[Var, Const] = {}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Let) and not stmt.var.mutable:
            value = _value(stmt.value, known, kernel)
            if value is not None:
                known[stmt.var] = value
    return replace(kernel, body=rewrite_bindings(kernel.body, lambda b, expr: _rule(b, expr, known, kernel)))


def _value(expr: Expr, known: dict[Var, Const], kernel: Kernel) -> Const | None:
    """The value of arithmetic on constants and on extents of fields and threads."""
    match expr:
        case Const():
            return expr
        case Stride(value=value, type=type_):
            return constant(value, type_.dtype)
        case Index(type=type_):
            low, high = kernel.bounds(expr)
            return constant(low, type_.dtype) if low == high else None
        case Ref(var=var):
            return known.get(var)
        case Apply(op="add" | "sub" | "mul" as op, args=args, type=type_):
            values = [value for value in (_value(a, known, kernel) for a in args) if value is not None]
            folded = fold(OPS[op], values, [a.type for a in args], type_) if len(values) == len(args) else None
            return folded if isinstance(folded, Const) else None
    return None


def _rule(b: Builder, expr: Expr, known: dict[Var, Const], kernel: Kernel) -> Expr | None:
    if not isinstance(expr, Apply) or expr.op not in ("div", "mod") or not expr.type.integer:
        return None
    x, y = expr.args
    divisor = _value(y, known, kernel)
    if divisor is not None and divisor.value not in (0, -1):
        return None
    if isinstance(y, Index) and kernel.bounds(y)[0] > 0:
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
