"""The kernel of a register sliding window: a thread walks down a few columns, and the rows of its windows move up."""

from __future__ import annotations

from collections.abc import Callable

from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT, Type
from gpuop.passes.coarsening_factor import places
from gpuop.passes.schedules.common.grid_walk import TOP, RowLoads, Walk, name_of, numbered
from gpuop.passes.schedules.common.register_windows import View, windows_of
from gpuop.passes.schedules.gpu.ghost_points import GhostPoints
from gpuop.passes.schedules.gpu.halo_exchange import WRITES, HaloExchange
from gpuop.passes.schedules.gpu.stage_point import StagePoint, StagePosition

UNROLLED = 2  # unroll factor of threads that exchange halos: registers change their names, and loads overlap


class RollKernel:
    """Builds the statements of a thread whose first column and row are known.

    Attributes:
        warm: the number of rows before its first one at which a thread begins, for intermediates; a multiple of `Walk.unit`.
        counter: the counter of the loop that is being built.
        row, behind: the first row of the iteration that is being built, and its distance from the row of the counter.
    """

    counter: ir.Var
    row: ir.Expr
    behind: ir.Expr

    def __init__(self, kernel: Kernel, walk: Walk) -> None:
        self.source, self.walk = kernel, walk
        self.windows = windows_of(kernel, walk.slack, walk.shift, walk.around is not None)
        self.loads = RowLoads(kernel, walk, self.windows)
        self.outside = GhostPoints(kernel, self.windows, self.loads)
        self.exchange = HaloExchange(kernel, walk, self.windows, self.loads)
        self.extent, self.width = kernel.domain.extent(walk.axis), kernel.domain.extent("column")
        unit = walk.unit
        self.warm = -(-self.windows.before // unit) * unit
        self.start = ir.Var("start", Type(INT)) if self.warm else TOP
        wide = places(self.windows.stages[-1])[1] if walk.access > 1 else []
        self.stored = {
            (field, e): ir.Array(f"{name_of(field, e)}_lanes", Type(field.type.storage), (walk.columns,))
            for field, e in wide
        }

    def body(self) -> ir.Block:
        out: list[ir.Stmt] = []
        b = collector(out, hint="stop")
        if self.warm:
            out.append(ir.Let(self.start, ir.Apply("add", (ir.Ref(TOP), constant(-self.warm, INT)), TOP.type)))
        stop = b.apply("add", ir.Ref(TOP), self.walk.rows)
        if self.extent % self.walk.rows and not self.walk.interior:
            stop = b.apply("min", stop, self.extent)
        before, first = self.before(), self.start
        if self.walk.interior and self.warm:  # a loop of its own, so that the following one has no condition
            before, first = (
                (*before, self.loop(first, ir.Ref(TOP), self.walk.unit // self.walk.turn, self.early_turn)),
                TOP,
            )
        loop = self.loop(first, stop, self.walk.unrolled, self.turn)
        arrays = (*self.exchange.arrays.values(), *self.stored.values())
        return (*out, *map(ir.Declare, arrays), *self.loads.declared(), *before, loop)

    def loop(self, start: ir.Var, stop: ir.Expr, turns: int, turn: Callable[[ir.Expr, list[ir.Stmt]], None]) -> ir.For:
        """A loop over rows, unrolled to so many iterations of `turn`."""
        self.counter = ir.Var(self.walk.axis, Type(INT))
        body = numbered("k", 0, turns, turn)
        step = constant(turns * self.walk.turn, INT)
        return ir.For(self.counter, ir.Ref(start), stop, step, body, 1 if self.walk.around is None else UNROLLED)

    # --- turns --------------------------------------------------------------------------------------------------

    def before(self) -> ir.Block:
        """Load the windows of the first row, except their last rows."""
        out: list[ir.Stmt] = []
        for view, window in self.windows.inputs().items():
            low, high = window.rows

            def row(k: ir.Expr, out: list[ir.Stmt], view: View = view, low: int = low, high: int = high) -> None:
                b = collector(out, hint="at")
                behind = b.apply("add", k, low)
                at = b.apply("add", ir.Ref(self.start), behind)
                self.loads.load(view, at, (low - self.warm, self.extent - 1 + high - 1), (k, behind), out)

            out += numbered("k", 0, high - low, row)
        return tuple(out)

    def early_turn(self, number: ir.Expr, out: list[ir.Stmt]) -> None:
        """An iteration before a thread's first row, which has no outputs."""
        self.rows_of(number, out)
        self.move(out)

    def turn(self, number: ir.Expr, out: list[ir.Stmt]) -> None:
        """The next rows of inputs, stages and outputs."""
        self.rows_of(number, out)
        outputs = numbered("k", 0, self.walk.turn, self.outputs)
        if self.walk.around is not None:
            outputs = (ir.If(ir.Ref(WRITES), outputs),)
        if self.warm and not self.walk.interior:
            test = collector(out).apply("ge", self.row, ir.Ref(TOP))
            outputs = (ir.If(test, outputs),)
        out += outputs
        self.move(out)

    def move(self, out: list[ir.Stmt]) -> None:
        for view, window in self.windows.by_view.items():
            out += self.moved(self.loads.arrays[view], window.height - 1)

    def rows_of(self, number: ir.Expr, out: list[ir.Stmt]) -> None:
        """The next rows of inputs and of intermediates, in one iteration."""
        b = collector(out, hint="at")
        self.behind = b.apply("mul", number, self.walk.turn)
        self.row = b.apply("add", ir.Ref(self.counter), self.behind)
        for view, window in self.windows.inputs().items():
            low, high = window.rows

            def row(k: ir.Expr, out: list[ir.Stmt], view: View = view, low: int = low, high: int = high) -> None:
                b = collector(out, hint="at")
                at = b.apply("add", b.apply("add", self.row, k), high)
                between = high - self.warm, self.extent - 1 + high + self.walk.step - 1
                place = b.apply("add", k, high - low), b.apply("add", b.apply("add", self.behind, k), high)
                self.loads.load(view, at, between, place, out)

            out += numbered("k", 0, self.walk.turn, row)
        self.looked_up(True, out)
        for stage in range(len(self.windows.stages) - 1):
            out += self.stage(stage)
        if self.exchange.views:
            self.exchange.put(self.row, out)
            out.append(ir.Barrier("local"))
            self.looked_up(False, out)

    def stage(self, number: int) -> ir.Block:
        """The next rows of the intermediates of a stage."""
        ahead, (low, high) = self.windows.ahead[number], self.windows.beyond[number]
        bordered = [view for view in self.windows.views(number) if view.border != "wrap" and not view.shared]

        def row(k: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out, hint="at")
            at = b.apply("add", b.apply("add", self.row, k), ahead)

            def one(lane: ir.Expr, out: list[ir.Stmt]) -> None:
                place = StagePosition(k, self.behind, lane, collector(out).apply("add", lane, low), at)
                out += self.at(number, place, out)

            out += numbered("lane", 0, self.walk.columns + high - low, one)
            if not self.walk.interior:
                self.outside.in_row(bordered, at, k, out)

        out = list(numbered("k", 0, self.walk.turn, row))
        if not self.walk.interior:
            self.outside.above(bordered, self.row, self.late, out)
        return tuple(out)

    def looked_up(self, early: bool, out: list[ir.Stmt]) -> None:
        """Get the newest layers of shared views: of those that were put there in an earlier iteration, or of the others."""
        views = self.exchange.looked_up(early)
        self.exchange.get(views, self.row, out)
        for view in views:
            if view in self.windows.reach and view.border != "wrap":
                at = collector(out, hint="at").apply("add", self.row, self.windows.by_view[view].rows[1])
                self.outside.in_row([view], at, constant(0, INT), out)
                self.outside.above([view], self.row, self.late, out)

    def late(self, view: View) -> int:
        """The row of an iteration in which the reader of a view comes to the first row."""
        return (self.warm - self.windows.ahead[view.reader]) % self.walk.turn

    def moved(self, array: ir.Array, kept: int) -> ir.Block:
        """Move the rows up that the next iteration needs again."""

        def row(k: ir.Expr, out: list[ir.Stmt]) -> None:
            def one(column: ir.Expr, out: list[ir.Stmt]) -> None:
                b = collector(out)
                old = ir.Load(array, (b.apply("add", k, self.walk.turn), column), array.type)
                out.append(ir.Store(array, (k, column), b.bind(old)))

            out += numbered("column", 0, array.extents[1], one)

        return numbered("k", 0, kept, row)

    def at(self, number: int, place: StagePosition, out: list[ir.Stmt]) -> ir.Block:
        return StagePoint(self.source, number, (self.windows, self.loads), self.stored, place, out).copy()

    # --- points -------------------------------------------------------------------------------------------------

    def outputs(self, k: ir.Expr, out: list[ir.Stmt]) -> None:
        """Compute a row of outputs."""
        last, row = len(self.windows.stages) - 1, collector(out, hint="at").apply("add", self.row, k)
        body: list[ir.Stmt] = []
        phase = self.loads.phase(b := collector(body, hint="phase"), None, b.apply("add", self.behind, k))

        def one(lane: ir.Expr, out: list[ir.Stmt]) -> None:
            point: list[ir.Stmt] = []
            place = StagePosition(k, self.behind, lane, collector(point).apply("sub", lane, phase), row)
            point += self.at(last, place, point)
            if self.walk.access > 1 or self.walk.interior or self.width % self.walk.columns == 0:
                out += point
            else:
                column = self.loads.column(collector(out, hint="at"), lane)
                out += self.inside(column, self.width, self.walk.columns, point)

        body += numbered("lane", 0, self.walk.columns, one)
        body += self.stores(row, k, phase, body)
        out += self.inside(row, self.extent, self.walk.step, body)

    def stores(self, row: ir.Expr, k: ir.Expr, phase: ir.Expr, head: list[ir.Stmt]) -> list[ir.Stmt]:
        """The stores of a row of outputs: in one access, or one by one where some of the points are outside."""
        b, axes = collector(head, hint="at"), self.source.domain.axes[:-1]
        point = tuple(row if axis == self.walk.axis else self.loads.across(b, axis) for axis in axes)
        first = b.apply("sub", self.loads.column(b, 0), phase)
        stores: list[ir.Stmt] = [
            ir.Wide(field, array, False, (*point, first), element) for (field, element), array in self.stored.items()
        ]
        if 0 < self.walk.slack < self.walk.shift and stores:
            misaligned = self.loads.misaligned(b, None, b.apply("add", self.behind, k), self.walk.access)
            stores = [ir.If(b.apply("le", misaligned, self.walk.slack), tuple(stores), self.in_parts(point, first))]
        if not self.walk.shift or self.walk.interior or not stores:
            return stores
        test = b.apply("and", b.apply("ge", first, 0), b.apply("le", first, self.width - self.walk.columns))

        def one(lane: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out)
            there = (*point, b.apply("add", first, lane))
            for (field, element), array in self.stored.items():
                planar = None if field.type.planes == 1 else element
                out.append(ir.Write(field, b.bind(ir.Load(array, (lane,), array.type)), there, planar))

        return [ir.If(test, tuple(stores), numbered("lane", 0, self.walk.columns, one))]

    def in_parts(self, point: tuple[ir.Expr, ...], first: ir.Expr) -> ir.Block:
        """The stores of columns that are not aligned as a whole, in aligned parts."""
        count = self.walk.slack + 1
        out: list[ir.Stmt] = []
        for (field, element), array in self.stored.items():
            for start in range(0, self.walk.columns, count):
                part = ir.Array(f"{name_of(field, element)}_part", array.type, (count,))

                def one(
                    lane: ir.Expr,
                    out: list[ir.Stmt],
                    array: ir.Array = array,
                    part: ir.Array = part,
                    start: int = start,
                ) -> None:
                    b = collector(out)
                    out.append(
                        ir.Store(part, (lane,), b.bind(ir.Load(array, (b.apply("add", lane, start),), array.type)))
                    )

                there = (*point, collector(out, hint="at").apply("add", first, start))
                out += [ir.Declare(part), *numbered("lane", 0, count, one), ir.Wide(field, part, False, there, element)]
        return tuple(out)

    def inside(self, at: ir.Expr, extent: int, step: int, body: list[ir.Stmt]) -> list[ir.Stmt]:
        """Statements under the condition that a coordinate is inside, along an axis that threads divide in steps."""
        if self.walk.interior or extent % step == 0:
            return body
        out: list[ir.Stmt] = []
        test = collector(out).apply("lt", at, extent)
        return [*out, ir.If(test, tuple(body))]
