"""Legality of vectorization: reasons why the points of a recorded kernel cannot be lanes of CPU vectors."""

from __future__ import annotations

from gpuop.ir import nodes as ir
from gpuop.ir.analysis.uniform import Uniformity
from gpuop.ir.kernel import Kernel
from gpuop.ir.ops import OPS
from gpuop.ir.types import DOUBLE
from gpuop.ir.visit import expressions, loop_values, walk


def obstacle(body: ir.Block) -> str:
    """Return the reason why a recorded body cannot run in vectors; empty where it can."""
    for stmt in walk(body):
        match stmt:
            case ir.While() | ir.Break() | ir.Continue():
                return "the iterations of its loops differ between points"
            case ir.For() if loop_values(stmt) is None:
                return "the iterations of its loops differ between points"
            case ir.Declare():
                return "it has arrays"
            case ir.Let() | ir.Assign() | ir.Write() | ir.Store() | ir.If() | ir.For() | ir.Comment():
                pass
            case ir.Atomic() | ir.Wide() | ir.Barrier() | ir.Collective() | ir.Print() | ir.Assert():
                raise AssertionError("threads of such kernels have one point")
            case _:
                ir.assert_never(stmt)
    return ""


def scatters(kernel: Kernel) -> bool:
    """Return whether threads call no functions, and store to their own arrays at indices that differ between threads.

    Vectors of threads make such stores one by one, and wait for them.
    """
    stores = ((s.memory, s.index) for s in walk(kernel.body) if isinstance(s, ir.Store))
    places = [
        i for memory, index in stores if isinstance(memory, ir.Array) and memory.space == "private" for i in index
    ]
    if not places or calls_functions(kernel.body):
        return False
    return any(map(Uniformity(kernel.body, kernel.domain, kernel.work_group).varies, places))


def calls_functions(body: ir.Block) -> bool:
    """Return whether a body calls functions that are slow one by one."""
    return any(isinstance(e, ir.Apply) and OPS[e.op].ulp > 0 for e in expressions(body))


def doubles(body: ir.Block) -> str:
    """Return the reason against vectors where a compiler miscompiles those of doubles; empty where the body has none."""
    return "it computes with doubles" if any(e.type.dtype is DOUBLE for e in expressions(body)) else ""


def refused_doubles(kernel: Kernel) -> str:
    """Return the reason against vectors of doubles where the compiler of the target miscompiles them; empty elsewhere."""
    return doubles(kernel.body) if kernel.machine.widening == "functions" else ""


def halves(kernel: Kernel) -> str:
    """Return the reason why vectors cannot begin at any column of a kernel's fields; empty where they can."""
    has = any(field.type.dtype == "float16" for field in (*kernel.inputs, *kernel.written))
    return "vectors of halves may not overlap on the device" if has and not kernel.machine.overlaps_halves else ""


def demand(body: ir.Block, streamed: bool) -> str:
    """Return the reason against vectors that are only worth it for functions and streamed outputs; empty where a body has these."""
    slow = "" if calls_functions(body) or streamed else "it calls no functions that are slow one by one"
    return doubles(body) or slow
