"""Halo exchange of threads that walk along layers side by side: they read the loads and intermediates of neighbours.

Each thread stores its own columns of a layer in local memory; the one barrier of an iteration follows. A work-group has threads
around those that write outputs, which only load and compute for these. Where threads walk along rows, read "layer" for "row" and
"row" for "layer".
"""

from __future__ import annotations

import math
from functools import partial, reduce

from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Array, Expr, If, Index, Let, Load, Ref, Stmt, Store, Var
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import BOOL, INT, Shape, Type
from gpuop.passes.loops import numbered
from gpuop.passes.schedules.common.grid_walk import FIRST, ROW, TOP, RowLoads, Walk, array_of, power_of_two
from gpuop.passes.schedules.common.register_windows import MIRRORED, Span, View, Windows

FIRST_ROW, FIRST_COLUMN = Var("first_row", Type(INT)), Var("first_column", Type(INT))  # those of a group
WRITES = Var("writes", Type(BOOL))


def around(windows: Windows, columns: int) -> tuple[Span, Span]:
    """The numbers of threads of a group before and behind those that write: along rows, and along columns."""
    (above, below), (left, right) = windows.beside
    return (-above, below), (-(left // columns), -(-right // columns))


def group_of(windows: Windows, columns: int, rows: int, width: int) -> Shape:
    """The work-group in which `rows` rows of `width` threads write."""
    across, along = around(windows, columns)
    sides = {windows.axis: 1, "column": width + sum(along)}
    return Shape(sides.get(axis, rows + sum(across)) for axis in windows.axes)


def positioned(kernel: Kernel, walk: Walk, windows: Windows) -> tuple[Domain, list[Stmt]]:
    """The grid of threads, in whole groups, and the position of a thread. Positions outside are moved inside: through "wrap"
    to the other end, else to the nearest point."""
    assert walk.around is not None
    extent, head, tests = kernel.domain.extent, list[Stmt](), list[Expr]()
    wraps = any(view.border == "wrap" for view in windows.by_view if view.shared)
    threads = {walk.axis: -(-extent(walk.axis) // walk.rows)}
    head.append(Let(TOP, Apply("mul", (Index("global", walk.axis), constant(walk.rows, INT)), TOP.type)))
    places = ((walk.beside, 1, FIRST_ROW, ROW), ("column", walk.columns, FIRST_COLUMN, FIRST))
    for (axis, step, first, own), (before, behind), count in zip(places, walk.around, walk.sides, strict=True):
        n, writing, local, b = extent(axis), count - before - behind, Index("local", axis), collector(head, hint="at")
        groups = -(-n // (writing * step))
        threads[axis] = groups * count
        start = b.apply("mul", Index("group", axis), writing * step)
        head.append(Let(first, Apply("sub", (start, constant(before * step, INT)), first.type)))
        at = b.apply("add", Ref(first), b.apply("mul", local, step))
        tests += [b.apply("ge", local, before), b.apply("lt", local, before + writing), b.apply("lt", at, n)]
        if wraps:
            last = (groups * writing + behind) * step - 1
            at = place(b, Coordinate(at, constant(n, INT), n, -before * step, last), "wrap")
        else:
            at = b.apply("min", b.apply("max", at, 0), n - step)
        head.append(Let(own, at))
    b = collector(head, hint="at")
    head.append(Let(WRITES, reduce(lambda one, other: b.apply("and", one, other), tests)))
    return Domain(Shape(threads[axis] for axis in kernel.domain.axes), kernel.domain.elements), head


class HaloExchange:
    """The local memory of a group: arrays[layer, lane, row, thread]. With four columns a thread:

        column of the group    0  1  2  3 | 4  5  6  7 | 8  9 10 11
        thread                     0      |     1      |     2              column shr 2
        lane                   0  1  2  3 | 0  1  2  3 | 0  1  2  3         column and 3

    Attributes:
        views: the shared views, by the thread's own view that it stores for them.
        newest: the layer that a thread stores for each own view, relative to that of the outputs.
        arrays: indexed by layer, column of a thread, row, and thread, so that the threads of a warp use different banks.
    """

    def __init__(self, kernel: Kernel, walk: Walk, windows: Windows, loads: RowLoads) -> None:
        self.domain, self.walk, self.windows, self.loads = kernel.domain, walk, windows, loads
        self.views = shared(windows)
        self.newest = {own: put_row(own, views, windows) for own, views in self.views.items()}
        self.arrays = {own: layers_of(own, each, windows, walk.columns, walk.sides) for own, each in self.views.items()}

    def looked_up(self, early: bool) -> list[View]:
        """The views whose newest layer was stored in an earlier iteration, or the others."""
        by_view = self.windows.by_view
        return [v for own in self.views for v in self.views[own] if early == (by_view[v].rows[1] < self.newest[own])]

    def put(self, row: Expr, out: list[Stmt]) -> None:
        """Store the next layers, when the outputs are at a row."""
        for own, views in self.views.items():
            one = partial(self._put, own, self._slot(own, self.newest[own], row, out))
            for first, count in self._needed(views):
                out += numbered("lane", first, count, one)

    def _put(self, own: View, slot: Expr, lane: Expr, out: list[Stmt]) -> None:
        place = slot, lane, Index("local", self.walk.beside), Index("local", "column")
        out.append(Store(self.arrays[own], place, self._own(own, self.newest[own], lane, collector(out))))

    def _own(self, own: View, layer: int, lane: Expr, b: Builder) -> Expr:
        """The thread's own value, so many layers behind the outputs."""
        array, row = self.loads.arrays[own], constant(layer - self.windows.by_view[own].rows[0], INT)
        return b.bind(Load(array, (row, lane), array.type))

    def _needed(self, views: list[View]) -> list[Span]:
        """The columns of a thread that others, or borders, read: spans of a first column and a count."""
        columns = self.walk.columns
        reach = max(max(-low, high) for low, high in (self.windows.by_view[view].columns for view in views))
        reach += any(view.border in MIRRORED for view in views)
        if any(any(view.across) for view in views) or 2 * reach >= columns:
            return [(0, columns)]
        return [(0, reach), (columns - reach, reach)]

    def get(self, views: list[View], row: Expr, out: list[Stmt]) -> None:
        """Load the newest layers of views; those of intermediates for the threads that write outputs alone."""
        written = list[Stmt]()
        for view in views:
            self._get(view, row, written if view in self.windows.reach else out)
        if written:
            out.append(If(Ref(WRITES), tuple(written)))

    def _get(self, view: View, row: Expr, out: list[Stmt]) -> None:
        """Load a layer: neighbours' columns from local memory, beside the thread's own."""
        own, array, columns = self.windows.own(view), self.loads.arrays[view], self.walk.columns
        (_, layer), (low, high) = self.windows.by_view[view].rows, self.windows.by_view[view].columns
        slot, beside = self._slot(own, layer, row, out), self.arrays[own]
        line, tests = self._line(view, collector(out, hint="at"))

        def store(k: Expr, value: Expr, tests: list[Expr], b: Builder, out: list[Stmt]) -> None:
            for test in tests:
                value = b.apply("choose", test, value, view.fill or value)
            out.append(Store(array, (constant(array.extents[0] - 1, INT), b.apply("sub", k, low)), value))

        def neighbour(k: Expr, out: list[Stmt]) -> None:
            """Load a neighbour's column, `k` columns from the thread's first one."""
            b = collector(out, hint="at")
            at, more = self._column(view, k, b)
            lane, thread = b.apply("and", at, columns - 1), b.apply("shr", at, columns.bit_length() - 1)
            value = b.bind(Load(beside, (slot, lane, line, thread), beside.type))
            store(k, value, [*tests, *more], b, out)

        def own_column(k: Expr, out: list[Stmt]) -> None:
            """Load one of the thread's own columns."""
            b, place = collector(out), (slot, k, line, Index("local", "column"))
            across = any(view.across)
            store(k, b.bind(Load(beside, place, beside.type)) if across else self._own(own, layer, k, b), tests, b, out)

        for first, count, column in ((low, -low, neighbour), (0, columns, own_column), (columns, high, neighbour)):
            out += numbered("k", first, count, column)

    def _slot(self, own: View, away: int, row: Expr, out: list[Stmt]) -> Expr:
        at = collector(out, hint="at").apply("add", row, away)
        return collector(out, hint="slot").apply("and", at, self.arrays[own].extents[0] - 1)

    def _line(self, view: View, b: Builder) -> tuple[Expr, list[Expr]]:
        """The row of the group that is read, and tests of whether it is inside."""
        axis, away = self.walk.beside, sum(view.across)
        if not away or view.border == "wrap":
            return b.apply("add", Index("local", axis), away), []
        return self._inside(axis, view, b.apply("add", Ref(ROW), away), FIRST_ROW, b)

    def _column(self, view: View, k: Expr, b: Builder) -> tuple[Expr, list[Expr]]:
        """The column of the group that is read, `k` columns from the thread's first one, and tests of whether it is inside."""
        columns, tests = self.walk.columns, list[Expr]()
        if view.border == "wrap":
            at = b.apply("add", b.apply("mul", Index("local", "column"), columns), k)
        else:
            at, tests = self._inside("column", view, b.apply("add", Ref(FIRST), k), FIRST_COLUMN, b)
        if view not in self.windows.reach:  # inputs: outer threads of the group read them too, and may lack a neighbour
            at = b.apply("min", b.apply("max", at, 0), columns * self.walk.sides[1] - 1)
        return at, tests

    def _inside(self, axis: str, view: View, at: Expr, first: Var, b: Builder) -> tuple[Expr, list[Expr]]:
        n, (low, high) = self.domain.extent(axis), self.windows.beside[axis == "column"]
        coordinate = Coordinate(at, constant(n, INT), n, low, n - 1 + high)
        test = inside(b, coordinate) if view.fill is not None else None
        at = b.apply("sub", place(b, coordinate, view.border), Ref(first))
        return at, [] if test is None else [test]


def shared(windows: Windows) -> dict[View, list[View]]:
    result: dict[View, list[View]] = {}
    for view in windows.by_view:
        if view.shared:
            result.setdefault(windows.own(view), []).append(view)
    return result


def nbytes(windows: Windows, columns: int, group: Shape) -> int:
    """The bytes of local memory of a group."""
    sides = math.prod(group[:2]), group[2]
    return sum(layers_of(own, views, windows, columns, sides).nbytes for own, views in shared(windows).items())


def put_row(own: View, views: list[View], windows: Windows) -> int:
    """The layer that a thread stores: the next one that others read, if the thread has it."""
    return min(max(windows.by_view[view].rows[1] for view in views) + 1, windows.by_view[own].rows[1])


def layers_of(own: View, views: list[View], windows: Windows, columns: int, sides: tuple[int, int]) -> Array:
    """The array of an own view: the layers that are still read, and the one that is stored meanwhile."""
    newest = put_row(own, views, windows)
    layers = power_of_two(max(2, *(newest - windows.by_view[view].rows[1] + 1 for view in views)))
    return array_of((own.field, own.element), "layers", layers, columns, *sides, space="local")
