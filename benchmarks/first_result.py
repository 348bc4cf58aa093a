"""Time to the first result of `half` on 4096², cold and warm, and the time of a prepared step next to a device copy.

    python benchmarks/first_result.py [--device NAME] [--size 4096] [--pipeline NAME …]

Each start is a process of its own: cold with an empty compile cache (the driver's own caches are emptied too), warm with
a filled one. The first result is timed from when the device is open, and holds the way of the field there and back, which
`--size 64` leaves out. The bytes of `half` are a read and a write of the field, those of the device's own buffer copy.
Pipelines are those of `tests/composed.py`, and take the place of `half`; of these there are no steps.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

STARTS, STEPS = 5, 30


def first_result(device: str, size: int) -> None:
    """In a fresh process: import, record, compile, upload, run, download; print seconds as JSON."""
    started = time.perf_counter()
    import numpy as np

    numpy_there = time.perf_counter()
    import gpuop as gp
    from gpuop.dsl import _readTensor

    imported = time.perf_counter()
    with gp.use_device(device):
        opened = time.perf_counter()

        @gp.operator
        def half(field):  # type: ignore[no-untyped-def]
            return _readTensor(field) / 2

        image = np.random.default_rng(0).random((size, size), np.float32)
        made = time.perf_counter()
        result = half(gp.ScalarField(image)).numpy()
        done = time.perf_counter()
    assert np.array_equal(result, image / 2)
    print(
        json.dumps(
            {"import": imported - numpy_there, "device": opened - imported, "first": done - made, "all": done - started}
        )
    )


def first_of_pipeline(device: str, size: int, name: str) -> None:
    """The same for a pipeline; recording it counts, the way of its fields there, and not back."""
    started = time.perf_counter()
    import gpuop as gp
    from tests.composed import PIPELINES

    imported = time.perf_counter()
    with gp.use_device(device):
        opened = time.perf_counter()
        gp.evaluate(*PIPELINES[name](size, size))
        gp.device(device).synchronize()
        done = time.perf_counter()
    print(
        json.dumps(
            {"import": imported - started, "device": opened - imported, "first": done - opened, "all": done - started}
        )
    )


def starts(device: str, size: int, warm: bool, pipeline: str) -> dict[str, list[float]]:
    """Several fresh processes; each cold one has empty caches."""
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as kept:
        for n in range(STARTS + warm):
            with tempfile.TemporaryDirectory() as empty:
                cache = kept if warm else empty
                environment = {**os.environ, "GPUOP_CACHE": cache, "POCL_CACHE_DIR": cache, "CUDA_CACHE_PATH": cache}
                command = [sys.executable, __file__, "--child", "--device", device, "--size", str(size)]
                command += ["--pipeline", pipeline] if pipeline else []
                line = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
            if n or not warm:  # the first warm start fills the cache
                for name, seconds in json.loads(line.splitlines()[-1]).items():
                    times.setdefault(name, []).append(seconds)
    return times


def timed(action: Callable[[], None], wait: Callable[[], None]) -> list[float]:
    """Milliseconds of each of several runs, after two to warm up."""
    times = []
    for n in range(STEPS + 2):
        began = time.perf_counter()
        action()
        wait()
        if n >= 2:
            times.append(1e3 * (time.perf_counter() - began))
    return times


def steps(device: str, size: int) -> None:
    """A prepared step, and a copy of as many bytes by the device itself."""
    import numpy as np

    import gpuop as gp
    from gpuop.dsl import _readTensor

    @gp.operator
    def half(field):  # type: ignore[no-untyped-def]
        return _readTensor(field) / 2

    image = np.random.default_rng(0).random((size, size), np.float32)
    backend = gp.device(device)
    with gp.ComputeGraph(device=device) as graph:
        field = gp.ScalarField(image)
        field.next = half(field)  # what does not change would be computed once
    graph.reset()
    source, target = backend.upload(field.type, image.reshape(1, -1)), backend.empty(field.type)
    copy = timed(lambda: backend.copy(field.type, source, target), backend.synchronize)
    step = timed(graph.step, graph.synchronize)
    moved = 2 * image.nbytes
    for name, times in (("prepared step of half", step), ("device copy, same bytes", copy)):
        median = statistics.median(times)
        spread = f"{min(times):.2f} … {max(times):.2f}"
        print(f"  {name:28} {median:8.2f} ms ({spread}), {moved / median / 1e6:6.1f} GB/s")
    print(f"  step / copy                  {statistics.median(step) / statistics.median(copy):8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", help="a device's name; by default all that work")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--pipeline", nargs="*", default=[], metavar="NAME", help="pipelines in the place of `half`")
    options = parser.parse_args()
    if options.child and options.pipeline:
        first_of_pipeline(options.device, options.size, *options.pipeline)
        return
    if options.child:
        first_result(options.device, options.size)
        return
    import gpuop as gp

    for device in gp.devices() if options.device is None else [gp.device(options.device)]:
        print(f"{device.name}: {device.description}")
        for name, (label, warm) in product(options.pipeline or [""], (("cold", False), ("warm", True))):
            times = starts(device.name, options.size, warm, name)
            parts = ", ".join(f"{name} {statistics.median(t):.2f} s" for name, t in times.items() if name != "first")
            first = sorted(1e3 * t for t in times["first"])
            spread = f"{statistics.median(first):.1f} ms ({first[0]:.1f} … {first[-1]:.1f})"
            print(f"  {name} {label} start: first result {spread}; {parts}", flush=True)
        if not options.pipeline:
            steps(device.name, options.size)


if __name__ == "__main__":
    main()
