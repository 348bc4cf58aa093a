"""What a device does in a second, measured by four small kernels in less than a second, and kept on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import perf_counter

import numpy as np

from gpuop.errors import GpuopError
from gpuop.fusion.cost import work
from gpuop.ir.build import Builder, collector
from gpuop.ir.kernel import Domain, Kernel, Output
from gpuop.ir.nodes import Expr, FieldParam, Index, Read, Stmt, Write
from gpuop.ir.pin import Pin
from gpuop.ir.throughput import DeviceFacts
from gpuop.ir.types import FieldType, Shape, Type
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.disk import cache

VERSION = "facts-1"  # what is measured, and how
COPIED = {"cpu": 2**23, "gpu": 2**26}  # floats: more than caches hold
COMPUTED = {"cpu": 2**20, "gpu": 2**24}
CHAINS, STEPS = 8, 32  # of multiplications and additions that wait for one another
TAPS = 17
ROUNDS = 4
LEAST = 1e-9  # seconds: clocks may say less

_known: dict[str, DeviceFacts | None] = {}


def facts_of(backend: Backend) -> DeviceFacts | None:
    """The facts of a device; None of the reference, and where they cannot be measured."""
    if backend.target.backend == "reference":
        return None
    name = cache.key(VERSION, backend.name, repr(backend.target), backend.identity)
    if name not in _known:
        stored = cache.load(name)
        _known[name] = DeviceFacts(**json.loads(stored)) if stored is not None else _measured(backend)
        if stored is None and _known[name] is not None:
            cache.store(name, json.dumps(vars(_known[name])).encode())
    return _known[name]


def _measured(backend: Backend) -> DeviceFacts | None:
    copied, computed = COPIED[backend.target.device], COMPUTED[backend.target.device]
    try:
        launch = _seconds(backend, _kernel(1, _own))
        copy = _seconds(backend, _kernel(copied, _own)) - launch
        operations, single = (_rate(backend, _kernel(computed, compute), launch) for compute in (_chains, _taps))
    except (GpuopError, MemoryError):  # a device with little memory
        return None
    return DeviceFacts(8 * copied / max(copy, LEAST), operations, single, launch)


def _rate(backend: Backend, kernel: Kernel, launch: float) -> float:
    """The operations of a kernel in a second."""
    return work(kernel) * kernel.domain.threads / max(_seconds(backend, kernel) - launch, LEAST)


def _own(b: Builder, x: Expr, field: FieldParam) -> Expr:
    return x


def _chains(b: Builder, x: Expr, field: FieldParam) -> Expr:
    values = [b.apply("add", x, float(k)) for k in range(CHAINS)]
    for _ in range(STEPS):
        values = [b.apply("add", b.apply("mul", v, 0.5), x) for v in values]
    total = values[0]
    for value in values[1:]:
        total = b.apply("add", total, value)
    return total


def _taps(b: Builder, x: Expr, field: FieldParam) -> Expr:
    for k in range(1, TAPS):
        x = b.apply("add", x, b.bind(Read(field, x.type, (Index("global", "column", k - TAPS // 2),))))
    return x


def _kernel(points: int, compute: Callable[[Builder, Expr, FieldParam], Expr]) -> Kernel:
    kind = FieldType(points)
    source, result = FieldParam("x", kind), FieldParam("out0", kind)
    body: list[Stmt] = []
    b = collector(body)
    own = b.bind(Read(source, Type(kind.storage)))
    body.append(Write(result, compute(b, own, source)))
    return Kernel("measured", (source,), (Output(result),), Domain(Shape(points)), tuple(body), pin=Pin("plain"))


def _seconds(backend: Backend, kernel: Kernel) -> float:
    """The least time of a kernel: others may keep the device busy."""
    kind = kernel.inputs[0].type
    planes = np.linspace(0, 1, kind.field_shape.points, dtype=np.float32)[None]
    given, made = backend.upload(kind, planes), backend.empty(kind)
    launch = backend.bind(backend.compile(kernel), (given, made))
    times = []
    for _ in range(ROUNDS + 1):
        backend.synchronize()
        start = perf_counter()
        backend.launch(launch.parts)
        backend.synchronize()
        times.append(perf_counter() - start)
    return min(times[1:])  # the first one compiles and touches memory
