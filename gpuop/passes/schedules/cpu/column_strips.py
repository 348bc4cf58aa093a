"""The kernel of line buffers: a thread has a block of a strip, walks over rows or layers, and runs all stages in each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from gpuop.base.errors import Loc
from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.analysis.footprints import footprints
from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.extents import extent, shown_extents
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT, Shape, Type
from gpuop.ir.visit import expressions
from gpuop.passes.coarsening_factor import is_own
from gpuop.passes.instantiate import indices_at, of_threads, own_point
from gpuop.passes.loops import counted, counter
from gpuop.passes.schedules.cpu.circular_buffers import (
    AxisPosition,
    Border,
    CircularBuffer,
    CircularBuffers,
    Lead,
    Leads,
)
from gpuop.passes.schedules.cpu.edge_vectors import EdgeLines, EdgeReads, InstanceWithLines

REGISTERS = 32  # vector registers
Rows = tuple[tuple[ir.Expr, ...], ir.Expr | None]  # indices of a row in a buffer, and a test that it is inside


@dataclass(frozen=True)
class Columns:
    """The columns of a vector of a stage.

    Attributes:
        first: its first column, inside of the field.
        lane: the number of a column of the vector.
        wrapped: the distance of its columns in buffers from those in the field, where buffers go beyond the edges.
        lines: the lines of fields at their edges.
    """

    first: ir.Expr
    lane: ir.Expr
    wrapped: ir.Expr | None
    lines: EdgeLines | None


class StageCopy:
    """A stage at one of the rows that it computes together.

    Attributes:
        spots: its position along the axes of buffers other than columns.
        slots: the indices of the new row of each intermediate.
    """

    def __init__(
        self, buffers: CircularBuffers, lead: Lead, row: int, spots: Mapping[str, AxisPosition], head: list[ir.Stmt]
    ) -> None:
        self.buffers, self.lead, self.number, self.spots, self.head = buffers, lead, row, spots, collector(head)
        self.slots = {p: buffers.fresh(self.head, buffers.of[p], spots) for p in lead.kernel.written if p in buffers.of}
        self.rows: dict[tuple[ir.FieldParam, tuple[int, ...], str], Rows] = {}
        at = {axis: partial(self.head.apply, "add", spot.wrapped) for axis, spot in spots.items()}
        self.by_index = indices_at(lead.kernel, at, buffers.source)

    def at(self, columns: Columns, out: list[ir.Stmt]) -> list[ir.Block]:
        """The statements at a column."""
        b, kernel = collector(out), self.lead.kernel
        at = {"column": lambda away: b.apply("add", b.apply("add", columns.first, away), columns.lane)}
        copier = _StageInstance(self, columns, indices_at(kernel, at, self.buffers.source) | self.by_index)
        return [copier.stmt(stmt) for stmt in kernel.body]

    def buffer_row(self, read: ir.Read, point: Mapping[str, ir.Expr], b: Builder) -> Rows:
        """The indices of the row of a read in its buffer, for a coordinate `point` inside of the field."""
        own = own_point(len(self.buffers.source.domain.shape))
        coordinates = dict(zip(self.buffers.source.domain.axes, read.point or own, strict=True))
        offsets = [e.offset for e in (coordinates[axis] for axis in self.spots) if isinstance(e, ir.Index)]
        if len(offsets) < len(self.spots):
            return self._buffer_row(read, coordinates, point, b)
        key = read.field, tuple(offsets), read.border
        if key not in self.rows:
            self.rows[key] = self._buffer_row(read, coordinates, point, self.head)
        return self.rows[key]

    def _buffer_row(
        self, read: ir.Read, coordinates: Mapping[str, ir.Expr], point: Mapping[str, ir.Expr], b: Builder
    ) -> Rows:
        buffers, buffer, index, tests = self.buffers, self.buffers.of[read.field], list[ir.Expr](), list[ir.Expr]()
        for axis in self.spots:
            at, test = self.place(axis, coordinates[axis], point[axis], read.border, b)
            tests += [] if test is None else [test]
            if axis == buffers.walk:
                low = buffers.first - FARTHEST if buffers.wraps else 0
                index.append(buffer.slot(b, at, low))
            else:
                index.append(b.apply("sub", at, ir.Ref(buffer.origin[axis])))
        test = None if not tests else tests[0] if len(tests) == 1 else b.apply("and", *tests)
        return tuple(index), test

    def place(self, axis: str, arg: ir.Expr, point: ir.Expr, border: str, b: Builder) -> tuple[ir.Expr, ir.Expr | None]:
        """A coordinate of a read in a buffer, and a test that it is inside where the border fills.

        Args:
            arg: the coordinate, as the stage has it.
            point: its value inside of the field.
        """
        spot, n = self.spots[axis], self.buffers.source.domain.extent(axis)
        is_index = isinstance(arg, ir.Index)
        away = arg.offset if isinstance(arg, ir.Index) else 0
        if self.buffers.wraps:
            at = b.apply("add", spot.at, away if is_index else b.apply("sub", point, spot.wrapped))
            return at, None
        at = b.apply("add", spot.at, away) if is_index else point
        low, high = (spot.low + away, spot.high + away) if is_index else (None, None)
        where = Coordinate(at, extent(self.buffers.source, axis), n, low, high)
        test = inside(b, where) if border == "fill" else None
        return place(b, where, "clamp" if border == "fill" else border), test


FARTHEST = 1 << 10  # upper limit of the rows before the first one that are read


class _StageInstance(InstanceWithLines):
    def __init__(self, copy: StageCopy, columns: Columns, by_index: dict[ir.Index, ir.Expr]) -> None:
        super().__init__(copy.lead.kernel, by_index, copy.number, columns.lines)
        self.place, self.columns, self.buffers = copy, columns, copy.buffers.of

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Read) and is_own(expr.field) and expr.border == "unchecked":
            expr = replace(expr, border="clamp")  # rows outside are computed too
        return super().expr(expr)

    def loaded(self, read: ir.Read, loc: Loc | None, out: list[ir.Stmt]) -> ir.Expr | None:
        if read.field not in self.buffers:
            return super().loaded(read, loc, out)
        b, buffer, axes = collector(out, loc), self.buffers[read.field], self.place.buffers.source.domain.axes
        point = dict(zip(axes, map(self.expr, read.point or own_point(len(axes))), strict=True))
        rows, inner = self.place.buffer_row(read, point, b)
        at = self.column(point["column"], buffer, b)
        lanes: list[ir.Expr] = [b.bind(ir.Load(array, (*rows, at), array.type)) for array in buffer.arrays]
        if inner is not None and read.fill is not None:
            lanes = [b.apply("choose", inner, lane, read.fill) for lane in lanes]
        return b.pack(lanes)

    def column(self, at: ir.Expr, buffer: CircularBuffer, b: Builder) -> ir.Expr:
        """The index of a column in a buffer."""
        index = b.apply("sub", at, ir.Ref(buffer.origin["column"]))
        return index if self.columns.wrapped is None else b.apply("add", index, self.columns.wrapped)

    def written(self, write: ir.Write) -> ir.Block:
        if write.field not in self.buffers:
            return super().written(write)
        out, buffer = list[ir.Stmt](), self.buffers[write.field]
        b = collector(out, write.loc)
        at = self.column(self.by_index[ir.Index("global", "column")], buffer, b)
        values = b.lanes(self.expr(write.value))
        slots = self.place.slots[write.field]
        stores = (ir.Store(a, (*slots, at), v, write.loc) for a, v in zip(buffer.arrays, values, strict=True))
        return (*out, *stores)


def shares_rows(stage: Kernel) -> bool:
    """Return whether neighbouring rows of a stage read common rows."""
    return any(f is not None and len(f.low) > 1 and f.high[-2] > f.low[-2] for f in footprints(stage).values())


def interleaved(stage: Kernel, copies: list[StageCopy]) -> list[list[StageCopy]]:
    """The groups of rows whose statements are interleaved: all rows, or each by itself where they share no loads and multiply much.

    Compilers compute the products of all interleaved rows before the first sum, and registers would not hold them.
    """
    products = sum(isinstance(e, ir.Apply) and e.op in ("mul", "fma") for e in expressions(stage.body))
    separate = products * len(copies) > REGISTERS and not shares_rows(stage)
    return [[copy] for copy in copies] if separate else [copies]


class ColumnStrips:
    """Builds the kernel.

    Attributes:
        sizes: the extents of a block by axis; columns are whole vectors, unless a strip is a whole row.
        together: the rows that a stage computes at a time, which share loads.
        count: the number of strips of a row.
        corner: the first point of a thread's results.
    """

    def __init__(self, kernel: Kernel, plan: Leads, sizes: Mapping[str, int], together: int) -> None:
        self.source, self.together, self.lanes = kernel, together, plan.lanes
        self.extents = {axis: kernel.domain.extent(axis) for axis in sizes}
        self.columns = self.extents["column"]
        if kernel.named:
            self.width, self.count = sizes["column"], SEVERAL
        else:
            self.width = even_width(self.columns, -(-self.columns // sizes["column"]), self.lanes)
            self.count = -(-self.columns // self.width)
        self.wide: ir.Expr = ir.Ref(ir.Var("width", Type(INT))) if kernel.named else constant(self.width, INT)
        self.sizes = {**sizes, "column": self.width}
        self.buffers = CircularBuffers(kernel, plan, self.sizes, together)
        self.leads = self.buffers.leads
        self.corner = {axis: ir.Var(hint, Type(INT)) for axis, hint in CORNER.items() if axis in sizes}

    @property
    def open(self) -> bool:
        """Return whether extents are arguments of the kernel: strips are then `wide` columns wide, at most `width`."""
        return bool(self.source.named)

    @property
    def domain(self) -> Shape:
        """The number of threads along each axis."""
        counts = {axis: -(-self.extents[axis] // size) for axis, size in self.sizes.items()}
        return Shape(*(counts.get(axis, self.source.domain.extent(axis)) for axis in self.source.domain.axes))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.buffers.arrays)

    @property
    def computed(self) -> float:
        """Computed points for each needed one: neighbouring blocks both compute the halo, and the last two may overlap."""
        return sum(map(self._computed, self.leads)) / len(self.leads)

    def _computed(self, lead: Lead) -> float:
        walked = {self.buffers.walk: lead.ahead - lead.start}
        parts = (
            -(-n // self.sizes[axis]) * (self.sizes[axis] + walked.get(axis, sum(lead.around(axis)))) / n
            for axis, n in self.extents.items()
            if self.sizes[axis] < n
        )
        return math.prod(parts)

    @property
    def fits(self) -> bool:
        """Return whether strips have vectors, and the halos of all but the first and the last strip are inside of the field."""
        halos = [lead.around("column") for lead in self.leads]
        left, right = (max(halo[end] for halo in halos) for end in (0, 1))
        if self.buffers.wraps:
            left, right = self.buffers.vectors(left), self.buffers.vectors(right)
        last = self.columns - self.width
        starts = [min(k * self.width, last) for k in range(self.count)]
        apart = all(s == 0 or s >= left for s in starts) and all(s == last or s <= last - right for s in starts)
        closed = [axis for axis in self.sizes if axis != "column" or not self.open]
        inside = all(0 < self.sizes[axis] <= self.extents[axis] for axis in closed)
        if self.open:  # of an unknown number of strips, each may reach beyond the edges
            return inside and not self.buffers.wraps and self.columns >= self.lanes and 2 * (left + right) <= self.width
        return inside and apart and self.width >= self.lanes

    # --- the kernel ---------------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        source, domain, buffers = self.source, self.source.domain, self.buffers
        sizes = " and ".join(f"{self.sizes[axis]} {axis}s" for axis in reversed(domain.axes) if axis in self.sizes)
        title = f"strips of {'up to ' * self.open}{sizes} of {'x'.join(shown_extents(source))}"
        head: list[ir.Stmt] = [ir.Comment(title)]
        b = collector(head)
        self.measure(head)
        for axis, var in self.corner.items():
            size = self.wide if axis == "column" else constant(self.sizes[axis], INT)
            last = b.apply("sub", b.bind(extent(source, axis)), size)
            first = ir.Apply("min", (b.apply("mul", ir.Index("global", axis), size), last), Type(INT))
            if self.open:
                first = ir.Apply("max", (b.bind(first), constant(0, INT)), Type(INT))
            head.append(ir.Let(var, first))
        for lead in self.leads:
            for axis, var in buffers.origin(lead).items():
                before = buffers.padding(lead, axis)[0]
                head.append(ir.Let(var, b.apply("sub", ir.Ref(self.corner[axis]), before)))
        head += (ir.Declare(array) for array in buffers.arrays)
        if buffers.walk:
            turn, out = counter("turn"), list[ir.Stmt]()
            b = collector(out)
            steps = b.apply("add", b.apply("mul", ir.Ref(turn), buffers.step), buffers.first)
            out.append(ir.Let(buffers.at, b.bind(b.apply("add", ir.Ref(self.corner[buffers.walk]), steps))))
            for lead in self.leads:
                self.in_iteration(lead, ir.Ref(turn), out)
            head.append(counted(turn, 0, (self.sizes[buffers.walk] - buffers.first) // buffers.step, out))
        else:
            for lead in self.leads:
                head += self.stage(lead)
        per_thread = Shape(*(self.sizes.get(axis, 1) for axis in domain.axes))
        return of_threads(source, self.domain, tuple(head), intermediates=(), per_thread=per_thread, group=(1, 1, 1))

    def measure(self, head: list[ir.Stmt]) -> None:
        """Compute the width of strips where extents are arguments: equal widths of whole vectors, or one whole row."""
        if not isinstance(self.wide, ir.Ref):
            return
        b = collector(head)
        columns, strips = b.bind(extent(self.source, "column")), ir.Index("global_size", "column")
        vectors = b.apply("div", b.apply("sub", columns, 1), b.apply("mul", strips, self.lanes))
        even = b.apply("mul", b.apply("add", vectors, 1), self.lanes)
        head.append(ir.Let(self.wide.var, ir.Apply("min", (even, columns), Type(INT))))

    def in_iteration(self, lead: Lead, turn: ir.Expr, out: list[ir.Stmt]) -> None:
        """A stage at some rows or layers, under a condition where the first iterations need none of them."""
        step, block = self.buffers.step, self.stage(lead)
        early = -(-(lead.start - lead.ahead - step + 1 - self.buffers.first) // step)
        if early > 0:
            test = collector(out).apply("ge", turn, early)
            out.append(ir.If(test, block))
        else:
            out += block

    # --- rows ---------------------------------------------------------------------------------------------------

    def stage(self, lead: Lead) -> ir.Block:
        """A stage in one step of the walk: in the rows of a layer, or in one row."""
        out: list[ir.Stmt] = []
        b, walk = collector(out), self.buffers.walk
        if walk != "layer":
            rows = [{walk: self.walked(lead, row, out)} if walk else {} for row in range(self.together)]
            return (*out, *self.rows(lead, rows))
        layer = {walk: self.walked(lead, 0, out)}
        n, size, (before, behind) = self.extents["row"], self.sizes["row"], lead.around("row")
        end = b.bind(extent(self.source, "row", self.together))
        top, count = ir.Ref(self.corner["row"]), size + before + behind
        first, last = b.apply("sub", top, before), b.apply("add", top, size + behind - self.together)
        if not self.buffers.wraps:
            first, last = b.apply("max", first, 0), b.apply("min", last, end)
            count = min(count, n)
        turn, inner = counter("k"), list[ir.Stmt]()
        c = collector(inner)
        row = c.apply("min", c.apply("add", c.apply("mul", ir.Ref(turn), self.together), first), last)
        least_row, greatest = (-before, n - 1 + behind) if self.buffers.wraps else (0, n - 1)
        rows = [
            {**layer, "row": self.buffers.spot(c, "row", c.apply("add", row, k), least_row, greatest)}
            for k in range(self.together)
        ]
        inner += self.rows(lead, rows)
        return (*out, counted(turn, 0, -(-count // self.together), inner))

    def walked(self, lead: Lead, row: int, out: list[ir.Stmt]) -> AxisPosition:
        buffers, b = self.buffers, collector(out)
        ahead = lead.ahead + row
        low, high = buffers.first + ahead, self.extents[buffers.walk] - buffers.step + ahead
        return buffers.spot(b, buffers.walk, b.apply("add", ir.Ref(buffers.at), ahead), low, high)

    def rows(self, lead: Lead, spots: list[dict[str, AxisPosition]]) -> ir.Block:
        """A stage at the rows of one iteration."""
        out: list[ir.Stmt] = []
        copies = [StageCopy(self.buffers, lead, row, each, out) for row, each in enumerate(spots)]
        loops = [stmt for several in interleaved(lead.kernel, copies) for stmt in self.vectors(lead, several)]
        return (*out, *loops, *self.beyond(lead, copies))  # building the loops appends to `out`

    # --- columns ------------------------------------------------------------------------------------------------

    def vectors(self, lead: Lead, copies: list[StageCopy]) -> ir.Block:
        """The vectors of a strip and of its halo; all of them have the alignment of the strip."""
        before, behind = map(self.buffers.vectors, lead.around("column") if self.count > 1 else (0, 0))
        step, out = counter("k"), list[ir.Stmt]()
        b = collector(out)
        n, end = (b.bind(extent(self.source, "column", less)) for less in (0, self.lanes))
        left = ir.Ref(self.corner["column"])
        at = b.apply("add", b.apply("mul", ir.Ref(step), self.lanes), b.apply("sub", left, before))
        wrapped: ir.Expr | None = None
        first = at
        if self.buffers.wraps and self.count > 1:
            low = b.apply("choose", b.apply("lt", at, 0), b.apply("add", at, n), at)
            first = b.apply("choose", b.apply("ge", at, n), b.apply("sub", at, n), low)
            first = b.apply("max", b.apply("min", first, end), 0)
            wrapped = b.apply("sub", at, first)
        else:
            first = b.apply("min", b.apply("max", at, 0) if before else at, end)
            first = b.apply("max", first, 0) if self.open else first  # a constant `end` is known not to be negative
        column = counter("column")
        out.append(ir.Let(column, b.bind(first)))

        def at_columns(
            first: ir.Expr, lane: ir.Expr, lines: EdgeLines | None, out: list[ir.Stmt]
        ) -> list[list[ir.Block]]:
            return [copy.at(Columns(first, lane, wrapped, lines), out) for copy in copies]

        apart = self.source.intermediates
        places = EdgeReads(lead.kernel, self.together, apart, not self.buffers.wraps, self.source)
        out += places.vector(ir.Ref(column), self.lanes, at_columns)
        loop = counted(step, 0, -(-(before + self.width + behind) // self.lanes), out)
        if not self.open:
            return (loop,)
        head = list[ir.Stmt]()
        b = collector(head)
        stop = b.apply("div", b.apply("add", self.wide, before + behind + self.lanes - 1), self.lanes)
        return (*head, replace(loop, stop=stop))

    def beyond(self, lead: Lead, copies: list[StageCopy]) -> list[ir.Stmt]:
        """Fill in the columns outside of the field through the border; strips that wrap around compute them instead."""
        if self.buffers.wraps and self.count > 1:
            return []
        buffers = [(param, self.buffers.of[param]) for param in lead.kernel.written if param in self.buffers.of]
        alike: dict[tuple[Border, int], list[tuple[ir.FieldParam, CircularBuffer]]] = {}
        for param, buffer in buffers:
            if buffer.reach:
                alike.setdefault((buffer.border, buffer.reach), []).append((param, buffer))
        fills = [self.filled(lead, *like, params, copies) for like, params in alike.items()]
        return self.at_edges([ir.Comment("columns beyond the edges"), *fills]) if fills else []

    def at_edges(self, stmts: list[ir.Stmt]) -> list[ir.Stmt]:
        if self.count == 1:
            return stmts
        b, left = collector(out := list[ir.Stmt]()), ir.Ref(self.corner["column"])
        if self.open:
            before, behind = (max(lead.around("column")[end] for lead in self.leads) for end in (0, 1))
            last = b.apply("sub", b.bind(extent(self.source, "column", behind)), self.wide)
            low, high = b.apply("lt", left, max(before, 1)), b.apply("ge", left, last)
        else:
            low, high = b.apply("eq", left, 0), b.apply("eq", left, self.columns - self.width)
        out.append(ir.If(b.apply("or", low, high), tuple(stmts)))
        return out

    def filled(
        self,
        lead: Lead,
        like: Border,
        reach: int,
        buffers: list[tuple[ir.FieldParam, CircularBuffer]],
        copies: list[StageCopy],
    ) -> ir.For:
        turn, out, n = counter("k"), list[ir.Stmt](), self.columns
        b, (border, fill) = collector(out), like
        columns = b.bind(extent(self.source, "column"))
        before = b.apply("sub", ir.Ref(turn), reach)
        column = b.apply("choose", b.apply("lt", ir.Ref(turn), reach), before, b.apply("add", before, columns))
        inner, origin = list[ir.Stmt](), ir.Ref(self.buffers.origin(lead)["column"])
        c = collector(inner)
        there = place(c, Coordinate(column, columns, n, -reach, n + reach - 1), border)
        to, source = (c.apply("sub", at, origin) for at in (column, there))
        for slot, array in ((copy.slots[p], a) for copy in copies for p, buffer in buffers for a in buffer.arrays):
            value = fill if fill is not None else c.bind(ir.Load(array, (*slot, source), array.type))
            inner.append(ir.Store(array, (*slot, to), value))
        left, (halo, beside) = ir.Ref(self.corner["column"]), lead.around("column")
        low = b.apply("ge", column, b.apply("sub", left, halo))
        high = b.apply("lt", column, b.apply("add", left, b.apply("add", self.wide, beside)))
        out.append(ir.If(b.apply("and", low, high), tuple(inner)))
        return counted(turn, 0, 2 * reach, out)


def even_width(columns: int, count: int, lanes: int) -> int:
    """The width of each of so many equal strips, in whole vectors."""
    return -(-columns // (count * lanes)) * lanes if count > 1 else columns


SEVERAL = 2  # stands for an unknown number of strips
CORNER = {"column": "left", "row": "top", "layer": "front"}
