"""Integers that float32 does not hold: what is subtracted, compared and averaged of them is NumPy's, to the result's dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named

LONG = ("int32", "uint32", "int64", "uint64")
EVERY = ("uint16", *LONG)
BASES = (0, 100, 2**15 - 20, 2**24, 2**30, 2**31 - 20, 10**12, 2**62, 2**63 + 2**20)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "std": np.std,
    "var": np.var,
    "var of ddof": lambda f: np.var(f, ddof=1),
    "nanstd": np.nanstd,
    "nanvar": np.nanvar,
    "std of a mask": lambda f: np.std(f, where=f == f),
    "mean": np.mean,
    "mean of a mask": lambda f: np.mean(f, where=f == f),
    "nanmean": np.nanmean,
    "median": np.median,
    "nanmedian": np.nanmedian,
    "quantile": lambda f: np.quantile(f, 0.3),
    "nanquantile": lambda f: np.nanquantile(f, 0.3),
    "midpoint": lambda f: np.quantile(f, 0.3, method="midpoint"),
    "least midpoint": lambda f: np.quantile(f, 0, method="midpoint"),
    "nearest": lambda f: np.quantile(f, 0.3, method="nearest"),
    "gradient": np.gradient,
    "gradient of order 2": lambda f: np.gradient(f, edge_order=2),
    "average": np.average,
    "isclose": lambda f: np.isclose(f, f[::-1], rtol=0, atol=2.5),
    "isclose of a number": lambda f: np.isclose(f, 103, rtol=0, atol=2.5),
    "subtract": lambda f: f - 0.5,
    "remainder": lambda f: f % 2.5,
    "fmod": lambda f: np.fmod(f, 2.5),
    "floor_divide": lambda f: f // 2.5,
    "sin": np.sin,
    "sinc": np.sinc,
}


def rows(dtype: str) -> list[Any]:
    """Neighbours far from 0, and values as far apart as may be."""
    ends = np.iinfo(dtype)
    near = [sign * base for base in BASES for sign in (1, -1)]
    results = [np.array([n + d for d in range(10)], dtype) for n in near if ends.min <= n and n + 9 <= ends.max]
    return [*results[-2:], np.array([ends.min, ends.max, ends.max // 2, 5, 3, 1], dtype)]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_statistics_and_differences(name: str, dtype: str, device: str) -> None:
    call = FUNCTIONS[name]
    overflows = name in ("quantile", "midpoint", "nanquantile")  # in NumPy, of the dtype's ends
    for row in rows(dtype)[: -1 if overflows else None]:
        expected, result = np.asarray(call(row)), call(gp.ScalarField(row)).numpy()
        if expected.dtype.kind == "f":  # NumPy's sines of bytes are float16
            expected = np.asarray(call(row.astype(np.float64) if expected.dtype == np.float16 else row), np.float32)
        assert result.dtype == expected.dtype, row
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-7, err_msg=str(row))


def test_a_derivative_of_uneven_steps(device: str) -> None:
    """Weights of float64, which NumPy multiplies values by, leave of large ones what the differences are."""
    places = np.cumsum(np.arange(1, 11.0))
    for base in (-100, 2**14, 2**30):
        row = np.arange(base, base + 10, dtype=np.int32)
        result = np.gradient(gp.ScalarField(row), places).numpy()
        np.testing.assert_allclose(result, np.gradient(row - base, places), rtol=1e-6)


def test_an_integral(device: str) -> None:
    """Computed in Python: NumPy adds neighbours in the integers' own dtype, which overflows."""
    row = np.array([2**31 - 1, 2**31 - 5, -(2**31), -(2**31) + 9], np.int32)
    whole = sum((int(a) + int(b)) / 2 for a, b in zip(row[1:], row[:-1], strict=True))
    assert np.trapezoid(gp.ScalarField(row)).numpy() == np.float32(whole)


def test_interpolation_of_counts(device: str) -> None:
    base = 10**12
    places, values = np.arange(base, base + 50, 5), np.arange(base, base + 100, 10)
    want = np.arange(base - 3, base + 60)
    expected = np.interp(want, places, values).astype(np.float32)
    assert np.array_equal(
        np.interp(gp.ScalarField(want), gp.ScalarField(places), gp.ScalarField(values)).numpy(), expected
    )
    heights = np.float32([0, 1, 4, 9, 16, 25, 36, 49, 64, 81])
    expected = np.interp(want, places, heights)
    np.testing.assert_allclose(np.interp(gp.ScalarField(want), places, heights).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
@pytest.mark.parametrize("dtype", LONG)
def test_comparisons_with_floating_numbers(compare: Callable[..., Any], dtype: str, device: str) -> None:
    ends = np.iinfo(dtype)
    near = [
        sign * (2**n + d) for n in (0, 3, 24, 30, 31, 32, 53, 62, 63, 64) for d in (-1, 0, 1, 3) for sign in (1, -1)
    ]
    row = np.array([n for n in near if ends.min <= n <= ends.max], dtype)
    field = gp.ScalarField(row)
    numbers = [
        0.5,
        -2.5,
        2.0**24,
        2.0**24 + 0.5,
        2.0**31,
        -(2.0**31),
        2.0**53,
        2.0**64,
        1e30,
        -1e30,
        np.inf,
        -np.inf,
        np.nan,
    ]
    for number in [*numbers, np.float32(2**24), np.float64(2**24 + 1)]:
        assert np.array_equal(compare(field, number).numpy(), compare(row, number)), number
        assert np.array_equal(compare(number, field).numpy(), compare(number, row)), number
    floats = np.resize(np.array(numbers, np.float32), row.shape)
    assert np.array_equal(compare(field, gp.ScalarField(floats)).numpy(), compare(row, floats.astype(np.float64)))


def test_what_is_among_others(device: str) -> None:
    row = np.array([2**24 + 1, 2**24, 5], np.int32)
    for others in (np.float64([2**24, 5.5]), np.float32([2**24, 5.5]), np.int64([2**40, 5])):
        assert np.array_equal(np.isin(gp.ScalarField(row), others).numpy(), np.isin(row, others))
        assert np.array_equal(np.isin(gp.ScalarField(row), gp.ScalarField(others)).numpy(), np.isin(row, others))


def test_means_of_64_bits_do_not_wrap(device: str) -> None:
    for dtype in ("int64", "uint64"):
        row = np.full(64, np.iinfo(dtype).max, dtype)
        field, expected = gp.ScalarField(row), np.float32(row.astype(float).mean())
        for result in (field.mean(), field.mean(where=field == field), np.nanmean(field), np.average(field)):
            assert result.numpy() == expected
        assert np.std(field).numpy() == np.nanvar(field).numpy() == 0


def test_devices_without_double_subtract_in_float32() -> None:
    """Kernels that need double elsewhere do without it there, as the page says."""
    row = gp.ScalarField(np.arange(10, dtype=np.int32))
    target = replace(target_named("opencl"), has_fp64=False)
    for value in (
        row - 0.5,
        row > gp.ScalarField(np.ones(10, np.float32)),
        np.gradient(row),
        np.interp(row, [0, 5], [1, 2]),
    ):
        text = generate(value.node.call.kernel, target).text
        assert "double" not in text
        assert "double" in generate(value.node.call.kernel, target_named("opencl")).text
