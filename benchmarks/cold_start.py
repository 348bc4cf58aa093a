"""The first call of a fresh process, by what it spends its time on: with empty caches, and with what another process has left.

    python benchmarks/cold_start.py [--device NAME] [--rounds 3] [--only WORD]

Each start is a process of its own, with the bytecode of an installed package. Times are milliseconds from the import of gpuop,
NumPy's being over, to the result: CPU time of all processors together, and wall time; medians of the rounds. A phase has what
is not spent in others:

    import   modules, also those that are imported in the call
    device   drivers are found and loaded, the device is opened and tested; networkx is imported meanwhile
    plan     the graph of calls is fused
    lower    passes and printing
    build    the driver compiles, or loads what it compiled
    run      copies and kernels; PoCL compiles here
    rest     recording, checks and caches
    programs what the driver built
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
SHAPE = (480, 640)
PHASES = ("import", "device", "plan", "lower", "build", "run", "rest")
PLACES = {  # functions and methods of each phase
    "gpuop.runtime.devices:open_device": "device",
    "gpuop.fusion.plan:plan": "plan",
    "gpuop.fusion.plan:plan_for": "plan",
    "gpuop.fusion.program:program": "plan",
    "gpuop.codegen.generate:generate": "lower",
    "gpuop.passes.lowering_cache:suited": "lower",
    "gpuop.runtime.base.compiled:CompilingBackend._codes": "build",
    "gpuop.runtime.execute:Prepared.run": "run",
    "gpuop.runtime.opencl.device:OpenCL.download": "run",
    "gpuop.runtime.opencl.device:OpenCL.settle": "run",
    "gpuop.runtime.cuda.device:Cuda.download": "run",
}
COUNTED = {"gpuop.runtime.opencl.device:OpenCL.build", "gpuop.runtime.cuda.device:Cuda.build"}
IN_WHOLE = "device"  # the phase that has what it calls
CALLS: dict[str, str] = {  # on `f`, float32, `b`, uint8, `m`, bool, `n`, labels
    "gaussian_filter": "nd.gaussian_filter(f, 2)",
    "uniform_filter": "nd.uniform_filter(f, 5)",
    "median_filter": "nd.median_filter(b, 3)",
    "maximum_filter": "nd.maximum_filter(b, 7)",
    "percentile_filter": "nd.percentile_filter(f, 20, 5)",
    "sobel": "nd.sobel(f)",
    "laplace": "nd.laplace(f)",
    "gaussian_laplace": "nd.gaussian_laplace(f, 2)",
    "gradient_magnitude": "nd.gaussian_gradient_magnitude(f, 2)",
    "convolve": "nd.convolve(f, np.full((5, 5), 0.04, np.float32))",
    "grey_closing": "nd.grey_closing(b, 5)",
    "binary_opening": "nd.binary_opening(m)",
    "binary_fill_holes": "nd.binary_fill_holes(m)",
    "label": "nd.label(m)",
    "mean of labels": "nd.mean(f, n, [1, 2, 3])",
    "center_of_mass": "nd.center_of_mass(f, n, [1, 2, 3])",
    "distance_edt": "nd.distance_transform_edt(m)",
    "zoom": "nd.zoom(f, 1.5)",
    "rotate": "nd.rotate(f, 30)",
    "shift": "nd.shift(f, 2.5)",
    "affine_transform": "nd.affine_transform(f, [0.9, 1.1], order=1)",
    "pointwise": "(gp.ScalarField(f) * 2 + 1).numpy()",
    "sum": "float(gp.ScalarField(f).sum())",
    "Harris": "harris(f)",
    "luma, blur, threshold": "bright(f, f, f)",
}
PIPELINES = """
def harris(pixels):
    f = gp.ScalarField(pixels)
    dx, dy = nd.sobel(f, 1), nd.sobel(f, 0)
    a, b, c = (nd.gaussian_filter(x, 1.5) for x in (dx * dx, dx * dy, dy * dy))
    return (a * c - b * b - 0.05 * (a + c) ** 2).numpy()
def bright(red, green, blue):
    luma = 0.299 * gp.ScalarField(red) + 0.587 * gp.ScalarField(green) + 0.114 * gp.ScalarField(blue)
    return (nd.gaussian_filter(luma, 2) > 0.5).numpy()
