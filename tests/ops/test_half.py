"""NumPy's functions of float16 round their result once, and none of the steps before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from tests.ops.real_functions import BY_DEVICES, FUNCTIONS

ALL = np.arange(2**16, dtype=np.uint16).view(np.float16)


def pairs() -> tuple[Any, Any]:
    """Of all values, of whole numbers, and of numbers near to one another."""
    random = np.random.default_rng(5)
    x, y = random.integers(0, 2**16, (2, 2**15), dtype=np.uint16).view(np.float16)
    whole = random.integers(-3000, 3000, 2**15), random.integers(-50, 50, 2**15)
    close = random.normal(0, 3, 2**14)
    near = close + random.normal(0, 0.01, 2**14)
    return tuple(
        np.concatenate([a, b, c]).astype(np.float16) for a, b, c in ((x, whole[0], close), (y, whole[1], near))
    )


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_are_rounded_once(name: str, device: str) -> None:
    function = getattr(np, name)
    operands = (ALL,) if function.nin == 1 else pairs()
    try:
        expected = function(*operands)
    except TypeError:  # of integers alone
        return
    result = function(*map(gp.ScalarField, operands)).numpy()
    assert result.dtype == expected.dtype
    if name == "hypot":  # of infinity and NaN it is infinity, as C has it
        expected = np.where(np.isinf(operands[0]) | np.isinf(operands[1]), np.float16(np.inf), expected)
    if name in ("signbit", "copysign"):  # of a NaN the sign is nobody's promise
        finite = ~np.isnan(operands[-1])
        result, expected = result[finite], expected[finite]
    if (
        name in BY_DEVICES
    ):  # float32 itself is not correctly rounded: results halfway between two of float16 may be the other
        assert np.count_nonzero(result != expected) - np.count_nonzero(expected != expected) < 1e-3 * expected.size
        same = (result == expected) | ((result != result) & (expected != expected))
        np.testing.assert_allclose(result[~same].astype(float), expected[~same].astype(float), rtol=1.1e-3)
    else:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_are_rounded_first(device: str) -> None:
    """As NumPy: a number beside float16 is one of float16."""
    for number in (0.1, 3, 0.7, -1e-5):
        for function in (np.multiply, np.floor_divide, np.remainder, np.fmod):
            result = function(gp.ScalarField(ALL), number).numpy()
            np.testing.assert_array_equal(result, function(ALL, number))


def test_functions_made_of_steps(device: str) -> None:
    """By NumPy in float64."""
    row = np.float16([-30000, 35000, 40000, 3, 3.001, 100, 0.1, 0.3, 2000, 2001])
    field, wide = gp.ScalarField(row), row.astype(np.float64)
    calls = {
        "gradient": np.gradient,
        "gradient of uneven steps": lambda f: np.gradient(f, np.arange(10.0) ** 2 * 2),
        "trapezoid": lambda f: np.trapezoid(f, dx=0.25),
        "average": lambda f: np.average(f, weights=np.arange(10)),
        "sinc": np.sinc,
        "unwrap": np.unwrap,
        "interp": lambda f: np.interp(f, [-60000, 60000], [0, 1]),
        "modf": lambda f: np.modf(f)[0],
        "median": np.median,
        "std": np.std,
    }
    for name, call in calls.items():
        result, expected = call(field).numpy(), call(wide)
        assert result.dtype == (np.float16 if name != "interp" else result.dtype)
        np.testing.assert_allclose(
            result.astype(float), expected, rtol=6e-4, atol=2e-3 if name in ("sinc", "interp") else 1e-7, err_msg=name
        )
