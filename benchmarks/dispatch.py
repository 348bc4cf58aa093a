"""Host time of a launch and of a call: gpuop next to PyCUDA, cuda-bindings, CuPy, Triton, JAX and PyTorch on one GPU, or next to
pyopencl, Numba and NumPy on a CPU, in one run.

    python benchmarks/dispatch.py [--device NAME] [--json FILE]

Every way computes x / 2 of 64 numbers, unless its name says another thing; what is not installed is left out. Bursts of launches,
the device being waited for outside the measured time; median and spread (10 % … 90 %) of many bursts, µs of the host for a
launch, and until all are done. On CPUs all ways take turns. With an older gpuop in PYTHONPATH it says what a change brought.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
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
    for kernels in (1, 20):
        with gp.ComputeGraph(optimize=False) as graph:
            state = value = gp.ScalarField(np.ones(64, np.float32))
            for _ in range(kernels):
                value = half(value)
            state.next = value
        graph.step()
        yield f"gpuop, step of {kernels}", graph.step, graph.synchronize


BUFFERS: list[object] = []


def operators() -> Iterator[Way]:
    """One bound launch, as a pipeline or a graph holds it."""
    from gpuop.engine.evaluate import prepare
    from gpuop.fusion.program import program

    backend = gp.device()
    what = program([half(gp.ScalarField(np.ones(64, np.float32))).node])
    values = {v: backend.upload(kind, np.ones((1, 64), np.float32)) for v, kind in what.types.items()}
    launch = prepare(what, backend, None).bind(0, values)
    BUFFERS.append(values)  # a bound launch does not own its buffers, and a generator that is used up has no locals
    (run,) = backend.sequence([launch])
    yield "gpuop, prepared operator", run, backend.synchronize


@gp.pipeline
def halved(array):  # type: ignore[no-untyped-def]
    return half(gp.ScalarField(array))


def calls() -> Iterator[Way]:
    """The calls of users, with all that a call does."""
    array, wait = np.ones(64, np.float32), gp.device().synchronize
    u, v, out = gp.evaluate(gp.ScalarField(array)), gp.evaluate(gp.ScalarField(array)), np.empty_like(array)
    yield "gpuop, pipeline of a NumPy array", lambda: halved(array), wait
    yield "gpuop, pipeline of a NumPy array, out=", lambda: halved(array, out=out), wait
    yield "gpuop, half(u).numpy()", lambda: half(u).numpy(), wait
    yield "gpuop, (u * 2 + v).numpy()", lambda: (u * 2 + v).numpy(), wait
    yield "gpuop, gp.evaluate(half(u))", lambda: gp.evaluate(half(u)), wait
    yield "gpuop, gp.submit(gp.iterate(half, u, times=10))", lambda: gp.submit(gp.iterate(half, u, times=10)), wait


def pipelines() -> Iterator[Way]:
    import cupy

    array = cupy.ones(64, "f")
    yield "gpuop, pipeline of a CuPy array", lambda: halved(array), cupy.cuda.Device().synchronize


def pyopencl_calls() -> Iterator[Way]:
    """The launch alone, and what calls of pipelines and `.numpy()` cannot do without."""
    import pyopencl as cl

    backend: Any = gp.device()
    context, queue, access = backend.context, backend.queue, cl.mem_flags
    text = "__kernel void halved(__global const float *x, __global float *y) { int i = get_global_id(0); y[i] = x[i] / 2; }"
    kernel = cl.Kernel(cl.Program(context, text).build(), "halved")
    array, byte = np.ones(64, np.float32), np.dtype(np.uint8)
    x, y = cl.Buffer(context, access.COPY_HOST_PTR, hostbuf=array), cl.Buffer(context, access.READ_WRITE, array.nbytes)

    def launch() -> object:
        kernel.set_args(x, y)
        return cl.enqueue_nd_range_kernel(queue, kernel, (64,), (64,))

    def call() -> object:
        result = np.empty_like(array)
        given, made = (cl.Buffer(context, access.USE_HOST_PTR, hostbuf=a) for a in (array, result))
        kernel.set_args(given, made)
        cl.enqueue_nd_range_kernel(queue, kernel, (64,), (64,))
        mapped, _ = cl.enqueue_map_buffer(queue, made, cl.map_flags.READ, 0, (made.size,), byte, is_blocking=True)
        mapped.base.release(queue)
        queue.finish()
        return result

    def read() -> object:
        made, result = cl.Buffer(context, access.READ_WRITE, array.nbytes), np.empty_like(array)
        kernel.set_args(x, made)
        cl.enqueue_nd_range_kernel(queue, kernel, (64,), (64,))
        return cl.enqueue_copy(queue, result, made, is_blocking=True)

    yield "pyopencl, launch", launch, queue.finish
    yield "pyopencl, NumPy's arrays as buffers", call, queue.finish
    yield "pyopencl, launch and copy to the host", read, queue.finish


def on_the_host() -> Iterator[Way]:
    array = np.ones(64, np.float32)
    yield "NumPy", lambda: array / 2, bool
    import numba

    function = numba.njit(lambda a: a / np.float32(2))
    function(array)
    yield "Numba", lambda: function(array), bool


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


def burst(launch: Callable[[], object], wait: Callable[[], object]) -> tuple[float, float]:
    wait()
    start = time.perf_counter()
    for _ in range(LAUNCHES):
        launch()
    enqueued = time.perf_counter()
    wait()
    return (enqueued - start) / LAUNCHES, (time.perf_counter() - start) / LAUNCHES


def measured(ways: Sequence[Way]) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """Bursts of all ways in turns."""
    taken = [[burst(launch, wait) for _, launch, wait in ways] for _ in range(BURSTS + 5)][5:]
    for (name, _, _), times in zip(ways, zip(*taken, strict=True), strict=True):
        host, done = zip(*times, strict=True)
        yield name, {"host": list(host), "done": list(done)}


def all_measured(device: str) -> Iterator[tuple[str, dict[str, list[float]]]]:
    if device.startswith("cuda"):
        for ways in (
            operators,
            steps,
            calls,
            pipelines,
            pycuda,
            cupy_kernels,
            triton_kernel,
            jax_function,
            torch_kernels,
        ):
            with suppress(ImportError):
                for way in ways():  # one by one, as PyCUDA's has its context only so long
                    yield from measured([way])
        return
    found: list[Way] = []
    for ways in (operators, steps, calls, pyopencl_calls, on_the_host):
        with suppress(ImportError):
            found += ways()
    yield from measured(found)


def shown(times: list[float]) -> str:
    low, high = (statistics.quantiles(times, n=10)[k] * 1e6 for k in (0, -1))
    return f"{statistics.median(times) * 1e6:.2f} ({low:.2f} … {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default=gp.devices()[0].name)
    parser.add_argument("--json", help="write the medians, µs, to this file")
    options = parser.parse_args()
    device, file = options.device, options.json
    print(f"device: {device}, {gp.device(device).description}\n")
    medians: dict[str, Any] = {}
    print("| launch | host, µs | until done, µs |")
    print("|---|---|---|")
    with gp.use_device(device):
        for name, times in all_measured(device):
            medians[name] = {k: 1e6 * statistics.median(v) for k, v in times.items()}
            print(f"| {name} | {shown(times['host'])} | {shown(times['done'])} |", flush=True)
    if file:
        with open(file, "w", encoding="utf-8") as out:
            json.dump(medians, out, indent=1)


if __name__ == "__main__":
    main()
