"""NumPy's functions of bfloat16: float32's results of the same values, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.ops.elementwise.numpy_functions import EVERY
from tests.bfloat16 import ALL, nearest, pairs

FUNCTIONS = [name for name in EVERY if isinstance(getattr(np, name), np.ufunc) and name not in ("clip", "conjugate")]
# functions whose float32 differs between devices and NumPy in the last place
BY_DEVICES = [
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "power",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "arctan2",
]


def bf(values: Any) -> gp.Field:
    return gp.ScalarField(values, dtype="bfloat16")


def expected_of(name: str, operands: tuple[Any, ...]) -> Any:
    if name == "nextafter":
        return following(*operands)
    if name in BY_DEVICES:
        operands = tuple(o.astype(np.float64) for o in operands)
    result = getattr(np, name)(*operands)
    return nearest(result.astype(np.float32)) if result.dtype.kind == "f" else result


def following(x: Any, y: Any) -> Any:
    """The neighbour of each number, by the order of signed magnitudes."""
    bits = (x.view(np.uint32) >> 16).astype(np.int64)
    place = np.where(bits & 0x8000, -(bits & 0x7FFF), bits)
    moved = place + np.where(y > x, 1, -1)
    codes = np.where(moved < 0, 0x8000 | -moved, moved).astype(np.uint32) << np.uint32(16)
    result = np.where(x == y, y, codes.view(np.float32))
    result = np.where((place == 0) & (y < 0) & (y != 0), -(np.float32(2) ** -133), result)
    return np.where(np.isnan(x) | np.isnan(y), np.float32(np.nan), result)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_are_rounded_once(name: str, device: str) -> None:
    function = getattr(np, name)
    operands = (ALL,) if function.nin == 1 else pairs()
    try:
        function(*operands)
    except TypeError:  # of integers alone
        return
    field, expected = function(*map(bf, operands)), expected_of(name, operands)
    assert field.dtype == ("bfloat16" if expected.dtype.kind == "f" else expected.dtype)
    result = field.numpy()
    if name == "hypot":  # of infinity and NaN it is infinity, as C has it
        expected = np.where(np.isinf(operands[0]) | np.isinf(operands[1]), np.float32(np.inf), expected)
    if name in ("signbit", "copysign"):  # of a NaN the sign is nobody's promise
        finite = ~np.isnan(operands[-1])
        result, expected = result[finite], expected[finite]
    if name in BY_DEVICES:
        same = (result == expected) | ((result != result) & (expected != expected))
        assert np.count_nonzero(~same) < 1e-3 * expected.size, name
        np.testing.assert_allclose(result[~same].astype(float), expected[~same].astype(float), rtol=8e-3, atol=1e-38)
    else:
        np.testing.assert_array_equal(result, expected)
