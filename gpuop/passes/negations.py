"""Negations and complements of integers are hidden from compilers, several of which compute wrongly with those they see.

Intel's for CPUs makes of a complement whose maximum is taken an instruction that reads another register, and of the sign of
-x that of what is not x. NVIDIA's assembler forgets one of three negations whose maximum is taken, and takes the absolute value
of the least integer to be positive. So what is subtracted from, or exclusive or is taken with, is a number that they do not
know. All ways to write a negation are meant: compilers make one of each.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import Builder
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Const, Expr
from gpuop.ir.types import Type
from gpuop.passes.rewrite import rewrite_bindings

COMPUTED = (
    32  # bits of what C computes with; nothing makes a wrong sign of the complements of narrower unsigned integers
)


def hide_negations(kernel: Kernel) -> Kernel:
    return replace(kernel, body=rewrite_bindings(kernel.body, _rule))


def _rule(b: Builder, expr: Expr) -> Expr | None:
    if not isinstance(expr, Apply) or not expr.type.integer:
        return None
    x = _negated(expr)
    if x is not None:
        return Apply("sub", (_hidden(b, 0, x.type), x), expr.type)
    x = _complemented(expr)
    if x is not None and (x.type.kind == "i" or x.type.dtype.bits >= COMPUTED):
        return Apply("xor", (x, _hidden(b, -1, x.type)), expr.type)
    return None


def _negated(expr: Apply) -> Expr | None:
    """x of -x, 0 - x and x * -1."""
    match expr:
        case Apply(op="neg", args=(x,)) | Apply(op="sub", args=(Const(value=0), x)):
            return x
        case Apply(op="mul", args=(x, Const() as ones) | (Const() as ones, x)) if _is_ones(ones):
            return x
    return None


def _complemented(expr: Apply) -> Expr | None:
    """x of ~x, -1 - x and x ^ -1."""
    match expr:
        case Apply(op="invert", args=(x,)):
            return x
        case Apply(op="sub", args=(Const() as ones, x)) if _is_ones(ones):
            return x
        case Apply(op="xor", args=(x, Const() as ones) | (Const() as ones, x)) if _is_ones(ones):
            return x
    return None


def _is_ones(const: Const) -> bool:
    """Whether all bits are set."""
    return int(const.value) in (-1, 2**const.type.dtype.bits - 1)


def _hidden(b: Builder, value: int, type_: Type) -> Expr:
    return b.cast(b.apply("hidden", value), type_, saturate=False)
