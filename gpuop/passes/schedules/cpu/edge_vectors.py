"""Vectors at the ends of rows, where reads of some lanes may leave their fields.

All vectors of a row have the same alignment and are stored whole. At the ends, the columns that a vector reads are first copied
to a line of private memory, each through the border; vectors are loaded from this line. For reads from column -1 to column +2:

    first vector   columns        0  1  2  3  4  5  6  7
                   line       -1  0  1  2  3  4  5  6  7  8  9      low = -1, high = 2: lanes + high - low elements
                              |__ column -1 through the border

    read at an offset k: the vector of the line from element k - low on
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from gpuop.base.errors import Loc
from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector
from gpuop.ir.extents import extent
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import Type
from gpuop.passes.coarsening_factor import elements
from gpuop.passes.instantiate import Instance
from gpuop.passes.loops import counted, counter, looped
from gpuop.passes.schedules.common.lane_positions import LanePositions

NEAR = 64  # columns: an upper limit of the lanes of a vector
At = Callable[[ir.Expr], ir.Expr]  # instantiates an expression at a point of a copy


@dataclass(frozen=True)
class Line:
    """The columns of a field that are read at the same other coordinates, through the same border.

    Attributes:
        part: the number of the range of columns, where there are several far apart.
    """

    field: ir.FieldParam
    across: tuple[ir.Expr, ...]
    element: ir.Expr | None
    border: str
    fill: ir.Expr | None
    part: int = 0


class EdgeLines:
    """The lines of a stage for a vector whose columns begin at `first`.

    Lines at constant coordinates are filled at the end of `head`, before the stage; those at computed ones where they are read.
    """

    def __init__(self, reads: EdgeReads, lanes: int, first: ir.Expr, lane: ir.Expr, head: list[ir.Stmt]) -> None:
        self.reads, self.lanes, self.first, self.lane, self.head = reads, lanes, first, lane, head
        self.arrays: dict[tuple[Line, int], tuple[ir.Array, ...]] = {}

    def takes(self, read: ir.Read, row: int) -> bool:
        return read in self.reads.along and self.line(read, row)[0] in self.reads.spans

    def line(self, read: ir.Read, row: int) -> tuple[Line, int]:
        """The line of a read, and the number of its row where rows do not share lines."""
        part = self.reads.parts.get(read, 0)
        return (line_of(read, row, part), 0) if self.reads.shared else (line_of(read, 0, part), row)

    def load(self, read: ir.Read, at: At, row: int, out: list[ir.Stmt]) -> ir.Expr:
        """A vector of a line, for one of the rows that are computed together."""
        key = line, _ = self.line(read, row)
        assert read.point is not None
        parts = elements(line.field, line.element)
        is_known = all(isinstance(e, (ir.Const, ir.Index)) for e in (*line.across, *parts))
        if key not in self.arrays or not is_known:
            there = replace(line, across=tuple(map(at, read.point[:-1])))
            self.fill(key, there, [at(part) for part in parts], self.head if is_known else out, is_known)
        low, column, b = self.reads.spans[line][0], read.point[-1], collector(out)
        if isinstance(column, ir.Index):
            place = b.apply("add", self.lane, column.offset - low)
        else:
            place = b.apply("add", b.apply("sub", at(column), self.first), -low)
        return b.pack([b.bind(ir.Load(array, (place,), array.type)) for array in self.arrays[key]])

    def fill(
        self, key: tuple[Line, int], there: Line, parts: list[ir.Expr], out: list[ir.Stmt], is_known: bool
    ) -> None:
        """Fill the arrays of a line: in a loop before the stage if `is_known`, else among the statements of lanes."""
        line, _ = key
        (low, high), kind = self.reads.spans[line], Type(line.field.type.storage)
        if key not in self.arrays:
            arrays = tuple(ir.Array(f"{line.field.hint}_line", kind, (self.lanes + high - low,)) for _ in parts)
            self.arrays[key] = arrays
            self.head += map(ir.Declare, arrays)
        border = "clamp" if line.border == "unchecked" else line.border

        def one(k: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out)
            column, place = b.apply("add", self.first, k), b.apply("add", k, -low)
            for array, part in zip(self.arrays[key], parts, strict=True):
                element = None if there.field.type.planes == 1 else part
                read = ir.Read(there.field, kind, (*there.across, column), element, border, there.fill)
                out.append(ir.Store(array, (place,), b.bind(read)))

        beside = [(low, self.lanes + high)]
        if low <= 0 <= high and line.field.type.field_shape[-1] >= self.reads.columns:
            beside = [(low, 0), (self.lanes, self.lanes + high)]
            if is_known:
                out.append(looped("lane", 0, self.lanes, one, lanes=True))
            else:
                one(self.lane, out)
        out += [looped("k", start, stop, one) for start, stop in beside if stop > start]


class InstanceWithLines(Instance):
    """An instance in a row, which reads lines at the ends of rows."""

    def __init__(self, kernel: Kernel, by_index: dict[ir.Index, ir.Expr], row: int, lines: EdgeLines | None) -> None:
        super().__init__(kernel, by_index)
        self.row, self.lines = row, lines

    def loaded(self, read: ir.Read, loc: Loc | None, out: list[ir.Stmt]) -> ir.Expr | None:
        lines = self.lines
        return lines.load(read, self.expr, self.row, out) if lines and lines.takes(read, self.row) else None


def line_of(read: ir.Read, row: int, part: int = 0) -> Line:
    """The line of a read, `row` rows further down."""
    assert read.point is not None
    across = tuple(lower(e, row) for e in read.point[:-1])
    return Line(read.field, across, read.element, read.border, read.fill, part)


def lower(at: ir.Expr, rows: int) -> ir.Expr:
    """A coordinate, `rows` rows further down."""
    return replace(at, offset=at.offset + rows) if isinstance(at, ir.Index) and at.axis == "row" else at


class EdgeReads:
    """The reads of a stage beside a vector's own columns, for several rows that are computed together.

    Attributes:
        interior: the first column, and the one behind the last, where no read leaves its field.
        along: the reads at constant distances from the columns of the lanes, with the bounds of these distances.
        spans: the least and the greatest offset of the columns of each line; 0 is included if it is near.
        parts: the part of its line that each read belongs to.
        shared: whether the rows are adjacent, so that they share lines.
    """

    def __init__(
        self,
        stage: Kernel,
        rows: int,
        apart: Collection[ir.FieldParam] = (),
        shared: bool = True,
        whole: Kernel | None = None,
    ) -> None:
        self.shared, self.whole = shared, whole or stage
        places = LanePositions(stage)
        self.columns, self.interior = stage.domain.extent("column"), places.interior(apart)
        self.spans: dict[Line, tuple[int, int]] = {}
        beside = [(read, at) for read, at in places.reads() if at is not None and at.varies and read.field not in apart]
        self.along = {read: (at.low, at.high) for read, at in beside if at.low is not None and at.high is not None}
        narrow = {read for read in self.along if read.field.type.field_shape[-1] < self.columns}
        reads = {read: span for read, span in self.along.items() if span[0] < 0 or span[1] > 0 or read in narrow}
        self.parts = _parts(reads)
        for read, (first, last) in reads.items():
            for line in (line_of(read, row, self.parts[read]) for row in range(rows if shared else 1)):
                near = first <= NEAR and last >= -NEAR
                low, high = self.spans.get(line, (0, 0) if near else (first, last))
                self.spans[line] = min(low, first), max(high, last)

    def vector(self, first: ir.Expr, lanes: int, copies: Copies) -> ir.Block:
        """The statements for a vector whose columns begin at `first`, all of which lie in the row."""
        start, end = self.interior
        if (start, end) == (0, self.columns):
            return self.one_by_one(first, lanes, copies, True)
        if end - start < lanes:
            return self.at_edge(first, lanes, copies)
        out, within = list[ir.Stmt](), list[ir.Stmt]()
        b, c = collector(out), collector(within)
        last = b.bind(extent(self.whole, "column", self.columns - end + lanes))
        tests = [b.apply("ge", first, start)] if start else []
        tests += [b.apply("le", first, last)] if end < self.columns else []
        inside = b.apply("and", *tests) if len(tests) > 1 else tests[0]
        within += self.one_by_one(self.inside(first, start, last, c), lanes, copies, True)
        edge = (ir.Comment("neighbours may lie beyond an edge"), *self.at_edge(first, lanes, copies))
        return (*out, ir.If(inside, tuple(within), edge))

    @staticmethod
    def inside(first: ir.Expr, start: int, last: ir.Expr | int, b: Builder) -> ir.Expr:
        """The first column, which lies between these two, in a form that shows so: reads then need no borders."""
        return b.apply("max", b.apply("min", first, last), start)

    def one_by_one(self, first: ir.Expr, lanes: int, copies: Copies, vectors: bool = False) -> ir.Block:
        lane, out = counter("lane"), list[ir.Stmt]()
        interleave(copies(first, ir.Ref(lane), None, out), out)
        return (counted(lane, 0, lanes, out, lanes=vectors),)

    def at_edge(self, first: ir.Expr, lanes: int, copies: Copies) -> ir.Block:
        lane, out, head = counter("lane"), list[ir.Stmt](), list[ir.Stmt]()
        interleave(copies(first, ir.Ref(lane), EdgeLines(self, lanes, first, ir.Ref(lane), head), out), out)
        return (*head, counted(lane, 0, lanes, out, lanes=True))


def _parts(reads: Mapping[ir.Read, tuple[int, int]]) -> dict[ir.Read, int]:
    """The part of its line for each read, the same for all rows: reads of columns near one another have the same part."""
    parts: dict[ir.Read, int] = {}
    behind: dict[Line, tuple[int, int]] = {}
    for read in sorted(reads, key=reads.__getitem__):
        low, high = reads[read]
        line = replace(line_of(read, 0), across=())
        part, end = behind.get(line, (0, high))
        part += low > end + NEAR
        parts[read], behind[line] = part, (part, max(end, high))
    return parts


# instantiates a stage at a lane behind the first column: returns the statements of each row
Copies = Callable[[ir.Expr, ir.Expr, EdgeLines | None, list[ir.Stmt]], list[list[ir.Block]]]


def interleave(copies: list[list[ir.Block]], out: list[ir.Stmt]) -> None:
    """Append the rows statement by statement, so that shared values and loads have short live ranges."""
    for several in zip(*copies, strict=True):
        out += (stmt for block in several for stmt in block)
