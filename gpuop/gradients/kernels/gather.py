"""Gathers: each point of a field adds up what threads contribute to it that have read it, or a place that its border brings there.

Threads at `p` read the place `e = factor · p + number`; so the point `q` asks those at `(q − number) / factor`, and besides, where
`q` is near an edge, those whose place lies outside and comes back to `q`: few points do, in a branch of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from gpuop.base.records import dataclass
from gpuop.gradients.kernels.places import Position, Site
from gpuop.gradients.kernels.scatter import without_scatters
from gpuop.gradients.kernels.shares import zero
from gpuop.gradients.kernels.transpose import Transposed
from gpuop.ir import nodes as ir
from gpuop.ir.borders import BORDERS
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import GRID_AXES
from gpuop.ir.types import INT, FieldType, Type
from gpuop.ir.visit import Copier, expressions, with_operands

MOST_WRITTEN_OUT = 16  # places outside along an axis, for one read
Place = Mapping[str, ir.Expr]  # a thread's point, by the names of the axes
At = Callable[[Builder, ir.Expr], ir.Expr]


@dataclass(frozen=True, eq=False)
class Slice:
    """The share of a thread for one place, with the statements that it needs.

    Attributes:
        domain: extents of the threads' grid, by the names of the axes.
        reads_own: it reads cotangents, and what is kept of them, at the thread's own point, and nothing else.
        periodic: it reads everything so that a grid that begins again at its end gives the same.
    """

    site: Site
    kernel: Kernel
    value: ir.Expr
    domain: Mapping[str, int]
    reads_own: bool
    periodic: bool

    def at(self, b: list[ir.Stmt], place: Place, border: str) -> ir.Expr:
        """The share of the thread at a place; statements are appended to `b`."""
        copier = _Moved(self, place, border)
        b += copier.copy()
        return copier.expr(self.value)


def slices(adjoint: Transposed, field: ir.FieldParam) -> list[Slice]:
    """The slices of a body for all places of a field."""
    return [_slice(adjoint, site, value) for site, value in adjoint.shares.items() if site.field is field]


def _slice(adjoint: Transposed, site: Site, value: ir.Expr) -> Slice:
    kernel = adjoint.kernel
    out = ir.FieldParam("share", FieldType(kernel.domain.shape, (value.type.lanes,), value.type.dtype.name))
    alone = without_dead_code(
        replace(kernel, outputs=(Output(out),), body=(*without_scatters(adjoint.body), ir.Write(out, value)))
    )
    body = alone.body[:-1]
    domain = {axis: kernel.domain.extent(axis) for axis in kernel.domain.axes}
    exprs = [*expressions(body)]
    own = {e.field for e in exprs if isinstance(e, ir.Read) and e.point is None and e.field.type.field_shape}
    reads_own = not any(isinstance(e, ir.Index) or (isinstance(e, ir.Read) and e.field not in own) for e in exprs)
    linear = own <= adjoint.linear and not any(isinstance(e, ir.Read) and e.point is not None for e in exprs)
    return Slice(site, replace(kernel, body=body), value, domain, reads_own and linear, _is_periodic(kernel, exprs))


def _is_periodic(kernel: Kernel, exprs: Sequence[ir.Expr]) -> bool:
    reads = [e for e in exprs if isinstance(e, ir.Read) and e.field.type.field_shape]
    placed = [e for e in reads if e.point is not None]
    indices = sum(isinstance(e, ir.Index) for e in exprs)
    inside = sum(isinstance(at, ir.Index) for e in placed for at in e.point or ())
    alike = all(e.field.type.field_shape == kernel.domain.shape for e in reads)
    return alike and indices == inside and all(e.border == "wrap" for e in placed)


class _Moved(Copier):
    """Copies a slice for a thread at another place."""

    def __init__(self, of: Slice, place: Place, border: str) -> None:
        super().__init__(of.kernel.body)
        self.place, self.border, self.domain = place, border, of.domain
        self.shape = tuple(of.domain.values())
        self.own = all(place[axis] == ir.Index("global", axis) for axis in of.domain)

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Index) and expr.axis in self.domain:
            if expr.kind == "global_size":
                return constant(self.domain[expr.axis], INT)
            at = self.place[expr.axis]
            if not expr.offset:
                return at
            if isinstance(at, ir.Index):
                return replace(at, offset=at.offset + expr.offset)
            return ir.Apply("add", (at, constant(expr.offset, INT)), Type(INT))
        copied = super().expr(expr)
        if isinstance(copied, ir.Read) and copied.point is None and copied.field.type.field_shape:
            point = tuple(self.place[axis] for axis in self.domain)
            if self.border == "fill":
                return replace(copied, point=point, border="fill", fill=zero(copied.type))
            return replace(copied, point=point, border=self.border)
        return copied

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        """A statement; coordinates that are no atoms any more are bound before it."""
        (copied,) = super().stmt(stmt)
        before: list[ir.Stmt] = []

        def bound(expr: ir.Expr) -> ir.Expr:
            return expr if isinstance(expr, ir.ATOMS) else collector(before).bind(expr)

        if isinstance(copied, (ir.Let, ir.Assign)):
            copied = replace(copied, value=with_operands(copied.value, bound))
        return (*before, copied)


# --- one axis -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Term:
    """Threads that have read a point along an axis.

    Attributes:
        key: equal for equal conditions.
        condition: a function that gives the condition of the point, None for all; for threads that are known to exist.
        axis: the axis of threads; empty where the place is a number.
        at: the coordinate of the threads.
        inside: whether it is known to be in the grid.
    """

    key: tuple[object, ...]
    condition: At | None
    axis: str
    at: At
    inside: bool


def terms(along: Position, n: int, extent: int, border: str, periodic: bool) -> Iterable[Term]:
    """The threads that have read a point of an axis of `n` points, by the grid's extent along their axis."""
    if not n or not extent:
        return
    if not along.axis:
        at = int(_folded(np.asarray(along.number), n, border)) if border != "fill" else along.number
        if 0 <= at < n:
            yield Term(("at", at), lambda b, q: b.apply("eq", q, at), "", lambda b, q: q, True)
        return
    if periodic and border == "wrap" and along.factor == along.divisor == 1 and n == extent:
        yield Term((), None, along.axis, lambda b, q: b.apply("sub", q, along.number), True)
        return
    yield from _within(along, n, extent)
    if border not in ("fill", "unchecked"):
        yield from _outside(along, n, extent, border)


