"""The meaning of the IR, in NumPy: all threads of a chunk at once, masks for those that a branch excludes.

A value is a list of lanes, each an array over the threads (or one number, where all threads agree). Both the recorded and
the lowered form run, so that passes can be checked without a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.ir import meaning
from gpuop.ir.nodes import (
    Apply,
    Argument,
    Array,
    Assign,
    Bits,
    Block,
    Break,
    Cast,
    Const,
    Continue,
    Declare,
    Expr,
    FieldParam,
    For,
    If,
    Index,
    Kernel,
    Lane,
    Let,
    Load,
    Pack,
    Read,
    Ref,
    Stmt,
    Store,
    Stride,
    Var,
    While,
    Write,
)
from gpuop.ir.ops import OPS
from gpuop.passes.guard import work_group

Lanes = list[NDArray[Any]]
Mask = NDArray[np.bool_]
CHUNK = 1 << 18  # threads at once


def run(kernel: Kernel, fields: dict[FieldParam, NDArray[Any]]) -> None:
    """Run a kernel over planes of its fields; outputs are written in place."""
    for start in range(0, kernel.domain.threads, CHUNK):
        with np.errstate(all="ignore"):
            _Threads(kernel, fields, start, min(start + CHUNK, kernel.domain.threads)).block(kernel.body, None)


class _Loop:
    """The threads still in a loop, and those still in its turn."""

    def __init__(self, count: int) -> None:
        self.inside = np.ones(count, np.bool_)
        self.turn = self.inside


class _Threads:
    def __init__(self, kernel: Kernel, fields: dict[FieldParam, NDArray[Any]], start: int, stop: int) -> None:
        self.domain = kernel.domain
        self.group = kernel.group or work_group(kernel.domain)
        self.fields = {p: planes.reshape(p.type.planes, -1) for p, planes in fields.items()}
        self.count = stop - start
        ids = np.arange(start, stop)
        points = max(kernel.domain.shape.points, 1)
        self.point = ids % points
        self.at: dict[str, NDArray[Any]] = {"element": (ids // points).astype(np.int32)}
        rest = self.point
        for axis in ("column", "row", "layer"):
            extent = kernel.domain.extent(axis)
            self.at[axis] = (rest % extent).astype(np.int32)
            rest = rest // extent
        self.vars: dict[Var, Lanes] = {}
        self.arrays: dict[Array, list[NDArray[Any]]] = {}
        self.loops: list[_Loop] = []

    # --- statements ---------------------------------------------------------------------------------------------

    def block(self, block: Block, mask: Mask | None) -> None:
        for stmt in block:
            active = mask
            if self.loops:
                turn = self.loops[-1].turn
                active = turn if mask is None else mask & turn
            if active is not None and not active.any():
                return
            self.stmt(stmt, active)

    def stmt(self, stmt: Stmt, mask: Mask | None) -> None:
        match stmt:
            case Let(var=var, value=value):
                self.vars[var] = self.lanes(value)
            case Assign(var=var, value=value):
                new = self.lanes(value)
                old = self.vars[var]
                self.vars[var] = new if mask is None else [np.where(mask, n, o) for n, o in zip(new, old, strict=True)]
            case Declare(array=array):
                shape = (int(np.prod(array.shape)), self.count)
                self.arrays[array] = [np.zeros(shape, array.type.dtype.numpy) for _ in range(array.type.lanes)]
            case Write():
                self.write(stmt, mask)
            case Store(memory=memory, index=index, value=value):
                self.store(memory, index, self.lanes(value), mask)
            case If(cond=cond, then=then, orelse=orelse):
                holds = np.broadcast_to(self.lanes(cond)[0], self.count)
                self.block(then, holds if mask is None else mask & holds)
                self.block(orelse, ~holds if mask is None else mask & ~holds)
            case For() | While():
                self.loop(stmt, mask)
            case Break():
                self.loops[-1].inside = self.loops[-1].inside & ~self.all(mask)
                self.loops[-1].turn = self.loops[-1].turn & ~self.all(mask)
            case Continue():
                self.loops[-1].turn = self.loops[-1].turn & ~self.all(mask)

    def all(self, mask: Mask | None) -> Mask:
        return np.ones(self.count, np.bool_) if mask is None else mask

    def loop(self, stmt: For | While, mask: Mask | None) -> None:
        loop = _Loop(self.count)
        loop.inside = loop.turn = self.all(mask)
        self.loops.append(loop)
        if isinstance(stmt, For):
            start, stop, step = (
                np.broadcast_to(self.lanes(e)[0], self.count) for e in (stmt.start, stmt.stop, stmt.step)
            )
            counter = start.astype(np.int64)
        while True:
            loop.turn = loop.inside
            if isinstance(stmt, For):
                holds = np.where(step > 0, counter < stop, (counter > stop) & (step < 0))
                self.vars[stmt.var] = [counter.astype(np.int32)]
            else:
                self.block(stmt.head, loop.turn)
                holds = np.broadcast_to(self.lanes(stmt.cond)[0], self.count)
            loop.inside = loop.turn = loop.inside & holds
            if not loop.inside.any():
                break
            self.block(stmt.body, loop.turn)
            if isinstance(stmt, For):
                counter = counter + step
        self.loops.pop()

    # --- expressions --------------------------------------------------------------------------------------------

    def lanes(self, expr: Expr) -> Lanes:  # noqa: C901 - a case for each kind of node
        match expr:
            case Const(value=value, type=type_):
                return [np.asarray(value, type_.dtype.numpy)]
            case Ref(var=var):
                return self.vars[var]
            case Index():
                return [self.index(expr)]
            case Stride(value=value, type=type_):
                return [np.asarray(value, type_.dtype.numpy)]
            case Argument(field=field, plane=plane):
                return [self.fields[field][plane, 0]]
            case Apply():
                return self.apply(expr)
            case Cast(arg=arg, type=type_, saturate=saturate):
                cast = [meaning.convert(np.asarray(v), type_.dtype.numpy, saturate) for v in self.lanes(arg)]
                return cast * type_.lanes if len(cast) < type_.lanes else cast
            case Bits(arg=arg, type=type_):
                return [np.ascontiguousarray(v).view(type_.dtype.numpy).reshape(np.shape(v)) for v in self.lanes(arg)]
            case Lane(arg=arg, lane=lane):
                return [self.lanes(arg)[lane]]
            case Pack(args=args):
                return [lane for a in args for lane in self.lanes(a)]
            case Read():
                return self.read(expr)
            case Load(memory=memory, index=index):
                return self.load(memory, index)
        raise AssertionError(expr)

    def index(self, index: Index) -> NDArray[Any]:
        size = dict(zip(("layer", "row", "column", "element"), (*self.group, 1), strict=True))[index.axis]
        where = self.at[index.axis]
        found: dict[str, Callable[[], Any]] = {
            "global": lambda: where + index.offset,
            "local": lambda: where % size,
            "group": lambda: where // size,
            "global_size": lambda: self.domain.extent(index.axis),
            "local_size": lambda: size,
        }
        return np.asarray(found[index.kind](), np.int32)

    def apply(self, expr: Apply) -> Lanes:
        row, operands = OPS[expr.op], [self.lanes(a) for a in expr.args]
        out = []
        for i in range(expr.type.lanes):
            args = [v[i] for v in operands]
            if not row.exact:
                args = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in args]
            out.append(np.asarray(row.numpy(*args)).astype(expr.type.dtype.numpy, copy=False))
        return out

    # --- memory -------------------------------------------------------------------------------------------------

    def read(self, read: Read) -> Lanes:
        planes = self.fields[read.field]
        where, outside = self.place(read.field, read.point, read.border)
        if read.element is None:
            values = [planes[k][where] for k in range(read.field.type.planes)]
        else:
            element = np.clip(self.lanes(read.element)[0], 0, read.field.type.planes - 1)
            values = [planes[element, where]]
        if outside is None:
            return values
        assert read.fill is not None
        return [np.where(outside, planes.dtype.type(read.fill.value), v) for v in values]

    def place(self, field: FieldParam, point: Sequence[Expr] | None, border: str) -> tuple[Any, Mask | None]:
        """The position within a plane, and (for "fill") which threads are outside."""
        grid = field.type.field_shape
        if point is None:
            return (self.point if grid else 0), None
        coordinates = [np.asarray(self.lanes(e)[0], np.int64) for e in point]
        outside = np.zeros((), np.bool_)
        where: Any = 0
        for at, n in zip(coordinates, grid, strict=True):
            outside = outside | (at < 0) | (at >= n)
            where = where * n + border_index(at, n, border)
        return where, outside if border == "fill" else None

    def write(self, write: Write, mask: Mask | None) -> None:
        planes, kind, values = self.fields[write.field], write.field.type, self.lanes(write.value)
        keep = self.all(mask)
        if write.point is None:
            where: Any = self.point if kind.field_shape else np.zeros(self.count, np.int64)
        else:
            where = np.zeros(self.count, np.int64)
            for e, n in zip(write.point, kind.field_shape, strict=True):
                at = np.broadcast_to(np.asarray(self.lanes(e)[0], np.int64), self.count)
                keep = keep & (at >= 0) & (at < n)
                where = where * n + at
        if write.element is None:
            for k, value in enumerate(values):
                planes[k][where[keep]] = np.broadcast_to(value, self.count)[keep]
            return
        element = np.broadcast_to(self.lanes(write.element)[0], self.count)
        keep = keep & (element >= 0) & (element < kind.planes)
        planes[element[keep], where[keep]] = np.broadcast_to(values[0], self.count)[keep]

    def load(self, memory: Array | FieldParam, index: tuple[Expr, ...]) -> Lanes:
        if isinstance(memory, FieldParam):
            flat = self.fields[memory].reshape(-1)
            return [flat[np.clip(self.lanes(index[0])[0], 0, max(flat.size - 1, 0))]]
        where, _ = self.element(memory, index)
        return [lane[where, np.arange(self.count)] for lane in self.arrays[memory]]

    def store(self, memory: Array | FieldParam, index: tuple[Expr, ...], values: Lanes, mask: Mask | None) -> None:
        if isinstance(memory, FieldParam):
            keep = self.all(mask)
            where = np.broadcast_to(self.lanes(index[0])[0], self.count)[keep]
            self.fields[memory].reshape(-1)[where] = np.broadcast_to(values[0], self.count)[keep]
            return
        where, inside = self.element(memory, index)
        keep = self.all(mask) & inside
        for lane, value in zip(self.arrays[memory], values, strict=True):
            lane[where[keep], np.flatnonzero(keep)] = np.broadcast_to(value, self.count)[keep]

    def element(self, array: Array, index: tuple[Expr, ...]) -> tuple[NDArray[Any], Mask]:
        where, inside = np.zeros(self.count, np.int64), np.ones(self.count, np.bool_)
        for e, n in zip(index, array.shape, strict=True):
            at = np.broadcast_to(self.lanes(e)[0], self.count)
            inside &= (at >= 0) & (at < n)
            where = where * n + np.clip(at, 0, n - 1)
        return where, inside


def border_index(at: NDArray[Any], n: int, border: str) -> NDArray[Any]:
    """Coordinates along an axis of n points, brought inside by a border rule."""
    if border == "wrap":
        return np.asarray(at % n)
    if border == "reflect" and n > 1:
        m = at % (2 * (n - 1))
        return np.where(m < n, m, 2 * (n - 1) - m)
    if border == "symmetric":
        m = at % (2 * n)
        return np.where(m < n, m, 2 * n - 1 - m)
    return np.asarray(np.clip(at, 0, n - 1))
