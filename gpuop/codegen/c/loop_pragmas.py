"""Loops that the compiler must not unroll: those around loops over arrays too large for registers.

Once unrolled, such loops have constant indices, so small arrays stay in registers: up to 8×8 float where all bounds are constants.
Larger arrays are in memory in any case, and NVRTC spends seconds on unrolling 16×16 for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, Const, Declare, For, Stmt, Var, While
from gpuop.ir.visit import blocks, loop_values, walk

LEAST_OWN, MOST_OWN = (
    256,
    640,
)  # bytes of the arrays of a thread: fewer compile fast, and more are never in registers
SOME_ITERATIONS = 8
# statements, counted in each turn, that compilers may write out: of arrays of the largest size that is in registers, and beyond
MOST_ITERATIONS, FEW_ITERATIONS = 1536, 128


def rolled(kernel: Kernel) -> set[Var]:
    """The counters of these loops."""
    arrays = (stmt.array for stmt in walk(kernel.body) if isinstance(stmt, Declare))
    own = sum(array.nbytes for array in arrays if array.space == "private")
    if own < LEAST_OWN:
        return set()
    most = MOST_ITERATIONS if own <= MOST_OWN else FEW_ITERATIONS
    return {loop.var for loop in _around_loops(kernel.body) if loop.unroll == 1 and _statements((loop,)) > most}


def _around_loops(block: Block) -> Iterator[For]:
    for stmt in walk(block):
        if isinstance(stmt, For) and any(isinstance(inner, (For, While)) for inner in walk(stmt.body)):
            yield stmt


def _statements(block: Block) -> int:
    return sum(1 + sum(map(_statements, blocks(stmt))) * _iterations(stmt) for stmt in block)


def _iterations(stmt: Stmt) -> int:
    """Number of iterations of a loop: unknown bounds count as 0 on one side, and as a few iterations on both."""
    if not isinstance(stmt, For):
        return 1
    known = loop_values(stmt)
    if known is not None:
        return len(known)
    return max((SOME_ITERATIONS, *(abs(int(end.value)) for end in (stmt.start, stmt.stop) if isinstance(end, Const))))
