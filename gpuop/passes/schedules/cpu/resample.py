"""Vectors of CPUs that read every other point, or each twice: kernels that halve or double a picture, in pyramids.

A vector begins at a multiple of the period in which the columns that it reads repeat, so lanes read at constant distances from
where the first one does: they are picked of vectors that are loaded whole. The few columns at the ends of rows, where borders
change that, are computed one by one, by the first thread of the row. The rows of a thread share what they read.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import expressions, walk
from gpuop.passes.schedules.common.instantiate import Placed, positions, without_tables
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.cpu.axis_patterns import MOST_POINTS, SHORTEST, axis_patterns
from gpuop.passes.schedules.cpu.edge_vectors import counted
from gpuop.passes.schedules.cpu.vector_rows import ROW, RowsOfVectors, most_rows, taken, unjoined
from gpuop.passes.vectorization_legality import doubles, obstacle

COLUMN = ir.Index("global", "column")
NEAR = "it reads neighbours, or its own points"
FARTHEST = 64  # elements between the first and the last one of a vector: more loads than that are worth


def refuse(kernel: Kernel) -> str:
    assert kernel.target is not None
    if kernel.target.vector_length == 1:
        return "the device has no vectors"
    if kernel.intermediates:
        return "it has stages"
    if kernel.domain.extent("column") < SHORTEST:
        return "its rows are too short for vectors away from the borders"
    if max(kernel.domain.extent("column"), kernel.domain.extent("row")) > MOST_POINTS:
        return "its axes are too long to look at each of their points"
    wrong = doubles(kernel.body) if kernel.target.widening == "functions" else ""
    found = wrong or unjoined(kernel) or obstacle(without_tables(kernel)) or _reads(kernel)
    if found:
        return found
    first, end, _ = axis_patterns(kernel, "column").interior()
    return (
        "" if end - first >= kernel.target.vector_length else "its rows are too short for vectors away from the borders"
    )


def _reads(kernel: Kernel) -> str:
    if any(isinstance(e, ir.Load) for e in expressions(kernel.body)):
        return "it has arrays"
    reads = [e for e in expressions(kernel.body) if isinstance(e, ir.Read) and e.point is not None]
    if all(isinstance(at, (ir.Index, ir.Const)) for e in reads for at in e.point or ()):
        return NEAR
    assert kernel.target is not None
    lanes, found = kernel.target.vector_length, list(axis_patterns(kernel, "column").reads())
    patterns = [along.pattern for _, along in found if along is not None and not along.is_common]
    unknown = any(along is None or (not along.is_common and along.low is None) for _, along in found)
    if unknown or any(
        p is None or p.period > lanes or max(p.ahead(lanes)) - min(p.ahead(lanes)) >= FARTHEST for p in patterns
    ):
        return "it reads at places that do not follow the columns"
    rows = axis_patterns(kernel, "row")
    moved = [
        along.everywhere for e in reads for at in (e.point or ())[-2:-1] if (along := rows.of(at)) and along.everywhere
    ]
    return NEAR if all(p is None or p.is_own for p in (*patterns, *moved)) else ""


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    """Rows of a thread, which share what they read."""
    return tuple({"rows": rows} for rows in (4, 2, 1) if rows <= most_rows(kernel))


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return _Resampled(kernel, parameters["rows"]).kernel()


class _Resampled(RowsOfVectors):
    def __init__(self, kernel: Kernel, rows: int) -> None:
        assert kernel.target is not None
        super().__init__(kernel, kernel.target.vector_length, rows)
        self.patterns, self.row_patterns = axis_patterns(kernel, "column"), axis_patterns(kernel, "row")
        self.values = {stmt.var: stmt.value for stmt in walk(kernel.body) if isinstance(stmt, ir.Let)}
        self.tables: dict[tuple[int, ...], ir.Array] = {}  # of what lanes are ahead

    def columns(self) -> tuple[int, int]:
        start, end, _ = self.patterns.interior()
        return start, self.patterns.count - end

    def body(self) -> ir.Block:
        work = (*self.ends(*self.patterns.interior()[:2]), self.vectors())
        return (*map(ir.Declare, self.tables.values()), *work)

    def vectors(self) -> ir.Stmt:
        """The rows of a vector, statement by statement, so that what they load is needed for a short time."""
        lane, out = ir.Var("lane", Type(INT)), list[ir.Stmt]()
        copies = [self.copy(row, None, ir.Ref(lane), out) for row in range(self.rows)]
        for several in zip(*copies, strict=True):
            out += (stmt for block in several for stmt in block)
        return counted(lane, 0, self.lanes, out, lanes=True)

    def ends(self, start: int, end: int) -> ir.Block:
        """The columns where borders change what is read."""
        outside = self.patterns.count - (end - start)
        if not outside:
            return ()
        turn, row, out = ir.Var("k", Type(INT)), ir.Var("i", Type(INT)), list[ir.Stmt]()
        b = collector(out)
        behind = b.apply("add", ir.Ref(turn), end - start)
        column = b.apply("choose", b.apply("lt", ir.Ref(turn), start), ir.Ref(turn), behind)
        out += (stmt for block in self.copy(ir.Ref(row), column, None, out) for stmt in block)
        loop = counted(row, 0, self.rows, [counted(turn, 0, outside, out)])
        head: list[ir.Stmt] = [ir.Comment("columns at the ends of rows")]
        head.append(ir.If(collector(head).apply("eq", COLUMN, 0), (loop,)))
        return tuple(head)

    def copy(
        self, row: int | ir.Expr, column: ir.Expr | None, lane: ir.Expr | None, out: list[ir.Stmt]
    ) -> list[ir.Block]:
        """The statements for a row, and a column, or that of a lane behind the first one."""
        b, found = collector(out), dict[ir.Index, ir.Expr]()
        top = b.apply("add", ir.Ref(self.top), row) if self.rows > 1 else ROW
        at = b.apply("add", ir.Ref(self.first), lane) if column is None and lane is not None else column
        for index in positions(self.source, self.source.domain):
            if index.kind == "global_size":
                found[index] = constant(self.source.domain.extent(index.axis), INT)
            elif index.axis == "row" and self.rows > 1:
                found[index] = b.apply("add", top, index.offset)
            elif index.axis == "column" and at is not None:
                found[index] = b.apply("add", at, index.offset)
        copier = _AtColumns(self, found, lane, row if isinstance(row, int) else None)
        return [copier.stmt(stmt) for stmt in without_tables(self.source)]

    def table(self, ahead: tuple[int, ...]) -> ir.Array:
        return self.tables.setdefault(ahead, ir.Array("ahead", Type(INT), (len(ahead),), "constant", values=ahead))


class _AtColumns(Placed):
    """With a lane, reads are where the first one's are, and as far ahead as it is."""

    def __init__(self, made: _Resampled, found: dict[ir.Index, ir.Expr], lane: ir.Expr | None, row: int | None) -> None:
        super().__init__(made.source, found)
        self.made, self.patterns, self.lane, self.row = made, made.patterns, lane, row

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        match stmt:
            case ir.Let(value=ir.Read() as read) | ir.Assign(value=ir.Read() as read) if (
                self.lane is not None and read.point
            ):
                out: list[ir.Stmt] = []
                b = collector(out, stmt.loc)
                layers, rows = map(self.expr, read.point[:-2]), (self.row_of(e, b) for e in read.point[-2:-1])
                point = (*layers, *rows, self.coordinate(read.point[-1], b))
                value = replace(read, point=point, element=None if read.element is None else self.expr(read.element))
                return (*out, self.renamed(replace(stmt, value=value)))
        return super().stmt(stmt)

    def row_of(self, expr: ir.Expr, b: Builder) -> ir.Expr:
        """A row that is read: of all rows of a thread in the same form, so that equal ones are seen to be equal."""
        along, rows = self.made.row_patterns.of(expr), self.made.rows
        pattern = along.everywhere if along is not None else None
        if self.row is None or along is None or along.low is None or pattern is None or rows == 1:
            return self.expr(expr)
        aligned = rows % pattern.period == 0 == self.made.row_patterns.count % rows
        top = ir.Ref(self.made.top)
        return pattern.at(b, top, self.row, along.low) if aligned or pattern.period == 1 else self.expr(expr)

    def coordinate(self, expr: ir.Expr, b: Builder) -> ir.Expr:
        """A column that is read, of all lanes."""
        along = self.patterns.of(expr)
        pattern = along.pattern if along is not None else None
        assert pattern is not None and self.lane is not None
        first, ahead = self.in_first(expr, b), pattern.ahead(self.made.lanes)
        if not any(ahead):
            return first
        table = self.made.table(ahead)
        lanes = self.lane if ahead == tuple(range(len(ahead))) else b.bind(ir.Load(table, (self.lane,), table.type))
        return b.apply("add", first, lanes)

    def in_first(self, expr: ir.Expr, b: Builder) -> ir.Expr:
        """What an integer is in the first lane."""
        along = self.patterns.of(expr)
        assert along is not None
        pattern = along.pattern
        if along.exact and pattern is not None and along.low is not None:
            return pattern.at(b, ir.Ref(self.made.first), 0, along.low)
        if isinstance(expr, ir.Ref) and not along.is_common:
            value = self.made.values[expr.var]
            assert isinstance(value, ir.Apply)
            return b.apply(value.op, *(self.in_first(e, b) for e in value.args))
        return self.expr(expr)


RESAMPLE = Method("resample", ("rows",), refuse, candidates, taken, apply)
