"""Host time of a prepared step of 1, 10 and 100 small kernels, next to enqueueing the same kernels with pyopencl alone.

    python benchmarks/step_overhead.py [--device NAME]

Both loops run in turns in one process, over the same compiled kernels and buffers; the device works on 64 numbers, and is
waited for outside the measured time. Median and spread (10 % … 90 %) of many turns, µs of the host for a step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import _readTensor

TURNS, STEPS = 60, 20


@gp.operator
def plus(field):  # type: ignore[no-untyped-def]
    return _readTensor(field) + 1


def graph_of(kernels: int, device: str) -> gp.ComputeGraph:
    """A chain that is left unfused."""
    with gp.ComputeGraph(device, optimize=False) as graph:
        field = gp.ScalarField(np.zeros(64, np.float32))
        for _ in range(kernels):
            field = plus(field)
        graph.probe(field, "sum")
    graph.step()
    return graph


def bare(graph: gp.ComputeGraph) -> Callable[[], None]:
    """The same launches, enqueued by a loop over pyopencl's function."""
    import pyopencl as cl

    bound = graph._live().bound
    backend = bound.backend
    launches: list[tuple[Any, ...]] = []
    for step, program in zip(bound.prepared.plan.launches, bound.prepared.programs, strict=True):
        kernel = cl.Kernel(program.code.program, program.source.entry)
        kernel.set_args(*(bound.now[1].buffers[v] for v in (*step.inputs, *step.outputs)))
        launches.append((kernel, program.source.threads, program.source.group))
    queue, enqueue = backend.queue, cl.enqueue_nd_range_kernel

    def loop() -> None:
        for kernel, threads, group in launches:
            enqueue(queue, kernel, threads, group)

    return loop


def timed(step: Callable[[], object], finish: Callable[[], None]) -> float:
    """Seconds of the host for a step; the device is idle before and after."""
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    end = time.perf_counter()
    finish()
    return (end - start) / STEPS


def shown(times: list[float]) -> str:
    low, high = (statistics.quantiles(times, n=10)[k] * 1e6 for k in (0, -1))
    return f"{statistics.median(times) * 1e6:.1f} ({low:.1f} … {high:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default=gp.devices()[0].name)
    device = parser.parse_args().device
    print(f"device: {device}, {gp.device(device).description}\n")
    print("| kernels | gpuop step, µs | pyopencl loop, µs | ratio | gpuop, µs per kernel |")
    print("|---|---|---|---|---|")
    for kernels in (1, 10, 100):
        graph = graph_of(kernels, device)
        loop = bare(graph)
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(TURNS):
            ours.append(timed(graph.step, graph.synchronize))
            theirs.append(timed(loop, graph.synchronize))
        ratio = statistics.median(ours) / statistics.median(theirs)
        each = statistics.median(ours) / kernels * 1e6
        print(f"| {kernels} | {shown(ours)} | {shown(theirs)} | {ratio:.2f} | {each:.2f} |")


if __name__ == "__main__":
    main()
