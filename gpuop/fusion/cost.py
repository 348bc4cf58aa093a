"""What a kernel costs: operations of a thread, and the bytes that fusing saves or recomputing adds."""

from __future__ import annotations

from collections.abc import Sequence

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import ATOMS, Apply, Block, Const, Expr, FieldParam, For, Let, Load, Read, Ref, Stmt, Var
from gpuop.ir.ops import OPS
from gpuop.ir.visit import blocks, loop_values, operands, times, values, walk_expr, with_operands
from gpuop.passes.resolve import resolve_target

LAUNCH = 2**20  # bytes that a device moves while it launches a kernel
BALANCE = 10.0  # operations that a device does while it moves a byte
TURNS = 16  # that a loop whose bounds are not known is taken to make
WEIGHTS = {"div": 4.0, "mod": 4.0, "sqrt": 4.0}  # additions that an operation of several cycles takes as long as
FUNCTION = 20.0  # additions that a mathematical function takes as long as
READ = 2.0  # additions that a load and its address take as long as


def work(kernel: Kernel) -> float:
    """Operations of a thread, weighted; both branches of conditions count, of `_codegenIf` that of a generic target."""
    return _block(resolve_target(kernel).body)


def taps(readers: Sequence[tuple[Kernel, FieldParam]]) -> float:
    """How often a thread reads a field, in all of these kernels together; the same place counts once."""
    places = _Places()
    for kernel, field in readers:
        places.block(resolve_target(kernel).body, field, 1.0)
    return sum(places.turns.values())


class _Places:
    """Where fields are read: a place is what its coordinates are made of, whichever kernel computes them."""

    def __init__(self) -> None:
        self.known: dict[Expr, Expr] = {}
        self.same: dict[Var, Expr] = {}
        self.counters: dict[range, Expr] = {}  # the counter of loops with these turns, which `join_loops` makes one
        self.turns: dict[object, float] = {}

    def block(self, block: Block, field: FieldParam, turns: float) -> None:
        for stmt in block:
            for value in values(stmt):
                numbered = self._numbered(with_operands(value, self._numbered))
                fixed = not any(isinstance(e, Ref) and e.var.mutable for e in (numbered, *operands(numbered)))
                if isinstance(numbered, Read) and numbered.field is field:
                    element = None if isinstance(numbered.element, Const) else numbered.element
                    place = (numbered.point, element, numbered.border) if fixed else id(stmt)
                    self.turns[place] = max(self.turns.get(place, 0.0), turns)
                if isinstance(stmt, Let) and not stmt.var.mutable and fixed and not isinstance(value, Load):
                    atom = isinstance(numbered, ATOMS)
                    self.same[stmt.var] = numbered if atom else self.known.setdefault(numbered, Ref(stmt.var))
            known = loop_values(stmt) if isinstance(stmt, For) else None
            if isinstance(stmt, For) and known is not None:
                self.same[stmt.var] = self.counters.setdefault(known, Ref(stmt.var))
            for inner in blocks(stmt):
                self.block(inner, field, turns * _turns(stmt))

    def _numbered(self, expr: Expr) -> Expr:
        return self.same.get(expr.var, expr) if isinstance(expr, Ref) else expr


def _block(block: Block) -> float:
    total = 0.0
    for stmt in block:
        total += sum(_weight(e) for value in values(stmt) for e in walk_expr(value))
        total += sum(map(_block, blocks(stmt))) * _turns(stmt)
    return total


def _weight(expr: Expr) -> float:
    if isinstance(expr, Apply):
        row = OPS[expr.op]
        one = WEIGHTS.get(expr.op, FUNCTION if row.ulp else 1.0)
        return one * expr.type.lanes
    if isinstance(expr, Read):
        return READ * expr.type.lanes + 2 * len(expr.point or ())
    return 0.0


def _turns(stmt: Stmt) -> float:
    known = times(stmt)
    return TURNS if known is None else known
