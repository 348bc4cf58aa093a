"""Results with the names and coordinates of the xarray array that they come from."""

from __future__ import annotations

from typing import Any

from gpuop.scaleout.dask.image_axes import ImageAxes


def labelled(like: Any, array: Any, axes: ImageAxes, own: int) -> Any:
    """Return a result as an xarray array; coordinates along axes of other extents are left out.

    Args:
        own: the number of its axes that are axes of the first array, image axes first; tensor axes may be, too.
    """
    order = axes.back(array.ndim)
    dims = [""] * array.ndim
    for place, axis in enumerate(order):
        same = axis < own or (array.ndim == like.ndim and array.shape[place] == like.shape[axes.first[axis]])
        dims[place] = like.dims[axes.first[axis]] if same else f"dim_{place}"
    sizes = dict(zip(dims, array.shape, strict=True))
    coords = {name: each for name, each in like.coords.items() if all(sizes.get(d) == like.sizes[d] for d in each.dims)}
    return type(like)(array, coords=coords, dims=dims, name=like.name, attrs=like.attrs)
