"""Reductions of gpuop next to NumPy's in the same run, and what part of the time the bytes alone take.

    python benchmarks/reductions.py [--device NAME] [--size 4096]

A prepared step of a graph, waited for; medians of 20 runs with the spread of the middle half. The floor is the field read
once at the speed of the device's own buffer copy (which reads and writes); 1.0 would be that.

The second table is of reductions of what is computed: kernels, the bytes that a step moves, their ratio to those of inputs
and results alone, and the time next to that of the same graph unfused.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

import numpy as np
from turns import in_turns, middle_half, step_of

import gpuop as gp
from gpuop.runtime.devices import current

RUNS, WARM = 20, 3


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Median and spread of the middle half, in milliseconds."""
    return middle_half(in_turns({"": action}, RUNS, warm=WARM)[""])


def graph_of(*fields: gp.Field, optimize: bool = True) -> gp.ComputeGraph:
    with gp.ComputeGraph(optimize=optimize) as graph:
        for number, field in enumerate(fields):
            graph.probe(field, str(number))
    return graph


def copy_of(kind: gp.FieldType) -> Callable[[], None]:
    backend = current()
    source, target = backend.empty(kind), backend.empty(kind)

    def run() -> None:
        backend.copy(kind, source, target)
        backend.synchronize()

    return run


def fields(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        f"{size}²": rng.random((size, size), np.float32),
        f"{size - 95}×{size - 93}": rng.random((size - 95, size - 93), np.float32),
        f"{size * size} in a row": rng.random(size * size, np.float32),
        f"{size // 2}² of 4-vectors": rng.random((size // 2, size // 2, 4), np.float32),
    }


def report(size: int) -> None:
    print(
        "| field | reduction | gpuop ms | ± | NumPy ms | ± | × of a copy | × of the bytes |\n|---|---|---|---|---|---|---|---|"
    )
    for shown, array in fields(size).items():
        field = gp.Field(array, array.ndim - min(array.ndim, 2))
        copy, _ = timed(copy_of(field.type))
        for name in ("sum", "max", "argmax", "mean"):
            for axis in (None, *range(array.ndim)) if name == "sum" else (None,):
                ours, spread = timed(step_of(graph_of(getattr(field, name)(axis=axis))))
                theirs, other = timed(lambda a=array, n=name, x=axis: getattr(a, n)(axis=x))  # type: ignore[misc]
                what = name + (f" over {axis}" if axis is not None else "")
                print(
                    f"| {shown} | {what} | {ours:.2f} | {spread:.2f} | {theirs:.2f} | {other:.2f} "
                    f"| {ours / copy:.2f} | {2 * ours / copy:.2f} |"
                )


def chains(size: int) -> dict[str, tuple[gp.Field, ...]]:
    """Reductions of what pointwise operators make of fields."""
    rng = np.random.default_rng(1)
    a, b, c = (gp.ScalarField(rng.random((size, size), np.float32)) for _ in range(3))
    colour = gp.VectorField(rng.random((size // 2, size // 2, 3), np.float32))
    f = a * b + c
    return {
        "(a·b + c).sum()": (f.sum(),),
        "min, max, mean of a·b + c": (f.min(), f.max(), f.mean()),
        "min, max, mean of a": (a.min(), a.max(), a.mean()),
        "argmax and mean of a·b": ((a * b).argmax(), (a * b).mean()),
        "a·a, a·b, b·b, each summed": ((a * a).sum(), (a * b).sum(), (b * b).sum()),
        "variance of a·b": (((a * b - (a * b).mean()) ** 2).mean(),),
        "mean colour of 2·v + 1": ((colour * 2 + 1).mean(axis=(0, 1)),),
    }


def report_fused(size: int) -> None:
    print("\n| what | kernels | moved MiB | ratio | ms | ± | unfused: kernels | moved MiB | ms | ± |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for shown, made in chains(size).items():
        cells = []
        for optimize in (True, False):
            graph = graph_of(*made, optimize=optimize)
            facts = json.loads(graph.explain("json"))
            middle, spread = timed(step_of(graph))
            ratio = [f"{facts['ratio']:.2f}"] if optimize else []
            moved = f"{facts['moved_bytes'] / 2**20:.1f}"
            cells += [str(graph.kernel_count), moved, *ratio, f"{middle:.2f}", f"{spread:.2f}"]
            graph.release()
        print(f"| {shown} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="default: the library's")
    parser.add_argument("--size", type=int, default=4096)
    arguments = parser.parse_args()
    with gp.use_device(arguments.device or current().name):
        print(f"{current().name}: {current().description}\n")
        report(arguments.size)
        report_fused(arguments.size)


if __name__ == "__main__":
    main()
