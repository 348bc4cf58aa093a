"""The sources of Dask chunks, NumPy arrays or stores with slices: blocks read windows of them themselves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from dask.array.core import getter, getter_inline, getter_nofancy, slices_from_chunks
from dask.blockwise import Blockwise
from dask.layers import ArraySliceDep

from gpuop.base.records import dataclass
from gpuop.fusion.windows.axis_blocks import GridBlocks
from gpuop.fusion.windows.gather import pieces
from gpuop.ir.types import is_integer

Slices = tuple[slice, ...]
GETTERS = (getter, getter_inline, getter_nofancy)  # the functions by which `da.from_array` reads chunks
# times that windows may read points; where it were more, chunks are, and pieces are cut of them
STORED, IN_MEMORY = 1.5, 3.0


@dataclass(frozen=True)
class SlicedSource:
    """A source with slices.

    Attributes:
        part: the task that reads some points; for a NumPy array these points.
        units: the extents of the least read along each axis.
        most: the most times that windows may read a point.
    """

    part: Callable[[Slices], Any]
    units: tuple[int, ...]
    most: float

    def is_worth(self, blocks: GridBlocks, images: int) -> bool:
        """Return whether windows of these blocks read few points twice; so many image axes come first."""
        times = 1.0
        for axis, chunks, of in zip(blocks.axes, blocks.chunks, self.units[images:], strict=False):
            extent = sum(chunks)
            parts = [part for block in axis for part in pieces(*block.window, extent)]
            times *= sum(-(-last // of) - first // of for _, first, last in parts) / -(-extent // of)
        return times <= self.most


def sliced_source(array: Any) -> SlicedSource | None:
    """Return the source of a `da.from_array` or `da.from_zarr` array; None if it is computed, or read in other ways."""
    layers = array.dask.layers
    layer = layers.get(array.name)
    if isinstance(layer, Blockwise):
        return _of_store(array, layers, layer)
    keys = product([array.name], *(range(len(each)) for each in array.chunks))
    chunks = [layer.get(key) for key in keys] if layer is not None else [None]
    first = chunks[0]
    whole = first if getattr(first, "shape", None) == array.shape else getattr(first, "base", None)
    if type(whole) is not np.ndarray or whole.shape != array.shape:
        return None
    places = slices_from_chunks(array.chunks)
    for chunk, place in zip(chunks, places, strict=True):
        if type(chunk) is not np.ndarray or chunk.__array_interface__ != whole[place].__array_interface__:
            return None
    return SlicedSource(whole.__getitem__, (1,) * array.ndim, IN_MEMORY)


def _of_store(array: Any, layers: Any, layer: Blockwise) -> SlicedSource | None:
    task: Any = getattr(layer, "task", None)  # since Dask 2024.12
    if getattr(task, "func", None) not in GETTERS or len(layer.indices) != 2:
        return None
    origin, dep = layer.indices[0][0], layer.io_deps.get(layer.indices[1][0])
    key = getattr(origin, "key", None)
    store = layers[key].get(key) if key in layers else origin
    units = _units(store)
    if not isinstance(dep, ArraySliceDep) or units is None or tuple(store.shape) != array.shape:
        return None
    how = task.kwargs.get("asarray", True), task.kwargs.get("lock")
    of = origin if store is origin else key
    return SlicedSource(lambda place: (task.func, of, place, *how), units, STORED)


def _units(store: Any) -> tuple[int, ...] | None:
    """Return the extents of a store's least read; None if it does not report them."""
    if isinstance(store, np.ndarray):
        return (1,) * store.ndim
    chunks = getattr(store, "chunks", ())
    if chunks is None:
        return (1,) * len(store.shape)
    regular = isinstance(chunks, tuple) and len(chunks) == len(getattr(store, "shape", ())) > 0
    return chunks if regular and all(is_integer(n) and n > 0 for n in chunks) else None
