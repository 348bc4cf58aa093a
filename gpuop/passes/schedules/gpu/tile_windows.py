"""Register windows of a strip of neighbouring points: each value is loaded once, several in one access.

A group at an edge of the grid loads through borders, value by value. Its windows are right for all points inside of the grid;
the values that it computes for points outside are corrected afterwards (`tile_kernel.py`).
"""

from __future__ import annotations

from functools import partial

from gpuop.base.records import dataclass
from gpuop.ir.analysis.footprints import Surrounding
from gpuop.ir.build import collector
from gpuop.ir.nodes import Array, Declare, Expr, FieldParam, Load, Read, Ref, Stmt, Store, Wide
from gpuop.ir.types import Type
from gpuop.ir.visit import expressions
from gpuop.passes.coarsening_factor import elements
from gpuop.passes.loops import numbered
from gpuop.passes.schedules.common.grid_walk import name_of
from gpuop.passes.schedules.gpu.tile_chain import NEAREST, WRAP, Rule, Span, TilePart, distance, loaded
from gpuop.passes.schedules.gpu.tile_regions import MOST_HELD, Coordinates, Frame, Region


@dataclass(frozen=True)
class StripWindow:
    """A private array, and the offsets of the points that it holds, relative to those of the strip.

    A strip of four columns, of which each reads its neighbours, with accesses of four: `columns` is (-4, 4).

        offset    -4 -3 -2 -1 | 0 1 2 3 | 4 5 6 7
                           r    x x x x   r             x: points of the strip; r: neighbours that are read

    Attributes:
        element: the element of the field's tensor; None where it holds whole tensors, from local memory.
        rule: the border outside of the grid.
    """

    field: FieldParam
    element: Expr | None
    array: Array
    rows: Span
    columns: Span
    rule: Rule


