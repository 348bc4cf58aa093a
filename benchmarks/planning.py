"""How long planning takes as graphs grow: chains, trees, diamonds, and layers of two coupled states.

    python benchmarks/planning.py [--most 10000]

Recording, numbering and fusing are timed apart; nothing runs on a device. The last column is the time per operator,
which stays the same where planning is linear.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import gpuop as gp
from gpuop.dsl import _readTensor
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program

SHAPE = (7, 33)


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
    """A hundred, side by side, each of n / 100 operators."""
    out = []
    for k in range(100):
        x = leaf(k)
        for _ in range(n // 300):
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=10000, help="operators (default: %(default)s)")
    most = parser.parse_args().most
    kinds: tuple[Callable[[int], list[gp.Field]], ...] = (chain, tree, diamonds, layers, states)
    print("| graph | operators | kernels | record, s | number, s | fuse, s | µs per operator |")
    print("|---|---|---|---|---|---|---|")
    for build in kinds:
        for n in (most // 8, most // 4, most // 2, most):
            start = time.perf_counter()
            fields = build(n)
            recorded = time.perf_counter()
            numbered = program([f.node for f in fields])
            done = time.perf_counter()
            made = plan(numbered)
            end = time.perf_counter()
            times = f"{recorded - start:.3f} | {done - recorded:.3f} | {end - done:.3f}"
            ops = len(numbered.ops)
            print(
                f"| {build.__name__} | {ops} | {len(made.launches)} | {times} | {(end - start) / ops * 1e6:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
