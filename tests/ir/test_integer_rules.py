"""Random arithmetic of positions, against NumPy's: whatever ranges prove, integers come out as they wrap, truncate and floor."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.recorder.value import Value
from gpuop.ir.nodes import Let
from gpuop.ir.visit import walk
from gpuop.passes.pipeline import lower
from gpuop.passes.ranges import Ranges
from gpuop.runtime.reference.array_memory import ArrayMemory
from gpuop.runtime.reference.device import Reference
from gpuop.runtime.reference.interpreter import Threads
from gpuop.runtime.reference.positions import chunks

SHAPE = (3, 46)
FACTORS = (1, 2, 3, 4, 6, 12, 46, 138)
NUMBERS = (0, 1, 2, 5, 7, -1, -3, 45, 100, 2**31 - 1, -(2**31), 46341, 65536, -65536)
Number = Any  # of the kernel's, or NumPy's array


class InNumPy:
    """C's arithmetic of int32 arrays, which wraps."""

    def __init__(self, array: np.ndarray) -> None:
        self.row, self.column = (axis.astype(np.int32) for axis in np.indices(SHAPE))
        self.given = array

    @staticmethod
    def wrapped(x: np.ndarray) -> np.ndarray:
        return x.astype(np.int32)

    def do(self, op: str, x: Number, y: Number) -> Number:
        x, y = np.asarray(x, np.int64), np.asarray(y, np.int64)
        one = np.where(y == 0, 1, y)
        results: dict[str, Callable[[], np.ndarray]] = {
            "+": lambda: x + y,
            "-": lambda: x - y,
            "*": lambda: x * y,
            "//": lambda: np.where(y == 0, 0, x // one),
            "/": lambda: np.where(y == 0, 0, np.sign(x) * np.sign(y) * (abs(x) // abs(one))),
            "%": lambda: np.where(y == 0, 0, np.sign(x) * (abs(x) % abs(one))),
            "min": lambda: np.minimum(x, y),
            "max": lambda: np.maximum(x, y),
            "&": lambda: x & y,
            ">>": lambda: x >> (y & 31),
            "<<": lambda: x << (y & 31),
            "where": lambda: np.where(x < y, x, y ^ 1),
        }
        return self.wrapped(results[op]())


class InKernels:
    def __init__(self, value: Value) -> None:
        self.row, self.column, self.given = _row, _column, value

    def do(self, op: str, x: Number, y: Number) -> Number:
        x = x if isinstance(x, Value) else _convert_int(x)
        values: dict[str, Callable[[], Value]] = {
            "+": lambda: x + y,
            "-": lambda: x - y,
            "*": lambda: x * y,
            "//": lambda: x // y,
            "/": lambda: x / y,
            "%": lambda: x % y,
            "min": lambda: _min(x, y),
            "max": lambda: _max(x, y),
            "&": lambda: x & y,
            ">>": lambda: x >> (y if isinstance(y, Value) else y & 31),
            "<<": lambda: x << (y if isinstance(y, Value) else y & 31),
            "where": lambda: _where(x < y, x, y ^ 1),
        }
        return values[op]()


def program(seed: int) -> Callable[[Any], list[Number]]:
    """Steps that build on one another."""
    rng = random.Random(seed)

    def run(arithmetic: Any) -> list[Number]:
        rng.seed(seed)
        do, results = arithmetic.do, [arithmetic.row, arithmetic.column, arithmetic.given]
        results.append(do("+", do("*", arithmetic.row, SHAPE[1]), arithmetic.column))
        results.append(do("-", arithmetic.column, rng.choice((1, 20, 45))))
        results.append(do("max", arithmetic.given, 0))
        while len(results) < 21:
            results.append(rng.choice(STEPS)(rng, do, results))
        return results[-9:]

    return run


def one_of(rng: random.Random, numbers: list[Number]) -> Number:
    """Mostly of what was made last."""
    return (
        numbers[len(numbers) - 1 - int(rng.random() ** 2 * len(numbers))]
        if rng.random() < 0.8
        else rng.choice(numbers[:6])
    )


def any_operation(rng: random.Random, do: Callable[..., Number], numbers: list[Number]) -> Number:
    op = rng.choice(["+", "+", "-", "*", "//", "/", "%", "min", "max", "&", ">>", "<<", "where"])
    by = one_of(rng, numbers) if rng.random() < 0.4 else rng.choice(NUMBERS)
    return do(op, one_of(rng, numbers), by)


def digits(rng: random.Random, do: Callable[..., Number], numbers: list[Number]) -> Number:
    """A sum of a multiple and a rest, or nearly so, which is taken apart."""
    n = rng.choice((*FACTORS, 65536, 2**20))
    rest = do("%", one_of(rng, numbers), rng.choice((n, n, n + 1)))
    product = do("*", one_of(rng, numbers), n)
    whole = do("+", *((product, rest) if rng.random() < 0.5 else (rest, product)))
    if rng.random() < 0.4:
        whole = do("/", whole, rng.choice((2, 3, n)))
    return do(rng.choice("/%"), whole, rng.choice((n, n, 2 * n, n // 2, n + 1, 2)))


def twice(rng: random.Random, do: Callable[..., Number], numbers: list[Number]) -> Number:
    """Two quotients or remainders, of one another."""
    first, second = rng.choice(((2, 3), (6, 4), (12, 4), (4, 12), (2, 2**30), (65536, 32768), (-3, 5), (5, -1)))
    x = numbers[2] if first * second == 2**31 else one_of(rng, numbers)
    return do(rng.choice("//%"), do(rng.choice("//%"), x, first), second)


def again(rng: random.Random, do: Callable[..., Number], numbers: list[Number]) -> Number:
    """A quotient and its product, with the remainder or without."""
    x, n = one_of(rng, numbers), rng.choice(FACTORS)
    product = do("*", do("/", x, rng.choice((n, n, n + 1))), n)
    if rng.random() < 0.3:
        return do("-", x, product)
    return do("+", product, do("%", x, rng.choice((n, n, 2 * n))))


def limited(rng: random.Random, do: Callable[..., Number], numbers: list[Number]) -> Number:
    return do(
        "max", do("min", one_of(rng, numbers), rng.choice((3, 45, 137, 255, 2**31 - 1))), rng.choice((0, 0, -1, -40))
    )


STEPS = (any_operation, any_operation, digits, digits, twice, again, limited)
GIVEN = np.random.default_rng(5).choice(np.array([*NUMBERS, *range(-9, 50)], np.int32), SHAPE)


class Watched(Threads):
    """An interpreter that holds all integers to the ranges that are claimed of them."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ranges = Ranges(self.kernel)
        for stmt in walk(self.kernel.body):
            self.ranges.meet(stmt)

    def stmt(self, stmt: Any, *rest: Any) -> Any:
        done = super().stmt(stmt, *rest)
        if isinstance(stmt, Let) and stmt.var in self.ranges.by_var:
            low, high = self.ranges.by_var[stmt.var]
            for lane in self.vars[stmt.var]:
                lanes = np.broadcast_to(lane, self.active.shape)[self.active]
                assert low <= lanes.min() and lanes.max() <= high, f"{stmt.var.hint}: {stmt.value}"
        return done


@pytest.mark.parametrize("seed", range(150))
def test_random_arithmetic(seed: int) -> None:
    run = program(seed)

    @gp.operator
    def computed(f):
        return tuple(run(InKernels(_readTensor(f))))

    kernel = computed(gp.ScalarField(GIVEN))[0].node.call.kernel
    lowered = lower(kernel, replace(Reference.target, least_threads=1))
    outputs = [np.zeros((1, GIVEN.size), np.int32) for _ in kernel.outputs]
    inputs = [GIVEN.reshape(1, -1)] * len(kernel.inputs)
    fields = dict(zip((*kernel.inputs, *kernel.written), [*inputs, *outputs], strict=True))
    for where in chunks(lowered, True):
        with np.errstate(all="ignore"):
            Watched(lowered, where, ArrayMemory(where, fields, lowered, lowered=True)).block(lowered.body, None)
    for actual, want in zip(outputs, run(InNumPy(GIVEN)), strict=True):
        np.testing.assert_array_equal(actual.reshape(SHAPE), want)
