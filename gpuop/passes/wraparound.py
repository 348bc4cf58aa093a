"""Wraparound of integers as in NumPy: arithmetic that may overflow a signed type, undefined in C, is done unsigned.

Where the ranges of positions, counters, constants and narrow types exclude overflow, the text stays plain.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.analysis.intervals import LIMITS
from gpuop.ir.build import Builder, collector
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Block, Cast, Expr, Let, Stmt
from gpuop.ir.types import INT, LONG, UINT, ULONG, USHORT, Type
from gpuop.ir.visit import map_blocks
from gpuop.passes.ranges import Ranges, fits

UNSIGNED = {INT: UINT, LONG: ULONG}
OVERFLOWS = {"add", "sub", "mul", "neg", "shl"}


def wrap_integers(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_Wrapping(kernel).block(kernel.body))


class _Wrapping:
    def __init__(self, kernel: Kernel) -> None:
        self.ranges = Ranges(kernel, anywhere=True)

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        for stmt in block:
            wrapped = stmt
            if isinstance(stmt, Let) and isinstance(stmt.value, Apply) and self.overflows(stmt.value):
                wrapped = replace(stmt, value=_wrapped(collector(out, stmt.loc), stmt.value))
            self.ranges.meet(stmt)
            out.append(map_blocks(wrapped, self.block))
        return tuple(out)

    def overflows(self, expr: Apply) -> bool:
        if expr.op not in OVERFLOWS or expr.type.kind not in "iu":
            return False
        bounds = self.ranges.exact(expr)
        if expr.type.kind == "u":  # C computes narrow types in int, which only a product of two ushorts leaves
            return expr.type.dtype is USHORT and expr.op == "mul" and bounds[1] > LIMITS[INT][1]
        return not fits(bounds, expr.type.dtype)


def _wrapped(b: Builder, expr: Apply) -> Expr:
    unsigned = Type(UNSIGNED.get(expr.type.dtype, UINT))
    args = [b.cast(a, unsigned, saturate=False) for a in expr.args]
    result = b.apply("sub", 0, *args) if expr.op == "neg" else b.apply(expr.op, *args)
    return Cast(result, expr.type, saturate=False)