class StripWindows:
    """All windows of a part.

    Args:
        inner: whether the group is in the interior and needs no points outside of the grid.
    """

    def __init__(self, frame: Frame, part: TilePart, region: Region, inner: bool) -> None:
        self.frame, self.part, self.region, self.inner = frame, part, region, inner
        self.lanes = region.strip[1]
        self.by_element: dict[tuple[FieldParam, Expr | None], StripWindow] = {}
        if not inner and not any(any((*near.low, *near.high)) for near in part.near.values()):
            return  # without neighbours, a point outside is computed at the point that its border names
        for read in expressions(part.kernel.body):
            if isinstance(read, Read) and read.field in part.near and distance(read) is not None:
                self._add(read, part.near[read.field])

    def _add(self, read: Read, near: Surrounding) -> None:
        array = self.frame.tiles.arrays.get(read.field)
        if array is not None:
            self._hold(read.field, None, array.type, near)
        elif not any((*near.low[:-2], *near.high[:-2])) and not isinstance(read.element, Ref) and self._is_known(near):
            for element in elements(read.field, read.element):
                self._hold(read.field, element, Type(read.field.type.storage), near)

    def _is_known(self, near: Surrounding) -> bool:
        """Return whether reads outside of the grid have one border, where they need one."""
        return self.inner or len(near.borders) <= 1

    def _hold(self, field: FieldParam, element: Expr | None, kind: Type, near: Surrounding) -> None:
        rows, columns = loaded(near, self.lanes)
        shape = (self.region.strip[0] + rows[1] - rows[0], self.lanes + columns[1] - columns[0])
        array = Array(f"{name_of(field, element)}_window", kind, shape)
        if max(self.region.strip) > 1 and array.elements <= MOST_HELD:
            rule = next(iter(near.borders), WRAP if self.frame.tiles.chain.virtual else NEAREST)
            rule = NEAREST if rule[0] == "unchecked" else rule
            self.by_element.setdefault((field, element), StripWindow(field, element, array, rows, columns, rule))

    def reach(self, axis: str) -> Span:
        """The number of points before and behind its own that a thread accesses in memory."""
        near = [near for field, near in self.part.near.items() if field not in self.frame.tiles.arrays]
        spans = [loaded(each, self.lanes)[axis == "column"] for each in near]
        return max((-low for low, _ in spans), default=0), max((high for _, high in spans), default=0)

    def load(self, at: Coordinates, out: list[Stmt]) -> None:
        """Load the windows of the strip that begins at a point of the region."""
        for window in self.by_element.values():
            out.append(Declare(window.array))
            out += numbered("r", 0, window.array.extents[0], partial(self._row, window, at))

    def _row(self, window: StripWindow, at: Coordinates, k: Expr, out: list[Stmt]) -> None:
        width = window.array.extents[1]
        if window.element is not None and self.frame.tiles.wide and self.lanes > 1 and self.inner:
            lanes = Array("lanes", window.array.type, (self.lanes,))
            out.append(Declare(lanes))
            out += numbered("piece", 0, width // self.lanes, partial(self._piece, window, lanes, at, k))
        else:
            out += numbered("c", 0, width, partial(self._one, window, at, k))

    def _piece(self, window: StripWindow, lanes: Array, at: Coordinates, k: Expr, piece: Expr, out: list[Stmt]) -> None:
        """Load neighbours in memory in one access."""
        begin = collector(out, hint="c").apply("mul", piece, self.lanes)
        out.append(Wide(window.field, lanes, True, self._point(window, at, k, begin, out), window.element))

        def copied(lane: Expr, out: list[Stmt]) -> None:
            b = collector(out)
            to = (k, b.apply("add", begin, lane))
            out.append(Store(window.array, to, b.bind(Load(lanes, (lane,), lanes.type))))

        out += numbered("lane", 0, self.lanes, copied)

    def _one(self, window: StripWindow, at: Coordinates, k: Expr, c: Expr, out: list[Stmt]) -> None:
        b = collector(out)
        if window.element is None:
            array, region = self.frame.tiles.arrays[window.field], self.frame.tiles.of[window.field]
            away = (window.rows[0], window.columns[0])
            value: Expr = Load(array, self.index(region, at, (k, c), away, out), array.type)
        else:
            element = window.element if window.field.type.planes > 1 else None
            border, fill = ("unchecked", None) if self.inner else window.rule
            point = self._point(window, at, k, c, out)
            value = Read(window.field, window.array.type, point, element, border, fill)
        out.append(Store(window.array, (k, c), b.bind(value)))

    def _point(self, window: StripWindow, at: Coordinates, k: Expr, c: Expr, out: list[Stmt]) -> tuple[Expr, ...]:
        """The point of the grid that belongs to an element of a window."""
        b = collector(out, hint="at")
        moved = {axis: b.apply("add", at[axis], n) for axis, n in zip(self.frame.axes[::-1], (c, k), strict=False)}
        grid = self.frame.place(self.part, self.region, moved, True, b).grid
        away, points = {"row": window.rows, "column": window.columns}, dict[str, Expr]()
        for axis, own in grid.items():
            points[axis] = b.apply("add", own, away[axis][0])
            if not self.inner:
                more = self.frame.behind(self.region, axis) + away[axis][1]  # points further out are not needed
                points[axis] = b.apply("min", points[axis], self.frame.beyond(axis, more, b))
        return self.frame.point(points)

    def index(
        self, target: Region, at: Coordinates, more: tuple[Expr, Expr], away: tuple[int, int], out: list[Stmt]
    ) -> tuple[Expr, Expr]:
        """The index in the local memory of a field of the point at a distance from one of the region."""
        b = collector(out, hint="at")
        own, there = self.region.computed, target.computed
        moved = away[0] + there.rows[0] - own.rows[0], away[1] + there.columns[0] - own.columns[0]

        def along(axis: str, n: Expr, offset: int) -> Expr:
            return b.apply("add", b.apply("add", at[axis], n), offset) if axis in at else n

        return along("row", more[0], moved[0]), along("column", more[1], moved[1])
