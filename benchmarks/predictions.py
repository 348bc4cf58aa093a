"""Predicted times of the kernels of the examples beside measured ones, in the processors' time.

    python benchmarks/predictions.py [--device NAME] [--only harris,game_of_life]

Both what a device does in a second, by which predictions go, and the kernels are measured by the time of all processors over
their number, which other programs that run meanwhile change little; so this is for CPUs. Kernels run alone, on numbers between 0
and 1 (integers: 0 to 100), as the example fuses them and with `optimize=False`. The last line counts those within a factor of 1.5.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import gpuop as gp
from examples import JOBS, graph_of
from gpuop.fusion.report.kernel_time import duration
from gpuop.ir.kernel import Kernel
from gpuop.passes.resolve_target import resolve_target
from gpuop.runtime.base.backend import Backend, Buffer, Launch
from gpuop.runtime.profile import device_facts

LEAST = 0.008  # seconds of processors that a measurement takes, so that the clock counts
MOST = 256  # launches of one
RUNS = 7
NEAR = 1.5


def cpu_seconds(backend: Backend, launch: Launch) -> float:
    """Of a launch: the processors' time over their number."""
    count, cores = 1, os.cpu_count() or 1
    while True:
        backend.synchronize()
        start = time.process_time()
        for _ in range(count):
            backend.launch(launch.parts, [])
        backend.synchronize()
        taken = time.process_time() - start
        if taken >= LEAST or count >= MOST:
            return taken / count / cores
        count = min(MOST, 2 * count)


def bound(backend: Backend, kernel: Kernel) -> tuple[Launch, list[Buffer]]:
    """A launch, and its memory."""
    rng, buffers = np.random.default_rng(0), []
    for kind in (param.type for param in kernel.inputs):
        dtype = np.dtype(kind.storage.numpy)
        planes = rng.random((kind.tensor_shape.points or 1, kind.field_shape.points)) * (
            100 if dtype.kind in "iu" else 1
        )
        buffers.append(backend.upload(kind, planes.astype(dtype)))
    buffers += [backend.empty(param.type) for param in kernel.written]
    return backend.bind(backend.compile(kernel), tuple(buffers)), buffers


def kernels(only: tuple[str, ...], device: str) -> Iterator[tuple[str, Kernel]]:
    """Each kernel once, fused ones first."""
    seen: set[Any] = set()
    for name in JOBS:
        for optimize in (True, False) if name.startswith(only) else ():
            graph = graph_of(name, device, optimize)
            for kernel in (launch.kernel for launch in graph.plan.launches):
                if isinstance(kernel, Kernel) and kernel not in seen:
                    seen.add(kernel)
                    yield f"{name}, {'fused' if optimize else 'apart'}", kernel
            graph.release()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=gp.devices()[0].name)
    parser.add_argument("--only", default="", help="examples whose names begin so, with commas between")
    given = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
    backend, ratios = gp.device(given.device), []
    measuring = backend.measuring()
    print("| example | kernel | predicted ms | measured ms | ratio |\n| --- | --- | --- | --- | --- |")
    with gp.use_device(given.device), mock.patch.object(device_facts, "run_once", cpu_seconds):
        facts = device_facts.facts_of(backend, anew=True)
        assert facts is not None
        for where, kernel in kernels(tuple(given.only.split(",")), given.device):
            launch, _kept = bound(measuring, kernel)
            took = min(cpu_seconds(measuring, launch) for _ in range(RUNS))
            expected = duration(resolve_target(kernel), backend.target, facts)
            ratios.append(expected / took)
            print(
                f"| {where} | {kernel.name} | {1e3 * expected:.3f} | {1e3 * took:.3f} | {ratios[-1]:.2f} |", flush=True
            )
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    near = sum(1 / NEAR <= ratio <= NEAR for ratio in ratios)
    print(f"\n{near} of {len(ratios)} within {NEAR}; the geometric mean of the ratios is {mean:.2f}")


if __name__ == "__main__":
    main()
