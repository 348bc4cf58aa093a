"""Small nests of integer operators are on every device what they are in NumPy; and the text that makes them so."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.codegen.nvrtc import ptx_of

from .shapes import KNOWN, wrong

COMPLEMENTS, SIGNS = KNOWN[:9], KNOWN[13:24]


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
def test_apart(device: str, dtype: str) -> None:
    assert not wrong(KNOWN, dtype, (13, 5))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_side_by_side(device: str, dtype: str) -> None:
    """Few enough values that they are in registers, in groups that are no multiple of a CPU's vectors."""
    assert not wrong(COMPLEMENTS, dtype, (13, 5), blocks=False)


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_in_lanes(device: str, dtype: str) -> None:
    assert not wrong(SIGNS[:9], dtype, (1, 4161), blocks=False)


def test_extremes_of_fields(device: str) -> None:
    values = np.array([4010, 3001, 3001, 1, 1, 1, 1001, 4002], np.int32)
    field = gp.ScalarField(values)
    results = (-field).max(), (~field).max(), (~field).min(), (-abs(field)).max()
    assert [int(f) for f in gp.evaluate(*results)] == [-1, -2, -4011, -1]


# --- text ---------------------------------------------------------------------------------------------------------------

NEGATIONS = {
    "-x": lambda x: -x,
    "0 - x": lambda x: 0 - x,
    "x * -1": lambda x: x * -1,
    "~x": lambda x: ~x,
    "-1 - x": lambda x: -1 - x,
    "x ^ -1": lambda x: x ^ -1,
    "abs(x)": abs,
}


def source(body: Any, dtype: str, target: str, *grid: int) -> str:
    return gp.operator(body).source(gp.FieldType(grid or (5,), (), dtype), target=target)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("way", NEGATIONS)
def test_compilers_see_no_negation(way: str, dtype: str) -> None:
    def body(x):
        return _max(NEGATIONS[way](_readTensor(x)), 3)

    assert "hidden(" in source(body, dtype, "opencl")
    cuda = source(body, dtype, "cuda")
    assert not re.search(r"\b(neg|not|abs)\.", ptx_of(cuda, "compute_90")), cuda


def test_compilers_see_a_negation_that_is_not_hidden() -> None:
    """So that the test above can fail."""
    text = 'extern "C" __global__ void k(int *p) { p[threadIdx.x] = max(-p[threadIdx.x], 3); }'
    assert re.search(r"\bneg\.", ptx_of(text, "compute_90"))


def test_narrow_integers_are_cut_by_an_instruction() -> None:
    """Of what is packed, NVIDIA's compiler leaves some conversions out."""

    def body(x):
        return _where(_readTensor(x) - 100 < 0, 1, 2)

    assert "low_char(" in source(body, "int8", "cuda", 1024, 1024)
    assert "low_short(" in source(body, "int16", "cuda", 1024, 1024)


@pytest.mark.parametrize(("dtype", "c"), [("int16", "short"), ("uint16", "ushort")])
def test_extremes_of_16_bits_are_computed_in_32(dtype: str, c: str) -> None:
    def body(x):
        return _clamp(_readTensor(x), 3, 7) == 5

    assert f"({c})min((int)({c})max((int)x[_column], 3), 7) == 5" in source(body, dtype, "opencl")


def test_positions_are_reflected_by_a_function() -> None:
    def body(x):
        return _readTensor(x, _column - 1, border="reflect")

    assert "x[(int)abs(_column - 1)]" in source(body, "int32", "opencl")
