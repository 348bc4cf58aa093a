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
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from gpuop.base.errors import Loc
from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.analysis.affine import joined_bounds
from gpuop.ir.build import Builder, collector
from gpuop.ir.kernel import Kernel
from gpuop.ir.ops import OPS
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import expressions, operands, walk
from gpuop.passes.instantiate import Instance, indices_at, without_tables
from gpuop.passes.loops import counted, counter
from gpuop.passes.schedules.common.lane_positions import KnownPositions
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.cpu.edge_vectors import interleave
from gpuop.passes.schedules.cpu.vector_rows import RowsOfVectors, legalize, most_rows, refused_joining
from gpuop.passes.vectorization_legality import obstacle, refused_doubles

PERIODS = (1, 2, 4, 8, 16)  # points after which an integer has grown by a constant
ALIGNED = 16  # a multiple of all periods
SHORTEST = 8 * ALIGNED  # least points along an axis
MOST_POINTS = 1 << 25  # points along an axis: the host computes an integer for each, of every variable


@dataclass(frozen=True)
class AxisInteger:
    """An integer along an axis: a number for each point, plus one that all points have in common.

    Attributes:
        steps: the numbers of the points.
        low, high: the bounds of the common summand; None where they are not known.
    """

    steps: NDArray[np.int64]
    low: int | None
    high: int | None

    @property
    def exact(self) -> bool:
        return self.low is not None and self.low == self.high

    @property
    def values(self) -> NDArray[np.int64]:
        """The integer at each point, if it is exact."""
        return self.steps + (self.low or 0)

    @cached_property
    def is_common(self) -> bool:
        return not np.any(self.steps != self.steps[0])

    @cached_property
    def pattern(self) -> Pattern | None:
        """The pattern in the middle of the axis; None where there is none, or the axis is short."""
        if len(self.steps) < SHORTEST:
            return None
        middle = len(self.steps) // 2 // ALIGNED * ALIGNED
        for period in PERIODS:
            table = self.steps[middle : middle + period]
            advance = int(self.steps[middle + period] - self.steps[middle])
            guess = Pattern(period, advance, tuple(int(k) - advance * (middle // period) for k in table))
            near = slice(middle - ALIGNED, middle + 2 * ALIGNED)
            if np.array_equal(guess.steps(len(self.steps))[near], self.steps[near]):
                return guess
        return None

    @cached_property
    def everywhere(self) -> Pattern | None:
        """The pattern of an integer that changes along the axis, if it holds up to the ends."""
        if not self.exact or self.is_common or self.pattern is None:
            return None
        return self.pattern if np.array_equal(self.pattern.steps(len(self.steps)), self.steps) else None


@dataclass(frozen=True)
class Pattern:
    """`advance` more after each `period` of points, within which the numbers are those of `table`."""

    period: int
    advance: int
    table: tuple[int, ...]

    def steps(self, count: int) -> NDArray[np.int64]:
        at = np.arange(count)
        return np.array(self.table)[at % self.period] + at // self.period * self.advance

    def ahead(self, lanes: int) -> tuple[int, ...]:
        """The distances of lanes from the first one, whose point is a multiple of the period."""
        return tuple(int(k) - self.table[0] for k in self.steps(lanes))

    @property
    def is_own(self) -> bool:
        """Return whether it is the coordinate of the point, or one at a constant distance."""
        return self.period == self.advance == 1

    def at(self, b: Builder, place: ir.Expr, further: int, added: int) -> ir.Expr:
        """The integer at a distance from a point that is a multiple of the period, plus a number."""
        periods = b.apply("div", place, self.period) if self.period > 1 else place
        rest = self.table[further % self.period] + further // self.period * self.advance + added
        return b.apply("add", b.apply("mul", periods, self.advance), rest)


class AxisPatterns(KnownPositions[AxisInteger]):
    """The integers of a kernel's variables along an axis."""

    def __init__(self, kernel: Kernel, axis: str) -> None:
        self.axis, self.count = axis, kernel.domain.extent(axis)
        self.zeros = np.zeros(self.count, np.int64)
        super().__init__(kernel)

    def between(self, low: int, high: int) -> AxisInteger:
        return AxisInteger(self.zeros, low, high)

    def of(self, expr: ir.Expr) -> AxisInteger | None:
        match expr:
            case ir.Const(value=value) if expr.type.kind in "iub":
                return AxisInteger(self.zeros, int(value), int(value))
            case ir.Index(kind="global", axis=axis, offset=offset) if axis == self.axis:
                return AxisInteger(np.arange(self.count) + offset, 0, 0)
            case ir.Ref(var=var):
                return self.positions.get(var)
            case ir.Read(point=None):
                return AxisInteger(self.zeros, None, None) if expr.field.by_value else None
            case ir.Load(memory=ir.Array() as array) if array.space != "constant":
                return None
        args = [self.of(e) for e in operands(expr)]
        integers = [each for each in args if each is not None]
        if len(integers) < len(args):
            return None
        if all(each.is_common for each in integers) and not (integers and all(each.exact for each in integers)):
            return AxisInteger(self.zeros, *self.bounds(expr, integers))
        return self.computed(expr, integers)

    def computed(self, expr: ir.Expr, integers: list[AxisInteger]) -> AxisInteger | None:
        """The result of an operation on integers, where one at least changes along the axis or all are known."""
        match expr:
            case ir.Apply(op="add" | "sub" as op, args=(x, _)) if x.type.integer and expr.type.integer:
                sign = 1 if op == "add" else -1
                return AxisInteger(integers[0].steps + sign * integers[1].steps, *self.bounds(expr, integers))
            case ir.Apply(op=op, args=args) if all(each.exact for each in integers) and expr.type.kind in "iub":
                if all(a.type.kind in "iub" and a.type.lanes == 1 for a in args):
                    values = [k.values.astype(a.type.dtype.numpy) for k, a in zip(integers, args, strict=True)]
                    return AxisInteger(np.asarray(OPS[op].numpy(*values)).astype(np.int64) + self.zeros, 0, 0)
            case ir.Cast(arg=arg, type=type_) if type_.integer and arg.type.kind in "iub" and integers[0].exact:
                (k,) = integers
                return AxisInteger(k.values.astype(type_.dtype.numpy).astype(np.int64), 0, 0)
        return AxisInteger(self.zeros, None, None) if all(each.is_common for each in integers) else None

    @staticmethod
    def bounds(expr: ir.Expr, integers: list[AxisInteger]) -> tuple[int | None, int | None]:
        """The bounds of a sum; other operations on common integers have none."""
        if not isinstance(expr, ir.Apply) or expr.op not in ("add", "sub"):
            return None, None
        x, y = integers
        return joined_bounds(expr.op, (x.low, x.high), (y.low, y.high))

    def is_common(self, expr: ir.Expr) -> bool:
        value = self.of(expr)
        return value is not None and value.is_common

    def interior(self) -> tuple[int, int, int]:
        """The first column of the middle of a row, the one behind its last, and the longest period, of which both are multiples.

        In the middle all columns that are read follow their patterns, inside of their fields.
        """
        good, longest = np.ones(self.count, np.bool_), 1
        for read, along in self.reads():
            pattern = along.pattern if along is not None else None
            if along is None or pattern is None or along.is_common:
                continue
            assert along.low is not None and along.high is not None
            n, steps, longest = read.field.type.field_shape[-1], along.steps, max(longest, pattern.period)
            good &= (steps == pattern.steps(self.count)) & (steps + along.low >= 0) & (steps + along.high < n)
        bad, middle = np.flatnonzero(~good), self.count // 2
        first = int(max(bad[bad < middle], default=-1)) + 1
        end = int(min(bad[bad >= middle], default=self.count))
        return -(-first // longest) * longest, end // longest * longest, longest


@lru_cache(maxsize=2)
def axis_patterns(kernel: Kernel, axis: str) -> AxisPatterns:
    """The integers along an axis; cached, because a kernel is scheduled soon after the question whether the schedule suits."""
    return AxisPatterns(kernel, axis)


COLUMN = ir.Index("global", "column")
NEAR, SHORT = "it reads neighbours, or its own points", "its rows are too short for vectors away from the borders"
FARTHEST = 64  # distance between the elements of the first and the last lane from which on the loads cost too much


def refuse(kernel: Kernel) -> str:
    if kernel.machine.vector_length == 1:
        return "the device has no vectors"
    if kernel.intermediates:
        return "it has stages"
    if kernel.domain.extent("column") < SHORTEST:
        return SHORT
    if max(kernel.domain.extent("column"), kernel.domain.extent("row")) > MOST_POINTS:
        return "its axes are too long to look at each of their points"
    reason = refused_doubles(kernel) or refused_joining(kernel) or obstacle(without_tables(kernel)) or _reads(kernel)
    if reason:
        return reason
    first, end, _ = axis_patterns(kernel, "column").interior()
    return (
        ""
        if end - first >= kernel.machine.vector_length
        else "its rows are too short for vectors away from the borders"
    )


def _reads(kernel: Kernel) -> str:
    if any(isinstance(e, ir.Load) for e in expressions(kernel.body)):
        return "it has arrays"
    reads = [e for e in expressions(kernel.body) if isinstance(e, ir.Read) and e.point is not None]
    if all(isinstance(at, (ir.Index, ir.Const)) for e in reads for at in e.point or ()):
        return NEAR
    lanes, columns = kernel.machine.vector_length, [along for _, along in axis_patterns(kernel, "column").reads()]
    patterns = [along.pattern for along in columns if along is not None and not along.is_common]
    is_unknown = any(along is None or (not along.is_common and along.low is None) for along in columns)
    if is_unknown or any(p is None or p.period > lanes or np.ptp(p.ahead(lanes)) >= FARTHEST for p in patterns):
        return "it reads at places that do not follow the columns"
    rows = (axis_patterns(kernel, "row").of(at) for e in reads for at in (e.point or ())[-2:-1])
    patterns += [along.everywhere for along in rows if along is not None]
    return NEAR if all(p is None or p.is_own for p in patterns) else ""


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    """The numbers of rows of a thread, which share loads."""
    return tuple({"rows": rows} for rows in (4, 2, 1) if rows <= most_rows(kernel))


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return _Resampled(kernel, parameters["rows"]).kernel()


class _Resampled(RowsOfVectors):
    def __init__(self, kernel: Kernel, rows: int) -> None:
        super().__init__(kernel, kernel.machine.vector_length, rows)
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
        lane, out = counter("lane"), list[ir.Stmt]()
        copies = [self.copy(row, None, ir.Ref(lane), out) for row in range(self.rows)]
        interleave(copies, out)
        return counted(lane, 0, self.lanes, out, lanes=True)

    def ends(self, start: int, end: int) -> ir.Block:
        """The columns at the ends of a row, where borders break the pattern."""
        outside = self.patterns.count - (end - start)
        if not outside:
            return ()
        k, row, out = counter("k"), counter("i"), list[ir.Stmt]()
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
