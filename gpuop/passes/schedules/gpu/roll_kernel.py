"""The kernel of a register sliding window: a thread walks down a few columns, and the rows of its windows move up."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import product

from gpuop.base.errors import Loc
from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, Shape, Type
from gpuop.passes.coarsening_factor import Place, elements, places
from gpuop.passes.instantiate import Instance, of_threads
from gpuop.passes.loops import Body, counted, numbered
from gpuop.passes.schedules.common.grid_walk import FIRST, TOP, RowLoads, Walk, accesses, array_of
from gpuop.passes.schedules.common.register_windows import Span, View, Windows, is_placed, windows_of
from gpuop.passes.schedules.gpu.ghost_points import GhostPoints
from gpuop.passes.schedules.gpu.halo_exchange import WRITES, HaloExchange, positioned

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
        self.stored = {place: array_of(place, "lanes", walk.columns) for place in wide}

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
            early = self.loop(first, ir.Ref(TOP), self.walk.unit // self.walk.turn, self.early_turn)
            before, first = (*before, early), TOP
        loop = self.loop(first, stop, self.walk.unrolled, self.turn)
        arrays = (*self.exchange.arrays.values(), *self.stored.values())
        return (*out, *map(ir.Declare, arrays), *self.loads.declared(), *before, loop)

    def loop(self, start: ir.Var, stop: ir.Expr, turns: int, turn: Body) -> ir.For:
        """A loop over rows, unrolled to so many iterations of `turn`."""
        self.counter = ir.Var(self.walk.axis, Type(INT))
        body = numbered("k", 0, turns, turn)
        unroll = 1 if self.walk.around is None else UNROLLED
        return counted(self.counter, ir.Ref(start), stop, body, turns * self.walk.turn, unroll)

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

    def moved(self, array: ir.Array, rows: int) -> ir.Block:
        """Move the rows up that the next iteration needs again."""

        def row(k: ir.Expr, out: list[ir.Stmt]) -> None:
            def one(column: ir.Expr, out: list[ir.Stmt]) -> None:
                b = collector(out)
                old = ir.Load(array, (b.apply("add", k, self.walk.turn), column), array.type)
                out.append(ir.Store(array, (k, column), b.bind(old)))

            out += numbered("column", 0, array.extents[1], one)

        return numbered("k", 0, rows, row)

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
        stores = accesses(self.stored, (*point, first), False)
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
        parts = product(self.stored.items(), range(0, self.walk.columns, self.walk.slack + 1))
        return tuple(stmt for (place, array), start in parts for stmt in self.part(place, array, point, first, start))

    def part(self, place: Place, array: ir.Array, point: tuple[ir.Expr, ...], first: ir.Expr, start: int) -> ir.Block:
        """The store of the part that begins at a column of the thread."""
        (field, element), count, out = place, self.walk.slack + 1, list[ir.Stmt]()
        part, column = array_of(place, "part", count), collector(out, hint="at").apply("add", first, start)

        def one(lane: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out)
            load = ir.Load(array, (b.apply("add", lane, start),), array.type)
            out.append(ir.Store(part, (lane,), b.bind(load)))

        store = ir.Wide(field, part, False, (*point, column), element)
        return (*out, ir.Declare(part), *numbered("lane", 0, count, one), store)

    def inside(self, at: ir.Expr, extent: int, step: int, body: list[ir.Stmt]) -> list[ir.Stmt]:
        """Statements under the condition that a coordinate is inside, along an axis that threads divide in steps."""
        if self.walk.interior or extent % step == 0:
            return body
        out: list[ir.Stmt] = []
        test = collector(out).apply("lt", at, extent)
        return [*out, ir.If(test, tuple(body))]


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
        self.places, self.head = {self.windows.axis: place.at}, collector(out, hint="at")
        if self.loads.walk.around is not None:
            beside = self.loads.walk.beside
            self.places[beside] = self.loads.across(self.head, beside)

    def along(self, axis: str) -> ir.Expr:
        """The coordinate of the point along an axis."""
        if axis == "column" and axis not in self.places:
            self.places[axis] = self.loads.column(self.head, self.place.column)
        return self.places.get(axis, ir.Index("global", axis))

    def position(self, index: ir.Index) -> ir.Expr:
        if index.axis not in ir.GRID_AXES:
            return index
        extent = self.domain.extent(index.axis)
        if index.kind == "global_size":
            return constant(extent, INT)
        at, walk = self.along(index.axis), self.loads.walk
        outside = not walk.interior and (not self.is_last or walk.slack)
        if outside and index.axis in self.places:  # a point outside is computed too, but its value is not used
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


def roll_kernel(kernel: Kernel, walk: Walk, interior: Walk | None) -> Kernel:
    """The kernel of threads that walk so; warps in the interior have another walk, if there is one."""
    rolling = RollKernel(kernel, walk)
    domain, head = positioned(kernel, walk, rolling.windows) if walk.around is not None else _positioned(kernel, walk)
    head.insert(0, ir.Comment(_title(kernel, walk)))
    body = rolling.body()
    if interior is not None:
        inner = RollKernel(kernel, interior)
        test = _is_interior(inner, collector(head))
        body = (ir.If(test, (ir.Comment("interior"), *inner.body()), body),)
    return of_threads(kernel, domain.shape, (*head, *body), group=walk.group, intermediates=())


def _positioned(kernel: Kernel, walk: Walk) -> tuple[Domain, list[ir.Stmt]]:
    """The grid of threads, and the first column and row of a thread."""
    domain, firsts = kernel.domain, {FIRST: ("column", walk.columns), TOP: (walk.axis, walk.rows)}
    counts, head = dict(firsts.values()), list[ir.Stmt]()
    reached = {axis: domain.extent(axis) + walk.slack * (axis == "column") for axis in domain.axes}
    for var, (axis, count) in firsts.items():
        if count > 1 or var is TOP:
            head.append(ir.Let(var, ir.Apply("mul", (ir.Index("global", axis), constant(count, INT)), var.type)))
    return Domain(Shape(-(-n // counts.get(axis, 1)) for axis, n in reached.items()), domain.elements), head


def _title(kernel: Kernel, walk: Walk) -> str:
    points = "x".join(map(str, kernel.domain.shape)) + " words" * kernel.packed
    turn = f", {walk.turn} at a time" if walk.turn > 1 else ""
    return f"{walk.columns} column{'s' * (walk.columns > 1)} and {walk.rows} {walk.axis}s of {points}{turn}"


def _is_interior(rolling: RollKernel, b: Builder) -> ir.Expr:
    """The test whether all that the threads of a warp read and write is inside; the same for all of them, against divergence."""
    walk, by_view, domain = rolling.walk, rolling.windows.by_view, rolling.source.domain
    rows = _joined([(w.rows[0] - rolling.warm, w.rows[1] + walk.rows - 1) for w in by_view.values()])
    tests: list[tuple[ir.Expr, Span, str]] = [(ir.Ref(TOP), rows, walk.axis)]
    lane = b.apply("and", ir.Index("local", "column"), walk.warp - 1)
    first = b.apply("sub", rolling.loads.column(b, 0), b.apply("mul", lane, walk.columns))
    left, right = zip(*(walk.reach(window.columns) for window in by_view.values()), strict=True)
    tests.append((first, (-max(left) - walk.shift, walk.warp * walk.columns - 1 + max(right)), "column"))
    for n, axis in enumerate(domain.axes[:-1]):
        if axis != walk.axis:
            tests.append((ir.Index("global", axis), _joined([(view.across[n],) * 2 for view in by_view]), axis))
    inside = [b.apply("ge", at, -low) for at, (low, _), _ in tests if low]
    inside += [b.apply("le", at, domain.extent(axis) - 1 - high) for at, (_, high), axis in tests if high]
    return reduce(lambda one, other: b.apply("and", one, other), inside)


def _joined(spans: list[Span]) -> Span:
    """The least span that contains all of them, and 0."""
    return min(0, *(low for low, _ in spans)), max(0, *(high for _, high in spans))
