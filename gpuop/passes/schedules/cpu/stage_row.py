"""The statements of a stage for one row, with circular buffers instead of intermediates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from gpuop.base.errors import Loc
from gpuop.ir.analysis.footprints import footprints
from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder, collector
from gpuop.ir.extents import extent
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Block, Expr, FieldParam, Index, Load, Read, Ref, Stmt, Store, Write
from gpuop.ir.visit import expressions
from gpuop.passes.coarsening_factor import is_own
from gpuop.passes.instantiate import indices_at, own_point
from gpuop.passes.schedules.cpu.circular_buffers import AxisPosition, CircularBuffer, CircularBuffers
from gpuop.passes.schedules.cpu.edge_vectors import EdgeLines, InstanceWithLines
from gpuop.passes.schedules.cpu.stage_leads import Lead

REGISTERS = 32  # vector registers
Rows = tuple[tuple[Expr, ...], Expr | None]  # indices into a buffer without the column, and a test that they lie inside


@dataclass(frozen=True)
class Columns:
    """The columns of a vector of a stage.

    Attributes:
        first: its first column, inside of the field.
        lane: the number of a column of the vector.
        wrapped: the distance of its columns in buffers from those in the field, where buffers go beyond the edges.
        lines: the lines of fields at their edges.
    """

    first: Expr
    lane: Expr
    wrapped: Expr | None
    lines: EdgeLines | None


class StageCopy:
    """A stage at one of the rows that it computes together.

    Attributes:
        spots: its position along the axes of buffers other than columns.
        slots: the indices of the new row of each intermediate.
    """

    def __init__(
        self, buffers: CircularBuffers, lead: Lead, row: int, spots: Mapping[str, AxisPosition], head: list[Stmt]
    ) -> None:
        self.buffers, self.lead, self.number, self.spots, self.head = buffers, lead, row, spots, collector(head)
        self.slots = {p: buffers.fresh(self.head, buffers.of[p], spots) for p in lead.kernel.written if p in buffers.of}
        self.rows: dict[tuple[FieldParam, tuple[int, ...], str], Rows] = {}
        at = {axis: partial(self.head.apply, "add", spot.wrapped) for axis, spot in spots.items()}
        self.by_index = indices_at(lead.kernel, at, buffers.source)

    def at(self, columns: Columns, out: list[Stmt]) -> list[Block]:
        """The statements at a column."""
        b, kernel = collector(out), self.lead.kernel
        at = {"column": lambda away: b.apply("add", b.apply("add", columns.first, away), columns.lane)}
        copier = _StageInstance(self, columns, indices_at(kernel, at, self.buffers.source) | self.by_index)
        return [copier.stmt(stmt) for stmt in kernel.body]

    def buffer_row(self, read: Read, point: Mapping[str, Expr], b: Builder) -> Rows:
        """The indices of the row of a read in its buffer, for a coordinate `point` inside of the field."""
        own = own_point(len(self.buffers.source.domain.shape))
        coordinates = dict(zip(self.buffers.source.domain.axes, read.point or own, strict=True))
        offsets = [e.offset for e in (coordinates[axis] for axis in self.spots) if isinstance(e, Index)]
        if len(offsets) < len(self.spots):
            return self._buffer_row(read, coordinates, point, b)
        key = read.field, tuple(offsets), read.border
        if key not in self.rows:
            self.rows[key] = self._buffer_row(read, coordinates, point, self.head)
        return self.rows[key]

    def _buffer_row(self, read: Read, coordinates: Mapping[str, Expr], point: Mapping[str, Expr], b: Builder) -> Rows:
        buffers, buffer, index, tests = self.buffers, self.buffers.of[read.field], list[Expr](), list[Expr]()
        for axis in self.spots:
            at, test = self.place(axis, coordinates[axis], point[axis], read.border, b)
            tests += [] if test is None else [test]
            if axis == buffers.walk:
                low = buffers.first - FARTHEST if buffers.wraps else 0
                index.append(buffer.slot(b, at, low))
            else:
                index.append(b.apply("sub", at, Ref(buffer.origin[axis])))
        test = None if not tests else tests[0] if len(tests) == 1 else b.apply("and", *tests)
        return tuple(index), test

    def place(self, axis: str, arg: Expr, point: Expr, border: str, b: Builder) -> tuple[Expr, Expr | None]:
        """A coordinate of a read in a buffer, and a test that it is inside where the border fills.

        Args:
            arg: the coordinate, as the stage has it.
            point: its value inside of the field.
        """
        spot, n = self.spots[axis], self.buffers.source.domain.extent(axis)
        is_index = isinstance(arg, Index)
        away = arg.offset if isinstance(arg, Index) else 0
        if self.buffers.wraps:
            at = b.apply("add", spot.at, away if is_index else b.apply("sub", point, spot.wrapped))
            return at, None
        at = b.apply("add", spot.at, away) if is_index else point
        low, high = (spot.low + away, spot.high + away) if is_index else (None, None)
        where = Coordinate(at, extent(self.buffers.source, axis), n, low, high)
        test = inside(b, where) if border == "fill" else None
        return place(b, where, "clamp" if border == "fill" else border), test


FARTHEST = 1 << 10  # upper limit of the rows before the first one that are read


class _StageInstance(InstanceWithLines):
    def __init__(self, copy: StageCopy, columns: Columns, by_index: dict[Index, Expr]) -> None:
        super().__init__(copy.lead.kernel, by_index, copy.number, columns.lines)
        self.place, self.columns, self.buffers = copy, columns, copy.buffers.of

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Read) and is_own(expr.field) and expr.border == "unchecked":
            expr = replace(expr, border="clamp")  # rows outside are computed too
        return super().expr(expr)

    def loaded(self, read: Read, loc: Loc | None, out: list[Stmt]) -> Expr | None:
        if read.field not in self.buffers:
            return super().loaded(read, loc, out)
        b, buffer, axes = collector(out, loc), self.buffers[read.field], self.place.buffers.source.domain.axes
        point = dict(zip(axes, map(self.expr, read.point or own_point(len(axes))), strict=True))
        rows, inner = self.place.buffer_row(read, point, b)
        at = self.column(point["column"], buffer, b)
        lanes: list[Expr] = [b.bind(Load(array, (*rows, at), array.type)) for array in buffer.arrays]
        if inner is not None and read.fill is not None:
            lanes = [b.apply("choose", inner, lane, read.fill) for lane in lanes]
        return b.pack(lanes)

    def column(self, at: Expr, buffer: CircularBuffer, b: Builder) -> Expr:
        """The index of a column in a buffer."""
        index = b.apply("sub", at, Ref(buffer.origin["column"]))
        return index if self.columns.wrapped is None else b.apply("add", index, self.columns.wrapped)

    def written(self, write: Write) -> Block:
        if write.field not in self.buffers:
            return super().written(write)
        out, buffer = list[Stmt](), self.buffers[write.field]
        b = collector(out, write.loc)
        at = self.column(self.by_index[Index("global", "column")], buffer, b)
        values = b.lanes(self.expr(write.value))
        slots = self.place.slots[write.field]
        stores = (Store(a, (*slots, at), v, write.loc) for a, v in zip(buffer.arrays, values, strict=True))
        return (*out, *stores)


def shares_rows(stage: Kernel) -> bool:
    """Whether neighbouring rows of a stage read common rows."""
    return any(f is not None and len(f.low) > 1 and f.high[-2] > f.low[-2] for f in footprints(stage).values())


def interleaved(stage: Kernel, copies: list[StageCopy]) -> list[list[StageCopy]]:
    """The groups of rows whose statements are interleaved: all rows, or each by itself where they share no loads and multiply much.

    Compilers compute the products of all interleaved rows before the first sum, and registers would not hold them.
    """
    products = sum(isinstance(e, Apply) and e.op in ("mul", "fma") for e in expressions(stage.body))
    separate = products * len(copies) > REGISTERS and not shares_rows(stage)
    return [[copy] for copy in copies] if separate else [copies]
