"""The kernel whose threads walk down a few columns: the rows of its windows stay in registers and move up as it goes."""

from __future__ import annotations

from collections.abc import Callable

from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT, Type
from gpuop.passes.coarsening_factor import places
from gpuop.passes.schedules.common.grid_walk import TOP, RowLoads, Walk, named, numbered
from gpuop.passes.schedules.common.register_windows import View, windows_of
from gpuop.passes.schedules.gpu.ghost_points import Outside
from gpuop.passes.schedules.gpu.halo_exchange import WRITES, Exchange
from gpuop.passes.schedules.gpu.stage_point import PointOfStage, Spot

TOGETHER = (
    2  # turns of threads that exchange something: registers change their names, and do not wait for what is loaded
)


class Rolling:
    """Builds what a thread does, whose first column and row are known.

    Attributes:
        warm: rows before a thread's first one with which it begins, for intermediates; whole turns, after which columns are
            aligned alike.
        counter: of the loop that is being made.
        row, behind: of the turn that is being made, its first row, and how many that is behind the counter's.
    """

    counter: ir.Var
    row: ir.Expr
    behind: ir.Expr

    def __init__(self, kernel: Kernel, walk: Walk) -> None:
        self.source, self.walk = kernel, walk
        self.windows = windows_of(kernel, walk.slack, walk.shift, walk.around is not None)
        self.loads = RowLoads(kernel, walk, self.windows)
        self.outside = Outside(kernel, self.windows, self.loads)
        self.exchange = Exchange(kernel, walk, self.windows, self.loads)
        self.extent, self.width = kernel.domain.extent(walk.axis), kernel.domain.extent("column")
        unit = walk.unit
        self.warm = -(-self.windows.before // unit) * unit
        self.start = ir.Var("start", Type(INT)) if self.warm else TOP
        written = places(self.windows.stages[-1])[1] if walk.access > 1 else []
        self.stored = {
            (field, e): ir.Array(f"{named(field, e)}_lanes", Type(field.type.storage), (walk.columns,))
            for field, e in written
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
        if self.walk.interior and self.warm:  # apart, so that no condition divides the loop that follows
            before, first = (
                (*before, self.loop(first, ir.Ref(TOP), self.walk.unit // self.walk.turn, self.early_turn)),
                TOP,
            )
        loop = self.loop(first, stop, self.walk.unrolled, self.turn)
        arrays = (*self.exchange.arrays.values(), *self.stored.values())
        return (*out, *map(ir.Declare, arrays), *self.loads.declared(), *before, loop)

    def loop(self, start: ir.Var, stop: ir.Expr, turns: int, turn: Callable[[ir.Expr, list[ir.Stmt]], None]) -> ir.For:
        """Over rows, so many turns at a time."""
        self.counter = ir.Var(self.walk.axis, Type(INT))
        body = numbered("k", 0, turns, turn)
        step = constant(turns * self.walk.turn, INT)
        return ir.For(self.counter, ir.Ref(start), stop, step, body, 1 if self.walk.around is None else TOGETHER)

    # --- turns --------------------------------------------------------------------------------------------------

    def before(self) -> ir.Block:
        """Load the windows of the first row, but for the last row of each."""
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
        """One before a thread's first row, for which there are no outputs."""
        self.rows_of(number, out)
        self.move(out)

    def turn(self, number: ir.Expr, out: list[ir.Stmt]) -> None:
        """The next rows of all, the outputs' too."""
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
        for view, window in self.windows.found.items():
            out += self.moved(self.loads.arrays[view], window.height - 1)

    def rows_of(self, number: ir.Expr, out: list[ir.Stmt]) -> None:
        """Of inputs, and of what is made of them, for one of the loop's turns."""
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
        """The next rows of what a stage makes."""
        ahead, (low, high) = self.windows.ahead[number], self.windows.beyond[number]
        bordered = [view for view in self.windows.views(number) if view.border != "wrap" and not view.shared]

        def row(k: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out, hint="at")
            at = b.apply("add", b.apply("add", self.row, k), ahead)

            def one(lane: ir.Expr, out: list[ir.Stmt]) -> None:
                place = Spot(k, self.behind, lane, collector(out).apply("add", lane, low), at)
                out += self.at(number, place, out)

            out += numbered("lane", 0, self.walk.columns + high - low, one)
            if not self.walk.interior:
                self.outside.in_row(bordered, at, k, out)

        out = list(numbered("k", 0, self.walk.turn, row))
        if not self.walk.interior:
            self.outside.above(bordered, self.row, self.late, out)
        return tuple(out)

    def looked_up(self, early: bool, out: list[ir.Stmt]) -> None:
        """The newest layers of shared views, of those that others put there in an earlier turn or of the others."""
        views = self.exchange.looked_up(early)
        self.exchange.get(views, self.row, out)
        for view in views:
            if view in self.windows.reach and view.border != "wrap":
                at = collector(out, hint="at").apply("add", self.row, self.windows.found[view].rows[1])
                self.outside.in_row([view], at, constant(0, INT), out)
                self.outside.above([view], self.row, self.late, out)

    def late(self, view: View) -> int:
        """In which row of a turn a view's reader comes to the first row."""
        return (self.warm - self.windows.ahead[view.reader]) % self.walk.turn

    def moved(self, array: ir.Array, kept: int) -> ir.Block:
        """Rows that the next turn needs again move to where it looks for them."""

        def row(k: ir.Expr, out: list[ir.Stmt]) -> None:
            def one(column: ir.Expr, out: list[ir.Stmt]) -> None:
                b = collector(out)
                old = ir.Load(array, (b.apply("add", k, self.walk.turn), column), array.type)
                out.append(ir.Store(array, (k, column), b.bind(old)))

            out += numbered("column", 0, array.extents[1], one)

        return numbered("k", 0, kept, row)

    def at(self, number: int, place: Spot, out: list[ir.Stmt]) -> ir.Block:
        return PointOfStage(self.source, number, (self.windows, self.loads), self.stored, place, out).copy()

    # --- points -------------------------------------------------------------------------------------------------

    def outputs(self, k: ir.Expr, out: list[ir.Stmt]) -> None:
        """A row of outputs."""
        last, row = len(self.windows.stages) - 1, collector(out, hint="at").apply("add", self.row, k)
        body: list[ir.Stmt] = []
        phase = self.loads.phase(b := collector(body, hint="phase"), None, b.apply("add", self.behind, k))

        def one(lane: ir.Expr, out: list[ir.Stmt]) -> None:
            point: list[ir.Stmt] = []
            place = Spot(k, self.behind, lane, collector(point).apply("sub", lane, phase), row)
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
        """Of what is stored at once, or one by one where some of it is outside."""
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
        """The stores of what is not aligned as a whole."""
        count = self.walk.slack + 1
        out: list[ir.Stmt] = []
        for (field, element), array in self.stored.items():
            for start in range(0, self.walk.columns, count):
                part = ir.Array(f"{named(field, element)}_part", array.type, (count,))

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
        """What is done only at points inside, along an axis of which threads take some points at a time."""
        if self.walk.interior or extent % step == 0:
            return body
        out: list[ir.Stmt] = []
        test = collector(out).apply("lt", at, extent)
        return [*out, ir.If(test, tuple(body))]
