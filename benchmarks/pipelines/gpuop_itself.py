"""gpuop's own entries: as it is, without schedules, without fusion, and with contraction."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gpuop as gp
from gpuop.base.config import config
from gpuop.engine import evaluate

from .contestant import Contestant, Maker
from .pipeline import Array, Pipeline

AS_IT_IS, UNFUSED, IN_PLANES = "gpuop", "gpuop unfused", "gpuop in planes"


def entries(pipeline: Pipeline) -> dict[str, Maker]:
    """Each of them holds a graph of its own, but that of photos: a pipeline, which is called with arrays."""
    if pipeline.photo:
        unfused = entry(pipeline, schedule="plain", optimize=False)
        return {AS_IT_IS: photo(pipeline), IN_PLANES: entry(pipeline), UNFUSED: unfused}
    found = {
        AS_IT_IS: entry(pipeline),
        "gpuop plain": entry(pipeline, schedule="plain"),
        UNFUSED: entry(pipeline, schedule="plain", optimize=False),
    }
    if "precision" in inspect.signature(gp.ComputeGraph).parameters:
        found["gpuop contract"] = entry(pipeline, bits=False, precision="contract")
    return found


def entry(pipeline: Pipeline, schedule: str = "auto", bits: bool = True, **options: Any) -> Maker:
    def make(arrays: tuple[Array, ...]) -> Contestant:
        with scheduled(schedule):
            graph = pipeline.graph(arrays, **options)
            graph.step()

        def run(times: int) -> None:
            graph.step(times)
            graph.synchronize()

        run(1)
        return Contestant(run, lambda: results_of(graph), (pipeline.make,), graph.kernel_count, bits=bits)

    return make


def photo(pipeline: Pipeline) -> Maker:
    """Called with arrays as they lie, and the result of the first call to write into, as peers are."""

    def make(arrays: tuple[Array, ...]) -> Contestant:
        called = gp.pipeline(pipeline.make)
        out = called(*arrays)
        called(*arrays, out=out)

        def run(times: int) -> None:
            for _ in range(times):
                called(*arrays, out=out)

        return Contestant(run, lambda: (out,), (pipeline.make,), bits=True)

    return make


def results_of(graph: gp.ComputeGraph) -> tuple[Array, ...]:
    names = [name for n in range(10) if (name := f"result{n}") in graph._definition.probes]
    return tuple(graph.read(name) for name in names)


@contextmanager
def scheduled(schedule: str) -> Iterator[None]:
    """Plans that are compiled inside know nothing of those outside."""
    before = config.schedule
    config.schedule = schedule
    evaluate._plans.clear()
    try:
        yield
    finally:
        config.schedule = before
        evaluate._plans.clear()


def cold(name: str, device: str, shape: tuple[int, ...], seconds: float) -> dict[str, float]:
    """Seconds to the first result in a process of its own, with empty caches: see `first.py`."""
    with tempfile.TemporaryDirectory() as empty:
        caches = {"GPUOP_CACHE": empty, "POCL_CACHE_DIR": empty, "CUDA_CACHE_PATH": empty}
        command = [sys.executable, "-m", "benchmarks.pipelines.first", name, "--device", device]
        command += ["--size", "x".join(map(str, shape))]
        done = subprocess.run(
            command, env={**os.environ, **caches}, check=True, capture_output=True, text=True, timeout=seconds
        )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found
