"""Private copies of outputs: threads update the copies, and add them to the outputs in the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.monoids import Monoid, joined_by, output_atomics
from gpuop.ir.types import INT, UINT, DType, Type
from gpuop.ir.visit import expressions, map_blocks, walk
from gpuop.passes.coarsening_factor import refusal_of_thread
from gpuop.passes.loops import Body, counted, counter
from gpuop.passes.schedules.common.lane_positions import LanePositions
from gpuop.passes.vectorization_legality import obstacle, refused_doubles


def updates(kernel: Kernel) -> dict[ir.FieldParam, Monoid]:
    """The outputs that are only updated, by one integer operation without a result: the order does not matter."""
    joins: dict[ir.FieldParam, set[Monoid | None]] = {}
    for stmt, field in output_atomics(kernel):
        ordered = stmt.var is not None or field.type.storage not in (INT, UINT)
        joins.setdefault(field, set()).add(None if ordered else joined_by(stmt.op))
    written = {stmt.field for stmt in walk(kernel.body) if isinstance(stmt, ir.Write)} if joins else set()
    alone = ((field, monoid) for field, (monoid, *others) in joins.items() if not others and field not in written)
    return {field: monoid for field, monoid in alone if monoid is not None}


def size(field: ir.FieldParam) -> int:
    return field.type.field_shape.points * field.type.planes


class PrivateOutputs:
    """The copies of the outputs of a kernel.

    Attributes:
        copies: the number of copies of a thread, used round-robin so that an update does not wait for the one before it.
            0 where a work-group shares one copy, in local memory.
        narrow: the ranges of int variables that are converted from other integers.
    """

    def __init__(self, kernel: Kernel, copies: int) -> None:
        self.fields, self.copies = updates(kernel), copies
        self.arrays = {field: self.array(field) for field in self.fields}
        self.narrow = {
            stmt.var: np.iinfo(stmt.value.arg.type.dtype.numpy)
            for stmt in walk(kernel.body)
            if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Cast) and stmt.value.arg.type.integer
            if stmt.var.type == Type(INT) and not stmt.var.mutable
        }

    def array(self, field: ir.FieldParam) -> ir.Array:
        kind = Type(field.type.storage)
        if self.copies == 0:
            return ir.Array(f"{field.hint}_shared", kind, (size(field),), "local")
        return ir.Array(f"{field.hint}_copies", kind, (self.copies, size(field)))

    def identity(self, field: ir.FieldParam) -> ir.Const:
        dtype: DType = field.type.storage
        return constant(self.fields[field].identity(dtype), dtype)

    def places(self, i: ir.Expr) -> list[tuple[ir.Expr, ...]]:
        """The indices of an element in all copies."""
        return [(constant(k, INT), i) for k in range(self.copies)] if self.copies else [(i,)]

    def cleared(self, field: ir.FieldParam, start: ir.Expr, step: int) -> list[ir.Stmt]:
        """Set the copies to the identity of the operation; declarations set private ones to zero."""
        nothing, array = self.identity(field), self.arrays[field]
        if self.copies and not nothing.value:
            return []
        i = counter("i")
        stores = [ir.Store(array, place, nothing) for place in self.places(ir.Ref(i))]
        return [counted(i, start, array.extents[-1], stores, step)]

    def inside(self, stmt: ir.Atomic) -> list[bool]:
        """For each coordinate of an update, and the element: whether it is known to be inside of the output."""
        return [self.within(i, n) for i, n in coordinates(stmt)]

    def within(self, i: ir.Expr, n: int) -> bool:
        if isinstance(i, ir.Const):
            return 0 <= i.value < n
        narrow = self.narrow.get(i.var) if isinstance(i, ir.Ref) else None
        return narrow is not None and narrow.min == 0 and narrow.max < n

    def update(self, stmt: ir.Atomic, inside: list[bool], turn: ir.Expr) -> ir.Block:
        """Update a copy instead of the output; updates outside are dropped."""
        field = stmt.memory
        assert isinstance(field, ir.FieldParam)
        out, inner = list[ir.Stmt](), list[ir.Stmt]()
        test, at = place_of(stmt, inside, collector(out, stmt.loc), collector(inner, stmt.loc))
        if self.copies == 0:
            inner.append(replace(stmt, memory=self.arrays[field], index=(at,), element=None))
        else:
            inner += self.combined(stmt, at, turn)
        return tuple(inner) if test is None else (*out, ir.If(test, tuple(inner), (), stmt.loc))

    def combined(self, stmt: ir.Atomic, at: ir.Expr, turn: ir.Expr) -> ir.Block:
        """Update an element of a thread's own copy."""
        assert isinstance(stmt.memory, ir.FieldParam)
        out, array = list[ir.Stmt](), self.arrays[stmt.memory]
        b = collector(out, stmt.loc)
        old = b.bind(ir.Load(array, (turn, at), array.type))
        out.append(ir.Store(array, (turn, at), b.apply(stmt.op, old, *stmt.args), stmt.loc))
        return tuple(out)

    def joined(self, field: ir.FieldParam, start: ir.Expr, step: int) -> ir.Stmt:
        """Add the copies to the output; elements without updates are left out."""
        op, array, nothing = self.fields[field].name, self.arrays[field], self.identity(field)
        i, out, inner = counter("i"), list[ir.Stmt](), list[ir.Stmt]()
        b = collector(out)
        total, *others = (b.bind(ir.Load(array, place, array.type)) for place in self.places(ir.Ref(i)))
        for other in others:
            total = b.apply(op, total, other)
        index, element = point_of(field, ir.Ref(i), collector(inner))
        inner.append(ir.Atomic(op, field, index, (total,), None, element))
        out.append(ir.If(b.apply("ne", total, nothing), tuple(inner)))
        return counted(i, start, array.extents[-1], out, step)


