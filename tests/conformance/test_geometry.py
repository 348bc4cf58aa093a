"""The guide's geometric functions, of every magnitude: bounds in ULP for lengths, NumPy's steps for products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.testing import ulps

from .accuracy import ENTRIES, denormals
from .compare import all_same, compute, has_double, same

rng = np.random.default_rng(23)
DTYPES = ("float32", "float16", "float64")
LANES = {"float32": (1, 2, 3, 4), "float16": (3,), "float64": (4,)}  # PoCL compiles one in a second
SIZES = ("length", "distance", "normalize")
Array = np.ndarray[Any, Any]


def vectors(dtype: str, lanes: int) -> tuple[Array, Array]:
    """Pairs of vectors; those of the first half have components of every magnitude, some far greater than others."""
    info = np.finfo(dtype)
    lowest, highest = np.log2(float(info.tiny)) - 3 * denormals(dtype), np.log2(float(info.max)) - 2
    apart = rng.choice([0.0, -1.0, -20.0, -1e4], (2, 200, lanes), p=[0.5, 0.3, 0.1, 0.1])
    sizes = rng.uniform(lowest, highest, (2, 200, 1)) + apart
    some = rng.uniform(1, 2, (2, 200, lanes)) * 2.0**sizes * rng.choice([-1, 1], (2, 200, lanes))
    plain = rng.standard_normal((2, 200, lanes))
    array = np.concatenate([some, plain], 1).astype(dtype)
    array[:, 0] = 0
    return array[0], array[1]


def field(array: Array) -> gp.Field:
    array = array[:, 0] if array.shape[1:] == (1,) else array
    return gp.Field(np.ascontiguousarray(array), array.ndim - 1)


def exact_sizes(p: Array, q: Array) -> tuple[Array, ...]:
    """Length, distance and direction, in longdoubles, whose exponents hold every square."""
    p, away = p.astype(np.longdouble), p.astype(np.longdouble) - q
    size = np.sqrt((p * p).sum(1))
    return size, np.sqrt((away * away).sum(1)), p / np.where(size == 0, 1, size)[:, None]


def within(name: str, actual: Array, exact: Array) -> None:
    entry, dtype = ENTRIES[name], str(actual.dtype)
    limit = 2 if dtype == "float16" else entry.double if dtype == "float64" else entry.ulp
    off = ulps(actual.reshape(exact.shape), exact, not denormals(dtype))
    assert off.max() <= limit, f"{name} of {dtype}: {off.max()} ulp at {np.unravel_index(off.argmax(), off.shape)}"


def test_no_function_is_forgotten() -> None:
    group = {name for name, entry in ENTRIES.items() if entry.group == "geometric"}
    assert group == {*SIZES, *(f"fast_{name}" for name in SIZES), "dot", "cross"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_sizes(device: str, dtype: str) -> None:
    """Nothing overflows or vanishes on the way to a result that does not."""
    if dtype == "float64" and not has_double():
        pytest.skip("no double")
    for lanes in LANES[dtype]:
        p, q = vectors(dtype, lanes)

        def body(f, g):
            a, b = _readTensor(f), _readTensor(g)
            return _length(a), _distance(a, b), _normalize(a), _fast_length(a), _fast_distance(a, b), _fast_normalize(a)

        actual = compute(body, field(p), field(q))
        with np.errstate(all="ignore"):
            exact = exact_sizes(p, q)
            for name, result, expected in zip(SIZES, actual[:3], exact, strict=True):
                within(name, result, expected)
            for name, result, expected in zip(SIZES, actual[3:], exact, strict=True):
                within(f"fast_{name}", result[200:], expected[200:])


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_components(device: str, dtype: str) -> None:
    """Infinite components count as ±1 among zeros when they are normalized; a NaN makes everything NaN; zeros keep their sign."""
    if dtype == "float64" and not has_double():
        pytest.skip("no double")
    inf, nan, top = np.inf, np.nan, np.finfo(dtype).max
    p = np.array(
        [[inf, 1, -2], [inf, -inf, 0], [nan, 1, inf], [nan, 1, 2], [0, -0.0, 0], [top, top, -top], [0, -inf, 0]], dtype
    )
    third, half = np.float64(1 / 3) ** 0.5, np.float64(0.5) ** 0.5
    size, unit = gp.operator(lambda f: (_length(_readTensor(f)), _normalize(_readTensor(f))))(gp.Field(p, 1))
    same(size, np.array([inf, inf, nan, nan, 0, np.inf, inf], dtype))
    expected = [[1, 0, 0], [half, -half, 0], [nan] * 3, [nan] * 3, [0, 0, 0], [third, third, -third], [0, -1, 0]]
    np.testing.assert_allclose(unit.numpy().astype("f8"), np.array(expected), 2e-3 if dtype == "float16" else 1e-6)
    assert np.array_equal(np.signbit(unit.numpy()[4]), [False, True, False])
    scalar = gp.operator(lambda f: _normalize(_readTensor(f)))(
        gp.Field(np.array([inf, -inf, 5, -0.0, top, nan], dtype))
    )
    same(scalar, np.array([1, -1, 1, -0.0, 1, nan], dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(device: str, dtype: str) -> None:
    """Every step is rounded to the type, from the first component on."""
    if dtype == "float64" and not has_double():
        pytest.skip("no double")
    for lanes in (1, 2, 3, 4):
        p, q = rng.standard_normal((2, 60, lanes)).astype(dtype)
        dot = p[:, 0] * q[:, 0]
        for k in range(1, lanes):
            dot = dot + p[:, k] * q[:, k]
        all_same((gp.operator(lambda f, g: _dot(_readTensor(f), _readTensor(g)))(field(p), field(q)),), (dot,))
        if lanes > 2:
            cross = np.zeros_like(p)
            for k, (i, j) in enumerate(((1, 2), (2, 0), (0, 1))):
                cross[:, k] = p[:, i] * q[:, j] - p[:, j] * q[:, i]
            all_same((gp.operator(lambda f, g: _cross(_readTensor(f), _readTensor(g)))(field(p), field(q)),), (cross,))
