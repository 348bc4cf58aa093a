"""Pointwise kernels next to a device copy of the same bytes in the same run, with and without several points per thread.

    python benchmarks/pointwise.py [--device NAME] [--size 4096] [--runs 20]

A bound launch, waited for: medians with the spread of the middle half, the bytes that must move per second, and the time over
that of the copy; 1.00 is copy speed. Every kernel, its copy (on a CPU that of a thread for each core) and peers are timed in
turns: on CUDA what torch.compile, CuPy and JAX make of the same, on OpenCL the kernel that one writes by hand, a point for a
work-item.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
from turns import in_turns, middle_half

import gpuop as gp
from gpuop.base.config import config
from gpuop.dsl import *
from gpuop.engine import evaluate
from gpuop.fusion.program import program
from gpuop.runtime.devices import current

WARM = 2
LARGE = {"gpu": 16384, "cpu": 4096}
Action = Callable[[], None]


@gp.operator
def colours(image):
    red, green, blue = _readTensor(image)
    return _float3(0.9 * red + 0.1 * green, 0.2 * red + 0.7 * green + 0.1 * blue, 0.1 * red + 0.3 * green + 0.6 * blue)


@gp.operator
def functions(image):
    x = _readTensor(image)
    return _sin(x) * _exp(x) + _pow(x, 2.5)


def chain(xp: Any, x: Any) -> Any:
    for _ in range(4):
        x = xp.abs(x * 1.25 - 0.5)
    return x


def eight(x: gp.Field) -> gp.Field:
    return chain(np, x)


CASES: dict[str, tuple[str, tuple[int, ...], Callable[[gp.Field], gp.Field]]] = {
    "x / 2": ("float32", (), lambda x: x / 2),
    "chain of eight": ("float32", (), eight),
    "255 - uint8": ("uint8", (), lambda x: 255 - x),
    "float3 colours": ("float32", (3,), colours),
    "sin exp + pow": ("float32", (), functions),
}


BY_HAND = {
    "x / 2": "x / 2",
    "chain of eight": "fabs(fabs(fabs(fabs(x * 1.25f - 0.5f) * 1.25f - 0.5f) * 1.25f - 0.5f) * 1.25f - 0.5f)",
    "255 - uint8": "255 - x",
    "sin exp + pow": "sin(x) * exp(x) + pow(x, 2.5f)",
}
PEERS: dict[str, Callable[[Any, Any], Any]] = {
    "x / 2": lambda _, x: x / 2,
    "chain of eight": chain,
    "255 - uint8": lambda _, x: 255 - x,
    "float3 colours": lambda xp, x: xp.stack(
        (
            0.9 * x[..., 0] + 0.1 * x[..., 1],
            0.2 * x[..., 0] + 0.7 * x[..., 1] + 0.1 * x[..., 2],
            0.1 * x[..., 0] + 0.3 * x[..., 1] + 0.6 * x[..., 2],
        ),
        -1,
    ),
    "sin exp + pow": lambda xp, x: xp.sin(x) * xp.exp(x) + x**2.5,
}


def timed(actions: dict[str, Action], runs: int) -> dict[str, tuple[float, float]]:
    """Median and spread of the middle half, in milliseconds, of actions that take turns."""
    return {name: middle_half(seconds) for name, seconds in in_turns(actions, runs, warm=WARM).items()}


def launch_of(make: Callable[[gp.Field], gp.Field], values: np.ndarray, tensor: int, widen: bool) -> Action:
    """A bound launch, and its end."""
    config.widen = widen
    evaluate._plans.clear()  # equal programs share a plan, whatever the settings were
    backend, field = current(), gp.Field(values, tensor)
    what = program([make(field).node])
    (leaf,), (wanted,) = what.leaves, what.results
    memory = {leaf: evaluate.argument(field.node, backend), wanted: backend.empty(what.types[wanted])}
    (run,) = backend.sequence([evaluate.prepare(what, backend, None).bind(0, memory)])

    def waited(kept: object = memory) -> None:  # which the launch needs
        run()
        backend.synchronize()

    return waited


def copy_of(kind: gp.FieldType) -> Action:
    """The device's own copy; on a CPU NumPy's, by a thread for each core."""
    backend = current()
    if backend.target.device == "cpu":
        source, target = np.ones(kind.array_shape, kind.dtype), np.ones(kind.array_shape, kind.dtype)
        cores = os.cpu_count() or 1
        pool, parts = ThreadPoolExecutor(cores), [np.array_split(a, cores) for a in (target, source)]
        return lambda: list(pool.map(np.copyto, *parts)).clear()
    source, target = backend.empty(kind), backend.empty(kind)

    def run() -> None:
        backend.copy(kind, source, target)
        backend.synchronize()

    return run


def by_hand(expression: str, values: np.ndarray) -> Action:
    """A kernel of a point for a work-item, in groups of 256."""
    import pyopencl as cl

    backend: Any = current()
    kind = {"float32": "float", "uint8": "uchar"}[values.dtype.name]
    text = f"""kernel void by_hand(global const {kind} *restrict in, global {kind} *restrict out)
    {{
        const {kind} x = in[get_global_id(0)];
        out[get_global_id(0)] = {expression};
    }}"""
    kernel, queue = cl.Program(backend.context, text).build().by_hand, backend.queue
    buffers = (
        cl.Buffer(backend.context, cl.mem_flags.COPY_HOST_PTR, hostbuf=values),
        cl.Buffer(backend.context, 0, values.nbytes),
    )

    def waited() -> None:
        kernel(queue, (values.size,), (256,), *buffers)
        queue.finish()

    return waited


def peers(name: str, values: np.ndarray) -> dict[str, Action]:
    """The same by hand in OpenCL, or by other libraries on CUDA, those that are installed."""
    found: dict[str, Action] = {}
    if name in BY_HAND and current().target.backend == "opencl":
        return {"by hand": by_hand(BY_HAND[name], values)}
    if name not in PEERS or current().target.backend != "cuda":
        return found
    compute = PEERS[name]
    with suppress(ImportError):
        import torch

        given, compiled = torch.from_numpy(values).cuda(), torch.compile(lambda x: compute(torch, x))
        found["torch.compile"] = lambda: (compiled(given), torch.cuda.synchronize())[1]
    with suppress(ImportError):
        import cupy

        def pointwise(x: Any) -> Any:  # which needs a name
            return compute(cupy, x)

        single = values.ndim == 2  # which `fuse` wants
        array, fused = cupy.asarray(values), cupy.fuse(pointwise) if single else pointwise
        found["cupy.fuse" if single else "cupy"] = lambda: (fused(array), cupy.cuda.Device().synchronize())[1]
    with suppress(ImportError):
        import jax

        here, jitted = jax.device_put(values), jax.jit(lambda x: compute(jax.numpy, x))
        found["jax.jit"] = lambda: (jitted(here).block_until_ready(), None)[1]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--size", type=int, help="rows and columns; 4096 on CPUs, 16384 on GPUs")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--case", action="append", choices=CASES, help="only this one")
    given = parser.parse_args()
    with gp.use_device(given.device or current().name) as backend:
        size = given.size or LARGE[backend.target.device]
        print(f"{backend.name}: {backend.description}; {size}x{size}; median ms, spread, GB/s, over the copy")
        for name in given.case or CASES:
            dtype, tensor, make = CASES[name]
            values = (np.random.default_rng(0).random((size, size, *tensor), np.float32) * 4).astype(dtype)
            actions = {
                "copy": copy_of(gp.FieldType((size, size), tensor, dtype)),
                "one point": launch_of(make, values, len(tensor), widen=False),
                "widened": launch_of(make, values, len(tensor), widen=True),
                **peers(name, values),
            }
            found = timed(actions, given.runs)
            for what, (middle, spread) in found.items():
                speed, ratio = 2e-6 * values.nbytes / middle, middle / found["copy"][0]
                print(f"{name:15s} {what:13s} {middle:9.3f} ± {spread:7.3f} {speed:8.1f} {ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()
