"""Updates of outputs in two loops: one finds the places of neighbours, in vectors, and another makes the updates one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
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

    def __init__(self, stmt: ir.Atomic, inside: list[bool], points: int) -> None:
        assert isinstance(stmt.memory, ir.FieldParam)
        self.stmt, self.field, self.inside = stmt, stmt.memory, inside
        self.at = ir.Var(f"{self.field.hint}_at", Type(INT), mutable=True)
        self.places = ir.Array(f"{self.field.hint}_places", Type(INT), (points,))
        (arg,) = stmt.args
        self.value = None if isinstance(arg, ir.Const) else ir.Var(f"{self.field.hint}_by", arg.type, mutable=True)
        self.values = None if self.value is None else ir.Array(f"{self.field.hint}_values", arg.type, (points,))


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
        self.first = ir.Var("first_column", Type(INT))
        updates = [s for s in walk(kernel.body) if isinstance(s, ir.Atomic) and s.memory in outputs.fields]
        self.updates = {id(stmt): _Update(stmt, outputs.inside(stmt), self.points) for stmt in updates}
        self.always = {id(stmt) for stmt in kernel.body}  # what runs under no condition
        loops = [stmt.body for stmt in walk(kernel.body) if isinstance(stmt, (ir.For, ir.While))]
        self.in_loops = any(id(stmt) in self.updates for body in loops for stmt in walk(body))
        body: list[ir.Stmt] = [s for s in kernel.body if isinstance(s, ir.Declare) and s.array.space == "constant"]
        for update in self.updates.values():
            body.append(ir.Let(update.at, NOWHERE))
            if update.value is not None:
                body.append(ir.Let(update.value, constant(0, update.value.type.dtype)))
        body += self.block(tuple(s for s in kernel.body if s not in body))
        b = collector(body, hint="kept")
        place = b.apply("sub", ir.Index("global", "column"), ir.Ref(self.first))
        for update in self.updates.values():
            body.append(ir.Store(update.places, (place,), ir.Ref(update.at)))
            if update.value is not None and update.values is not None:
                body.append(ir.Store(update.values, (place,), ir.Ref(update.value)))
        self.kernel = replace(kernel, body=tuple(body))

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(found for stmt in block for found in self.kept(stmt))

    def kept(self, stmt: ir.Stmt) -> ir.Block:
        if id(stmt) not in self.updates:
            return (map_blocks(stmt, self.block),)
        update, out = self.updates[id(stmt)], list[ir.Stmt]()
        b = collector(out, update.stmt.loc)
        test, at = place_of(update.stmt, update.inside, b, b)
        at = at if test is None else b.apply("choose", test, at, NOWHERE)
        out.append(ir.Assign(update.at, at, update.stmt.loc))
        if update.value is not None:
            out.append(ir.Assign(update.value, update.stmt.args[0], update.stmt.loc))
        return tuple(out)

    def declared(self) -> list[ir.Stmt]:
        updates = self.updates.values()
        return [ir.Declare(array) for u in updates for array in (u.places, u.values) if array is not None]

    def found(self, stop: ir.Expr, body: Callable[[ir.Expr, list[ir.Stmt]], None]) -> ir.For:
        """The loop that finds the places of points; its body is that of a lane."""
        column, lane, out = ir.Var("column", Type(INT)), ir.Var("lane", Type(INT)), list[ir.Stmt]()
        body(collector(out, hint="column").apply("add", ir.Ref(column), ir.Ref(lane)), out)
        start, count, one = constant(0, INT), constant(self.lanes, INT), constant(1, INT)
        inner = ir.For(lane, start, count, one, tuple(out), lanes=True)
        return ir.For(column, ir.Ref(self.first), stop, count, (inner,))

    def made(self, stop: ir.Expr) -> ir.For:
        """The loop that makes the updates; neighbours use the copies in turns."""
        column, turn, out = ir.Var("column", Type(INT)), ir.Var("turn", Type(INT)), list[ir.Stmt]()
        copy = collector(out, hint="copy").apply("and", ir.Ref(turn), self.outputs.copies - 1)
        b = collector(out, hint="kept")
        place = b.apply("sub", b.apply("add", ir.Ref(column), ir.Ref(turn)), ir.Ref(self.first))
        for update in self.updates.values():
            out += self.update(update, place, copy)
        start, count, one = constant(0, INT), constant(self.lanes, INT), constant(1, INT)
        inner = ir.For(turn, start, count, one, tuple(out), self.lanes)
        return ir.For(column, ir.Ref(self.first), stop, count, (inner,))

    def update(self, update: _Update, place: ir.Expr, copy: ir.Expr) -> ir.Block:
        out, inner = list[ir.Stmt](), list[ir.Stmt]()
        b, value = collector(out, update.stmt.loc), update.stmt.args[0]
        at = b.bind(ir.Load(update.places, (place,), Type(INT)))
        if update.values is not None:
            value = collector(inner).bind(ir.Load(update.values, (place,), update.values.type))
        inner += self.outputs.combined(replace(update.stmt, args=(value,)), at, copy)
        if all(update.inside) and id(update.stmt) in self.always:
            return (*out, *inner)
        out.append(ir.If(b.apply("ge", at, 0), tuple(inner), (), update.stmt.loc))
        return tuple(out)

    def obstacle(self) -> str:
        """Why vectors do not find the places; "" if they do."""
        kernel = self.kernel
        assert kernel.target is not None
        if self.in_loops:
            return "it updates in loops"
        wrong = doubles(kernel.body) if kernel.target.widening == "functions" else ""
        body = tuple(s for s in kernel.body if not (isinstance(s, ir.Declare) and s.array.space == "constant"))
        return wrong or refusal_of_thread(kernel) or obstacle(body) or LanePlaces(kernel).obstacle(True)


def computes(kernel: Kernel) -> bool:
    """Whether a body does more than to read and to update, so that vectors are worth their loads and stores."""
    found = (e for e in expressions(kernel.body))
    return any(isinstance(e, ir.Apply) or (isinstance(e, ir.Cast) and e.arg.type.kind == "f") for e in found)
