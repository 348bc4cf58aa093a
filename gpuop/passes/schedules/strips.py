"""The loops of threads that handle a piece of the grid each, and update copies of outputs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Domain, Kernel
from gpuop.ir.nodes import (
    GRID_AXES,
    Apply,
    Atomic,
    Barrier,
    Block,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Index,
    Read,
    Ref,
    Stmt,
    Var,
    Write,
)
from gpuop.ir.types import INT, Shape, Type
from gpuop.ir.visit import Copier
from gpuop.passes.schedules.private_outputs import PrivateOutputs, updates

GROUP = 256  # threads of a work-group on GPUs
TURN = "turn"
Positions = dict[str, Expr]  # where a point is along each axis, and whose turn it is, if that is known
Inner = Callable[[Positions, list[Stmt]], None]


class Strips(ABC):
    """How a kernel with private outputs is made; `extents` has the axes of its grid."""

    group: Shape

    def __init__(self, kernel: Kernel, copies: int) -> None:
        self.source = kernel
        self.extents = {axis: kernel.domain.extent(axis) for axis in kernel.domain.axes}
        self.outputs = PrivateOutputs(updates(kernel), copies)

    def kernel(self) -> Kernel:
        source = self.source
        shape = Shape(self.threads(axis) for axis in source.domain.axes)
        body = (*source.shared("constant"), Comment(self.title()), *self.outputs.declared(), *self.body())
        return replace(
            source,
            domain=Domain(shape, source.domain.elements),
            body=body,
            group=self.group,
            points=source.domain.shape,
        )

    @abstractmethod
    def threads(self, axis: str) -> int:
        """Threads along an axis."""

    @abstractmethod
    def title(self) -> str:
        """What a thread handles."""

    @abstractmethod
    def body(self) -> Block:
        """What a thread does."""

    @abstractmethod
    def along(self, axis: str, inner: Inner, at: Positions, out: list[Stmt]) -> None:
        """Visit the thread's points along an axis."""

    def points(self, axes: tuple[str, ...], at: Positions, out: list[Stmt]) -> None:
        """Loops over the thread's points, and the user's body in the innermost."""
        if axes:
            self.along(axes[0], lambda found, inner: self.points(axes[1:], found, inner), at, out)
        else:
            turn = self.turn(at, out)
            out += _PointOfStrip(self, at, turn, out).copy()

    def turn(self, at: Positions, out: list[Stmt]) -> Expr:
        """Which copy is updated at a point."""
        return constant(0, INT)

    @property
    def shown(self) -> str:
        return "x".join(map(str, self.source.domain.shape))


