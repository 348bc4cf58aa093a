"""`DataArray.gpuop.map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import xarray

from gpuop.scaleout.dask.map_blocks import map_blocks


@xarray.register_dataarray_accessor("gpuop")
class DataArrayAccessor:
    """The accessor `DataArray.gpuop`, present once `gpuop.dask` is imported.

    Args:
        array: the DataArray.
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    def map(self, function: Callable[..., Any], *others: Any, **options: Any) -> Any:
        """Call a pipeline on the array, block by block if it is a Dask array, as `gpuop.dask.map_blocks` does.

        Args:
            function: a pipeline, or an argument of `gp.pipeline`.
            others: its other arrays.
            options: `batch`, `axes` (by the names of dimensions, too), `device`, `rechunk`, and the function's other arguments.

        Returns:
            A DataArray with the coordinates of this one, or a tuple of them: of Dask arrays, if this is one.
        """
        results = map_blocks(function, self._array, *others, **options)
        if isinstance(self._array.data, da.Array):
            return results
        return tuple(r.compute() for r in results) if isinstance(results, tuple) else results.compute()
