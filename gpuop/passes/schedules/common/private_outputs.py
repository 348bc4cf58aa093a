"""Private copies of outputs: threads update the copies, and add them to the outputs in the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.monoids import Monoid, joined_by, output_atomics
from gpuop.ir.types import INT, UINT, DType, Type
from gpuop.ir.visit import walk
from gpuop.passes.loops import counted, counter


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

    def declared(self) -> list[ir.Stmt]:
        return [ir.Declare(array) for array in self.arrays.values()]

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
