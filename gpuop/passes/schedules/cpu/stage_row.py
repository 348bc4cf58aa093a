"""The statements of a stage for one row, in which rows that are kept take the place of intermediates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpuop.ir.analysis.footprints import footprints
from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder, collector
from gpuop.ir.extents import extent
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Assign, Block, Expr, FieldParam, Index, Let, Load, Read, Ref, Stmt, Store, Write
from gpuop.ir.visit import expressions
from gpuop.passes.coarsening_factor import is_own
from gpuop.passes.schedules.common.instantiate import Placed, own_point, positions, without_tables
from gpuop.passes.schedules.cpu.circular_buffers import AxisPlace, Ring, Rings
from gpuop.passes.schedules.cpu.edge_vectors import EdgeLines
from gpuop.passes.schedules.cpu.stage_leads import Lead

REGISTERS = 32  # of vectors
Rows = tuple[tuple[Expr, ...], Expr | None]  # indices into a ring but for the column, and a test that they lie inside


@dataclass(frozen=True)
class Columns:
    """Where a vector of a stage is.

    Attributes:
        first: its first column, inside the field.
        lane: which of its columns is meant.
        turned: how much further on its columns are in rings, where these go beyond the edges.
        lines: what it reads of fields, at their edges.
    """

    first: Expr
    lane: Expr
    turned: Expr | None
    lines: EdgeLines | None


class StageCopy:
    """A stage at one of the rows that it computes together.

    Attributes:
        spots: where it is along the axes of rings but columns.
        slots: where the row of each intermediate is put.
    """

    def __init__(self, rings: Rings, lead: Lead, row: int, spots: Mapping[str, AxisPlace], head: list[Stmt]) -> None:
        self.rings, self.lead, self.number, self.spots, self.head = rings, lead, row, spots, collector(head)
        self.slots = {p: rings.fresh(self.head, rings.of[p], spots) for p in lead.kernel.written if p in rings.of}
        self.rows: dict[tuple[FieldParam, tuple[int, ...], str], Rows] = {}
        self.found: dict[Index, Expr] = {}
        self.indices = positions(lead.kernel, rings.source.domain)
        for index in self.indices:
            if index.kind == "global_size":
                self.found[index] = extent(rings.source, index.axis)
            elif index.axis in spots:
                self.found[index] = self.head.apply("add", spots[index.axis].wrapped, index.offset)

    def at(self, columns: Columns, out: list[Stmt]) -> list[Block]:
        """The statements at a column."""
        b, found = collector(out), dict(self.found)
        for index in self.indices:
            if index.kind == "global" and index.axis == "column":
                found[index] = b.apply("add", b.apply("add", columns.first, index.offset), columns.lane)
        copier = _AtPlace(self, columns, found)
        return [copier.stmt(stmt) for stmt in without_tables(self.lead.kernel)]

    def kept(self, read: Read, point: Mapping[str, Expr], b: Builder) -> Rows:
        """Where the row of a read is kept, if the row is at `point` now."""
        own = own_point(len(self.rings.source.domain.shape))
        given = dict(zip(self.rings.source.domain.axes, read.point or own, strict=True))
        offsets = [e.offset for e in (given[axis] for axis in self.spots) if isinstance(e, Index)]
        if len(offsets) < len(self.spots):
            return self._kept(read, given, point, b)
        key = read.field, tuple(offsets), read.border
        if key not in self.rows:
            self.rows[key] = self._kept(read, given, point, self.head)
        return self.rows[key]

    def _kept(self, read: Read, given: Mapping[str, Expr], point: Mapping[str, Expr], b: Builder) -> Rows:
        rings, ring, index, tests = self.rings, self.rings.of[read.field], list[Expr](), list[Expr]()
        for axis in self.spots:
            at, test = self.place(axis, given[axis], point[axis], read.border, b)
            tests += [] if test is None else [test]
            if axis == rings.walk:
                low = rings.first - FARTHEST if rings.wraps else 0
                index.append(ring.slot(b, at, low))
            else:
                index.append(b.apply("sub", at, Ref(ring.origin[axis])))
        test = None if not tests else tests[0] if len(tests) == 1 else b.apply("and", *tests)
        return tuple(index), test

    def place(self, axis: str, given: Expr, point: Expr, border: str, b: Builder) -> tuple[Expr, Expr | None]:
        """Where a coordinate is, which is `point` within the field: beyond an edge that wraps, or where the border says."""
        spot, n = self.spots[axis], self.rings.source.domain.extent(axis)
        known = isinstance(given, Index)
        away = given.offset if isinstance(given, Index) else 0
        if self.rings.wraps:
            at = b.apply("add", spot.at, away if known else b.apply("sub", point, spot.wrapped))
            return at, None
        at = b.apply("add", spot.at, away) if known else point
        low, high = (spot.low + away, spot.high + away) if known else (None, None)
        where = Coordinate(at, extent(self.rings.source, axis), n, low, high)
        test = inside(b, where) if border == "fill" else None
        return place(b, where, "clamp" if border == "fill" else border), test


FARTHEST = 1 << 10  # no row that is read is farther before the first one


class _AtPlace(Placed):
    def __init__(self, copy: StageCopy, columns: Columns, found: dict[Index, Expr]) -> None:
        super().__init__(copy.lead.kernel, found)
        self.place, self.columns, self.rings = copy, columns, copy.rings.of

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Read) and is_own(expr.field) and expr.border == "unchecked":
            expr = replace(expr, border="clamp")  # rows that there are not are computed too
        return super().expr(expr)

    def stmt(self, stmt: Stmt) -> Block:
        lines, row = self.columns.lines, self.place.number
        match stmt:
            case Let(value=Read() as read) | Assign(value=Read() as read) if read.field in self.rings:
                out: list[Stmt] = []
                value = self.loaded(read, collector(out, stmt.loc))
                return (*out, self.renamed(replace(stmt, value=value)))
            case Let(value=Read() as read) | Assign(value=Read() as read) if lines and lines.takes(read, row):
                out = []
                value = lines.load(read, self.expr, row, out)
                return (*out, self.renamed(replace(stmt, value=value)))
            case Write(field=field) if field in self.rings:
                return self.kept(stmt, self.rings[field])
        return super().stmt(stmt)

    def loaded(self, read: Read, b: Builder) -> Expr:
        ring, axes = self.rings[read.field], self.place.rings.source.domain.axes
        point = dict(zip(axes, map(self.expr, read.point or own_point(len(axes))), strict=True))
        rows, inner = self.place.kept(read, point, b)
        at = self.column(point["column"], ring, b)
        lanes: list[Expr] = [b.bind(Load(array, (*rows, at), array.type)) for array in ring.arrays]
        if inner is not None and read.fill is not None:
            lanes = [b.apply("choose", inner, lane, read.fill) for lane in lanes]
        return b.pack(lanes)

    def column(self, at: Expr, ring: Ring, b: Builder) -> Expr:
        """Where a column is in a ring."""
        found = b.apply("sub", at, Ref(ring.origin["column"]))
        return found if self.columns.turned is None else b.apply("add", found, self.columns.turned)

    def kept(self, write: Write, ring: Ring) -> Block:
        out: list[Stmt] = []
        b = collector(out, write.loc)
        at = self.column(self.found[Index("global", "column")], ring, b)
        values = b.lanes(self.expr(write.value))
        slots = self.place.slots[write.field]
        stores = (Store(a, (*slots, at), v, write.loc) for a, v in zip(ring.arrays, values, strict=True))
        return (*out, *stores)


def shares_rows(stage: Kernel) -> bool:
    """Whether rows of a stage read the same rows."""
    return any(f is not None and len(f.low) > 1 and f.high[-2] > f.low[-2] for f in footprints(stage).values())


def in_turns(stage: Kernel, copies: list[StageCopy]) -> list[list[StageCopy]]:
    """The rows that are computed together: all, or each by itself where they load nothing in common and multiply much. Of several
    sums compilers compute one by one, and before that the products of all, which no registers hold."""
    products = sum(isinstance(e, Apply) and e.op in ("mul", "fma") for e in expressions(stage.body))
    apart = products * len(copies) > REGISTERS and not shares_rows(stage)
    return [[copy] for copy in copies] if apart else [copies]
