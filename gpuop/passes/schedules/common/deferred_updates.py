"""Updates of outputs in two loops: one finds the places of neighbours, in vectors, and another makes the updates one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import (
    Apply,
    Array,
    Assign,
    Atomic,
    Block,
    Cast,
    Const,
    Declare,
    Expr,
    FieldParam,
    For,
    If,
    Index,
    Let,
    Load,
    Ref,
    Stmt,
    Store,
    Var,
    While,
)
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import expressions, map_blocks, walk
from gpuop.passes.coarsening_factor import refusal_of_thread
from gpuop.passes.schedules.common.lane_positions import LanePlaces
from gpuop.passes.schedules.common.private_outputs import PrivateOutputs, place_of
from gpuop.passes.vectorization_legality import doubles, obstacle

NOWHERE = constant(-1, INT)
VECTORS = 4  # whose updates are kept: what was just stored is slow to load


class _Update:
    """An update of an output: what holds its places, and the values where they differ between points."""

    def __init__(self, stmt: Atomic, inside: list[bool], points: int) -> None:
        assert isinstance(stmt.memory, FieldParam)
        self.stmt, self.field, self.inside = stmt, stmt.memory, inside
        self.at = Var(f"{self.field.hint}_at", Type(INT), mutable=True)
        self.places = Array(f"{self.field.hint}_places", Type(INT), (points,))
        (arg,) = stmt.args
        self.value = None if isinstance(arg, Const) else Var(f"{self.field.hint}_by", arg.type, mutable=True)
        self.values = None if self.value is None else Array(f"{self.field.hint}_values", arg.type, (points,))


class LaterUpdates:
    """A kernel whose updates of private outputs are kept for a few vectors of points, and then made.

    Attributes:
        kernel: the kernel without the updates.
        lanes, points: of a vector, and of all whose updates are kept.
        first: the first column of these.
        in_loops: whether a point may make an update more than once.
    """

    def __init__(self, kernel: Kernel, outputs: PrivateOutputs, lanes: int) -> None:
        self.outputs, self.lanes, self.points = outputs, lanes, VECTORS * lanes
        self.first = Var("first_column", Type(INT))
        updates = [s for s in walk(kernel.body) if isinstance(s, Atomic) and s.memory in outputs.fields]
        self.updates = {id(stmt): _Update(stmt, outputs.inside(stmt), self.points) for stmt in updates}
        self.always = {id(stmt) for stmt in kernel.body}  # what runs under no condition
        loops = [stmt.body for stmt in walk(kernel.body) if isinstance(stmt, (For, While))]
        self.in_loops = any(id(stmt) in self.updates for body in loops for stmt in walk(body))
        body: list[Stmt] = [s for s in kernel.body if isinstance(s, Declare) and s.array.space == "constant"]
        for update in self.updates.values():
            body.append(Let(update.at, NOWHERE))
            if update.value is not None:
                body.append(Let(update.value, constant(0, update.value.type.dtype)))
        body += self.block(tuple(s for s in kernel.body if s not in body))
        b = collector(body, hint="kept")
        place = b.apply("sub", Index("global", "column"), Ref(self.first))
        for update in self.updates.values():
            body.append(Store(update.places, (place,), Ref(update.at)))
            if update.value is not None and update.values is not None:
                body.append(Store(update.values, (place,), Ref(update.value)))
        self.kernel = replace(kernel, body=tuple(body))

    def block(self, block: Block) -> Block:
        return tuple(found for stmt in block for found in self.kept(stmt))

    def kept(self, stmt: Stmt) -> Block:
        if id(stmt) not in self.updates:
            return (map_blocks(stmt, self.block),)
        update, out = self.updates[id(stmt)], list[Stmt]()
        b = collector(out, update.stmt.loc)
        test, at = place_of(update.stmt, update.inside, b, b)
        at = at if test is None else b.apply("choose", test, at, NOWHERE)
        out.append(Assign(update.at, at, update.stmt.loc))
        if update.value is not None:
            out.append(Assign(update.value, update.stmt.args[0], update.stmt.loc))
        return tuple(out)

    def declared(self) -> list[Stmt]:
        updates = self.updates.values()
        return [Declare(array) for u in updates for array in (u.places, u.values) if array is not None]

    def found(self, stop: Expr, body: Callable[[Expr, list[Stmt]], None]) -> For:
        """The loop that finds the places of points; its body is that of a lane."""
        column, lane, out = Var("column", Type(INT)), Var("lane", Type(INT)), list[Stmt]()
        body(collector(out, hint="column").apply("add", Ref(column), Ref(lane)), out)
        start, count, one = constant(0, INT), constant(self.lanes, INT), constant(1, INT)
        inner = For(lane, start, count, one, tuple(out), lanes=True)
        return For(column, Ref(self.first), stop, count, (inner,))

    def made(self, stop: Expr) -> For:
        """The loop that makes the updates; neighbours use the copies in turns."""
        column, turn, out = Var("column", Type(INT)), Var("turn", Type(INT)), list[Stmt]()
        copy = collector(out, hint="copy").apply("and", Ref(turn), self.outputs.copies - 1)
        b = collector(out, hint="kept")
        place = b.apply("sub", b.apply("add", Ref(column), Ref(turn)), Ref(self.first))
        for update in self.updates.values():
            out += self.update(update, place, copy)
        start, count, one = constant(0, INT), constant(self.lanes, INT), constant(1, INT)
        inner = For(turn, start, count, one, tuple(out), self.lanes)
        return For(column, Ref(self.first), stop, count, (inner,))

    def update(self, update: _Update, place: Expr, copy: Expr) -> Block:
        out, inner = list[Stmt](), list[Stmt]()
        b, value = collector(out, update.stmt.loc), update.stmt.args[0]
        at = b.bind(Load(update.places, (place,), Type(INT)))
        if update.values is not None:
            value = collector(inner).bind(Load(update.values, (place,), update.values.type))
        inner += self.outputs.combined(replace(update.stmt, args=(value,)), at, copy)
        if all(update.inside) and id(update.stmt) in self.always:
            return (*out, *inner)
        out.append(If(b.apply("ge", at, 0), tuple(inner), (), update.stmt.loc))
        return tuple(out)

    def obstacle(self) -> str:
        """Why vectors do not find the places; "" if they do."""
        kernel = self.kernel
        assert kernel.target is not None
        if self.in_loops:
            return "it updates in loops"
        wrong = doubles(kernel.body) if kernel.target.widening == "functions" else ""
        body = tuple(s for s in kernel.body if not (isinstance(s, Declare) and s.array.space == "constant"))
        return wrong or refusal_of_thread(kernel) or obstacle(body) or LanePlaces(kernel).obstacle(True)


def computes(kernel: Kernel) -> bool:
    """Whether a body does more than to read and to update, so that vectors are worth their loads and stores."""
    found = (e for e in expressions(kernel.body))
    return any(isinstance(e, Apply) or (isinstance(e, Cast) and e.arg.type.kind == "f") for e in found)
