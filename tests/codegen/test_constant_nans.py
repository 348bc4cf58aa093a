"""Floats that are computed of integers alone are constants to NVIDIA's compiler: it has the answers of NumPy about NaN.

Compilers for GPUs need no GPU; what is stored is a constant in PTX, or it is computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program

from .nvrtc import ptx_of


def powers(x: Any) -> Any:
    """x to the sixteenth."""
    for _ in range(4):
        x = x * x
    return x


ZEROS: dict[str, Callable[[Any], Any]] = {
    "a % a": lambda a: np.fmod(a, a),
    "a - a": lambda a: a - a,
    "a ^ a": lambda a: a ^ a,
    "a & 0": lambda a: a & 0,
    "clipped": lambda a: np.minimum(np.maximum(a, 0), 0),
}
NANS: dict[str, Callable[[Any, Any], Any]] = {
    "0 / 0": lambda z, f: f(z) / f(z),
    "infinity - infinity": lambda z, f: f(z + 1) / f(z) - f(z + 1) / f(z),
    "0 * infinity": lambda z, f: f(z + 1) / f(z) * f(z),
    "a product that is too large": lambda z, f: powers(f(z + 1) * 1e38) * f(z),
    "a root of -1": lambda z, f: np.sqrt(f(z) - f(z + 1)),
    "log(0) * 0": lambda z, f: np.log(f(z)) * f(z),
}
QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "isnan": lambda x, y: np.isnan(x),
    "isfinite": lambda x, y: np.isfinite(x),
    "x == x": lambda x, y: x == x,
    "x <= x": lambda x, y: x <= x,
    "x == y": lambda x, y: x == y,
    "x >= y": lambda x, y: x >= y,
}


def stored(ptx: str) -> list[int | None]:
    """The constants that are stored, or None of what is computed, in the order of the outputs."""
    constants = dict(re.findall(r"mov\.[bus]\d+\s+(%\w+), (-?\d+);", ptx))
    values = re.findall(r"st\.global\.\w+\s+\[[^]]+\], (%\w+|-?\d+);", ptx)
    return [int(v) if v.lstrip("-").isdigit() else int(constants[v]) if v in constants else None for v in values]


def asks_for_nan(ptx: str) -> bool:
    """Return whether a comparison is true of NaN alone: of a number with itself, or of its magnitude with infinity."""
    return "setp.nan" in ptx or bool(re.search(r"setp\.gtu\.f\d\d\s+%p\d+, %\w+, 0[fd]7F[F8]0+;", ptx))


@pytest.mark.parametrize("float_type", ["float32", "float64"])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("zero", ZEROS)
def test_no_comparison_of_nans_is_a_wrong_constant(zero: str, dtype: str, float_type: str) -> None:
    a = np.array([26], dtype)
    field = gp.ScalarField(a)
    for name, nan in NANS.items():
        with np.errstate(all="ignore"):
            x, y = (nan(ZEROS[z](a), lambda v: v.astype(float_type)) for z in (zero, "a - a"))
        expected = [int(q(x, y)[0]) for q in QUESTIONS.values()]
        x, y = (nan(ZEROS[z](field), lambda v: v.astype(float_type)) for z in (zero, "a - a"))
        (launch,) = plan(program([q(x, y).node for q in QUESTIONS.values()])).launches
        result = stored(ptx_of(generate(launch.kernel, target_named("cuda:sm_90")).text, "sm_90"))
        assert len(result) == len(QUESTIONS)
        wrong = [q for q, actual, want in zip(QUESTIONS, result, expected, strict=True) if actual not in (None, want)]
        assert not wrong, f"{name}, {zero}"


@pytest.mark.parametrize("to", ["uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("float_type", ["float32", "float64"])
def test_conversions_look_for_nan_in_what_may_be_a_constant(float_type: str, to: str) -> None:
    a = gp.ScalarField(np.array([26], "int32"))
    x = (a - a).astype(float_type)
    (launch,) = plan(program([(x / x).astype(to).node])).launches
    ptx = ptx_of(generate(launch.kernel, target_named("cuda:sm_90")).text, "sm_90")
    by_itself = (float_type, to) == ("float32", "int32")  # the instruction gives 0
    assert stored(ptx) == [0] or asks_for_nan(ptx) or by_itself


@pytest.mark.timeout(30)  # a bound that is NaN itself compares with nothing: the search for bounds then had no end
@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "0.0"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_without_a_bound(number: str, dtype: str) -> None:
    kind = {"float32": "float", "float64": "double"}[dtype]

    @gp.operator
    def divided(a: Any) -> Any:
        zero = _var(getattr(gp.dsl, f"_convert_{kind}")(_readTensor(a) - _readTensor(a)))
        table = _constantArray(np.array([float(number), 2.0], dtype))
        total = _var(zero / zero / float(number))
        with _for(2) as k:
            total += total / float(number) * table[k]
        return total == total

    (launch,) = plan(program([divided(gp.ScalarField(np.array([26], "int32"))).node])).launches
    assert "==" in generate(launch.kernel, target_named("cuda:sm_90")).text
