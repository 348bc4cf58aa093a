"""Loops of an adjoint: early exits as conditions, values that iterations need of those before, and counts of iterations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.early_exits import EarlyExits
from gpuop.ir.types import BOOL, INT, Type
from gpuop.ir.visit import blocks, leaving, loop_values, map_blocks, used_by, walk

Carried = tuple[ir.Array, ir.Var]  # an array, and the value that it holds for each iteration
MOST_BYTES = 4096  # of a thread's arrays for the values of iterations


def without_exits(block: ir.Block) -> ir.Block:
    """The statements with `break` and `continue` as conditions of what follows."""
    out: list[ir.Stmt] = []
    for stmt in block:
        stmt = map_blocks(stmt, without_exits)
        if isinstance(stmt, ir.For) and any(leaving(stmt.body)):
            stmt = _continued(stmt)
        if isinstance(stmt, ir.For) and any(leaving(stmt.body)):
            over = ir.Var("over", Type(BOOL), True, True)
            out.append(ir.Let(over, constant(False, BOOL), stmt.loc))
            rest = _Exits(over, ir.Break).block(stmt.body)
            inner: list[ir.Stmt] = []
            test = collector(inner, stmt.loc).apply("not", ir.Ref(over))
            stmt = replace(stmt, body=(*inner, ir.If(test, rest, (), stmt.loc)))
        out.append(stmt)
    return tuple(out)


def _continued(stmt: ir.For) -> ir.For:
    if not any(isinstance(exit, ir.Continue) for exit in leaving(stmt.body)):
        return stmt
    skipped = ir.Var("skipped", Type(BOOL), True, True)
    rest = _Exits(skipped, ir.Continue).block(stmt.body)
    return replace(stmt, body=(ir.Let(skipped, constant(False, BOOL), stmt.loc), *rest))


class _Exits(EarlyExits):
    """Rewriter of the exits of one loop."""

    def __init__(self, over: ir.Var, kind: type[ir.Stmt]) -> None:
        super().__init__(over)
        self.kind = kind

    def exits(self, block: ir.Block) -> Iterator[ir.Stmt]:
        return (exit for exit in leaving(block) if isinstance(exit, self.kind))

    def ending(self, exit: ir.Stmt) -> ir.Block:
        return (ir.Assign(self.over, constant(True, BOOL), getattr(exit, "loc", None)),)


def count_of(loop: ir.For) -> int | None:
    """The number of iterations, where it is known."""
    numbers = loop_values(loop)
    return None if numbers is None else len(numbers)


def iterations(b: Builder, loop: ir.For) -> ir.Expr | None:
    """The number of iterations of a loop as a value; None of one whose step is no constant."""
    count = count_of(loop)
    if count is not None:
        return constant(count, INT)
    if not isinstance(loop.step, ir.Const):
        return None
    step = int(loop.step.value)
    first, last = (loop.start, loop.stop) if step > 0 else (loop.stop, loop.start)
    distance = b.apply("add", b.apply("sub", last, first), abs(step) - 1)
    return b.apply("max", b.apply("div", distance, abs(step)), 0)


def joins_of(loop: ir.For) -> dict[ir.Var, ir.Var]:
    """The variables that iterations carry on, each with its value at the start of one."""
    assigned = {stmt.var for stmt in loop.body if isinstance(stmt, ir.Assign)}
    first = ((s.value, s.var) for s in loop.body if isinstance(s, ir.Let))
    return {value.var: var for value, var in first if isinstance(value, ir.Ref) and value.var in assigned}


def carried_by(loop: ir.For, count: int) -> list[Carried]:
    """Arrays for what iterations carry on."""

    def kind(var: ir.Var) -> Type:
        return Type(INT) if var.type.kind == "b" else var.type

    return [(ir.Array(f"{var.hint}s", kind(var), (max(count, 1),)), var) for var in joins_of(loop).values()]


def storing(loop: ir.For, carried: Sequence[Carried]) -> ir.Block:
    """The loop that stores the values at the start of its iterations."""
    number: list[ir.Stmt] = []
    b = collector(number, loop.loc)
    at = b.apply("sub", ir.Ref(loop.var), loop.start)
    at = b.apply("div", at, loop.step)
    arrays = {var: array for array, var in carried}
    body: list[ir.Stmt] = [*number]
    for stmt in loop.body:
        body.append(stmt)
        if isinstance(stmt, ir.Let) and stmt.var in arrays:
            array = arrays[stmt.var]
            value = collector(body, stmt.loc).cast(ir.Ref(stmt.var), array.type)
            body.append(ir.Store(array, (at,), value, stmt.loc))
    return (*(ir.Declare(array, loop.loc) for array, _ in carried), replace(loop, body=tuple(body)))


def reloaded(block: ir.Block, carried: Sequence[Carried], at: ir.Expr) -> ir.Block:
    """The statements of an iteration that takes what was carried to it from arrays."""
    arrays = {var: array for array, var in carried}
    out: list[ir.Stmt] = []
    for stmt in block:
        if isinstance(stmt, ir.Let) and stmt.var in arrays:
            array = arrays[stmt.var]
            b = collector(out, stmt.loc)
            stmt = replace(stmt, value=b.cast(b.bind(ir.Load(array, (at,), array.type)), stmt.var.type))
        out.append(stmt)
    return tuple(out)


def needed(block: ir.Block) -> set[ir.Var]:
    """The variables that the effects of a block depend on: assignments of others' variables, and writes."""
    own = {stmt.var for stmt in walk(block) if isinstance(stmt, ir.Let)}
    used: set[ir.Var] = set()

    def live(stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Let(var=var):
                return var in used
            case ir.Assign(var=var):
                return var in used or var not in own
            case ir.If() | ir.For() | ir.While():
                return any(live(inner) for part in blocks(stmt) for inner in part)
            case ir.Declare() | ir.Comment():
                return False
        return True

    before = -1
    while before != len(used):
        before = len(used)
        for stmt in walk(block):
            if live(stmt):
                used |= used_by(stmt)
    return used
