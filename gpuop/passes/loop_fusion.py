"""Loop fusion: loops with equal iterations that read the same points become one, so that shared reads and values are computed once.

Fused operators each have their own loops: the minimum and the maximum of the columns of a field are two loops over rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.analysis.read_places import Places
from gpuop.ir.kernel import Kernel
from gpuop.ir.visit import Copier, blocks, bound, changed, expressions, loop_values, map_blocks, walk

Alike = tuple[range, object]  # the iterations of a loop, and its unroll hint


def join_loops(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_Joining().block(kernel.body))


class _Joining:
    def __init__(self) -> None:
        self.places = Places(lambda stmt: 1)

    def block(self, block: ir.Block) -> ir.Block:
        out: list[ir.Stmt] = []
        # the loops of a kind, with what they read
        kinds: dict[Alike, list[tuple[ir.For, set[tuple[ir.FieldParam, object]]]]] = {}
        for stmt in block:
            points = {(points.field, place) for points, place, _ in self.places.reads((stmt,))}
            alike = _alike(stmt)
            if alike is None or not isinstance(stmt, ir.For):
                out.append(stmt)
                continue
            loops = kinds.setdefault(alike, [])
            for number, (first, places) in enumerate(loops):
                fused = _together(first, stmt, out) if places & points else None
                if fused is not None:
                    out, both = fused
                    loops[number] = both, places | points
                    break
            else:
                loops.append((stmt, points))
                out.append(stmt)
        return tuple(map_blocks(stmt, self.block) if blocks(stmt) else stmt for stmt in out)


def _together(first: ir.For, second: ir.For, out: list[ir.Stmt]) -> tuple[list[ir.Stmt], ir.For] | None:
    """The statements with the second loop fused into the first one, and the fused loop; None if that is not legal."""
    at = next(n for n in range(len(out) - 1, -1, -1) if out[n] is first)
    moved = _moved(first, out[at + 1 :], second)
    if moved is None:
        return None
    both = replace(first, body=first.body + Copier(second.body, {second.var: ir.Ref(first.var)}).copy())
    return [*out[:at], *moved, both, *(s for s in out[at + 1 :] if s not in moved)], both


def _alike(stmt: ir.Stmt) -> Alike | None:
    """The iterations and the hint, equal for loops that may be fused; None for a loop with effects or an exit."""
    if not isinstance(stmt, ir.For):
        return None
    iterations = loop_values(stmt)
    plain = all(isinstance(s, (ir.Let, ir.Assign, ir.If, ir.For, ir.Comment)) for s in walk(stmt.body))
    return (iterations, stmt.unroll) if iterations is not None and plain and not _loads_written(stmt.body) else None


def _moved(first: ir.For, between: Sequence[ir.Stmt], second: ir.For) -> list[ir.Stmt] | None:
    """The statements between the loops that must move before the first one for fusion; None where they cannot."""
    needed = _used((second,)) | _set((second,))
    moved: list[ir.Stmt] = []
    others: list[ir.Stmt] = []
    for stmt in reversed(between):
        stores = isinstance(stmt, ir.Store) and isinstance(stmt.memory, ir.Array)  # loops that move load no arrays
        if isinstance(stmt, ir.Let) and stmt.var in needed:
            needed |= _used((stmt,))
            moved.insert(0, stmt)
        elif isinstance(stmt, (ir.Let, ir.Assign, ir.Write, ir.Declare, ir.If, ir.For, ir.Comment)) or stores:
            others.append(stmt)
        else:
            return None  # a barrier, or another effect that must stay where it is
    assigned = _set((second, *(let for let in moved if isinstance(let, ir.Let) and let.var.mutable)))
    stay = (first, *others)
    return None if _loads_written(moved) or needed & _set(stay) or assigned & _used(stay) else moved


def _loads_written(block: Iterable[ir.Stmt]) -> bool:
    loads = (e.memory for e in expressions(tuple(block)) if isinstance(e, ir.Load))
    return any(isinstance(memory, ir.Array) and memory.written for memory in loads)


def _used(block: Iterable[ir.Stmt]) -> set[ir.Var]:
    return {e.var for e in expressions(tuple(block)) if isinstance(e, ir.Ref)}


def _set(block: Iterable[ir.Stmt]) -> set[ir.Var]:
    """The variables that statements bind or assign."""
    return {symbol for symbol in bound(tuple(block)) | changed(tuple(block)) if isinstance(symbol, ir.Var)}
