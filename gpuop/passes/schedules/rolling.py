"""The kernel whose threads walk down a few columns: the rows of its windows stay in registers and move up as it goes."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Domain, Kernel
from gpuop.ir.nodes import (
    GRID_AXES,
    Apply,
    Array,
    Assign,
    Block,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Index,
    Let,
    Load,
    Pack,
    Read,
    Ref,
    Stmt,
    Store,
    Var,
    Wide,
    Write,
)
from gpuop.ir.types import INT, Shape, Type
from gpuop.ir.visit import Copier
from gpuop.passes.points_per_thread import elements, places
from gpuop.passes.schedules.walk import RowLoads, Walk, named, numbered
from gpuop.passes.schedules.windows import View, Windows, is_placed


class Rolling:
    def __init__(self, kernel: Kernel, walk: Walk) -> None:
        self.source, self.walk = kernel, walk
        self.windows = Windows(kernel, walk.axis)
        self.loads = RowLoads(kernel, walk, self.windows.found)
        self.extent = kernel.domain.extent(walk.axis)
        self.row, self.top = Var(walk.axis, Type(INT)), Var("top", Type(INT))
        written = places(kernel)[1] if walk.columns > 1 else []
        self.stored = {
            (field, e): Array(f"{named(field, e)}_lanes", Type(field.type.storage), (walk.columns,))
            for field, e in written
        }

    def kernel(self) -> Kernel:
        source, walk = self.source, self.walk
        size = {walk.axis: -(-self.extent // walk.rows), "column": source.domain.extent("column") // walk.columns}
        shape = Shape(size.get(axis, source.domain.extent(axis)) for axis in source.domain.axes)
        head: list[Stmt] = [Comment(self.title())]
        stop = self.bounds(head)
        before, turn = self.before(), self.turn()
        memory = (*map(Declare, self.stored.values()), *self.loads.declared())
        loop = For(self.row, Ref(self.top), stop, constant(walk.turn, INT), turn)
        return replace(
            source,
            domain=Domain(shape, source.domain.elements),
            body=(*source.shared("constant"), *head, *memory, *before, loop),
            group=walk.group,
            points=source.domain.shape,
        )

    def title(self) -> str:
        walk, points = self.walk, "x".join(map(str, self.source.domain.shape))
        turn = f", {walk.turn} at a time" if walk.turn > 1 else ""
        return f"{walk.columns} column{'s' * (walk.columns > 1)} and {walk.rows} {walk.axis}s of {points}{turn}"

    def bounds(self, out: list[Stmt]) -> Expr:
        """Where a thread's first column and first row are, and the row behind its last one."""
        walk = self.walk
        firsts = {self.loads.first: ("column", walk.columns), self.top: (walk.axis, walk.rows)}
        for var, (axis, count) in firsts.items():
            if count > 1 or var is self.top:
                out.append(Let(var, Apply("mul", (Index("global", axis), constant(count, INT)), var.type)))
        b = collector(out, hint="stop")
        stop = b.apply("add", Ref(self.top), walk.rows)
        return stop if self.extent % walk.rows == 0 else b.apply("min", stop, self.extent)

    # --- turns --------------------------------------------------------------------------------------------------

    def before(self) -> Block:
        """Load the windows of a thread's first row, but for the last row of each."""
        out: list[Stmt] = []
        for view, window in self.windows.found.items():
            low, high = window.rows

            def row(k: Expr, out: list[Stmt], view: View = view, low: int = low, high: int = high) -> None:
                b = collector(out, hint="at")
                at = b.apply("add", b.apply("add", Ref(self.top), k), low)
                self.loads.load(view, at, (low, self.extent - 1 + high - 1), k, out)

            out += numbered("k", 0, high - low, row)
        return tuple(out)

    def turn(self) -> Block:
        """Load the next rows, compute and store, and move the windows."""
        out: list[Stmt] = []
        for view, window in self.windows.found.items():
            low, high = window.rows

            def row(k: Expr, out: list[Stmt], view: View = view, low: int = low, high: int = high) -> None:
                b = collector(out, hint="at")
                at = b.apply("add", b.apply("add", Ref(self.row), k), high)
                between = high, self.extent - 1 + high + self.walk.turn - 1
                self.loads.load(view, at, between, b.apply("add", k, high - low), out)

            out += numbered("k", 0, self.walk.turn, row)
        out += numbered("k", 0, self.walk.turn, self.computed)
        for view, window in self.windows.found.items():
            out += self.moved(self.loads.arrays[view], window.height - 1)
        return tuple(out)

    def moved(self, array: Array, kept: int) -> Block:
        """Rows that the next turn needs again move to where it looks for them."""

        def row(k: Expr, out: list[Stmt]) -> None:
            def one(column: Expr, out: list[Stmt]) -> None:
                b = collector(out)
                old = Load(array, (b.apply("add", k, self.walk.turn), column), array.type)
                out.append(Store(array, (k, column), b.bind(old)))

            out += numbered("column", 0, array.extents[1], one)

        return numbered("k", 0, kept, row)

    # --- points -------------------------------------------------------------------------------------------------

    def computed(self, k: Expr, out: list[Stmt]) -> None:
        """A row of outputs."""
        row = collector(out, hint="at").apply("add", Ref(self.row), k)
        body: list[Stmt] = []

        def one(lane: Expr, out: list[Stmt]) -> None:
            positions = {self.walk.axis: row, "column": self.loads.column(collector(out, hint="at"), lane)}
            out += _Point(self, k, lane, positions, out).copy()

        body += numbered("lane", 0, self.walk.columns, one)
        point = tuple(row if axis == self.walk.axis else Index("global", axis) for axis in self.source.domain.axes[:-1])
        there = (*point, self.loads.column(collector(body), 0))
        body += [Wide(field, array, False, there, element) for (field, element), array in self.stored.items()]
        if self.extent % self.walk.turn:
            test = collector(out).apply("lt", row, self.extent)
            out.append(If(test, tuple(body)))
        else:
            out += body


