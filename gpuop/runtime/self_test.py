"""The self-test of a device: three small kernels with known results.

The first has a branch, reads at other points, and tail threads. The second has integer expressions that compilers have got
wrong: maxima of complements and negations, the sign of a negation, the absolute value of the least integer, narrow integers
that are clipped or subtracted and then compared. The third has a barrier: a negated float lives across it, a multiple of a
position goes through local memory, and a multiple is stored in reverse.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpuop.base.cache import blob_store
from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.expansions.table import expand
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import DTYPES, FLOAT, INT, FieldType, Shape, Type
from gpuop.runtime.base.backend import Backend

REALS = (9, 1, 2, 6, 8)
NUMBERS = (-(2**31), -5, 0, 7, 9)
COLUMN = ir.Index("global", "column")
WAITING, GROUP = 64, 32  # threads of the barrier test, and threads of a work-group
Run = Callable[[Any], Any]  # of a test's kernel: the planes of its output for those of its input
WAITS = "-x behind a barrier", "-x * x behind it", "3 * position of the thread before", "3 * position stored in reverse"


def _narrow(b: Builder, x: ir.Expr, name: str) -> ir.Expr:
    return b.cast(x, Type(DTYPES[name]), saturate=False)


def _extremes(b: Builder, x: ir.Expr, y: ir.Expr, z: ir.Expr) -> ir.Expr:
    return b.apply("max", b.apply("max", b.apply("neg", x), b.apply("neg", y)), b.apply("neg", z))


def _clipped(b: Builder, x: ir.Expr, y: ir.Expr, z: ir.Expr) -> ir.Expr:
    return b.apply("eq", b.apply("min", b.apply("max", _narrow(b, x, "short"), 0), 7), 7)


def _compared(b: Builder, x: ir.Expr, y: ir.Expr, z: ir.Expr) -> ir.Expr:
    return b.apply("lt", b.apply("sub", _narrow(b, x, "char"), _narrow(b, y, "char")), 0)


SHAPES: dict[str, tuple[Callable[[Builder, ir.Expr, ir.Expr, ir.Expr], ir.Expr], Callable[[Any, Any, Any], Any]]] = {
    "max(x, ~y)": (lambda b, x, y, z: b.apply("max", x, b.apply("invert", y)), lambda x, y, z: np.maximum(x, ~y)),
    "max(max(-x, -y), -z)": (_extremes, lambda x, y, z: np.maximum(np.maximum(-x, -y), -z)),
    "-x >> 31": (lambda b, x, y, z: b.apply("shr", b.apply("neg", x), 31), lambda x, y, z: -x >> 31),
    "min(abs(x), 0)": (
        lambda b, x, y, z: b.apply("min", expand(b, "absolute", x), 0),
        lambda x, y, z: np.minimum(np.abs(x), 0),
    ),
    "clip((short)x, 0, 7) == 7": (_clipped, lambda x, y, z: np.clip(x.astype(np.int16), 0, 7) == 7),
    "(char)x - (char)y < 0": (_compared, lambda x, y, z: x.astype(np.int8) - y.astype(np.int8) < 0),
}


def mistake(backend: Backend) -> str:
    """Return what a device computes wrongly, as a sentence; "" if nothing. Expressions are tried once per driver and cache."""
    trusted = blob_store.key("trusted", *SHAPES, *WAITS, repr(backend.target), backend.identity)
    tried = blob_store.load(trusted) is not None
    tests = (
        [(_halving, _wrong_half)]
        if tried
        else [(_halving, _wrong_half), (_shapes, _wrong_shape), (_waits, _wrong_wait)]
    )
    kernels = [kernel() for kernel, _ in tests]
    programs = backend.compile_all(kernels)  # at once: drivers are slow to begin
    wrong = (
        test(partial(_run, backend, kernel, program))
        for (_, test), kernel, program in zip(tests, kernels, programs, strict=True)
    )
    first = next(filter(None, wrong), "")
    if not tried and not first:
        blob_store.store(trusted, b"")
    return first


def _wrong_half(run: Run) -> str:
    halves = run(np.array([REALS], np.float32))[0]
    return "" if np.array_equal(halves, [0.5, 0.5, 1, 3, 4]) else f"it computes {halves.tolist()}"


def _wrong_shape(run: Run) -> str:
    results = run(np.array([NUMBERS], np.int32))
    x = np.array(NUMBERS, np.int32)
    for (text, (_, right)), actual in zip(SHAPES.items(), results, strict=True):
        with np.errstate(all="ignore"):
            want = np.asarray(right(x, x[::-1], x[3])).astype(np.int32)
        if not np.array_equal(actual, want):
            return f"it computes {text} wrongly, {actual.tolist()} instead of {want.tolist()}"
    return ""


def _wrong_wait(run: Run) -> str:
    column = np.arange(WAITING)
    x = (column - 30).astype(np.float32)
    results = run(x[None])
    before = 3 * np.maximum(column % GROUP - 1, 0)
    expected: tuple[Any, ...] = (-x, -x * x, before, 3 * column[::-1] * (column > 2))
    for text, want, actual in zip(WAITS, expected, results, strict=True):
        if not np.array_equal(actual, want):
            bad = np.flatnonzero(actual != want)
            return f"it computes {text} wrongly, {actual[bad[0]]} instead of {want[bad[0]]} in thread {bad[0]}"
    return ""


def _run(backend: Backend, kernel: Kernel, program: Any, planes: Any) -> Any:
    """Return the planes of the output of a kernel with one input."""
    (param,), (output,) = kernel.inputs, kernel.outputs
    source, result = backend.upload(param.type, planes), backend.empty(output.param.type)
    backend.bind(program, (source, result)).run()
    return backend.download(output.param.type, result)


def _halving() -> Kernel:
    """Return (i < 1 ? x[1] : x[i]) / 2."""
    source, halves = ir.FieldParam("x", FieldType(5)), ir.FieldParam("out0", FieldType(5))
    out: list[ir.Stmt] = []
    b, value = collector(out), ir.Var("value", Type(FLOAT), mutable=True)
    out.append(ir.Let(value, ir.Read(source, value.type)))
    first = b.apply("lt", COLUMN, 1)
    out.append(ir.If(first, (ir.Assign(value, ir.Read(source, value.type, (constant(1, INT),))),)))
    out.append(ir.Write(halves, b.apply("div", ir.Ref(value), 2.0)))
    return Kernel("self_test", (source,), (Output(halves),), Domain(Shape(5)), tuple(out))


def _shapes() -> Kernel:
    """Return the expressions of x[i], x[4 - i] and x[3]."""
    source = ir.FieldParam("x", FieldType(5, (), "int32"))
    results = ir.FieldParam("out0", FieldType(5, (len(SHAPES),), "int32"))
    out: list[ir.Stmt] = []
    b = collector(out)
    places = (None, (b.apply("sub", 4, COLUMN),), (constant(3, INT),))
    x, y, z = (b.bind(ir.Read(source, Type(INT), place)) for place in places)
    for k, (make, _) in enumerate(SHAPES.values()):
        out.append(ir.Write(results, b.cast(make(b, x, y, z), Type(INT)), None, constant(k, INT)))
    return Kernel("self_test_of_shapes", (source,), (Output(results),), Domain(Shape(5)), tuple(out))


def _waits() -> Kernel:
    """Return a barrier, local memory, and stores at the other end of the row."""
    source, results = ir.FieldParam("x", FieldType(WAITING)), ir.FieldParam("out0", FieldType(WAITING, (len(WAITS),)))
    local, shared = ir.Index("local", "column"), ir.Array("shared", Type(INT), (GROUP,), "local")
    out: list[ir.Stmt] = []
    b = collector(out)
    x = b.bind(ir.Read(source, Type(FLOAT)))
    negated = b.apply("neg", x)
    out += [ir.Declare(shared), ir.Store(shared, (local,), b.apply("mul", local, 3)), ir.Barrier("local")]
    before = b.bind(ir.Load(shared, (b.apply("max", b.apply("sub", local, 1), 0),), Type(INT)))
    for k, value in enumerate((negated, b.apply("mul", negated, x), b.cast(before, Type(FLOAT)))):
        out.append(ir.Write(results, value, None, constant(k, INT)))
    few, inner = b.apply("lt", COLUMN, WAITING - 3), list[ir.Stmt]()
    b = collector(inner)
    last, tripled = b.apply("sub", constant(WAITING - 1, INT), COLUMN), b.cast(b.apply("mul", COLUMN, 3), Type(FLOAT))
    inner.append(ir.Write(results, tripled, (last,), constant(3, INT)))
    out.append(ir.If(few, tuple(inner)))
    outputs, domain = (Output(results, 0.0),), Domain(Shape(WAITING))
    return Kernel("self_test_of_waits", (source,), outputs, domain, tuple(out), group=(1, 1, GROUP))
