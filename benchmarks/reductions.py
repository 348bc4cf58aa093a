"""Reductions of gpuop next to NumPy's in the same run, and what part of the time the bytes alone take.

    python benchmarks/reductions.py [--device NAME] [--size 4096]

A prepared step of a graph, waited for; medians of 20 runs with the spread of the middle half. The floor is the field read
once at the speed of the device's own buffer copy (which reads and writes); 1.0 would be that.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import gpuop as gp
from gpuop.runtime.devices import current

RUNS, WARM = 20, 3


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Median and spread of the middle half, in milliseconds."""
    times = []
    for run in range(RUNS + WARM):
        began = time.perf_counter()
        action()
        if run >= WARM:
            times.append(1e3 * (time.perf_counter() - began))
    low, middle, high = np.percentile(times, [25, 50, 75])
    return float(middle), float(high - low)


def step_of(field: gp.Field) -> Callable[[], None]:
    """A step that computes the field anew, and its end."""
    with gp.ComputeGraph() as graph:
        graph.probe(field, "result")
    graph.reset()

    def run() -> None:
        graph.step()
        graph.synchronize()

    return run


def copy_of(kind: gp.FieldType) -> Callable[[], None]:
    backend = current()
    source, target = backend.empty(kind), backend.empty(kind)

    def run() -> None:
        backend.copy(kind, source, target)
        backend.synchronize()

    return run


def fields(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        f"{size}²": rng.random((size, size), np.float32),
        f"{size - 95}×{size - 93}": rng.random((size - 95, size - 93), np.float32),
        f"{size * size} in a row": rng.random(size * size, np.float32),
        f"{size // 2}² of 4-vectors": rng.random((size // 2, size // 2, 4), np.float32),
    }


def report(size: int) -> None:
    print(
        "| field | reduction | gpuop ms | ± | NumPy ms | ± | × of a copy | × of the bytes |\n|---|---|---|---|---|---|---|---|"
    )
    for shown, array in fields(size).items():
        field = gp.Field(array, array.ndim - min(array.ndim, 2))
        copy, _ = timed(copy_of(field.type))
        for name in ("sum", "max", "argmax", "mean"):
            for axis in (None, *range(array.ndim)) if name == "sum" else (None,):
                ours, spread = timed(step_of(getattr(field, name)(axis=axis)))
                theirs, other = timed(lambda a=array, n=name, x=axis: getattr(a, n)(axis=x))  # type: ignore[misc]
                what = name + (f" over {axis}" if axis is not None else "")
                print(
                    f"| {shown} | {what} | {ours:.2f} | {spread:.2f} | {theirs:.2f} | {other:.2f} "
                    f"| {ours / copy:.2f} | {2 * ours / copy:.2f} |"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="default: the library's")
    parser.add_argument("--size", type=int, default=4096)
    arguments = parser.parse_args()
    with gp.use_device(arguments.device or current().name):
        print(f"{current().name}: {current().description}\n")
        report(arguments.size)


if __name__ == "__main__":
    main()
