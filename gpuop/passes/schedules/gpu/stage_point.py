"""The body of a stage at one point, for a walking thread."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuop.base.errors import Loc
from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT
from gpuop.passes.coarsening_factor import elements
from gpuop.passes.instantiate import Instance
from gpuop.passes.schedules.common.grid_walk import RowLoads
from gpuop.passes.schedules.common.register_windows import Windows, is_placed


@dataclass(frozen=True)
class StagePosition:
    """The position of a point that a thread computes.

    Attributes:
        row: the row of the iteration.
        behind: the number of rows between the iteration and one in which columns are aligned.
        lane: the number of the column among those of the stage.
        column: the distance of that column from the thread's first one.
        at: the row of the grid.
    """

    row: ir.Expr
    behind: ir.Expr
    lane: ir.Expr
    column: ir.Expr
    at: ir.Expr


class StagePoint(Instance):
    """Copies the body of a stage for one point. Reads load from the arrays of views; writes store to the arrays of `stored`, or
    to the views of later stages.
    """

    def __init__(
        self,
        kernel: Kernel,
        number: int,
        memory: tuple[Windows, RowLoads],
        stored: dict[tuple[ir.FieldParam, ir.Expr], ir.Array],
        place: StagePosition,
        out: list[ir.Stmt],
    ) -> None:
        self.windows, self.loads = memory
        super().__init__(self.windows.stages[number])
        self.domain, self.number, self.stored, self.place = kernel.domain, number, stored, place
        self.is_last = number == len(self.windows.stages) - 1
        self.known, self.head = {self.windows.axis: place.at}, collector(out, hint="at")
        if self.loads.walk.around is not None:
            beside = self.loads.walk.beside
            self.known[beside] = self.loads.across(self.head, beside)

    def along(self, axis: str) -> ir.Expr:
        """The coordinate of the point along an axis."""
        if axis == "column" and axis not in self.known:
            self.known[axis] = self.loads.column(self.head, self.place.column)
        return self.known.get(axis, ir.Index("global", axis))

    def position(self, index: ir.Index) -> ir.Expr:
        if index.axis not in ir.GRID_AXES:
            return index
        extent = self.domain.extent(index.axis)
        if index.kind == "global_size":
            return constant(extent, INT)
        at, walk = self.along(index.axis), self.loads.walk
        outside = not walk.interior and (not self.is_last or walk.slack)
        if outside and index.axis in self.known:  # a point outside is computed too, but its value is not used
            at = self.head.apply("min", self.head.apply("max", at, 0), extent - 1)
        return self.head.apply("add", at, index.offset)

    def loaded(self, read: ir.Read, loc: Loc | None, out: list[ir.Stmt]) -> ir.Expr | None:
        if not is_placed(read):
            return None
        b = collector(out, loc)
        loads = [b.bind(self.load(read, element, b)) for element in elements(read.field, read.element)]
        return loads[0] if len(loads) == 1 else ir.Pack(tuple(loads), read.type)

    def load(self, read: ir.Read, element: ir.Expr, b: Builder) -> ir.Load:
        view, row, column = self.windows.view(self.number, read, element)
        window, array = self.windows.by_view[view], self.loads.arrays[view]
        slot = b.apply("add", self.place.row, row + self.windows.ahead[self.number] - window.rows[0])
        behind = b.apply("add", b.apply("add", self.place.behind, slot), window.rows[0])
        phase = self.loads.phase(b, view, behind)
        place = b.apply("add", self.place.column, column - window.columns[0])
        return ir.Load(array, (slot, b.apply("add", place, phase)), array.type)

    def written(self, write: ir.Write) -> ir.Block:
        """The stores of a write: to the array of one access, or to each view of an intermediate."""
        if self.is_last and not self.stored:
            return (replace(write, value=self.expr(write.value), point=tuple(map(self.along, self.domain.axes))),)
        out: list[ir.Stmt] = []
        b = collector(out, write.loc)
        values = b.lanes(self.expr(write.value))
        for element, value in zip(elements(write.field, write.element), values, strict=True):
            if self.is_last:
                out.append(ir.Store(self.stored[write.field, element], (self.place.lane,), value, write.loc))
                continue
            for view in self.windows.views(self.number):
                if (view.field, view.element) == (write.field, element) and not view.shared:
                    slot = b.apply("add", self.place.row, self.windows.by_view[view].height - 1)
                    out.append(ir.Store(self.loads.arrays[view], (slot, self.place.lane), value, write.loc))
        return tuple(out)
