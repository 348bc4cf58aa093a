"""Deferred updates of outputs: a loop in vectors computes the indices of neighbours, and another one makes the updates.

    for a chunk of VECTORS vectors of columns:
        for each vector:  places[k] = index of the update, -1 where there is none;  values[k] = its operand
        for each column:  copy[column mod copies][places[k]] += values[k]

An update loads what the one before has just stored, which is slow; vectors compute the indices meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import expressions, map_blocks, walk
from gpuop.passes.coarsening_factor import refusal_of_thread
from gpuop.passes.loops import counted, counter
from gpuop.passes.schedules.common.lane_positions import LanePositions
from gpuop.passes.schedules.common.private_outputs import PrivateOutputs, place_of
from gpuop.passes.vectorization_legality import obstacle, refused_doubles

NOWHERE = constant(-1, INT)
VECTORS = 4  # vectors of a chunk: loads soon after the stores to `places` are slow


class _Update:
    """An update of an output, with the arrays of its indices, and of its operands where these differ between points."""

    def __init__(self, stmt: ir.Atomic, inside: list[bool], points: int) -> None:
        assert isinstance(stmt.memory, ir.FieldParam)
        self.stmt, self.field, self.inside = stmt, stmt.memory, inside
        self.at = ir.Var(f"{self.field.hint}_at", Type(INT), mutable=True)
        self.places = ir.Array(f"{self.field.hint}_places", Type(INT), (points,))
        (arg,) = stmt.args
        self.value = None if isinstance(arg, ir.Const) else ir.Var(f"{self.field.hint}_by", arg.type, mutable=True)
        self.values = None if self.value is None else ir.Array(f"{self.field.hint}_values", arg.type, (points,))


class DeferredUpdates:
    """A kernel whose updates of private outputs are deferred for a chunk of points.

    Attributes:
        kernel: the kernel with stores to the arrays of indices instead of the updates.
        lanes, points: the columns of a vector, and of a chunk.
        first: the first column of a chunk.
        in_loops: whether a point may make an update more than once.
    """

    def __init__(self, kernel: Kernel, outputs: PrivateOutputs, lanes: int) -> None:
        self.outputs, self.lanes, self.points = outputs, lanes, VECTORS * lanes
        self.first = ir.Var("first_column", Type(INT))
        updates = [s for s in walk(kernel.body) if isinstance(s, ir.Atomic) and s.memory in outputs.fields]
        self.updates = {id(stmt): _Update(stmt, outputs.inside(stmt), self.points) for stmt in updates}
        self.always = {id(stmt) for stmt in kernel.body}  # statements under no condition
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
        return tuple(copy for stmt in block for copy in self.deferred(stmt))

    def deferred(self, stmt: ir.Stmt) -> ir.Block:
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

    def index_loop(self, stop: ir.Expr, body: Callable[[ir.Expr, list[ir.Stmt]], None]) -> ir.For:
        """The loop that computes the indices; its body is that of a lane."""
        column, lane, out = counter("column"), counter("lane"), list[ir.Stmt]()
        body(collector(out, hint="column").apply("add", ir.Ref(column), ir.Ref(lane)), out)
        inner = counted(lane, 0, self.lanes, out, lanes=True)
        return counted(column, ir.Ref(self.first), stop, [inner], self.lanes)

    def update_loop(self, stop: ir.Expr) -> ir.For:
        """The loop that makes the updates; neighbours use the copies round-robin."""
        column, turn, out = counter("column"), counter("turn"), list[ir.Stmt]()
        copy = collector(out, hint="copy").apply("and", ir.Ref(turn), self.outputs.copies - 1)
        b = collector(out, hint="kept")
        place = b.apply("sub", b.apply("add", ir.Ref(column), ir.Ref(turn)), ir.Ref(self.first))
        for update in self.updates.values():
            out += self.update(update, place, copy)
        inner = counted(turn, 0, self.lanes, out, unroll=self.lanes)
        return counted(column, ir.Ref(self.first), stop, [inner], self.lanes)

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
        """Return the reason why vectors cannot compute the indices; empty where they can."""
        kernel = self.kernel
        if self.in_loops:
            return "it updates in loops"
        reason = refused_doubles(kernel)
        body = tuple(s for s in kernel.body if not (isinstance(s, ir.Declare) and s.array.space == "constant"))
        return reason or refusal_of_thread(kernel) or obstacle(body) or LanePositions(kernel).obstacle(True)


def computes(kernel: Kernel) -> bool:
    """Return whether a body computes more than its reads and updates, so that vectors are worth their loads and stores."""
    exprs = (e for e in expressions(kernel.body))
    return any(isinstance(e, ir.Apply) or (isinstance(e, ir.Cast) and e.arg.type.kind == "f") for e in exprs)
