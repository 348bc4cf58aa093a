"""Matrices whose values are far from 1: squares of them overflow or vanish, results do not. By NumPy, of values near to 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop import linalg

FAR = [("float32", s) for s in (1e-37, 1e-30, 1e-22, 1e19, 1e30, 1e37)] + [
    ("float64", s) for s in (1e-300, 1e-162, 1e154, 1e300)
]


def matrices(dtype: str, scale: float, rows: int, columns: int) -> tuple[Any, Any]:
    """A field of two matrices, and the same without the scale, in float64."""
    values = (np.random.default_rng(rows).uniform(-1, 1, (2, rows, columns)) * scale).astype(dtype)
    return gp.Field(values, 0), values.astype(np.float64) / scale


def near(result: Any, expected: Any, dtype: str) -> None:
    close = 2e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(result.numpy(), expected, rtol=close, atol=close * np.abs(expected).max())


@pytest.mark.parametrize("size", [3])
@pytest.mark.parametrize(("dtype", "scale"), FAR)
def test_eigenvalues(dtype: str, scale: float, size: int, device: str) -> None:
    field, plain = matrices(dtype, scale, size, size)
    expected, directions = np.linalg.eigh(plain)
    values, vectors = linalg.eigh(field)
    near(values, expected * scale, dtype)
    near(abs(vectors), abs(directions), dtype)
    near(linalg.eigvalsh(field), expected * scale, dtype)


@pytest.mark.parametrize(("rows", "columns"), [(5, 3), (2, 4)])
@pytest.mark.parametrize(("dtype", "scale"), FAR)
def test_singular_values(dtype: str, scale: float, rows: int, columns: int, device: str) -> None:
    field, plain = matrices(dtype, scale, rows, columns)
    expected = np.linalg.svd(plain)[1]
    left, values, right = linalg.svd(field, full_matrices=False)
    near(values, expected * scale, dtype)
    near(linalg.svdvals(field), expected * scale, dtype)
    product = (left.numpy().astype(float) * (values.numpy() / scale)[:, None, :]) @ right.numpy()
    np.testing.assert_allclose(product, plain, atol=1e-5)
    near(linalg.cond(field), expected[:, 0] / expected[:, -1], dtype)
    assert np.all(linalg.matrix_rank(field).numpy() == min(rows, columns))
    if 1e-30 <= scale <= 1e30 or dtype == "float64":  # others' inverses are no numbers of the dtype
        near(linalg.pinv(field), np.linalg.pinv(plain) / scale, dtype)


@pytest.mark.parametrize(("dtype", "scale"), FAR)
def test_least_squares_and_qr(dtype: str, scale: float, device: str) -> None:
    field, plain = matrices(dtype, scale, 5, 3)
    right = (np.random.default_rng(9).uniform(-1, 1, 5) * scale).astype(dtype)
    result = linalg.lstsq(field[0], gp.ScalarField(right))
    expected = np.linalg.lstsq(plain[0], right.astype(np.float64) / scale, rcond=None)
    near(result[0], expected[0], dtype)
    assert result[2].numpy() == 3
    near(result[3], expected[3] * scale, dtype)
    turned, triangle = linalg.qr(field)
    near(abs(turned), abs(np.linalg.qr(plain)[0]), dtype)
    near(abs(triangle), abs(np.linalg.qr(plain)[1]) * scale, dtype)


def test_complex_qr(device: str) -> None:
    plain = np.random.default_rng(4).uniform(-1, 1, (4, 3, 2)).astype(np.float32) @ np.complex64([1, 1j])
    for scale in (1e-30, 1e30):
        turned, triangle = linalg.qr(gp.ScalarField((plain * scale).astype(np.complex64)))
        np.testing.assert_allclose(turned.numpy() @ (triangle.numpy() / scale), plain, atol=1e-5)


def test_determinants_of_large_and_small_values(device: str) -> None:
    for diagonal in (
        [1e30, 1e30, 1e-30, 1e-30],
        [1e-30, 1e-30, 1e30, 3e30],
        [0, 1e30, 1e30, 1e30],
        [1e30, np.inf, 1, 1],
    ):
        result = linalg.det(gp.ScalarField(np.diag(np.float32(diagonal)))).numpy()
        np.testing.assert_allclose(result, np.prod(np.float64(np.float32(diagonal))), rtol=1e-6)


def test_values_of_all_sizes_stay(device: str) -> None:
    """Nothing is divided where it is no use: small values beside ordinary ones keep their bits."""
    diagonal = np.diag(np.float32([1, 1e-35, 1e10]))
    assert np.array_equal(linalg.eigvalsh(gp.ScalarField(diagonal)).numpy(), np.float32([1e-35, 1, 1e10]))
    for odd in (0, np.nan, np.inf):
        assert not np.isfinite(linalg.svdvals(gp.ScalarField(np.diag(np.float32([odd, 1])))).numpy()).all() or odd == 0


ENDS = [("float16", 3e4), ("float16", 1e-3), ("float32", 1e-30), ("float32", 1e30), ("float64", 1e300)]


@pytest.mark.parametrize(("dtype", "scale"), ENDS)
def test_conditions_by_norms(dtype: str, scale: float, device: str) -> None:
    field, plain = matrices(dtype, scale, 3, 3)
    for order in ("fro", 1, -math.inf):
        near(linalg.cond(field, order), np.linalg.cond(plain, order), "float64" if dtype == "float64" else "float32")


@pytest.mark.parametrize(("dtype", "scale"), ENDS)
def test_norms_reach_as_far_as_those_of_numpy(dtype: str, scale: float, device: str) -> None:
    """Infinite or 0 where NumPy's are."""
    vector = (np.random.default_rng(3).uniform(0.1, 1, 9) * scale).astype(dtype)
    for order in (None, 3, 1, -1, 0.5, math.inf):
        with np.errstate(all="ignore"):
            expected = np.linalg.norm(vector, order)
        close = {"float16": 5e-2, "float32": 1e-5, "float64": 1e-13}[dtype]
        np.testing.assert_allclose(linalg.norm(gp.ScalarField(vector), order).numpy(), expected, rtol=close)
