"""The microbenchmark kernels for the facts of a device: copies, arithmetic, neighbour reads, function calls, atomics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import Atomic, Expr, FieldParam, Index, Read, Stmt, Write
from gpuop.ir.ops import OPS
from gpuop.ir.schedule_override import Pin
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, FieldType, Shape, Type

CHAINS, STEPS = 8, 32  # of multiplications and additions that depend on one another
OPERATIONS = 2 * CHAINS * (STEPS + 1) - 1
TAPS = 16
CALLS = 8
AROUND = 2  # operations around each call
BINS = 256

Compute = Callable[[Builder, Expr, FieldParam], Expr]


def copied(threads: int) -> Kernel:
    return _kernel(threads, lambda b, x, field: x)


def chains(threads: int) -> Kernel:
    return _kernel(threads, _chains)


def vector_chains(threads: int) -> Kernel:
    """Return chains of sums with a neighbour, which a CPU thread computes for the points of a vector."""

    def compute(b: Builder, x: Expr, field: FieldParam) -> Expr:
        right = b.bind(Read(field, x.type, (Index("global", "column", 1),)))
        return _chains(b, b.apply("add", x, right), field)

    return replace(_kernel(threads, compute), pin=Pin("vector rows"))


def taps(threads: int) -> Kernel:
    return _kernel(threads, _taps)


def calls(threads: int, op: str, dtype: str) -> Kernel:
    """Return calls of a row of the operator table, with arguments between 0 and 1 and near them."""

    def compute(b: Builder, x: Expr, field: FieldParam) -> Expr:
        total = x
        for k in range(CALLS):
            first = b.apply("mul", x, 1 - k / CALLS)
            others = (3 if i in OPS[op].alone else b.apply("add", x, 0.5) for i in range(1, OPS[op].arity))
            total = b.apply("add", total, b.apply(op, first, *others))
        return total

    return _kernel(threads, compute, dtype)


def atomics(threads: int) -> Kernel:
    """Return additions to places that neighbouring threads do not share."""
    source, result = FieldParam("x", FieldType(threads)), FieldParam("out0", FieldType(BINS, (), "int32"))
    body: list[Stmt] = []
    place = collector(body).apply("and", Index("global", "column"), BINS - 1)
    body.append(Atomic("add", result, (place,), (constant(1, INT),)))
    return Kernel("measured", (source,), (Output(result, 0),), Domain(Shape(threads)), tuple(body), pin=Pin("plain"))


def _chains(b: Builder, x: Expr, field: FieldParam) -> Expr:
    values = [b.apply("add", x, float(k)) for k in range(CHAINS)]
    for _ in range(STEPS):
        values = [b.apply("add", b.apply("mul", v, 0.5), x) for v in values]
    total = values[0]
    for value in values[1:]:
        total = b.apply("add", total, value)
    return total


def _taps(b: Builder, x: Expr, field: FieldParam) -> Expr:
    for k in range(1, TAPS + 1):
        x = b.apply("add", x, b.bind(Read(field, x.type, (Index("global", "column", k - TAPS // 2),))))
    return x


def _kernel(threads: int, compute: Compute, dtype: str = "float32") -> Kernel:
    kind = FieldType(threads, (), dtype)
    source, result = FieldParam("x", kind), FieldParam("out0", kind)
    body: list[Stmt] = []
    b = collector(body)
    own = b.bind(Read(source, Type(kind.storage)))
    body.append(Write(result, b.cast(compute(b, own, source), own.type)))
    return Kernel("measured", (source,), (Output(result),), Domain(Shape(threads)), tuple(body), pin=Pin("plain"))
