"""The speed of a device at the work of kernels, measured by microbenchmarks and cached on disk.

The base facts are measured in a fraction of a second; a function is measured when a kernel that calls it is predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from time import monotonic, perf_counter
from typing import Any

import numpy as np

from gpuop.base.cache.disk_memo import DiskMemo
from gpuop.base.errors import GpuopError
from gpuop.fusion.report.workload import ATOMIC, NEIGHBOUR, OPERATION, VECTOR
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.device_model import DeviceFacts
from gpuop.ir.kernel import Kernel, Output, Pin
from gpuop.ir.nodes import Atomic, Expr, FieldParam, Index, Read, Stmt, Write
from gpuop.ir.ops import OPS
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, FieldType, Shape, Type
from gpuop.runtime.base.backend import Backend, Buffer, Launch

VERSION = "facts-3"  # changes with the measurements
COPIED = {"cpu": (2**18, 2**21, 2**23), "gpu": (2**20, 2**23, 2**26)}  # floats: as caches hold, and more
COMPUTED = {"cpu": 2**18, "gpu": 2**23}  # threads: so short a run is seldom disturbed
UNKNOWN = 20.0  # operations: the cost of an operation that cannot be measured
ADDRESS = 4.0  # operations: the address of a neighbour
ROUNDS = 12
AGREEING = 1.5  # a quarter of the times may be at most this many times the least
AGAIN = 60.0  # seconds after which a disturbed measurement is repeated
LEAST = 1e-15  # seconds: clocks may report less

Fact = dict[str, Any]
_facts: dict[tuple[str, str], tuple[Fact, float]] = {}  # by device and name; and until when it is valid


CHAINS, STEPS = 8, 32  # of multiplications and additions that depend on one another
OPERATIONS = 2 * CHAINS * (STEPS + 1) - 1
TAPS = 16
CALLS = 8
AROUND = 2  # operations around each call
BINS = 256

Compute = Callable[[Builder, Expr, FieldParam], Expr]


def copied(threads: int) -> Kernel:
    return _kernel(threads, lambda b, x, field: x)


def vector_chains(threads: int) -> Kernel:
    """Return chains of sums with a neighbour, which a CPU thread computes for the points of a vector."""

    def compute(b: Builder, x: Expr, field: FieldParam) -> Expr:
        right = b.bind(Read(field, x.type, (Index("global", "column", 1),)))
        return _chains(b, b.apply("add", x, right), field)

    return replace(_kernel(threads, compute), pin=Pin("vector rows"))


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
    return reduce(partial(b.apply, "add"), values)


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


def facts_of(backend: Backend, anew: bool = False) -> DeviceFacts | None:
    """Return the facts of a device; None for interpreters, and if they cannot be measured.

    Args:
        anew: forget earlier measurements.
    """
    if backend.interprets:
        return None
    try:
        base = _fact(backend, "base", lambda: _base(backend), anew)
    except (GpuopError, MemoryError):  # a device with little memory
        return None
    renewed: set[str] = set()

    def seconds(name: str) -> float:
        if name in base:
            return float(base[name])
        again = anew and name not in renewed
        renewed.add(name)
        try:
            return float(_fact(backend, name, lambda: _one(backend, name, facts), again)["seconds"])
        except (GpuopError, MemoryError):  # a device without doubles
            return (1.0 if name == VECTOR else UNKNOWN) * float(base[OPERATION])

    facts = DeviceFacts(base["launch"], tuple(map(tuple, base["copies"])), seconds)
    return facts


def disturbed(backend: Backend) -> bool:
    """Return whether a disturbed measurement of a device is to be repeated."""
    return any(until < math.inf for (device, _), (_, until) in _facts.items() if device == _device(backend))


def _device(backend: Backend) -> str:
    return "\0".join((backend.name, repr(backend.target), backend.identity))


def _fact(backend: Backend, name: str, measure: Callable[[], tuple[Fact, bool]], anew: bool) -> Fact:
    """Return a fact from memory, from disk, or from a measurement, which is cached if its runs agree."""
    device = _device(backend)
    fact, until = _facts.get((device, name), ({}, 0.0))
    if fact and monotonic() < until and not anew:
        return fact
    stored = None if anew else FACTS.load((device, name))
    fact, agree = (stored, True) if stored is not None else measure()
    if agree and stored is None:
        FACTS.store((device, name), fact)
    _facts[device, name] = fact, math.inf if agree else monotonic() + AGAIN
    return fact


def _read(fact: Fact) -> Fact:
    """Return a stored fact; an exception if its times are not above 0."""
    times = [fact["seconds"]] if "seconds" in fact else [fact[n] for n in ("launch", OPERATION, NEIGHBOUR)]
    if "seconds" not in fact:
        (first, *others) = fact["copies"]
        times += [number for size, seconds in (first, *others) for number in (size, seconds)]
    if not all(math.isfinite(t) and t > 0 for t in times):
        raise ValueError
    return fact


FACTS = DiskMemo[Fact]("facts", dict, _read, lambda: VERSION)


def _base(backend: Backend) -> tuple[Fact, bool]:
    sizes, threads = COPIED[backend.target.device], COMPUTED[backend.target.device]
    kernels = [copied(1), *map(copied, sizes), _kernel(threads, _chains), _kernel(threads, _taps)]
    (launch, *copies, arithmetic, near), agree = _seconds(backend, kernels)
    operation = max((arithmetic - launch) / threads / OPERATIONS, LEAST)
    neighbour = max((near - launch) / threads / TAPS - ADDRESS * operation, operation)
    moved = [(8 * n, max(seconds - launch, LEAST)) for n, seconds in zip(sizes, copies, strict=True)]
    return {"launch": max(launch, LEAST), "copies": moved, OPERATION: operation, NEIGHBOUR: neighbour}, agree


def _one(backend: Backend, name: str, facts: DeviceFacts) -> tuple[Fact, bool]:
    """Return the measured fact of an operator row and type, or of an atomic operation, and whether its runs agree."""
    threads = COMPUTED[backend.target.device]
    op, _, dtype = name.partition(" ")
    special = {ATOMIC: atomics, VECTOR: vector_chains}
    timed = special[name](threads) if name in special else calls(threads, op, dtype)
    (seconds,), agree = _seconds(backend, [timed])
    per_thread = (seconds - facts.launch - facts.moving(2 * timed.inputs[0].type.nbytes)) / threads
    if name in special:
        return {"seconds": max(per_thread / (OPERATIONS if name == VECTOR else 1), LEAST)}, agree
    operation = facts.seconds(OPERATION)
    if op == "add":
        return {"seconds": max(per_thread / CALLS / (1 + AROUND), operation)}, agree
    around = operation if dtype == "float32" else facts.seconds(f"add {dtype}")
    return {"seconds": max(per_thread / CALLS - AROUND * around, operation)}, agree


def _seconds(backend: Backend, timed: Sequence[Kernel]) -> tuple[list[float], bool]:
    """Return the least time of each kernel, of alternating runs, and whether a quarter of the runs were about as short."""
    measuring = backend.measuring()
    bound = [_bound(measuring, each) for each in timed]
    runs: list[list[float]] = [[] for _ in bound]
    for _ in range(ROUNDS + 1):
        for (launch, _buffers), times in zip(bound, runs, strict=True):
            times.append(run_once(measuring, launch))
    ordered = [sorted(times[1:]) for times in runs]  # the first run compiles and touches memory
    return [times[0] for times in ordered], all(times[ROUNDS // 4] <= AGREEING * times[0] for times in ordered)


def run_once(backend: Backend, launch: Launch) -> float:
    """Return the seconds of a launch, by the device's clock if it has one."""
    ran: list[Any] = []
    backend.synchronize()
    start = perf_counter()
    backend.launch(launch.parts, ran)
    backend.synchronize()
    passed, events = perf_counter() - start, [each for each in ran if each is not None]
    measured = backend.seconds(events) if events else None
    return passed if measured is None else measured


def _bound(backend: Backend, timed: Kernel) -> tuple[Launch, tuple[Buffer, Buffer]]:
    """Return a launch, and its memory, which must live as long."""
    kind = timed.inputs[0].type
    planes = np.linspace(0, 1, kind.field_shape.points).astype(kind.memory_dtype)[None]
    buffers = backend.upload(kind, planes), backend.empty(timed.written[0].type)
    return backend.bind(backend.compile(timed), buffers), buffers
