"""Abstract evaluation: kernel values that follow from positions alone, thread by thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.base.records import dataclass
from gpuop.ir import numpy_semantics
from gpuop.ir.analysis.intervals import interval
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Array, Bits, Cast, Const, Expr, Index, Lane, Load, Pack, Ref, Var
from gpuop.ir.ops import OPS

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Known:
    """A scalar of some threads, as arrays over them: value, mask of threads that know it, and bounds."""

    value: NDArray[Any]
    mask: Mask
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def merged(self, new: Known, may: Mask, sure: Mask) -> Known:
        """Value after an assignment by threads that are `sure` to run it, and others that `may`."""
        equal = self.mask & new.mask & (self.value == new.value)
        mask = np.where(sure, new.mask, np.where(may, equal, self.mask))
        low, high = np.minimum(self.low, new.low), np.maximum(self.high, new.high)
        bounds = (
            np.where(sure, last, np.where(may, either, first))
            for first, either, last in ((self.low, low, new.low), (self.high, high, new.high))
        )
        return Known(np.where(may, new.value, self.value), mask, *bounds)


def between(value: NDArray[Any], mask: Mask, low: Any, high: Any) -> Known:
    """Value with bounds where it is unknown; bounds outside of its type are dropped, because integers wrap."""
    least, most = limits(value.dtype)
    inside = (low >= least) & (high <= most)
    low, high = np.where(inside, low, least), np.where(inside, high, most)
    return Known(
        value, mask, np.where(mask, value, low).astype(np.float64), np.where(mask, value, high).astype(np.float64)
    )


def limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind not in "iu":
        return (0, 1) if dtype.kind == "b" else (-np.inf, np.inf)
    return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)


def _bounds(expr: Apply, args: Sequence[Known], threads: Mask) -> tuple[Any, Any]:
    """Bounds of the result of an integer operation in the wanted threads; infinities elsewhere."""
    low, high = np.full(threads.shape, -np.inf), np.full(threads.shape, np.inf)
    if threads.any() and expr.type.integer and all(a.value.dtype.kind in "iub" for a in args):
        limits_of_args = np.stack([end[threads] for a in args for end in (a.low, a.high)])
        distinct, which = np.unique(limits_of_args, axis=1, return_inverse=True)  # threads have few ranges
        ranges = [[(int(a), int(b)) for a, b in zip(c[::2], c[1::2], strict=True)] for c in distinct.T.tolist()]
        results = np.array([interval(expr.op, each, expr.type.dtype) for each in ranges], np.float64)
        low[threads], high[threads] = results[which.reshape(-1)].T
    return low, high


Lanes = list[Known]


class Evaluation:
    """Evaluator of expressions for some threads.

    Args:
        places: positions of the threads, by (kind, axis) of an `Index`.
    """

    def __init__(self, kernel: Kernel, places: Mapping[tuple[str, str], NDArray[Any]], count: int) -> None:
        self.kernel, self.places, self.count = kernel, places, count
        self.vars: dict[Var, Lanes] = {}
        self.nowhere, self.everywhere = np.zeros(count, np.bool_), np.ones(count, np.bool_)

    def unknown(self, expr: Expr) -> Lanes:
        nothing = np.zeros(self.count, expr.type.dtype.numpy)
        return [between(nothing, self.nowhere, -np.inf, np.inf)] * expr.type.lanes

    def exactly(self, value: NDArray[Any]) -> Known:
        return between(value, self.everywhere, -np.inf, np.inf)

    def number(self, value: Any, expr: Expr) -> Known:
        return self.exactly(np.full(self.count, value, expr.type.dtype.numpy))

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
                cast = [self.cast(v, type_.dtype.numpy, saturate) for v in self.lanes(arg)]
                return cast * type_.lanes if len(cast) < type_.lanes else cast
            case Bits(arg=arg, type=type_):
                source = self.lanes(arg)
                return [between(v.value.view(type_.dtype.numpy), v.mask, -np.inf, np.inf) for v in source]
            case Lane(arg=arg, lane=lane):
                return [self.lanes(arg)[lane]]
            case Pack(args=args):
                return [lane for a in args for lane in self.lanes(a)]
            case Load(memory=Array(space="constant") as table, index=index) if table.type.lanes == 1:
                return [self.entry(table, [self.scalar(i) for i in index])]
        return self.unknown(expr)  # expressions of other kinds are unknown

    def index(self, index: Index) -> Known:
        if index.kind in ("global_size", "local_size", "group_count"):
            return self.number(self.kernel.bounds(index)[0], index)
        if (index.kind, index.axis) not in self.places:
            return self.unknown(index)[0]
        return self.exactly((self.places[index.kind, index.axis] + index.offset).astype(np.int32))

    def cast(self, source: Known, target: np.dtype[Any], saturate: bool) -> Known:
        value = numpy_semantics.convert(source.value, target, saturate)
        low, high = (np.trunc(bound) if target.kind in "iu" else bound for bound in (source.low, source.high))
        least, most = limits(target)
        if saturate:  # NaN becomes 0
            low, high = np.clip(np.minimum(low, 0), least, most), np.clip(np.maximum(high, 0), least, most)
        return between(value, source.mask, low, high)

    def apply(self, expr: Apply) -> Lanes:
        out = []
        for args in zip(*map(self.lanes, expr.args), strict=True):
            value, mask = OPS[expr.op].computed([a.value for a in args], expr.type.dtype), self.decided(expr, args)
            out.append(between(value, mask, *_bounds(expr, args, ~mask)))
        return out

    def decided(self, expr: Apply, args: tuple[Known, ...]) -> Mask:
        """Threads in which the result of an operation is known; some operations do not need all operands."""
        every = np.asarray(np.logical_and.reduce([a.mask for a in args]))
        if expr.op == "choose":
            c, a, b = args
            return np.asarray(c.mask & np.where(c.value, a.mask, b.mask))
        if expr.op in ("and", "or") and expr.type.kind == "b":
            settles = expr.op == "or"
            return np.asarray(np.logical_or.reduce([every, *(a.mask & (a.value == settles) for a in args)]))
        return every

    def entry(self, table: Array, index: Lanes) -> Known:
        """An element of a constant table."""
        where = np.zeros(self.count, np.int64)
        for at, n in zip(index, table.extents, strict=True):
            where = where * n + np.clip(at.value, 0, n - 1)
        mask: Mask = np.logical_and.reduce([at.mask for at in index])
        return between(
            np.array(table.values, table.type.dtype.numpy)[where], mask, min(table.values), max(table.values)
        )
