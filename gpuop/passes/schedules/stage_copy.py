"""The statements of a stage for one row, in which rows that are kept take the place of intermediates."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.borders import Coordinate, inside
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.nodes import (
    GRID_AXES,
    Assign,
    Block,
    Expr,
    FieldParam,
    Index,
    Let,
    Load,
    Read,
    Ref,
    Stmt,
    Store,
    Write,
)
from gpuop.ir.types import INT
from gpuop.ir.visit import Copier, expressions
from gpuop.passes.points_per_thread import is_own
from gpuop.passes.schedules.leads import Lead
from gpuop.passes.schedules.rings import Ring, Rings
from gpuop.passes.schedules.vector_rows import own_point, without_tables


class StageCopy:
    """A stage at one of the rows that it computes together.

    Attributes:
        slots: where the row of each intermediate is put.
    """

    def __init__(self, rings: Rings, lead: Lead, row: int, head: list[Stmt]) -> None:
        self.rings, self.lead, self.head = rings, lead, collector(head)
        self.ahead = lead.ahead + row
        self.slots: dict[FieldParam, Expr] = {}
        own = rings.line(self.row(0), self.ahead)
        for param in lead.kernel.written:
            if param in rings.of:
                self.slots[param] = rings.of[param].fresh(self.head, own)
        self.lines: dict[tuple[FieldParam, int, str], tuple[Expr, Expr | None]] = {}
        self.found: dict[Index, Expr] = {}
        for index in self.indices():
            if index.kind == "global_size":
                self.found[index] = constant(rings.source.domain.extent(index.axis), INT)
            elif index.axis == "row":
                self.found[index] = self.row(index.offset)

    def row(self, offset: int) -> Expr:
        return self.head.apply("add", Ref(self.rings.row), self.ahead + offset)

    def indices(self) -> list[Index]:
        used = [e for e in expressions(self.lead.kernel.body) if isinstance(e, Index) and e.axis in GRID_AXES]
        return list(dict.fromkeys([*used, *(Index("global", axis) for axis in self.rings.source.domain.axes)]))

    def at(self, column: Expr, lane: Expr | None, out: list[Stmt]) -> list[Block]:
        """The statements at a column, or at that of a lane behind it."""
        b, found = collector(out), dict(self.found)
        for index in self.indices():
            if index.kind == "global" and index.axis == "column":
                place = b.apply("add", column, index.offset)
                found[index] = place if lane is None else b.apply("add", place, lane)
        copier = _AtPlace(self, found)
        return [copier.stmt(stmt) for stmt in without_tables(self.lead.kernel)]

    def kept(self, read: Read, row: Expr, b: Builder) -> tuple[Expr, Expr | None]:
        """Where the row of a read is kept, and a test that it lies inside, if another value is read outside."""
        ring, original = self.rings.of[read.field], None if read.point is None else read.point[-2]
        if original is not None and not isinstance(original, Index):
            n = self.rings.rows
            return self._kept(ring, read.border, Coordinate(row, constant(n, INT), n, None, None), b)
        offset = 0 if original is None else original.offset
        key = read.field, offset, read.border
        if key not in self.lines:
            self.lines[key] = self._kept(ring, read.border, self.rings.line(row, self.ahead + offset), self.head)
        return self.lines[key]

    def _kept(self, ring: Ring, border: str, row: Coordinate, b: Builder) -> tuple[Expr, Expr | None]:
        return ring.slot(b, row, border), inside(b, row) if border == "fill" else None


class _AtPlace(Copier):
    """The statements at a given position."""

    def __init__(self, copy: StageCopy, found: dict[Index, Expr]) -> None:
        super().__init__(copy.lead.kernel.body)
        self.place, self.found, self.rings = copy, found, copy.rings.of
        for stmt in copy.lead.kernel.shared("constant"):
            del self.arrays[stmt.array]

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Index):
            return self.found.get(expr, expr)
        if isinstance(expr, Read) and is_own(expr.field):
            point = own_point(len(expr.field.type.field_shape)) if expr.point is None else expr.point
            # rows that there are not are computed too
            expr = replace(expr, point=point, border="clamp" if expr.border == "unchecked" else expr.border)
        return super().expr(expr)

    def stmt(self, stmt: Stmt) -> Block:
        match stmt:
            case Let(value=Read() as read) | Assign(value=Read() as read) if read.field in self.rings:
                out: list[Stmt] = []
                value = self.loaded(read, collector(out, stmt.loc))
                return (*out, self.renamed(replace(stmt, value=value)))
            case Write(field=field) if field in self.rings:
                return self.kept(stmt, self.rings[field])
            case Write(point=None):
                stmt = replace(stmt, point=own_point(len(stmt.field.type.field_shape)))
        return super().stmt(stmt)

    def loaded(self, read: Read, b: Builder) -> Expr:
        ring, point = self.rings[read.field], own_point(2) if read.point is None else read.point[-2:]
        row, column = map(self.expr, point)
        slot, inner = self.place.kept(replace(read, point=None if read.point is None else point), row, b)
        at = b.apply("sub", column, Ref(ring.origin))
        lanes: list[Expr] = [b.bind(Load(array, (slot, at), array.type)) for array in ring.arrays]
        if inner is not None and read.fill is not None:
            lanes = [b.apply("choose", inner, lane, read.fill) for lane in lanes]
        return b.pack(lanes)

    def kept(self, write: Write, ring: Ring) -> Block:
        out: list[Stmt] = []
        b = collector(out, write.loc)
        at = b.apply("sub", self.found[Index("global", "column")], Ref(ring.origin))
        values = b.lanes(self.expr(write.value))
        slot = self.place.slots[write.field]
        stores = (Store(a, (slot, at), v, write.loc) for a, v in zip(ring.arrays, values, strict=True))
        return (*out, *stores)
