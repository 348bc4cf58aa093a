"""Dense random graphs of which parts are evaluated, in any order, before the rest is: what is in memory is a leaf from then on.

Most kinds give several results, or are kernels that nothing is fused with: functions of the host, of the device, and iterations.
Letters as in `dags.py`, and D for float64 on the whole grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from tests.harness import same_bits

from .dags import KINDS, SIZE, Dag, Kind, moved, on_host, simply, start

TYPES = {"W": "int32", "H": "int32", "N": "int32", "D": "float64"}
LEAVES = "WWHND"
TARGETS = ("opencl", "opencl:cpu", "cuda:sm_90")


@gp.operator
def three(a, b):
    x, y = _readTensor(a), _readTensor(b)
    return x - y, x ^ y, x * y


@gp.operator
def of_neighbours(a):
    return _readTensor(a, _column - 2) + _readTensor(a, _column + 1), _readTensor(a) | 1


def on_device(function: Callable[..., None], gives: str) -> Callable[..., Any]:
    types = tuple(gp.FieldType(SIZE.get(g, SIZE["W"]), dtype=TYPES[g]) for g in gives)
    return lambda *args: gp.DeviceOperator(function, *args, outputs=types if len(types) > 1 else types[0])


def filled(function: Callable[..., Any]) -> Callable[..., None]:
    """A function that fills its last arguments."""

    def fill(*arrays: Any) -> None:
        count = function.__code__.co_argcount
        results = function(*arrays[:count])
        for out, result in zip(arrays[count:], results, strict=True):
            out[...] = result

    return fill


def reversed_and_most(a):
    return a[::-1], a.max()


def neighbours(a):
    padded = np.pad(a, (2, 1), mode="edge")
    return padded[:-3] + padded[3:], a | 1


def plus_twice(a, turns):
    for _ in range(turns):
        a = np.pad(a, (1, 0), mode="edge")[:-1] + a
    return a


@gp.operator
def added_to_left(a):
    return _readTensor(a, _column - 1) + _readTensor(a)


MORE = {
    **KINDS,
    "three": Kind("WW", "WWW", three, lambda a, b: (a - b, a ^ b, a * b)),
    "of neighbours": Kind("W", "WW", of_neighbours, neighbours),
    "divmod": simply("WW", "WW", lambda a, b: np.divmod(a, b | 1)),
    "modf": simply("D", "DD", np.modf),
    "to double": simply("W", "D", lambda a: a.astype("float64")),
    "half of": simply("D", "D", lambda d: d * 0.5),
    "sum of doubles": simply("DD", "D", lambda d, e: d + e),
    "beside its most": simply("W", "W", lambda a: a * 2 - a.max()),
    "beside its sum": simply("W", "W", lambda a: (a | 1) + a.sum().astype("int32")),
    "left of left": Kind("W", "W", lambda a: a * 2 + moved(moved(a)), lambda a: a * 2 + np.roll(a, 2)),
    "turns of neighbours": Kind(
        "W", "W", lambda a: gp.iterate(added_to_left, a, times=3), lambda a: plus_twice(a, 3)
    ),
    "device": Kind("W", "W", on_device(filled(lambda a: (np.sort(a),)), "W"), np.sort),
    "device pair": Kind("W", "WN", on_device(filled(reversed_and_most), "WN"), reversed_and_most),
    "host of three": Kind("W", "WWN", on_host(lambda a: (a[::-1], a ^ 3, a.min()), "WWN"),
                          lambda a: (a[::-1], a ^ 3, a.min())),
}  # fmt: skip
SEVERAL = [name for name, kind in MORE.items() if len(kind.gives) > 1]
ALONE = [name for name in MORE if name.startswith(("turns", "host", "device"))]
USES = [
    "beside its most",
    "beside its sum",
    "left of left",
    "moved",
    "of neighbours",
    "product",
    "most",
    "scaled",
    "sum",
]


def drawn(seed: int) -> Dag:
    """A graph of a few kinds, half of which give several results or stand apart."""
    random = Random(seed)
    pool = [
        *random.sample(SEVERAL, 2),
        *random.sample(ALONE, 1),
        *random.sample(USES, 3),
        *random.sample(list(MORE), 2),
    ]
    letters, calls = LEAVES, list[tuple[str, tuple[int, ...]]]()
    for _ in range(random.randint(3, 10)):
        name = random.choice(pool)
        fitting = [[v for v, letter in enumerate(letters) if letter == wish] for wish in MORE[name].takes]
        calls.append((name, tuple(random.choice(values[-random.choice((2, 3, 99)) :]) for values in fitting)))
        letters += MORE[name].gives
    results = range(len(LEAVES), len(letters))
    return Dag(tuple(calls), tuple(random.sample(results, random.randint(2, min(6, len(results))))), ())


def arrays() -> list[Any]:
    return [*start(), np.linspace(-3, 4.5, 12)]


def evaluate_some(values: list[Any], places: Sequence[int], random: Random) -> None:
    """Evaluate some fields, in one of the ways that there are; what `gp.evaluate` gives takes the place of a field at times."""
    fields = [values[v] for v in places]
    match random.choice(("numpy", "evaluate", "stored", "submit", "device")):
        case "numpy":
            for field in fields:
                field.numpy()
        case "evaluate":
            gp.evaluate(*fields)
        case "stored":
            stored = gp.evaluate(*fields)
            for v, leaf in zip(places, stored if isinstance(stored, tuple) else (stored,), strict=True):
                values[v] = leaf
        case "submit":
            gp.submit(*fields).result()
        case "device":
            with gp.use_device("reference"):
                gp.evaluate(*fields)


def check(seed: int) -> None:
    """Values one after another, some before others are made; then pipelines of all, fused and unfused: what NumPy says."""
    random, dag = Random(seed), drawn(seed)
    want, values = arrays(), [gp.Field(a, 0) for a in arrays()]
    for name, operands in dag.calls:
        for results, function in ((want, MORE[name].meaning), (values, MORE[name].make)):
            result = function(*(results[v] for v in operands))
            results += result if isinstance(result, tuple) else [result]
        if random.random() < 0.4:
            array = range(len(LEAVES), len(values))
            evaluate_some(values, random.sample(array, random.randint(1, min(3, len(array)))), random)
    for optimize in (True, False):
        message = gp.pipeline(lambda a: (*(values[v] for v in dag.outputs), gp.Field(a, 0) + 1), optimize=optimize)
        assert "kernel" in message.explain(want[0])
        assert all(message.source(want[0], target=target) for target in (None, random.choice(TARGETS)))
        for v, actual in zip(dag.outputs, message(want[0]), strict=False):
            agree(actual, want[v], f"value {v} of a pipeline, {optimize=}, seed {seed}: {dag}")
    for v in random.sample(dag.outputs, len(dag.outputs)):
        agree(values[v].numpy(), want[v], f"value {v}, seed {seed}: {dag}")


def agree(actual: Any, want: Any, what: str) -> None:
    dtype = np.asarray(want).dtype
    same_bits(np.asarray(actual), np.asarray(want, np.int32 if dtype.kind == "i" else dtype), what)