def _folded(at: np.ndarray, n: int, border: str) -> np.ndarray:
    return BORDERS[border].numpy(at, n)


def _within(along: Position, n: int, extent: int) -> Iterable[Term]:
    """The threads whose place is the point itself."""
    s, o, d = along.factor, along.number, along.divisor
    if d > 1:
        for j in range(d):
            yield _quotient_term(along, n, extent, j)
        return
    if s == 1:
        inside = o <= 0 and n - o <= extent
        yield Term((), None, along.axis, lambda b, q: b.apply("sub", q, o), inside)
        return
    if s == -1:
        inside = o - (n - 1) >= 0 and o < extent
        yield Term((), None, along.axis, lambda b, q: b.apply("sub", o, q), inside)
        return
    step, c = abs(s), -o % abs(s)
    start = (o + c) // step

    def condition(b: Builder, q: ir.Expr) -> ir.Expr:
        return b.apply("eq", b.apply("mod", b.apply("add", q, c), step), 0)

    def at(b: Builder, q: ir.Expr) -> ir.Expr:
        quotient = b.apply("div", b.apply("add", q, c), step)
        return b.apply("sub", quotient, start) if s > 0 else b.apply("sub", start, quotient)

    yield Term(("step", step, c), condition, along.axis, at, False)


def _quotient_term(along: Position, n: int, extent: int, j: int) -> Term:
    """Threads p with (p + number) / divisor == q, of the remainder j."""
    d, less = along.divisor, along.number - j
    inside = less <= 0 and (n - 1) * d - less < extent
    return Term((), None, along.axis, lambda b, q: b.apply("sub", b.apply("mul", q, d), less), inside)


def _outside(along: Position, n: int, extent: int, border: str) -> Iterable[Term]:
    """The threads whose place lies outside, and comes back to the point."""
    threads = np.arange(extent)
    places = (along.factor * threads + along.number) // along.divisor
    out = (places < 0) | (places >= n)
    back = _folded(places[out], n, border)
    for p, q in zip(threads[out].tolist(), back.tolist(), strict=True):
        yield _outside_term(along.axis, p, q)


