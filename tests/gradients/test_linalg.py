"""Cotangents of determinants and inverses, against differences in NumPy and closed forms."""

from __future__ import annotations

import numpy as np

import gpuop as gp
from tests.gradients.differences import check

MATRICES = np.random.default_rng(5).random((2, 3, 3)) + 2 * np.eye(3)


def make(a):
    return gp.MatrixField(a) if a.ndim == 3 else gp.Field(a)


def test_determinants(device):
    check(np.linalg.det, np.linalg.det, MATRICES[0])
    check(np.linalg.det, np.linalg.det, MATRICES)
    check(gp.linalg.det, np.linalg.det, MATRICES, make=make)


def test_inverses(device):
    check(np.linalg.inv, np.linalg.inv, MATRICES[0])
    check(gp.linalg.inv, np.linalg.inv, MATRICES, make=make)


def test_complex_determinant():
    z = (MATRICES[0] + 1j * MATRICES[1]).astype(np.complex64)
    _, pull = gp.vjp(gp.linalg.det, gp.ComplexField(z))
    bar = np.complex64(1 + 2j)
    expected = bar * np.linalg.det(z) * np.linalg.inv(z).T
    np.testing.assert_allclose(pull(gp.ComplexField(bar))[0].numpy(), expected, rtol=1e-4)
