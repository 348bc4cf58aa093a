"""Dense random graphs of integers whose meaning is NumPy's: kernels of two grids, reductions, iterations, functions of the host.

What is drawn is the shape of the graph. Letters stand for types, all int32: W the whole grid, H half of it, N a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from gpuop.fusion.kernel_limits import LEAST, Limits
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.program import program
from tests.harness import same_bits

from .graph_programs import ordered

SIZE = {"W": (12,), "H": (6,), "N": ()}
LIMITS = (LEAST, Limits(arguments=6), Limits(arguments=8, registers=6))


@dataclass(frozen=True)
class Kind:
    """A function of values, and the same function of arrays."""

    takes: str
    gives: str
    make: Callable[..., Any]
    meaning: Callable[..., Any]


@gp.operator
def moved(a):
    return _readTensor(a, _column - 1, border="wrap")


@gp.operator(outputs=lambda a: a.type)
def mirrored(a):
    _writeTensor(_out0, _readTensor(a), _columns - 1 - _column)


@gp.operator(outputs=lambda a: a.type.replace(field_shape=SIZE["W"]))
def spread(a):
    _writeTensor(_out0, _readTensor(a, _column / 2))


@gp.operator
def two(a, b):
    x = _readTensor(a)
    return x + _readTensor(b), x & 7


@gp.operator
def shared(a):
    _localThreads(4)
    tile = _local(_intArray(4))
    tile[_localColumn] = _readTensor(a)
    _syncThreadsLocal()
    return tile[3 - _localColumn]


def iterated(f: Callable[..., Any], a: Any, times: int) -> Any:
    for _ in range(times):
        a = f(a)
    return a


def until(a: Any, n: Any) -> Any:
    for _ in range(4):
        a = a * 2 + 1
        if a.max() > n:
            break
    return a


def on_host(function: Callable[..., Any], gives: str) -> Callable[..., Any]:
    types = tuple(gp.FieldType(SIZE[g], dtype="int32") for g in gives)
    return lambda *args: gp.HostOperator(function, *args, outputs=types if len(types) > 1 else types[0])


def simply(takes: str, gives: str, both: Callable[..., Any]) -> Kind:
    """Expressions that fields and arrays spell alike."""
    return Kind(takes, gives, both, both)


def sorted_and_least(a, h):
    return np.sort(a), h.min()


KINDS = {
    "sum": simply("WW", "W", lambda a, b: a + b),
    "product": simply("WN", "W", lambda a, n: a * 3 ^ n),
    "scaled": simply("W", "W", lambda a: a * 5 - 1),
    "sum of halves": simply("HH", "H", lambda a, b: a - b),
    "number": simply("NN", "N", lambda m, n: m * 2 + n),
    "half": simply("W", "H", lambda a: a[::2]),
    "most": simply("W", "N", lambda a: a.max()),
    "least": simply("H", "N", lambda a: a.min()),
    "moved": Kind("W", "W", moved, lambda a: np.roll(a, 1)),
    "mirrored": Kind("W", "W", mirrored, lambda a: a[::-1]),
    "spread": Kind("H", "W", spread, lambda a: np.repeat(a, 2)),
    "two": Kind("WW", "WW", two, lambda a, b: (a + b, a & 7)),
    "shared": Kind("W", "W", shared, lambda a: a.reshape(3, 4)[:, ::-1].ravel()),
    "turns": Kind("W", "W", lambda a: gp.iterate(lambda u: u * 2, a, times=1), lambda a: a * 2),
    "turns of halves": Kind(
        "H", "H", lambda a: gp.iterate(lambda u: u * 3 + 1, a, times=2), lambda a: (a * 3 + 1) * 3 + 1
    ),
    "turns with another": Kind(
        "WW", "W",
        lambda a, b: gp.iterate(lambda u: moved(u) + (b ^ 1), a, times=3),
        lambda a, b: iterated(lambda u: np.roll(u, 1) + (b ^ 1), a, 3),
    ),
    "turns of a pair": Kind(
        "WH", "WH",
        lambda a, h: gp.iterate(lambda u, v: (u + spread(v), v - u[::2]), (a, h), times=2),
        lambda a, h: iterated(lambda p: (p[0] + np.repeat(p[1], 2), p[1] - p[0][::2]), (a, h), 2),
    ),
    "turns until": Kind(
        "WN", "W", lambda a, n: gp.iterate(lambda u: u * 2 + 1, a, times=4, until=lambda u: u.max() > n), until
    ),
    "host": Kind("W", "W", on_host(np.sort, "W"), np.sort),
    "host pair": Kind("WH", "WN", on_host(sorted_and_least, "WN"), sorted_and_least),
    "host number": Kind("W", "N", on_host(np.max, "N"), np.max),
}  # fmt: skip
LEAVES = "WWHN"
APART = [
    "sum",
    "sum",
    "scaled",
    "two",
    "turns",
    "host",
]  # kernels that would all fuse, but for what stands between them


@dataclass(frozen=True)
class Dag:
    """A graph: values are numbered, leaves first.

    Attributes:
        calls: kinds with the values that they take.
        outputs: values that are looked at.
        nexts: of leaves, the values that they take next.
    """

    calls: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[int, ...]
    nexts: tuple[tuple[int, int], ...]


def drawn(seed: int, most: int = 12) -> Dag:
    """A graph of up to so many calls, of a few kinds."""
    random = Random(seed)
    pool = random.choice((APART, random.sample(list(KINDS), random.randint(3, 9))))
    letters, calls = LEAVES, []
    for _ in range(random.randint(4, most)):
        name = random.choice(pool)
        fitting = [[v for v, letter in enumerate(letters) if letter == wish] for wish in KINDS[name].takes]
        near = [random.choice((slice(2), slice(-3, None), slice(None))) for _ in fitting]  # leaves, the latest, any
        calls.append((name, tuple(random.choice(values[part]) for values, part in zip(fitting, near, strict=True))))
        letters += KINDS[name].gives
    results = range(len(LEAVES), len(letters))
    outputs = list(dict.fromkeys((*random.sample(results, random.randint(1, min(6, len(results)))), results[-1])))
    nexts = {}
    for leaf in random.sample(range(len(LEAVES)), random.choice((0, 0, 1, 2, 3))):
        nexts[leaf] = random.choice([v for v in results if letters[v] == LEAVES[leaf]] or [leaf])
    return Dag(tuple(calls), tuple(outputs), tuple(nexts.items()))


def start() -> list[Any]:
    rng = np.random.default_rng(3)
    return [rng.integers(-9, 9, SIZE[letter], np.int32) for letter in LEAVES]


def applied(dag: Dag, values: Sequence[Any], fields: bool) -> list[Any]:
    """All values, given those of the leaves."""
    results = list(values)
    for name, operands in dag.calls:
        result = (KINDS[name].make if fields else KINDS[name].meaning)(*(results[v] for v in operands))
        results += result if isinstance(result, tuple) else [result]
    return results


def expected(dag: Dag, steps: int) -> list[Any]:
    """The result of NumPy."""
    values = applied(dag, start(), fields=False)
    for _ in range(steps):
        leaves = values[: len(LEAVES)]
        for leaf, following in dag.nexts:
            leaves[leaf] = values[following]
        values = applied(dag, leaves, fields=False)
    return values


# --- what must hold -----------------------------------------------------------------------------------------------------


def planned(dag: Dag) -> list[Plan]:
    """Plans for several devices, fused and unfused, each in an order in which it can run."""
    result = applied(dag, [gp.Field(a, 0) for a in start()], fields=True)
    what = program([result[v].node for v in dag.outputs])
    plans = [plan(what, optimize, limits) for limits in LIMITS for optimize in (True, False)]
    for each in plans:
        ordered(each)
    return plans


def check(dag: Dag, steps: int = 2) -> None:
    """In a graph, fused and unfused, and value after value by itself: what NumPy says."""
    planned(dag)
    for optimize in (True, False):
        with gp.ComputeGraph(optimize=optimize) as graph:
            leaves = [gp.Field(a, 0) for a in start()]
            result = applied(dag, leaves, fields=True)
            for leaf, following in dag.nexts:
                leaves[leaf].next = result[following]
            for v in dag.outputs:
                graph.probe(result[v], str(v))
        ordered(graph.plan)
        for tick in range(steps + 1 if dag.nexts else 1):
            want = expected(dag, tick)
            for v in dag.outputs:
                same_bits(graph.read(str(v)), np.asarray(want[v], np.int32), f"value {v} at {tick}, {optimize=}: {dag}")
            graph.step()
    eagerly = applied(dag, [gp.Field(a, 0) for a in start()], fields=True)
    for v in Random(str(dag)).sample(dag.outputs, len(dag.outputs)):
        same_bits(eagerly[v].numpy(), np.asarray(expected(dag, 0)[v], np.int32), f"value {v} by itself: {dag}")
