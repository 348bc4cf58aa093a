"""How a thread walks over the points of a grid, and the loads of the rows that it meets.

What is said of rows is meant of layers too, where a thread walks along these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from gpuop.ir import nodes as ir
from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import BOOL, INT, Shape, Type
from gpuop.passes.schedules.common.register_windows import Span, View, Windows

WARP = 32
FIRST, TOP = ir.Var("first", Type(INT)), ir.Var("top", Type(INT))  # column and row of a thread
ROW = ir.Var("row", Type(INT))  # of one that walks along layers beside others, for which it computes


@dataclass(frozen=True)
class Walk:
    """How threads walk.

    Attributes:
        axis: along which.
        rows: how many rows a thread goes.
        turn: how many of them at a time.
        columns: how many columns it handles.
        access: how many of these are accessed at once; 1: one by one.
        cycle: after so many rows columns are aligned alike.
        shift: the most by which columns of a thread differ between two rows, where rows are no multiple of an access: in each
            row, a thread's columns begin at the aligned place before its first one, `phase` columns before.
        slack: the same of outputs: less where stages are computed for these columns too, and not all are stored at once.
        group: threads of a work-group.
        unrolled: how many turns the body of the loop does.
        interior: whether nothing that the threads do and read is outside.
        around: the threads before and behind those of a group that write, along rows and along columns, which only load and
            compute what these look up; None where threads exchange nothing.
    """

    axis: str
    rows: int
    turn: int
    columns: int
    access: int
    cycle: int
    shift: int
    slack: int
    group: Shape
    unrolled: int = 1
    interior: bool = False
    around: tuple[Span, Span] | None = None

    @property
    def step(self) -> int:
        """Rows that the body of the loop does."""
        return self.turn * self.unrolled

    @property
    def beside(self) -> str:
        """Of three axes the one along which threads that exchange something lie besides columns."""
        return "row" if self.axis == "layer" else "layer"

    @property
    def sides(self) -> tuple[int, int]:
        """The threads of a group along that axis, and along columns."""
        return self.group[0] * self.group[1], self.group[2]

    @property
    def warp(self) -> int:
        """Threads of a warp that are beside each other."""
        return min(WARP, self.group[-1])

    @property
    def unit(self) -> int:
        """Rows after which turns begin alike."""
        return math.lcm(self.turn, self.cycle)

    def pieces(self, halo: Span) -> list[tuple[int, int]]:
        """Columns and their halo as aligned accesses: the first column of each, and how many."""
        low, high = 0, self.columns
        pieces = [(first, self.access) for first in range(low, high, self.access)]
        while low > halo[0]:
            count = min(self.access, power_of_two(low - halo[0]))
            low -= count
            pieces.insert(0, (low, count))
        while high < self.columns + halo[1]:
            count = min(self.access, power_of_two(self.columns + halo[1] - high))
            pieces.append((high, count))
            high += count
        return pieces

    def reach(self, halo: Span) -> Span:
        """How many columns these accesses go beyond the thread's own, to the left and to the right."""
        (first, _), (last, count) = self.pieces(halo)[0], self.pieces(halo)[-1]
        return -first, last + count - self.columns


