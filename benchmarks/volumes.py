"""Volumes in parts: what `gp.stream` and `gpuop.dask` cost beside one call, and that their memory does not grow with the volume.

python -m benchmarks.volumes cost|memory|tasks [--device NAME]

A Gaussian and the magnitude of its gradient, of float32. `cost` is the least time of several rounds over that of one call on the
whole times the points that windows have for each that is wanted. `memory` has a process for each volume, of 10 to 100 blocks of
16 MiB in a file, of which steep points are counted too: the most memory of the one that streams, and of two workers of Dask's,
beside what docs/how-to/stream.md and docs/how-to/dask.md say of it. `tasks` has many blocks of few points:
the processor's time of the process that has client and scheduler, and its memory, for each task.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

import gpuop as gp
import gpuop.dask
from gpuop import ndimage

BLOCK = (64, 256, 256)
BLOCKS = (10, 30, 100)
ROUNDS = 15
OWN, COMPILING = 400, 550  # MB of a process besides windows, where kernels are known, and where they are compiled
STREAMED, ON_WORKERS = 6, 10  # windows that a process has at most


@gp.pipeline
def slopes(volume):  # type: ignore[no-untyped-def]
    smooth = ndimage.gaussian_filter(gp.ScalarField(volume), 1)
    return np.sqrt(sum(ndimage.sobel(smooth, axis) ** 2 for axis in range(3)))


@gp.pipeline
def steep(volume):  # type: ignore[no-untyped-def]
    slope = slopes(volume)
    return slope, np.count_nonzero(slope > 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["cost", "memory", "tasks", "streamed", "on-workers"])
    parser.add_argument("--device")
    parser.add_argument("--file")
    args = parser.parse_args()
    with gp.use_device(gp.device(args.device).name):
        measure: dict[str, Callable[[], None]] = {
            "cost": cost,
            "memory": lambda: memory(args.device),
            "tasks": tasks,
            "streamed": lambda: streamed(args.file),
            "on-workers": lambda: on_workers(args.file),
        }
        measure[args.what]()


# --- cost -------------------------------------------------------------------------------------------------------------


def cost() -> None:
    volume = np.random.default_rng(0).random((192, 384, 384), np.float32)
    whole, out = slopes(volume), np.empty_like(volume)
    for chunks in ((48, 384, 384), (96, 192, 192), (64, 128, 128)):
        lazy = da.from_array(volume, chunks=chunks)
        mapped = gpuop.dask.map_blocks(slopes, lazy)
        told = gpuop.dask.explain(slopes, lazy)
        ratio = float(next(line for line in told.splitlines() if "are computed for each" in line).split()[0])
        runs: dict[str, Callable[[], Any]] = {
            "whole": lambda: slopes(volume, out=out),
            "stream": lambda chunks=chunks: gp.stream(slopes, volume, out, chunks=chunks, progress=False),
            "Dask": lambda mapped=mapped: da.store(mapped, out, lock=False, scheduler="threads", num_workers=2),
        }
        best = dict.fromkeys(runs, (float("inf"), float("inf")))
        for _ in range(ROUNDS):
            for name, run in runs.items():
                clocks = time.perf_counter, time.process_time
                started = [clock() for clock in clocks]
                run()
                took = [clock() - start for clock, start in zip(clocks, started, strict=True)]
                best[name] = min(best[name][0], took[0]), min(best[name][1], took[1])
                assert np.array_equal(out, whole)
                out[:] = 0
        whole_ms = best["whole"][0] * 1e3
        over = {name: [a / (b * ratio) for a, b in zip(best[name], best["whole"], strict=True)] for name in runs}
        told = ", ".join(f"{name} {over[name][0]:.2f} (processors {over[name][1]:.2f})" for name in ("stream", "Dask"))
        print(
            f"{'×'.join(map(str, chunks))}: whole {whole_ms:.0f} ms, {ratio:.2f} points each; over that: {told}",
            flush=True,
        )


# --- memory -----------------------------------------------------------------------------------------------------------


def memory(device: str | None) -> None:
    window = prod(n + 10 * (n == 64) for n in BLOCK) * 4 / 1e6
    print(f"a block is {'×'.join(map(str, BLOCK))} points of float32, a window {window:.1f} MB")
    for what, windows in (("streamed", STREAMED), ("on-workers", ON_WORKERS)):
        told = " or ".join(f"{own + windows * window:.0f}" for own in (OWN, COMPILING))
        print(f"{what}: {OWN} MB, or {COMPILING} where kernels are compiled, and {windows} windows are {told} MB")
        for blocks in BLOCKS:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "volume.npy"
                shape = (BLOCK[0] * blocks, *BLOCK[1:])
                made = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
                for layer in made:
                    layer[...] = np.random.default_rng(0).random(BLOCK[1:], np.float32)
                made.flush()
                command = [sys.executable, "-m", "benchmarks.volumes", what, "--file", str(path)]
                told = subprocess.run(
                    command + ["--device", device] * bool(device), check=True, capture_output=True, text=True
                )
                print(f"{what}, {blocks} blocks, {prod(shape) * 4 / 1e6:.0f} MB: {told.stdout.strip()}", flush=True)


def streamed(path: str) -> None:
    with sampled() as most:
        gp.stream(steep, path, (path[:-4] + "-out.npy",), chunks=BLOCK, progress=False)
    print(f"{most[0]:.0f} MB at most of its own, {status('VmHWM'):.0f} MB with pages of files and of libraries")


def on_workers(path: str) -> None:
    from distributed import Client, LocalCluster

    with LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        source = MappedLater(path)
        found, count = gpuop.dask.map_blocks(steep, da.from_array(source, chunks=BLOCK))
        np.lib.format.open_memmap(path[:-4] + "-out.npy", mode="w+", dtype=found.dtype, shape=found.shape)
        dask.compute(da.store(found, MappedLater(path[:-4] + "-out.npy"), lock=False, compute=False), count)
        workers = " and ".join(f"{most:.0f} MB" for most in client.run(status, "VmHWM").values())
        print(f"workers {workers}, client and scheduler {status('VmHWM'):.0f} MB")


class MappedLater:
    """An .npy file, of which each process reads and writes parts."""

    def __init__(self, path: str) -> None:
        array = np.load(path, mmap_mode="r")
        self.path, self.shape, self.dtype, self.ndim = path, array.shape, array.dtype, array.ndim
        self.chunks = None  # any part is read as fast

    def __getitem__(self, place: Any) -> Any:
        with open(self.path, "rb") as file:  # what is read so is no mapped page of the worker's
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            layer = prod(self.shape[1:])
            file.seek(place[0].start * layer * self.dtype.itemsize, 1)
            count = place[0].stop - place[0].start
            return np.fromfile(file, self.dtype, count * layer).reshape(count, *self.shape[1:])[
                (slice(None), *place[1:])
            ]

    def __setitem__(self, place: Any, values: Any) -> None:
        np.load(self.path, mmap_mode="r+")[place] = values


def status(name: str) -> float:
    """A figure of this process's, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1000


