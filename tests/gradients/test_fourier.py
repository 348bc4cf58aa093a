"""Derivatives of Fourier and cosine transforms, in both modes, beside central differences of NumPy's and SciPy's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft

import gpuop as gp
from gpuop.dsl import *
from gpuop.testing import check_grads
from tests.gradients.differences import check

rng = np.random.default_rng(17)

CASES: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "fft": (lambda x, y: abs(np.fft.fft(x + 1j * y)) ** 2, (2, 6)),
    "fft of more points": (lambda x, y: np.fft.fft(x + 1j * y, 9, axis=0).imag, (7, 2)),
    "ifft": (lambda x, y: np.fft.ifft(x + 1j * y, norm="ortho").real * x, (11,)),
    "rfft": (lambda x: np.fft.rfft(x * x).imag, (8,)),
    "rfft of odd rows": (lambda x: abs(np.fft.rfft(x)) ** 2, (3, 7)),
    "irfft": (lambda x, y: np.fft.irfft(x + 1j * y), (2, 5)),
    "irfft of odd rows": (lambda x, y: np.fft.irfft(x + 1j * y, 7), (4,)),
    "rfft2": (lambda x: np.fft.rfft2(x).real, (4, 5)),
    "irfft2": (lambda x, y: np.fft.irfft2(x + 1j * y) ** 2, (4, 3)),
    "fftshift": (lambda x: np.fft.fftshift(x) * x, (3, 5)),
}


@pytest.mark.parametrize("name", CASES)
def test_transforms(device: str, name: str) -> None:
    f, shape = CASES[name]
    arrays = [rng.random(shape) + 0.3 for _ in range(f.__code__.co_argcount)]
    check(f, f, *arrays)
    check_grads(f, tuple(map(gp.Field, arrays)), modes=("fwd",))


@pytest.mark.parametrize("name", ["dct", "dst"])
def test_cosines(device: str, name: str) -> None:
    check(getattr(gp.fft, name), getattr(scipy.fft, name), rng.random((2, 6)))


def test_second_order(device: str) -> None:
    check_grads(lambda x: abs(np.fft.rfft(x)) ** 2, (gp.Field(rng.random(5) + 0.2),), order=2)


def test_complex_cotangents_are_not_conjugated(device: str) -> None:
    """As in JAX: of a linear function the pull is its transpose."""
    z, bar = (rng.random(6) + 1j * rng.random(6) for _ in range(2))
    _, pull = gp.vjp(np.fft.fft, gp.ComplexField(z, dtype="complex128"))
    np.testing.assert_allclose(pull(gp.ComplexField(bar, dtype="complex128"))[0].numpy(), np.fft.fft(bar), 1e-12)
