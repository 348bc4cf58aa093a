"""Strided and repeated reads in the vectors of CPUs: kernels that halve or double a picture, as in pyramids.

A vector begins at a multiple of the period of the columns that it reads, so lanes read at constant distances from the first
lane: shuffles of whole vector loads. In vectors of four lanes:

    a[2 * column]     lane  0  1  2  3            a[column // 2]     lane  0  1  2  3
                      reads 0  2  4  6                               reads 0  0  1  1
    load  | 0 1 2 3 | 4 5 6 7 |                   load  | 0 1 2 3 |
            x   x     x   x                               x x           each twice

The few columns at the ends of rows, where borders break the pattern, are computed one by one, by the first thread of the row.
The rows of a thread share loads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gpuop.base.errors import Loc
from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import expressions, walk
from gpuop.passes.instantiate import Instance, indices_at, without_tables
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.cpu.axis_patterns import MOST_POINTS, SHORTEST, axis_patterns
from gpuop.passes.schedules.cpu.edge_vectors import counted
from gpuop.passes.schedules.cpu.vector_rows import RowsOfVectors, legalize, most_rows, refused_joining
from gpuop.passes.vectorization_legality import doubles, obstacle

COLUMN = ir.Index("global", "column")
NEAR = "it reads neighbours, or its own points"
FARTHEST = 64  # distance between the elements of the first and the last lane from which on the loads cost too much


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
    precision = doubles(kernel.body) if kernel.target.widening == "functions" else ""
    reason = precision or refused_joining(kernel) or obstacle(without_tables(kernel)) or _reads(kernel)
    if reason:
        return reason
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
    lanes, reads_ = kernel.target.vector_length, list(axis_patterns(kernel, "column").reads())
    patterns = [along.pattern for _, along in reads_ if along is not None and not along.is_common]
    is_unknown = any(along is None or (not along.is_common and along.low is None) for _, along in reads_)
    if is_unknown or any(
        p is None or p.period > lanes or max(p.ahead(lanes)) - min(p.ahead(lanes)) >= FARTHEST for p in patterns
    ):
        return "it reads at places that do not follow the columns"
    rows = axis_patterns(kernel, "row")
    row_patterns = [
        along.everywhere for e in reads for at in (e.point or ())[-2:-1] if (along := rows.of(at)) and along.everywhere
    ]
    return NEAR if all(p is None or p.is_own for p in (*patterns, *row_patterns)) else ""


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    """The numbers of rows of a thread, which share loads."""
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
        """The rows of a vector, statement by statement, so that loads have short live ranges."""
        lane, out = ir.Var("lane", Type(INT)), list[ir.Stmt]()
        copies = [self.copy(row, None, ir.Ref(lane), out) for row in range(self.rows)]
        for several in zip(*copies, strict=True):
            out += (stmt for block in several for stmt in block)
        return counted(lane, 0, self.lanes, out, lanes=True)

    def ends(self, start: int, end: int) -> ir.Block:
        """The columns at the ends of a row, where borders break the pattern."""
        outside = self.patterns.count - (end - start)
        if not outside:
            return ()
        k, row, out = ir.Var("k", Type(INT)), ir.Var("i", Type(INT)), list[ir.Stmt]()
        b = collector(out)
        behind = b.apply("add", ir.Ref(k), end - start)
        column = b.apply("choose", b.apply("lt", ir.Ref(k), start), ir.Ref(k), behind)
        out += (stmt for block in self.copy(ir.Ref(row), column, None, out) for stmt in block)
        loop = counted(row, 0, self.rows, [counted(k, 0, outside, out)])
        head: list[ir.Stmt] = [ir.Comment("columns at the ends of rows")]
        head.append(ir.If(collector(head).apply("eq", COLUMN, 0), (loop,)))
        return tuple(head)

    def copy(
        self, row: int | ir.Expr, column: ir.Expr | None, lane: ir.Expr | None, out: list[ir.Stmt]
    ) -> list[ir.Block]:
        """The statements for a row, at a column, or at a lane behind the first column."""
        b, at = collector(out), dict[str, Callable[[int], ir.Expr]]()
        if self.rows > 1:
            at["row"] = partial(b.apply, "add", b.apply("add", ir.Ref(self.top), row))
        if column is None and lane is not None:
            column = b.apply("add", ir.Ref(self.first), lane)
        if column is not None:
            at["column"] = partial(b.apply, "add", column)
        copier = _AtColumns(self, indices_at(self.source, at), lane, row if isinstance(row, int) else None)
        return [copier.stmt(stmt) for stmt in self.source.body]

    def table(self, ahead: tuple[int, ...]) -> ir.Array:
        return self.tables.setdefault(ahead, ir.Array("ahead", Type(INT), (len(ahead),), "constant", values=ahead))


class _AtColumns(Instance):
    """Copies the body; with a lane, reads are at the columns of the first lane plus the distance of the lane."""

    def __init__(
        self, resampled: _Resampled, by_index: dict[ir.Index, ir.Expr], lane: ir.Expr | None, row: int | None
    ) -> None:
        super().__init__(resampled.source, by_index)
        self.resampled, self.patterns, self.lane, self.row = resampled, resampled.patterns, lane, row

    def loaded(self, read: ir.Read, loc: Loc | None, out: list[ir.Stmt]) -> ir.Expr | None:
        if self.lane is None or not read.point:
            return None
        b = collector(out, loc)
        layers, rows = map(self.expr, read.point[:-2]), (self.row_of(e, b) for e in read.point[-2:-1])
        point = (*layers, *rows, self.coordinate(read.point[-1], b))
        return replace(read, point=point, element=None if read.element is None else self.expr(read.element))

    def row_of(self, expr: ir.Expr, b: Builder) -> ir.Expr:
        """A row that is read, in the same form for all rows of a thread, so that equal reads are merged."""
        along, rows = self.resampled.row_patterns.of(expr), self.resampled.rows
        pattern = along.everywhere if along is not None else None
        if self.row is None or along is None or along.low is None or pattern is None or rows == 1:
            return self.expr(expr)
        aligned = rows % pattern.period == 0 == self.resampled.row_patterns.count % rows
        top = ir.Ref(self.resampled.top)
        return pattern.at(b, top, self.row, along.low) if aligned or pattern.period == 1 else self.expr(expr)

    def coordinate(self, expr: ir.Expr, b: Builder) -> ir.Expr:
        """The columns that all lanes read."""
        along = self.patterns.of(expr)
        pattern = along.pattern if along is not None else None
        assert pattern is not None and self.lane is not None
        first, ahead = self.in_first(expr, b), pattern.ahead(self.resampled.lanes)
        if not any(ahead):
            return first
        table = self.resampled.table(ahead)
        lanes = self.lane if ahead == tuple(range(len(ahead))) else b.bind(ir.Load(table, (self.lane,), table.type))
        return b.apply("add", first, lanes)

    def in_first(self, expr: ir.Expr, b: Builder) -> ir.Expr:
        """The value of an integer in the first lane."""
        along = self.patterns.of(expr)
        assert along is not None
        pattern = along.pattern
        if along.exact and pattern is not None and along.low is not None:
            return pattern.at(b, ir.Ref(self.resampled.first), 0, along.low)
        if isinstance(expr, ir.Ref) and not along.is_common:
            value = self.resampled.values[expr.var]
            assert isinstance(value, ir.Apply)
            return b.apply(value.op, *(self.in_first(e, b) for e in value.args))
        return self.expr(expr)


RESAMPLE = Method("resample", ("rows",), refuse, candidates, legalize, apply)
