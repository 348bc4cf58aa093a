"""Predicted times beside measured ones, of the pipelines.

    python -m benchmarks.pipelines.predicted --device cuda:0 --only harris gauss2 --size 4096 --seconds 300

A line for each pipeline, as it is and with `GPUOP_SCHEDULE=plain`: the sum of its kernels' predictions, the sum of what they took,
and their ratio. `python -m gpuop devices --measure` measures anew what predictions go by.
"""

from __future__ import annotations

from collections.abc import Iterator

from .gpuop_itself import scheduled
from .pipeline import Array, Pipeline
from .schedules import asked_for, least

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
    found = [list(ratios(pipeline, pipeline.inputs(shape))) for pipeline, shape, _ in asked_for(__doc__)]
    for schedule, each in zip(SCHEDULES, zip(*found, strict=True), strict=True):
        good = sum(1 / NEAR <= ratio <= NEAR for ratio in each)
        print(f"{schedule}: {good} of {len(each)} within {NEAR}")


if __name__ == "__main__":
    main()
