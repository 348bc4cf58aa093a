"""Walks of threads over the rows of a grid, and the loads of these rows.

Rows stand for layers too, where a thread walks along layers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import BOOL, INT, Shape, Type
from gpuop.passes.coarsening_factor import Place
from gpuop.passes.loops import numbered
from gpuop.passes.schedules.common.register_windows import Span, View, Windows

Out = list[ir.Stmt]  # the statements to append to
WARP = 32
FIRST, TOP = ir.Var("first", Type(INT)), ir.Var("top", Type(INT))  # first column and first row of a thread
ROW = ir.Var("row", Type(INT))  # row of a thread that walks along layers and exchanges halos


@dataclass(frozen=True)
class Walk:
    """The walk of a thread.

    Attributes:
        axis: the axis along which it goes.
        rows: the number of rows.
        turn: the rows of an iteration.
        columns: the columns of a thread.
        access: the columns of one access; 1 for single elements.
        cycle: the number of rows after which columns are aligned alike.
        shift: the greatest `phase` of inputs: where rows are not multiples of an access, the columns of a thread begin in each
            row at the aligned place before its first one, `phase` columns before.
        slack: the greatest `phase` of outputs: smaller where stages compute these columns too, and stores are divided.
        group: the extents of a work-group.
        unrolled: the iterations that the body of the loop has.
        interior: whether the threads read and write nothing outside of the grid.
        around: the numbers of threads before and behind those of a group that write, along rows and along columns, which only
            load and compute for these; None where threads exchange nothing.
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
        """The rows of the body of the loop."""
        return self.turn * self.unrolled

    @property
    def beside(self) -> str:
        """The axis of three that is neither walked nor that of columns."""
        return "row" if self.axis == "layer" else "layer"

    @property
    def sides(self) -> tuple[int, int]:
        """The threads of a group along that axis, and along columns."""
        return self.group[0] * self.group[1], self.group[2]

    @property
    def warp(self) -> int:
        """The threads of a warp along columns."""
        return min(WARP, self.group[-1])

    @property
    def unit(self) -> int:
        """The number of rows after which iterations begin with the same alignment."""
        return math.lcm(self.turn, self.cycle)

    def pieces(self, halo: Span) -> list[tuple[int, int]]:
        """Columns and their halo as aligned accesses: the first column and the number of columns of each.

        Four columns whose halo is (-3, 2), in accesses of four or fewer:

            columns   -4 -3 -2 -1 | 0 1 2 3 | 4 5
            access         4      |    4    |  2
        """
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
        """The numbers of columns by which these accesses exceed the thread's own, to the left and to the right."""
        (first, _), (last, count) = self.pieces(halo)[0], self.pieces(halo)[-1]
        return -first, last + count - self.columns


