"""Fast math, besides multiply-adds: functions in hardware, reciprocals, and merged constants."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np

from gpuop.base.errors import Loc
from gpuop.ir.build import Builder, constant
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Assign, Block, Cast, Const, Expr, Let, Ref, Stmt, Var
from gpuop.ir.types import DOUBLE, FLOAT, Type
from gpuop.ir.visit import expressions, map_blocks

NATIVE = ("exp2", "log2", "sin", "cos", "tan", "sqrt")  # of float, as rows of the operator table
BY_EXP2 = {"exp": 1 / math.log(2), "exp10": math.log2(10)}  # 2^(factor · x)
BY_LOG2 = {"log": math.log(2), "log10": math.log10(2)}  # factor · log2 x


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

    # --- what is known of values --------------------------------------------------------------------------------

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
        for inner, known in (factors, factors[::-1]) if factors else ():
            product = factor * (self.number(known) or 0.0)
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
        if op == "powr" or (op == "pow" and self.is_uneven(expr.args[1])):
            power = build.apply("mul", build.apply("native_log2", x), expr.args[1])
            return Apply("native_exp2", (power,), expr.type)
        return None

    def is_uneven(self, exponent: Expr) -> bool:
        """Whether an exponent is a constant that is no integer, for which powers of negative numbers are NaN."""
        value = self.number(exponent)
        return value is not None and math.isfinite(value) and not value.is_integer()


def _may_change(expr: Expr) -> bool:
    return isinstance(expr, Ref) and expr.var.mutable


def _is_normal(value: float, type_: Type) -> bool:
    limits = np.finfo(type_.dtype.numpy)
    return bool(limits.tiny <= abs(value) <= limits.max)
