"""Fourier transforms on fields: `gpuop.fft` has the names, arguments and defaults of `scipy.fft`."""

from typing import NoReturn

import gpuop.lib.fft.numpy_names  # noqa: F401 - it has NumPy's functions take fields
from gpuop.base.errors import MissingError, meant
from gpuop.lib.fft.cosine_transforms import dct, dctn, dst, dstn, idct, idctn, idst, idstn
from gpuop.lib.fft.frequencies import fftfreq, fftshift, ifftshift, next_fast_len, prev_fast_len, rfftfreq
from gpuop.lib.fft.transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "next_fast_len",
    "prev_fast_len",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingError(
        f"gpuop.fft has no `{name}`; `scipy.fft.{name}`, if there is one, takes `f.numpy()`{meant(name, __all__)}"
    )
