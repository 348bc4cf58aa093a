"""Determinants, inverses, solutions and factors of gpuop.linalg beside NumPy's: of tensors, grids and arrays."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import linalg
from gpuop.dsl.vocabulary import NAMES

rng = np.random.default_rng(5)
SIZES = [1, 3, 5]  # some are written out, some are loops


def matrices(rows: int, columns: int, dtype: str = "float64") -> Any:
    return (rng.random((2, 2, rows, columns)) - 0.5).astype(dtype)


def close(result: Any, expected: Any, tolerance: float = 1e-9) -> None:
    result = np.asarray(result)
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def transposed(a: Any) -> Any:
    return np.swapaxes(a, -1, -2)


@pytest.mark.parametrize("size", SIZES)
def test_square(size: int) -> None:
    with gp.use_device("reference"):
        a, b, v = matrices(size, size) + np.eye(size), matrices(size, 2), matrices(size, 1)[..., 0]
        field = gp.MatrixField(a)
        close(linalg.det(field), np.linalg.det(a))
        close(np.linalg.inv(field), np.linalg.inv(a))
        close(linalg.inv(gp.ScalarField(a)), np.linalg.inv(a))
        close(np.linalg.solve(field, gp.MatrixField(b)), np.linalg.solve(a, b))
        close(linalg.solve(gp.Parameter(a[0, 0]), gp.VectorField(v)), np.linalg.solve(a[0, 0], v[..., None])[..., 0])
        sign, logarithm = np.linalg.slogdet(field)
        close(sign, np.linalg.slogdet(a)[0])
        close(logarithm, np.linalg.slogdet(a)[1])
        positive = a @ transposed(a)
        close(linalg.cholesky(positive), np.linalg.cholesky(positive))
        close(linalg.cholesky(positive, upper=True), transposed(np.linalg.cholesky(positive)))


@pytest.mark.parametrize("size", SIZES)
def test_eigenvalues(size: int) -> None:
    a = matrices(size, size)
    with gp.use_device("reference"):
        values, vectors = map(np.asarray, linalg.eigh(gp.MatrixField(a), "U"))
        close(values, np.linalg.eigvalsh(a, "U"))
        close(linalg.eigvalsh(a), np.linalg.eigvalsh(a))
    upper = np.triu(a)
    close(vectors @ (values[..., None] * transposed(vectors)), upper + transposed(np.triu(a, 1)))
    close(transposed(vectors) @ vectors, np.broadcast_to(np.eye(size), a.shape))


def test_the_page_has_matrices_of_a_body() -> None:
    """The structure tensor of docs/reference/linalg.md, as it stands there."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "linalg.md").read_text(encoding="utf-8")
    (block,) = (text for text in re.findall(r"```python\n(.*?)```", page, re.S) if "eigh" in text)
    pixels = rng.random((12, 17), np.float32)
    scope = {**NAMES, "gp": gp, "image": gp.ScalarField(pixels)}
    linecache.cache["linalg.md"] = (len(block), None, block.splitlines(True), "linalg.md")
    with gp.use_device("reference"):
        exec(compile(block, "linalg.md", "exec"), scope)
        y, x = (scipy.ndimage.sobel(pixels, axis) for axis in (0, 1))
        tensors = np.stack([x * x, x * y, x * y, y * y], -1).reshape(12, 17, 2, 2)
        low, high = np.moveaxis(np.linalg.eigvalsh(scipy.ndimage.gaussian_filter(tensors, (2, 2, 0, 0))), -1, 0)
        close(scope["coherence"], (high - low) / (high + low + 1e-6), 1e-5)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 2), (2, 3), (5, 2)])
