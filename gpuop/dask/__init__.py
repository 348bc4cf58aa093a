"""Pipelines on Dask's arrays, block by block, with the halos that they need: what is put together has the bits of one call."""

from __future__ import annotations

from contextlib import suppress

try:
    import dask.array as _  # noqa: F401 - what is missing is said here
except ImportError as _missing:
    raise ImportError(f"gpuop.dask works on arrays of Dask ({_missing}): `pip install gpuop[dask]`") from None

from gpuop.dask.mapping import explain, map_blocks

with suppress(ImportError):  # Dask does without
    import gpuop.dask.dataarray_accessor  # noqa: F401 - `DataArray.gpuop`

__all__ = ["explain", "map_blocks"]
