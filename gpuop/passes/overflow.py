"""Signed integers wrap around. C leaves their overflow undefined, so what may overflow is computed unsigned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpuop.ir.build import Builder
from gpuop.ir.nodes import Apply, Cast, Const, Expr, For, Index, Kernel, Lane, Let, Pack, Ref, Var
from gpuop.ir.types import INT, LONG, UINT, ULONG, USHORT, DType
from gpuop.ir.visit import walk
from gpuop.passes.rewrite import rewrite_bindings

Range = tuple[int, int]
UNSIGNED = {INT: UINT, LONG: ULONG, USHORT: UINT}  # C multiplies ushorts as ints
WORK_GROUP = 1024  # no extent within a group is larger


def wrap_integers(kernel: Kernel) -> Kernel:
    """Addresses that provably stay small are left as the user wrote them."""
    ranges = _Ranges(kernel)

    def rule(b: Builder, expr: Expr) -> Expr | None:
        if not isinstance(expr, Apply) or expr.type.dtype not in UNSIGNED or (exact := ranges.exact(expr)) is None:
            return None
        computed = INT if expr.type.dtype is USHORT else expr.type.dtype
        if _inside(exact, computed):
            return None
        return wrapping(b, expr)

    return replace(kernel, body=rewrite_bindings(kernel.body, rule))


def wrapping(b: Builder, expr: Apply) -> Expr:
    """An operation on integers, modulo 2 to their width."""
    unsigned = expr.type.of(UNSIGNED[expr.type.dtype])
    return Cast(b.apply(expr.op, *(b.cast(a, unsigned, saturate=False) for a in expr.args)), expr.type, saturate=False)


def _inside(range_: Range, dtype: DType) -> bool:
    low, high = _full(dtype)
    return low <= range_[0] and range_[1] <= high


def _full(dtype: DType) -> Range:
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


class _Ranges:
    """Bounds of integer values, from the thread grid, loops and constants."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.known: dict[Var, Range] = {}
        for stmt in walk(kernel.body):  # a value is bound before it is used
            if isinstance(stmt, Let) and not stmt.var.mutable and stmt.var.type.integer:
                self.known[stmt.var] = self.of(stmt.value)
            elif isinstance(stmt, For) and isinstance(stmt.start, Const) and isinstance(stmt.step, Const):
                start, (low, high) = int(stmt.start.value), self.of(stmt.stop)
                self.known[stmt.var] = (start, max(start, high - 1)) if stmt.step.value > 0 else (min(start, low + 1), start)

    def of(self, expr: Expr) -> Range:
        if expr.type.kind == "b":
            return 0, 1
        found = self.some(expr)
        return found if found is not None and _inside(found, expr.type.dtype) else _full(expr.type.dtype)

    def some(self, expr: Expr) -> Range | None:
        match expr:
            case Const(value=value):
                return int(value), int(value)
            case Ref(var=var):
                return self.known.get(var)
            case Index(kind="global", axis=axis, offset=offset):
                return offset, max(self.kernel.domain.extent(axis) - 1, 0) + offset
            case Index(axis=axis):
                return 0, max(self.kernel.domain.extent(axis), WORK_GROUP)
            case Cast(arg=arg) if arg.type.kind != "f":
                return self.of(arg)
            case Lane(arg=arg):
                return self.of(arg)
            case Pack(args=args):
                return self.union(args)
            case Apply():
                return self.exact(expr) or self.smaller(expr)
        return None

    def exact(self, expr: Apply) -> Range | None:
        """Of sums, differences and products, as if integers went on for ever."""
        if expr.op not in ("add", "sub", "mul", "neg"):
            return None
        (a, b), *rest = (self.of(arg) for arg in expr.args)
        if expr.op == "neg":
            return -b, -a
        ((c, d),) = rest
        if expr.op == "mul":
            corners = a * c, a * d, b * c, b * d
            return min(corners), max(corners)
        return (a + c, b + d) if expr.op == "add" else (a - d, b - c)

    def smaller(self, expr: Apply) -> Range | None:
        """Of operations that do not leave the range of their operands."""
        ranges = [self.of(arg) for arg in expr.args if arg.type.kind != "f"]
        match expr.op:
            case "choose":
                return self.union(expr.args[1:])
            case "min" | "max":
                pick = min if expr.op == "min" else max
                return pick(r[0] for r in ranges), pick(r[1] for r in ranges)
            case "and" if any(low >= 0 for low, _ in ranges):
                return 0, min(high for low, high in ranges if low >= 0)
            case "mod" if ranges[1][0] > 0:
                most = ranges[1][1] - 1
                return (0 if ranges[0][0] >= 0 else -most), most
            case "div" if ranges[1][0] > 0:
                (low, high), (least, _) = ranges
                return -(max(-low, 0) // least), max(high, 0) // least
        return None

    def union(self, args: tuple[Expr, ...]) -> Range:
        ranges = [self.of(arg) for arg in args]
        return min(low for low, _ in ranges), max(high for _, high in ranges)