class RowLoads:
    """Loads rows of windows into arrays of a thread's own.

    Attributes:
        arrays: of each view, the rows of its window.
    """

    def __init__(self, kernel: Kernel, walk: Walk, windows: Windows) -> None:
        self.walk, self.domain, self.windows, self.aligned = walk, kernel.domain, windows.found, set(windows.inputs())
        self.layout = kernel.layout
        self.arrays = {view: self.array(view) for view in self.windows}
        self.lanes: dict[tuple[Type, int], ir.Array] = {}
        self.within: dict[Span, ir.Var] = {}

    def array(self, view: View) -> ir.Array:
        window, walk = self.windows[view], self.walk
        shape = (window.height + walk.turn - 1, walk.columns + window.halo)
        return ir.Array(f"{named(view.field, view.element)}_window", Type(view.field.type.storage), shape)

    def declared(self) -> list[ir.Stmt]:
        """The arrays, and for each halo whether all of a thread's columns and the halo's are inside."""
        out: list[ir.Stmt] = [ir.Declare(array) for array in (*self.arrays.values(), *self.lanes.values())]
        for (left, right), var in self.within.items():
            b = collector(out)
            low = b.apply("ge", ir.Ref(FIRST), left)
            high = b.apply("le", ir.Ref(FIRST), self.domain.extent("column") - self.walk.columns - right)
            out.append(ir.Let(var, ir.Apply("and", (low, high), var.type)))
        return out

    def column(self, b: Builder, k: ir.Expr | int) -> ir.Expr:
        """So many columns behind the thread's first one."""
        alone = self.walk.columns == 1 and self.walk.around is None
        return b.apply("add", ir.Index("global", "column") if alone else ir.Ref(FIRST), k)

    def across(self, b: Builder, axis: str, away: int = 0) -> ir.Expr:
        """Where a thread is along an axis that it does not walk and has one point of, or so far away."""
        return ir.Index("global", axis, away) if self.walk.around is None else b.apply("add", ir.Ref(ROW), away)

    def phase(self, b: Builder, view: View | None, row: ir.Expr) -> ir.Expr:
        """How many columns before the thread's first one its columns begin in a row of a view, or of outputs: of a row that is so
        many behind one that is aligned."""
        access = self.walk.slack + 1 if view is None else self.walk.shift + 1 if view in self.aligned else 1
        return self.misaligned(b, view, row, access)

    def misaligned(self, b: Builder, view: View | None, row: ir.Expr, access: int) -> ir.Expr:
        """How many columns before the thread's first one an access of so many begins."""
        if access == 1:
            return constant(0, INT)
        if view is None:  # outputs lie as gpuop's own do, or are aligned where users gave them
            behind, first = b.apply("mul", row, self.domain.extent("column") % access), 0
        else:
            layout = self.layout(view.field)
            plane = int(view.element.value) if isinstance(view.element, ir.Const) else 0
            behind, first = (
                b.apply("mul", row, layout.point[-2] % access),
                (layout.behind or 0) + plane * layout.element,
            )
        return b.apply("and", b.apply("add", behind, first % access), access - 1)

    def load(self, view: View, at: ir.Expr, between: Span, place: tuple[ir.Expr, ir.Expr], out: list[ir.Stmt]) -> None:
        """The row `at`, which is one `between` two, into a row of the view's array; `place`: which, and that for `phase`."""
        columns, (left, right) = self.walk.columns, self.walk.reach(self.windows[view].columns)
        reach, (slot, row) = (left + self.walk.shift, right), place
        phase = self.phase(collector(out, hint="phase"), view, row)
        if self.walk.interior and self.walk.access > 1:
            self.load_wide(view, at, between, slot, phase, out)
        elif self.walk.access == 1 or sum(reach) + columns > self.domain.extent("column"):
            self.load_each(view, at, slot, phase, out)
        elif reach == (0, 0):
            self.load_wide(view, at, between, slot, phase, out)
        else:
            wide, each = list[ir.Stmt](), list[ir.Stmt]()
            self.load_wide(view, at, between, slot, phase, wide)
            self.load_each(view, at, slot, phase, each)
            test: ir.Expr = ir.Ref(self.within.setdefault(reach, ir.Var("within", Type(BOOL))))
            if self.walk.shift:  # a row that stands for another is aligned as it is itself
                b = collector(out)
                for line in self.lines(b, view, at, between):
                    test = test if (there := inside(b, line)) is None else b.apply("and", test, there)
            out.append(ir.If(test, tuple(wide), tuple(each)))

    def load_each(self, view: View, at: ir.Expr, slot: ir.Expr, phase: ir.Expr, out: list[ir.Stmt]) -> None:
        """Element by element, through the border."""
        array, low = self.arrays[view], self.windows[view].columns[0]

        def one(k: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out)
            axes = zip(self.domain.axes[:-1], view.across, strict=True)
            point = [at if axis == self.walk.axis else self.across(b, axis, away) for axis, away in axes]
            point.append(b.apply("sub", self.column(b, b.apply("add", k, low)), phase))
            border = ("unchecked", None) if self.walk.interior else (view.border, view.fill)
            read = ir.Read(view.field, array.type, tuple(point), view.element, *border)
            out.append(ir.Store(array, (slot, k), b.bind(read)))

        out += numbered("k", 0, array.extents[1], one)

    def load_wide(
        self, view: View, at: ir.Expr, between: Span, slot: ir.Expr, phase: ir.Expr, out: list[ir.Stmt]
    ) -> None:
        """In accesses to as many neighbours as there are, which are all inside the row."""
        array, (low, high) = self.arrays[view], self.windows[view].columns
        b = collector(out, hint="at")
        lines = self.lines(b, view, at, between)
        point = tuple(place(b, line, view.border) for line in lines)
        tests = [test for line in lines if (test := inside(b, line)) is not None] if view.fill is not None else []
        for start, count in self.walk.pieces((low, high)):
            there, lanes = (*point, b.apply("sub", self.column(b, start), phase)), self.staged(array.type, count)
            if count > 1:
                out.append(ir.Wide(view.field, lanes, True, there, view.element))
            first, last = max(start, low), min(start + count, high + self.walk.columns)

            def one(
                k: ir.Expr,
                out: list[ir.Stmt],
                there: tuple[ir.Expr, ...] = there,
                lanes: ir.Array = lanes,
                start: int = start,
            ) -> None:
                b = collector(out)
                one = ir.Read(view.field, array.type, there, view.element, "unchecked")
                value = b.bind(one if lanes.elements == 1 else ir.Load(lanes, (k,), array.type))
                for test in tests:
                    value = b.apply("choose", test, value, view.fill or value)
                out.append(ir.Store(array, (slot, b.apply("add", k, start - low)), value))

            out += numbered("k", first - start, last - first, one)

    def lines(self, b: Builder, view: View, at: ir.Expr, between: Span) -> list[Coordinate]:
        """Where a row is along the axes but the columns'."""
        found = []
        for axis, away in zip(self.domain.axes[:-1], view.across, strict=True):
            n = self.domain.extent(axis)
            walked = axis == self.walk.axis
            where, (low, high) = (at, between) if walked else (self.across(b, axis, away), (away, away + n - 1))
            if self.walk.interior:
                low, high = 0, n - 1
            found.append(Coordinate(where, constant(n, INT), n, low, high))
        return found

    def staged(self, type_: Type, count: int) -> ir.Array:
        """The array that one access fills."""
        array = ir.Array(f"{type_.dtype.c}_lanes", type_, (count,))
        return self.lanes.setdefault((type_, count), array) if count > 1 else array


def named(field: ir.FieldParam, element: ir.Expr) -> str:
    """What an array is called after: the field, and which of its planes."""
    return (
        f"{field.hint}_{int(element.value)}" if isinstance(element, ir.Const) and field.type.planes > 1 else field.hint
    )


def power_of_two(n: int) -> int:
    """The least that is no less than n."""
    return 1 << max(n - 1, 0).bit_length()


def numbered(hint: str, first: int, count: int, body: Callable[[ir.Expr, list[ir.Stmt]], None]) -> ir.Block:
    """Statements for each of some numbers: a loop that compilers expand, unless there is only one."""
    out: list[ir.Stmt] = []
    if count == 1:
        body(constant(first, INT), out)
        return tuple(out)
    var = ir.Var(hint, Type(INT))
    body(ir.Ref(var), out)
    start, stop, step = (constant(n, INT) for n in (first, first + count, 1))
    return (ir.For(var, start, stop, step, tuple(out), count),) if count else ()
