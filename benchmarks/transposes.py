"""Transposes next to a copy of the same field, on the same device in the same run, and next to NumPy's or CuPy's.

    python benchmarks/transposes.py [--device NAME] [--runs 30] [--case NAME]

Device times of kernels in turns: medians in microseconds with the spread of the middle half, and what each takes over the copy.
"f.T" goes through tiles by itself; the others are written by `_tile`, in blocks of so many threads and values of each
(katsdpsigproc's block, vtx and vty), or a thread for each value, which fuses with what follows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime.devices import current

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from transposes import fusible, transposed

WARM = 3
CASES = {"3072x8320 complex64": ((3072, 8320), "complex64"), "2048x2048 float32": ((2048, 2048), "float32")}
BLOCKS = ((16, 2, 2), (32, 1, 1), (8, 2, 3), (16, 2, 1))
Kinds = dict[str, Callable[[gp.Field], gp.Field]]


@gp.operator
def copied(f):
    return _readTensor(f)


def same(x):
    return x


def in_blocks(block: tuple[int, int, int]) -> Callable[[gp.Field], gp.Field]:
    return lambda f: transposed(f, same, *block)


KINDS: Kinds = {
    "copy": copied,
    "f.T": lambda f: f.T,
    **{f"blocks {block}": in_blocks(block) for block in BLOCKS},
    "a thread each, 16": lambda f: fusible(f, 16),
    "a thread each, 32": lambda f: fusible(f, 32),
}


def kernel_seconds(graph: gp.ComputeGraph) -> float:
    """Of one run of all its kernels."""
    return float(sum(row.median_ms for row in graph.profile(1).rows) / 1e3)


def peer(values: np.ndarray) -> tuple[str, Callable[[], float]]:
    """CuPy's transpose on CUDA, by events, and NumPy's elsewhere."""
    if current().target.backend != "cuda":

        def run() -> float:
            start = time.perf_counter()
            np.ascontiguousarray(values.T)
            return time.perf_counter() - start

        return "NumPy", run
    import cupy

    there = cupy.asarray(values)

    def on_device() -> float:
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        cupy.ascontiguousarray(there.T)
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end) / 1e3)

    return "CuPy", on_device


def measured(shape: tuple[int, int], dtype: str, runs: int) -> dict[str, np.ndarray]:
    """Quartiles of all, in turns; each has given NumPy's values."""
    parts = np.random.default_rng(0).integers(-99, 100, (2, *shape)).astype(np.float32)
    values = (parts[0] + 1j * parts[1]).astype(np.complex64) if dtype == "complex64" else parts[0]
    field = gp.ComplexField(values) if dtype == "complex64" else gp.ScalarField(values)
    timed: dict[str, Callable[[], float]] = {}
    for name, build in KINDS.items():
        with gp.ComputeGraph() as graph:
            graph.probe(build(field), "out")
        assert np.array_equal(graph.read("out"), values if name == "copy" else values.T), (
            f"{name} computes other values"
        )
        timed[name] = lambda graph=graph: kernel_seconds(graph)  # type: ignore[misc]
    name, run = peer(values)
    timed[name] = run
    times: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(runs + WARM):
        for name, run in timed.items():
            times[name].append(run() * 1e6)
    return {name: np.percentile(each[WARM:], [25, 50, 75]) for name, each in times.items()}


def main(arguments: Sequence[str] | None = None, show: Callable[[str], Any] = print) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--case", action="append", choices=CASES, help="only this one")
    given = parser.parse_args(arguments)
    with gp.use_device(given.device or current().name):
        show(f"{current().name}, {current().description}: microseconds")
        for case in given.case or CASES:
            found = measured(*CASES[case], given.runs)
            for name, (low, middle, high) in found.items():
                ratio = middle / found["copy"][1]
                show(f"{case:22} {name:20} {middle:9.1f}  ({low:.1f} … {high:.1f})  {ratio:5.2f} of a copy")


if __name__ == "__main__":
    main()
