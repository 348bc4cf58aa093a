"""The workload of a kernel's threads, counted in the printable form: operations, functions and memory accesses."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import lru_cache

from gpuop.base.config import config
from gpuop.base.records import dataclass
from gpuop.fusion.cost import is_shift
from gpuop.fusion.report.thread_values import ThreadValues
from gpuop.ir import nodes as ir
from gpuop.ir.device_model import FAR_STRIDE, INTEGER_DIVISION, MASK_BITS, NARROW_GATHER, WIDE_ACCESS
from gpuop.ir.kernel import Kernel
from gpuop.ir.ops import OPS
from gpuop.ir.target import Target
from gpuop.ir.types import BOOL, DOUBLE
from gpuop.ir.visit import Copier, blocks, operands, values, walk, walk_expr
from gpuop.passes.pipeline import unguarded, unscheduled
from gpuop.passes.simplify import simplify

OPERATION, ACCESS, NEIGHBOUR, FAR, ATOMIC, BARRIER = "operation", "access", "neighbour", "far", "atomic", "barrier"
VECTOR = "vector operation"  # of a lane of an explicit vector, which a CPU compiler leaves as it is
SLOW = {
    "div",
    "mod",
    "sqrt",
    "fmod",
    "native_divide",
}  # slow operations of floats, besides functions with an error bound


Counts = defaultdict[str, float]


@dataclass(frozen=True)
class Workload:
    """The work of one thread.

    Attributes:
        threads: the number of threads.
        vectors: True if it computes in vectors, so that a compiler does not vectorize over threads.
        lanes: by kind, for each lane of a vector, or where it differs between threads: OPERATION, ACCESS (of memory that lies
            near, or beside that of the next thread), NEIGHBOUR (of a place that is computed), FAR (of one in another line than
            that of the next thread), ATOMIC, BARRIER, or an operator and its type.
        scalars: the same of what is computed once for a vector, or would be the same for the next threads.
    """

    threads: int
    vectors: bool
    lanes: Counts
    scalars: Counts


def workload(kernel: Kernel, target: Target) -> Workload:
    """The workload of a recorded kernel on a target, with its schedule; cached, as plans are explained more than once."""
    return _workload(kernel, target, config.generating)


@lru_cache(maxsize=256)
def _workload(kernel: Kernel, target: Target, settings: tuple[object, ...]) -> Workload:
    lowered = unguarded(kernel, target)
    vectors = any(stmt.var.type.lanes > 1 for stmt in walk(lowered.body) if isinstance(stmt, ir.Let))
    count = _Count(ThreadValues(lowered), target.device == "cpu", vectors)
    count.block(lowered.body, 1.0)
    return Workload(lowered.domain.threads, vectors, count.lanes, count.scalars)


def recorded_work(kernel: Kernel, target: Target) -> Workload:
    """The work for each point of a recorded kernel, far from edges: every operation once, and no access, as threads share those."""
    return _recorded_work(kernel, target, config.generating)


@lru_cache(maxsize=64)
def _recorded_work(kernel: Kernel, target: Target, settings: tuple[object, ...]) -> Workload:
    ready = unscheduled(kernel, target)
    inside = simplify(replace(ready, body=_AtCentre(ready).copy()))
    count = _Count(ThreadValues(inside), target.device == "cpu", False)
    count.block(inside.body, 1.0)
    return Workload(ready.domain.threads, True, count.lanes, defaultdict(float))


class _AtCentre(Copier):
    """Copies the body of a kernel for the point in the middle of its grid: what depends on positions alone is a number."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.body)
        self.domain = kernel.domain

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Index) and expr.kind == "global":
            return ir.Const(self.domain.extent(expr.axis) // 2 + expr.offset, expr.type)
        return super().expr(expr)


class _Count:
    """Walks a block in the order of its text."""

    def __init__(self, threads: ThreadValues, on_cpu: bool, vectors: bool) -> None:
        self.threads, self.on_cpu, self.vectors = threads, on_cpu, vectors
        self.lanes: Counts = defaultdict(float)
        self.scalars: Counts = defaultdict(float)

    def block(self, block: ir.Block, runs: float) -> None:
        for stmt in block:
            for value in values(stmt):
                for expr in walk_expr(value):
                    self.expr(expr, runs)
            self.memory(stmt, runs)
            self.threads.note(stmt, runs)
            if isinstance(stmt, ir.If):
                self.branches(stmt, runs)
            else:
                turns = self.threads.turns(stmt)
                with self.threads.inside(stmt):
                    for inner in blocks(stmt):
                        self.block(inner, runs * turns)

    def branches(self, stmt: ir.If, runs: float) -> None:
        """Count the cheaper of two branches on a position; the other one is for edges."""
        if not (stmt.orelse and self.threads.is_position(stmt.cond)):
            for inner in (stmt.then, stmt.orelse):
                self.block(inner, runs * self.threads.share(stmt.cond))
            return
        counts = [_Count(self.threads, self.on_cpu, self.vectors) for _ in range(2)]
        for one, branch in zip(counts, (stmt.then, stmt.orelse), strict=True):
            one.block(branch, runs)
        least = min(counts, key=lambda one: sum(one.lanes.values()) + sum(one.scalars.values()))
        for mine, more in ((self.lanes, least.lanes), (self.scalars, least.scalars)):
            for kind, count in more.items():
                mine[kind] += count

    def expr(self, expr: ir.Expr, runs: float) -> None:
        if isinstance(expr, ir.Load):
            self.access(expr.memory, expr.index, expr.type.lanes, runs)
        elif (kind := _kind(expr)) and not self.threads.is_offset(expr):
            lanes = max(e.type.lanes for e in (expr, *operands(expr)))
            runs = self.threads.varying(expr, runs) * self.weight(expr, kind)
            if lanes > 1 and _bits(expr) < 32:
                runs /= 2
            self.add(kind, lanes, runs, self.threads.stride(expr) == 0)

    def weight(self, expr: ir.Expr, kind: str) -> float:
        if not isinstance(expr, ir.Apply) or kind != OPERATION:
            return 1.0
        if self.on_cpu and self.threads.is_extreme(expr):
            return 0.0  # a CPU has one instruction for it and its comparison, which counts
        return INTEGER_DIVISION if expr.op in ("div", "mod") and not is_shift(expr) else 1.0

    def add(self, kind: str, lanes: int, runs: float, alike: bool) -> None:
        if lanes > 1 or not (self.vectors or alike):
            self.lanes[kind] += lanes * runs
        else:
            self.scalars[kind] += runs

    def access(self, memory: ir.Array | ir.FieldParam, index: tuple[ir.Expr, ...], lanes: int, runs: float) -> None:
        strides = [self.threads.stride(e) for e in index]
        array = memory if isinstance(memory, ir.Array) else None
        private = array is not None and array.space == "private"
        bits = (memory.type.dtype if isinstance(memory, ir.Array) else memory.type.storage).bits
        if lanes > 1:
            self.add(ACCESS, lanes, runs * bits / 32, False)
        elif None in strides and (private or array is None):
            self.add(NEIGHBOUR, 1, runs * (NARROW_GATHER if bits < 32 and self.on_cpu else 1.0), False)
        elif array is None and abs(strides[-1] or 0) >= FAR_STRIDE:
            self.add(FAR, 1, runs, False)
        elif not private or self.vectors:  # else they are registers
            wide = not self.on_cpu and self.threads.is_counted(index[-1:])
            self.add(ACCESS, 1, runs / WIDE_ACCESS if wide else runs, not any(strides))

    def memory(self, stmt: ir.Stmt, runs: float) -> None:
        match stmt:
            case ir.Store(memory=ir.Array(space="private")) if not self.vectors and self.on_cpu:
                self.lanes[ACCESS] += runs  # nothing waits for it
            case ir.Store(memory=memory, index=index, value=value):
                self.access(memory, index, value.type.lanes, runs)
            case ir.Wide(array=array):
                self.lanes[ACCESS] += array.elements * runs / WIDE_ACCESS
            case ir.Atomic(op="read", memory=memory, index=index):  # a read of an output: no other thread waits
                self.access(memory, index, 1, runs)
            case ir.Atomic(memory=memory):
                self.lanes[ATOMIC if isinstance(memory, ir.FieldParam) else ACCESS] += runs
            case ir.Barrier():
                self.lanes[BARRIER] += runs


def _bits(expr: ir.Expr) -> int:
    """The bits of the widest operand or result of an operation on vectors; a bool is as wide as the others."""
    kinds = {e.type.dtype for e in (expr, *operands(expr))} - {BOOL}
    return max((dtype.bits for dtype in kinds), default=MASK_BITS)


def _kind(expr: ir.Expr) -> str:
    match expr:
        case ir.Apply(op=op):
            of = (*operands(expr), expr)[0].type
            slow = of.kind == "f" and (OPS[op].ulp or op in SLOW)
            return f"{op} {of.dtype.name}" if slow else f"add {DOUBLE.name}" if of.dtype is DOUBLE else OPERATION
        case ir.Cast(arg=arg):
            same = arg.type.integer and expr.type.integer and arg.type.dtype.bits == expr.type.dtype.bits
            return "" if same or arg.type.dtype is expr.type.dtype else OPERATION
    return ""
