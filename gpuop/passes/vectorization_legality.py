"""Why the points of a recorded kernel are not to be put in the vectors of a CPU."""

from __future__ import annotations

from gpuop.ir import nodes as ir
from gpuop.ir.analysis.uniform import Uniformity
from gpuop.ir.kernel import Kernel
from gpuop.ir.ops import OPS
from gpuop.ir.types import DOUBLE
from gpuop.ir.visit import expressions, loop_values, walk


def obstacle(body: ir.Block) -> str:
    """What in a recorded body vectors cannot do; "" if nothing."""
    for stmt in walk(body):
        match stmt:
            case ir.While() | ir.Break() | ir.Continue():
                return "the turns of its loops differ between points"
            case ir.For() if loop_values(stmt) is None:
                return "the turns of its loops differ between points"
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
    """Whether threads store to places in their own arrays that differ between threads: vectors of threads do it one by one, and
    wait for it; they pay where functions are called."""
    stores = ((s.memory, s.index) for s in walk(kernel.body) if isinstance(s, ir.Store))
    places = [
        i for memory, index in stores if isinstance(memory, ir.Array) and memory.space == "private" for i in index
    ]
    if not places or calls_functions(kernel.body):
        return False
    return any(map(Uniformity(kernel.body, kernel.domain, kernel.work_group).varies, places))


def calls_functions(body: ir.Block) -> bool:
    """Whether it calls functions that are slow one by one."""
    return any(isinstance(e, ir.Apply) and OPS[e.op].ulp > 0 for e in expressions(body))


def doubles(body: ir.Block) -> str:
    """Why vectors are not for a body where those of doubles are computed wrongly; "" if it has none."""
    return "it computes with doubles" if any(e.type.dtype is DOUBLE for e in expressions(body)) else ""


def halves(kernel: Kernel) -> str:
    """Why vectors that may begin anywhere are not for a kernel's fields; "" if they are."""
    assert kernel.target is not None
    has = any(field.type.dtype == "float16" for field in (*kernel.inputs, *kernel.written))
    return "vectors of halves may not overlap on the device" if has and not kernel.target.overlaps_halves else ""


def demand(body: ir.Block, streamed: bool) -> str:
    """Why vectors are not for a body, where they are for functions and for outputs past the caches; "" if it has such."""
    slow = "" if calls_functions(body) or streamed else "it calls no functions that are slow one by one"
    return doubles(body) or slow
