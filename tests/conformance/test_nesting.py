"""Operators within operators: the text says what was recorded, and compilers find nothing in it to warn of."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

NUMBERS = ("+", "-", "*", "&", "|", "^", "<<", "<", "==")
FUNCTIONS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
x = np.array([0, 1, 2, 3, 5, 7, 9, 11], "int32")


def nested(fresh: Any, bounded: Any, one: Any) -> list[Any]:
    """(a ∘ b) • c and a ∘ (b • c) of all operators, of values that are used once; truth counts as 0 or 1 beside numbers."""
    results = []
    for outer in NUMBERS:
        for inner in NUMBERS:
            for side in (0, 1):
                part = FUNCTIONS[inner](fresh(), bounded() if inner == "<<" else fresh())
                part = part + one if inner in COMPARISONS else part
                if side:
                    results.append(FUNCTIONS[outer](fresh(), part & 7 if outer == "<<" else part))
                else:
                    results.append(FUNCTIONS[outer](part, bounded() if outer == "<<" else fresh()))
    return results


def logic(truth: Any) -> list[Any]:
    """The same of bools, and beside constants."""
    results = []
    for outer in ("&", "|", "^", "==", "!="):
        for inner in ("&", "|", "^", "==", "!="):
            results += [
                FUNCTIONS[outer](FUNCTIONS[inner](truth(), truth()), truth()),
                FUNCTIONS[outer](truth(), FUNCTIONS[inner](truth(), truth())),
                FUNCTIONS[outer](FUNCTIONS[inner](truth(), True), truth()),
                FUNCTIONS[outer](FUNCTIONS[inner](truth(), truth()), False),
            ]
    return results


def all_of(a: Any, one: Any) -> list[Any]:
    """Of values that differ from one another in their constants."""
    counter = itertools.count(1)

    def fresh() -> Any:
        n = next(counter)
        return a + n if n % 2 else a ^ n

    return nested(fresh, lambda: (a + next(counter)) & 7, one) + logic(lambda: a < next(counter) % 12)


def folded(values: list[Any], zero: Any, convert: Any) -> Any:
    total = zero
    for value in values:
        total = total * 31 + convert(value)
    return total


def test_operators_within_operators(device: str) -> None:
    @gp.operator(outputs=gp.FieldType(8, dtype="uint32"))
    def body(f):
        values = all_of(_readTensor(f), 0)
        return folded(values, _convert_uint(0), lambda v: _as_uint(_convert_int(v)))

    with np.errstate(over="ignore"):
        values = all_of(x, np.int32(0))
        want = folded(values, np.zeros(8, "uint32"), lambda v: v.astype("int32").view("uint32"))
    np.testing.assert_array_equal(body(gp.ScalarField(x)).numpy(), want)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_comparisons_with_the_ends_of_a_type(device: str, dtype: str) -> None:
    ends = (False, True) if dtype == "bool" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    y = np.array([*ends, 1, 0], dtype)
    compare = [FUNCTIONS[op] for op in COMPARISONS]
    f = gp.ScalarField(y)
    actual = [result for c in compare for end in ends for result in (c(f, end), c(np.dtype(dtype).type(end), f))]
    gp.evaluate(*actual)
    want = [result for c in compare for end in ends for result in (c(y, end), c(np.dtype(dtype).type(end), y))]
    for a, b in zip(actual, want, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)
