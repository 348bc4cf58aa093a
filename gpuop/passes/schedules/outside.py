"""Points of intermediates outside of the field: they have the values of the points inside that the border names.

Threads compute stages for points outside too, which is not what a border means: that reads the value of another point. Copies
put it right before a later stage reads. They stay within a thread's arrays, at places that are known: columns outside are met by
the threads at the edges alone, rows outside by all threads of a warp at once.
"""

from __future__ import annotations

from collections.abc import Callable

from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Expr, If, Index, Load, Read, Stmt, Store, While
from gpuop.ir.types import INT
from gpuop.ir.visit import values, walk, walk_expr
from gpuop.passes.schedules.walk import RowLoads, numbered
from gpuop.passes.schedules.windows import MIRRORED, View, Windows, around

INSIDE: dict[str, Callable[[int], int]] = {  # how far from the edge the point is that one so far outside stands for
    "clamp": lambda k: 0,
    "reflect": lambda k: k,
    "symmetric": lambda k: k - 1,
}


def refused_stages(kernel: Kernel, windows: Windows) -> str:
    """Why threads that walk cannot compute intermediates ahead; empty where they can."""
    for view, reach in windows.reach.items():
        if any(view.across):
            return "other threads need what its stages compute"
        if view.border == "wrap" and not _repeats(windows):
            return "what its stages compute does not repeat itself beyond the edges"
        for axis, (low, high) in ((windows.axis, reach.rows), ("column", reach.columns)):
            if view.border != "wrap" and max(-low, high) >= kernel.domain.extent(axis):
                return "its grid is smaller than its windows"
    if any(isinstance(stmt, While) for stage in windows.stages[:-1] for stmt in walk(stage.body)):
        return "its stages loop for as long as a value says"
    return ""


def _repeats(windows: Windows) -> bool:
    """Whether intermediates outside have the values of the other end: all is read so, and nothing knows where it is."""
    makers = windows.stages[:-1]
    borders = {windows.view(n, read, read)[0].border for n, stage in enumerate(makers) for read in around(stage)}
    used = (
        value for stage in makers for stmt in walk(stage.body) for value in values(stmt) if not isinstance(value, Read)
    )
    placed = any(isinstance(e, Index) and e.kind == "global" for value in used for e in walk_expr(value))
    return not placed and borders <= {"wrap"}


class Outside:
    """Statements that put the points outside of views right."""

    def __init__(self, kernel: Kernel, windows: Windows, loads: RowLoads) -> None:
        self.windows, self.loads = windows, loads
        self.rows, self.columns = kernel.domain.extent(windows.axis), kernel.domain.extent("column")

    def in_row(self, view: View, at: Expr, slot: Expr, out: list[Stmt]) -> None:
        """Of the row `at`, just computed: its columns outside, and all of it where it is behind the last row."""
        if view.border == "wrap":
            return
        low, high = self.windows.reach[view].columns
        self._columns(view, slot, -low, 0, 1, out)
        self._columns(view, slot, high, self.columns - 1, -1, out)
        below = self.windows.reach[view].rows[1]
        each = range(1, below + 1) if view.border in MIRRORED else range(1, min(below, 1) + 1)
        for k in each:
            test = collector(out).apply("eq" if view.border in MIRRORED else "ge", at, self.rows - 1 + k)
            copies: list[Stmt] = []
            back = collector(copies).apply("sub", slot, k + self._inside(view, k))
            self._row(view, slot, back, copies)
            out.append(If(test, tuple(copies)))

    def above(self, view: View, first: Expr, before: int, out: list[Stmt]) -> None:
        """The rows before the first one, in the turn in which the view's reader comes to that, `before` others of the turn."""
        if view.border == "wrap":
            return
        low, copies = self.windows.reach[view].rows[0], list[Stmt]()
        for k in range(1, -low + 1):
            there, here = before - low - k, before - low + self._inside(view, k)
            self._row(view, constant(there, INT), constant(here, INT), copies)
        if copies:
            test = collector(out).apply("eq", first, -self.windows.ahead[view.reader] - before)
            out.append(If(test, tuple(copies)))

    def _columns(self, view: View, slot: Expr, reach: int, edge: int, step: int, out: list[Stmt]) -> None:
        """So many columns outside of the first or the last one, in each thread whose window they are in."""
        lanes, array, left = self.loads.walk.columns, self.loads.arrays[view], self.windows.found[view].columns[0]
        threads = -(-self.columns // lanes)
        for thread in range(threads):
            first = lanes * (thread if step > 0 else threads - 1 - thread)
            copies: list[Stmt] = []
            for k in range(1, reach + 1):
                outside, inside = (edge + step * n - first - left for n in (-k, self._inside(view, k)))
                if 0 <= outside < array.extents[1]:
                    self._copy(view, slot, constant(outside, INT), slot, constant(inside, INT), copies)
            if not copies:
                return
            test = collector(out).apply("eq", self.loads.column(collector(out), 0), first)
            out.append(If(test, tuple(copies)))

    def _inside(self, view: View, k: int) -> int:
        """How far from the edge the point is that one so far outside stands for."""
        return 0 if view.fill is not None else INSIDE[view.border](k)

    def _row(self, view: View, there: Expr, here: Expr, out: list[Stmt]) -> None:
        def one(column: Expr, out: list[Stmt]) -> None:
            self._copy(view, there, column, here, column, out)

        out += numbered("column", 0, self.loads.arrays[view].extents[1], one)

    def _copy(self, view: View, row: Expr, column: Expr, from_row: Expr, from_column: Expr, out: list[Stmt]) -> None:
        array = self.loads.arrays[view]
        value = view.fill or collector(out).bind(Load(array, (from_row, from_column), array.type))
        out.append(Store(array, (row, column), value))