class OfThreads(Strips):
    """A thread has a strip, and copies of its own: for CPUs."""

    group = Shape(1, 1, 1)

    def __init__(self, kernel: Kernel, strips: int, copies: int) -> None:
        super().__init__(kernel, copies)
        self.length: dict[str, int] = {}  # of a strip along each axis
        left = max(strips // kernel.domain.elements, 1)
        for axis, extent in self.extents.items():
            self.length[axis] = -(-extent // min(extent, left))
            left = max(left // self.threads(axis), 1)

    def threads(self, axis: str) -> int:
        return -(-self.extents[axis] // self.length[axis])

    def title(self) -> str:
        lengths = "x".join(str(self.length[axis]) for axis in self.extents)
        return f"strips of {lengths} points of {self.shown}, {self.outputs.copies} copies of what they update"

    def body(self) -> Block:
        out, zero = list[Stmt](), constant(0, INT)
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
        body: list[Stmt] = []
        step = self.outputs.copies if self.in_turns(axis) else 1
        if step > 1:
            body.append(self.turns(axis, Ref(counter), inner, at))
        else:
            inner({**at, axis: Ref(counter)}, body)
        out.append(For(counter, start, stop, constant(step, INT), tuple(body)))

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


class OfGroups(Strips):
    """A work-group has a copy in local memory: for GPUs. A thread's columns are a work-group apart."""

    def __init__(self, kernel: Kernel, points: int) -> None:
        super().__init__(kernel, 0)
        width = min(GROUP, 1 << (self.extents["column"] - 1).bit_length())
        rows = min(GROUP // width, 1 << (self.extents.get("row", 1) - 1).bit_length())
        self.group = Shape(1, rows, width)
        self.size = {"layer": 1, "row": rows, "column": width}
        self.count = dict.fromkeys(self.extents, 1)  # points of a thread along each axis
        for axis in ("row", "column", "layer"):
            if axis in self.extents:
                self.count[axis] = min(points, -(-self.extents[axis] // self.size[axis]))
                points = -(-points // self.count[axis])

    def threads(self, axis: str) -> int:
        piece = self.count[axis] * self.size[axis]
        return -(-self.extents[axis] // piece) * self.size[axis]

    def title(self) -> str:
        n = math.prod(self.count.values())
        return f"{n} points of {self.shown}, and a copy of what they update for a work-group"

    def body(self) -> Block:
        out: list[Stmt] = []
        b = collector(out, hint="thread")
        thread: Expr = Index("local", "column")
        if self.size["row"] > 1:
            thread = b.apply("add", b.apply("mul", Index("local", "row"), self.size["column"]), thread)
        for field in self.outputs.fields:
            out += self.outputs.cleared(field, thread, self.group.points)
        out.append(Barrier("local"))
        self.points(self.source.domain.axes, {}, out)
        out.append(Barrier("local"))
        return (*out, *(self.outputs.joined(field, thread, self.group.points) for field in self.outputs.fields))

    def along(self, axis: str, inner: Inner, at: Positions, out: list[Stmt]) -> None:
        count, size, extent = self.count[axis], self.size[axis], self.extents[axis]
        b, counter, body = collector(out, hint=f"first_{axis}"), Var("k", Type(INT)), list[Stmt]()
        if count == 1:
            place: Expr = Index("global", axis)
            body = out
        else:
            first = b.apply("add", b.apply("mul", Index("group", axis), count * size), Index("local", axis))
            away = collector(body).apply("mul", Ref(counter), size)
            place = collector(body, hint=axis, temporary=False).apply("add", first, away)
        inside: list[Stmt] = []
        inner({**at, axis: place}, inside)
        if extent % (count * size):
            test = collector(body).apply("lt", place, extent)
            body.append(If(test, tuple(inside)))
        else:
            body += inside
        if count > 1:
            out.append(For(counter, constant(0, INT), constant(count, INT), constant(1, INT), tuple(body)))


class _PointOfStrip(Copier):
    """The user's body at one point."""

    def __init__(self, strips: Strips, at: Positions, turn: Expr, out: list[Stmt]) -> None:
        super().__init__(strips.source.body)
        self.strips, self.at, self.turn, self.head = strips, at, turn, collector(out, hint="at")
        for stmt in strips.source.shared("constant"):
            del self.arrays[stmt.array]

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Index) and expr.axis in GRID_AXES:
            if expr.kind == "global_size":
                return constant(self.strips.source.domain.extent(expr.axis), INT)
            if expr.axis in self.at:
                return self.head.apply("add", self.at[expr.axis], expr.offset) if expr.offset else self.at[expr.axis]
        if isinstance(expr, Read) and expr.point is None and not expr.field.by_value and expr.field.type.field_shape:
            return super().expr(replace(expr, point=self.own(expr.field.type.field_shape), border="unchecked"))
        return super().expr(expr)

    def own(self, grid: Shape) -> tuple[Expr, ...]:
        """The point itself."""
        return tuple(Index("global", axis) for axis in GRID_AXES[3 - len(grid) :])

    def stmt(self, stmt: Stmt) -> Block:
        match stmt:
            case Declare(array=array) if array.space == "constant":
                return ()
            case Write(field=field, point=None) if field.type.field_shape:
                return super().stmt(replace(stmt, point=self.own(field.type.field_shape)))
            case Atomic(memory=memory) if memory in self.strips.outputs.fields:
                (copied,) = super().stmt(stmt)
                assert isinstance(copied, Atomic)
                return self.strips.outputs.update(copied, self.turn)
        return super().stmt(stmt)
