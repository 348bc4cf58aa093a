"""Relaxed precision of an operator, applied as it is recorded, so that its bits are the same wherever it is fused.

"contract": a product that feeds only one sum or difference is not rounded before it. The recorded operations decide where this
happens, not a compiler: `fma` is one instruction on CPUs and GPUs, and has the same bits on all of them. "fast": functions in
hardware, reciprocals and merged constants besides.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TypeGuard

import numpy as np

from gpuop.base.errors import Loc
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Assign, Block, Cast, Const, Expr, Let, Ref, Stmt, Var
from gpuop.ir.types import DOUBLE, FLOAT, Type
from gpuop.ir.visit import changed, expressions, map_blocks

NATIVE = ("exp2", "log2", "sin", "cos", "tan", "sqrt")  # of float, as rows of the operator table
BY_EXP2 = {"exp": 1 / math.log(2), "exp10": math.log2(10)}  # 2^(factor · x)
BY_LOG2 = {"log": math.log(2), "log10": math.log10(2)}  # factor · log2 x


def relaxed(kernel: Kernel) -> Kernel:
    """The kernel of an operator, rewritten as its precision allows."""
    kernel = approximate(kernel) if kernel.precision == "fast" else kernel
    return kernel if kernel.precision == "exact" else contract(kernel)


# --- multiply-adds ----------------------------------------------------------------------------------------------------


def contract(kernel: Kernel) -> Kernel:
    """The kernel with products of float and double contracted with their sums; not all devices have a half instruction."""
    uses = Counter(e.var for e in expressions(kernel.body) if isinstance(e, Ref))
    return replace(kernel, body=_contracted(kernel.body, uses))


def _contracted(block: Block, uses: Counter[Var]) -> Block:
    out: list[Stmt] = []
    products: dict[Var, Apply] = {}  # those that may still move to a later statement of the block
    fused: set[Var] = set()
    for stmt in block:
        stmt = map_blocks(stmt, lambda inner: _contracted(inner, uses))
        if isinstance(stmt, (Let, Assign)) and isinstance(stmt.value, Apply) and stmt.value.op in ("add", "sub"):
            # the second one of two, as in `total + weight * value`
            terms = (arg.var for arg in reversed(stmt.value.args) if isinstance(arg, Ref))
            product = next((var for var in terms if var in products), None)
            if product is not None:
                value = _multiply_add(collector(out, stmt.loc), stmt.value, product, products.pop(product))
                stmt = replace(stmt, value=value)
                fused.add(product)
        if changes := changed((stmt,)):
            products = {
                v: p for v, p in products.items() if not any(isinstance(a, Ref) and a.var in changes for a in p.args)
            }
        if isinstance(stmt, Let) and _may_join(stmt.value) and uses[stmt.var] == 1 and not stmt.var.mutable:
            products[stmt.var] = stmt.value
        out.append(stmt)
    return tuple(stmt for stmt in out if not (isinstance(stmt, Let) and stmt.var in fused))


def _may_join(value: Expr) -> TypeGuard[Apply]:
    """Return whether a value is a product of float or double that rounds: one with 1 or -1 does not."""
    if not (isinstance(value, Apply) and value.op == "mul" and value.type.dtype in (FLOAT, DOUBLE)):
        return False
    return not any(isinstance(arg, Const) and abs(arg.value) == 1 for arg in value.args)


def _multiply_add(build: Builder, total: Apply, var: Var, product: Apply) -> Expr:
    (a, b), (first, second) = product.args, total.args
    if second != Ref(var):  # a · b + c, or a · b - c
        c = second if total.op == "add" else build.apply("neg", second)
    else:  # c + a · b, or c - a · b
        c = first
        a = a if total.op == "add" else build.apply("neg", a)
    return Apply("fma", (a, b, c), total.type)


# --- fast math --------------------------------------------------------------------------------------------------------


def approximate(kernel: Kernel) -> Kernel:
    """The kernel of an operator with less exact, but faster functions and quotients."""
    return without_dead_code(replace(kernel, body=_Approximation(kernel.body).block(kernel.body)))


class _Approximation:
    """Rewrites a body, in order.

    Attributes:
        divisors: the number of quotients by each value.
        lets: the values of immutable variables.
    """

    def __init__(self, body: Block) -> None:
        self.divisors = Counter(e.args[1] for e in expressions(body) if isinstance(e, Apply) and e.op == "div")
        self.lets: dict[Var, Expr] = {}

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        for stmt in block:
            stmt = map_blocks(stmt, self.block)
            if isinstance(stmt, (Let, Assign)) and isinstance(stmt.value, Apply):
                stmt = replace(stmt, value=self.value(Builder(partial(self.bind, out, stmt.loc)), stmt.value))
            if isinstance(stmt, Let) and not stmt.var.mutable:
                self.lets[stmt.var] = stmt.value
            out.append(stmt)
        return tuple(out)

    def bind(self, out: list[Stmt], loc: Loc | None, expr: Expr) -> Expr:
        var = Var("t", expr.type, temporary=True)
        out.append(Let(var, expr, loc))
        self.lets[var] = expr
        return Ref(var)

    def value(self, build: Builder, expr: Apply) -> Expr:
        if expr.type.dtype not in (FLOAT, DOUBLE):
            return expr
        result = self.arithmetic(build, expr)
        if result is None and expr.type.dtype is FLOAT:
            result = self.native(build, expr)
        return expr if result is None else result

    # --- constants and operations --------------------------------------------------------------------------------

    def number(self, expr: Expr) -> float | None:
        """The constant value of an expression in all of its lanes; None where it has none."""
        if isinstance(expr, Const):
            return float(expr.value)
        value = self.lets.get(expr.var) if isinstance(expr, Ref) else expr
        if isinstance(value, Cast):
            return self.number(value.arg) if isinstance(value.arg, Const) else None
        return self.number(value) if isinstance(value, (Const, Ref)) else None

    def operands(self, expr: Expr, op: str) -> tuple[Expr, ...]:
        """The operands of the operation that computed a value, if it is `op` and none may have changed since; else none."""
        value = self.lets.get(expr.var) if isinstance(expr, Ref) else None
        if not (isinstance(value, Apply) and value.op == op) or any(map(_may_change, value.args)):
            return ()
        return value.args

    # --- arithmetic ---------------------------------------------------------------------------------------------

    def arithmetic(self, build: Builder, expr: Apply) -> Expr | None:
        if len(expr.args) != 2:
            return None
        first, second = expr.args
        factor, other = self.number(second), self.number(first)
        match expr.op:
            case "add" | "sub" if factor == 0:
                return first
            case "add" if other == 0:
                return second
            case "mul" if factor is not None:
                return self.scaled(build, first, factor)
            case "mul" if other is not None:
                return self.scaled(build, second, other)
            case "div":
                return self.quotient(build, expr)
        return None

    def scaled(self, build: Builder, x: Expr, factor: float) -> Expr:
        """x times a constant, merged with a constant factor of x."""
        number = build.cast(constant(factor, x.type.dtype), x.type)
        if factor == 0:
            return number
        for inner in self.operands(x, "neg"):
            return self.scaled(build, inner, -factor)
        factors = self.operands(x, "mul")
        for inner, other in (factors, factors[::-1]) if factors else ():
            product = factor * (self.number(other) or 0.0)
            if _is_normal(product, x.type):
                return self.scaled(build, inner, product)
        return Apply("mul", (x, number), x.type)

    def quotient(self, build: Builder, expr: Apply) -> Expr | None:
        """A product with the reciprocal of a constant, of a root, or of a divisor of several values; else a native quotient."""
        first, second = expr.args
        divisor = self.number(second)
        if divisor and _is_normal(1 / divisor, expr.type):
            return self.scaled(build, first, 1 / divisor)
        for radicand in self.operands(second, "native_sqrt"):
            return Apply("mul", (first, build.apply("rsqrt", radicand)), expr.type)
        name = "native_divide" if expr.type.dtype is FLOAT else "div"
        if self.divisors[second] > 1 and not _may_change(second):  # equal reciprocals are merged later
            one = build.cast(constant(1, expr.type.dtype), expr.type)
            return Apply("mul", (first, build.bind(Apply(name, (one, second), expr.type))), expr.type)
        return replace(expr, op=name)

    # --- functions ----------------------------------------------------------------------------------------------

    def native(self, build: Builder, expr: Apply) -> Expr | None:
        op, x = expr.op, expr.args[0]
        if op in NATIVE:
            return replace(expr, op=f"native_{op}")
        if op in BY_EXP2:
            return Apply("native_exp2", (build.bind(self.scaled(build, x, BY_EXP2[op])),), expr.type)
        if op in BY_LOG2:
            return self.scaled(build, build.apply("native_log2", x), BY_LOG2[op])
        # powers of negative numbers are NaN for exponents that are no integers
        exponent = self.number(expr.args[1]) if op == "pow" else None
        uneven = exponent is not None and math.isfinite(exponent) and not exponent.is_integer()
        if op == "powr" or uneven:
            power = build.apply("mul", build.apply("native_log2", x), expr.args[1])
            return Apply("native_exp2", (power,), expr.type)
        return None


def _may_change(expr: Expr) -> bool:
    return isinstance(expr, Ref) and expr.var.mutable


def _is_normal(value: float, type_: Type) -> bool:
    limits = np.finfo(type_.dtype.numpy)
    return bool(limits.tiny <= abs(value) <= limits.max)
