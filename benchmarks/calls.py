"""Calls of functions, of Python and C, that a prepared call makes, and its time: by device and by library of arrays.

    python benchmarks/calls.py [--device NAME] [--runs 300]

Counted by `sys.setprofile` ("call" and "c_call"), after three calls; microseconds are the median of the runs, each waited for on
the host where the call does. Work that a GPU has left is not counted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

import gpuop as gp
from gpuop.dsl import _readTensor
from gpuop.runtime.devices import current
from tests.counted import counted

Call = Callable[[], Any]
SHAPE = (64, 64)
one = gp.pipeline(lambda a: gp.ScalarField(a) * 2 + 1)
three = gp.pipeline(optimize=False)(lambda a: (gp.ScalarField(a) * 2 + 1) * 3)
doubled = gp.operator(lambda f: _readTensor(f) * 2)


def microseconds(call: Call, runs: int) -> float:
    times = []
    for _ in range(runs):
        began = perf_counter()
        call()
        times.append(1e6 * (perf_counter() - began))
    return median(times)


def arrays_of(library: str) -> tuple[Any, Any]:
    """An array of a library, and another one for results."""
    a = np.random.default_rng(0).random(SHAPE, np.float32)
    if library == "numpy":
        return a, np.empty_like(a)
    if library == "cupy":
        cupy = import_module("cupy")
        return cupy.asarray(a), cupy.empty(SHAPE, "f")
    if library == "torch":
        torch = import_module("torch")
        return torch.from_numpy(a).cuda(), torch.empty(SHAPE, device="cuda")
    if library == "jax":
        return import_module("jax").device_put(a), None
    cuda = import_module("numba.cuda")
    return cuda.to_device(a), cuda.device_array(SHAPE, np.float32)


def libraries(device: str) -> list[str]:
    others = ("cupy", "torch", "jax", "numba") if device.startswith("cuda") else ()
    return ["numpy", *(name for name in others if find_spec(name))]


def calls(library: str) -> Iterator[tuple[str, Call]]:
    a, out = arrays_of(library)
    for name, pipeline in (("one kernel", one), ("three kernels", three)):
        yield name, lambda pipeline=pipeline: pipeline(a)  # type: ignore[misc]
        if out is not None:
            yield f"{name}, out=", lambda pipeline=pipeline: pipeline(a, out=out)  # type: ignore[misc]
    yield "ndimage.gaussian_filter", lambda: gp.ndimage.gaussian_filter(a, 1.5)
    yield "fft.fft", lambda: gp.fft.fft(a)


def eager() -> Iterator[tuple[str, Call]]:
    a = np.random.default_rng(0).random(SHAPE, np.float32)
    field = gp.ScalarField(a)
    yield "operator(field).numpy()", lambda: doubled(field).numpy()
    yield "(field * 2 + 1).numpy()", lambda: (field * 2 + 1).numpy()
    with gp.ComputeGraph() as graph:
        state = graph.probe(field * 2, "doubled")
        del state
    yield "graph.step()", graph.step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="default: the library's")
    parser.add_argument("--runs", type=int, default=300)
    arguments = parser.parse_args()
    with gp.use_device(arguments.device or current().name):
        print(
            f"{current().name}: {current().description}\n\n| arrays | call | calls of functions | µs |\n|---|---|---|---|"
        )
        rows = [(library, *row) for library in libraries(current().name) for row in calls(library)]
        for library, name, call in [*rows, *(("fields", *row) for row in eager())]:
            print(f"| {library} | {name} | {counted(call)} | {microseconds(call, arguments.runs):.0f} |", flush=True)


if __name__ == "__main__":
    main()
