"""Scans, sorts and medians next to NumPy's on the CPU, and on a GPU next to CuPy's on the same device, in the same run.

    python benchmarks/scans.py [--device NAME] [--runs 20]

A prepared step of a graph, waited for, and a call of the other library, waited for, in turns: medians in milliseconds with the
spread of the middle half, and what gpuop takes over what the other library takes. Values are compared with NumPy's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from turns import in_turns, middle_half, step_of

import gpuop as gp
from gpuop.runtime.devices import current

WARM, LONG = 3, 2**24
Case = tuple[
    np.ndarray | None, Callable[[Any], gp.Field], Callable[[Any, Any], Any]
]  # values, gpuop's, the other library's


def cases() -> dict[str, Case]:
    rng = np.random.default_rng(0)
    row, rows = rng.random(LONG, np.float32), rng.random((2048, 1024), np.float32)
    return {
        "cumsum of 2²⁴": (row, lambda f: f.cumsum(), lambda xp, x: xp.cumsum(x)),
        "cumsum along rows of 2048×1024": (rows, lambda f: f.cumsum(1), lambda xp, x: xp.cumsum(x, axis=1)),
        "cumsum along columns of 2048×1024": (rows, lambda f: f.cumsum(0), lambda xp, x: xp.cumsum(x, axis=0)),
        "sort of 2²⁴": (row, np.sort, lambda xp, x: xp.sort(x)),
        "argsort of 2²⁴": (row, np.argsort, lambda xp, x: xp.argsort(x)),
        "sort along rows of 2048×1024": (rows, lambda f: np.sort(f, axis=1), lambda xp, x: xp.sort(x, axis=1)),
        "median along rows of 2048×1024": (rows, lambda f: np.median(f, axis=1), lambda xp, x: xp.median(x, axis=1)),
        "sum along rows of 2048×1024": (rows, lambda f: f.sum(1), lambda xp, x: xp.sum(x, axis=1)),
        "fill of 2²⁰": (None, lambda f: gp.full(2**20, 1.5), lambda xp, x: xp.full(2**20, 1.5, np.float32)),
    }


def other_library(device: str) -> tuple[str, Any, Callable[[], object]]:
    """Its name, its module, and how it is waited for."""
    if not device.startswith("cuda"):
        return "NumPy", np, lambda: None
    import cupy  # type: ignore[import-not-found]

    return "CuPy", cupy, cupy.cuda.Device().synchronize


def measured(case: Case, module: Any, wait: Callable[[], object], runs: int) -> list[tuple[float, float]]:
    values, ours, theirs = case
    with gp.ComputeGraph() as graph:
        graph.probe(ours(None if values is None else gp.ScalarField(values)), "result")
    given = None if values is None else module.asarray(values)

    def other() -> None:
        theirs(module, given)
        wait()

    taken = in_turns({"ours": step_of(graph), "theirs": other}, runs, warm=WARM)
    got, want = graph.read("result"), np.asarray(theirs(np, values))
    if want.dtype.kind == "i":  # places of equal values may differ
        got, want = values[got], values[want]  # type: ignore[index]
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
    graph.release()
    return [middle_half(seconds) for seconds in taken.values()]


def compare(what_it_does: str | None, cases: Callable[[], dict[str, Case]]) -> None:
    """A table of all cases, on the device that the command line names."""
    parser = argparse.ArgumentParser(description=what_it_does, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="default: the library's")
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    with gp.use_device(arguments.device or current().name):
        name, module, wait = other_library(current().name)
        print(f"{current().name}: {current().description}\n")
        print(f"| what | gpuop ms | ± | {name} ms | ± | ratio |\n|---|---|---|---|---|---|")
        for what, case in cases().items():
            (ours, spread), (theirs, other) = measured(case, module, wait, arguments.runs)
            print(
                f"| {what} | {ours:.3f} | {spread:.3f} | {theirs:.3f} | {other:.3f} | {ours / theirs:.2f} |", flush=True
            )


if __name__ == "__main__":
    compare(__doc__, cases)