class RowLoads:
    """Loads rows of windows into private arrays.

    Attributes:
        arrays: for each view, an array of the rows of its window.
    """

    def __init__(self, kernel: Kernel, walk: Walk, windows: Windows) -> None:
        self.walk, self.domain, self.windows, self.aligned = walk, kernel.domain, windows.by_view, set(windows.inputs())
        self.layout = kernel.layout
        self.arrays = {view: self.array(view) for view in self.windows}
        self.lanes: dict[tuple[Type, int], ir.Array] = {}
        self.within: dict[Span, ir.Var] = {}

    def array(self, view: View) -> ir.Array:
        window, walk = self.windows[view], self.walk
        shape = window.height + walk.turn - 1, walk.columns + window.halo
        return array_of((view.field, view.element), "window", *shape)

    def declared(self) -> list[ir.Stmt]:
        """Declarations of the arrays; and for each halo the test whether it is inside, with the thread's columns."""
        out: Out = [ir.Declare(array) for array in (*self.arrays.values(), *self.lanes.values())]
        for (left, right), var in self.within.items():
            b = collector(out)
            low = b.apply("ge", ir.Ref(FIRST), left)
            high = b.apply("le", ir.Ref(FIRST), self.domain.extent("column") - self.walk.columns - right)
            out.append(ir.Let(var, ir.Apply("and", (low, high), var.type)))
        return out

    def column(self, b: Builder, k: ir.Expr | int) -> ir.Expr:
        """The column at a distance from the thread's first one."""
        alone = self.walk.columns == 1 and self.walk.around is None
        return b.apply("add", ir.Index("global", "column") if alone else ir.Ref(FIRST), k)

    def across(self, b: Builder, axis: str, away: int = 0) -> ir.Expr:
        """The coordinate of a thread along an axis of which it has one point, or the one at a distance."""
        return ir.Index("global", axis, away) if self.walk.around is None else b.apply("add", ir.Ref(ROW), away)

    def phase(self, b: Builder, view: View | None, row: ir.Expr) -> ir.Expr:
        """The number of columns by which the thread's columns begin before its first one, in a row of a view or of outputs.

        Args:
            row: the distance of the row from one that is aligned.
        """
        access = self.walk.slack + 1 if view is None else self.walk.shift + 1 if view in self.aligned else 1
        return self.misaligned(b, view, row, access)

    def misaligned(self, b: Builder, view: View | None, row: ir.Expr, access: int) -> ir.Expr:
        """The number of columns by which an access of so many begins before the thread's first column."""
        if access == 1:
            return constant(0, INT)
        if view is None:  # outputs are in memory of gpuop, or in aligned arrays of users
            behind, first = b.apply("mul", row, self.domain.extent("column") % access), 0
        else:
            layout, plane = self.layout(view.field), view.element.value if isinstance(view.element, ir.Const) else 0
            behind = b.apply("mul", row, layout.point[-2] % access)
            first = (layout.behind or 0) + int(plane) * layout.element
        return b.apply("and", b.apply("add", behind, first % access), access - 1)

    def load(self, view: View, at: ir.Expr, between: Span, place: tuple[ir.Expr, ir.Expr], out: Out) -> None:
        """Load a row into the array of a view.

        Args:
            at: the row.
            between: the least and the greatest value of `at`.
            place: the row of the array, and the row for `phase`.
        """
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
            if self.walk.shift:  # a row that a border names has its own alignment
                b = collector(out)
                for line in self.lines(b, view, at, between):
                    test = test if (there := inside(b, line)) is None else b.apply("and", test, there)
            out.append(ir.If(test, tuple(wide), tuple(each)))

    def load_each(self, view: View, at: ir.Expr, slot: ir.Expr, phase: ir.Expr, out: Out) -> None:
        """Element by element, through the border."""
        array, low = self.arrays[view], self.windows[view].columns[0]

        def one(k: ir.Expr, out: Out) -> None:
            b = collector(out)
            axes = zip(self.domain.axes[:-1], view.across, strict=True)
            point = [at if axis == self.walk.axis else self.across(b, axis, away) for axis, away in axes]
            point.append(b.apply("sub", self.column(b, b.apply("add", k, low)), phase))
            border = ("unchecked", None) if self.walk.interior else (view.border, view.fill)
            read = ir.Read(view.field, array.type, tuple(point), view.element, *border)
            out.append(ir.Store(array, (slot, k), b.bind(read)))

        out += numbered("k", 0, array.extents[1], one)

    def load_wide(self, view: View, at: ir.Expr, between: Span, slot: ir.Expr, phase: ir.Expr, out: Out) -> None:
        """Load a row in whole accesses, all inside of the row."""
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

            read = ir.Read(view.field, array.type, there, view.element, "unchecked") if count == 1 else None
            column = partial(self._store_lane, view, read or lanes, tests, slot, start - low)
            out += numbered("k", first - start, last - first, column)

    def _store_lane(
        self,
        view: View,
        lanes: ir.Read | ir.Array,
        tests: list[ir.Expr],
        slot: ir.Expr,
        away: int,
        k: ir.Expr,
        out: Out,
    ) -> None:
        """Store a lane of one access in the array of a view; its fill value, where a test fails."""
        b, array = collector(out), self.arrays[view]
        value = b.bind(ir.Load(lanes, (k,), array.type) if isinstance(lanes, ir.Array) else lanes)
        for test in tests:
            value = b.apply("choose", test, value, view.fill or value)
        out.append(ir.Store(array, (slot, b.apply("add", k, away)), value))

    def lines(self, b: Builder, view: View, at: ir.Expr, between: Span) -> list[Coordinate]:
        """The coordinates of a row along the axes other than columns."""
        coordinates = []
        for axis, away in zip(self.domain.axes[:-1], view.across, strict=True):
            n = self.domain.extent(axis)
            walked = axis == self.walk.axis
            where, (low, high) = (at, between) if walked else (self.across(b, axis, away), (away, away + n - 1))
            if self.walk.interior:
                low, high = 0, n - 1
            coordinates.append(Coordinate(where, constant(n, INT), n, low, high))
        return coordinates

    def staged(self, type_: Type, count: int) -> ir.Array:
        """The array that one access fills."""
        array = ir.Array(f"{type_.dtype.c}_lanes", type_, (count,))
        return self.lanes.setdefault((type_, count), array) if count > 1 else array


def name_of(field: ir.FieldParam, element: ir.Expr | None) -> str:
    """The name of an array after its field, with the number of the plane if there are several."""
    number = int(element.value) if isinstance(element, ir.Const) and field.type.planes > 1 else None
    return field.hint if number is None else f"{field.hint}_{number}"


def array_of(place: Place, what: str, *shape: int, space: str = "private") -> ir.Array:
    """An array for elements of a field."""
    return ir.Array(f"{name_of(*place)}_{what}", Type(place[0].type.storage), shape, space)


def accesses(
    arrays: Mapping[Place, ir.Array], point: tuple[ir.Expr, ...], loads: bool, left: ir.Expr | None = None
) -> list[ir.Stmt]:
    """Accesses to neighbours from a point on, all of an array in one."""
    return [ir.Wide(field, array, loads, point, element, left) for (field, element), array in arrays.items()]


def power_of_two(n: int) -> int:
    """The least power of two that is not less than n."""
    return 1 << max(n - 1, 0).bit_length()
