"""The semantics of the IR, in NumPy: all threads of a chunk at once, with masks for threads that a branch excludes.

A value is a list of lanes, each an array over the threads (or one number, if all threads agree). Both the recorded and
the lowered form run, so that passes can be checked without a device.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.ir import nodes as ir
from gpuop.ir import numpy_semantics
from gpuop.ir.kernel import Kernel
from gpuop.ir.ops import OPS
from gpuop.ir.target_expressions import TargetConst
from gpuop.runtime.reference.array_memory import ArrayMemory, spread
from gpuop.runtime.reference.positions import Positions, chunks

Lanes = list[NDArray[Any]]
Mask = NDArray[np.bool_]


def run(kernel: Kernel, fields: dict[ir.FieldParam, NDArray[Any]], lowered: bool = False) -> None:
    """Run a kernel over planes of its fields; outputs are written in place.

    Args:
        lowered: whether the kernel is lowered; then the tail threads of the launch run too, as on devices.
    """
    planes = {p: array.reshape(p.type.planes, -1).view(p.type.memory_dtype) for p, array in fields.items()}
    for where in chunks(kernel, lowered or kernel.whole):
        with np.errstate(all="ignore"):
            Threads(kernel, where, ArrayMemory(where, planes, kernel, lowered)).block(kernel.body, None)


def formatted(text: str, values: Sequence[Any]) -> str:
    """Format as printf of C: like `%` of Python except for %a, which means something else there."""
    conversions = re.findall(r"%(?!%)[-+ #0-9.l]*([a-zA-Z])", text.replace("%%", ""))
    arguments = [value.hex() if letter in "aA" else value for letter, value in zip(conversions, values, strict=True)]
    return re.sub(r"(%[-+ #0-9]*)(?:\.\d+)?[aA]", r"\1s", text) % tuple(arguments)


def _both(mask: Mask | None, turn: Mask | None) -> Mask | None:
    """Return the threads in both masks; None means all."""
    if mask is None or turn is None:
        return turn if mask is None else mask
    return mask & turn


class _Loop:
    """The threads that are still in a loop, and those still in its current iteration."""

    def __init__(self, count: int) -> None:
        self.inside = np.ones(count, np.bool_)
        self.turn = self.inside


class Threads:
    """Some threads of a kernel, all at the same statement; a mask selects those that run it."""

    def __init__(self, kernel: Kernel, where: Positions, memory: ArrayMemory) -> None:
        self.kernel = kernel
        self.where = where
        self.count = where.count
        self.memory = memory
        self.vars: dict[ir.Var, Lanes] = {}
        self.loops: list[_Loop] = []
        self.everyone: Mask = np.ones(self.count, np.bool_)
        self.active = self.everyone

    # --- statements ---------------------------------------------------------------------------------------------

    def block(self, block: ir.Block, mask: Mask | None) -> None:
        current, active = False, mask
        before: Mask | None = None
        for stmt in block:
            turn = self.loops[-1].turn if self.loops else None
            if not current or turn is not before:  # masks are replaced, never changed
                current, before, active = True, turn, _both(mask, turn)
                if active is not None and not active.any():
                    return
            self.active = self.all(active)
            self.stmt(stmt, active)

    def stmt(self, stmt: ir.Stmt, mask: Mask | None) -> None:
        match stmt:
            case ir.Let(var=var, value=value):
                self.vars[var] = self.lanes(value)
            case ir.Assign(var=var, value=value):
                new = self.lanes(value)
                old = self.vars[var]
                self.vars[var] = new if mask is None else [np.where(mask, n, o) for n, o in zip(new, old, strict=True)]
            case ir.If(cond=cond, then=then, orelse=orelse):
                holds = self.truth(cond, self.active)
                self.block(then, holds if mask is None else mask & holds)
                self.block(orelse, ~holds if mask is None else mask & ~holds)
            case ir.For() | ir.While():
                self.loop(stmt, mask)
            case ir.Break():
                self.loops[-1].inside = self.loops[-1].inside & ~self.all(mask)
                self.loops[-1].turn = self.loops[-1].turn & ~self.all(mask)
            case ir.Continue():
                self.loops[-1].turn = self.loops[-1].turn & ~self.all(mask)
            case _:
                self.effect(stmt)

    def effect(self, stmt: ir.Action) -> None:
        match stmt:
            case ir.Declare(array=array):
                self.memory.declare(array)
            case ir.Write(field=field, value=value, point=point, element=element):
                self.memory.write(field, self.point(point), self.element(element), self.lanes(value), self.active)
            case ir.Store():
                self.store(stmt)
            case ir.Atomic():
                self.atomic(stmt)
            case ir.Collective(var=var):
                assert isinstance(stmt.over, int) and stmt.at is not None
                at, own = self.all_of(stmt.at), self.all_of(stmt.value)
                threads = self.kernel.work_group.points
                if stmt.kind == "warp ballot":
                    self.vars[var] = [self.where.ballot(own, stmt.over, threads)]
                else:
                    self.vars[var] = [own[self.where.lane(stmt.kind, at, stmt.over, threads)]]
            case ir.Wide():
                self.wide(stmt)
            case ir.Print(format=text, args=args):
                self.print(text, [self.all_of(a) for a in args])
            case ir.Barrier() | ir.Assert() | ir.Comment():
                pass  # all threads take each statement together; assertions are for checked execution
            case _:
                ir.assert_never(stmt)

    def store(self, stmt: ir.Store) -> None:
        index, values = self.point(stmt.index) or [], self.lanes(stmt.value)
        if not stmt.ahead:
            self.memory.store(stmt.memory, index, values, self.active)
        for k, lane in zip(stmt.ahead, values, strict=False):
            self.memory.store(stmt.memory, [index[0] + k], [lane], self.active)

    def all_of(self, expr: ir.Expr) -> NDArray[Any]:
        """Return a scalar's value in each thread."""
        return spread(self.lanes(expr)[0], self.count)

    def atomic(self, stmt: ir.Atomic) -> None:
        args = [self.all_of(a) for a in stmt.args]
        index, element = self.point(stmt.index) or [], self.element(stmt.element)
        old = self.memory.atomic(stmt, index, element, args, self.active)
        if stmt.var is not None:
            self.vars[stmt.var] = [old]

    def wide(self, stmt: ir.Wide) -> None:
        index, element, left = self.point(stmt.index) or [], self.element(stmt.element), self.element(stmt.left)
        self.memory.wide(stmt, index, element, left, self.active)

    def print(self, text: str, args: list[NDArray[Any]]) -> None:
        for thread in np.flatnonzero(self.active):
            sys.stdout.write(formatted(text, [a[thread].item() for a in args]))

    def point(self, point: tuple[ir.Expr, ...] | None) -> list[NDArray[Any]] | None:
        return None if point is None else [self.lanes(e)[0] for e in point]

    def element(self, element: ir.Expr | None) -> NDArray[Any] | None:
        return None if element is None else self.lanes(element)[0]

    def truth(self, cond: ir.Expr, active: Mask) -> Mask:
        return self.all_of(cond)

    def all(self, mask: Mask | None) -> Mask:
        return self.everyone if mask is None else mask

    def loop(self, stmt: ir.For | ir.While, mask: Mask | None) -> None:
        loop = _Loop(self.count)
        loop.inside = loop.turn = self.all(mask)
        self.loops.append(loop)
        if isinstance(stmt, ir.For):
            start, stop, step = (self.all_of(e) for e in (stmt.start, stmt.stop, stmt.step))
            counter, up, down = start.astype(np.int64), step > 0, step < 0
        while True:
            loop.turn = loop.inside
            if isinstance(stmt, ir.For):
                holds = np.where(up, counter < stop, (counter > stop) & down)
                self.vars[stmt.var] = [counter.astype(np.int32)]
            else:
                self.block(stmt.head, loop.turn)
                holds = self.truth(stmt.cond, loop.turn)
            loop.inside = loop.turn = loop.inside & holds
            if not loop.inside.any():
                break
            self.block(stmt.body, loop.turn)
            if isinstance(stmt, ir.For):
                counter = counter + step
        self.loops.pop()

    # --- expressions --------------------------------------------------------------------------------------------

    def lanes(self, expr: ir.Expr) -> Lanes:  # noqa: C901 - a case for each kind of node
        match expr:
            case ir.Const(value=value, type=type_):
                return [np.asarray(value, type_.dtype.numpy)]
            case ir.Ref(var=var):
                return self.vars[var]
            case ir.Index():
                return [self.index(expr)]
            case ir.Stride(value=value, type=type_):
                return [np.asarray(value, type_.dtype.numpy)]
            case ir.Argument(field=field, plane=plane):
                return [self.memory.fields[field][plane, 0]]
            case ir.Apply():
                return self.apply(expr)
            case ir.Cast():
                return self.cast(expr)
            case ir.Bits(arg=arg, type=type_):
                return [np.ascontiguousarray(v).view(type_.dtype.numpy).reshape(np.shape(v)) for v in self.lanes(arg)]
            case ir.Lane(arg=arg, lane=lane):
                return [self.lanes(arg)[lane]]
            case ir.Pack(args=args):
                return [lane for a in args for lane in self.lanes(a)]
            case ir.Read():
                return self.read(expr)
            case ir.Load(memory=ir.FieldParam() as field, index=index, type=type_, ahead=ahead) if type_.lanes > 1:
                places = [self.lanes(i) for i in index]
                if len(places[0]) > 1:
                    return [self.memory.near(field, [offset], (0,), self.active)[0] for offset in places[0]]
                return self.memory.near(field, [at for at, *_ in places], ahead or range(type_.lanes), self.active)
            case ir.Load(memory=ir.Array() as array, index=index, type=t, ahead=ahead) if t.lanes > array.type.lanes:
                first = self.point(index) or []
                steps = ([*first[:-1], first[-1] + k] for k in ahead or range(t.lanes))
                return [self.memory.load(array, at, self.active)[0] for at in steps]
            case ir.Load(memory=memory, index=index):
                return self.memory.load(memory, self.point(index) or [], self.active)
            case TargetConst():
                raise AssertionError(f"{expr.fact!r} is left though the target is known")
            case _:
                ir.assert_never(expr)

    def cast(self, cast: ir.Cast) -> Lanes:
        dtype, values = cast.type.dtype, map(np.asarray, self.lanes(cast.arg))
        lanes = [dtype.values(numpy_semantics.convert(v, dtype.numpy, cast.saturate)) for v in values]
        return lanes * cast.type.lanes if len(lanes) < cast.type.lanes else lanes

    def read(self, read: ir.Read) -> Lanes:
        element, fill = self.element(read.element), self.element(read.fill)
        return self.memory.read(read, self.point(read.point), element, fill, self.active)

    def index(self, index: ir.Index) -> NDArray[Any]:
        axis = index.axis
        indices: dict[str, Callable[[], Any]] = {
            "global": lambda: self.where.at[axis] + index.offset,
            "local": lambda: self.where.local[axis],
            "group": lambda: self.where.group[axis],
        }
        extent = self.kernel.bounds(index)[0]
        return np.asarray(indices[index.kind]() if index.kind in indices else extent, np.int32)

    def apply(self, expr: ir.Apply) -> Lanes:
        row, operands, dtype = OPS[expr.op], [self.lanes(a) for a in expr.args], expr.type.dtype
        return [row.computed([v[i] for v in operands], dtype) for i in range(expr.type.lanes)]
