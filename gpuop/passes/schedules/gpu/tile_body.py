"""The body of a part at one point, with local memory and registers instead of fields."""

from __future__ import annotations

from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.types import BOOL, INT
from gpuop.passes.coarsening_factor import elements, is_own
from gpuop.passes.instantiate import Instance
from gpuop.passes.schedules.gpu.tile_chain import TilePart, distance
from gpuop.passes.schedules.gpu.tile_frame import Frame, TilePoint
from gpuop.passes.schedules.gpu.tile_windows import StripWindows

Lanes = dict[tuple[ir.FieldParam, ir.Expr], ir.Array]


class PointBody(Instance):
    """Copies the body of a part for one point.

    Args:
        windows: the register windows of the strip.
        stored: the arrays of values that are written in one access.
    """

    def __init__(self, frame: Frame, part: TilePart, at: TilePoint, windows: StripWindows, stored: Lanes) -> None:
        super().__init__(part.kernel)
        self.frame, self.part, self.at = frame, part, at
        self.windows, self.stored = windows, stored
        self.pending: list[ir.Stmt] = []  # statements that go before the one that is being copied

    @property
    def b(self) -> Builder:
        return collector(self.pending, hint="at")

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        outer, self.pending = self.pending, []
        copied = super().stmt(stmt)
        before, self.pending = self.pending, outer
        return (*before, *copied)

    def position(self, index: ir.Index) -> ir.Expr:
        if index.kind == "global_size" and index.axis != "element":
            return constant(self.frame.source.domain.extent(index.axis), INT)
        return self.b.apply("add", self.at.real[index.axis], index.offset) if index.axis in self.at.real else index

    def expr(self, expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Apply(op="lt" | "ge", args=(ir.Index() as at, ir.Const() as bound)) if self._is_there(
                expr.op, at, int(bound.value)
            ):
                return constant(False, BOOL)
            case ir.Read(field=field) if is_own(field) and field.type.field_shape == self.frame.source.domain.shape:
                return self._read(expr)
        return super().expr(expr)

    def _is_there(self, op: str, at: ir.Index, bound: int) -> bool:
        """Whether an edge test is known to be false: a group in the interior reads nothing beyond that edge."""
        if not self.windows.inner or at.kind != "global" or at.axis not in self.at.real:
            return False
        low, high = self.part.span(self.frame.source.domain.axes.index(at.axis) - len(self.frame.source.domain.axes))
        beyond = self.frame.source.domain.extent(at.axis) - 1
        return at.offset - low >= bound if op == "lt" else beyond - high + at.offset < bound

    # --- reads --------------------------------------------------------------------------------------------------

    def _read(self, read: ir.Read) -> ir.Expr:
        away = distance(read) if read.field in self.part.near else None
        if away is not None:
            value = self._from_registers(read, away)
            if value is not None:
                return value
        if read.field in self.frame.tiles.arrays:
            return self._element(self._from_local(read, away), read)
        return self._from_field(read, away)

    def _from_registers(self, read: ir.Read, away: tuple[int, ...]) -> ir.Expr | None:
        """The value in registers; None where no window has it."""
        if read.field in self.frame.tiles.arrays:
            window = self.windows.by_element.get((read.field, None))
            return (
                None
                if window is None
                else self._element(self._from_window(window.array, window.rows, window.columns, away), read)
            )
        windows = [self.windows.by_element.get((read.field, e)) for e in elements(read.field, read.element)]
        loads = [self._from_window(w.array, w.rows, w.columns, away) for w in windows if w is not None]
        if not loads or len(loads) < len(windows):
            return None
        return loads[0] if len(loads) == 1 else ir.Pack(tuple(map(self.b.bind, loads)), read.type)

    def _from_window(
        self, array: ir.Array, rows: tuple[int, int], columns: tuple[int, int], away: tuple[int, ...]
    ) -> ir.Expr:
        down = away[-2] if len(away) > 1 else 0
        (row, lane), b = self.at.strip, self.b
        return ir.Load(
            array, (b.apply("add", row, down - rows[0]), b.apply("add", lane, away[-1] - columns[0])), array.type
        )

    def _from_local(self, read: ir.Read, away: tuple[int, ...] | None) -> ir.Expr:
        """The value in local memory."""
        array, region = self.frame.tiles.arrays[read.field], self.frame.tiles.of[read.field]
        before = {"row": region.computed.rows[0], "column": region.computed.columns[0]}
        index: dict[str, ir.Expr] = {"row": constant(0, INT)}
        for n, axis in enumerate(self.frame.axes, -len(self.frame.axes)):
            if away is not None:
                index[axis] = self.b.apply("add", self.at.tile[axis], away[n] + before[axis])
            elif read.point is not None:
                first = self.b.apply("sub", self.frame.first[axis], before[axis])
                index[axis] = self.b.apply("sub", self.expr(read.point[n]), first)
        return ir.Load(array, (index["row"], index["column"]), array.type)

    def _element(self, value: ir.Expr, read: ir.Read) -> ir.Expr:
        """The element that is read of a tensor. One with a computed index is selected: registers have no addresses."""
        if read.element is None or value.type.lanes == 1:
            return value
        b = self.b
        tensor = b.bind(value)
        if isinstance(read.element, ir.Const):
            return ir.Lane(tensor, int(read.element.value), read.type)
        *others, last = (b.bind(ir.Lane(tensor, k, read.type)) for k in range(value.type.lanes))
        at, result = self.expr(read.element), last
        for k, lane in reversed(list(enumerate(others))):
            result = b.apply("choose", b.apply("le", at, k), lane, result)
        return result

    def _from_field(self, read: ir.Read, away: tuple[int, ...] | None) -> ir.Expr:
        """The value in the field."""
        inner, virtual = self.windows.inner, self.part.rule is not None and self.frame.tiles.chain.virtual
        element = None if read.element is None else self.expr(read.element)
        border, fill, point = read.border, read.fill, read.point
        if point is None:
            border, fill = ("wrap" if virtual else "unchecked"), None
            where = self.frame.point(self.at.real)
        else:
            where = tuple(map(self.expr, point))
        if inner and away is not None and not any(away[:-2]):
            border, fill = "unchecked", None
        return ir.Read(read.field, read.type, where, element, border, fill)

    # --- writes -------------------------------------------------------------------------------------------------

    def written(self, write: ir.Write) -> ir.Block:
        value, b = self.expr(write.value), self.b
        array = self.frame.tiles.arrays.get(write.field)
        if array is not None:
            return self._stored(array, value, write)
        element = None if write.element is None else self.expr(write.element)
        lanes = [self.stored.get((write.field, e)) for e in elements(write.field, element)]
        arrays = [each for each in lanes if each is not None]
        if len(arrays) < len(lanes):
            return (ir.Write(write.field, value, self.frame.point(self.at.grid), element, write.loc),)
        values = b.lanes(value)
        return tuple(ir.Store(a, (self.at.strip[1],), v, write.loc) for a, v in zip(arrays, values, strict=True))

    def _stored(self, array: ir.Array, value: ir.Expr, write: ir.Write) -> ir.Block:
        """Store the value in local memory; outside of the grid the fill value of the border takes its place."""
        if self.at.inside and self.part.rule is not None and self.part.rule[1] is not None:
            test = self.at.inside[0]
            for more in self.at.inside[1:]:
                test = self.b.apply("and", test, more)
            value = self.b.apply("choose", test, value, self.part.rule[1])
        value = self.b.cast(value, array.type, saturate=False)  # a number spreads over a vector
        index = (self.at.region.get("row", constant(0, INT)), self.at.region["column"])
        return (ir.Store(array, index, value, write.loc),)