def test_of_any_shape(rows: int, columns: int) -> None:
    a = matrices(rows, columns)
    a[0, 0] = 0
    a[1, 0] = a[1, 0, :, :1] * a[1, 1, :1]  # of rank 1
    with gp.use_device("reference"):
        for mode in ("reduced", "complete"):
            for result, expected in zip(linalg.qr(a[:, 1:], mode), np.linalg.qr(a[:, 1:], mode), strict=True):
                close(result, expected)
        close(np.linalg.svdvals(gp.MatrixField(a)), np.linalg.svd(a, compute_uv=False))
        for full in (True, False):
            u, s, v = map(np.asarray, linalg.svd(gp.MatrixField(a), full))
            for result, expected in zip((u, v), np.linalg.svd(a, full)[::2], strict=True):
                assert result.shape == expected.shape
            count = min(rows, columns)
            close(u[..., :count] @ (s[..., None] * v[..., :count, :]), a)
            close(transposed(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (2, 2, u.shape[-1], u.shape[-1])))
            close(v @ transposed(v), np.broadcast_to(np.eye(v.shape[-2]), (2, 2, v.shape[-2], v.shape[-2])))
        close(linalg.pinv(a), np.linalg.pinv(a, rcond=1e-12), 1e-7)
        close(linalg.matrix_rank(a), np.linalg.matrix_rank(a))
        close(linalg.cond(a[:, 1:]), np.linalg.cond(a[:, 1:]), 1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("size", [2, 5])
def test_complex_matrices(size: int, dtype: str) -> None:
    part, share = ("f", 1.0) if dtype == "complex64" else ("d", 1e-8)
    with gp.use_device("reference"):
        a, b, wide = (matrices(size, n) + 1j * matrices(size, n) for n in (size, 2, size + 1))
        one, other = (a.astype(dtype), b.real.astype(part)) if size == 2 else (a.real.astype(part), b.astype(dtype))
        close(linalg.solve(one, other), np.linalg.solve(one, other), 2e-4 * share)
        a, wide = a.astype(dtype), wide.astype(dtype)
        square = a @ np.conj(transposed(a)) + np.eye(size, dtype=dtype)
        close(linalg.cholesky(square, upper=size == 2), np.linalg.cholesky(square, upper=size == 2), 1e-4 * share)
        for name in ("det", "inv"):
            close(getattr(linalg, name)(a), getattr(np.linalg, name)(a), 2e-4 * share)
            assert getattr(linalg, name)(a).dtype == dtype
        for result, expected in zip(linalg.slogdet(a), np.linalg.slogdet(a), strict=True):
            close(result, expected, 1e-4 * share)
            assert result.dtype == expected.dtype
        values = wide if size == 2 else np.ascontiguousarray(transposed(wide))
        for result, expected in zip(linalg.qr(values, "complete"), np.linalg.qr(values, "complete"), strict=True):
            close(result, expected, 2e-4 * share)


@pytest.mark.parametrize(("rows", "columns"), [(6, 3), (2, 3), (5, 5)])
def test_least_squares(rows: int, columns: int) -> None:
    with gp.use_device("reference"):
        a, b = matrices(rows, columns)[0, 0], matrices(rows, 2)[0]
        a[:, -1] = a[:, 0] if rows == columns else a[:, -1]  # one has no full rank
        for result, expected in zip(linalg.lstsq(a, b[0]), np.linalg.lstsq(a, b[0]), strict=True):
            close(result, expected)
            assert np.asarray(result).dtype == np.asarray(expected).dtype
        x = np.linalg.lstsq(gp.MatrixField(np.stack([a, 2 * a])), gp.VectorField(b[:, :, 1]))[0]
        close(x, [np.linalg.lstsq(m, right)[0] for m, right in ((a, b[0, :, 1]), (2 * a, b[1, :, 1]))])


@pytest.mark.parametrize("axis", [0, -1, (0, 1), (-1, 0)])
def test_norms(axis: Any) -> None:
    x = matrices(5, 3)[0]
    orders = [None, 1, -1, np.inf, -np.inf] + (["fro"] if isinstance(axis, tuple) else [0, 2, 3])
    with gp.use_device("reference"):
        for order in orders:
            for keepdims in (False, True):
                close(
                    np.linalg.norm(gp.VectorField(x), order, axis, keepdims), np.linalg.norm(x, order, axis, keepdims)
                )
        close(linalg.norm((x * 1j).astype("complex64")), np.linalg.norm(x), 1e-5)
        close(linalg.norm(x * 1j), np.linalg.norm(x))


def test_on_devices(device: str) -> None:
    """One of each way: elimination with loops and without, and rotations; each fuses with what makes its matrices."""
    a = matrices(3, 3, "float32") + 2 * np.eye(3, dtype="float32")
    loops = matrices(5, 5, "float32") + 3 * np.eye(5, dtype="float32")
    close(linalg.inv(gp.MatrixField(a) * 2), np.linalg.inv(a * 2), 1e-4)
    close(linalg.det(gp.MatrixField(loops)), np.linalg.det(loops), 2e-3)
    close(linalg.eigvalsh(gp.MatrixField(a[..., :2, :2])), np.linalg.eigvalsh(a[..., :2, :2]), 1e-4)


def test_singular_matrices() -> None:
    with gp.use_device("reference"):
        assert linalg.det(np.zeros((3, 3))) == 0
        assert linalg.det([[1.0, 2.0], [2.0, 4.0]]) == 0
        assert not np.isfinite(linalg.inv(np.ones((2, 2)))).all()
        assert np.isnan(linalg.cholesky(-np.eye(2))).any()


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda f: linalg.inv(f), np.linalg.LinAlgError, "must be square, and are 3×4"),
        (
            lambda f: linalg.det(gp.ScalarField(np.ones(3, "f"))),
            np.linalg.LinAlgError,
            "must be at least 2-dimensional",
        ),
        (
            lambda f: linalg.solve(np.eye(3), np.ones(4)),
            np.linalg.LinAlgError,
            "3 rows, and the right-hand sides 4",
        ),
        (
            lambda f: linalg.inv(np.eye(40)),
            gp.UnsupportedError,
            "up to 32×32 apart, not 40×40; `numpy.linalg.inv` takes",
        ),
        (
            lambda f: linalg.lstsq(np.ones((3, 2)), np.ones(4)),
            np.linalg.LinAlgError,
            "3 rows, and the right-hand sides 4",
        ),
        (lambda f: linalg.lstsq(f, f, rcond=f), gp.UnsupportedError, "`rcond` is a number"),
        (lambda f: linalg.svd(np.eye(2, dtype="complex64")), gp.UnsupportedError, "linalg.svd takes real matrices"),
        (lambda f: linalg.eigh(np.eye(2), "X"), ValueError, "UPLO is 'L' or 'U', not 'X'"),
        (lambda f: linalg.qr(f, "raw"), ValueError, "'reduced', 'complete' or 'r', not 'raw'"),
        (lambda f: linalg.norm(f, "nuc"), ValueError, "Invalid norm order 'nuc' for matrices"),
    ],
)
def test_wrong_arguments(wrong: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        wrong(gp.MatrixField(np.ones((2, 3, 4), "f")))
    assert isinstance(caught.value, gp.SemanticError)
