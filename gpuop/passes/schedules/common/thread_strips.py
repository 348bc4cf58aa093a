"""Strips of the grid for CPUs: a thread goes over one, with private copies of the outputs that it updates."""

from __future__ import annotations

import math
from collections.abc import Callable

from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Block, Expr, For, Index, Ref, Stmt, Var
from gpuop.ir.types import INT, Shape, Type
from gpuop.passes.schedules.common.deferred_updates import DeferredUpdates
from gpuop.passes.schedules.common.lane_positions import LanePositions
from gpuop.passes.schedules.common.strips import TURN, Inner, Positions, StripPoint, Strips


class ThreadStrips(Strips):
    """A strip and private copies for each thread: for CPUs."""

    group = Shape(1, 1, 1)

    def __init__(self, kernel: Kernel, strips: int, copies: int, lanes: int) -> None:
        super().__init__(kernel, copies)
        self.lanes, self.deferred = lanes, DeferredUpdates(self.source, self.outputs, lanes)
        self.length: dict[str, int] = {}  # of a strip along each axis
        remaining = max(strips // kernel.domain.elements, 1)
        for axis, extent in self.extents.items():
            n = -(-extent // min(extent, remaining))
            self.length[axis] = min(-(-n // lanes) * lanes, extent) if axis == "column" else n
            remaining = max(remaining // self.threads(axis), 1)

    @property
    def strips(self) -> int:
        return math.prod(map(self.threads, self.extents)) * self.source.domain.elements

    def obstacle(self) -> str:
        """Return the reason why vectors cannot compute the indices of updates; empty where they can."""
        split, (start, end) = self.length["column"] < self.extents["column"], self.interior()
        if start + self.lanes > end or (split and (start, end) != (0, self.extents["column"])):
            return "its rows are too short for vectors away from the borders"
        return self.deferred.obstacle()

    def interior(self) -> tuple[int, int]:
        """The columns where vectors read inside of rows: the first one, aligned, and the one behind the last."""
        start, end = LanePositions(self.deferred.kernel).interior()
        return -(-start // self.lanes) * self.lanes, end

    def threads(self, axis: str) -> int:
        return -(-self.extents[axis] // self.length[axis])

    def title(self) -> str:
        lengths = "x".join(str(self.length[axis]) for axis in self.extents)
        return f"strips of {lengths} points of {self.shown}, {self.outputs.copies} copies of what they update"

    def body(self) -> Block:
        out, zero = list[Stmt](), constant(0, INT)
        if self.lanes > 1:
            out += self.deferred.declared()
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
        """Vectors of points with deferred updates, and the columns outside of vectors."""
        (first, end), extent, lanes, deferred = self.interior(), self.extents["column"], self.lanes, self.deferred
        behind = first + (end - first) // lanes * lanes
        if self.length["column"] == extent:
            start, stop = constant(first, INT), constant(behind, INT)
        chunk: list[Stmt] = []
        b = collector(chunk, hint="end")
        last = b.apply("add", Ref(deferred.first), deferred.points - lanes + 1)
        last = b.apply("min", last, collector(out, hint="end").apply("sub", stop, lanes - 1))

        def point(column: Expr, out: list[Stmt]) -> None:
            position = {**at, "column": column}
            out += StripPoint(deferred.kernel, self.outputs, position, constant(0, INT), out).copy()

        chunk += (deferred.index_loop(last, point), deferred.update_loop(last))
        out.append(For(deferred.first, start, stop, constant(deferred.points, INT), tuple(chunk)))
        if behind - first < extent:
            self.rest((first, behind), (start, stop), lambda column, out: inner({**at, "column": column}, out), out)

    def rest(
        self,
        within: tuple[int, int],
        strip: tuple[Expr, Expr],
        body: Callable[[Expr, list[Stmt]], None],
        out: list[Stmt],
    ) -> None:
        """The columns outside of vectors: before the first one, and behind the last one."""
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
        """Whether the number of copies divides the thread's part of each row, so that the copy of each point is a constant."""
        return (
            axis == "column" and self.length[axis] % self.outputs.copies == self.extents[axis] % self.length[axis] == 0
        )

    def turns(self, axis: str, first: Expr, inner: Inner, at: Positions) -> For:
        """The loop over neighbouring points, one for each copy."""
        lane, body, copies = Var(TURN, Type(INT)), list[Stmt](), self.outputs.copies
        place = collector(body, hint=axis, temporary=False).apply("add", first, Ref(lane))
        inner({**at, axis: place, TURN: Ref(lane)}, body)
        return For(lane, constant(0, INT), constant(copies, INT), constant(1, INT), tuple(body), copies)

    def turn(self, at: Positions, out: list[Stmt]) -> Expr:
        return at.get(TURN) or collector(out, hint=TURN).apply("and", at["column"], self.outputs.copies - 1)
