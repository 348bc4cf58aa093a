"""Thread coarsening on GPUs for rows that are read at an offset, as in concatenations: a thread has several neighbouring columns.

A thread writes its columns in one access, and reads aligned rows in whole accesses too. Where rows are not aligned alike, the
columns of a thread begin in each row at the aligned place before its first one. Rows of 10 columns, 4 in an access:

    memory     | 0 1 2 3 | 4 5 6 7 | 8 9 . . | . . . . | . . . . |
    row 0        0 1 2 3   4 5 6 7   8 9
    row 1                                0 1   2 3 4 5   6 7 8 9
    threads    |    0    |    1    |    2    |                      row 0: columns 0, 4 and 8 come first
                                   |    0    |    1    |    2    |  row 1: columns -2, 2 and 6 come first

The columns at the ends of rows, 8 and 9 of row 0 and 0 and 1 of row 1, are computed one by one. Where conditions divide rows
into parts (`row_parts.py`), each part has code of its own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import Copier, expressions, walk, walk_expr
from gpuop.passes.coarsen import COLUMN, Coarsening
from gpuop.passes.coarsening_factor import (
    ACCESS,
    ONE_BY_ONE,
    PointsPerThread,
    is_own,
    is_plain,
    lanes_of_accesses,
    places,
    refusal_of_thread,
)
from gpuop.passes.instantiate import Instance, indices_at, without_tables
from gpuop.passes.loops import counted, counter, numbered
from gpuop.passes.schedules.common.grid_walk import accesses
from gpuop.passes.schedules.common.lane_positions import LanePositions
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.common.register_windows import Span, refused_reads
from gpuop.passes.schedules.common.row_parts import RowPart, parts_of_rows


class RowValues(Copier):
    """Copies the statements that compute such values, to go before those of the points."""

    def __init__(self, kernel: Kernel) -> None:
        self.invariant_vars: set[ir.Var] = set()
        invariants = []
        for stmt in kernel.body:
            if isinstance(stmt, ir.Let) and not stmt.var.mutable and self.has(stmt.value):
                invariants.append(stmt)
                self.invariant_vars.add(stmt.var)
        super().__init__(tuple(invariants))

    def has(self, expr: ir.Expr) -> bool:
        """Return whether an expression is the same for all points of a row."""
        return all(map(self._has, walk_expr(expr)))

    def _has(self, e: ir.Expr) -> bool:
        if isinstance(e, ir.Ref):
            return e.var in self.invariant_vars
        return e.axis != "column" if isinstance(e, ir.Index) else not isinstance(e, (ir.Read, ir.Load))


MOST_SIDES = 2  # nested conditions on rows whose branches get code of their own
MOST_READS = 4  # reads of a point: with more, neighbours share loads, and caches serve them


def refuse(kernel: Kernel) -> str:
    if kernel.machine.widening != "unrolled":
        return ONE_BY_ONE
    if kernel.intermediates:
        return "it has stages"
    if without_tables(kernel) != kernel.body:
        return "it has tables"
    if not kernel.domain.shape or kernel.whole:
        return "its grid has no rows"
    if reason := refusal_of_thread(kernel) or _reads(kernel):
        return reason
    if (count := lanes_of_accesses(kernel)[0]) == 1:
        return lanes_of_accesses(kernel)[1]
    unaligned = kernel.domain.extent("column") % count > 0
    if not kernel.aligned(count) or (kernel.layouts and unaligned):
        return "an array of the user is not aligned"
    planes = max(field.type.planes for field in (*kernel.inputs, *kernel.written) if is_own(field))
    return "its planes are not aligned alike" if planes > 1 and unaligned else ""


def _reads(kernel: Kernel) -> str:
    if not refused_reads(kernel):
        return "its points read windows around them"
    reads = {e for e in expressions(kernel.body) if isinstance(e, ir.Read) and is_own(e.field)}
    neighbours = [read for read in reads if read.point is not None]
    if not neighbours:
        return "it reads no points but its own"
    loops = (stmt.body for stmt in walk(kernel.body) if isinstance(stmt, ir.For))
    if any(isinstance(e, ir.Read) for body in loops for e in expressions(body)):
        return "its threads read row after row in loops, and fewer threads would wait for memory"
    if any(read.field.type.field_shape != kernel.domain.shape for read in reads if read.point is None):
        return "it reads points of another grid"
    if not all(is_plain(read.field, read.element, kernel) for read in reads):
        return "it reads computed elements of tensors"
    for part in parts_of(kernel):
        lanes = LanePositions(part.kernel)
        if refused := lanes.obstacle():
            return refused
        if len({read for read, _ in lanes.reads()}) > MOST_READS:
            return f"its points read more than {MOST_READS} others"
    return ""


def parts_of(kernel: Kernel) -> list[RowPart]:
    """The parts of a row: one at least."""
    return parts_of_rows(kernel) or [RowPart(0, kernel.domain.extent("column"), kernel)]


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    count = lanes_of_accesses(kernel)[0]
    return tuple({"columns": n} for n in (count, count // 2) if n > 1)


def legalize(kernel: Kernel, parameters: Parameters) -> Parameters:
    return {"columns": max(min(1 << parameters["columns"].bit_length() - 1, lanes_of_accesses(kernel)[0]), 2)}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return ShiftedRows(kernel, parameters["columns"]).kernel()


class ShiftedRows(Coarsening):
    """Builds the kernel.

    Attributes:
        columns: the columns of a row.
        unaligned: whether rows are not aligned alike.
        shifted: for reads beside a thread's own columns the array that whole accesses fill, and the offset of its first column.
    """

    def __init__(self, kernel: Kernel, count: int) -> None:
        super().__init__(kernel, PointsPerThread(count, "wide"))
        self.columns = kernel.domain.extent("column")
        self.unaligned = self.columns % count > 0
        self.points += (count - 1) * self.unaligned
        self.shifted: dict[ir.Read, tuple[ir.Array, int]] = {}

    def first_point(self, b: Builder) -> ir.Expr:
        count, domain = self.thread.count, self.source.domain
        first = ir.Apply("mul", (COLUMN, constant(count, INT)), COLUMN.type)
        if not self.unaligned:
            return first
        behind: ir.Expr = constant(0, INT)
        for n, axis in enumerate(domain.axes[:-1], 1):
            along = b.apply("mul", ir.Index("global", axis), math.prod(domain.shape[n:]) % count)
            behind = b.apply("add", behind, along)
        return ir.Apply("sub", (b.bind(first), b.apply("and", behind, count - 1)), COLUMN.type)

    def computed(self) -> ir.Block:
        own: tuple[ir.Expr, ...] = (*self.rows, ir.Ref(self.first))
        code = (*accesses(self.loaded, own, True), *self.parts_code(), *accesses(self.stored, own, False))
        if not self.unaligned:
            return code
        out: list[ir.Stmt] = []
        test = self.are_within(0, self.columns, out)
        return (*out, ir.If(test, code, self.one_by_one()))

    def are_within(self, start: int, end: int, out: list[ir.Stmt]) -> ir.Expr:
        """Return whether all of a thread's columns lie between these."""
        b = collector(out)
        last = b.apply("le", ir.Ref(self.first), end - self.thread.count)
        return b.apply("and", b.apply("ge", ir.Ref(self.first), start), last) if start or self.unaligned else last

    def one_by_one(self) -> ir.Block:
        """The loop of a thread at the end of a row, over those of its columns that exist."""
        lane, out = counter("lane"), list[ir.Stmt]()
        b = collector(out, hint="point", temporary=False)
        point = b.apply("add", ir.Ref(self.first), ir.Ref(lane))
        test = collector(out)
        is_inside = test.apply("and", test.apply("ge", point, 0), test.apply("lt", point, self.columns))
        body = list[ir.Stmt]()
        self.at_column(point, body)
        return (counted(lane, 0, self.thread.count, [*out, ir.If(is_inside, tuple(body))]),)

    def at_column(self, column: ir.Expr, out: list[ir.Stmt]) -> None:
        """Append the statements of the user for a column."""
        values = indices_at(self.source, {"column": partial(collector(out).apply, "add", column)})
        out += Instance(self.source, {index: at for index, at in values.items() if index.axis == "column"}).copy()

    # --- parts of rows --------------------------------------------------------------------------------------------

    def parts_code(self) -> ir.Block:
        """The code of each part of a row, for threads whose columns, and the reads of these, all lie inside."""
        count, parts = self.thread.count, parts_of(self.source)
        body: ir.Block = (self.loop(self.body),)
        if len(parts) == 1 and self.unaligned:
            return body
        codes = [self.part(part) for part in parts]
        ends = [(start, end) for start, end, _ in codes]
        whole = ends == [(part.start, part.end) for part in parts] and not any(start % count for start, _ in ends)
        if whole and not self.unaligned:
            *codes, (_, _, body) = codes  # no thread has columns of several parts
        for start, end, inside in reversed(codes):
            if start + count <= end:
                out: list[ir.Stmt] = []
                test = self.are_within(start, end, out)
                body = (*out, ir.If(test, inside, body))
        return body

    def part(self, part: RowPart) -> tuple[int, int, ir.Block]:
        """The first column of a part of a row where its code is valid, the one behind the last, and the code."""
        limits = [part.start, part.end]
        body = self.sides(part.kernel, limits)
        return limits[0], limits[1], body

    def sides(self, kernel: Kernel, limits: list[int], depth: int = 0) -> ir.Block:
        """The code for the points of a kernel. A condition that is the same for a whole row selects code of its own.

        Args:
            limits: the first column where the code is valid and the one behind the last; narrowed by reads.
        """
        there, shared = copy.copy(self), RowValues(kernel)
        there.source, there.shifted, out = kernel, {}, list[ir.Stmt](shared.copy())
        for n, stmt in enumerate(kernel.body):
            if isinstance(stmt, ir.If) and shared.has(stmt.cond) and depth < MOST_SIDES and not self.unaligned:
                ways = [(*kernel.body[:n], *way, *kernel.body[n + 1 :]) for way in (stmt.then, stmt.orelse)]
                then, orelse = (self.sides(replace(kernel, body=way), limits, depth + 1) for way in ways)
                return (*out, ir.If(shared.expr(stmt.cond), then, orelse))
        for read, (low, high) in self.aligned_reads(kernel, shared).items():
            limits[0] = max(limits[0], -low)
            limits[1] = min(limits[1], read.field.type.field_shape[-1] - high + self.thread.count)
            there.shifted[read] = self.load(read, shared, (low, high), out)
        # in a part, reads that wrap around are reads of own points
        own = {place: self.array(place) for place in places(kernel)[0] if place not in self.loaded}
        out += [*map(ir.Declare, own.values()), *accesses(own, (*self.rows, ir.Ref(self.first)), True)]
        there.loaded = self.loaded | own
        return (*out, there.loop(there.body))

    def aligned_reads(self, kernel: Kernel, shared: RowValues) -> dict[ir.Read, tuple[int, int]]:
        """The reads that whole accesses load, with the span of columns of these accesses from a thread's first one on."""
        count, spans = self.thread.count, dict[ir.Read, tuple[int, int]]()
        top = [stmt.value for stmt in kernel.body if isinstance(stmt, (ir.Let, ir.Assign))]
        for read, place in LanePositions(kernel).reads():
            kind, layout = read.field.type, kernel.layout(read.field)
            if read not in top or place is None or not place.varies or place.low is None or not place.is_exact:
                continue
            plain = kind.planes == 1 and read.border in ("clamp", "unchecked") and not self.unaligned
            aligned = kind.field_shape[-1] % count == 0 and layout.aligned(count)
            small = kind.storage.bits // 8 * count <= ACCESS
            column = isinstance(read.point and read.point[-1], ir.Index)
            if plain and aligned and small and column and all(map(shared.has, (read.point or ())[:-1])):
                spans[read] = place.low // count * count, -(-place.low // count) * count + count
        return spans

    def load(self, read: ir.Read, shared: RowValues, reach: Span, out: list[ir.Stmt]) -> tuple[ir.Array, int]:
        """Load the columns of a read in whole accesses into one array."""
        assert read.point is not None
        low, high = reach
        kind, count, b = Type(read.field.type.storage), self.thread.count, collector(out, hint="at")
        lanes, extents = ir.Array(f"{read.field.hint}_row", kind, (high - low,)), read.field.type.field_shape
        across = zip(read.point[:-1], extents[:-1], strict=True)
        point = [b.apply("min", b.apply("max", shared.expr(e), 0), n - 1) for e, n in across]
        self.load_pieces(read.field, lanes, range(low, high, count), point, count, out)
        return lanes, low

    def load_pieces(
        self,
        field: ir.FieldParam,
        lanes: ir.Array,
        starts: Iterable[int],
        across: Iterable[ir.Expr],
        count: int,
        out: list[ir.Stmt],
    ) -> None:
        """Fill an array by accesses of `count` elements, which begin at these distances from the first column of a thread."""
        b = collector(out, hint="at")
        out.append(ir.Declare(lanes))
        for number, start in enumerate(starts):
            piece = ir.Array(f"{field.hint}_piece", lanes.type, (count,))
            there = (*across, b.apply("add", ir.Ref(self.first), start))
            out += [ir.Declare(piece), ir.Wide(field, piece, True, there)]
            out += numbered("k", 0, count, partial(_move, piece, lanes, number * count))

    def other_point(self, read: ir.Read, lane: ir.Expr, b: Builder) -> ir.Expr | None:
        if read not in self.shifted:
            return None
        (array, low), column = self.shifted[read], (read.point or ())[-1]
        assert isinstance(column, ir.Index)
        return ir.Load(array, (b.apply("add", lane, column.offset - low),), array.type)


def _move(piece: ir.Array, lanes: ir.Array, first: int, k: ir.Expr, out: list[ir.Stmt]) -> None:
    b = collector(out)
    out.append(ir.Store(lanes, (b.apply("add", k, first),), b.bind(ir.Load(piece, (k,), piece.type))))


SHIFTED_ROWS = Method("shifted rows", ("columns",), refuse, candidates, legalize, apply)
