"""Long chains, wide trees, many diamonds: planned without blow-up, and right. Times are printed (`pytest -s`), not tested."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine import evaluate
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from tests.harness import same_bits

X = np.random.default_rng(3).random((7, 33), np.float32)


def planned(name: str, build: Callable[[], Sequence[gp.Field]], operators: int, kernels: int) -> Sequence[gp.Field]:
    """The fields that are built, with the numbers of operators and kernels asserted and the times printed."""
    start = time.perf_counter()
    fields = build()
    recorded = time.perf_counter()
    result = plan(program([f.node for f in fields]))
    done = time.perf_counter()
    times = f"{operators} operators recorded in {recorded - start:.3f} s, {kernels} kernels planned in {done - recorded:.3f} s"
    print(f"\n{name}: {times}")  # noqa: T201
    assert (len(result.program.ops), len(result.launches)) == (operators, kernels)
    return fields


def timed(name: str, *fields: gp.Field) -> list[np.ndarray]:
    start = time.perf_counter()
    results = [f.numpy() for f in gp.evaluate(*fields, gp.ScalarField(0))[:-1]]
    print(f"{name}: compiled and run in {time.perf_counter() - start:.3f} s")  # noqa: T201
    return results


@gp.operator
def plus(f):
    return _readTensor(f) + 1


@gp.operator(outputs=lambda f: f.type)
def mirrored(f):
    _writeTensor(_out0, _readTensor(f), _row, _columns - 1 - _column)


@gp.operator
def right(f):
    return _readTensor(f, _row, _column + 1)


def test_doubling_40_times(device):
    def build():
        x = gp.ScalarField(X)
        for _ in range(40):
            x = x + x
        return [x]

    (result,) = timed("40 doublings", *planned("40 doublings", build, 40, 1))
    same_bits(result, X * np.float32(2) ** 40)


def test_doubling_40_times_in_a_body(device):
    @gp.operator
    def doubled(f):
        x = _readTensor(f)
        for _ in range(40):
            x = x + x
        return x

    (result,) = timed("in a body", *planned("in a body", lambda: [doubled(gp.ScalarField(X))], 1, 1))
    same_bits(result, X * np.float32(2) ** 40)
    text = doubled.source(gp.FieldType((7, 33)), target="opencl")
    assert text.count("+") < 60  # an expression tree would have 2⁴⁰


def test_a_chain_of_2000_operators(device):
    def build():
        x = gp.ScalarField(np.zeros((7, 33), "f"))
        for _ in range(2000):
            x = plus(x)
        return [x]

    (result,) = timed("chain", *planned("chain", build, 2000, 1))
    assert (result == 2000).all()


def test_a_tree_of_1000_operators(device):
    count = 501

    def build():
        base = gp.ScalarField(X)
        level = [base * float(k) for k in range(count)]
        while len(level) > 1:
            level = [a + b for a, b in zip(level[::2], level[1::2], strict=False)] + level[len(level) & ~1 :]
        return level

    (result,) = timed("tree", *planned("tree", build, 2 * count - 1, 1))
    np.testing.assert_allclose(result, X * (count * (count - 1) / 2), rtol=1e-4)


def test_100_diamonds(device):
    def build():
        x = gp.ScalarField(X)
        for _ in range(100):
            x = (x + 0.5) * (x - 0.5)
        return [x]

    (result,) = timed("diamonds", *planned("diamonds", build, 300, 1))
    want = X
    for _ in range(100):
        want = (want + np.float32(0.5)) * (want - np.float32(0.5))
    same_bits(result, want)


def test_150_gathers_in_a_row(device):
    def build():
        x = gp.ScalarField(X)
        for _ in range(150):
            x = np.maximum(right(x) * 0.5, x)
        return [x]

    (result,) = timed("gathers", *planned("gathers", build, 450, 50))
    want = X
    for _ in range(150):
        want = np.maximum(np.pad(want, ((0, 0), (0, 1)), "edge")[:, 1:] * np.float32(0.5), want)
    same_bits(result, want)


def test_equal_kernels_are_compiled_once(device, monkeypatch):
    """However many a chain has. Those with other names, or from other lines, are others: their text and messages tell."""
    backend, compiled = evaluate.current(), []
    compile_ = backend.compile
    monkeypatch.setattr(backend, "compile", lambda kernel: (compiled.append(kernel.name), compile_(kernel))[1])
    x = gp.ScalarField(X)
    for _ in range(40):
        x = mirrored(x)
    same_bits((mirrored(x) + 0).numpy(), X[:, ::-1])
    assert len(compiled) <= 3, compiled


def long(n: int, step: Callable[[gp.Field, int], gp.Field]) -> list[gp.Field]:
    x = gp.ScalarField(X)
    for k in range(n):
        x = step(x, k)
    return [x]


@pytest.mark.parametrize("shape", ["combs", "fans", "one value for all", "probes", "uses of every value"])
def test_planning_grows_with_the_graph_only(shape):
    """Ten times the operators in the ten times the time; ratios are printed."""
    base, common = gp.ScalarField(X), gp.ScalarField(X) * 2
    builds: dict[str, tuple[Callable[[int], Sequence[gp.Field]], Callable[[int], tuple[int, int]]]] = {
        "combs": (lambda n: long(n, lambda x, k: x + base * float(k)), lambda n: (2 * n, 1)),
        "fans": (lambda n: [common * float(k) for k in range(n)], lambda n: (n + 1, 1 + n // 95)),
        "one value for all": (lambda n: long(n, lambda x, k: x * common), lambda n: (n + 1, 1)),
        "probes": (lambda n: (lambda x: [x, right(x)])(long(n, lambda x, k: x + 1)[0]), lambda n: (n + 1, 2)),
        "uses of every value": (
            lambda n: long(n, lambda x, k: right(x) if k % 10 == 9 else x * x + common),
            lambda n: (1 + 2 * n - n // 10, {100: 3, 1000: 26}[n]),
        ),
    }
    build, expected = builds[shape]
    for n in (100, 1000):
        planned(f"{shape}, {n}", lambda n=n: build(n), *expected(n))
