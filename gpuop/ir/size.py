"""How large kernels are, and may be: drivers take long for what is larger, or refuse it."""

from __future__ import annotations

from gpuop.ir.nodes import Apply, Block, Stmt
from gpuop.ir.ops import OPS
from gpuop.ir.visit import blocks, values, walk, walk_expr

MOST_STATEMENTS = 10_000  # of a recorded body; drivers compile so much plain arithmetic within seconds
MOST_NESTED = 64  # blocks in one another; a compiler of C need not take more than 127
FUNCTION = 20  # statements that a function's text is, which compilers put in its place


def size(block: Block) -> int:
    """Statements, functions counting for as many as they are made of."""
    calls = (e for stmt in walk(block) for value in values(stmt) for e in walk_expr(value) if isinstance(e, Apply))
    return sum(1 for _ in walk(block)) + sum(FUNCTION * e.type.lanes for e in calls if OPS[e.op].ulp)


def deepest(block: Block) -> tuple[int, Stmt | None]:
    """How many blocks are in one another, and the first statement that opens the innermost one."""
    found: tuple[int, Stmt | None] = (0, None)
    pending = [(1, stmt) for stmt in reversed(block) if blocks(stmt)]
    while pending:
        depth, stmt = pending.pop()
        if depth > found[0]:
            found = depth, stmt
        pending += [(depth + 1, s) for inner in reversed(blocks(stmt)) for s in reversed(inner) if blocks(s)]
    return found
