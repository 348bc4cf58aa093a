"""What a kernel costs: operations of a thread, and the bytes that fusing saves or recomputing adds."""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Block, Expr, FieldParam, For, Read, While
from gpuop.ir.ops import OPS
from gpuop.ir.visit import blocks, turns, values, walk_expr
from gpuop.passes.resolve import resolve_target

BALANCE = 10.0  # operations that a device does while it moves a byte
TURNS = 16  # of a loop whose bounds are not known
WEIGHTS = {"div": 4.0, "mod": 4.0, "sqrt": 4.0}  # of operations that take several cycles
FUNCTION = 20.0  # and of those that are functions
READ = 2.0  # of a load and its address


def work(kernel: Kernel) -> float:
    """Operations of a thread, weighted; both branches of conditions count, of `_codegenIf` that of a generic target."""
    return _block(resolve_target(kernel).body)


def taps(kernel: Kernel, field: FieldParam) -> float:
    """How often a thread reads a field."""
    return _taps(resolve_target(kernel).body, field)


def _block(block: Block) -> float:
    total = 0.0
    for stmt in block:
        total += sum(_weight(e) for value in values(stmt) for e in walk_expr(value))
        total += sum(map(_block, blocks(stmt))) * _turns(stmt)
    return total


def _taps(block: Block, field: FieldParam) -> float:
    total = 0.0
    for stmt in block:
        total += sum(isinstance(value, Read) and value.field is field for value in values(stmt))
        total += sum(_taps(inner, field) for inner in blocks(stmt)) * _turns(stmt)
    return total


def _weight(expr: Expr) -> float:
    if isinstance(expr, Apply):
        row = OPS[expr.op]
        one = WEIGHTS.get(expr.op, FUNCTION if row.ulp else 1.0)
        return one * expr.type.lanes
    if isinstance(expr, Read):
        return READ * expr.type.lanes + 2 * len(expr.point or ())
    return 0.0


def _turns(stmt: object) -> float:
    if isinstance(stmt, While):
        return TURNS
    if not isinstance(stmt, For):
        return 1
    known = turns(stmt)
    return TURNS if known is None else len(known)
