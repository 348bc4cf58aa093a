"""Histograms and counts next to NumPy's, and next to Numba and OpenCV on the CPU or CuPy on a GPU, where they are installed.

    python benchmarks/counts.py [--device NAME] [--runs 20] [--size 4096]

A prepared step of a graph, waited for, and a call of each other library, waited for, in turns: medians in milliseconds, the spread
of the middle half of gpuop's, and what gpuop takes over what the best other library takes. Numba's are loops over 64 strips with
copies of the counts. Values are compared with NumPy's; OpenCV counts no value at the end of the last bin.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from turns import in_turns, middle_half, step_of

import gpuop as gp
from gpuop.runtime.devices import current

Action = Callable[[], Any]
STRIPS = 64


class Case:
    """A count by gpuop and by NumPy or CuPy; bins and ends are for loops by hand."""

    def __init__(
        self, values: np.ndarray, bins: int, ends: tuple[float, float], weights: np.ndarray | None = None
    ) -> None:
        self.values, self.bins, self.ends, self.weights = values, bins, ends, weights

    def of(self, module: Any, values: Any, weights: Any) -> Any:
        if self.values.dtype.kind == "f":
            return module.histogram(values, self.bins, self.ends, weights=weights)[0]
        return module.bincount(values.ravel(), None if weights is None else weights.ravel(), minlength=self.bins)

    def expected(self) -> np.ndarray:
        return np.asarray(self.of(np, self.values, self.weights))


def cases(size: int) -> dict[str, Case]:
    rng = np.random.default_rng(0)
    x, w = rng.random((2, size, size), np.float32)
    levels, labels = (x * 256).astype(np.uint8), (x * 1000).astype(np.int32)
    return {
        "bincount of uint8": Case(levels, 256, (0, 256)),
        "bincount of int32, 1000 counts": Case(labels, 1000, (0, 1000)),
        "histogram of float32, 256 bins": Case(x, 256, (0, 1)),
        "histogram of float32, 100 bins": Case(x, 100, (0, 1)),
        "bincount of uint8, weights": Case(levels, 256, (0, 256), w),
        "histogram of float32, 256 bins, weights": Case(x, 256, (0, 1), w),
    }


# --- other libraries --------------------------------------------------------------------------------------------------


def numba_loops() -> dict[bool, Any]:
    """Counts, and sums of weights."""
    import numba  # type: ignore[import-not-found,unused-ignore]

    def counted(flat, low, units, own):  # type: ignore[no-untyped-def]
        step = (flat.size + STRIPS - 1) // STRIPS
        for s in numba.prange(STRIPS):
            for n in range(s * step, min((s + 1) * step, flat.size)):
                own[s, min(np.int64((flat[n] - low) * units), own.shape[1] - 1)] += 1

    def weighed(flat, weights, low, units, own):  # type: ignore[no-untyped-def]
        step = (flat.size + STRIPS - 1) // STRIPS
        for s in numba.prange(STRIPS):
            for n in range(s * step, min((s + 1) * step, flat.size)):
                own[s, min(np.int64((flat[n] - low) * units), own.shape[1] - 1)] += weights[n]

    compiled = numba.njit(parallel=True, fastmath=True)
    return {False: compiled(counted), True: compiled(weighed)}


def by_numba(case: Case, loops: dict[bool, Any]) -> Action:
    kind = np.float32 if case.values.dtype.kind == "f" else np.int64
    low, units = kind(case.ends[0]), kind(case.bins / (case.ends[1] - case.ends[0]))

    def run() -> Any:
        own = np.zeros((STRIPS, case.bins), np.int32 if case.weights is None else np.float64)
        given = [] if case.weights is None else [case.weights.ravel()]
        loops[bool(given)](case.values.ravel(), *given, low, units, own)
        return own.sum(axis=0)

    return run


def by_opencv(case: Case) -> Action | None:
    if case.weights is not None or case.values.dtype == np.int32:
        return None
    import cv2  # type: ignore[import-not-found,unused-ignore]

    return lambda: cv2.calcHist([case.values], [0], None, [case.bins], list(case.ends)).ravel()


def others(case: Case, device: str, loops: dict[bool, Any]) -> dict[str, Action]:
    if device.startswith("cuda"):
        import cupy  # type: ignore[import-not-found,unused-ignore]

        given = [None if a is None else cupy.asarray(a) for a in (case.values, case.weights)]

        def on_gpu() -> Any:
            made = case.of(cupy, *given)
            cupy.cuda.Device().synchronize()
            return made.get()

        return {"CuPy": on_gpu}
    found: dict[str, Action | None] = {"NumPy": case.expected}
    found["Numba"] = by_numba(case, loops) if loops else None
    found["OpenCV"] = by_opencv(case) if find_spec("cv2") else None
    return {name: action for name, action in found.items() if action is not None}


# --- the table --------------------------------------------------------------------------------------------------------


def measured(case: Case, device: str, loops: dict[bool, Any], runs: int) -> str:
    """A row of the table."""
    fields = [None if a is None else gp.ScalarField(a) for a in (case.values, case.weights)]
    with gp.ComputeGraph() as graph:
        graph.probe(case.of(np, *fields), "result")
    actions = others(case, device, loops)
    taken = in_turns({"gpuop": step_of(graph), **actions}, runs, warm=3)
    ours, spread = middle_half(taken.pop("gpuop"))
    for name, got in {"gpuop": graph.read("result"), **{n: a() for n, a in actions.items()}}.items():
        np.testing.assert_allclose(got, case.expected(), rtol=1e-4, atol=2 if name != "gpuop" else 0, err_msg=name)
    times = {name: middle_half(seconds)[0] for name, seconds in taken.items()}
    shown = ", ".join(f"{name} {time:.2f}" for name, time in times.items())
    graph.release()
    return f"{ours:.2f} | {spread:.2f} | {shown} | {ours / min(times.values()):.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="default: the library's")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--size", type=int, default=4096)
    arguments = parser.parse_args()
    with gp.use_device(arguments.device or current().name):
        device = current().name
        loops = numba_loops() if find_spec("numba") and not device.startswith("cuda") else {}
        print(f"{device}: {current().description}; {arguments.size}×{arguments.size} values\n")
        print("| what | gpuop ms | ± | others ms | ratio |\n|---|---|---|---|---|")
        for what, case in cases(arguments.size).items():
            print(f"| {what} | {measured(case, device, loops, arguments.runs)}", flush=True)


if __name__ == "__main__":
    main()
