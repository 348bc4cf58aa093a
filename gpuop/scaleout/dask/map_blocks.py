"""`map_blocks`: the arguments of a call as aligned chunked arrays; and `explain`, a report of the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan, prod
from typing import Any

import dask.array as da
import numpy as np

from gpuop.base.errors import SemanticError, described
from gpuop.base.records import dataclass
from gpuop.dsl.fields.from_arrays import is_array
from gpuop.engine.jit.pipeline import Pipeline, pipeline
from gpuop.fusion.windows.axis_blocks import GridBlocks, in_multiples
from gpuop.fusion.windows.footprint import Footprint
from gpuop.ir.types import FieldType
from gpuop.scaleout.axes import different_axes, leading_axes
from gpuop.scaleout.dask.block_map import BlockArgument, BlockMap
from gpuop.scaleout.dask.block_program import BlockProgram, piece_of
from gpuop.scaleout.dask.sliced_source import sliced_source

MANY = 3.0  # computed points for each wanted one, from which on a message calls the chunks small


def map_blocks(
    function: Callable[..., Any],
    *arrays: Any,
    batch: int = 0,
    axes: Any = None,
    device: str | None = None,
    rechunk: bool = True,
    **constants: Any,
) -> Any:
    """Call a pipeline on chunked arrays, block by block, with the bits of one call on the whole.

        smooth = gpuop.dask.map_blocks(denoise, volume)                # volume: dask.array.from_zarr(…)
        smooth = gpuop.dask.map_blocks(denoise, movie, axes=(2, 3, 4)) # of (T, C, Z, Y, X): each volume by itself

    Each block is read with the halo of all operators together, and no more; at the ends of the grid the pipeline's
    borders apply. Nothing is computed until Dask computes. Blocks have the chunks of the first array.

    Args:
        function: a pipeline, or an argument of `gp.pipeline`.
        arrays: Dask, NumPy or xarray arrays. Those with the grid's extents are read in windows, others are passed as a whole.
        batch: the number of leading image axes; each image is computed by itself. Arrays without these axes go to all images.
        axes: the axes of the function, in its order, by number (for xarray, by name) instead; all others count images.
        device: the name of the device that workers compute on; None leaves it to each worker.
        rechunk: whether axes that cannot be cut become one chunk, and chunks end at multiples of work-groups.
        constants: the function's other arguments, and arrays by their names.

    Returns:
        An array like the first one, or a tuple of them; its reductions are Dask reductions, which are trees.

    Raises:
        SemanticError: as a call of the pipeline; or nothing can be cut, with the operator and its line.
    """
    mapped = _mapped(function, arrays, constants, batch, axes, device, rechunk)
    kinds = mapped.blocks.program.footprint.results
    results = [mapped.returned(*each) for each in zip(mapped.blocks.results(), kinds, strict=True)]
    return tuple(results) if len(results) > 1 else results[0]


def explain(
    function: Callable[..., Any],
    *arrays: Any,
    batch: int = 0,
    axes: Any = None,
    device: str | None = None,
    rechunk: bool = True,
    **constants: Any,
) -> str:
    """Report what `map_blocks` would do with these arguments: halos, uncut axes with reasons, blocks, tasks, memory.

    Args:
        function, arrays, batch, axes, device, rechunk, constants: as of `map_blocks`.

    Returns:
        A str.

    Raises:
        SemanticError: as `map_blocks`.
    """
    blocks = _mapped(function, arrays, constants, batch, axes, device, rechunk).blocks
    lines = [str(blocks.program.footprint)]
    images = prod(sum(chunks) for chunks in blocks.images)
    if blocks.images:
        lines.append(f"{images} images in {prod(map(len, blocks.images))} blocks")
    if blocks.cut:
        lines += _windows(blocks)
    tasks = [task[0] for task in blocks.tasks().values() if isinstance(task, tuple)]
    read = [f"`{name}`" for name, argument in blocks.arguments.items() if argument.source is not None]
    computing, cutting = f"{len(tasks) - tasks.count(piece_of)} tasks compute", tasks.count(piece_of)
    reading = f", which read windows of {', '.join(read)} themselves" * bool(read)
    lines.append(computing + reading + f", {cutting} cut pieces of chunks" * (cutting > 0 or not read))
    lines.append(f"a task has {_largest(blocks) / 2**20:.1f} MiB of arguments and results, at most")
    return "\n".join(lines)


def _windows(blocks: BlockMap) -> list[str]:
    """Return the report of the windows of blocks."""
    windows = "×".join(str(axis[0].points) for axis in blocks.blocks.axes)
    line = (
        f"{'×'.join(map(str, blocks.counts))} blocks, computed of windows of {windows} points, all alike: compiled once"
    )
    sizes = prod(len({*chunks}) for chunks in blocks.chunks)
    if blocks.program.footprint.stages and sizes > 1:
        line += f"; what is reduced is compiled for each of {sizes} sizes of blocks"
    again = f"{blocks.blocks.overhead:.2f} points are computed for each that is wanted"
    return [line, again + "; larger chunks need fewer" * (blocks.blocks.overhead > MANY)]


def _largest(blocks: BlockMap) -> int:
    """Return the bytes of a task's windows and results."""
    images = prod(max(chunks) for chunks in blocks.images)
    points = prod(axis[0].points for axis in blocks.blocks.axes)
    total = 0
    for argument in blocks.arguments.values():
        shape = argument.array.shape[len(blocks.images) if argument.counted else 0 :]
        count = points * prod(shape[len(blocks.counts) :]) if argument.cut and blocks.cut else prod(shape)
        total += (images if argument.counted else 1) * count * argument.array.dtype.itemsize
    for kind in blocks.program.footprint.results:
        total += prod(max(chunks) for chunks in blocks.chunks_of(kind)) * np.dtype(kind.array_dtype).itemsize
    return total


