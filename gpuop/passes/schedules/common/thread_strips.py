"""Strips of the grid for CPUs: a thread goes over one, with copies of its own of what it updates."""

from __future__ import annotations

import math
from collections.abc import Callable

from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Block, Expr, For, Index, Ref, Stmt, Var
from gpuop.ir.types import INT, Shape, Type
from gpuop.passes.schedules.common.deferred_updates import LaterUpdates
from gpuop.passes.schedules.common.lane_positions import LanePlaces
from gpuop.passes.schedules.common.strips import TURN, Inner, PointOfStrip, Positions, Strips


class OfThreads(Strips):
    """A thread has a strip, and copies of its own: for CPUs."""

    group = Shape(1, 1, 1)

    def __init__(self, kernel: Kernel, strips: int, copies: int, lanes: int) -> None:
        super().__init__(kernel, copies)
        self.lanes, self.later = lanes, LaterUpdates(self.source, self.outputs, lanes)
        self.length: dict[str, int] = {}  # of a strip along each axis
        left = max(strips // kernel.domain.elements, 1)
        for axis, extent in self.extents.items():
            n = -(-extent // min(extent, left))
            self.length[axis] = min(-(-n // lanes) * lanes, extent) if axis == "column" else n
            left = max(left // self.threads(axis), 1)

    @property
    def strips(self) -> int:
        return math.prod(map(self.threads, self.extents)) * self.source.domain.elements

    def obstacle(self) -> str:
        """Why vectors do not find what is updated; "" if they do."""
        split, (start, end) = self.length["column"] < self.extents["column"], self.interior()
        if start + self.lanes > end or (split and (start, end) != (0, self.extents["column"])):
            return "its rows are too short for vectors away from the borders"
        return self.later.obstacle()

    def interior(self) -> tuple[int, int]:
        """The columns where vectors read inside of rows, from where these are aligned."""
        start, end = LanePlaces(self.later.kernel).interior()
        return -(-start // self.lanes) * self.lanes, end

    def threads(self, axis: str) -> int:
        return -(-self.extents[axis] // self.length[axis])

    def title(self) -> str:
        lengths = "x".join(str(self.length[axis]) for axis in self.extents)
        return f"strips of {lengths} points of {self.shown}, {self.outputs.copies} copies of what they update"

    def body(self) -> Block:
        out, zero = list[Stmt](), constant(0, INT)
        if self.lanes > 1:
            out += self.later.declared()
        for field in self.outputs.fields:
            out += self.outputs.cleared(field, zero, 1)
        self.points(self.source.domain.axes, {}, out)
        return (*out, *(self.outputs.joined(field, zero, 1) for field in self.outputs.fields))

    def along(self, axis: str, inner: Inner, at: Positions, out: list[Stmt]) -> None:
        extent, length, counter = self.extents[axis], self.length[axis], Var(axis, Type(INT))
        if length == 1:
            return inner({**at, axis: Index("global", axis)}, out)
        start: Expr = constant(0, INT)
        stop: Expr = constant(extent, INT)
        if length < extent:
            first = Apply("mul", (Index("global", axis), constant(length, INT)), Type(INT))
            start = collector(out, hint="first").bind(first)
            stop = collector(out, hint="stop").apply("add", start, length)
            stop = stop if extent % length == 0 else collector(out, hint="stop").apply("min", stop, extent)
        if self.lanes > 1 and axis == "column":
            return self.vectors(start, stop, inner, at, out)
        body: list[Stmt] = []
        step = self.outputs.copies if self.in_turns(axis) else 1
        if step > 1:
            body.append(self.turns(axis, Ref(counter), inner, at))
        else:
            inner({**at, axis: Ref(counter)}, body)
        out.append(For(counter, start, stop, constant(step, INT), tuple(body)))

    def vectors(self, start: Expr, stop: Expr, inner: Inner, at: Positions, out: list[Stmt]) -> None:
        """Vectors of points whose updates follow, and the columns that are in none."""
        (first, end), extent, lanes, later = self.interior(), self.extents["column"], self.lanes, self.later
        behind = first + (end - first) // lanes * lanes
        if self.length["column"] == extent:
            start, stop = constant(first, INT), constant(behind, INT)
        chunk: list[Stmt] = []
        b = collector(chunk, hint="end")
        last = b.apply("add", Ref(later.first), later.points - lanes + 1)
        last = b.apply("min", last, collector(out, hint="end").apply("sub", stop, lanes - 1))

        def point(column: Expr, out: list[Stmt]) -> None:
            here = {**at, "column": column}
            out += PointOfStrip(later.kernel, self.outputs, here, constant(0, INT), out).copy()

        chunk += (later.found(last, point), later.made(last))
        out.append(For(later.first, start, stop, constant(later.points, INT), tuple(chunk)))
        if behind - first < extent:
            self.rest((first, behind), (start, stop), lambda column, out: inner({**at, "column": column}, out), out)

    def rest(
        self,
        within: tuple[int, int],
        strip: tuple[Expr, Expr],
        body: Callable[[Expr, list[Stmt]], None],
        out: list[Stmt],
    ) -> None:
        """The columns that are in no vector: those before the first one, and those behind the last one."""
        counter, inner, (first, behind) = Var("k", Type(INT)), list[Stmt](), within
        b, column = collector(inner), Ref(counter)
        if self.length["column"] < self.extents["column"]:
            start, stop = collector(out, hint="start").apply("max", strip[0], behind), strip[1]
            body(column, inner)
        else:
            start, stop = constant(0, INT), constant(self.extents["column"] - (behind - first), INT)
            away = b.apply("add", column, behind - first)
            body(b.apply("choose", b.apply("lt", column, first), column, away) if first else away, inner)
        out.append(For(counter, start, stop, constant(1, INT), tuple(inner)))

    def in_turns(self, axis: str) -> bool:
        """Whether the copies divide what a thread has of each row, so that the copy of each point is known."""
        return (
            axis == "column" and self.length[axis] % self.outputs.copies == self.extents[axis] % self.length[axis] == 0
        )

    def turns(self, axis: str, first: Expr, inner: Inner, at: Positions) -> For:
        """Neighbouring points, one for each copy."""
        lane, body, copies = Var(TURN, Type(INT)), list[Stmt](), self.outputs.copies
        place = collector(body, hint=axis, temporary=False).apply("add", first, Ref(lane))
        inner({**at, axis: place, TURN: Ref(lane)}, body)
        return For(lane, constant(0, INT), constant(copies, INT), constant(1, INT), tuple(body), copies)

    def turn(self, at: Positions, out: list[Stmt]) -> Expr:
        return at.get(TURN) or collector(out, hint=TURN).apply("and", at["column"], self.outputs.copies - 1)
