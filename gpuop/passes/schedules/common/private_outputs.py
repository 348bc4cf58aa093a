"""Copies of outputs that threads update in the place of the outputs, and that are added to these in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.monoids import Monoid, joined_by, output_atomics
from gpuop.ir.nodes import (
    Array,
    Atomic,
    Block,
    Cast,
    Const,
    Declare,
    Expr,
    FieldParam,
    For,
    If,
    Let,
    Load,
    Ref,
    Stmt,
    Store,
    Var,
    Write,
)
from gpuop.ir.types import INT, UINT, DType, Type
from gpuop.ir.visit import walk


def updates(kernel: Kernel) -> dict[FieldParam, Monoid]:
    """The outputs that are only updated, by one integer operation whose results nobody wants: the order does not matter."""
    joins: dict[FieldParam, set[Monoid | None]] = {}
    for stmt, field in output_atomics(kernel):
        ordered = stmt.var is not None or field.type.storage not in (INT, UINT)
        joins.setdefault(field, set()).add(None if ordered else joined_by(stmt.op))
    written = {stmt.field for stmt in walk(kernel.body) if isinstance(stmt, Write)} if joins else set()
    alone = ((field, monoid) for field, (monoid, *others) in joins.items() if not others and field not in written)
    return {field: monoid for field, monoid in alone if monoid is not None}


def size(field: FieldParam) -> int:
    return field.type.field_shape.points * field.type.planes


class PrivateOutputs:
    """The copies of the outputs of a kernel.

    Attributes:
        copies: how many a thread has, which it uses in turns: an update does not wait for the one before it. 0 where a
            work-group shares one, in local memory.
        narrow: the values that ints which come from other integers may have.
    """

    def __init__(self, kernel: Kernel, copies: int) -> None:
        self.fields, self.copies = updates(kernel), copies
        self.arrays = {field: self.array(field) for field in self.fields}
        self.narrow = {
            stmt.var: np.iinfo(stmt.value.arg.type.dtype.numpy)
            for stmt in walk(kernel.body)
            if isinstance(stmt, Let) and isinstance(stmt.value, Cast) and stmt.value.arg.type.integer
            if stmt.var.type == Type(INT) and not stmt.var.mutable
        }

    def array(self, field: FieldParam) -> Array:
        kind = Type(field.type.storage)
        if self.copies == 0:
            return Array(f"{field.hint}_shared", kind, (size(field),), "local")
        return Array(f"{field.hint}_copies", kind, (self.copies, size(field)))

    def identity(self, field: FieldParam) -> Const:
        dtype: DType = field.type.storage
        return constant(self.fields[field].identity(dtype), dtype)

    def declared(self) -> list[Stmt]:
        return [Declare(array) for array in self.arrays.values()]

    def places(self, i: Expr) -> list[tuple[Expr, ...]]:
        """Of an element in all copies."""
        return [(constant(k, INT), i) for k in range(self.copies)] if self.copies else [(i,)]

    def cleared(self, field: FieldParam, start: Expr, step: int) -> list[Stmt]:
        """The copies hold what changes nothing; private ones are zeroed where they are declared."""
        nothing, array = self.identity(field), self.arrays[field]
        if self.copies and not nothing.value:
            return []

        def clear(i: Expr, out: list[Stmt]) -> None:
            out += [Store(array, place, nothing) for place in self.places(i)]

        return [counted("i", start, array.extents[-1], step, clear)]

    def inside(self, stmt: Atomic) -> list[bool]:
        """Whether each coordinate of an update, and the element, is known to be inside of the output."""
        return [self.within(i, n) for i, n in coordinates(stmt)]

    def within(self, i: Expr, n: int) -> bool:
        if isinstance(i, Const):
            return 0 <= i.value < n
        narrow = self.narrow.get(i.var) if isinstance(i, Ref) else None
        return narrow is not None and narrow.min == 0 and narrow.max < n

    def update(self, stmt: Atomic, inside: list[bool], turn: Expr) -> Block:
        """An update of an output, as one of a copy; places outside are dropped."""
        field = stmt.memory
        assert isinstance(field, FieldParam)
        out, inner = list[Stmt](), list[Stmt]()
        test, at = place_of(stmt, inside, collector(out, stmt.loc), collector(inner, stmt.loc))
        if self.copies == 0:
            inner.append(replace(stmt, memory=self.arrays[field], index=(at,), element=None))
        else:
            inner += self.combined(stmt, at, turn)
        return tuple(inner) if test is None else (*out, If(test, tuple(inner), (), stmt.loc))

    def combined(self, stmt: Atomic, at: Expr, turn: Expr) -> Block:
        """An update of a place of a thread's own copy."""
        assert isinstance(stmt.memory, FieldParam)
        out, array = list[Stmt](), self.arrays[stmt.memory]
        b = collector(out, stmt.loc)
        old = b.bind(Load(array, (turn, at), array.type))
        out.append(Store(array, (turn, at), b.apply(stmt.op, old, *stmt.args), stmt.loc))
        return tuple(out)

    def joined(self, field: FieldParam, start: Expr, step: int) -> Stmt:
        """Add the copies to the output; what stayed as it was is left out."""
        op, array, nothing = self.fields[field].name, self.arrays[field], self.identity(field)

        def join(i: Expr, out: list[Stmt]) -> None:
            b = collector(out)
            total, *others = (b.bind(Load(array, place, array.type)) for place in self.places(i))
            for other in others:
                total = b.apply(op, total, other)
            inner: list[Stmt] = []
            index, element = point_of(field, i, collector(inner))
            inner.append(Atomic(op, field, index, (total,), None, element))
            out.append(If(b.apply("ne", total, nothing), tuple(inner)))

        return counted("i", start, array.extents[-1], step, join)


def counted(hint: str, start: Expr, stop: int, step: int, body: Callable[[Expr, list[Stmt]], None]) -> For:
    """A loop over places."""
    var, out = Var(hint, Type(INT)), list[Stmt]()
    body(Ref(var), out)
    return For(var, start, constant(stop, INT), constant(step, INT), tuple(out))


def coordinates(stmt: Atomic) -> list[tuple[Expr, int]]:
    """Those of an update of an output, and of the element, beside how many there are."""
    assert isinstance(stmt.memory, FieldParam)
    index = [*stmt.index, constant(0, INT) if stmt.element is None else stmt.element]
    return list(zip(index, [*stmt.memory.type.field_shape, stmt.memory.type.planes], strict=True))


def place_of(stmt: Atomic, inside: list[bool], tests: Builder, b: Builder) -> tuple[Expr | None, Expr]:
    """Whether an update is inside of its field (None: always), and its place among all elements, in row-major order."""
    test: Expr | None = None
    at: Expr = constant(0, INT)
    for (i, n), known in zip(coordinates(stmt), inside, strict=True):
        if not known:
            one = tests.apply("lt", tests.cast(i, Type(UINT), saturate=False), n)
            test = one if test is None else tests.apply("and", test, one)
        if n > 1:
            at = i if at == constant(0, INT) else b.apply("add", b.apply("mul", at, n), i)
    return test, at


def point_of(field: FieldParam, at: Expr, b: Builder) -> tuple[tuple[Expr, ...], Expr | None]:
    """The point and the element of a place, as an atomic operation has them."""
    extents, found = [*field.type.field_shape, field.type.planes], list[Expr]()
    for n in reversed(extents[1:]):
        found.append(b.apply("mod", at, n) if n > 1 else constant(0, INT))
        at = b.apply("div", at, n) if n > 1 else at
    *index, element = [at, *reversed(found)]
    return tuple(index), element if field.type.planes > 1 else None
