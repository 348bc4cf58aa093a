"""Stencils in the vectors of CPUs: a thread has a vector of columns in several rows, which share loads.

With 8 lanes, 4 rows and a grid of 20 columns:

               columns 0 .. 7    8 .. 15    12 .. 19        the last vector begins at 20 - 8 and overlaps the one before
    rows 0..3      thread 0    | thread 1 | thread 2 |
    rows 4..7      thread 0    | thread 1 | thread 2 |      (of other work-groups)

    a window of three rows: a thread loads 6 rows for its 4, instead of 12

Where windows reach along layers alone, a thread has the same row of several layers instead, because neighbouring layers are far
apart in memory.

A row is the same for all lanes and keeps its borders. Columns need no borders in the interior; at the ends of rows, vectors are
loaded from lines in private memory (`edge_vectors.py`). Parts of rows (`row_parts.py`) have code of their own.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod

from gpuop.ir.analysis.footprints import footprints
from gpuop.ir.build import collector, constant
from gpuop.ir.extents import extent, shown_extents
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Block, Comment, Const, Expr, If, Index, Let, Read, Ref, Stmt, Var
from gpuop.ir.types import INT, Shape, Type
from gpuop.ir.visit import expressions, walk
from gpuop.passes.coarsening_factor import MOST_VALUES, is_own, is_small, refusal_of_thread
from gpuop.passes.instantiate import At, indices_at, of_threads, own_point, without_tables
from gpuop.passes.schedules.common.lane_positions import LanePositions
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.common.row_parts import RowPart, parts_of_rows
from gpuop.passes.schedules.cpu.edge_vectors import EdgeLines, EdgeReads, InstanceWithLines, lower
from gpuop.passes.schedules.cpu.vector_lengths import vector_length
from gpuop.passes.vectorization_legality import halves, obstacle, refused_doubles

MOST_ROWS = 16  # rows of a thread: its statements are repeated for each
WRITTEN_ONCE = "its writes may not be repeated"
COLUMN, ROW = Index("global", "column"), Index("global", "row")


def refuse(kernel: Kernel) -> str:
    if kernel.machine.vector_length == 1:
        return "the device has no vectors"
    if kernel.intermediates:
        return "it has stages"
    if not any(isinstance(e, Read) and e.point is not None for e in expressions(kernel.body)):
        return "it reads no points but its own"
    reason = refused_doubles(kernel) or halves(kernel) or refused_copying(kernel)
    if reason := reason or obstacle(without_tables(kernel)) or _places(kernel):
        return reason
    if kernel.domain.extent("column") < kernel.machine.vector_length:
        return "its rows are too short for vectors"
    is_divided = not kernel.named and kernel.domain.extent("column") % vector_length(kernel) == 0
    return WRITTEN_ONCE if kernel.shared_memory and not is_divided else ""


def _places(kernel: Kernel) -> str:
    parts = [part.kernel for part in parts_of_rows(kernel)]
    return next(filter(None, (LanePositions(each).obstacle(kernel.machine.gathers) for each in parts or [kernel])), "")


def refused_joining(kernel: Kernel, each: float = 1.0) -> str:
    """Return the reason why a thread cannot do the work of several, which may overlap; empty where it can.

    Args:
        each: the number of threads that one counts as.
    """
    return refused_copying(kernel, each) or (WRITTEN_ONCE if kernel.shared_memory else "")


def refused_copying(kernel: Kernel, each: float = 1.0) -> str:
    """Return the reason why a thread cannot do the work of several that do not overlap; empty where it can."""
    if is_small(kernel, each):
        return "its grid is small, and vectors take longer to compile"
    return WRITTEN_ONCE if kernel.whole else refusal_of_thread(kernel, alternating=True)


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    """The numbers of rows of a thread: four first where rows share loads, one first elsewhere."""
    counts = [rows for rows in (4, 2, 1, 8) if rows <= most_rows(kernel) and _divides(kernel, rows)]
    if axis_of(kernel) == "layer":
        counts.sort(reverse=True)
    elif not _shares_rows(kernel):
        counts.sort()
    return tuple({"rows": rows} for rows in counts)


def _divides(kernel: Kernel, rows: int) -> bool:
    """Return whether so many rows divide the grid, where threads must not overlap."""
    return not (kernel.shared_memory and kernel.domain.extent(axis_of(kernel)) % rows)


def most_rows(kernel: Kernel) -> int:
    """The greatest number of rows of a thread, whose statements are repeated for each."""
    values = sum(stmt.var.type.lanes for stmt in walk(kernel.body) if isinstance(stmt, Let))
    return min(max(MOST_VALUES // 2 // max(values, 1), 1), kernel.domain.extent(axis_of(kernel)))


def axis_of(kernel: Kernel) -> str:
    """The axis along which a thread has several points."""
    near = footprints(kernel).values()
    if len(kernel.domain.shape) < 3 or None in near:
        return "row"
    beside = any(f is not None and any((*f.low[-2:], *f.high[-2:])) for f in near)
    along = any(f is not None and len(f.low) > 2 and f.low[-3] < f.high[-3] for f in near)
    return "layer" if along and not beside else "row"


def _shares_rows(kernel: Kernel) -> bool:
    """Return whether four rows load at most three quarters of what each would alone; else more rows only mean more streams."""
    reads = {e for e in expressions(kernel.body) if isinstance(e, Read) and is_own(e.field)}
    places = {(e.field, e.point or own_point(len(e.field.type.field_shape)), e.element) for e in reads}
    together = {
        (field, tuple(lower(e, row) for e in point), part, row if any(isinstance(e, Ref) for e in point) else 0)
        for field, point, part in places
        for row in range(4)
    }
    return len(together) <= 3 * len(places)


def legalize(kernel: Kernel, parameters: Parameters) -> Parameters:
    most = min(parameters["rows"], MOST_ROWS, kernel.domain.extent(axis_of(kernel)))
    return {"rows": next(rows for rows in range(most, 0, -1) if _divides(kernel, rows))}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return _VectorRows(kernel, vector_length(kernel), parameters["rows"]).kernel()


class RowsOfVectors(ABC):
    """Builds a kernel whose threads have a vector of columns in several rows.

    Attributes:
        rows: the rows of a thread.
        first, top: the column of the first lane, and the first row.
    """

    def __init__(self, kernel: Kernel, lanes: int, rows: int) -> None:
        self.source, self.lanes, self.rows, self.axis = kernel, lanes, rows, axis_of(kernel)
        self.first, self.top = Var("first", Type(INT)), Var("top", Type(INT))

    def kernel(self) -> Kernel:
        source, domain = self.source, self.source.domain
        (start, behind), head, sizes = self.columns(), list[Stmt](), {"column": self.lanes, self.axis: self.rows}
        head.append(Comment(f"{self.lanes} columns and {self.rows} {self.axis}s of {'x'.join(shown_extents(source))}"))
        self.begin(self.first, COLUMN, self.lanes, behind, start, head)
        if self.rows > 1:
            self.begin(self.top, Index("global", self.axis), self.rows, 0, 0, head)
        each = Shape(*(sizes.get(axis, 1) for axis in domain.axes))
        shape = Shape(*(-(-n // many) for n, many in zip(domain.shape, each, strict=True)))
        return of_threads(source, shape, (*head, *self.body()), per_thread=each)

    def begin(self, var: Var, thread: Index, many: int, behind: int, start: int, head: list[Stmt]) -> None:
        """Bind the first point of a thread along an axis; the last thread begins early enough to end inside.

        Args:
            many: the points of a thread.
            behind: the points at the end of the axis that vectors leave out.
            start: the first point of vectors.
        """
        b = collector(head)
        last = b.bind(extent(self.source, thread.axis, behind + many))
        first = Apply("min", (b.apply("mul", thread, many), last), Type(INT))
        if start or not isinstance(last, Const):  # a constant is not below the first one
            first = Apply("max", (b.bind(first), constant(start, INT)), Type(INT))
        head.append(Let(var, first))

    @abstractmethod
    def columns(self) -> tuple[int, int]:
        """The first column of vectors, and the number of columns behind the last one."""

    @abstractmethod
    def body(self) -> Block:
        """The statements of a thread."""


class _VectorRows(RowsOfVectors):
    def columns(self) -> tuple[int, int]:
        return 0, 0

    def body(self) -> Block:
        reads, first, parts = EdgeReads(self.source, self.rows), Ref(self.first), parts_of_rows(self.source)
        if not parts:
            return reads.vector(first, self.lanes, self.copies)
        is_known = not LanePositions(self.source).obstacle()
        beside = reads.at_edge if is_known else reads.one_by_one
        body: Block = (Comment("columns of several parts"), *beside(first, self.lanes, self.copies))
        for part in reversed(parts):
            body = self.part(part, body)
        return body

    def part(self, part: RowPart, orelse: Block) -> Block:
        """The code of a part, for threads whose columns, and their reads, all lie inside; `orelse` for other threads."""
        inner, out = copy.copy(self), list[Stmt]()
        inner.source = part.kernel
        reads, b = EdgeReads(part.kernel, self.rows), collector(out)
        start, last = max(part.start, reads.interior[0]), min(part.end, reads.interior[1]) - self.lanes
        if last < start:
            return orelse
        tests = [b.apply("ge", Ref(self.first), start)] if start else []
        tests += [b.apply("le", Ref(self.first), last)] if last + self.lanes < reads.columns else []
        test = b.apply("and", *tests) if len(tests) > 1 else tests[0]
        within = list[Stmt]()
        first = reads.inside(Ref(self.first), start, last, collector(within))
        within += reads.one_by_one(first, self.lanes, inner.copies, True)
        return (*out, If(test, tuple(within), orelse))

    def copies(self, first: Expr, lane: Expr, lines: EdgeLines | None, out: list[Stmt]) -> list[list[Block]]:
        return [self.copy(row, first, lane, lines, out) for row in range(self.rows)]

    def copy(self, row: int, first: Expr, lane: Expr, lines: EdgeLines | None, out: list[Stmt]) -> list[Block]:
        """The statements for a row, at a lane behind the first column."""
        b = collector(out if lines is None else lines.head)
        lanes = collector(out)
        at: At = {"column": lambda away: lanes.apply("add", lanes.apply("add", first, away), lane)}
        if self.rows > 1:
            at = {**at, self.axis: lambda away: b.apply("add", Ref(self.top), row + away)}
        copier = InstanceWithLines(self.source, indices_at(self.source, at), row, lines)
        return [copier.stmt(stmt) for stmt in self.source.body]


def least(x: Expr, y: int) -> Expr:
    return Apply("min", (x, constant(y, INT)), Type(INT))


VECTOR_ROWS = Method("vector rows", ("rows",), refuse, candidates, legalize, apply, open=True)
