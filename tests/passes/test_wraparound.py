"""Signed overflow is undefined in C: what may overflow is computed unsigned, whatever compilers here make of it otherwise."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program

UNSIGNED = {
    "opencl": {"int16": "uint", "int32": "uint", "int64": "ulong"},
    "cuda": {"int16": "unsigned int", "int32": "unsigned int", "int64": "unsigned long long"},
}
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<<": operator.lshift,
    "0 -": lambda x, y: -x,
}


def text_of(operation: str, dtype: str, target: str) -> str:
    body = OPERATIONS[operation]
    op = gp.operator(lambda f, g: body(_readTensor(f), _readTensor(g)), name="op")
    fields = (gp.ScalarField(np.ones((5, 7), dtype)) for _ in range(2))
    return generate(plan(program([op(*fields).node])).launches[0].kernel, target_named(target)).text


@pytest.mark.daily
@pytest.mark.parametrize("operation", OPERATIONS)
def test_data_are_computed_unsigned(operation: str) -> None:
    for target, types in UNSIGNED.items():
        for dtype, unsigned in types.items():
            text = text_of(operation, dtype, target)
            assert f"({unsigned})f[" in text, f"{target}, {dtype}:\n{text}"


@pytest.mark.daily
def test_products_of_two_ushorts_leave_an_int() -> None:
    """Other unsigned types of few bits are computed in int, which holds what comes of them."""
    for target, types in UNSIGNED.items():
        assert f"({types['int32']})f[" in text_of("*", "uint16", target)
        assert f"({types['int32']})f[" not in text_of("*", "uint8", target)
        assert f"({types['int32']})f[" not in text_of("+", "uint16", target)
