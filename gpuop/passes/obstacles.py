"""Why the points of a recorded kernel are not to be put in the vectors of a CPU."""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import (
    Apply,
    Assert,
    Assign,
    Atomic,
    Barrier,
    Block,
    Break,
    Collective,
    Comment,
    Continue,
    Declare,
    For,
    If,
    Let,
    Print,
    Store,
    While,
    Wide,
    Write,
    assert_never,
)
from gpuop.ir.ops import OPS
from gpuop.ir.types import DOUBLE
from gpuop.ir.visit import expressions, loop_values, walk


def obstacle(body: Block) -> str:
    """What in a recorded body vectors cannot do; "" if nothing."""
    for stmt in walk(body):
        match stmt:
            case While() | Break() | Continue():
                return "the turns of its loops differ between points"
            case For() if loop_values(stmt) is None:
                return "the turns of its loops differ between points"
            case Declare():
                return "it has arrays"
            case Let() | Assign() | Write() | Store() | If() | For() | Comment():
                pass
            case Atomic() | Wide() | Barrier() | Collective() | Print() | Assert():
                raise AssertionError("threads of such kernels have one point")
            case _:
                assert_never(stmt)
    return ""


def doubles(body: Block) -> str:
    """Why vectors are not for a body where those of doubles are computed wrongly; "" if it has none."""
    return "it computes with doubles" if any(e.type.dtype is DOUBLE for e in expressions(body)) else ""


def halves(kernel: Kernel) -> str:
    """Why vectors that may begin anywhere are not for a kernel's fields; "" if they are."""
    assert kernel.target is not None
    has = any(field.type.dtype == "float16" for field in (*kernel.inputs, *kernel.written))
    return "vectors of halves may not overlap on the device" if has and not kernel.target.overlaps_halves else ""


def demand(body: Block, streamed: bool) -> str:
    """Why vectors are not for a body, where they are for functions and for outputs past the caches; "" if it has such."""
    bounded = any(isinstance(e, Apply) and OPS[e.op].ulp > 0 for e in expressions(body))
    slow = "" if bounded or streamed else "it calls no functions that are slow one by one"
    return doubles(body) or slow