@dataclass(frozen=True)
class _Mapped:
    """A call: its blocks, and the axes and labels of its results."""

    blocks: BlockMap
    axes: ImageAxes
    first: Any  # as the user passed it

    def returned(self, array: Any, kind: FieldType) -> Any:
        moved = array.transpose(self.axes.back(array.ndim))
        if not _is_labelled(self.first):
            return moved
        grid = self.blocks.program.footprint.grid
        axes = len(self.axes.batch) + len(grid) * (kind.field_shape == grid)
        return labelled(self.first, moved, self.axes, axes)


def _mapped(
    function: Any,
    arrays: Sequence[Any],
    constants: Mapping[str, Any],
    batch: Any,
    axes: Any,
    device: Any,
    rechunk: bool,
) -> _Mapped:
    pipeline_ = function if isinstance(function, Pipeline) else pipeline(function)
    named = _named(pipeline_, arrays) | {n: value for n, value in constants.items() if _is_chunkable(value)}
    if not named:
        raise SemanticError(f"map_blocks of pipeline `{pipeline_.name}` wants arrays, at least one")
    rest = {n: value for n, value in constants.items() if n not in named}
    first = next(iter(named.values()))
    dims = tuple(first.dims) if _is_labelled(first) else ()
    image = image_axes(first.ndim, batch, axes, dims)
    lazy = {n: image.in_front(_lazy(value)) for n, value in named.items()}
    images = next(iter(lazy.values())).shape[: len(image.batch)]
    count = len(images)
    _check_extents(lazy, count)
    counted = {n for n, a in lazy.items() if count and a.ndim > count and a.shape[:count] == images}
    shapes = {n: (tuple(a.shape[count if n in counted else 0 :]), a.dtype) for n, a in lazy.items()}
    footprint = pipeline_.footprint(**shapes, **rest)
    parts = {n for n in lazy if shapes[n][0][: len(footprint.grid)] == footprint.grid}
    cut = next(iter(lazy)) in parts and len(footprint.whole) < len(footprint.grid)
    arguments, chunks = _chunked(lazy, counted, parts, count, footprint, cut, rechunk)
    shared = tuple(n for n in lazy if n not in parts)
    program = BlockProgram(pipeline_, footprint, tuple(lazy), frozenset(counted), shared, device, rest)
    return _Mapped(BlockMap(program, arguments, chunks[:count], chunks[count:], cut), image, first)


def _chunked(
    lazy: Mapping[str, Any],
    counted: set[str],
    parts: set[str],
    count: int,
    footprint: Footprint,
    cut: bool,
    rechunk: bool,
) -> tuple[dict[str, BlockArgument], tuple[tuple[int, ...], ...]]:
    """Return the arguments in aligned chunks, and the chunks: of image axes, and of the grid's axes."""
    grid, name = len(footprint.grid), next(iter(lazy))
    first = lazy[name]
    _check(first, count, footprint, cut, rechunk)
    whole = range(grid) if not cut else footprint.whole
    chunks = list(first.chunks[:count])
    for a, (extent, each) in enumerate(_axes(first, count, grid)):
        of, _ = footprint.multiples.get(a, (1, ""))
        chunks.append((extent,) if a in whole else in_multiples(each, of))
    arguments = {}
    blocks = GridBlocks(footprint, chunks[count:] if cut else ())
    for n, array in lazy.items():
        images = chunks[:count] if n in counted else []
        inner = chunks[count:] if cut and n in parts else []
        source = sliced_source(array) if inner else None
        if source is not None and source.is_worth(blocks, len(images)):
            arguments[n] = BlockArgument(array, n in counted, True, source)
            continue
        more = [(m,) for m in array.shape[len(images) + len(inner) :]]
        arguments[n] = BlockArgument(array.rechunk((*images, *inner, *more)), n in counted, n in parts)
    return arguments, tuple(chunks)


