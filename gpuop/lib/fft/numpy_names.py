"""Implementations of `numpy.fft` functions for fields."""

from __future__ import annotations

from gpuop.dsl.fields import services
from gpuop.lib.fft import frequencies, transforms
from gpuop.ops.array_functions import ArrayFunction

FOURIER = "Fourier transforms"
NAMES = (
    "fft",
    "ifft",
    "rfft",
    "irfft",
    "hfft",
    "ihfft",
    "fft2",
    "ifft2",
    "rfft2",
    "irfft2",
    "fftn",
    "ifftn",
    "rfftn",
    "irfftn",
)
TABLE = {
    f"fft.{name}": ArrayFunction(getattr(transforms, name), FOURIER, "complex64, of float64 complex128")
    for name in NAMES
}
TABLE |= {f"fft.{name}": ArrayFunction(getattr(frequencies, name), FOURIER) for name in ("fftshift", "ifftshift")}
services.array_functions.update(TABLE)
