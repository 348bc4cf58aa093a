"""The first result of a pipeline in a fresh process, from when the device is open; seconds as JSON.

    python -m benchmarks.pipelines.first harris --device opencl:0 --size 4096x4096

`plan` is from operators to kernels, `compile` what the driver takes for all texts and `longest` for one of them, `first`
all of it with the way of the arrays to the device and of the result back.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import gpuop as gp

from .catalogue import CATALOGUE


def timed(backend: Any) -> list[float]:
    """The seconds of each build from now on."""
    kind, taken = type(backend), []
    if not hasattr(kind, "build"):  # the reference
        return taken
    build = kind.build

    def built(*arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return build(*arguments)
        finally:
            taken.append(time.perf_counter() - began)

    kind.build = built
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=CATALOGUE)
    parser.add_argument("--device", required=True)
    parser.add_argument("--size", required=True)
    given = parser.parse_args()
    pipeline = CATALOGUE[given.name]
    arrays = pipeline.inputs(tuple(map(int, given.size.split("x"))))
    with gp.use_device(given.device) as backend:
        builds = timed(backend)
        began = time.perf_counter()
        graph = pipeline.graph(arrays)
        kernels = graph.kernel_count
        planned = time.perf_counter()
        graph.read("result0")
        done = time.perf_counter()
    print(
        json.dumps(
            {
                "plan": planned - began,
                "compile": sum(builds),
                "longest": max(builds, default=0.0),
                "first": done - began,
                "kernels": kernels,
            }
        )
    )


if __name__ == "__main__":
    main()
