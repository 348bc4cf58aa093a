"""Pipelines on Dask arrays, block by block, with the halos that they need. The assembled result has the bits of one call."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

try:
    import dask.array as _  # noqa: F401 - what is missing is said here
except ImportError as _missing:
    raise ImportError(
        f"gpuop.dask works on arrays of Dask ({_missing}): `pip install '.[dask]'` in gpuop's checkout"
    ) from None

from gpuop.base.errors import missing
from gpuop.scaleout.dask.map_blocks import explain, map_blocks

with suppress(ImportError):  # Dask does without
    import gpuop.scaleout.dask.dataarray_accessor  # noqa: F401 - `DataArray.gpuop`

__all__ = ["explain", "map_blocks"]


def __dir__() -> list[str]:
    return list(__all__)


if not TYPE_CHECKING:  # a checker is to say of a name that there is none

    def __getattr__(name: str) -> NoReturn:
        raise missing(__name__, name, __all__)
