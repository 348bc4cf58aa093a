"""The cost model of kernels: operations of a thread, and bytes that fusion saves or recomputation adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpuop.ir.analysis.read_places import Places
from gpuop.ir.device_model import BALANCE, FUNCTION, ITERATIONS, READ, WEIGHTS
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Block, Const, Expr, FieldParam, Read, Stmt
from gpuop.ir.ops import OPS
from gpuop.ir.visit import blocks, times, values, walk_expr
from gpuop.passes.resolve_target import resolve_target


def amount(nbytes: float) -> str:
    """A byte count for people."""
    for unit in ("B", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1024
    return f"{nbytes:.3g} GiB"


def saving(nbytes: float) -> str:
    """The gain of moving fewer bytes, or the cost of moving more, in operations of the same time, as text."""
    worth = f"{amount(abs(nbytes))} (worth {abs(nbytes) * BALANCE:.3g} operations)"
    return f"saves {worth}" if nbytes >= 0 else f"costs {worth}"


def work(kernel: Kernel) -> float:
    """The weighted operations of a thread; both branches of conditions count, for `_codegenIf` that of a generic target."""
    return _block(resolve_target(kernel).body, weight)


def arithmetic(kernel: Kernel) -> float:
    """The weighted operations of a thread whose reads hit caches: a read counts as one operation."""
    return _block(resolve_target(kernel).body, lambda e: float(e.type.lanes) if isinstance(e, Read) else weight(e))


def taps(readers: Sequence[tuple[Kernel, FieldParam]]) -> float:
    """The number of reads of a field by a thread, in all of these kernels together; equal places count once."""
    places = Places(_turns)
    runs_of_place: dict[object, float] = {}
    for kernel, field in readers:
        for read, place, runs in places.reads(resolve_target(kernel).body):
            if read.field is field:
                runs_of_place[place] = max(runs_of_place.get(place, 0.0), runs)
    return sum(runs_of_place.values())


def _block(block: Block, weight: Callable[[Expr], float]) -> float:
    total = 0.0
    for stmt in block:
        total += sum(weight(e) for value in values(stmt) for e in walk_expr(value))
        total += sum(_block(inner, weight) for inner in blocks(stmt)) * _turns(stmt)
    return total


def weight(expr: Expr) -> float:
    if isinstance(expr, Apply):
        row = OPS[expr.op]
        one = 1.0 if is_shift(expr) else WEIGHTS.get(expr.op, FUNCTION if row.ulp else 1.0)
        return one * expr.type.lanes
    if isinstance(expr, Read):
        return READ * expr.type.lanes + 2 * len(expr.point or ())
    return 0.0


def is_shift(expr: Apply) -> bool:
    """Return whether an expression divides an integer by a power of two."""
    match expr:
        case Apply(op="div" | "mod", args=(_, Const(value=n))) if expr.type.integer:
            return n > 0 and int(n).bit_count() == 1
    return False


def _turns(stmt: Stmt) -> float:
    count = times(stmt)
    return ITERATIONS if count is None else count
