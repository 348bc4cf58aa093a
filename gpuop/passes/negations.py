"""Hiding of negations and complements of integers from compilers, several of which miscompile them.

The Intel compiler for CPUs turns the maximum of a complement into an instruction that reads another register, and the sign of -x
into that of ~x. The NVIDIA assembler forgets one of three negations under a maximum, and takes the absolute value of the least
integer for positive. So a number that compilers do not know becomes the minuend, or the operand of the exclusive or. All forms
of a negation are rewritten, since compilers recognize each of them.

Negated floats are hidden too in kernels with barriers: the Intel compiler takes them for equal in all threads of a work-group,
so behind a barrier each thread has the value of another.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import Builder
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Barrier, Bits, Cast, Const, Expr
from gpuop.ir.types import DOUBLE, FLOAT, HALF, INT, LONG, Type
from gpuop.ir.visit import walk
from gpuop.passes.rewrite import rewrite_bindings

# bits of what C computes with; nothing makes a wrong sign of the complements of narrower unsigned integers
COMPUTED = 32


def hide_negations(kernel: Kernel) -> Kernel:
    body, target = rewrite_bindings(kernel.body, _rule), kernel.target
    waits = any(isinstance(stmt, Barrier) for stmt in walk(body))
    if waits and target is not None and target.backend == "opencl" and target.makes_lanes:
        body = rewrite_bindings(body, _rule_of_floats)
    return replace(kernel, body=body)


def _rule(b: Builder, expr: Expr) -> Expr | None:
    """-x, 0 - x and x * -1; ~x, -1 - x and x ^ -1."""
    if not isinstance(expr, Apply) or not expr.type.integer:
        return None
    match expr:
        case Apply(op="neg", args=(x,)) | Apply(op="sub", args=(Const(value=0), x)):
            is_negation = True
        case Apply(op="mul" | "xor", args=(x, Const() as ones) | (Const() as ones, x)) if _is_ones(ones):
            is_negation = expr.op == "mul"
        case Apply(op="invert", args=(x,)):
            is_negation = False
        case Apply(op="sub", args=(Const() as ones, x)) if _is_ones(ones):
            is_negation = False
        case _:
            return None
    if is_negation:
        return Apply("sub", (_hidden(b, 0, x.type), x), expr.type)
    is_hidden = x.type.kind == "i" or x.type.dtype.bits >= COMPUTED
    return Apply("xor", (x, _hidden(b, -1, x.type)), expr.type) if is_hidden else None


def _is_ones(const: Const) -> bool:
    """Return whether all bits are set."""
    return int(const.value) in (-1, 2**const.type.dtype.bits - 1)


def _hidden(b: Builder, value: int, type_: Type) -> Expr:
    return b.cast(b.apply("hidden", value), type_, saturate=False)


def _rule_of_floats(b: Builder, expr: Expr) -> Expr | None:
    """A negation in a form that no compiler recognizes: an exclusive or with the sign, or a product with an unknown number."""
    match expr:
        case Apply(op="neg", args=(x,)) | Apply(op="sub", args=(Const(text="-0.0"), x)) if expr.type.kind == "f":
            return _turned(b, x)
        case Apply(op="xor" | "add" | "sub", args=(x, y)) if any(_is_sign(a) for a in (x, y)):
            return replace(expr, args=tuple(_sign(b, a.type) if _is_sign(a) else a for a in (x, y)))
        case Apply(args=args) if any(_is_minus_one(a) for a in args):
            return replace(expr, args=tuple(_hidden(b, -1, a.type) if _is_minus_one(a) else a for a in args))
        case Const() if _is_minus_one(expr):
            return _hidden(b, -1, expr.type)
    return None


def _turned(b: Builder, x: Expr) -> Expr:
    """-x, of zeros and NaN too."""
    if x.type.dtype is HALF:
        return Cast(b.bind(_turned(b, b.cast(x, Type(FLOAT)))), x.type)
    words = Type(LONG if x.type.dtype is DOUBLE else INT)
    return Bits(b.apply("xor", b.bits(x, words), _sign(b, words)), x.type)


def _sign(b: Builder, words: Type) -> Expr:
    """The constant with the highest bit alone."""
    return b.apply("shl", _hidden(b, -1, words), words.dtype.bits - 1)


def _is_sign(expr: Expr) -> bool:
    """Return whether only the highest bit of 32 or 64 is set."""
    if not isinstance(expr, Const) or not expr.type.integer or expr.type.dtype.bits < COMPUTED:
        return False
    return bool(int(expr.value) % 2**expr.type.dtype.bits == 2 ** (expr.type.dtype.bits - 1))


def _is_minus_one(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.type.kind == "f" and expr.text == "-1.0"