def _check_extents(lazy: Mapping[str, Any], count: int) -> None:
    """Refuse arrays whose blocks have unknown places, and an empty first array."""
    for name, array in lazy.items():
        if any(map(isnan, array.shape)):
            raise SemanticError(f"`{name}` has chunks of unknown extents; call its `compute_chunk_sizes()` first")
    name, first = next(iter(lazy.items()))
    if 0 in first.shape:
        raise SemanticError(f"`{name}` has no points: its extents are {first.shape}; call the pipeline itself")
    if first.ndim == count:
        raise SemanticError(
            f"all axes of `{name}` count images, which would be single points: leave the pipeline at least one, by `batch=` or "
            "`axes=`"
        )


def _axes(array: Any, count: int, grid: int) -> list[tuple[int, tuple[int, ...]]]:
    return list(zip(array.shape[count : count + grid], array.chunks[count : count + grid], strict=True))


def _check(first: Any, count: int, footprint: Footprint, cut: bool, rechunk: bool) -> None:
    """Refuse what would be computed in one piece, and chunks that cannot be cut unless they may change."""
    several = [a for a, chunks in enumerate(first.chunks[count:]) if len(chunks) > 1]
    reasons = (
        "; ".join(dict.fromkeys(footprint.whole.values())) or "its results are of another grid than its first array"
    )
    if several and not cut and not count:
        raise SemanticError(
            f"no axis can be cut: {reasons}. Map the part before it, and rechunk its result for the part after it"
        )
    whole = [a for a in several if not cut or a in footprint.whole]
    if whole and not rechunk:
        raise SemanticError(f"axis {whole[0]} must be in one chunk, which `rechunk=True` does: {reasons}")
    for axis, (of, reason) in footprint.multiples.items() if cut and not rechunk else ():
        if in_multiples(first.chunks[count + axis], of) != first.chunks[count + axis]:
            raise SemanticError(
                f"chunks of axis {axis} must end at multiples of {of}, which `rechunk=True` does: {reason}"
            )


def _named(of: Pipeline, arrays: Sequence[Any]) -> dict[str, Any]:
    """Return the arrays by the names of the pipeline's arguments."""
    names = list(of.signature.parameters)[len(of.receiver) + len(of.first) :]
    if len(arrays) > len(names):
        raise SemanticError(f"pipeline `{of.name}` takes {len(names)} arguments, not {len(arrays)}")
    for name, array in zip(names, arrays, strict=False):
        if not _is_chunkable(array):
            raise SemanticError(
                f"argument `{name}` of map_blocks is {described(array)}; arrays come first, all others by their names"
            )
    return dict(zip(names, arrays, strict=False))


def _is_labelled(value: Any) -> bool:
    """Return whether the value is an xarray array."""
    return hasattr(value, "dims") and hasattr(value, "coords")


def _is_chunkable(value: Any) -> bool:
    return isinstance(value, da.Array) or _is_labelled(value) or is_array(value)


def _lazy(value: Any) -> Any:
    array = value.data if _is_labelled(value) else value
    return array if isinstance(array, da.Array) else da.from_array(array, chunks=-1)


@dataclass(frozen=True)
class ImageAxes:
    """The axes of the first array: the image axes, and the function's axes, in its order."""

    batch: tuple[int, ...]
    image: tuple[int, ...]

    @property
    def first(self) -> tuple[int, ...]:
        """The axis order with the image axes first."""
        return (*self.batch, *self.image)

    def in_front(self, array: Any) -> Any:
        """Return the array with its image axes first. Arrays of other dimensions have none."""
        return array.transpose(self.first) if array.ndim == len(self.first) else array

    def back(self, ndim: int) -> tuple[int, ...]:
        """Return the transposition that moves the axes of a result back to the order of the first array, if it has as many axes."""
        places = range(ndim)
        return tuple(sorted(places, key=self.first.__getitem__) if ndim == len(self.first) else places)


def image_axes(ndim: int, batch: Any, axes: Any, names: Sequence[str] = ()) -> ImageAxes:
    """Parse `batch=` and `axes=` for an array.

    Args:
        names: the names of its dimensions, if it has some.

    Raises:
        SemanticError: they do not fit the array, or both are passed.
    """
    lead = leading_axes(batch, ndim)
    if axes is None:
        return ImageAxes(tuple(range(lead)), tuple(range(lead, ndim)))
    if lead:
        raise SemanticError("`axes=` are the axes of an image, and all others count images: leave out `batch=`")
    image = different_axes(axes, ndim, "the first array", names)
    return ImageAxes(tuple(a for a in range(ndim) if a not in image), image)


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