@contextmanager
def sampled() -> Iterator[list[float]]:
    """The most anonymous memory of this process meanwhile, in MB, every 2 ms."""
    most, ended = [0.0], threading.Event()

    def sample() -> None:
        while not ended.wait(0.002):
            most[0] = max(most[0], status("RssAnon"))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


# --- tasks ------------------------------------------------------------------------------------------------------------


def tasks() -> None:
    from distributed import Client, LocalCluster, wait

    once = gp.pipeline(lambda x: gp.ScalarField(x) * 2)
    near = gp.pipeline(lambda x: ndimage.uniform_filter(gp.ScalarField(x), 3))
    with LocalCluster(2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster, Client(cluster):
        for name, made, shape in (
            ("pointwise", once, (5000, 5, 5)),
            ("along an axis", near, (5000, 5, 5)),
            ("along three", near, (50, 50, 50)),
        ):
            lazy = da.zeros(shape, "f", chunks=5)
            before, start = status("VmRSS"), time.process_time()
            mapped = gpuop.dask.map_blocks(made, lazy)
            count = len(mapped.dask)
            built = time.process_time()
            wait(mapped.persist())
            took = [1e6 * seconds / count for seconds in (built - start, time.process_time() - built)]
            print(
                f"{name}: {lazy.npartitions} blocks are {count} tasks; made in {took[0]:.0f} µs each, "
                f"scheduled in {took[1]:.0f} µs; {(status('VmRSS') - before) * 1e3 / count:.1f} kB each",
                flush=True,
            )


if __name__ == "__main__":
    main()
