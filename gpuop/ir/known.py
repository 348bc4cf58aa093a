"""What can be known of a kernel's values before it runs: those that follow from positions alone, thread by thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.ir import meaning
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import AXES, Apply, Array, Bits, Cast, Const, Expr, Index, Lane, Load, Pack, Ref, Var
from gpuop.ir.ops import OPS

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Known:
    """A scalar of some threads, arrays over them: the value, and in which of them it is known."""

    value: NDArray[Any]
    known: Mask

    def merged(self, new: Known, may: Mask, sure: Mask) -> Known:
        """After an assignment by the threads that are `sure` to run it, and perhaps by others that `may`."""
        alike = self.known & new.known & (self.value == new.value)
        known = np.where(sure, new.known, np.where(may, alike, self.known))
        return Known(np.where(may, new.value, self.value), known)


Lanes = list[Known]


class Evaluation:
    """Evaluates expressions for some threads.

    Args:
        places: their positions: (kind, axis) of an `Index`.
    """

    def __init__(self, kernel: Kernel, places: Mapping[tuple[str, str], NDArray[Any]], count: int) -> None:
        self.kernel, self.places, self.count = kernel, places, count
        self.vars: dict[Var, Lanes] = {}
        self.nowhere, self.everywhere = np.zeros(count, np.bool_), np.ones(count, np.bool_)

    def unknown(self, expr: Expr) -> Lanes:
        nothing = Known(np.zeros(self.count, expr.type.dtype.numpy), self.nowhere)
        return [nothing] * expr.type.lanes

    def number(self, value: Any, expr: Expr) -> Known:
        return Known(np.full(self.count, value, expr.type.dtype.numpy), self.everywhere)

    def scalar(self, expr: Expr) -> Known:
        (lane,) = self.lanes(expr)
        return lane

    def lanes(self, expr: Expr) -> Lanes:
        match expr:
            case Const(value=value):
                return [self.number(value, expr)]
            case Ref(var=var):
                return self.vars[var]
            case Index():
                return [self.index(expr)]
            case Apply():
                return self.apply(expr)
            case Cast(arg=arg, type=type_, saturate=saturate):
                given = self.lanes(arg)
                cast = [Known(meaning.convert(v.value, type_.dtype.numpy, saturate), v.known) for v in given]
                return cast * type_.lanes if len(cast) < type_.lanes else cast
            case Bits(arg=arg, type=type_):
                return [Known(v.value.view(type_.dtype.numpy), v.known) for v in self.lanes(arg)]
            case Lane(arg=arg, lane=lane):
                return [self.lanes(arg)[lane]]
            case Pack(args=args):
                return [lane for a in args for lane in self.lanes(a)]
            case Load(memory=Array(space="constant") as table, index=index) if table.type.lanes == 1:
                return [self.entry(table, [self.scalar(i) for i in index])]
        return self.unknown(expr)

    def index(self, index: Index) -> Known:
        if index.kind == "global_size":
            return self.number(self.kernel.domain.extent(index.axis), index)
        if index.kind == "local_size":
            return self.number(self.kernel.work_group[AXES.index(index.axis)], index)
        if (index.kind, index.axis) not in self.places:
            return self.unknown(index)[0]
        return Known((self.places[index.kind, index.axis] + index.offset).astype(np.int32), self.everywhere)

    def apply(self, expr: Apply) -> Lanes:
        row, operands = OPS[expr.op], [self.lanes(a) for a in expr.args]
        out = []
        for args in zip(*operands, strict=True):
            given = [
                a.value.astype(np.float64) if not row.exact and a.value.dtype.kind == "f" else a.value for a in args
            ]
            value = np.asarray(row.numpy(*given)).astype(expr.type.dtype.numpy, copy=False)
            out.append(Known(value, self.decided(expr, args)))
        return out

    def decided(self, expr: Apply, args: tuple[Known, ...]) -> Mask:
        """Where an operation is known: some do not need all of their operands."""
        every = np.asarray(np.logical_and.reduce([a.known for a in args]))
        if expr.op == "choose":
            c, a, b = args
            return np.asarray(c.known & np.where(c.value, a.known, b.known))
        if expr.op in ("and", "or") and expr.type.kind == "b":
            settles = expr.op == "or"
            return np.asarray(np.logical_or.reduce([every, *(a.known & (a.value == settles) for a in args)]))
        return every

    def entry(self, table: Array, index: Lanes) -> Known:
        """An element of a constant table."""
        where = np.zeros(self.count, np.int64)
        for at, n in zip(index, table.extents, strict=True):
            where = where * n + np.clip(at.value, 0, n - 1)
        known: Mask = np.logical_and.reduce([at.known for at in index])
        return Known(np.array(table.values, table.type.dtype.numpy)[where], known)
