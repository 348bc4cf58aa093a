"""The lanes of the vectors of a kernel: more where all values are narrow, so that vectors fill the same registers.

Longer vectors need kernels of operators alone, since OpenCL functions take at most 16 lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Assign, Cast, Comment, Const, Expr, For, Index, Lane, Let, Pack, Read, Ref, Write
from gpuop.ir.ops import MIRRORED
from gpuop.ir.types import FLOAT, HALF, DType
from gpuop.ir.visit import operands, values, walk
from gpuop.passes.schedules.common.lane_positions import LanePositions

OPERATORS = {"add", "sub", "mul", "and", "or", "xor", "not", "shl", "shr", "min", "max", "choose", *MIRRORED}


def vector_length(kernel: Kernel) -> int:
    """The lanes for a kernel whose threads have neighbours in a row; 1 where its target has no vectors."""
    lanes, columns = kernel.machine.vector_length, kernel.domain.extent("column")
    places = LanePositions(kernel)
    computed = list(_computed(kernel, places))
    simple = all(isinstance(stmt, Let | Assign | Write | Comment | For) for stmt in walk(kernel.body))
    if lanes == 1 or not simple or not all(map(is_operator, computed)) or places.anywhere():
        return lanes
    most = lanes * FLOAT.bits // max(FLOAT.bits // 4, *(kind.bits for kind in _kinds(kernel, computed)))
    while lanes < most and 2 * lanes <= columns:
        lanes *= 2
    return lanes


def _computed(kernel: Kernel, places: LanePositions) -> Iterator[Expr]:
    """The expressions that lanes compute: all but coordinates of reads in loops, and bounds of these loops."""
    looped = any(isinstance(stmt, For) for stmt in kernel.body)
    for stmt in walk(kernel.body):
        if not looped or not (isinstance(stmt, For) or (isinstance(stmt, Let) and stmt.var in places.positions)):
            pending = list(values(stmt))
            while pending:
                expr = pending.pop()
                yield expr
                pending += () if looped and isinstance(expr, Read) else operands(expr)


def _kinds(kernel: Kernel, computed: Iterable[Expr]) -> Iterator[DType]:
    """The types that are computed and stored, without bools, which are masks of other types; halves are computed as floats."""
    for e in computed:
        if not isinstance(e, Index) and e.type.kind != "b":
            yield FLOAT if e.type.dtype is HALF else e.type.dtype
    for param in (*kernel.inputs, *kernel.written):
        yield param.type.storage


def is_operator(expr: Expr) -> bool:
    match expr:
        case Apply(op=op, args=args):
            return op in OPERATORS and not any(isinstance(a, Index) for a in args)
        case Cast(arg=arg, saturate=saturate):
            return (not saturate or arg.type.kind == "b") and not isinstance(arg, Index)
    return isinstance(expr, Ref | Const | Index | Read | Lane | Pack)
