"""Fourier transforms on fields: `gpuop.fft` has the names, arguments and defaults of `scipy.fft`."""

from typing import NoReturn

import gpuop.lib.fft.numpy_names  # noqa: F401 - it has NumPy's functions take fields
from gpuop.base import lazy
from gpuop.base.errors import MissingError, meant

FUNCTIONS = {
    "cosine_transforms": "dct dctn dst dstn idct idctn idst idstn",
    "frequencies": "fftfreq fftshift ifftshift next_fast_len prev_fast_len rfftfreq",
    "transforms": (
        "fft fft2 fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn"
    ),
}
_NAMES = lazy.defined("gpuop.lib.fft", FUNCTIONS)
globals().update(_NAMES)
__all__ = [*sorted(_NAMES)]


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingError(
        f"gpuop.fft has no `{name}`; `scipy.fft.{name}`, if there is one, takes `f.numpy()`{meant(name, __all__)}"
    )
