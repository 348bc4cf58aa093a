"""Pointwise kernels next to a device copy of the same bytes in the same run, with and without several points per thread.

    python benchmarks/pointwise.py [--device NAME] [--size 4096] [--runs 20]

A prepared step of a graph, waited for: medians with the spread of the middle half, the bytes that must move per second, and
the time over that of the copy; 1.00 is copy speed. Every kernel and its copy are timed in turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import gpuop as gp
from gpuop import session
from gpuop.config import config
from gpuop.dsl import *
from gpuop.runtime.devices import current

WARM = 2
LARGE = {"gpu": 16384, "cpu": 4096}
Action = Callable[[], None]


@gp.operator
def colours(image):
    red, green, blue = _readTensor(image)
    return _float3(
        0.9 * red + 0.1 * green, 0.2 * red + 0.7 * green + 0.1 * blue, 0.1 * red + 0.3 * green + 0.6 * blue
    )


@gp.operator
def functions(image):
    x = _readTensor(image)
    return _sin(x) * _exp(x) + _pow(x, 2.5)


def eight(x: gp.Field) -> gp.Field:
    for _ in range(4):
        x = abs(x * 1.25 - 0.5)
    return x


CASES: dict[str, tuple[str, tuple[int, ...], Callable[[gp.Field], gp.Field]]] = {
    "x / 2": ("float32", (), lambda x: x / 2),
    "chain of eight": ("float32", (), eight),
    "255 - uint8": ("uint8", (), lambda x: 255 - x),
    "float3 colours": ("float32", (3,), colours),
    "sin exp + pow": ("float32", (), functions),
}


def timed(actions: dict[str, Action], runs: int) -> dict[str, tuple[float, float]]:
    """Median and spread of the middle half, in milliseconds, of actions that take turns."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for run in range(runs + WARM):
        for name, action in actions.items():
            began = time.perf_counter()
            action()
            if run >= WARM:
                times[name].append(1e3 * (time.perf_counter() - began))
    quarters = {name: np.percentile(found, [25, 50, 75]) for name, found in times.items()}
    return {name: (float(middle), float(high - low)) for name, (low, middle, high) in quarters.items()}


def step_of(make: Callable[[gp.Field], gp.Field], values: np.ndarray, tensor: int, widen: bool) -> Action:
    """A step that computes the field anew, and its end."""
    config.widen = widen
    session._plans.clear()  # equal programs share a plan, whatever the settings were
    with gp.ComputeGraph() as graph:
        graph.probe(make(gp.Field(values, tensor)), "result")
    graph.reset()

    def run() -> None:
        graph.step()
        graph.synchronize()

    return run


def copy_of(kind: gp.FieldType) -> Action:
    backend = current()
    source, target = backend.empty(kind), backend.empty(kind)

    def run() -> None:
        backend.copy(kind, source, target)
        backend.synchronize()

    return run


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
                "one point": step_of(make, values, len(tensor), widen=False),
                "widened": step_of(make, values, len(tensor), widen=True),
            }
            found = timed(actions, given.runs)
            for what, (middle, spread) in found.items():
                speed, ratio = 2e-6 * values.nbytes / middle, middle / found["copy"][0]
                print(f"{name:15s} {what:10s} {middle:9.3f} ± {spread:7.3f} {speed:8.1f} {ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()
