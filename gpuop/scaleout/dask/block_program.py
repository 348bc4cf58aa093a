"""The program of Dask workers: windows are gathered from pieces of chunks and computed, image by image."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import field
from threading import RLock
from typing import Any

import numpy as np

from gpuop.base.records import dataclass
from gpuop.engine.jit.call import on_device
from gpuop.engine.jit.pipeline import Pipeline
from gpuop.engine.jit.window_call import takes_cores
from gpuop.fusion.windows.buffer_pool import reused
from gpuop.fusion.windows.footprint import Footprint
from gpuop.fusion.windows.gather import together

Slices = tuple[slice, ...]
Points = tuple[int, ...]
SPARE = 1.25  # a result with more memory than this many times its points is copied
StageResults = Sequence[tuple[Any, ...]]  # results of stages, for each image
_computing = RLock()


@dataclass(frozen=True)
class BlockPlace:
    """A block of the results.

    Attributes:
        start, stop: the computed points; None if each image is computed as a whole.
        first, last: the wanted points.
        images: the number of images along each image axis.
        shapes: the shape of each gathered argument.
        places: for each argument, the places of its pieces.
    """

    start: Points | None
    stop: Points
    first: Points
    last: Points
    images: Points
    shapes: tuple[Points, ...]
    places: tuple[tuple[Slices, ...], ...]

    def wanted(self, result: Any, grid: Points) -> Any:
        """Return the wanted points of a result on the grid; after a stage all points are wanted."""
        return result[tuple(map(slice, self.first, self.last))] if result.shape[: len(grid)] == grid else result


@dataclass(frozen=True)
class BlockProgram:
    """A pipeline that computes blocks. Workers get it once, so that each compiles once.

    Attributes:
        footprint: the footprint of the pipeline, for one image.
        names: the names of the array arguments.
        counted: the names of those with image axes.
        shared: the names of those that are passed as a whole.
        device: the device of the workers; None leaves the choice to them.
        constants: the other arguments.
    """

    pipeline: Pipeline
    footprint: Footprint
    names: tuple[str, ...]
    counted: frozenset[str]
    shared: tuple[str, ...]
    device: Any = None
    constants: dict[str, Any] = field(default_factory=dict)

    def result(self, place: BlockPlace, earlier: StageResults | None, *pieces: Any) -> Any:
        """Return a block of the only result."""
        return self.results(place, earlier, *pieces)[0]

    def results(self, place: BlockPlace, earlier: StageResults | None, *pieces: Any) -> list[Any]:
        """Return a block of each result, and results on other grids as a whole.

        Args:
            pieces: the pieces of each argument.
        """
        blocks: list[Any] = []
        for number, (image, arrays) in enumerate(self._images(place, pieces)):
            results = self._of_image(place, arrays, earlier[number] if earlier is not None else ())
            blocks = _with_image(blocks, place.images, image, results)
        return blocks

    def parts(self, place: BlockPlace, stage: int, earlier: StageResults | None, *pieces: Any) -> list[Any]:
        """Return the parts of a stage from a block, for each image: a leaf of the tree of the stage."""
        results = []
        for number, (_, arrays) in enumerate(self._images(place, pieces)):
            before = earlier[number] if earlier is not None else ()
            window = self._window(place, stage=stage, known=before)
            results.append(self._alone(window, arrays))
        return results

    def at_once(self, place: BlockPlace, earlier: StageResults | None, *pieces: Any) -> list[Any]:
        """Return the parts of the last stage, for each image, and then a block of each result on the grid."""
        parts, blocks = [], list[Any]()
        for number, (image, arrays) in enumerate(self._images(place, pieces)):
            before = earlier[number] if earlier is not None else ()
            window = self._window(place, stage=len(self.footprint.stages) - 1, known=before)
            part, results = self._alone(window.at_once, arrays)
            parts.append(part)
            blocks = _with_image(blocks, place.images, image, results)
        return [parts, *blocks]

    def known(self, parts: Sequence[Any], before: StageResults | None) -> StageResults:
        """Return the results of stages so far, with those of the root of the tree of another stage."""
        new = [self.footprint.known([each]) for each in parts]
        return new if before is None else [(*a, *b) for a, b in zip(before, new, strict=True)]

    def _images(self, place: BlockPlace, pieces: Sequence[Any]) -> Iterator[tuple[Points, dict[str, Any]]]:
        arrays = dict(zip(self.names, map(assembled, pieces, place.places, place.shapes), strict=True))
        for image in np.ndindex(*place.images):
            yield image, {n: a[image] if n in self.counted else a for n, a in arrays.items()}

    def _of_image(self, place: BlockPlace, arrays: dict[str, Any], earlier: tuple[Any, ...]) -> list[Any]:
        if place.start is None:
            with on_device(self.device):
                return _several(self.pipeline(**arrays, **self.constants))
        results = _several(self._alone(self._window(place, known=earlier), arrays))
        grid, kinds = self.footprint.grid, self.footprint.results
        return [place.wanted(r, grid) if k.field_shape == grid else r for r, k in zip(results, kinds, strict=True)]

    def _window(self, place: BlockPlace, **how: Any) -> Any:
        assert place.start is not None
        grid, computed = self.footprint.grid, (place.start, place.stop)
        return self.pipeline.window(grid, place.first, place.last, self.shared, computed=computed, **how)

    def _alone(self, window: Callable[..., Any], arrays: dict[str, Any]) -> Any:
        """Compute a window: one at a time on a CPU, as each uses all cores, while others are read and written."""
        with on_device(self.device), _computing if takes_cores() else nullcontext():
            return window(**arrays, **self.constants)


def _several(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


def _with_image(blocks: list[Any], images: Points, image: Points, results: Sequence[Any]) -> list[Any]:
    """Return the results of a block with those of one more image."""
    if not images and all(getattr(r.base, "nbytes", 0) <= SPARE * r.nbytes for r in results):
        return list(results)  # the memory of each is little more than it needs: it may be a view of all computed points
    if not blocks:
        blocks = [_new(r, (*images, *r.shape)) for r in results]
    for whole, result in zip(blocks, results, strict=True):
        whole[image] = result
    return blocks


def assembled(pieces: Sequence[Any], places: Sequence[Slices], shape: Points) -> Any:
    """Return one array of pieces, of their library; a single contiguous piece is not copied."""
    if len(pieces) == 1:
        piece = pieces[0] if hasattr(pieces[0], "__dlpack__") else np.asarray(pieces[0])
        return together(piece) if type(piece) is np.ndarray else piece
    whole = _new(pieces[0], shape)
    for piece, place in zip(pieces, places, strict=True):
        whole[place] = piece
    return whole


def _new(like: Any, shape: Points) -> Any:
    """Return an array of the same library and dtype; for NumPy in reused memory."""
    return reused(shape, like.dtype) if type(like) is np.ndarray else np.empty_like(like, shape=shape)


# --- tasks ------------------------------------------------------------------------------------------------------------


def piece_of(chunk: Any, place: Slices) -> Any:
    """Return some points of a chunk; a small piece is copied, so that it does not keep the chunk alive."""
    piece = chunk[place]
    return piece.copy() if 2 * piece.nbytes <= chunk.nbytes else piece


def joined(parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Return a node of the tree of a stage: the combined parts of several blocks, for each image."""
    first, *others = parts
    result = list(first)
    for other in others:
        result = [tuple(a.joined(b) for a, b in zip(*each, strict=True)) for each in zip(result, other, strict=True)]
    return result