def _outside_term(axis: str, p: int, k: int) -> Term:
    return Term(("at", k), lambda b, q: b.apply("eq", q, k), axis, lambda b, q: b.apply("add", q, p - k), True)


# --- all axes -----------------------------------------------------------------------------------------------------------


class Gather:
    """The kernel that adds up the slices of a field, at each of its points.

    Args:
        kind: the type of the field.
        elements: the number of elements of a thread's axis of elements.
    """

    def __init__(self, kind: FieldType, elements: int) -> None:
        self.kind, self.elements = kind, elements
        self.type = Type(kind.storage, kind.planes if elements == 1 else 1)
        self.axes = GRID_AXES[3 - len(kind.field_shape) :]
        self.groups: dict[tuple[object, ...], list[tuple[Slice, tuple[Term, ...]]]] = {(): []}

    def add(self, each: Slice) -> None:
        """Add the share of a slice."""
        point, n = each.site.point or (), self.kind.field_shape
        options = [
            list(terms(along, extent, each.domain.get(along.axis, 1), each.site.border, each.periodic))
            for along, extent in zip(point, n, strict=True)
        ]
        for combination in product(*options):
            key = tuple((axis, *t.key) for axis, t in zip(self.axes, combination, strict=True) if t.key)
            self.groups.setdefault(key, []).append((each, combination))

    def body(self) -> tuple[ir.Block, ir.Expr]:
        """The statements, and the sum."""
        out: list[ir.Stmt] = []
        first = self.total(self.groups[()], None, out)
        edges = {key: terms for key, terms in self.groups.items() if key}
        if not edges:
            return tuple(out), collector(out).cast(zero(self.type), self.type) if first is None else first
        total = ir.Var("total", self.type, mutable=True)
        out.append(ir.Let(total, collector(out).cast(zero(self.type), self.type) if first is None else first))
        for members in edges.values():
            b = collector(out)
            tests = [t.condition(b, q) for t, q in zip(members[0][1], self.point, strict=True) if t.condition]
            condition = b.all_of(tests)
            assert condition is not None
            inner: list[ir.Stmt] = []
            value = self.total(members, ir.Ref(total), inner)
            assert value is not None
            out.append(ir.If(condition, (*inner, ir.Assign(total, value))))
        return tuple(out), ir.Ref(total)

    @property
    def point(self) -> tuple[ir.Index, ...]:
        return tuple(ir.Index("global", axis) for axis in self.axes)

    def total(
        self, members: Sequence[tuple[Slice, tuple[Term, ...]]], total: ir.Expr | None, out: list[ir.Stmt]
    ) -> ir.Expr | None:
        for each, combination in members:
            value = self.share(each, combination, out)
            total = value if total is None else collector(out).apply("add", total, value)
        return total

    def share(self, each: Slice, combination: tuple[Term, ...], out: list[ir.Stmt]) -> ir.Expr:
        """The share of a slice at a point, by one combination of terms: 0 for threads that do not exist."""
        b = collector(out)
        place: dict[str, ir.Expr] = {}
        tests: list[ir.Expr] = []
        linear = each.reads_own
        for term, q, n in zip(combination, self.point, self.kind.field_shape, strict=True):
            if not term.axis:
                continue
            at = term.at(b, q)
            if term.axis in place:
                tests.append(b.apply("eq", place[term.axis], at))
                linear = False
                continue
            place[term.axis] = at
            if not term.inside:
                tests += _bounds(b, at, n, each.domain[term.axis])
        wraps = each.periodic and each.site.border == "wrap" and not tests
        border = "wrap" if wraps else "fill" if linear and tests else "clamp"
        value = each.at(out, place, border)
        test = None if border == "fill" else b.all_of(tests)
        return value if test is None else b.apply("choose", test, value, zero(value.type))


def _bounds(b: Builder, at: ir.Expr, n: int, extent: int) -> list[ir.Expr]:
    """The conditions that the coordinate of a thread, at a distance from a point of `n`, lies in a grid."""
    low = isinstance(at, ir.Index) and at.offset >= 0
    high = isinstance(at, ir.Index) and n + at.offset <= extent
    tests = [] if low else [b.apply("ge", at, 0)]
    return tests if high else [*tests, b.apply("lt", at, extent)]
