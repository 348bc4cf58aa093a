"""Rows that are read some columns further, on GPUs, as where fields are put side by side: a thread has several neighbours.

It writes them at once: where rows are not aligned alike, its columns begin in each at the aligned place before its first one.
What it reads of aligned rows is loaded at once too. Where conditions say in which part of a row a point is, each part has its code.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import expressions, walk
from gpuop.passes.coarsen import COLUMN, Widening
from gpuop.passes.coarsening_factor import (
    ACCESS,
    ONE_BY_ONE,
    Place,
    PointsPerThread,
    is_own,
    is_plain,
    lanes_of_accesses,
    places,
    refusal_of_thread,
)
from gpuop.passes.schedules.common.grid_walk import numbered
from gpuop.passes.schedules.common.instantiate import Placed, positions, without_tables
from gpuop.passes.schedules.common.lane_positions import LanePlaces
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.common.register_windows import Span, refused_reads
from gpuop.passes.schedules.common.row_invariants import RowValues
from gpuop.passes.schedules.common.row_parts import RowPart, parts_of_rows

MOST_SIDES = 2  # conditions that rows are told apart by
MOST_READS = 4  # of a point: neighbours of more share what they read, which caches know


def refuse(kernel: Kernel) -> str:
    assert kernel.target is not None
    if kernel.target.widening != "unrolled":
        return ONE_BY_ONE
    if kernel.intermediates:
        return "it has stages"
    if without_tables(kernel) != kernel.body:
        return "it has tables"
    if not kernel.domain.shape or kernel.whole:
        return "its grid has no rows"
    if found := refusal_of_thread(kernel) or _reads(kernel):
        return found
    if (count := lanes_of_accesses(kernel)[0]) == 1:
        return lanes_of_accesses(kernel)[1]
    ragged = kernel.domain.extent("column") % count > 0
    if not kernel.aligned(count) or (kernel.layouts and ragged):
        return "an array of the user's is not aligned"
    planes = max(field.type.planes for field in (*kernel.inputs, *kernel.written) if is_own(field))
    return "its planes are not aligned alike" if planes > 1 and ragged else ""


def _reads(kernel: Kernel) -> str:
    if not refused_reads(kernel):
        return "what its points read are windows around them"
    reads = {e for e in expressions(kernel.body) if isinstance(e, ir.Read) and is_own(e.field)}
    beside = [read for read in reads if read.point is not None]
    if not beside:
        return "it reads no points but its own"
    if any(
        isinstance(stmt, ir.For) and any(isinstance(e, ir.Read) for e in expressions(stmt.body))
        for stmt in walk(kernel.body)
    ):
        return "its threads read row after row in loops, and fewer threads would wait for memory"
    if any(read.field.type.field_shape != kernel.domain.shape for read in reads if read.point is None):
        return "it reads points of another grid"
    if not all(is_plain(read.field, read.element, kernel) for read in reads):
        return "it reads computed elements of tensors"
    for part in parts_of(kernel):
        found = LanePlaces(part.kernel)
        if refused := found.obstacle():
            return refused
        if len({read for read, _ in found.reads()}) > MOST_READS:
            return f"its points read more than {MOST_READS} others"
    return ""


def parts_of(kernel: Kernel) -> list[RowPart]:
    """The parts of a row, of which it is one at least."""
    return parts_of_rows(kernel) or [RowPart(0, kernel.domain.extent("column"), kernel)]


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    count = lanes_of_accesses(kernel)[0]
    return tuple({"columns": n} for n in (count, count // 2) if n > 1)


def taken(kernel: Kernel, parameters: Parameters) -> Parameters:
    return {"columns": max(min(1 << parameters["columns"].bit_length() - 1, lanes_of_accesses(kernel)[0]), 2)}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return ShiftedRows(kernel, parameters["columns"]).kernel()


class ShiftedRows(Widening):
    """Builds what a thread does.

    Attributes:
        columns: of a row.
        ragged: whether rows begin at places that are not aligned alike.
        shifted: the arrays of what is loaded at once beside a thread's own columns, and how far behind its first one these begin.
    """

    def __init__(self, kernel: Kernel, count: int) -> None:
        super().__init__(kernel, PointsPerThread(count, "wide"))
        self.columns = kernel.domain.extent("column")
        self.ragged = self.columns % count > 0
        self.points += (count - 1) * self.ragged
        self.shifted: dict[ir.Read, tuple[ir.Array, int]] = {}

    def first_point(self, b: Builder) -> ir.Expr:
        count, domain = self.thread.count, self.source.domain
        first = ir.Apply("mul", (COLUMN, constant(count, INT)), COLUMN.type)
        if not self.ragged:
            return first
        behind: ir.Expr = constant(0, INT)
        for n, axis in enumerate(domain.axes[:-1], 1):
            behind = b.apply(
                "add", behind, b.apply("mul", ir.Index("global", axis), math.prod(domain.shape[n:]) % count)
            )
        return ir.Apply("sub", (b.bind(first), b.apply("and", behind, count - 1)), COLUMN.type)

    def computed(self) -> ir.Block:
        whole = (*self.at_once(self.loaded, True), *self.of_parts(), *self.at_once(self.stored, False))
        if not self.ragged:
            return whole
        out: list[ir.Stmt] = []
        test = self.within(0, self.columns, out)
        return (*out, ir.If(test, whole, self.one_by_one()))

    def within(self, start: int, end: int, out: list[ir.Stmt]) -> ir.Expr:
        """Whether all of a thread's columns are some of these."""
        b = collector(out)
        last = b.apply("le", ir.Ref(self.first), end - self.thread.count)
        return b.apply("and", b.apply("ge", ir.Ref(self.first), start), last) if start or self.ragged else last

    def at_once(self, arrays: dict[Place, ir.Array], loads: bool) -> list[ir.Stmt]:
        """Of the thread's own columns."""
        point: tuple[ir.Expr, ...] = (*self.rows, ir.Ref(self.first))
        return [ir.Wide(field, array, loads, point, element) for (field, element), array in arrays.items()]

    def one_by_one(self) -> ir.Block:
        """What a thread at the end of a row does, for those of its columns that are there."""
        lane, out = ir.Var("lane", Type(INT)), list[ir.Stmt]()
        b = collector(out, hint="point", temporary=False)
        point = b.apply("add", ir.Ref(self.first), ir.Ref(lane))
        test = collector(out)
        inside = test.apply("and", test.apply("ge", point, 0), test.apply("lt", point, self.columns))
        body = list[ir.Stmt]()
        used = positions(self.source, self.source.domain)
        found = {e: at for e in used if (at := self.position(e, point, collector(body))) is not None}
        body += Placed(self.source, found).copy()
        start, stop, step = (constant(n, INT) for n in (0, self.thread.count, 1))
        return (ir.For(lane, start, stop, step, (*out, ir.If(inside, tuple(body)))),)

    def position(self, index: ir.Index, point: ir.Expr, b: Builder) -> ir.Expr | None:
        """What an index is at a column of the user's grid; None where it is the same for all."""
        if index.axis != "column":
            return None
        if index.kind == "global_size":
            return constant(self.columns, INT)
        return b.apply("add", point, index.offset)

    # --- parts of rows --------------------------------------------------------------------------------------------

    def of_parts(self) -> ir.Block:
        """In each part of a row for threads whose columns all lie there, and in the fields that are read there."""
        count, parts = self.thread.count, parts_of(self.source)
        body: ir.Block = (self.loop(self.body),)
        if len(parts) == 1 and self.ragged:
            return body
        found = [self.part(part) for part in parts]
        ends = [(start, end) for start, end, _ in found]
        if (
            not self.ragged
            and ends == [(part.start, part.end) for part in parts]
            and not any(a % count for a, _ in ends)
        ):
            *found, (_, _, body) = found  # no thread has columns of several parts
        for start, end, inside in reversed(found):
            if start + count <= end:
                out: list[ir.Stmt] = []
                test = self.within(start, end, out)
                body = (*out, ir.If(test, inside, body))
        return body

    def part(self, part: RowPart) -> tuple[int, int, ir.Block]:
        """What is done in a part of a row, and from which column on to which."""
        limits = [part.start, part.end]
        body = self.sides(part.kernel, limits)
        return limits[0], limits[1], body

    def sides(self, kernel: Kernel, limits: list[int], depth: int = 0) -> ir.Block:
        """The points of a kernel; where all those of a row are on one side of a condition, of each side's kernel."""
        there, shared = copy.copy(self), RowValues(kernel)
        there.source, there.shifted, out = kernel, {}, list[ir.Stmt](shared.copy())
        for n, stmt in enumerate(kernel.body):
            if isinstance(stmt, ir.If) and shared.has(stmt.cond) and depth < MOST_SIDES and not self.ragged:
                ways = [(*kernel.body[:n], *way, *kernel.body[n + 1 :]) for way in (stmt.then, stmt.orelse)]
                then, orelse = (self.sides(replace(kernel, body=way), limits, depth + 1) for way in ways)
                return (*out, ir.If(shared.expr(stmt.cond), then, orelse))
        for read, (low, high) in self.aligned_reads(kernel, shared).items():
            limits[0] = max(limits[0], -low)
            limits[1] = min(limits[1], read.field.type.field_shape[-1] - high + self.thread.count)
            there.shifted[read] = self.load(read, shared, (low, high), out)
        own = {
            place: self.array(place) for place in places(kernel)[0] if place not in self.loaded
        }  # there, what wraps is own
        out += [*map(ir.Declare, own.values()), *self.at_once(own, True)]
        there.loaded = self.loaded | own
        return (*out, there.loop(there.body))

    def aligned_reads(self, kernel: Kernel, shared: RowValues) -> dict[ir.Read, tuple[int, int]]:
        """What is loaded in whole accesses, and the columns of these: the first and the one behind the last, from a thread's
        first one on."""
        count, found = self.thread.count, dict[ir.Read, tuple[int, int]]()
        top = [stmt.value for stmt in kernel.body if isinstance(stmt, (ir.Let, ir.Assign))]
        for read, place in LanePlaces(kernel).reads():
            kind, layout = read.field.type, kernel.layout(read.field)
            if read not in top or place is None or not place.varies or place.low is None or not place.is_exact:
                continue
            plain = kind.planes == 1 and read.border in ("clamp", "unchecked") and not self.ragged
            aligned = kind.field_shape[-1] % count == 0 and layout.aligned(count)
            small = kind.storage.bits // 8 * count <= ACCESS
            column = isinstance(read.point and read.point[-1], ir.Index)
            if plain and aligned and small and column and all(map(shared.has, (read.point or ())[:-1])):
                found[read] = place.low // count * count, -(-place.low // count) * count + count
        return found

    def load(self, read: ir.Read, shared: RowValues, reach: Span, out: list[ir.Stmt]) -> tuple[ir.Array, int]:
        """Load what a thread reads, in as many accesses as that takes."""
        assert read.point is not None
        low, high = reach
        kind, count, b = Type(read.field.type.storage), self.thread.count, collector(out, hint="at")
        lanes, extents = ir.Array(f"{read.field.hint}_row", kind, (high - low,)), read.field.type.field_shape
        across = zip(read.point[:-1], extents[:-1], strict=True)
        point = [b.apply("min", b.apply("max", shared.expr(e), 0), n - 1) for e, n in across]
        out.append(ir.Declare(lanes))
        for start in range(low, high, count):
            piece = ir.Array(f"{read.field.hint}_piece", kind, (count,))
            there = (*point, b.apply("add", ir.Ref(self.first), start))
            out += [ir.Declare(piece), ir.Wide(read.field, piece, True, there)]

            def kept(k: ir.Expr, out: list[ir.Stmt], piece: ir.Array = piece, start: int = start) -> None:
                b = collector(out)
                out.append(ir.Store(lanes, (b.apply("add", k, start - low),), b.bind(ir.Load(piece, (k,), kind))))

            out += numbered("k", 0, count, kept)
        return lanes, low

    def beside(self, read: ir.Read, lane: ir.Expr, b: Builder) -> ir.Expr | None:
        if read not in self.shifted:
            return None
        (array, low), column = self.shifted[read], (read.point or ())[-1]
        assert isinstance(column, ir.Index)
        return ir.Load(array, (b.apply("add", lane, column.offset - low),), array.type)


SHIFTED_ROWS = Method("shifted rows", ("columns",), refuse, candidates, taken, apply)
