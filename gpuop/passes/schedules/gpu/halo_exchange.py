"""Threads that walk along layers beside one another: what one loads or computes in a layer, others look up.

It lies in local memory, where each thread puts its own columns of a layer; after the one barrier of a turn all have. A work-group
has threads around those that write outputs, which only load and compute what these look up. What is said of layers and rows holds
for rows and layers too, where threads walk along rows.
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
from gpuop.passes.schedules.common.grid_walk import FIRST, ROW, TOP, RowLoads, Walk, named, numbered, power_of_two
from gpuop.passes.schedules.common.register_windows import MIRRORED, Span, View, Windows

FIRST_ROW, FIRST_COLUMN = Var("first_row", Type(INT)), Var("first_column", Type(INT))  # of a group
WRITES = Var("writes", Type(BOOL))


def around(windows: Windows, columns: int) -> tuple[Span, Span]:
    """The threads of a group before and behind those that write: along rows, and along columns, of which each has some."""
    (above, below), (left, right) = windows.beside
    return (-above, below), (-(left // columns), -(-right // columns))


def group_of(windows: Windows, columns: int, rows: int, width: int) -> Shape:
    """The work-group in which so many rows of so many threads write."""
    across, along = around(windows, columns)
    sides = {windows.axis: 1, "column": width + sum(along)}
    return Shape(sides.get(axis, rows + sum(across)) for axis in windows.axes)


def placed(kernel: Kernel, walk: Walk, windows: Windows) -> tuple[Domain, list[Stmt]]:
    """The grid of threads, of whole groups, and where a thread is: those that would be outside are inside, which matters only
    where fields wrap around, to the other end."""
    assert walk.around is not None
    extent, head, tests = kernel.domain.extent, list[Stmt](), list[Expr]()
    wraps = any(view.border == "wrap" for view in windows.found if view.shared)
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


class Exchange:
    """The local memory of a group.

    Attributes:
        views: what is looked up, by what the thread has itself of it and puts there.
        newest: the layer that it puts there, seen from that of the results.
        arrays: layers, columns of a thread, rows, and threads, so that those of a warp look at one bank each.
    """

    def __init__(self, kernel: Kernel, walk: Walk, windows: Windows, loads: RowLoads) -> None:
        self.domain, self.walk, self.windows, self.loads = kernel.domain, walk, windows, loads
        self.views = shared(windows)
        self.newest = {own: put_row(own, views, windows) for own, views in self.views.items()}
        self.arrays = {
            own: array_of(own, views, windows, walk.columns, walk.sides) for own, views in self.views.items()
        }

    def looked_up(self, early: bool) -> list[View]:
        """The views whose newest layer was put there in an earlier turn, or the others."""
        found = self.windows.found
        return [v for own in self.views for v in self.views[own] if early == (found[v].rows[1] < self.newest[own])]

    def put(self, row: Expr, out: list[Stmt]) -> None:
        """The next layers, when the results are at a row."""
        for own, views in self.views.items():
            one = partial(self._put, own, self._slot(own, self.newest[own], row, out))
            for first, count in self._needed(views):
                out += numbered("lane", first, count, one)

    def _put(self, own: View, slot: Expr, lane: Expr, out: list[Stmt]) -> None:
        place = slot, lane, Index("local", self.walk.beside), Index("local", "column")
        out.append(Store(self.arrays[own], place, self._own(own, self.newest[own], lane, collector(out))))

    def _own(self, own: View, layer: int, lane: Expr, b: Builder) -> Expr:
        """What the thread has itself, so many layers behind that of the results."""
        array, kept = self.loads.arrays[own], constant(layer - self.windows.found[own].rows[0], INT)
        return b.bind(Load(array, (kept, lane), array.type))

    def _needed(self, views: list[View]) -> list[Span]:
        """Which columns of a thread are looked up, by others or where a border is: the first, and how many."""
        columns = self.walk.columns
        reach = max(max(-low, high) for low, high in (self.windows.found[view].columns for view in views))
        reach += any(view.border in MIRRORED for view in views)
        if any(any(view.across) for view in views) or 2 * reach >= columns:
            return [(0, columns)]
        return [(0, reach), (columns - reach, reach)]

    def get(self, views: list[View], row: Expr, out: list[Stmt]) -> None:
        """The newest layers of views; of what stages made, by the threads that write outputs."""
        made = list[Stmt]()
        for view in views:
            self._get(view, row, made if view in self.windows.reach else out)
        if made:
            out.append(If(Ref(WRITES), tuple(made)))

    def _get(self, view: View, row: Expr, out: list[Stmt]) -> None:
        """What others have put there, beside what the thread has itself."""
        own, array, columns = self.windows.own(view), self.loads.arrays[view], self.walk.columns
        (_, layer), (low, high) = self.windows.found[view].rows, self.windows.found[view].columns
        slot, beside = self._slot(own, layer, row, out), self.arrays[own]
        line, tests = self._line(view, collector(out, hint="at"))

        def store(k: Expr, value: Expr, tests: list[Expr], b: Builder, out: list[Stmt]) -> None:
            for test in tests:
                value = b.apply("choose", test, value, view.fill or value)
            out.append(Store(array, (constant(array.extents[0] - 1, INT), b.apply("sub", k, low)), value))

        def one(k: Expr, out: list[Stmt]) -> None:
            """A column so far from the thread's first one."""
            b = collector(out, hint="at")
            at, more = self._column(view, k, b)
            lane, thread = b.apply("and", at, columns - 1), b.apply("shr", at, columns.bit_length() - 1)
            value = b.bind(Load(beside, (slot, lane, line, thread), beside.type))
            store(k, value, [*tests, *more], b, out)

        def same(k: Expr, out: list[Stmt]) -> None:
            """One of the thread's own."""
            b, place = collector(out), (slot, k, line, Index("local", "column"))
            across = any(view.across)
            store(k, b.bind(Load(beside, place, beside.type)) if across else self._own(own, layer, k, b), tests, b, out)

        out += (*numbered("k", low, -low, one), *numbered("k", 0, columns, same), *numbered("k", columns, high, one))

    def _slot(self, own: View, away: int, row: Expr, out: list[Stmt]) -> Expr:
        at = collector(out, hint="at").apply("add", row, away)
        return collector(out, hint="slot").apply("and", at, self.arrays[own].extents[0] - 1)

    def _line(self, view: View, b: Builder) -> tuple[Expr, list[Expr]]:
        """Which row of the group is read, and tests of whether it is inside."""
        axis, away = self.walk.beside, sum(view.across)
        if not away or view.border == "wrap":
            return b.apply("add", Index("local", axis), away), []
        return self._inside(axis, view, b.apply("add", Ref(ROW), away), FIRST_ROW, b)

    def _column(self, view: View, k: Expr, b: Builder) -> tuple[Expr, list[Expr]]:
        """The same of a column that is so far from the thread's first one."""
        columns, tests = self.walk.columns, list[Expr]()
        if view.border == "wrap":
            at = b.apply("add", b.apply("mul", Index("local", "column"), columns), k)
        else:
            at, tests = self._inside("column", view, b.apply("add", Ref(FIRST), k), FIRST_COLUMN, b)
        if view not in self.windows.reach:  # by threads around the others too, beside which no thread may be
            at = b.apply("min", b.apply("max", at, 0), columns * self.walk.sides[1] - 1)
        return at, tests

    def _inside(self, axis: str, view: View, at: Expr, first: Var, b: Builder) -> tuple[Expr, list[Expr]]:
        n, (low, high) = self.domain.extent(axis), self.windows.beside[axis == "column"]
        coordinate = Coordinate(at, constant(n, INT), n, low, n - 1 + high)
        test = inside(b, coordinate) if view.fill is not None else None
        at = b.apply("sub", place(b, coordinate, view.border), Ref(first))
        return at, [] if test is None else [test]


def shared(windows: Windows) -> dict[View, list[View]]:
    found: dict[View, list[View]] = {}
    for view in windows.found:
        if view.shared:
            found.setdefault(windows.own(view), []).append(view)
    return found


def nbytes(windows: Windows, columns: int, group: Shape) -> int:
    """The local memory of a group."""
    sides = math.prod(group[:2]), group[2]
    return sum(array_of(own, views, windows, columns, sides).nbytes for own, views in shared(windows).items())


def put_row(own: View, views: list[View], windows: Windows) -> int:
    """The layer that a thread puts there: the next one that is looked up, if it has that."""
    return min(max(windows.found[view].rows[1] for view in views) + 1, windows.found[own].rows[1])


def array_of(own: View, views: list[View], windows: Windows, columns: int, sides: tuple[int, int]) -> Array:
    """As many layers as are looked up later, and one that is put there meanwhile."""
    newest = put_row(own, views, windows)
    layers = power_of_two(max(2, *(newest - windows.found[view].rows[1] + 1 for view in views)))
    return Array(
        f"{named(own.field, own.element)}_layers", Type(own.field.type.storage), (layers, columns, *sides), "local"
    )
