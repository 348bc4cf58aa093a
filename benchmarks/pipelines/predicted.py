"""Predicted times beside measured ones, of the pipelines.

    python -m benchmarks.pipelines.predicted --device cuda:0 --only harris gauss2 --size 4096 --seconds 300

A line for each pipeline, as it is and with `GPUOP_SCHEDULE=plain`: the sum of its kernels' predictions, the sum of what they took,
and their ratio. `python -m gpuop devices --measure` measures anew what predictions go by.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from time import monotonic

import gpuop as gp

from .catalogue import CATALOGUE
from .gpuop_itself import scheduled
from .pipeline import Array, Pipeline
from .schedules import least

NEAR = 1.3  # a prediction is good within this factor
SCHEDULES = ("auto", "plain")


def ratios(pipeline: Pipeline, arrays: tuple[Array, ...]) -> Iterator[float]:
    """Predicted over measured, with schedules and without; prints a line for each."""
    for schedule in SCHEDULES:
        with scheduled(schedule):
            (rows,) = least([pipeline.graph(arrays)])
        predicted, measured = sum(row.predicted_ms for row in rows), sum(row.median_ms for row in rows)
        print(
            f"{pipeline.name:20} {schedule:6} predicted {predicted:9.3f} ms  measured {measured:9.3f} ms  "
            f"ratio {predicted / measured:5.2f}",
            flush=True,
        )
        yield predicted / measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=gp.devices()[0].name)
    parser.add_argument("--only", nargs="*", choices=list(CATALOGUE), default=list(CATALOGUE), metavar="NAME")
    parser.add_argument("--size", type=int, help="of each axis")
    parser.add_argument("--seconds", type=float, default=600.0)
    given = parser.parse_args()
    until = monotonic() + given.seconds
    found: list[list[float]] = []
    with gp.use_device(given.device) as backend:
        for name in given.only:
            shape = CATALOGUE[name].shapes[backend.target.device]
            shape = shape if given.size is None else (given.size,) * len(shape)
            if monotonic() < until:
                found.append(list(ratios(CATALOGUE[name], CATALOGUE[name].inputs(shape))))
    for schedule, each in zip(SCHEDULES, zip(*found, strict=True), strict=True):
        good = sum(1 / NEAR <= ratio <= NEAR for ratio in each)
        print(f"{schedule}: {good} of {len(each)} within {NEAR}")


if __name__ == "__main__":
    main()
