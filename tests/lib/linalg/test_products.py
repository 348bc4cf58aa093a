"""Products of matrices and vectors of gpuop.linalg beside NumPy's, of grids and of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop import linalg
from gpuop.engine.dump import source
from gpuop.lib.linalg import gemm_tiles

rng = np.random.default_rng(11)
SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((33, 5), (5, 47)),
    ((2, 33, 5), (5, 33)),
    ((1, 700), (700, 3)),
    ((3, 700), (700, 1)),
    ((700,), (700,)),
    ((700,), (2, 700, 3)),
    ((2, 3, 700), (700,)),
    ((5, 0), (0, 5)),
    ((0, 4), (4, 3)),
]
MATRICES, VECTORS = rng.random((6, 7, 3, 3), "f") - 0.5, rng.random((6, 7, 3), "f") - 0.5
TURN = rng.random((3, 3), "f")
EINSUMS = [
    ("ij,jk->ik", (33, 5), (5, 40)),
    ("bij,jk", (2, 40, 9), (9, 33)),
    ("...ij,...j->...i", (6, 3, 4), (6, 4)),
    ("...ij->...", (6, 3, 4)),
    ("...ii->...i", (6, 3, 3)),
    ("ii", (4, 4)),
    ("i,ij,j->", (3,), (3, 4), (4,)),
    ("ij,jk->ki", (3, 3), (3, 3)),
    ("i...,ij->j...", (3, 8, 2), (3, 3)),
    ("ij,kl->ikjl", (2, 3), (3, 2)),
]


def values(dtype: str, *shape: int) -> Any:
    array = rng.random(shape) * 4 - 2
    if dtype.startswith("complex"):
        array = array + 1j * rng.random(shape)
    return (abs(array) * 30 if np.dtype(dtype).kind in "iu" else array > 0 if dtype == "bool" else array).astype(dtype)


def close(result: Any, expected: Any, tolerance: float = 2e-5) -> None:
    result = result.numpy() if isinstance(result, gp.Field) else result
    tolerance = 1e-13 if expected.dtype in ("float64", "complex128") else tolerance
    assert result.dtype == expected.dtype
    assert result.shape == np.shape(expected)
    scale = tolerance * (1 + float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=scale)


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    others = ("float64", "int8", "complex64", "bool", "float16", "complex128")
    with gp.use_device("reference"):
        for dtype in ("float32", *others[SHAPES.index((left, right)) % 2 :: 2]):
            a, b = values(dtype, *left), values(dtype, *right)
            close(linalg.matmul(a, b), np.matmul(a, b), 2e-2 if dtype == "float16" else 2e-5)


def test_on_devices(device: str) -> None:
    """Of extents that are no multiples of tiles; all add in one order, so whole numbers and the bits of others are equal."""
    a, b = values("float32", 2, 37, 9), values("float32", 9, 35)
    exact = np.zeros((2, 37, 35))
    for n in range(9):  # what float32 has of the exact product and the sum so far
        exact = (exact + a[:, :, n, None].astype("d") * b[n].astype("d")).astype("f").astype("d")
    np.testing.assert_array_equal((gp.ScalarField(a) @ gp.ScalarField(b)).numpy(), exact.astype("f"))
    close(linalg.matvec(gp.Parameter(TURN), gp.VectorField(VECTORS)), VECTORS @ TURN.T)


@pytest.mark.parametrize(
    ("dtype", "busy"), [("float32", 100), ("complex64", 1), ("complex128", 1)], ids=["small", "large", "wide"]
)
def test_tiles_of_gpus(monkeypatch: pytest.MonkeyPatch, dtype: str, busy: int) -> None:
    """As the interpreter runs them, work-group by work-group."""
    monkeypatch.setattr(gemm_tiles, "interpreted", lambda: gp.dsl._target.backend == "cuda")
    monkeypatch.setattr(gemm_tiles, "BUSY", busy)
    with gp.use_device("reference"):
        a, b = values(dtype, 35, 18), values(dtype, 18, 71)  # of no other test: recorded operators are kept
        close(linalg.matmul(a, b), a @ b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "complex64", "complex128"])
def test_panels_of_large_matrices(monkeypatch: pytest.MonkeyPatch, device: str, dtype: str) -> None:
    """Of CPUs, with a last one that begins earlier; the right matrix may be a transposed one, and there may be several."""
    monkeypatch.setattr(gemm_tiles, "LARGE_RIGHT", 1)
    monkeypatch.setattr(gemm_tiles, "MANY", 1)
    a, b = values(dtype, 2, 39, 7), values(dtype, 77, 7)  # of no other test: recorded operators are kept
    f, g = gp.ScalarField(a), gp.ScalarField(b)
    close(f @ g.T, a @ b.T)
    close(f[0] @ gp.ScalarField(np.stack([b.T, b.T])), a[0] @ np.stack([b.T, b.T]))
    if device.startswith("opencl") and gp.device().target.device == "cpu":
        assert ("panels:" in source([f @ g.T], None)) == (not dtype.startswith("complex"))


def test_of_tensors() -> None:
    with gp.use_device("reference"):
        m, v, turn = gp.MatrixField(MATRICES), gp.VectorField(VECTORS), gp.Parameter(TURN)
        product = m @ m
        assert product.tensor_shape == (3, 3)
        close(product, MATRICES @ MATRICES)
        close(v @ turn, VECTORS @ TURN)
        close(linalg.matvec(m, v), np.einsum("...ij,...j->...i", MATRICES, VECTORS))
        close(np.vecmat(v, m), np.einsum("...i,...ij->...j", VECTORS, MATRICES))
        close(np.cross(v, v + 1), np.cross(VECTORS, VECTORS + 1))
        close(np.linalg.vecdot(v, v), (VECTORS * VECTORS).sum(-1))
        close(np.linalg.trace(m), np.trace(MATRICES, axis1=-2, axis2=-1))
        close(np.linalg.diagonal(m, offset=1), np.diagonal(MATRICES, 1, -2, -1))
        close(np.einsum("...i,...j,jk->...ik", v, v, turn), np.einsum("...i,...j,jk->...ik", VECTORS, VECTORS, TURN))
        close(np.trace(m, 1), np.trace(MATRICES, 1))


@pytest.mark.parametrize(
    ("shapes", "dtype"), [(((5, 301), (5, 301)), "f4"), (((2, 1, 99), (3, 99)), "f8"), (((7, 65), (65,)), "f2")]
)
def test_long_rows_are_added_side_by_side(shapes: Any, dtype: str) -> None:
    a, b = (np.random.default_rng(n).random(shape).astype(dtype) for n, shape in enumerate(shapes))
    near = {"f8": 1e-14, "f4": 2e-7, "f2": 1e-3}[dtype]  # one after the other those of f4 were farther off
    exact = (a.astype("f8") * b.astype("f8")).sum(-1)
    for function in (linalg.vecdot, *([linalg.matvec] if b.ndim == 1 else [])):
        result = function(a, b)
        assert result.dtype == dtype and result.shape == exact.shape
        np.testing.assert_allclose(result, exact, rtol=near)
    columns = np.moveaxis(a, -1, 0).copy()
    np.testing.assert_allclose(linalg.vecdot(columns, columns, axis=0), (a.astype("f8") ** 2).sum(-1), rtol=near)
    with pytest.raises(gp.SemanticError, match="of 300 and of 301 elements, which differ"):
        linalg.vecdot(a[..., :-1], b)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_other_products(dtype: str) -> None:
    with gp.use_device("reference"):
        a, b, c, d = values(dtype, 5, 3), values(dtype, 3), values(dtype, 4, 3, 2), values(dtype, 3, 5)
        close(linalg.cross(a, b), np.cross(a, b))
        close(linalg.cross(d, d[::-1].copy(), axis=0), np.cross(d, d[::-1], axis=0))
        close(linalg.outer(a[0], b), np.outer(a[0], b))
        close(linalg.vecdot(a, b), np.linalg.vecdot(a, b))
        close(linalg.tensordot(a, c, ([1], [-2])), np.tensordot(a, c, ([1], [-2])))
        close(linalg.tensordot(d.T.copy(), a.T.copy(), 1), np.tensordot(d.T, a.T, 1))
        close(linalg.dot(a, c), np.dot(a, c))
        close(linalg.dot(a, b), np.dot(a, b))


@pytest.mark.parametrize(
    ("subscripts", "shapes"), [(s, shapes) for s, *shapes in EINSUMS], ids=[s for s, *_ in EINSUMS]
)
def test_einsum(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    with gp.use_device("reference"):
        arrays = [values("float32", *shape) for shape in shapes]
        close(linalg.einsum(subscripts, *arrays), np.einsum(subscripts, *arrays))


def test_beside_fields_and_arrays() -> None:
    a, b = values("float32", 3, 4), values("float32", 4, 2)
    f, g = gp.ScalarField(a), gp.ScalarField(b)
    with gp.use_device("reference"):
        for product in (f @ g, f @ b, a @ g, np.dot(f, g), np.linalg.matmul(f, g), np.tensordot(f, g, 1)):
            assert isinstance(product, gp.Field)
            close(product, a @ b)
        assert isinstance(linalg.matmul(a, b.tolist()), np.ndarray)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda f: f @ f, r"the shapes \(3, 4\) and \(3, 4\) do not match: 4 is different from 3"),
        (lambda f: f @ gp.ScalarField(2.0), "a factor has one axis or more, and the shapes are"),
        (lambda f: np.einsum("ijk->i", f), "'ijk' in 'ijk->i' does not label the 2 axes of its operand"),
        (lambda f: np.einsum("ij,jk->ik", f), "has letters of 2 operands, and there are 1"),
        (lambda f: np.einsum("ij->ii", f), "the result's letters"),
        (lambda f: np.cross(f, f), r"vectors along an axis have three components, not 4"),
        (lambda f: linalg.matvec(f, gp.ScalarField(np.ones(3))), "sums over axes of 4 and of 3 elements"),
        (lambda f: linalg.matvec(f, gp.ScalarField(np.ones(1))), "matvec: sums over axes of 4 and of 1 elements"),
        (lambda f: linalg.vecdot(f[:, :1], f), "vecdot: sums over axes of 1 and of 4 elements"),
    ],
)
def test_wrong_arguments(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        wrong(gp.ScalarField(np.ones((3, 4), "f")))
    assert isinstance(caught.value, gp.ArgumentError)


@pytest.mark.parametrize("subscripts", ["ij,ij", "ij,ij->i", "ij,ji->j", "ij,ij->ji", "ij->j", "ij,ij,ij->"])
def test_einsum_adds_long_sums_as_sums_are(subscripts: str) -> None:
    values = [rng.random((130, 170), np.float32) for _ in subscripts.split("->")[0].split(",")]
    if ",ji" in subscripts:
        values[1] = values[1].T
    want = np.einsum(subscripts, *(a.astype(np.float64) for a in values))
    np.testing.assert_allclose(gp.linalg.einsum(subscripts, *values), want, rtol=1e-6)


@pytest.mark.parametrize("shapes", [((2, 1 << 17), (1 << 17, 3)), ((17, 20001), (20001, 18))])
def test_products_of_long_rows_lose_no_bits(shapes: Any) -> None:
    """In order, as many tenths would be some ten-thousandths off."""
    one, two = (np.full(shape, 0.1, "f") for shape in shapes)
    want = one.astype(np.float64) @ two
    np.testing.assert_allclose(gp.linalg.matmul(one, two), want, rtol=5e-5)
    np.testing.assert_allclose(gp.linalg.einsum("ij,jk->ki", one, two), want.T, rtol=5e-5)
    np.testing.assert_allclose(gp.linalg.einsum("ij,jk->", one, two), want.sum(), rtol=5e-5)


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,jk->ki", "bij,bjk->bik"])
@pytest.mark.parametrize("inner", [(1, 5), (5, 1), (1, 1)])
def test_einsum_repeats_axes_of_extent_1(device, subscripts, inner):
    terms, _, _ = subscripts.partition("->")
    shapes = [
        [{"i": 4, "k": 6, "b": 2}.get(letter, inner[n]) for letter in term] for n, term in enumerate(terms.split(","))
    ]
    a, b = (np.random.default_rng(1).integers(-4, 5, shape).astype("f") for shape in shapes)  # sums are exact
    array = np.einsum(subscripts, gp.ScalarField(a), gp.ScalarField(b))
    np.testing.assert_array_equal(array.numpy(), np.einsum(subscripts, a, b))
