"""Constant NaNs are hidden from the NVIDIA compiler: an operand of comparisons that may have them becomes unknown to it.

Results of integer operations may be constants to a compiler: a % a is 0, and so is a - a. The NVIDIA compiler keeps an operation
on constants whose result is NaN (0 / 0, infinity - infinity, 0 · infinity), and takes every comparison of such a constant with
itself for one of equal numbers: `x != x` is false. So one of two operands that may both be such a NaN is added to a hidden 0.
"""

from __future__ import annotations

import math
from dataclasses import replace

from gpuop.ir.analysis.intervals import LIMITS
from gpuop.ir.build import Builder
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Array, Assign, Cast, Const, Expr, FieldParam, For, Let, Load, Ref, Stmt, Store, Var
from gpuop.ir.ops import MIRRORED
from gpuop.ir.types import DOUBLE, HALF
from gpuop.ir.visit import operands, walk
from gpuop.passes.rewrite import rewrite_bindings

Magnitude = float | None  # bound of a constant, infinity where it may be NaN; None of values that are no constants
STEADY = 4  # rounds over a body after which a bound that still grows is widened to infinity


def hide_constant_nans(kernel: Kernel) -> Kernel:
    target = kernel.target
    if target is None or target.device == "cpu" or target.backend == "reference":
        return kernel  # compilers for CPUs are right
    constants = _Constants(kernel)
    return replace(kernel, body=rewrite_bindings(kernel.body, constants.rule))


class _Constants:
    """The bounds of values that may be constants.

    Attributes:
        magnitudes: for variables and memory, the join of the bounds of all values that are assigned to them.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.magnitudes: dict[Var | Array | FieldParam, Magnitude] = {}
        statements, rounds = list(walk(kernel.body)), 0
        while sum(self.meet(stmt, rounds) for stmt in statements):  # all of them, each time
            rounds += 1

    def meet(self, stmt: Stmt, rounds: int) -> bool:
        """Add a statement; return whether a bound was added or grew."""
        match stmt:
            case Let(var=name, value=value) | Assign(var=name, value=value):
                new = self.magnitude(value)
            case Store(memory=name, value=value):
                new = self.magnitude(value)
            case For(var=name):
                new = float(max(map(abs, LIMITS[name.type.dtype])))
            case _:
                return False
        old = self.magnitudes.get(name)
        if new is None or (old is not None and new <= old):
            return False
        self.magnitudes[name] = new if rounds < STEADY else math.inf
        return True

    def magnitude(self, expr: Expr) -> Magnitude:
        match expr:
            case Const(value=value):
                return _size(value)
            case Ref(var=var):
                return self.magnitudes.get(var)
            case Load(memory=Array(values=values)) if values:
                return max(map(_size, values))
            case Load(memory=memory):
                return self.magnitudes.get(memory)
            case Cast(arg=arg):
                return _within(self.magnitude(arg), expr)
            case Apply() if expr.type.kind == "f":
                return _within(self.result(expr), expr)
        if expr.type.kind == "f":
            inside = [self.magnitude(e) for e in operands(expr)]
            return math.inf if inside and None not in inside else None
        return float(max(map(abs, LIMITS[expr.type.dtype])))  # of integers that are not known, too: a - a is 0

    def result(self, expr: Apply) -> Magnitude:
        bounds = [self.magnitude(e) for e in expr.args]
        if expr.op == "choose":
            return max((f for f in bounds[1:] if f is not None), default=None)
        if any(f is None for f in bounds):
            return None
        sizes = [f for f in bounds if f is not None]
        match expr.op, expr.args:
            case "add" | "sub", _:
                return sum(sizes)
            case "mul", _:
                return math.inf if math.inf in sizes else math.prod(sizes)
            case "div", (_, Const(value=value)) if value and math.isfinite(value):
                return sizes[0] / abs(value)
            case "neg" | "fabs" | "max" | "min" | "fmax" | "fmin", _:
                return max(sizes)
        return math.inf

    def rule(self, b: Builder, expr: Expr) -> Expr | None:
        if not isinstance(expr, Apply) or expr.op not in MIRRORED:
            return None
        x, y = expr.args
        if x.type.kind != "f" or x.type.dtype is HALF or isinstance(x, Const) or isinstance(y, Const):
            return None
        if {self.magnitude(x), self.magnitude(y)} != {math.inf}:
            return None
        zero = b.cast(b.apply("hidden", 0), y.type)
        return replace(expr, args=(x, b.apply("add", y, zero)))


def _size(value: float) -> float:
    """The bound of a number: a bound itself is never NaN, which compares with nothing."""
    return math.inf if math.isnan(value) else abs(float(value))


def _within(size: Magnitude, expr: Expr) -> Magnitude:
    """The bound of a value of a type: infinity where it may overflow."""
    if size is None or expr.type.kind != "f":
        return size
    return math.inf if size > (2.0**1023 if expr.type.dtype is DOUBLE else 2.0**127) else size
