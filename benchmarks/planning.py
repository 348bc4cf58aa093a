"""The time of planning as graphs grow: chains, trees, diamonds, and layers of two coupled states; and pipelines of images.

    python benchmarks/planning.py [--most 10000] [--target opencl] [--size 1024] [NAME …]

Recording, numbering and fusing are timed apart, in CPU time; nothing runs on a device. The last column is the time per operator,
which stays the same where planning is linear. The second table is of pipelines made of small operators (those of
`tests/composed.py`, or the named ones alone), with the passes, the verifier's part of these, and printing; medians in ms.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

import gpuop as gp
from gpuop.codegen.c.printer import Printer
from gpuop.codegen.generate import EXPRESSIONS, target_named
from gpuop.dsl import _readTensor
from gpuop.fusion.plan import plan, plan_for
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel
from gpuop.passes import pipeline
from tests.composed import PIPELINES

SHAPE = (7, 33)
RUNS = 5


@gp.operator
def plus(field):  # type: ignore[no-untyped-def]
    return _readTensor(field) + 1


def leaf(value: float = 1) -> gp.Field:
    return gp.ScalarField(np.full(SHAPE, value, np.float32))


def chain(n: int) -> list[gp.Field]:
    x = leaf()
    for _ in range(n):
        x = plus(x)
    return [x]


def tree(n: int) -> list[gp.Field]:
    """Pairs are added until one is left; the leaves are 48 fields, each used many times."""
    fields = [leaf(k) for k in range(48)]
    level = [fields[k % 48] * float(k + 2) for k in range(n // 2)]
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2], strict=False)] + level[len(level) & ~1 :]
    return level


def diamonds(n: int) -> list[gp.Field]:
    """A hundred or fewer, side by side, each of three operators after three others."""
    out, side = [], min(n // 3, 100)
    for k in range(side):
        x = leaf(k)
        for _ in range(n // (3 * side)):
            x = (x + 0.5) * (x - 0.5)
        out.append(x)
    return out


def layers(n: int) -> list[gp.Field]:
    """Two states that drive one another, four operators a layer."""
    a, b = leaf(1), leaf(2)
    for _ in range(n // 4):
        a, b = a + b * 0.5, b - a * 0.5
    return [a, b]


def states(n: int) -> list[gp.Field]:
    """The next values of n / 4 pairs of states, each of which reads the other and the pair before."""
    made, (a, b) = [], (leaf(1), leaf(2))
    for k in range(n // 4):
        c, d = leaf(k), leaf(k + 1)
        made += [c * 0.5 + b, d + a * c]
        a, b = c, d
    return made


class Verifying:
    """The verifier, and the seconds spent in it."""

    def __init__(self) -> None:
        self.verify, self.seconds = pipeline.verify, 0.0

    def __call__(self, *args):  # type: ignore[no-untyped-def]
        start = time.process_time()
        kernel = self.verify(*args)
        self.seconds += time.process_time() - start
        return kernel


def pipelines(names: list[str], size: int, target_name: str) -> None:
    target = target_named(target_name)
    pipeline.verify = verifying = Verifying()  # type: ignore[assignment]
    parts = ("record", "number", "fuse", "passes", "of these verify", "print", "all")
    print(f"\n| pipeline, {size}² | operators | kernels | lines | {' | '.join(parts)} |")
    print("|---" * (4 + len(parts)) + "|")
    for name in names or PIPELINES:
        runs = []
        for _ in range(RUNS):
            marks = [time.process_time()]
            fields = PIPELINES[name](size, size)
            marks.append(time.process_time())
            numbered = program([f.node for f in fields])
            marks.append(time.process_time())
            made = plan_for(plan(numbered), target)
            marks.append(time.process_time())
            verifying.seconds = 0.0
            lowered = [pipeline.lower(step.kernel, target) for step in made.launches if isinstance(step.kernel, Kernel)]
            marks.append(time.process_time())
            texts = [Printer(kernel, EXPRESSIONS[target.backend](target)).source().text for kernel in lowered]
            marks.append(time.process_time())
            times = [end - start for start, end in pairwise(marks)]
            runs.append([*times[:4], verifying.seconds, times[4], sum(times)])
        medians = " | ".join(f"{1e3 * statistics.median(column):.1f}" for column in zip(*runs, strict=True))
        lines = sum(text.count("\n") for text in texts)
        print(f"| {name} | {len(numbered.ops)} | {len(made.launches)} | {lines} | {medians} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=10000, help="operators, 0 for no graphs (default: %(default)s)")
    parser.add_argument("--target", default="opencl", help="what the pipelines are planned for (default: %(default)s)")
    parser.add_argument(
        "--size", type=int, default=1024, help="rows and columns of their images (default: %(default)s)"
    )
    parser.add_argument("names", nargs="*", help="pipelines")
    given = parser.parse_args()
    if given.most:
        graphs(given.most)
    pipelines(given.names, given.size, given.target)


def graphs(most: int) -> None:
    plan(program([chain(3)[0].node]))  # imports networkx
    kinds: tuple[Callable[[int], list[gp.Field]], ...] = (chain, tree, diamonds, layers, states)
    print("| graph | operators | kernels | record, s | number, s | fuse, s | µs per operator |")
    print("|---|---|---|---|---|---|---|")
    for build in kinds:
        for n in (most // 8, most // 4, most // 2, most):
            start = time.process_time()
            fields = build(n)
            recorded = time.process_time()
            numbered = program([f.node for f in fields])
            done = time.process_time()
            made = plan(numbered)
            end = time.process_time()
            times = f"{recorded - start:.3f} | {done - recorded:.3f} | {end - done:.3f}"
            ops = len(numbered.ops)
            each = f"{(end - start) / max(ops, 1) * 1e6:.0f}"
            print(
                f"| {build.__name__} | {ops} | {len(made.launches)} | {times} | {each} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
