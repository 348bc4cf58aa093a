"""Values live across barriers, and lie in other orders than the threads' own, as in NumPy; and the text that makes them so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests import nightly
from tests.conformance.compare import same

from .waits import FLOATS, INTEGERS, MIXED, MULTIPLES, NEGATIONS, Row, drawn, wrong

KNOWN = [  # rows that a compiler has got wrong
    Row(NEGATIONS[:5], "own", "local", "none", 0, "sixty-fours", False, "float32"),
    Row(NEGATIONS[5:10], "turned", "global", "none", 0, "eights", False, "float16"),
    Row(NEGATIONS[15:20], "own", "reduce", "below", 2, "pairs", False, "float64"),
    Row(MULTIPLES[1:6], "next", "local", "none", 0, "thirty-twos", False, "int32"),
    Row(MULTIPLES[1:6], "before", "shuffle", "none", 0, "sixty-fours", False, "int16"),
    Row(MULTIPLES[7:12], "turned", "local", "below", 2, "sixty-fours", False, "float32"),
    Row((MULTIPLES[1], MIXED[0]), "own", "none", "first row", 0, "cut rows", True, "int32"),
    Row((MULTIPLES[1], *MIXED), "own", "none", "first row", 0, "rows", True, "int64"),
]


@pytest.mark.parametrize("row", KNOWN, ids=range(len(KNOWN)))
def test_rows_that_were_wrong(device: str, row: Row) -> None:
    assert not wrong(row)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_drawn_rows(device: str, dtype: str) -> None:
    """At night many rows, and others each time; `benchmarks/waits.py` runs the whole table."""
    for row in drawn(dtype, 40 if nightly.is_nightly() else 2, nightly.first_seed() + 1):
        assert not wrong(row), row


def test_reductions_of_a_negated_field(device: str) -> None:
    a = np.random.default_rng(0).standard_normal((64, 64))
    f = -gp.ScalarField(a)
    results = [f.var(), f.std(), f.min(), f.max(), f.argmin(), f.argmax()]
    for actual, want in zip(
        gp.evaluate(*results), ((-a).var(), a.std(), -a.max(), -a.min(), a.argmax(), a.argmin()), strict=True
    ):
        np.testing.assert_allclose(actual.numpy(), want, rtol=1e-12)


def test_a_butterfly_that_is_contracted(device: str) -> None:
    rng = np.random.default_rng(4)
    x, y, z = (rng.integers(-20, 20, 64).astype(np.float32) for _ in range(3))

    @gp.operator(precision="contract")
    def butterfly(f, g, h):
        _localThreads(64)
        a, b, c = _readTensor(f), _readTensor(g), _readTensor(h)
        a, b = a + c * b, a - c * b
        _syncThreadsLocal()
        return a + c * b, a - c * b

    a, b = x + z * y, x - z * y
    for actual, want in zip(
        gp.evaluate(*butterfly(*map(gp.ScalarField, (x, y, z)))), (a + z * b, a - z * b), strict=True
    ):
        same(actual, want)


@pytest.mark.parametrize("dtype", ["int8", "int32", "float32"])
def test_shuffles_of_multiples(device: str, dtype: str) -> None:
    @gp.operator
    def up(f):
        _localThreads(32)
        return _shuffleGroupUp(_convert(_readTensor(f) + 3 * _localColumn, dtype), 1)

    c = np.arange(64) % 32
    same(up(gp.zeros(64, dtype=dtype)), (3 * np.maximum(c - 1, 0)).astype(dtype))


# --- text ---------------------------------------------------------------------------------------------------------------


def negated(body: Any, target: str) -> str:
    text = gp.operator(body).source(gp.FieldType((100,), (), "float32"), target=target)
    return text[text.index("// threads") :]


WAYS = {"-x": lambda x: -x, "-0.0 - x": lambda x: -0.0 - x, "x * -1": lambda x: x * -1, "x / -1": lambda x: x / -1.0}


@pytest.mark.parametrize("way", WAYS)
def test_negations_are_hidden_where_threads_wait(way: str) -> None:
    def waits(f):
        x = WAYS[way](_readTensor(f))
        return _scanGroup(x, "max") * x

    assert "hidden(-1)" in negated(waits, "opencl")
    assert "hidden" not in negated(waits, "cuda")
    assert "hidden" not in negated(lambda f: WAYS[way](_readTensor(f)), "opencl")


def test_positions_are_ints_where_they_are_multiplied() -> None:
    def multiples(f):
        return _readTensor(f) + 3 * _column + 5 * _localColumn

    text = negated(multiples, "opencl")
    assert "assume(_columnId < 0x7fffffff);" in text
    assert "assume(_localColumnId < 0x7fffffff);" in text
    assert "assume" not in negated(lambda f: _readTensor(f) + _column, "opencl")
    assert "assume" not in negated(multiples, "cuda")
