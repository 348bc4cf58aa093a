"""Every schedule that suits a kernel, tried: was the best one chosen, and did it take as long as predicted?

    python -m benchmarks.pipelines.schedules --device cuda:0 --only harris gauss2 --seconds 300

One line for each kernel of each pipeline that takes a share of its time: what was chosen, its measured and predicted time, and
the best of all that the methods propose.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import replace
from time import monotonic

import gpuop as gp
from gpuop.base.errors import GpuopError
from gpuop.fusion.kernel_statistics import before
from gpuop.fusion.schedule_choice import scheduled
from gpuop.ir.kernel import Kernel
from gpuop.passes.schedules.methods import METHODS, PLAIN, schedule
from gpuop.runtime.devices import current
from gpuop.runtime.profile.profiler import KernelTimes

from .catalogue import CATALOGUE
from .pipeline import Pipeline

STEPS, ROUNDS = 2, 4
MOST = 10  # candidates of a method
SHARE = 0.05  # of a pipeline's time, below which a kernel is not told of
Choice = tuple[str, tuple[tuple[str, int], ...]]


def least(graphs: list[gp.ComputeGraph], rounds: int = ROUNDS) -> list[list[KernelTimes]]:
    """The kernels of each graph with the least of their median times, in rounds in which all graphs take turns."""
    for graph in graphs:
        graph.step(2)
    found = [[graph.profile(STEPS).rows for graph in graphs] for _ in range(rounds)]
    return [
        [min(rows, key=lambda row: row.median_ms) for rows in zip(*each, strict=True)]
        for each in zip(*found, strict=True)
    ]


def choices(graph: gp.ComputeGraph) -> list[Choice]:
    """The proposals of the methods for the kernels of a graph."""
    target = current().target
    kernels = [launch.kernel for launch in graph.plan.launches if isinstance(launch.kernel, Kernel)]
    ready = [before(replace(kernel, target=target), schedule) for kernel in kernels]
    found = (
        (method.name, tuple(given.items()))
        for kernel, method in itertools.product(ready, METHODS)
        if not method.refuse(kernel)
        for given in method.candidates(kernel)[:MOST]
    )
    return [(PLAIN, ()), *dict.fromkeys(found)]


def told(graph: gp.ComputeGraph) -> Iterator[str]:
    target = current().target
    for launch in graph.plan.launches:
        chosen = scheduled(launch.kernel, target) if isinstance(launch.kernel, Kernel) else None
        yield shown((chosen[0].name, tuple(chosen[1].items()))) if chosen else PLAIN


def shown(choice: Choice) -> str:
    return " ".join([choice[0], *(f"{name}={value}" for name, value in choice[1])])


def tried(pipeline: Pipeline, shape: tuple[int, ...], until: float) -> None:
    """Print a line for each kernel that takes its share of the time."""
    arrays = pipeline.inputs(shape)
    graph = pipeline.graph(arrays)
    chosen, graphs = list(told(graph)), {"as chosen": graph}
    for choice in choices(graph):
        if monotonic() > until:
            break
        try:
            with gp.schedule(choice[0], **dict(choice[1])):
                other = pipeline.graph(arrays)
                other.step()
        except GpuopError as failed:
            print(f"{pipeline.name}: {shown(choice)} fails: {str(failed).splitlines()[0][:100]}")
            continue
        if [launch.kernel.name for launch in other.plan.launches] == [
            launch.kernel.name for launch in graph.plan.launches
        ]:
            graphs[shown(choice)] = other
    rows, *others = least(list(graphs.values()))
    total = sum(row.median_ms for row in rows)
    for number, (row, how) in enumerate(zip(rows, chosen, strict=True)):
        if row.median_ms > SHARE * total:
            times = (each[number].median_ms for each in (rows, *others))
            best, which = min(zip(times, graphs, strict=True))
            print(
                f"{pipeline.name:20} {row.name[:32]:32} {how:44} {row.median_ms:8.3f} ms  "
                f"predicted x{row.predicted_ms / row.median_ms:5.2f}  "
                f"best {best:8.3f} ({row.median_ms / best:4.2f}) {which}",
                flush=True,
            )


def asked_for(about: str) -> Iterator[tuple[Pipeline, tuple[int, ...], float]]:
    """The pipelines that the command line names, with their shapes, on its device, until its seconds have passed; and when."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--device", default=gp.devices()[0].name)
    parser.add_argument("--only", nargs="*", choices=list(CATALOGUE), default=list(CATALOGUE), metavar="NAME")
    parser.add_argument("--size", type=int, help="of each axis")
    parser.add_argument("--seconds", type=float, default=600.0)
    given = parser.parse_args()
    until = monotonic() + given.seconds
    with gp.use_device(given.device) as backend:
        for name in given.only:
            shape = CATALOGUE[name].shapes[backend.target.device]
            shape = shape if given.size is None else (given.size,) * len(shape)
            if monotonic() < until:
                yield CATALOGUE[name], shape, until


def main() -> None:
    for pipeline, shape, until in asked_for(__doc__):
        tried(pipeline, shape, until)


if __name__ == "__main__":
    main()
