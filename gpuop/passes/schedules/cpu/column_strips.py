"""Blocks of strips, whose threads go from row to row, or from layer to layer, and run all stages in each of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.borders import Coordinate, place
from gpuop.ir.build import collector, constant
from gpuop.ir.extents import extent, shown_extents
from gpuop.ir.kernel import Kernel
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, Shape, Type
from gpuop.passes.schedules.cpu.circular_buffers import AxisPlace, Ring, Rings
from gpuop.passes.schedules.cpu.edge_vectors import EdgeLines, LinePlaces, counted
from gpuop.passes.schedules.cpu.stage_leads import Border, Lead, Leads
from gpuop.passes.schedules.cpu.stage_row import Columns, StageCopy, in_turns


class ColumnStrips:
    """A kernel with intermediates as threads run it that have blocks of so many points along each axis.

    Attributes:
        sizes: these points; of columns as many as whole vectors have, unless a strip is a whole row.
        together: how many rows a stage computes at a time, which share what they load.
        count: how many strips a row has.
        corner: the first point of a thread's results.
    """

    def __init__(self, kernel: Kernel, found: Leads, sizes: Mapping[str, int], together: int) -> None:
        self.source, self.together, self.lanes = kernel, together, found.lanes
        self.extents = {axis: kernel.domain.extent(axis) for axis in sizes}
        self.columns = self.extents["column"]
        if kernel.named:
            self.width, self.count = sizes["column"], SEVERAL
        else:
            self.width = even_width(self.columns, -(-self.columns // sizes["column"]), self.lanes)
            self.count = -(-self.columns // self.width)
        self.wide: ir.Expr = ir.Ref(ir.Var("width", Type(INT))) if kernel.named else constant(self.width, INT)
        self.sizes = {**sizes, "column": self.width}
        self.rings = Rings(kernel, found, self.sizes, together)
        self.leads = self.rings.leads
        self.corner = {axis: ir.Var(hint, Type(INT)) for axis, hint in CORNER.items() if axis in sizes}

    @property
    def open(self) -> bool:
        """Whether extents are arguments: strips are up to `width` wide then, `wide` in truth."""
        return bool(self.source.named)

    @property
    def domain(self) -> Shape:
        """Threads along each axis."""
        counts = {axis: -(-self.extents[axis] // size) for axis, size in self.sizes.items()}
        return Shape(*(counts.get(axis, self.source.domain.extent(axis)) for axis in self.source.domain.axes))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.rings.arrays)

    @property
    def computed(self) -> float:
        """Points that stages compute, for each that is needed: blocks beside one another compute some of both, and so do the last
        two where blocks are no whole part of the grid."""
        return sum(map(self._computed, self.leads)) / len(self.leads)

    def _computed(self, lead: Lead) -> float:
        walked = {self.rings.walk: lead.ahead - lead.start}
        parts = (
            -(-n // self.sizes[axis]) * (self.sizes[axis] + walked.get(axis, sum(lead.around(axis)))) / n
            for axis, n in self.extents.items()
            if self.sizes[axis] < n
        )
        return math.prod(parts)

    @property
    def fits(self) -> bool:
        """Whether strips have vectors, and each but the first and the last is away from the edges, for all stages."""
        halos = [lead.around("column") for lead in self.leads]
        left, right = (max(halo[end] for halo in halos) for end in (0, 1))
        if self.rings.wraps:
            left, right = self.rings.vectors(left), self.rings.vectors(right)
        last = self.columns - self.width
        starts = [min(k * self.width, last) for k in range(self.count)]
        apart = all(s == 0 or s >= left for s in starts) and all(s == last or s <= last - right for s in starts)
        inside = all(
            0 < self.sizes[axis] <= self.extents[axis] for axis in self.sizes if axis != "column" or not self.open
        )
        if self.open:  # strips of which nobody knows how many there are may all look beyond the edges
            return inside and not self.rings.wraps and self.columns >= self.lanes and 2 * (left + right) <= self.width
        return inside and apart and self.width >= self.lanes

    # --- the kernel ---------------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        source, domain, rings = self.source, self.source.domain, self.rings
        head: list[ir.Stmt] = [*source.shared("constant")]
        sizes = " and ".join(f"{self.sizes[axis]} {axis}s" for axis in reversed(domain.axes) if axis in self.sizes)
        head.append(ir.Comment(f"strips of {'up to ' * self.open}{sizes} of {'x'.join(shown_extents(source))}"))
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
            for axis, var in rings.origin(lead).items():
                before = rings.padding(lead, axis)[0]
                head.append(ir.Let(var, b.apply("sub", ir.Ref(self.corner[axis]), before)))
        head += (ir.Declare(array) for array in rings.arrays)
        if rings.walk:
            turn, out = ir.Var("turn", Type(INT)), list[ir.Stmt]()
            b = collector(out)
            steps = b.apply("add", b.apply("mul", ir.Ref(turn), rings.step), rings.first)
            out.append(ir.Let(rings.at, b.bind(b.apply("add", ir.Ref(self.corner[rings.walk]), steps))))
            for lead in self.leads:
                self.in_turn(lead, ir.Ref(turn), out)
            head.append(counted(turn, 0, (self.sizes[rings.walk] - rings.first) // rings.step, out))
        else:
            for lead in self.leads:
                head += self.stage(lead)
        return replace(
            source,
            domain=Domain(self.domain, domain.elements),
            body=tuple(head),
            intermediates=(),
            points=domain.shape,
            per_thread=Shape(*(self.sizes.get(axis, 1) for axis in domain.axes)),
            group=(1, 1, 1),
        )

    def measure(self, head: list[ir.Stmt]) -> None:
        """How wide strips are where that is not known before: as wide as one another, of whole vectors but for the only one."""
        if not isinstance(self.wide, ir.Ref):
            return
        b = collector(head)
        columns, strips = b.bind(extent(self.source, "column")), ir.Index("global_size", "column")
        vectors = b.apply("div", b.apply("sub", columns, 1), b.apply("mul", strips, self.lanes))
        even = b.apply("mul", b.apply("add", vectors, 1), self.lanes)
        head.append(ir.Let(self.wide.var, ir.Apply("min", (even, columns), Type(INT))))

    def in_turn(self, lead: Lead, turn: ir.Expr, out: list[ir.Stmt]) -> None:
        """A stage at some rows or layers, unless these are above all that are needed."""
        step, done = self.rings.step, self.stage(lead)
        early = -(-(lead.start - lead.ahead - step + 1 - self.rings.first) // step)
        if early > 0:
            test = collector(out).apply("ge", turn, early)
            out.append(ir.If(test, done))
        else:
            out += done

    # --- rows ---------------------------------------------------------------------------------------------------

    def stage(self, lead: Lead) -> ir.Block:
        """A stage in all of a block that is not walked: in the rows of a layer, or in one row."""
        out: list[ir.Stmt] = []
        b, walk = collector(out), self.rings.walk
        if walk != "layer":
            rows = [{walk: self.walked(lead, row, out)} if walk else {} for row in range(self.together)]
            return (*out, *self.rows(lead, rows))
        layer = {walk: self.walked(lead, 0, out)}
        n, size, (before, behind) = self.extents["row"], self.sizes["row"], lead.around("row")
        end = b.bind(extent(self.source, "row", self.together))
        top, count = ir.Ref(self.corner["row"]), size + before + behind
        first, last = b.apply("sub", top, before), b.apply("add", top, size + behind - self.together)
        if not self.rings.wraps:
            first, last = b.apply("max", first, 0), b.apply("min", last, end)
            count = min(count, n)
        turn, inner = ir.Var("k", Type(INT)), list[ir.Stmt]()
        c = collector(inner)
        row = c.apply("min", c.apply("add", c.apply("mul", ir.Ref(turn), self.together), first), last)
        least_row, greatest = (-before, n - 1 + behind) if self.rings.wraps else (0, n - 1)
        rows = [
            {**layer, "row": self.rings.spot(c, "row", c.apply("add", row, k), least_row, greatest)}
            for k in range(self.together)
        ]
        inner += self.rows(lead, rows)
        return (*out, counted(turn, 0, -(-count // self.together), inner))

    def walked(self, lead: Lead, row: int, out: list[ir.Stmt]) -> AxisPlace:
        rings, b = self.rings, collector(out)
        ahead = lead.ahead + row
        low, high = rings.first + ahead, self.extents[rings.walk] - rings.step + ahead
        return rings.spot(b, rings.walk, b.apply("add", ir.Ref(rings.at), ahead), low, high)

    def rows(self, lead: Lead, spots: list[dict[str, AxisPlace]]) -> ir.Block:
        """A stage at rows that are computed in one turn."""
        out: list[ir.Stmt] = []
        copies = [StageCopy(self.rings, lead, row, each, out) for row, each in enumerate(spots)]
        loops = [stmt for several in in_turns(lead.kernel, copies) for stmt in self.vectors(lead, several)]
        return (*out, *loops, *self.beyond(lead, copies))  # which add to what goes before

    # --- columns ------------------------------------------------------------------------------------------------

    def vectors(self, lead: Lead, copies: list[StageCopy]) -> ir.Block:
        """A strip, and vectors of what readers need beside it; all of them lie as the strip's do."""
        before, behind = map(self.rings.vectors, lead.around("column") if self.count > 1 else (0, 0))
        step, out = ir.Var("k", Type(INT)), list[ir.Stmt]()
        b = collector(out)
        n, end = (b.bind(extent(self.source, "column", less)) for less in (0, self.lanes))
        at = b.apply(
            "add", b.apply("mul", ir.Ref(step), self.lanes), b.apply("sub", ir.Ref(self.corner["column"]), before)
        )
        turned: ir.Expr | None = None
        first = at
        if self.rings.wraps and self.count > 1:
            low = b.apply("choose", b.apply("lt", at, 0), b.apply("add", at, n), at)
            first = b.apply("choose", b.apply("ge", at, n), b.apply("sub", at, n), low)
            first = b.apply("max", b.apply("min", first, end), 0)
            turned = b.apply("sub", at, first)
        else:
            first = b.apply("min", b.apply("max", at, 0) if before else at, end)
            first = b.apply("max", first, 0) if self.open else first  # which is known where `end` is
        column = ir.Var("column", Type(INT))
        out.append(ir.Let(column, b.bind(first)))

        def at_columns(
            first: ir.Expr, lane: ir.Expr, lines: EdgeLines | None, out: list[ir.Stmt]
        ) -> list[list[ir.Block]]:
            return [copy.at(Columns(first, lane, turned, lines), out) for copy in copies]

        apart = self.source.intermediates
        places = LinePlaces(lead.kernel, self.together, apart, not self.rings.wraps, self.source)
        out += places.vector(ir.Ref(column), self.lanes, at_columns)
        loop = counted(step, 0, -(-(before + self.width + behind) // self.lanes), out)
        if not self.open:
            return (loop,)
        head = list[ir.Stmt]()
        b = collector(head)
        stop = b.apply("div", b.apply("add", self.wide, before + behind + self.lanes - 1), self.lanes)
        return (*head, replace(loop, stop=stop))

    def beyond(self, lead: Lead, copies: list[StageCopy]) -> list[ir.Stmt]:
        """The columns outside of the field, filled in by the border; they are computed where strips wrap around."""
        if self.rings.wraps and self.count > 1:
            return []
        rings = [(param, self.rings.of[param]) for param in lead.kernel.written if param in self.rings.of]
        alike: dict[tuple[Border, int], list[tuple[ir.FieldParam, Ring]]] = {}
        for param, ring in rings:
            if ring.reach:
                alike.setdefault((ring.border, ring.reach), []).append((param, ring))
        fills = [self.filled(lead, *like, params, copies) for like, params in alike.items()]
        return self.at_edges([ir.Comment("columns beyond the edges"), *fills]) if fills else []

    def at_edges(self, done: list[ir.Stmt]) -> list[ir.Stmt]:
        if self.count == 1:
            return done
        b, left = collector(out := list[ir.Stmt]()), ir.Ref(self.corner["column"])
        if self.open:
            before, behind = (max(lead.around("column")[end] for lead in self.leads) for end in (0, 1))
            last = b.apply("sub", b.bind(extent(self.source, "column", behind)), self.wide)
            low, high = b.apply("lt", left, max(before, 1)), b.apply("ge", left, last)
        else:
            low, high = b.apply("eq", left, 0), b.apply("eq", left, self.columns - self.width)
        out.append(ir.If(b.apply("or", low, high), tuple(done)))
        return out

    def filled(
        self, lead: Lead, like: Border, reach: int, rings: list[tuple[ir.FieldParam, Ring]], copies: list[StageCopy]
    ) -> ir.For:
        turn, out, n = ir.Var("k", Type(INT)), list[ir.Stmt](), self.columns
        b, (border, fill) = collector(out), like
        columns = b.bind(extent(self.source, "column"))
        before = b.apply("sub", ir.Ref(turn), reach)
        column = b.apply("choose", b.apply("lt", ir.Ref(turn), reach), before, b.apply("add", before, columns))
        inner, origin = list[ir.Stmt](), ir.Ref(self.rings.origin(lead)["column"])
        c = collector(inner)
        there = place(c, Coordinate(column, columns, n, -reach, n + reach - 1), border)
        to, source = (c.apply("sub", at, origin) for at in (column, there))
        for slot, array in ((copy.slots[p], a) for copy in copies for p, ring in rings for a in ring.arrays):
            value = fill if fill is not None else c.bind(ir.Load(array, (*slot, source), array.type))
            inner.append(ir.Store(array, (*slot, to), value))
        left, (halo, beside) = ir.Ref(self.corner["column"]), lead.around("column")
        low = b.apply("ge", column, b.apply("sub", left, halo))
        high = b.apply("lt", column, b.apply("add", left, b.apply("add", self.wide, beside)))
        out.append(ir.If(b.apply("and", low, high), tuple(inner)))
        return counted(turn, 0, 2 * reach, out)


def even_width(columns: int, count: int, lanes: int) -> int:
    """Of so many strips, which are as wide as one another, of whole vectors."""
    return -(-columns // (count * lanes)) * lanes if count > 1 else columns


SEVERAL = 2  # strips, where nobody knows how many
CORNER = {"column": "left", "row": "top", "layer": "front"}
