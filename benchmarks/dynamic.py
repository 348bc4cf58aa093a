"""Streams of crops of different sizes, with and without `dynamic=`, and what kernels that do not know their extents lose.

    python benchmarks/dynamic.py [--device NAME] [--crops 100] [--runs 30] [--case NAME]

Of a stream of crops: what the first call takes, what others do that meet a size for the first time, and what calls of sizes do
that were seen before (medians, in milliseconds of all processors together, which other programs change little), how many texts
were compiled, and the ratio of the times of both streams as wholes. Of images of 1024² and 4096²: device times by the driver's
events of both kinds of pipeline in turns, medians in microseconds with the spread of the middle half, and what the dynamic one
takes over the static one. Both give the same bits, which is checked.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.base.config import config
from gpuop.dsl import *
from gpuop.runtime.base.compiled import CompilingBackend
from gpuop.runtime.devices import current

WARM, SIZES, RANGE = 3, (1024, 4096), (65, 1200)
SEEN = 20  # crops, which pipelines still know
SIGMA, RADIUS = 2.0, 6
WEIGHTS = [float(w) for w in np.exp(-(np.arange(-RADIUS, RADIUS + 1) ** 2) / (2 * SIGMA**2))]
rng = np.random.default_rng(0)


@gp.operator
def sharpened(f):
    total = _readTensor(f) * 9.0
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            total -= _readTensor(f, _row + dy, _column + dx) * (0.9 + 0.05 * dx + 0.02 * dy)
    return total


@gp.operator
def along_rows(f):
    return sum(_readTensor(f, _row, _column + k - RADIUS) * (w / sum(WEIGHTS)) for k, w in enumerate(WEIGHTS))


@gp.operator
def along_columns(f):
    return sum(_readTensor(f, _row + k - RADIUS, _column) * (w / sum(WEIGHTS)) for k, w in enumerate(WEIGHTS))


def chain(image: Any) -> gp.Field:
    f = gp.ScalarField(image)
    return np.sqrt(abs(f * 0.7 + 0.1)) * f - 0.25


def convolution(image: Any) -> gp.Field:
    return sharpened(gp.ScalarField(image))


def gaussian(image: Any) -> gp.Field:
    return along_columns(along_rows(gp.ScalarField(image)))


def row_sum(image: Any) -> gp.Field:
    return gp.ScalarField(image).sum(axis=1)


def brightened(image: Any) -> gp.Field:
    """A filter, and a reduction of it."""
    smooth = gaussian(image)
    return smooth + smooth.max()


CASES: dict[str, Callable[[Any], gp.Field]] = {
    f.__name__: f for f in (chain, convolution, gaussian, row_sum, brightened)
}


@contextmanager
def counted() -> Iterator[list[int]]:
    """The number of texts that compilers get."""
    backend = type(current())
    assert issubclass(backend, CompilingBackend)
    build, found = backend.build, [0]

    def counting(self: Any, program: Any, binary: bytes | None) -> Any:
        found[0] += 1
        return build(self, program, binary)

    backend.build = counting  # type: ignore[method-assign]
    try:
        yield found
    finally:
        backend.build = build  # type: ignore[method-assign]


def stream(
    function: Callable[[Any], gp.Field], crops: list[np.ndarray], dynamic: bool
) -> tuple[float, list[float], list[float], int]:
    """The milliseconds of the first call, of others, and of the last ones again, and how many texts were compiled."""
    pipeline = gp.pipeline(dynamic=dynamic)(function)

    def timed(crop: np.ndarray) -> float:
        began = time.process_time()
        pipeline(crop)
        return 1e3 * (time.process_time() - began)

    with counted() as texts:
        first, *others = map(timed, crops)
        return first, others, [timed(crop) for crop in crops[-SEEN:]], texts[0]


def spread(times: list[float]) -> str:
    low, middle, high = np.percentile(times, (25, 50, 75))
    return f"{middle:9.1f} ±{(high - low) / 2:5.1f}"


def streams(names: list[str], count: int) -> None:
    print(
        "stream       kind       first ms   others ms (median)   seen ms (median)   texts   whole, static over dynamic"
    )
    gp.pipeline(lambda x: gp.ScalarField(x) * 1.5)(np.ones(8, np.float32))  # the device is open
    for name in names:
        crops = [rng.random(tuple(rng.integers(*RANGE, 2)), np.float32) for _ in range(count)]
        whole = {}
        for dynamic in (True, False):
            first, others, seen, texts = stream(CASES[name], crops, dynamic)
            whole[dynamic] = first + sum(others)
            ratio = "" if dynamic else f"{whole[False] / whole[True]:8.1f}"
            kind = "dynamic" if dynamic else "static"
            print(f"{name:12} {kind:8} {first:9.1f} {spread(others)} {spread(seen)} {texts:12} {ratio}")


def speeds(names: list[str], runs: int) -> None:
    print("device time  size      dynamic µs         static µs       dynamic over static")
    for name in names:
        for size in SIZES:
            image = rng.random((size, size), np.float32)
            pipelines = [gp.pipeline(dynamic=dynamic)(CASES[name]) for dynamic in (True, False)]
            assert np.array_equal(*(pipeline(image) for pipeline in pipelines))
            times: list[list[float]] = [[], []]
            for run in range(runs + WARM):
                for pipeline, taken in zip(pipelines, times, strict=True):
                    took = 1e3 * sum(row.median_ms for row in pipeline.profile(image, steps=1).rows)
                    taken += [took] if run >= WARM else []
            ratio = np.median(times[0]) / np.median(times[1])
            print(f"{name:12} {size:5} {spread(times[0])} {spread(times[1])} {ratio:9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device")
    parser.add_argument("--crops", type=int, default=100)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--case", choices=CASES)
    options = parser.parse_args()
    names = [options.case] if options.case else list(CASES)
    with TemporaryDirectory() as folder, gp.use_device(options.device or gp.devices()[0].name):
        config.cache = Path(folder)  # nothing was compiled before
        print(current().description)
        streams(names, options.crops)
        speeds(names, options.runs)


if __name__ == "__main__":
    main()
