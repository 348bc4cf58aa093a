"""Loops of threads over pieces of the grid, with private copies of outputs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from gpuop.base.errors import Loc
from gpuop.ir import nodes as ir
from gpuop.ir.axis_limit import MOST_COUNTED
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import HALF, INT, Shape, Type
from gpuop.ir.visit import expressions, walk
from gpuop.passes.coarsening_factor import ACCESS, Place, elements, is_own, is_plain, places
from gpuop.passes.flat_grid import flat
from gpuop.passes.instantiate import Instance, of_threads, point_at
from gpuop.passes.loops import Body, counted, counter, numbered
from gpuop.passes.schedules.common.grid_walk import array_of
from gpuop.passes.schedules.common.lane_positions import LanePositions
from gpuop.passes.schedules.common.private_outputs import DeferredUpdates, PrivateOutputs
from gpuop.passes.schedules.common.register_windows import Span

GROUP = 256  # threads of a work-group on GPUs
TURN = "turn"
Positions = dict[str, ir.Expr]  # the coordinates of a point by axis, and under TURN the number of its copy, if known
Inner = Callable[[Positions, list[ir.Stmt]], None]


class Strips(ABC):
    """Builds a kernel with private outputs; `extents` are those of the grid by axis."""

    group: Shape

    def __init__(self, kernel: Kernel, copies: int) -> None:
        self.source, self.grid = kernel, kernel.domain.shape
        self.extents = {axis: kernel.domain.extent(axis) for axis in kernel.domain.axes}
        self.outputs = PrivateOutputs(kernel, copies)

    def kernel(self) -> Kernel:
        shape = Shape(map(self.threads, self.source.domain.axes))
        body = (ir.Comment(self.title()), *map(ir.Declare, self.outputs.arrays.values()), *self.body())
        return of_threads(self.source, shape, body, group=self.group, points=self.grid)

    @abstractmethod
    def threads(self, axis: str) -> int:
        """The number of threads along an axis."""

    @abstractmethod
    def title(self) -> str:
        """The comment that describes the work of a thread."""

    @abstractmethod
    def body(self) -> ir.Block:
        """The statements of a thread."""

    @abstractmethod
    def along(self, axis: str, inner: Inner, at: Positions, out: list[ir.Stmt]) -> None:
        """Visit the thread's points along an axis."""

    def points(self, axes: tuple[str, ...], at: Positions, out: list[ir.Stmt]) -> None:
        """Nested loops over the thread's points around the body of the user."""
        if axes:
            self.along(axes[0], lambda positions, inner: self.points(axes[1:], positions, inner), at, out)
        else:
            out += StripPoint(self.source, self.outputs, at, self.turn(at, out), out).copy()

    def turn(self, at: Positions, out: list[ir.Stmt]) -> ir.Expr:
        """The number of the copy that a point updates."""
        return constant(0, INT)


