"""Arrays of xarray: `DataArray.gpuop.map`, and results with the names and coordinates of what they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import xarray

from gpuop.dask import mapping
from gpuop.dask.image_axes import ImageAxes


@xarray.register_dataarray_accessor("gpuop")
class Labelled:
    """What `DataArray.gpuop` is, once `gpuop.dask` is imported.

    Args:
        array: the DataArray.
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    def map(self, function: Callable[..., Any], *others: Any, **options: Any) -> Any:
        """Call a pipeline on the array, block by block where it is Dask's, as `gpuop.dask.map_blocks` does.

        Args:
            function: a pipeline, or what `gp.pipeline` takes.
            others: its other arrays.
            options: `batch`, `axes` (by the names of dimensions, too), `device`, `rechunk`, and the function's other arguments.

        Returns:
            A DataArray with the coordinates of this one, or a tuple of them: of Dask's arrays, if this is one.
        """
        results = mapping.map_blocks(function, self._array, *others, **options)
        if isinstance(self._array.data, da.Array):
            return results
        return tuple(r.compute() for r in results) if isinstance(results, tuple) else results.compute()


def labelled(like: Any, array: Any, axes: ImageAxes) -> Any:
    """A result as an array of xarray's; coordinates along what has other extents now are left out."""
    dims = list(like.dims)
    if array.ndim != len(dims):
        known = [like.dims[a] for a in axes.first]
        more = [f"tensor_{k}" for k in range(array.ndim - len(known))]
        dims = [*known[: array.ndim], *more]
    sizes = dict(zip(dims, array.shape, strict=True))
    coords = {name: each for name, each in like.coords.items() if all(sizes.get(d) == like.sizes[d] for d in each.dims)}
    return xarray.DataArray(array, coords=coords, dims=dims, name=like.name, attrs=like.attrs)
