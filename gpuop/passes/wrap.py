"""Integers wrap, as NumPy's do: arithmetic that could overflow a signed type, which C leaves undefined, is done unsigned.

The ranges of thread positions, counters, constants and narrow types show where nothing can overflow: there the text stays
plain.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import Builder, collector
from gpuop.ir.intervals import LIMITS, Range, interval
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Array, Block, Cast, Const, Expr, For, Index, Let, Load, Ref, Stmt, Stride, Var
from gpuop.ir.types import INT, LONG, UINT, ULONG, USHORT, DType, Type
from gpuop.ir.visit import map_blocks

UNSIGNED = {INT: UINT, LONG: ULONG}
OVERFLOWS = {"add", "sub", "mul", "neg", "shl"}


def wrap_integers(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_Wrapping(kernel).block(kernel.body))


class _Wrapping:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.known: dict[Var, Range] = {}

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        for stmt in block:
            if isinstance(stmt, For):
                self.known[stmt.var] = self.counter(stmt)
            if isinstance(stmt, Let) and stmt.value.type.kind in "iu":
                stmt = self.let(stmt, collector(out, stmt.loc))
            out.append(map_blocks(stmt, self.block))
        return tuple(out)

    def let(self, stmt: Let, b: Builder) -> Let:
        """The binding, computed in an unsigned type where the signed one could overflow."""
        expr, found = stmt.value, self.exact(stmt.value)
        if isinstance(expr, Apply) and expr.op in OVERFLOWS and _overflows(expr, found):
            stmt = replace(stmt, value=_wrapped(b, expr))
        if not stmt.var.mutable:
            self.known[stmt.var] = _within(found, expr.type.dtype)
        return stmt

    # --- ranges -------------------------------------------------------------------------------------------------

    def range(self, expr: Expr) -> Range:
        """Bounds of an integer or bool; those of its type where no better ones are known."""
        return _within(self.exact(expr), expr.type.dtype)

    def exact(self, expr: Expr) -> Range:
        """Bounds of the value as if no type limited it."""
        match expr:
            case Const(value=value) | Stride(value=value):
                return int(value), int(value)
            case Ref(var=var) if var in self.known:
                return self.known[var]
            case Index():
                return self.kernel.bounds(expr)
            case Load(memory=Array(space="constant", values=values)):
                return int(min(values)), int(max(values))
            case Cast(arg=arg) if arg.type.kind in "iub":
                return self.range(arg)
            case Apply(op=op, args=args) if all(a.type.kind in "iub" for a in args):
                return interval(op, [self.range(a) for a in args], expr.type.dtype)
        return LIMITS[expr.type.dtype]

    def counter(self, loop: For) -> Range:
        """The range of a loop's counter inside the loop."""
        start, stop, step = (self.range(e) for e in (loop.start, loop.stop, loop.step))
        if step[0] > 0:
            return start[0], max(stop[1] - 1, start[0])
        return (min(stop[0] + 1, start[1]), start[1]) if step[1] < 0 else LIMITS[INT]


def _within(found: Range, dtype: DType) -> Range:
    """Bounds that the type holds; its own where it does not, for then the value wraps."""
    least, most = LIMITS[dtype]
    return found if least <= found[0] and found[1] <= most else (least, most)


def _overflows(expr: Apply, found: Range) -> bool:
    if expr.type.kind == "u":  # C computes narrow types in int, which only a product of two ushorts leaves
        return expr.type.dtype is USHORT and expr.op == "mul" and found[1] > LIMITS[INT][1]
    return found != _within(found, expr.type.dtype)


def _wrapped(b: Builder, expr: Apply) -> Expr:
    unsigned = Type(UNSIGNED.get(expr.type.dtype, UINT))
    args = [b.cast(a, unsigned, saturate=False) for a in expr.args]
    done = b.apply("sub", 0, *args) if expr.op == "neg" else b.apply(expr.op, *args)
    return Cast(done, expr.type, saturate=False)
