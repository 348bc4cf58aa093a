"""Stencils in the vectors of CPUs: a thread has neighbours in a row, of several rows, which share what they load.

Vectors lie where no read along the row leaves its field, so their columns need no borders; rows are common to a vector, and
their borders stay as they are. At both ends of a row, and at the end of the grid, vectors overlap. The few columns whose reads
may leave a field are computed one by one, by the first thread of the row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Domain, Kernel
from gpuop.ir.nodes import (
    GRID_AXES,
    Apply,
    Block,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Index,
    Let,
    Read,
    Ref,
    Stmt,
    Var,
    Write,
)
from gpuop.ir.types import BOOL, INT, Shape, Type
from gpuop.ir.visit import Copier, expressions, walk
from gpuop.passes.points_per_thread import MOST_VALUES, SMALL, is_own, refusal_of_thread
from gpuop.passes.schedules.lane_places import LanePlaces
from gpuop.passes.schedules.method import Method, Parameters
from gpuop.passes.vectorize import doubles, obstacle

COLUMN, ROW = Index("global", "column"), Index("global", "row")


def refuse(kernel: Kernel) -> str:
    assert kernel.target is not None
    if kernel.target.vector_length == 1:
        return "the device has no vectors"
    if kernel.intermediates:
        return "it has stages"
    if not any(isinstance(e, Read) and e.point is not None for e in expressions(kernel.body)):
        return "it reads no points but its own"
    wrong = doubles(kernel.body) if kernel.target.widening == "functions" else ""
    found = wrong or unjoined(kernel) or obstacle(without_tables(kernel)) or LanePlaces(kernel).obstacle()
    if found:
        return found
    first, end = LanePlaces(kernel).interior()
    return (
        "" if end - first >= kernel.target.vector_length else "its rows are too short for vectors away from the borders"
    )


def unjoined(kernel: Kernel) -> str:
    """Why its threads are not to be joined."""
    assert kernel.target is not None
    if kernel.domain.threads * SMALL < kernel.target.least_threads:
        return "its grid is small, and vectors take longer to compile"
    if kernel.whole or kernel.shared_memory:
        return "what a thread writes may not be written twice"
    return refusal_of_thread(kernel)


def without_tables(kernel: Kernel) -> Block:
    return tuple(stmt for stmt in kernel.body if not (isinstance(stmt, Declare) and stmt.array.space == "constant"))


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    """Rows of a thread: four where rows share what they load."""
    values = sum(stmt.var.type.lanes for stmt in walk(kernel.body) if isinstance(stmt, Let))
    most = max(MOST_VALUES // 2 // max(values, 1), 1)
    counts = [rows for rows in (4, 2, 1, 8) if rows <= min(most, kernel.domain.extent("row"))]
    if not _shares_rows(kernel):
        counts.sort()
    return tuple({"rows": rows} for rows in counts)


def _shares_rows(kernel: Kernel) -> bool:
    """Whether rows read the same: at offsets from the own row that differ."""
    rows = {
        e.offset for e in expressions(kernel.body) if isinstance(e, Index) and e.kind == "global" and e.axis == "row"
    }
    return len(rows) > 1


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return _VectorRows(kernel, min(parameters["rows"], kernel.domain.extent("row"))).kernel()


class _VectorRows:
    def __init__(self, kernel: Kernel, rows: int) -> None:
        assert kernel.target is not None
        self.source = kernel
        self.lanes = kernel.target.vector_length
        self.rows = rows
        self.interior = LanePlaces(kernel).interior()
        self.first = Var("first", Type(INT))  # the column of the first lane
        self.top = Var("top", Type(INT))  # the first row

    def kernel(self) -> Kernel:
        source, domain = self.source, self.source.domain
        (start, end), columns = self.interior, domain.extent("column")
        head: list[Stmt] = [*source.shared("constant")]
        head.append(Comment(f"{self.lanes} columns and {self.rows} rows of {'x'.join(map(str, domain.shape))}"))
        b = collector(head)
        place = b.apply("min", b.apply("mul", COLUMN, self.lanes), end - self.lanes)
        head.append(Let(self.first, greatest(place, start)))
        if self.rows > 1:
            head.append(Let(self.top, least(b.apply("mul", ROW, self.rows), domain.extent("row") - self.rows)))
        sizes = {"column": -(-columns // self.lanes), "row": -(-domain.extent("row") // self.rows)}
        shape = Shape(*(sizes.get(axis, domain.extent(axis)) for axis in domain.axes))
        body = (*head, *self.ends(start, end, columns), self.vectors())
        return replace(source, domain=Domain(shape, domain.elements), body=body, points=domain.shape)

    def vectors(self) -> For:
        """The rows of a vector, statement by statement, so that what they load is needed for a short time."""
        lane, out = Var("lane", Type(INT)), list[Stmt]()
        copies = [self.copy(row, Ref(lane), Ref(self.first), out) for row in range(self.rows)]
        for several in zip(*copies, strict=True):
            out += (stmt for block in several for stmt in block)
        return counted(lane, self.lanes, out, lanes=True)

    def ends(self, start: int, end: int, columns: int) -> Block:
        """The columns whose reads may leave a field."""
        outside = columns - (end - start)
        if not outside:
            return ()
        turn, row, out = Var("k", Type(INT)), Var("i", Type(INT)), list[Stmt]()
        b = collector(out)
        column: Expr = Ref(turn)
        if start < outside:
            column = b.apply("add", column, end - start)
        if 0 < start < outside:
            column = b.apply("choose", b.apply("lt", Ref(turn), start), Ref(turn), column)
        out += (stmt for block in self.copy(0, column, None, out, Ref(row)) for stmt in block)
        loop = counted(turn, outside, out)
        inner = (counted(row, self.rows, [loop]),) if self.rows > 1 else (loop,)
        cond = Var("t", Type(BOOL), temporary=True)
        test = Apply("eq", (COLUMN, constant(0, INT)), Type(BOOL))
        title = Comment("columns whose neighbours lie beyond an edge")
        return title, Let(cond, test), If(Ref(cond), inner)

    def copy(
        self, row: int, column: Expr, first: Expr | None, out: list[Stmt], turn: Expr | None = None
    ) -> list[Block]:
        """The statements for a row, and a column, or that of a lane behind the first one."""
        b = collector(out)
        top = b.apply("add", Ref(self.top), turn) if turn is not None and self.rows > 1 else Ref(self.top)
        found: dict[Index, Expr] = {}
        for index in self.indices():
            if index.kind == "global_size":
                found[index] = constant(self.source.domain.extent(index.axis), INT)
            elif index.axis == "row" and self.rows > 1:
                found[index] = b.apply("add", top, row + index.offset)
            elif index.axis == "column":
                base = column if first is None else b.apply("add", first, index.offset)
                found[index] = b.apply("add", base, index.offset if first is None else column)
        copier = _Row(self.source, found)
        return [copier.stmt(stmt) for stmt in without_tables(self.source)]

    def indices(self) -> Iterable[Index]:
        used = [e for e in expressions(self.source.body) if isinstance(e, Index) and e.axis in GRID_AXES]
        return dict.fromkeys([*used, *(Index("global", axis) for axis in self.source.domain.axes)])


class _Row(Copier):
    """The statements at a given position."""

    def __init__(self, source: Kernel, found: dict[Index, Expr]) -> None:
        super().__init__(source.body)
        self.found = found
        for stmt in source.shared("constant"):
            del self.arrays[stmt.array]

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Index):
            return self.found.get(expr, expr)
        if isinstance(expr, Read) and expr.point is None and is_own(expr.field):
            expr = replace(expr, point=own_point(len(expr.field.type.field_shape)))
        return super().expr(expr)

    def stmt(self, stmt: Stmt) -> Block:
        if isinstance(stmt, Write) and stmt.point is None:
            stmt = replace(stmt, point=own_point(len(stmt.field.type.field_shape)))
        return super().stmt(stmt)


def own_point(axes: int) -> tuple[Expr, ...]:
    return tuple(Index("global", axis) for axis in GRID_AXES[3 - axes :])


def counted(var: Var, turns: int, body: list[Stmt], lanes: bool = False) -> For:
    start, stop, step = (constant(n, INT) for n in (0, turns, 1))
    return For(var, start, stop, step, tuple(body), lanes=lanes)


def least(x: Expr, y: int) -> Expr:
    return Apply("min", (x, constant(y, INT)), Type(INT))


def greatest(x: Expr, y: int) -> Expr:
    return Apply("max", (x, constant(y, INT)), Type(INT))


VECTOR_ROWS = Method("vector rows", refuse, candidates, apply)
