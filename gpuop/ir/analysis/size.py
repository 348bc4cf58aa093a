"""Kernel sizes and their limits: drivers compile larger kernels slowly, or refuse them.

Sizes are in statements of recorded bodies, of which about a quarter are left in the text. Ten thousand of arithmetic take
Intel's driver and PoCL half a second and NVRTC a tenth. Reads of neighbours take longer, by the square of their number: NVRTC
0.5 s for 220, 1.1 to 1.8 s for 440 (7×7 non-local means of small operators, 9,700 statements) and 11 s for 960; Intel's a tenth.
"""

from __future__ import annotations

from collections.abc import Callable

from gpuop.ir.nodes import Apply, Block, Expr, FieldParam, For, Load, Read, Stmt
from gpuop.ir.ops import OPS
from gpuop.ir.types import SMALL_TENSOR
from gpuop.ir.visit import blocks, loop_values, values, walk_expr

MOST_STATEMENTS = 10_000  # limit of a kernel
MOST_NESTED = 64  # limit of nested blocks; C compilers need not support more than 127
FUNCTION = 20  # statements that an inlined math function counts as
MOST_NEIGHBOURS = 320  # limit of reads of other points in a kernel that recomputes its inputs: NVRTC takes 0.7 s
NEIGHBOUR = 1  # additional statement of a read of another point, for its address


def size(block: Block, hinted: bool = False) -> int:
    """The size of a block in statements: loop bodies count once, or as often as their hints ask compilers to unroll them."""
    total = 0
    for stmt in block:
        total += 1 + sum(_more(e) for value in values(stmt) for e in walk_expr(value))
        inner = sum(size(b, hinted) for b in blocks(stmt))
        total += inner * (copies(stmt) if hinted and inner else 1)
    return total


def _more(expr: Expr) -> int:
    """The statements that an expression adds to its own."""
    if isinstance(expr, Apply):
        lanes = expr.type.lanes if expr.type.lanes <= SMALL_TENSOR else 1  # a vector is one call on CPUs
        return FUNCTION * lanes if OPS[expr.op].ulp else 0
    neighbour = expr.point is not None if isinstance(expr, Read) else isinstance(expr, Load) and _is_field(expr)
    return NEIGHBOUR if neighbour else 0


def _is_field(load: Load) -> bool:
    return isinstance(load.memory, FieldParam)


def neighbours(block: Block, counts: Callable[[Read], bool] = lambda read: True) -> int:
    """The number of reads of other points in a block after its loops to be unrolled are unrolled."""
    total = 0
    for stmt in block:
        read = (e for value in values(stmt) for e in walk_expr(value) if isinstance(e, Read) and e.point is not None)
        total += sum(map(counts, read))
        inner = sum(neighbours(b, counts) for b in blocks(stmt))
        numbers = loop_values(stmt) if isinstance(stmt, For) and stmt.unroll == 0 else None
        total += inner * (1 if numbers is None else len(numbers))
    return total


def copies(stmt: Stmt) -> int:
    """The number of copies of a statement's blocks that unrolling hints ask of compilers."""
    if not isinstance(stmt, For) or not isinstance(stmt.unroll, int) or stmt.unroll == 1:
        return 1
    numbers = loop_values(stmt)
    count = stmt.unroll if numbers is None else len(numbers)
    return max(min(stmt.unroll or count, count), 1)


def deepest(block: Block) -> tuple[int, Stmt | None]:
    """The depth of nested blocks, and the first statement that opens the innermost one."""
    result: tuple[int, Stmt | None] = (0, None)
    pending = [(1, stmt) for stmt in reversed(block) if blocks(stmt)]
    while pending:
        depth, stmt = pending.pop()
        if depth > result[0]:
            result = depth, stmt
        pending += [(depth + 1, s) for inner in reversed(blocks(stmt)) for s in reversed(inner) if blocks(s)]
    return result
