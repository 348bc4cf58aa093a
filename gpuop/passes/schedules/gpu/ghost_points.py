"""Ghost points of intermediates, outside of the field: each gets the value of the inner point that its border names.

Threads compute stages at points outside like at inner ones, but a border means the value of another point. Copies within a
thread's arrays, at constant indices, correct this before a later stage reads: threads at the edges copy columns, and all
threads of a warp copy rows at the same time.
"""

from __future__ import annotations

from collections.abc import Callable

from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Comment, Expr, If, Index, Load, Read, Stmt, Store, While
from gpuop.ir.types import INT
from gpuop.ir.visit import values, walk, walk_expr
from gpuop.passes.coarsening_factor import elements
from gpuop.passes.loops import numbered
from gpuop.passes.schedules.common.grid_walk import RowLoads
from gpuop.passes.schedules.common.register_windows import MIRRORED, View, Windows, around

INSIDE: dict[str, Callable[[int], int]] = {  # distance from the edge, inside, of the point that k points outside means
    "clamp": lambda k: 0,
    "reflect": lambda k: k,
    "symmetric": lambda k: k - 1,
}


def refused_stages(kernel: Kernel, windows: Windows) -> str:
    """Return the reason why walking threads cannot compute intermediates ahead; empty where they can."""
    for view, reach in windows.reach.items():
        if any(view.across) and (not view.shared or len(windows.stages) > 2):
            return "other threads read values of its stages"
        if view.border == "wrap" and not _repeats(windows):
            return "values of its stages do not repeat beyond the edges"
        for axis, (low, high) in ((windows.axis, reach.rows), ("column", reach.columns)):
            if view.border != "wrap" and max(-low, high) >= kernel.domain.extent(axis):
                return "its grid is smaller than its windows"
    if any(isinstance(stmt, While) for stage in windows.stages[:-1] for stmt in walk(stage.body)):
        return "the values decide when loops of its stages end"
    return ""


def _repeats(windows: Windows) -> bool:
    """Return whether intermediates outside are periodic: all reads wrap around, and no value depends on its position."""
    makers = windows.stages[:-1]
    reads = ((n, read) for n, stage in enumerate(makers) for read in around(stage))
    borders = {windows.view(n, read, e)[0].border for n, read in reads for e in elements(read.field, read.element)}
    used = (value for stage in makers for stmt in walk(stage.body) for value in values(stmt))
    others = (e for value in used if not isinstance(value, Read) for e in walk_expr(value))
    placed = any(isinstance(e, Index) and e.kind == "global" for e in others)
    return not placed and borders <= {"wrap"}


class GhostPoints:
    """Builds the statements that correct the ghost points of views."""

    def __init__(self, kernel: Kernel, windows: Windows, loads: RowLoads) -> None:
        self.windows, self.loads = windows, loads
        self.rows, self.columns = kernel.domain.extent(windows.axis), kernel.domain.extent("column")

    def in_row(self, views: list[View], at: Expr, k: Expr, out: list[Stmt]) -> None:
        """Correct the row `at`, the newest but for `k` others: its columns outside, and all of it behind the last row."""
        columns, rows = ConditionalCopies(), ConditionalCopies()
        for view in views:
            slot = collector(out).apply("add", k, self.windows.by_view[view].height - 1)
            low, high = self.windows.reach[view].columns if not view.shared else (0, 0)
            self._columns(view, slot, range(1, 1 - low), 1, columns)
            self._columns(view, slot, range(1, high + 1), -1, columns)
            below, mirrored = self.windows.reach[view].rows[1], view.border in MIRRORED
            for n in range(1, 1 + (below if mirrored else min(below, 1))):
                copies = rows["eq" if mirrored else "ge", self.rows - 1 + n]
                back = collector(copies).apply("sub", slot, n + self._inside(view, n))
                self._row(view, slot, back, copies)
        columns.test(self.loads.column(collector(out), 0), out)
        rows.test(at, out)

    def above(self, views: list[View], first: Expr, late: Callable[[View], int], out: list[Stmt]) -> None:
        """Correct the rows before the first one, in the iteration in which the reader of a view comes to the first row.

        Args:
            late: the rows of the iteration before that one.
        """
        rows = ConditionalCopies()
        for view in views:
            low, before = self.windows.reach[view].rows[0], late(view)
            for n in range(1, 1 - low):
                copies = rows["eq", -self.windows.ahead[view.reader] - before]
                there, here = before - low - n, before - low + self._inside(view, n)
                self._row(view, constant(there, INT), constant(here, INT), copies)
        rows.test(first, out)

    def _columns(self, view: View, slot: Expr, outside: range, step: int, copies: ConditionalCopies) -> None:
        """Collect the copies of columns outside, beside the first or the last one, in each thread whose window has them."""
        walk, width, left = self.loads.walk, self.loads.arrays[view].extents[1], self.windows.by_view[view].columns[0]
        lanes, threads = walk.columns, -(-(self.columns + walk.slack) // walk.columns)
        edge = 0 if step > 0 else self.columns - 1
        for thread in range(threads):
            first = lanes * (thread if step > 0 else threads - 1 - thread)
            places = [tuple(edge + step * n - first - left for n in (-k, self._inside(view, k))) for k in outside]
            places = [place for place in places if 0 <= place[0] < width]
            if not places:
                return
            for there, here in places:
                self._copy(view, slot, constant(there, INT), slot, constant(here, INT), copies["eq", first])

    def _inside(self, view: View, k: int) -> int:
        """The distance from the edge of the inner point that the border names for one `k` points outside."""
        return 0 if view.fill is not None else INSIDE[view.border](k)

    def _row(self, view: View, there: Expr, here: Expr, out: list[Stmt]) -> None:
        def one(column: Expr, out: list[Stmt]) -> None:
            self._copy(view, there, column, here, column, out)

        out += numbered("column", 0, self.loads.arrays[view].extents[1], one)

    def _copy(self, view: View, row: Expr, column: Expr, from_row: Expr, from_column: Expr, out: list[Stmt]) -> None:
        array = self.loads.arrays[view]
        value = view.fill or collector(out).bind(Load(array, (from_row, from_column), array.type))
        out.append(Store(array, (row, column), value))


class ConditionalCopies(dict[tuple[str, int], list[Stmt]]):
    """Statements by the comparison of a coordinate with a number under which they run."""

    def __missing__(self, key: tuple[str, int]) -> list[Stmt]:
        self[key] = []
        return self[key]

    def test(self, place: Expr, out: list[Stmt]) -> None:
        for (comparison, number), copies in self.items():
            condition = collector(out).apply(comparison, place, number)
            out.append(If(condition, (Comment("outside"), *copies)))