def coordinates(stmt: ir.Atomic) -> list[tuple[ir.Expr, int]]:
    """The coordinates of an update of an output, and its element, each with its extent."""
    assert isinstance(stmt.memory, ir.FieldParam)
    index = [*stmt.index, constant(0, INT) if stmt.element is None else stmt.element]
    return list(zip(index, [*stmt.memory.type.field_shape, stmt.memory.type.planes], strict=True))


def place_of(stmt: ir.Atomic, inside: list[bool], tests: Builder, b: Builder) -> tuple[ir.Expr | None, ir.Expr]:
    """The test whether an update is inside of its field (None: always), and its flat row-major index."""
    test: ir.Expr | None = None
    at: ir.Expr = constant(0, INT)
    for (i, n), is_inside in zip(coordinates(stmt), inside, strict=True):
        if not is_inside:
            one = tests.apply("lt", tests.cast(i, Type(UINT), saturate=False), n)
            test = one if test is None else tests.apply("and", test, one)
        if n > 1:
            at = i if at == constant(0, INT) else b.apply("add", b.apply("mul", at, n), i)
    return test, at


def point_of(field: ir.FieldParam, at: ir.Expr, b: Builder) -> tuple[tuple[ir.Expr, ...], ir.Expr | None]:
    """The point and the element of a flat index, as operands of an atomic operation."""
    extents, inner = [*field.type.field_shape, field.type.planes], list[ir.Expr]()
    for n in reversed(extents[1:]):
        inner.append(b.apply("mod", at, n) if n > 1 else constant(0, INT))
        at = b.apply("div", at, n) if n > 1 else at
    *index, element = [at, *reversed(inner)]
    return tuple(index), element if field.type.planes > 1 else None


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
    """A kernel whose updates of private outputs are deferred: vectors compute their indices, and another loop makes them.

        for a chunk of VECTORS vectors of columns:
            for each vector:  places[k] = index of the update, -1 where there is none;  values[k] = its operand
            for each column:  copy[column mod copies][places[k]] += values[k]

    An update loads what the one before has just stored, which is slow; vectors compute the indices meanwhile.

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

    def index_loop(self, stop: ir.Expr, body: Body) -> ir.For:
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