class GroupStrips(Strips):
    """One copy for each work-group, in local memory: for GPUs. The columns of a thread are a work-group apart.

    Attributes:
        wide: the elements that a thread reads for several neighbours in one access, where it reads its own points alone;
            these neighbours count as one column.
    """

    def __init__(self, kernel: Kernel, points: int) -> None:
        lanes, columns = own_lanes(kernel), kernel.domain.extent("column")
        super().__init__(flat(kernel) if columns % lanes else kernel, 0)
        self.grid, kernel = kernel.domain.shape, self.source
        self.wide = places(kernel)[0] if lanes > 1 else []
        self.lanes, points = lanes, max(points // lanes, 1)
        self.extents["column"] //= lanes
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

    @property
    def of_thread(self) -> int:
        """The points that a thread handles."""
        return math.prod(self.count.values()) * self.lanes

    def title(self) -> str:
        return f"{self.of_thread} points of {'x'.join(map(str, self.grid))}, and a copy of what they update for a work-group"

    def body(self) -> ir.Block:
        out: list[ir.Stmt] = []
        b = collector(out, hint="thread")
        thread: ir.Expr = ir.Index("local", "column")
        if self.size["row"] > 1:
            thread = b.apply("add", b.apply("mul", ir.Index("local", "row"), self.size["column"]), thread)
        for field in self.outputs.fields:
            out += self.outputs.cleared(field, thread, self.group.points)
        out.append(ir.Barrier("local"))
        axes = sorted(self.source.domain.axes, key=lambda axis: self.count[axis] > 1)  # tests before loops
        self.points(tuple(axes), {}, out)
        self.rest(out)
        out.append(ir.Barrier("local"))
        return (*out, *(self.outputs.joined(field, thread, self.group.points) for field in self.outputs.fields))

    def points(self, axes: tuple[str, ...], at: Positions, out: list[ir.Stmt]) -> None:
        if axes or self.lanes == 1:
            super().points(axes, at, out)
            return
        first = collector(out, hint="first", temporary=False).apply("mul", at["column"], self.lanes)
        point = point_at(self.source, {**at, "column": first})
        arrays = {place: array_of(place, "lanes", self.lanes) for place in self.wide}
        for (field, element), array in arrays.items():
            out += [ir.Declare(array), ir.Wide(field, array, True, point, element)]

        def lane(k: ir.Expr, out: list[ir.Stmt]) -> None:
            here = {**at, "column": collector(out).apply("add", first, k)}
            body = StripPoint(self.source, self.outputs, here, self.turn(here, out), out)
            body.wide, body.lane = arrays, k
            out += body.copy()

        out += numbered("lane", 0, self.lanes, lane)

    def rest(self, out: list[ir.Stmt]) -> None:
        """The few points behind the last whole access: one for each of the first threads."""
        extent, point, thread = self.source.domain.extent("column"), list[ir.Stmt](), ir.Index("global", "column")
        if count := extent % self.lanes:
            at = collector(point, hint="column").apply("add", thread, extent - count)
            super().points((), {"column": at}, point)
            out.append(ir.If(collector(out).apply("lt", thread, count), tuple(point)))

    def along(self, axis: str, inner: Inner, at: Positions, out: list[ir.Stmt]) -> None:
        count, size, extent = self.count[axis], self.size[axis], self.extents[axis]
        if count == 1:
            out += self.one(inner, {**at, axis: ir.Index("global", axis)}, axis, extent % size > 0)
            return
        b = collector(out, hint=f"first_{axis}")
        first = b.apply("add", b.apply("mul", ir.Index("group", axis), count * size), ir.Index("local", axis))
        loop: ir.Stmt = self.turns(axis, inner, at, first, False)
        if extent % (count * size):  # only the last groups test each point before its loads
            each = self.turns(axis, inner, at, first, True)
            inside = collector(out).apply("lt", b.apply("add", first, (count - 1) * size), extent)
            loop = ir.If(inside, (loop,), (each,))
        out.append(loop)

    def turns(self, axis: str, inner: Inner, at: Positions, first: ir.Expr, guarded: bool) -> ir.For:
        """The loop over the thread's points along an axis."""
        k, body = counter("k"), list[ir.Stmt]()
        away = collector(body).apply("mul", ir.Ref(k), self.size[axis])
        place = collector(body, hint=axis, temporary=False).apply("add", first, away)
        body += self.one(inner, {**at, axis: place}, axis, guarded)
        return counted(k, 0, self.count[axis], body)

    def one(self, inner: Inner, at: Positions, axis: str, guarded: bool) -> ir.Block:
        """The statements for a coordinate along an axis, under a test that it is inside of the grid if `guarded`."""
        out, inside = list[ir.Stmt](), list[ir.Stmt]()
        inner(at, inside)
        if not guarded:
            return tuple(inside)
        test = collector(out).apply("lt", at[axis], self.extents[axis])
        return (*out, ir.If(test, tuple(inside)))


def own_lanes(kernel: Kernel) -> int:
    """The neighbours that a thread of a GPU reads in one access: 16 bytes, where rows or the flat grid are aligned for it."""
    reads = [e for e in expressions(kernel.body) if isinstance(e, ir.Read) and is_own(e.field)]
    own = all(e.point is None and is_plain(e.field, e.element, kernel) for e in reads)
    gpu = kernel.target is not None and kernel.machine.widening == "unrolled"
    if not gpu or not own or not reads or any(e.field.type.storage is HALF for e in reads):
        return 1
    lanes = ACCESS // max(e.field.type.storage.bits // 8 for e in reads)
    divided = kernel.domain.extent("column") % lanes == 0
    return lanes if kernel.aligned(lanes) and (divided or _is_flat(kernel, reads, lanes)) else 1


def _is_flat(kernel: Kernel, reads: list[ir.Read], lanes: int) -> bool:
    """Return whether the grid may be flattened to one axis: no thread uses its position, and each field begins aligned."""
    placed = any(isinstance(e, ir.Index) and e.axis in ir.GRID_AXES for e in expressions(kernel.body))
    placed |= any(isinstance(stmt, ir.Write) and stmt.point is not None for stmt in walk(kernel.body))
    planes, points = max(e.field.type.planes for e in reads), kernel.domain.shape.points
    fits = planes == kernel.domain.elements == 1 and lanes**2 <= points <= MOST_COUNTED
    return fits and not placed and not kernel.layouts


class StripPoint(Instance):
    """Copies the body of the user for one point.

    Attributes:
        wide: the arrays of values that the thread has read for several points; this point is a lane of them.
    """

    wide: Mapping[Place, ir.Array] = MappingProxyType({})
    lane: ir.Expr = constant(0, INT)

    def __init__(
        self, kernel: Kernel, outputs: PrivateOutputs, at: Positions, turn: ir.Expr, out: list[ir.Stmt]
    ) -> None:
        super().__init__(kernel)
        self.outputs, self.at, self.turn, self.head = outputs, at, turn, collector(out, hint="at")

    def position(self, index: ir.Index) -> ir.Expr:
        if index.axis in ir.GRID_AXES and index.kind == "global_size":
            return constant(self.kernel.domain.extent(index.axis), INT)
        at, away = self.at.get(index.axis, index), index.offset
        return at if at is index or not away else self.head.apply("sub" if away < 0 else "add", at, abs(away))

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Read) and expr.point is None and is_own(expr.field):
            expr = replace(expr, border="unchecked")
        return super().expr(expr)

    def loaded(self, read: ir.Read, loc: Loc | None, out: list[ir.Stmt]) -> ir.Expr | None:
        if not self.wide or not is_own(read.field):
            return None
        b, places = collector(out, loc), ((read.field, e) for e in elements(read.field, read.element))
        return b.pack([b.bind(ir.Load(self.wide[place], (self.lane,), self.wide[place].type)) for place in places])

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        copied = super().stmt(stmt)
        if not isinstance(stmt, ir.Atomic) or stmt.memory not in self.outputs.fields:
            return copied
        (update,) = copied
        assert isinstance(update, ir.Atomic)
        return self.outputs.update(update, self.outputs.inside(stmt), self.turn)


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
        return f"strips of {lengths} points of {'x'.join(map(str, self.grid))}, {self.outputs.copies} copies of what they update"

    def body(self) -> ir.Block:
        out, zero = list[ir.Stmt](), constant(0, INT)
        if self.lanes > 1:
            out += self.deferred.declared()
        for field in self.outputs.fields:
            out += self.outputs.cleared(field, zero, 1)
        self.points(self.source.domain.axes, {}, out)
        return (*out, *(self.outputs.joined(field, zero, 1) for field in self.outputs.fields))

    def along(self, axis: str, inner: Inner, at: Positions, out: list[ir.Stmt]) -> None:
        extent, length, at_axis = self.extents[axis], self.length[axis], counter(axis)
        if length == 1:
            return inner({**at, axis: ir.Index("global", axis)}, out)
        start: ir.Expr = constant(0, INT)
        stop: ir.Expr = constant(extent, INT)
        if length < extent:
            first = ir.Apply("mul", (ir.Index("global", axis), constant(length, INT)), Type(INT))
            start = collector(out, hint="first").bind(first)
            stop = collector(out, hint="stop").apply("add", start, length)
            stop = stop if extent % length == 0 else collector(out, hint="stop").apply("min", stop, extent)
        if self.lanes > 1 and axis == "column":
            return self.vectors(start, stop, inner, at, out)
        body: list[ir.Stmt] = []
        step = self.outputs.copies if self.in_turns(axis) else 1
        if step > 1:
            body.append(self.turns(axis, ir.Ref(at_axis), inner, at))
        else:
            inner({**at, axis: ir.Ref(at_axis)}, body)
        out.append(counted(at_axis, start, stop, body, step))

    def vectors(self, start: ir.Expr, stop: ir.Expr, inner: Inner, at: Positions, out: list[ir.Stmt]) -> None:
        """Vectors of points with deferred updates, and the columns outside of vectors."""
        (first, end), extent, lanes, deferred = self.interior(), self.extents["column"], self.lanes, self.deferred
        behind = first + (end - first) // lanes * lanes
        if self.length["column"] == extent:
            start, stop = constant(first, INT), constant(behind, INT)
        chunk: list[ir.Stmt] = []
        b = collector(chunk, hint="end")
        last = b.apply("add", ir.Ref(deferred.first), deferred.points - lanes + 1)
        last = b.apply("min", last, collector(out, hint="end").apply("sub", stop, lanes - 1))

        def point(column: ir.Expr, out: list[ir.Stmt]) -> None:
            position = {**at, "column": column}
            out += StripPoint(deferred.kernel, self.outputs, position, constant(0, INT), out).copy()

        chunk += (deferred.index_loop(last, point), deferred.update_loop(last))
        out.append(counted(deferred.first, start, stop, chunk, deferred.points))
        if behind - first < extent:
            self.rest((first, behind), (start, stop), lambda column, out: inner({**at, "column": column}, out), out)

    def rest(self, within: Span, strip: tuple[ir.Expr, ir.Expr], body: Body, out: list[ir.Stmt]) -> None:
        """The columns outside of vectors: before the first one, and behind the last one."""
        k, inner, (first, behind) = counter("k"), list[ir.Stmt](), within
        b, column = collector(inner), ir.Ref(k)
        if self.length["column"] < self.extents["column"]:
            start, stop = collector(out, hint="start").apply("max", strip[0], behind), strip[1]
            body(column, inner)
        else:
            start, stop = constant(0, INT), constant(self.extents["column"] - (behind - first), INT)
            away = b.apply("add", column, behind - first)
            body(b.apply("choose", b.apply("lt", column, first), column, away) if first else away, inner)
        out.append(counted(k, start, stop, inner))

    def in_turns(self, axis: str) -> bool:
        """Return whether copies divide the part of each row of a thread, so that the copy of each point is a constant."""
        length, extent = self.length[axis], self.extents[axis]
        return axis == "column" and length % self.outputs.copies == extent % length == 0

    def turns(self, axis: str, first: ir.Expr, inner: Inner, at: Positions) -> ir.For:
        """The loop over neighbouring points, one for each copy."""
        lane, body, copies = ir.Var(TURN, Type(INT)), list[ir.Stmt](), self.outputs.copies
        place = collector(body, hint=axis, temporary=False).apply("add", first, ir.Ref(lane))
        inner({**at, axis: place, TURN: ir.Ref(lane)}, body)
        return counted(lane, 0, copies, body, unroll=copies)

    def turn(self, at: Positions, out: list[ir.Stmt]) -> ir.Expr:
        return at.get(TURN) or collector(out, hint=TURN).apply("and", at["column"], self.outputs.copies - 1)
