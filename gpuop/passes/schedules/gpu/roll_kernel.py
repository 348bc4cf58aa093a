"""The kernel whose threads walk down a few columns: the rows of its windows stay in registers and move up as it goes."""

from __future__ import annotations

from collections.abc import Callable

from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import (
    Apply,
    Array,
    Barrier,
    Block,
    Declare,
    Expr,
    For,
    If,
    Let,
    Load,
    Ref,
    Stmt,
    Store,
    Var,
    Wide,
    Write,
)
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

    counter: Var
    row: Expr
    behind: Expr

    def __init__(self, kernel: Kernel, walk: Walk) -> None:
        self.source, self.walk = kernel, walk
        self.windows = windows_of(kernel, walk.slack, walk.shift, walk.around is not None)
        self.loads = RowLoads(kernel, walk, self.windows)
        self.outside = Outside(kernel, self.windows, self.loads)
        self.exchange = Exchange(kernel, walk, self.windows, self.loads)
        self.extent, self.width = kernel.domain.extent(walk.axis), kernel.domain.extent("column")
        unit = walk.unit
        self.warm = -(-self.windows.before // unit) * unit
        self.start = Var("start", Type(INT)) if self.warm else TOP
        written = places(self.windows.stages[-1])[1] if walk.access > 1 else []
        self.stored = {
            (field, e): Array(f"{named(field, e)}_lanes", Type(field.type.storage), (walk.columns,))
            for field, e in written
        }

    def body(self) -> Block:
        out: list[Stmt] = []
        b = collector(out, hint="stop")
        if self.warm:
            out.append(Let(self.start, Apply("add", (Ref(TOP), constant(-self.warm, INT)), TOP.type)))
        stop = b.apply("add", Ref(TOP), self.walk.rows)
        if self.extent % self.walk.rows and not self.walk.interior:
            stop = b.apply("min", stop, self.extent)
        before, first = self.before(), self.start
        if self.walk.interior and self.warm:  # apart, so that no condition divides the loop that follows
            before, first = (
                (*before, self.loop(first, Ref(TOP), self.walk.unit // self.walk.turn, self.early_turn)),
                TOP,
            )
        loop = self.loop(first, stop, self.walk.unrolled, self.turn)
        arrays = (*self.exchange.arrays.values(), *self.stored.values())
        return (*out, *map(Declare, arrays), *self.loads.declared(), *before, loop)

    def loop(self, start: Var, stop: Expr, turns: int, turn: Callable[[Expr, list[Stmt]], None]) -> For:
        """Over rows, so many turns at a time."""
        self.counter = Var(self.walk.axis, Type(INT))
        body = numbered("k", 0, turns, turn)
        step = constant(turns * self.walk.turn, INT)
        return For(self.counter, Ref(start), stop, step, body, 1 if self.walk.around is None else TOGETHER)

    # --- turns --------------------------------------------------------------------------------------------------

    def before(self) -> Block:
        """Load the windows of the first row, but for the last row of each."""
        out: list[Stmt] = []
        for view, window in self.windows.inputs().items():
            low, high = window.rows

            def row(k: Expr, out: list[Stmt], view: View = view, low: int = low, high: int = high) -> None:
                b = collector(out, hint="at")
                behind = b.apply("add", k, low)
                at = b.apply("add", Ref(self.start), behind)
                self.loads.load(view, at, (low - self.warm, self.extent - 1 + high - 1), (k, behind), out)

            out += numbered("k", 0, high - low, row)
        return tuple(out)

    def early_turn(self, number: Expr, out: list[Stmt]) -> None:
        """One before a thread's first row, for which there are no outputs."""
        self.rows_of(number, out)
        self.move(out)

    def turn(self, number: Expr, out: list[Stmt]) -> None:
        """The next rows of all, the outputs' too."""
        self.rows_of(number, out)
        outputs = numbered("k", 0, self.walk.turn, self.outputs)
        if self.walk.around is not None:
            outputs = (If(Ref(WRITES), outputs),)
        if self.warm and not self.walk.interior:
            test = collector(out).apply("ge", self.row, Ref(TOP))
            outputs = (If(test, outputs),)
        out += outputs
        self.move(out)

    def move(self, out: list[Stmt]) -> None:
        for view, window in self.windows.found.items():
            out += self.moved(self.loads.arrays[view], window.height - 1)

    def rows_of(self, number: Expr, out: list[Stmt]) -> None:
        """Of inputs, and of what is made of them, for one of the loop's turns."""
        b = collector(out, hint="at")
        self.behind = b.apply("mul", number, self.walk.turn)
        self.row = b.apply("add", Ref(self.counter), self.behind)
        for view, window in self.windows.inputs().items():
            low, high = window.rows

            def row(k: Expr, out: list[Stmt], view: View = view, low: int = low, high: int = high) -> None:
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
            out.append(Barrier("local"))
            self.looked_up(False, out)

    def stage(self, number: int) -> Block:
        """The next rows of what a stage makes."""
        ahead, (low, high) = self.windows.ahead[number], self.windows.beyond[number]
        bordered = [view for view in self.windows.views(number) if view.border != "wrap" and not view.shared]

        def row(k: Expr, out: list[Stmt]) -> None:
            b = collector(out, hint="at")
            at = b.apply("add", b.apply("add", self.row, k), ahead)

            def one(lane: Expr, out: list[Stmt]) -> None:
                place = Spot(k, self.behind, lane, collector(out).apply("add", lane, low), at)
                out += self.at(number, place, out)

            out += numbered("lane", 0, self.walk.columns + high - low, one)
            if not self.walk.interior:
                self.outside.in_row(bordered, at, k, out)

        out = list(numbered("k", 0, self.walk.turn, row))
        if not self.walk.interior:
            self.outside.above(bordered, self.row, self.late, out)
        return tuple(out)

    def looked_up(self, early: bool, out: list[Stmt]) -> None:
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

    def moved(self, array: Array, kept: int) -> Block:
        """Rows that the next turn needs again move to where it looks for them."""

        def row(k: Expr, out: list[Stmt]) -> None:
            def one(column: Expr, out: list[Stmt]) -> None:
                b = collector(out)
                old = Load(array, (b.apply("add", k, self.walk.turn), column), array.type)
                out.append(Store(array, (k, column), b.bind(old)))

            out += numbered("column", 0, array.extents[1], one)

        return numbered("k", 0, kept, row)

    def at(self, number: int, place: Spot, out: list[Stmt]) -> Block:
        return PointOfStage(self.source, number, (self.windows, self.loads), self.stored, place, out).copy()

    # --- points -------------------------------------------------------------------------------------------------

    def outputs(self, k: Expr, out: list[Stmt]) -> None:
        """A row of outputs."""
        last, row = len(self.windows.stages) - 1, collector(out, hint="at").apply("add", self.row, k)
        body: list[Stmt] = []
        phase = self.loads.phase(b := collector(body, hint="phase"), None, b.apply("add", self.behind, k))

        def one(lane: Expr, out: list[Stmt]) -> None:
            point: list[Stmt] = []
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

    def stores(self, row: Expr, k: Expr, phase: Expr, head: list[Stmt]) -> list[Stmt]:
        """Of what is stored at once, or one by one where some of it is outside."""
        b, axes = collector(head, hint="at"), self.source.domain.axes[:-1]
        point = tuple(row if axis == self.walk.axis else self.loads.across(b, axis) for axis in axes)
        first = b.apply("sub", self.loads.column(b, 0), phase)
        stores: list[Stmt] = [
            Wide(field, array, False, (*point, first), element) for (field, element), array in self.stored.items()
        ]
        if 0 < self.walk.slack < self.walk.shift and stores:
            misaligned = self.loads.misaligned(b, None, b.apply("add", self.behind, k), self.walk.access)
            stores = [If(b.apply("le", misaligned, self.walk.slack), tuple(stores), self.in_parts(point, first))]
        if not self.walk.shift or self.walk.interior or not stores:
            return stores
        test = b.apply("and", b.apply("ge", first, 0), b.apply("le", first, self.width - self.walk.columns))

        def one(lane: Expr, out: list[Stmt]) -> None:
            b = collector(out)
            there = (*point, b.apply("add", first, lane))
            for (field, element), array in self.stored.items():
                planar = None if field.type.planes == 1 else element
                out.append(Write(field, b.bind(Load(array, (lane,), array.type)), there, planar))

        return [If(test, tuple(stores), numbered("lane", 0, self.walk.columns, one))]

    def in_parts(self, point: tuple[Expr, ...], first: Expr) -> Block:
        """The stores of what is not aligned as a whole."""
        count = self.walk.slack + 1
        out: list[Stmt] = []
        for (field, element), array in self.stored.items():
            for start in range(0, self.walk.columns, count):
                part = Array(f"{named(field, element)}_part", array.type, (count,))

                def one(
                    lane: Expr, out: list[Stmt], array: Array = array, part: Array = part, start: int = start
                ) -> None:
                    b = collector(out)
                    out.append(Store(part, (lane,), b.bind(Load(array, (b.apply("add", lane, start),), array.type))))

                there = (*point, collector(out, hint="at").apply("add", first, start))
                out += [Declare(part), *numbered("lane", 0, count, one), Wide(field, part, False, there, element)]
        return tuple(out)

    def inside(self, at: Expr, extent: int, step: int, body: list[Stmt]) -> list[Stmt]:
        """What is done only at points inside, along an axis of which threads take some points at a time."""
        if self.walk.interior or extent % step == 0:
            return body
        out: list[Stmt] = []
        test = collector(out).apply("lt", at, extent)
        return [*out, If(test, tuple(body))]
