"""Conversions of floats to integers that cannot saturate, as ranges of the floats show: of bytes that are weighed and clamped.

A conversion else clamps, and takes NaN for 0, which costs as much as the arithmetic of a photo. Bounds are computed as the values
are: rounding is monotonic, so a rounded result lies between the rounded bounds; and finite bounds exclude NaN. NVIDIA GPUs have
an instruction that does all of that for integers of up to 16 bits; there it is the clamping before that goes, at the ends of the
type or beyond.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from gpuop.ir.analysis.intervals import LIMITS
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Cast, Const, Expr, Let, Ref, Stmt, Var
from gpuop.ir.ops import OPS
from gpuop.ir.types import DOUBLE, FLOAT
from gpuop.ir.visit import walk
from gpuop.passes.ranges import Ranges
from gpuop.passes.rewrite import rewrite_bindings

Bounds = tuple[Any, Any]  # the least and the greatest value, as NumPy's scalars of the type
MONOTONIC = ("neg", "floor", "ceil", "rint", "round", "trunc")
CORNERS = ("add", "sub", "mul")  # between the results of the bounds of both operands
SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def sure_conversions(kernel: Kernel) -> Kernel:
    if not any(_clamps(stmt.value) for stmt in walk(kernel.body) if isinstance(stmt, Let)):
        return kernel
    ranges = FloatRanges(kernel)
    for stmt in walk(kernel.body):
        ranges.meet(stmt)
    body = rewrite_bindings(kernel.body, lambda _, expr: _sure(expr, ranges))
    if kernel.target is None or not kernel.target.architecture:
        return replace(kernel, body=body)
    lets = {stmt.var: stmt.value for stmt in walk(body) if isinstance(stmt, Let) and not stmt.var.mutable}
    body = rewrite_bindings(body, lambda _, expr: _unclamped(expr, lets))
    return without_dead_code(replace(kernel, body=body))


def _unclamped(expr: Expr, lets: Mapping[Var, Expr]) -> Expr | None:
    """The conversion of what is clamped, where saturating does that too."""
    if not isinstance(expr, Cast) or not _clamps(expr) or expr.arg.type.dtype is not FLOAT or expr.type.dtype.bits > 16:
        return None
    arg, ends = expr.arg, LIMITS[expr.type.dtype]
    while (inner := _beyond(arg, lets, ends)) is not None:
        arg = inner
    return None if arg is expr.arg else replace(expr, arg=arg, fits=False)


def _beyond(expr: Expr, lets: Mapping[Var, Expr], ends: tuple[int, int]) -> Expr | None:
    """The number that an expression clamps to a bound which is an end of a type, or lies beyond it; None for others."""
    match lets.get(expr.var) if isinstance(expr, Ref) else None:
        case Apply(op="choose", args=(Ref(var=test), Const(value=bound) as limit, Ref(var=var) as x)) if var in lets:
            order = lets.get(test)
            if isinstance(order, Apply) and order.args == (x, limit):
                low, high = order.op in ("lt", "le") and bound <= ends[0], order.op in ("gt", "ge") and bound >= ends[1]
                return x if low or high else None
    return None


def _clamps(expr: Expr) -> bool:
    return isinstance(expr, Cast) and expr.arg.type.dtype in (FLOAT, DOUBLE) and expr.type.integer


def _sure(expr: Expr, ranges: FloatRanges) -> Expr | None:
    if not isinstance(expr, Cast) or not _clamps(expr):
        return None
    bounds, (least, most) = ranges.find(expr.arg), LIMITS[expr.type.dtype]
    inside = bounds is not None and least <= float(bounds[0]) and float(bounds[1]) <= most  # exactly
    return replace(expr, fits=True) if inside else None


class FloatRanges:
    """The bounds of the floats of a lowered kernel; statements must be added in order, by `meet`."""

    def __init__(self, kernel: Kernel) -> None:
        self.integers = Ranges(kernel, anywhere=True)
        self.known: dict[Var, Bounds] = {}
        self.tests: dict[Var, Apply] = {}

    def meet(self, stmt: Stmt) -> None:
        self.integers.meet(stmt)
        if not isinstance(stmt, Let) or stmt.var.mutable or stmt.var.type.lanes > 1:
            return
        if isinstance(stmt.value, Apply) and stmt.value.op in SWAPPED:
            self.tests[stmt.var] = stmt.value
        bounds = self.find(stmt.value) if stmt.var.type.dtype in (FLOAT, DOUBLE) else None
        if bounds is not None:
            self.known[stmt.var] = bounds

    def find(self, expr: Expr) -> Bounds | None:
        """The bounds of a float; None where they are not known, or it may be NaN or infinite."""
        kind = expr.type.dtype.numpy.type
        match expr:
            case Ref(var=var):
                return self.known.get(var)
            case Const(value=value):
                return _finite(kind(value), kind(value))
            case Cast(arg=arg) if arg.type.kind in "iub":
                low, high = self.integers.range(arg)
                return _finite(kind(low), kind(high))
            case Cast(arg=arg) if arg.type.dtype in (FLOAT, DOUBLE):
                bounds = self.find(arg)
                with np.errstate(over="ignore"):
                    return bounds and _finite(kind(bounds[0]), kind(bounds[1]))
            case Apply(op="choose", args=(test, x, y)):
                return self.chosen(test, x, y)
            case Apply(op=op, args=args) if op in (*MONOTONIC, *CORNERS):
                each = [self.find(arg) for arg in args]
                return None if None in each else _computed(op, [bounds for bounds in each if bounds is not None])
        return None

    def chosen(self, test: Expr, x: Expr, y: Expr) -> Bounds | None:
        """The bounds of a choice; where it compares one of its operands with a number, as clamping does, they are closer."""
        order = self.tests.get(test.var) if isinstance(test, Ref) else None
        parts = [self.limited(x, order, True), self.limited(y, order, False)]
        known = [part for part in parts if part is not None]
        return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(parts) else None

    def limited(self, operand: Expr, order: Apply | None, holds: bool) -> Bounds | None:
        """The bounds of an operand where a comparison holds, or does not."""
        bounds = self.find(operand)
        if bounds is None or order is None:
            return bounds
        x, y = order.args
        op, other = (order.op, y) if x == operand else (SWAPPED[order.op], x)
        limit = self.find(other)
        if operand not in (x, y) or limit is None:
            return bounds
        below = (op in ("lt", "le")) is holds
        return (bounds[0], min(bounds[1], limit[1])) if below else (max(bounds[0], limit[0]), bounds[1])


def _computed(op: str, operands: list[Bounds]) -> Bounds | None:
    with np.errstate(all="ignore"):
        results = [OPS[op].numpy(*corner) for corner in product(*operands)]
    return _finite(min(results), max(results)) if all(map(math.isfinite, results)) else None


def _finite(low: Any, high: Any) -> Bounds | None:
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None