"""


class Phases:
    """The time of each phase of a process."""

    def __init__(self) -> None:
        self.spent = {phase: [0.0, 0.0] for phase in PHASES}
        self.open, self.programs = ["rest"], 0
        self.last = self.clocks()

    @staticmethod
    def clocks() -> tuple[float, float]:
        return time.process_time(), time.perf_counter()

    def turn(self) -> None:
        """Count the time until now as the innermost phase's."""
        now, spent = self.clocks(), self.spent[self.open[-1]]
        for k in (0, 1):
            spent[k] += now[k] - self.last[k]
        self.last = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.turn()
        self.open.append(name if name == "import" or self.open[-1] != IN_WHOLE else IN_WHOLE)
        try:
            yield
        finally:
            self.turn()
            self.open.pop()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            with self.phase(name):
                return function(*args, **options)

        return call

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            self.programs += 1
            return function(*args, **options)

        return call

    def follow(self) -> None:
        """Time imports, and the functions of the phases when their modules are there."""
        bootstrap: Any = sys.modules["_frozen_importlib"]
        load = bootstrap._find_and_load
        left = {**PLACES, **dict.fromkeys(COUNTED, "")}

        def find_and_load(name: str, import_: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():  # beside another phase
                return load(name, import_)
            with self.phase("import"):
                module = load(name, import_)
            for place in [place for place in left if place.startswith(f"{name}:")]:
                *outer, own = place.partition(":")[2].split(".")
                holder = getattr(module, *outer) if outer else module
                phase, function = left.pop(place), getattr(holder, own)
                setattr(holder, own, self.timed(phase, function) if phase else self.counted(function))
            return module

        bootstrap._find_and_load = find_and_load


def child(name: str) -> None:
    """Print the seconds of each phase of a first call as JSON."""
    import numpy as np

    f = np.random.default_rng(0).random(SHAPE, np.float32)
    values = {"np": np, "f": f, "b": (f * 255).astype(np.uint8), "m": f > 0.4, "n": (f * 4).astype(np.int32)}
    phases = Phases()
    phases.follow()
    exec("import gpuop as gp\nfrom gpuop import ndimage as nd" + PIPELINES, values)
    eval(CALLS[name], values)
    phases.turn()
    print(json.dumps({**phases.spent, "programs": [phases.programs] * 2}))


def start(name: str, device: str | None, cache: str, bytecode: str) -> dict[str, list[float]]:
    caches = dict.fromkeys(("GPUOP_CACHE", "POCL_CACHE_DIR", "CUDA_CACHE_PATH"), cache)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, **caches, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONPATH": path}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment |= {"GPUOP_DEVICE": device} if device else {}
    command = [sys.executable, __file__, "--child", name]
    result = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    spent: dict[str, list[float]] = json.loads(result.stdout.splitlines()[-1])
    return spent


def starts(name: str, device: str | None, rounds: int, bytecode: str) -> list[list[dict[str, list[float]]]]:
    """The times of cold starts, and of warm ones, each after a cold one with its caches."""
    start(name, device, bytecode, bytecode)  # bytecode is there
    cold, warm = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(start(name, device, cache, bytecode))
            warm.append(start(name, device, cache, bytecode))
    return [cold, warm]


def row(name: str, spent: Sequence[dict[str, list[float]]], clock: int) -> str:
    rows = [[1e3 * each[phase][clock] for phase in PHASES] for each in spent]
    middle = [median(column) for column in zip(*rows, strict=True)]
    programs = median(each["programs"][clock] for each in spent)
    return f"{name:28}" + "".join(f"{value:9.0f}" for value in (*middle, median(map(sum, rows)), programs))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", help="a device's name; by default the one that gpuop chooses")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", metavar="WORD", help="calls whose names have it")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    print(f"{'ms':28}" + "".join(f"{phase:>9}" for phase in (*PHASES, "all", "programs")))
    with tempfile.TemporaryDirectory() as bytecode:
        for name in (name for name in CALLS if options.only.lower() in name.lower()):
            for label, spent in zip(
                ("cold", "warm"), starts(name, options.device, options.rounds, bytecode), strict=True
            ):
                for clock, unit in enumerate(("CPU", "wall")):
                    print(row(f"{name[:18]}, {label} {unit}", spent, clock), flush=True)


if __name__ == "__main__":
    main()
