"""The kernel of line buffers: a thread has a block of a strip, walks over rows or layers, and runs all stages in each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.borders import Coordinate, place
from gpuop.ir.build import collector, constant
from gpuop.ir.extents import extent, shown_extents
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT, Shape, Type
from gpuop.passes.instantiate import of_threads
from gpuop.passes.schedules.cpu.circular_buffers import AxisPosition, CircularBuffer, CircularBuffers
from gpuop.passes.schedules.cpu.edge_vectors import EdgeLines, EdgeReads, counted
from gpuop.passes.schedules.cpu.stage_leads import Border, Lead, Leads
from gpuop.passes.schedules.cpu.stage_row import Columns, StageCopy, interleaved


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
        """Whether extents are arguments of the kernel: strips are then `wide` columns wide, at most `width`."""
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
        """Whether strips have vectors, and the halos of all but the first and the last strip are inside of the field."""
        halos = [lead.around("column") for lead in self.leads]
        left, right = (max(halo[end] for halo in halos) for end in (0, 1))
        if self.buffers.wraps:
            left, right = self.buffers.vectors(left), self.buffers.vectors(right)
        last = self.columns - self.width
        starts = [min(k * self.width, last) for k in range(self.count)]
        apart = all(s == 0 or s >= left for s in starts) and all(s == last or s <= last - right for s in starts)
        inside = all(
            0 < self.sizes[axis] <= self.extents[axis] for axis in self.sizes if axis != "column" or not self.open
        )
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
            head.append(
                ir.Let(var, ir.Apply("max", (b.bind(first), constant(0, INT)), Type(INT)) if self.open else first)
            )
        for lead in self.leads:
            for axis, var in buffers.origin(lead).items():
                before = buffers.padding(lead, axis)[0]
                head.append(ir.Let(var, b.apply("sub", ir.Ref(self.corner[axis]), before)))
        head += (ir.Declare(array) for array in buffers.arrays)
        if buffers.walk:
            turn, out = ir.Var("turn", Type(INT)), list[ir.Stmt]()
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
        turn, inner = ir.Var("k", Type(INT)), list[ir.Stmt]()
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
        step, out = ir.Var("k", Type(INT)), list[ir.Stmt]()
        b = collector(out)
        n, end = (b.bind(extent(self.source, "column", less)) for less in (0, self.lanes))
        at = b.apply(
            "add", b.apply("mul", ir.Ref(step), self.lanes), b.apply("sub", ir.Ref(self.corner["column"]), before)
        )
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
        column = ir.Var("column", Type(INT))
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
        turn, out, n = ir.Var("k", Type(INT)), list[ir.Stmt](), self.columns
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