class _Point(Copier):
    """The user's body at one point, with arrays in the place of fields."""

    def __init__(self, rolling: Rolling, row: Expr, lane: Expr, positions: dict[str, Expr], out: list[Stmt]) -> None:
        super().__init__(rolling.source.body)
        self.rolling, self.row, self.lane = rolling, row, lane
        self.positions, self.head = positions, collector(out, hint="at")
        for stmt in rolling.source.shared("constant"):
            del self.arrays[stmt.array]

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Index) and expr.axis in GRID_AXES:
            if expr.kind == "global_size":
                return constant(self.rolling.source.domain.extent(expr.axis), INT)
            if expr.axis in self.positions:
                return self.head.apply("add", self.positions[expr.axis], expr.offset)
        return super().expr(expr)

    def stmt(self, stmt: Stmt) -> Block:
        match stmt:
            case Declare(array=array) if array.space == "constant":
                return ()
            case Let(value=Read() as read) | Assign(value=Read() as read) if is_placed(read):
                out: list[Stmt] = []
                (copied,) = super().stmt(replace(stmt, value=self.loaded(read, collector(out, stmt.loc))))
                return (*out, copied)
            case Write() if self.rolling.stored:
                return self.written(stmt)
            case Write():
                axes = self.rolling.source.domain.axes
                point = tuple(self.positions.get(axis, Index("global", axis)) for axis in axes)
                return (replace(stmt, value=self.expr(stmt.value), point=point),)
        return super().stmt(stmt)

    def loaded(self, read: Read, b: Builder) -> Expr:
        loads = [b.bind(self.load(read, element, b)) for element in elements(read.field, read.element)]
        return loads[0] if len(loads) == 1 else Pack(tuple(loads), read.type)

    def load(self, read: Read, element: Expr, b: Builder) -> Load:
        view, row, column = self.rolling.windows.place(read, element)
        window, array = self.rolling.windows.found[view], self.rolling.loads.arrays[view]
        place = b.apply("add", self.row, row - window.rows[0]), b.apply("add", self.lane, column - window.columns[0])
        return Load(array, place, array.type)

    def written(self, write: Write) -> Block:
        out: list[Stmt] = []
        arrays = [self.rolling.stored[write.field, e] for e in elements(write.field, write.element)]
        values = collector(out, write.loc).lanes(self.expr(write.value))
        return (*out, *(Store(a, (self.lane,), v, write.loc) for a, v in zip(arrays, values, strict=True)))
