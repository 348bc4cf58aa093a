"""The functions of `gpuop.fft`."""

from __future__ import annotations

from .row import Row

COMPLEX = ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn")
FROM_REAL = ("rfft", "rfft2", "rfftn", "ihfft", "ihfft2", "ihfftn")
TO_REAL = ("irfft", "hfft")  # of lines
TO_IMAGES = ("irfft2", "irfftn", "hfft2", "hfftn")
COSINES = ("dct", "idct", "dst", "idst", "dctn", "idctn", "dstn", "idstn")


def of(name: str, arguments: str) -> Row:
    return Row("fft", name, f"fft.{name}({arguments})", torch=f"torch.fft.{name}({arguments})")


ROWS = [
    *(of(name, "waves") for name in COMPLEX),
    *(of(name, "image") for name in FROM_REAL),
    *(of(name, "line_spectra") for name in TO_REAL),
    *(of(name, "spectrum") for name in TO_IMAGES),
    *(of(name, "image") for name in COSINES),
    *(of(name, "image") for name in ("fftshift", "ifftshift")),
    *(
        Row("fft", name, f"fft.{name}(1000)", eager=True)
        for name in ("fftfreq", "rfftfreq", "next_fast_len", "prev_fast_len")
    ),
]
