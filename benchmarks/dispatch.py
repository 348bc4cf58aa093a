"""Host time of a prepared launch: gpuop next to PyCUDA, cuda-bindings, CuPy, Triton, JAX and PyTorch, on one GPU in one run.

    python benchmarks/dispatch.py [--json FILE]

Every way computes x / 2 of 64 numbers that are on the device already; what is not installed is left out. Bursts of launches,
the device being waited for outside the measured time; median and spread (10 % … 90 %) of many bursts, µs of the host for a
launch, and until all are done.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import _readTensor

BURSTS, LAUNCHES = 60, 50
SOURCE = 'extern "C" __global__ void half_(const float *x, float *y) { int i = threadIdx.x; y[i] = x[i] / 2.0f; }'
Way = tuple[str, Callable[[], object], Callable[[], object]]  # name, launch, wait


@gp.operator
def half(field):  # type: ignore[no-untyped-def]
    return _readTensor(field) / 2


def steps() -> Iterator[Way]:
    """Prepared steps of a graph; a chain that is left unfused."""
    for device in [d.name for d in gp.devices() if "NVIDIA" in d.description]:
        for kernels in (1, 20):
            with gp.ComputeGraph(device, optimize=False) as graph:
                state = value = gp.ScalarField(np.ones(64, np.float32))
                for _ in range(kernels):
                    value = half(value)
                state.next = value
            graph.step()
            yield f"gpuop {device}, step of {kernels}", graph.step, graph.synchronize


def operators() -> Iterator[Way]:
    """One bound launch, as a pipeline or a graph holds it."""
    from gpuop.evaluation import prepare
    from gpuop.fusion.program import program

    for device in [d.name for d in gp.devices() if "NVIDIA" in d.description]:
        backend = gp.device(device)
        what = program([half(gp.ScalarField(np.ones(64, np.float32))).node])
        values = {v: backend.upload(kind, np.ones((1, 64), np.float32)) for v, kind in what.types.items()}
        launch = prepare(what, backend, None).bind(0, values)
        (run,) = backend.sequence([launch])
        yield f"gpuop {device}, prepared operator", run, backend.synchronize


def pipelines() -> Iterator[Way]:
    import cupy

    @gp.pipeline
    def halved(array):  # type: ignore[no-untyped-def]
        return half(gp.ScalarField(array))

    array = cupy.ones(64, "f")
    with gp.use_device("cuda:0"):
        halved(array)

    def call() -> object:
        with gp.use_device("cuda:0"):
            return halved(array)

    yield "gpuop cuda:0, pipeline of a CuPy array", call, cupy.cuda.Device().synchronize


def pycuda() -> Iterator[Way]:
    import pycuda.driver as drv
    from cuda.bindings import driver as cu

    from gpuop.runtime.cuda.nvrtc import compile_cuda

    context = drv.Device(0).retain_primary_context()
    context.push()
    try:
        module = drv.module_from_buffer(compile_cuda(SOURCE, f"sm_{gp.device('cuda:0').target.architecture}"))
        function, stream = module.get_function("half_"), drv.Stream()
        x, y = drv.mem_alloc(256), drv.mem_alloc(256)
        function.prepare("PP")
        size = (1, 1), (64, 1, 1)
        yield (
            "PyCUDA prepared_async_call",
            lambda: function.prepared_async_call(*size, stream, x, y),
            stream.synchronize,
        )
        (_, handle) = cu.cuModuleLoadData(compile_cuda(SOURCE, "sm_90"))
        (_, raw) = cu.cuModuleGetFunction(handle, b"half_")
        arguments = (np.array([int(x)], np.uint64), np.array([int(y)], np.uint64))
        table = np.array([a.ctypes.data for a in arguments], np.uint64)
        queue = cu.CUstream(stream.handle)
        launch = lambda: cu.cuLaunchKernel(raw, 1, 1, 1, 64, 1, 1, 0, queue, table.ctypes.data, 0)  # noqa: E731
        yield "cuda.bindings cuLaunchKernel", launch, stream.synchronize
    finally:
        drv.Context.pop()


def cupy_kernels() -> Iterator[Way]:
    import cupy

    x, y = cupy.ones(64, "f"), cupy.empty(64, "f")
    raw, wait = cupy.RawKernel(SOURCE, "half_"), cupy.cuda.Device().synchronize
    yield "CuPy RawKernel", lambda: raw((1,), (64,), (x, y)), wait
    element = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x / 2", "halved")
    yield "CuPy ElementwiseKernel", lambda: element(x, y), wait


def torch_kernels() -> Iterator[Way]:
    import torch

    x, wait = torch.ones(64, device="cuda"), torch.cuda.synchronize
    yield "PyTorch eager", lambda: x / 2, wait
    compiled = torch.compile(lambda t: t / 2)
    compiled(x)
    yield "torch.compile", lambda: compiled(x), wait


def triton_kernel() -> Iterator[Way]:
    import torch
    import triton
    import triton.language as tl

    @triton.jit  # type: ignore[untyped-decorator]
    def halved(x, y, n: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.arange(0, n)
        tl.store(y + at, tl.load(x + at) / 2)

    x = torch.ones(64, device="cuda")
    y = torch.empty_like(x)
    yield "Triton", lambda: halved[(1,)](x, y, 64), torch.cuda.synchronize


def jax_function() -> Iterator[Way]:
    import jax

    x = jax.numpy.ones(64)
    function = jax.jit(lambda a: a / 2)
    yield "jax.jit", lambda: function(x), lambda: function(x).block_until_ready()


def measured(launch: Callable[[], object], wait: Callable[[], object]) -> dict[str, list[float]]:
    host, done = [], []
    for _ in range(BURSTS + 5):
        wait()
        start = time.perf_counter()
        for _ in range(LAUNCHES):
            launch()
        enqueued = time.perf_counter()
        wait()
        host.append((enqueued - start) / LAUNCHES)
        done.append((time.perf_counter() - start) / LAUNCHES)
    return {"host": host[5:], "done": done[5:]}


def shown(times: list[float]) -> str:
    low, high = (statistics.quantiles(times, n=10)[k] * 1e6 for k in (0, -1))
    return f"{statistics.median(times) * 1e6:.2f} ({low:.2f} … {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", help="write the medians, µs, to this file")
    file = parser.parse_args().json
    medians: dict[str, Any] = {}
    print("| launch | host, µs | until done, µs |")
    print("|---|---|---|")
    for ways in (operators, steps, pipelines, pycuda, cupy_kernels, triton_kernel, jax_function, torch_kernels):
        with suppress(ImportError):
            for name, launch, wait in ways():
                times = measured(launch, wait)
                medians[name] = {k: 1e6 * statistics.median(v) for k, v in times.items()}
                print(f"| {name} | {shown(times['host'])} | {shown(times['done'])} |", flush=True)
    if file:
        with open(file, "w", encoding="utf-8") as out:
            json.dump(medians, out, indent=1)


if __name__ == "__main__":
    main()
