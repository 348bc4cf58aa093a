"""Derivatives of decompositions, against differences in NumPy and closed forms; of vectors without a sign their squares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.testing import check_grads
from tests.gradients.differences import check

rng = np.random.default_rng(5)
MATRICES = rng.random((2, 3, 3)) + 2 * np.eye(3)
VECTORS = rng.random((2, 3))
TALL, WIDE = rng.random((4, 2)), rng.random((2, 3))
LA = np.linalg
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "det": (LA.det, (MATRICES,)),
    "slogdet": (lambda a: LA.slogdet(a)[1], (MATRICES,)),
    "inv": (LA.inv, (MATRICES[0],)),
    "solve": (LA.solve, (MATRICES, rng.random((2, 3, 2)))),
    "solve of one matrix": (LA.solve, (MATRICES[0], rng.random((2, 3, 2)))),
    "solve of one vector": (LA.solve, (MATRICES, VECTORS[0])),
    "cholesky": (LA.cholesky, (MATRICES @ MATRICES.swapaxes(1, 2),)),
    "cholesky, upper": (lambda a: LA.cholesky(a, upper=True), (MATRICES[0] @ MATRICES[0].T,)),
    "qr of tall": (lambda a: tuple(factor**2 for factor in LA.qr(a)), (TALL,)),
    "qr of wide": (lambda a: tuple(factor**2 for factor in LA.qr(a)), (WIDE,)),
    "qr, R alone": (lambda a: LA.qr(a, "r") ** 2, (MATRICES,)),
    "qr, complete": (lambda a: LA.qr(a, "complete")[0] ** 2, (MATRICES[0],)),
    "eigh": (lambda a: (LA.eigh(a)[0], LA.eigh(a)[1] ** 2), (MATRICES,)),
    "eigh of U": (lambda a: (LA.eigh(a, "U")[0], LA.eigh(a, "U")[1] ** 2), (MATRICES[0],)),
    "eigvalsh": (LA.eigvalsh, (MATRICES,)),
    "svd of tall": (lambda a: tuple(part**2 for part in LA.svd(a, False)), (TALL,)),
    "svd of wide": (lambda a: tuple(part**2 for part in LA.svd(a, False)), (WIDE,)),
    "svd of square": (lambda a: tuple(part**2 for part in LA.svd(a)), (MATRICES,)),
    "svdvals": (LA.svdvals, (TALL,)),
    "pinv of tall": (LA.pinv, (TALL,)),
    "pinv of wide": (LA.pinv, (WIDE,)),
    "lstsq of tall": (lambda a, b: LA.lstsq(a, b)[0], (TALL, rng.random((4, 2)))),
    "lstsq of wide": (lambda a, b: LA.lstsq(a, b)[0], (WIDE, VECTORS[0, :2])),
    "residuals": (lambda a, b: LA.lstsq(a, b)[1], (TALL, rng.random(4))),
    "cond": (LA.cond, (MATRICES,)),
    "norm": (LA.norm, (TALL,)),
}


@pytest.fixture
def reference() -> Iterator[None]:
    """Formulas are the same on all devices, and drivers take seconds for their kernels."""
    with gp.use_device("reference"):
        yield


@pytest.mark.parametrize("name", CASES)
def test_decompositions(reference: None, name: str) -> None:
    f, args = CASES[name]
    check(f, f, *args)
    check_grads(f, tuple(map(gp.Field, args)), modes=("fwd",))


TENSORS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "det": (gp.linalg.det, LA.det, (MATRICES,)),
    "inv": (gp.linalg.inv, LA.inv, (MATRICES,)),
    "solve": (gp.linalg.solve, lambda a, b: LA.solve(a, b[..., None])[..., 0], (MATRICES, VECTORS)),
    "cholesky": (gp.linalg.cholesky, LA.cholesky, (MATRICES @ MATRICES.swapaxes(1, 2),)),
    "eigvalsh": (gp.linalg.eigvalsh, LA.eigvalsh, (MATRICES,)),
    "pinv": (gp.linalg.pinv, LA.pinv, (MATRICES,)),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors(reference: None, name: str) -> None:
    own, reference, args = TENSORS[name]
    check(own, reference, *args, make=lambda a: gp.Field(a, a.ndim - 1))


def test_solutions_on_devices(device: str) -> None:
    check(LA.solve, LA.solve, MATRICES[0, :2, :2], VECTORS[0, :2])


@pytest.mark.parametrize("name", ["solve", "cholesky", "svdvals", "eigvalsh"])
def test_second_order(reference: None, name: str) -> None:
    f, args = CASES[name]
    check_grads(f, tuple(gp.Field(arg[..., :2, :2]) for arg in args), order=2)


COMPLEX = (MATRICES[0] + 1j * MATRICES[1])[:2, :2]
OF_COMPLEX: dict[str, Callable[[Any], Any]] = {
    "solve": lambda z: LA.solve(z, z[0]),
    "slogdet": lambda z: LA.slogdet(z),
    "cholesky": lambda z: LA.cholesky(z @ np.conj(z).T),
    "cholesky, upper": lambda z: LA.cholesky(z, upper=True),
    "qr": lambda z: LA.qr(z),
}


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_complex_matrices(reference: None, name: str) -> None:
    z = COMPLEX @ COMPLEX.conj().T if name == "cholesky, upper" else COMPLEX
    check_grads(lambda z: tuple(_parts(OF_COMPLEX[name](z))), (gp.ComplexField(z, dtype="complex128"),))


def _parts(result: Any) -> Any:
    return result if isinstance(result, tuple) else (result,)


LARGE = np.random.default_rng(3).random((2, 3, 40, 36)) - 0.5


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: a @ b.swapaxes(-1, -2),
        lambda a, b: np.inner(a[0, 0], b[1]),
        lambda a, b: np.einsum("bij,kj->ibk", a[0], b[1, 2]),
        lambda a, b: a[0, :, :, :33] @ b[:1, 1, :33],
    ],
)
def test_products_of_large_matrices(reference: None, f: Callable[..., Any]) -> None:
    """They are multiplied in tiles by groups of threads; their derivatives are such products."""
    a, b = LARGE, LARGE[:, ::-1] + 0.25
    (out, pull), weights = gp.vjp(f, gp.Field(a), gp.Field(b)), np.random.default_rng(4).random(f(a, b).shape)
    by_a, by_b = (bar.numpy() for bar in pull(gp.Field(weights)))
    tangents = np.random.default_rng(5).random((2, *a.shape))
    slope = f(tangents[0], b) + f(a, tangents[1])
    np.testing.assert_allclose(out.numpy(), f(a, b), 1e-12, 1e-12)
    np.testing.assert_allclose((by_a * tangents[0]).sum() + (by_b * tangents[1]).sum(), (slope * weights).sum(), 1e-10)
    pushed = gp.jvp(f, (gp.Field(a), gp.Field(b)), tuple(map(gp.Field, tangents)))[1]
    np.testing.assert_allclose(pushed.numpy(), slope, 1e-11, 1e-11)


def test_complex_determinant(reference: None) -> None:
    z = COMPLEX.astype(np.complex64)
    _, pull = gp.vjp(gp.linalg.det, gp.ComplexField(z))
    bar = np.complex64(1 + 2j)
    expected = bar * np.linalg.det(z) * np.linalg.inv(z).T
    np.testing.assert_allclose(pull(gp.ComplexField(bar))[0].numpy(), expected, rtol=1e-4)


def test_mixed_dtypes(reference: None) -> None:
    """A cotangent has the dtype of its argument."""
    a, b = gp.Field(MATRICES[0]), gp.Field(VECTORS[0].astype(np.float32))
    by_a, by_b = gp.grad(lambda a, b: LA.solve(a, b).sum(), (0, 1))(a, b)
    assert (by_a.dtype, by_b.dtype) == ("float64", "float32")
    np.testing.assert_allclose(by_b.numpy(), LA.inv(MATRICES[0]).sum(0), 1e-5)


def test_equal_eigenvalues_give_no_number(reference: None) -> None:
    """Vectors of equal eigenvalues have no derivative; the values themselves have."""
    a = gp.Field(np.eye(2))
    assert np.isnan(gp.grad(lambda a: LA.eigh(a)[1].sum())(a).numpy()).any()
    np.testing.assert_allclose(gp.grad(lambda a: LA.eigvalsh(a).sum())(a).numpy(), np.eye(2), atol=1e-12)


def test_constants_need_no_derivative(reference: None) -> None:
    """A rule has a share of each argument; that of a constant goes no further."""
    host = gp.HostOperator(lambda a: a + np.eye(2), gp.Field(np.ones((2, 2))), outputs=gp.Field(np.ones((2, 2))).type)
    gradient = gp.grad(lambda b: LA.solve(host, b).sum())(gp.Field(VECTORS[0, :2]))
    np.testing.assert_allclose(gradient.numpy(), LA.inv([[2, 1], [1, 2]]).sum(0), 1e-12)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (
            lambda a: LA.svd(a)[0].sum(),
            "4×2 matrices has no derivative: the last vectors are any basis of the rest; take full_matrices=False",
        ),
        (
            lambda a: LA.qr(a, "complete")[0].sum(),
            '"complete" of 4×2 matrices has no derivative: the last 2 columns of Q are any basis of the rest; take mode="reduced"',
        ),
    ],
)
def test_bases_of_the_rest_are_refused(f: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(gp.SemanticError, match=re.escape(message)):
        gp.grad(f)(gp.Field(TALL))


def test_lengths_have_slope_0_at_0(reference: None) -> None:
    """Flat parts of pictures are not NaN; elsewhere the slope is the direction."""
    a = np.array([[0.0, 0, 0], [3, 0, 4]])
    slope = gp.grad(lambda a: LA.norm(a, axis=1).sum())(gp.Field(a)).numpy()
    np.testing.assert_allclose(slope, [[0, 0, 0], [0.6, 0, 0.8]], 1e-14)
    flat = gp.grad(lambda a: gp.ndimage.gaussian_gradient_magnitude(a, 1).sum())(gp.Field(np.ones((3, 4)))).numpy()
    np.testing.assert_array_equal(flat, np.zeros((3, 4)))
