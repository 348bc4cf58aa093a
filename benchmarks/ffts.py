"""Fourier transforms next to SciPy's with all threads on the CPU, and on a GPU next to CuPy's, which are cuFFT's, in the same run.

    python benchmarks/ffts.py [--device NAME] [--runs 20] [--size 2048]

Transforms of arrays in the device's memory beside the other library's; of fields, whose complex numbers lie in planes, by the
device's library and by gpuop's own passes; then with a product before and a sum behind. Of fields they are steps of a graph, waited
for. Medians in milliseconds, and what gpuop takes over what the other library takes, for arrays and with algebra.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from turns import in_turns, middle_half, step_of

import gpuop as gp
from gpuop.runtime.devices import current

# the array's shape, whether it is real, and the transform
Case = tuple[tuple[int, ...], Any, Callable[[Any, Any], Any]]


def cases(n: int) -> dict[str, Case]:
    cube = round((n * n) ** (1 / 3) / 64) * 64 or 64
    return {
        f"fft of rows, {n}×{n}": ((n, n), False, lambda lib, x: lib.fft(x)),
        f"fft of columns, {n}×{n}": ((n, n), False, lambda lib, x: lib.fft(x, axis=0)),
        f"fft2, {n}×{n}": ((n, n), False, lambda lib, x: lib.fft2(x)),
        f"rfft2, {n}×{n}": ((n, n), True, lambda lib, x: lib.rfft2(x)),
        f"irfft2, {n}×{n // 2 + 1}": ((n, n), "spectrum", lambda lib, x: lib.irfft2(x)),
        f"fftn, {cube}³": ((cube,) * 3, False, lambda lib, x: lib.fftn(x)),
        f"fft of rows of 1000, {n * n // 1000}": ((n * n // 1000, 1000), False, lambda lib, x: lib.fft(x)),
        f"fft of rows of 1009, {n * n // 1009}": ((n * n // 1009, 1009), False, lambda lib, x: lib.fft(x)),
        f"dct of rows, {n}×{n}": ((n, n), True, lambda lib, x: lib.dct(x)),
    }


def other_library(device: str) -> tuple[str, Any, Any, Callable[[], object]]:
    """Its name, its module of arrays, that of transforms, and how it is waited for."""
    if not device.startswith("cuda"):
        return "SciPy", np, WithThreads(importlib.import_module("scipy.fft")), lambda: None
    cupy = importlib.import_module("cupy")
    return "CuPy", cupy, importlib.import_module("cupyx.scipy.fft"), cupy.cuda.Device().synchronize


class WithThreads:
    """scipy.fft's functions with as many threads as there are cores."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self.module, name)
        return lambda *args, **options: function(*args, **options, workers=os.cpu_count())


class By:
    """gpuop.fft's functions by one method."""

    def __init__(self, method: str | None) -> None:
        self.method = method

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(gp.fft, name)
        return lambda *args, **options: function(*args, **options, method=self.method)


def values(shape: tuple[int, ...], real: Any) -> np.ndarray:
    """Real numbers, complex ones, or the spectrum of real ones, which has conjugates on both sides."""
    rng = np.random.default_rng(0)
    if real:
        image = rng.standard_normal(shape, np.float32)
        return image if real is True else importlib.import_module("scipy.fft").rfft2(image)
    return rng.standard_normal((*shape, 2), np.float32).view(np.complex64)[..., 0]


def measured(case: Case, library: tuple[str, Any, Any, Callable[[], object]], runs: int) -> list[float]:
    """Milliseconds: the library's, of arrays by gpuop, of fields, by passes; then but arrays with algebra around."""
    shape, real, transform = case
    _, module, transforms, wait = library
    x = values(shape, real)
    given, graphs, actions = module.asarray(x), [], {}

    def theirs(around: bool) -> Callable[[], None]:
        def run() -> None:
            made = (
                transform(transforms, given * np.float32(2)) + np.float32(1) if around else transform(transforms, given)
            )
            del made
            wait()

        return run

    def ours() -> None:
        transform(gp.fft, given)
        wait()

    for around in (False, True):
        actions[f"theirs {around}"] = theirs(around)
        if not around:
            actions["ours"] = ours
        for method in (None, "passes"):
            with gp.ComputeGraph() as graph:
                field = gp.Field(x, 0, x.dtype)
                made = transform(By(method), field * 2) + 1 if around else transform(By(method), field)
                graph.probe(made, "result")
            actions[f"{method} {around}"] = step_of(graph)
            graphs.append(graph)
            if around:
                want = transform(importlib.import_module("scipy.fft"), x * np.float32(2)) + np.float32(1)
                error = np.abs(graph.read("result") - want).max() / np.abs(want).max()
                assert error < 1e-5, f"{method}: {error}"
    taken = [middle_half(seconds)[0] for seconds in in_turns(actions, runs, warm=3).values()]
    for graph in graphs:
        graph.release()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="default: the library's")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--size", type=int, default=2048)
    arguments = parser.parse_args()
    with gp.use_device(arguments.device or current().name):
        library = other_library(current().name)
        print(f"{current().name}: {current().description}\n")
        name = library[0]
        columns = (
            f"{name} | arrays | fields | passes | {name} with algebra | fields | passes | ratio | ratio with algebra"
        )
        print(f"| what | {columns} |\n{'|---' * 10}|")
        for what, case in cases(arguments.size).items():
            row = measured(case, library, arguments.runs)
            ratios = (row[1] / row[0], row[5] / row[4])
            print(
                f"| {what} | {' | '.join(f'{ms:.3f}' for ms in row)} | {ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True
            )


if __name__ == "__main__":
    main()
