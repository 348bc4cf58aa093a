"""Blocks of strips, whose threads go from row to row and run all stages in each of them."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.borders import Coordinate, place
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Domain, Kernel
from gpuop.ir.nodes import (
    Comment,
    Declare,
    Expr,
    FieldParam,
    For,
    If,
    Index,
    Let,
    Load,
    Ref,
    Stmt,
    Store,
    Var,
)
from gpuop.ir.types import INT, Shape, Type
from gpuop.passes.schedules.edge_vectors import counted
from gpuop.passes.schedules.leads import Border, Lead, Leads
from gpuop.passes.schedules.rings import Ring, Rings
from gpuop.passes.schedules.stage_copy import StageCopy
from gpuop.passes.schedules.vector_rows import least

COLUMN, ROW = Index("global", "column"), Index("global", "row")


class ColumnStrips:
    """A kernel with intermediates as threads run it that have strips of `width` columns and blocks of `height` rows.

    Attributes:
        together: how many rows a stage computes at a time, which share what they load.
        count: how many strips a row has.
        left, top: the first column and the first row of a thread's results.
    """

    def __init__(self, kernel: Kernel, found: Leads, width: int, height: int, together: int) -> None:
        assert kernel.target is not None
        self.source, self.together, self.height = kernel, together, height
        self.lanes = kernel.target.vector_length
        self.rows, self.columns = kernel.domain.extent("row"), kernel.domain.extent("column")
        self.count = max(self.columns // width, 1)
        wide = -(-self.columns // self.count)
        self.width = -(-wide // self.lanes) * self.lanes if self.count > 1 else self.columns
        self.rings = Rings(kernel, found, self.width, together)
        self.leads = self.rings.leads
        self.left, self.top = (Var(hint, Type(INT)) for hint in ("left", "top"))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.rings.arrays)

    @property
    def fits(self) -> bool:
        """Whether strips have vectors, and each but the first and the last is away from the edges, for all stages."""
        inner = [lead.interior for lead in self.leads]
        left = max(first + lead.left for lead, (first, _) in zip(self.leads, inner, strict=True))
        right = max(self.columns - end + lead.right for lead, (_, end) in zip(self.leads, inner, strict=True))
        last = self.columns - self.width
        starts = [min(k * self.width, last) for k in range(self.count)]
        apart = all(s == 0 or s >= left for s in starts) and all(s == last or s <= last - right for s in starts)
        return 0 < self.height <= self.rows and apart and self.width - left - right >= self.lanes

    # --- the kernel ---------------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        source, domain = self.source, self.source.domain
        head: list[Stmt] = [*source.shared("constant")]
        head.append(
            Comment(f"strips of {self.width} columns and {self.height} rows of {'x'.join(map(str, domain.shape))}")
        )
        b = collector(head)
        head.append(Let(self.left, least(b.apply("mul", COLUMN, self.width), self.columns - self.width)))
        head.append(Let(self.top, least(b.apply("mul", ROW, self.height), self.rows - self.height)))
        for lead in self.leads:
            value = b.apply("sub", Ref(self.left), lead.left) if lead.left else Ref(self.left)
            head.append(Let(self.rings.origin(lead), value))
        head += (Declare(array) for array in self.rings.arrays)
        turn, out = Var("turn", Type(INT)), list[Stmt]()
        b = collector(out)
        steps = b.apply("add", b.apply("mul", Ref(turn), self.together), self.rings.first)
        out.append(Let(self.rings.row, b.bind(b.apply("add", Ref(self.top), steps))))
        for lead in self.leads:
            self.stage(lead, Ref(turn), out)
        head.append(counted(turn, 0, (self.height - self.rings.first) // self.together, out))
        sizes = {"column": self.count, "row": -(-self.rows // self.height)}
        shape = Shape(*(sizes.get(axis, domain.extent(axis)) for axis in domain.axes))
        return replace(
            source,
            domain=Domain(shape, domain.elements),
            body=tuple(head),
            intermediates=(),
            points=domain.shape,
            group=(1, 1, 1),
        )

    def stage(self, lead: Lead, turn: Expr, out: list[Stmt]) -> None:
        """A stage at some rows, unless these are above all that are needed."""
        rows: list[Stmt] = []
        copies = [StageCopy(self.rings, lead, i, rows) for i in range(self.together)]
        loops = [*self.ends(lead, copies), self.vectors(lead, copies), *self.beyond(lead, copies)]
        early = -(-(lead.start - lead.ahead - self.together + 1 - self.rings.first) // self.together)
        if early > 0:
            test = collector(out).apply("ge", turn, early)
            out.append(If(test, (*rows, *loops)))
        else:
            out += [*rows, *loops]

    def vectors(self, lead: Lead, copies: list[StageCopy]) -> For:
        (start, end), out = lead.interior, list[Stmt]()
        step, lane, b = Var("k", Type(INT)), Var("lane", Type(INT)), collector(out)
        first = b.apply("add", b.apply("mul", Ref(step), self.lanes), self.clipped(b, lead, start, end)[0])
        last = b.apply("sub", self.clipped(b, lead, start, end)[1], self.lanes)
        column = Var("column", Type(INT))
        out.append(Let(column, b.bind(b.apply("min", first, last))))
        inner: list[Stmt] = []
        blocks = [copy.at(Ref(column), Ref(lane), inner) for copy in copies]
        for several in zip(*blocks, strict=True):
            inner += (stmt for block in several for stmt in block)
        out.append(counted(lane, 0, self.lanes, inner, lanes=True))
        return counted(step, 0, -(-(self.width + lead.left + lead.right) // self.lanes), out)

    def clipped(self, b: Builder, lead: Lead, start: int, end: int) -> tuple[Expr, Expr]:
        """The columns of a strip and its halo, from `start` to `end`."""
        first = b.apply("max", Ref(self.rings.origin(lead)), start) if lead.left or start else Ref(self.left)
        last = b.apply("add", Ref(self.left), self.width + lead.right)
        return first, b.apply("min", last, end) if lead.right or end < self.columns else last

    def ends(self, lead: Lead, copies: list[StageCopy]) -> list[Stmt]:
        """The columns of a stage whose reads of fields may leave these."""
        start, end = lead.interior
        inner: list[Stmt] = []
        turn = Var("k", Type(INT))
        column = self.outside(turn, inner, start, end)
        if column is None:
            return []
        done: list[Stmt] = []
        for copy in copies:
            done += (stmt for block in copy.at(column, None, done) for stmt in block)
        inner.append(self.within(lead, column, inner, done))
        title = Comment("columns whose neighbours lie beyond an edge")
        return [title, *self.at_edges([counted(turn, 0, self.columns - (end - start), inner)])]

    def outside(self, turn: Var, out: list[Stmt], start: int, end: int) -> Expr | None:
        """The column of a turn, where turns count the columns before `start` and from `end` on; None if there is none."""
        if end - start == self.columns:
            return None
        b = collector(out)
        behind = b.apply("add", Ref(turn), end - start)
        if not 0 < start < self.columns - (end - start):
            return Ref(turn) if start else behind
        return b.apply("choose", b.apply("lt", Ref(turn), start), Ref(turn), behind)

    def within(self, lead: Lead, column: Expr, out: list[Stmt], done: list[Stmt]) -> If:
        b = collector(out)
        low = b.apply("ge", column, Ref(self.rings.origin(lead)))
        high = b.apply("lt", column, b.apply("add", Ref(self.left), self.width + lead.right))
        return If(b.apply("and", low, high), tuple(done))

    def at_edges(self, done: list[Stmt]) -> list[Stmt]:
        if self.count == 1:
            return done
        out: list[Stmt] = []
        b = collector(out)
        low, high = b.apply("eq", Ref(self.left), 0), b.apply("eq", Ref(self.left), self.columns - self.width)
        out.append(If(b.apply("or", low, high), tuple(done)))
        return out

    def beyond(self, lead: Lead, copies: list[StageCopy]) -> list[Stmt]:
        """The columns outside of the field, filled in by the border."""
        rings = [(param, self.rings.of[param]) for param in lead.kernel.written if param in self.rings.of]
        alike: dict[tuple[Border, int], list[tuple[FieldParam, Ring]]] = {}
        for param, ring in rings:
            if ring.reach:
                alike.setdefault((ring.border, ring.reach), []).append((param, ring))
        fills = [self.filled(lead, *like, params, copies) for like, params in alike.items()]
        return self.at_edges([Comment("columns beyond the edges"), *fills]) if fills else []

    def filled(
        self, lead: Lead, like: Border, reach: int, rings: list[tuple[FieldParam, Ring]], copies: list[StageCopy]
    ) -> For:
        turn, out = Var("k", Type(INT)), list[Stmt]()
        b, (border, fill) = collector(out), like
        before = b.apply("sub", Ref(turn), reach)
        behind = b.apply("add", before, self.columns)
        column = b.apply("choose", b.apply("lt", Ref(turn), reach), before, behind)
        n, origin = self.columns, self.rings.origin(lead)
        inner = list[Stmt]()
        c = collector(inner)
        there = place(c, Coordinate(column, constant(n, INT), n, -reach, n + reach - 1), border)
        to, source = (c.apply("sub", at, Ref(origin)) for at in (column, there))
        for slot, array in ((copy.slots[p], a) for copy in copies for p, ring in rings for a in ring.arrays):
            value = fill if fill is not None else c.bind(Load(array, (slot, source), array.type))
            inner.append(Store(array, (slot, to), value))
        out.append(self.within(lead, column, out, inner))
        return counted(turn, 0, 2 * reach, out)
