"""`gp.stream`: a pipeline on arrays that are larger than memory. Windows of chunks are read, computed and written, pass by pass."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from gpuop.base.errors import SemanticError, meant, naming_arguments
from gpuop.dsl.fields.from_arrays import is_array
from gpuop.engine.jit.grid_window import GridPartition
from gpuop.engine.jit.pipeline import Pipeline, pipeline
from gpuop.engine.jit.window_call import PipelineWindow
from gpuop.fusion.windows.buffer_pool import let_go
from gpuop.fusion.windows.footprint import Place
from gpuop.fusion.windows.gather import window_of
from gpuop.fusion.windows.kernel_halo import EndToEnd
from gpuop.ir.types import FieldType, is_integer
from gpuop.runtime.base.backend import Array
from gpuop.scaleout.axes import leading_axes
from gpuop.scaleout.stream.alias_check import check_no_alias, exclusive_outputs
from gpuop.scaleout.stream.checkpoint import ENDING, Checkpoint, as_text, beside
from gpuop.scaleout.stream.chunking import Chunking, choose_chunks, memory, multiple, window_bytes
from gpuop.scaleout.stream.identity import stream_identity
from gpuop.scaleout.stream.passes import Progress, overlapped
from gpuop.scaleout.stream.stacked_files import source_of
from gpuop.scaleout.stream.stores import checksum, created, file_of, is_written, mapping, unmapped, written

FIELDS = 2  # typical number of fields in a window, between arguments and results
OPTIONS = ("source", "out", "chunks", "batch", "shared", "progress", "resume")  # keywords of gp.stream
StageResults: TypeAlias = dict[Place, tuple[Array, ...]]  # results of stages, for each image


@naming_arguments
def stream(
    function: Callable[..., Any],
    source: Any,
    out: Any = None,
    *,
    chunks: Any = "auto",
    batch: int = 0,
    shared: str | Iterable[str] = (),
    progress: bool = True,
    resume: bool = False,
    **constants: Any,
) -> Any:
    """Compute a pipeline on arrays that are larger than memory, window by window: results have the bits of one call.

    The next window is read, and the previous one written, meanwhile. A checkpoint file beside the result lists finished chunks.

    Args:
        function: a pipeline, or a function that becomes one.
        source: an array that has a shape, a dtype and slices, or the path of one (.npy, .tif, .zarr, `volume.h5:/data`), or a
            list of paths, whose arrays are stacked; or a tuple of these, one for each argument.
        out: an array or a path for each result on the grid, which replaces an array there; None: new arrays in memory.
        chunks: the extents of a chunk, or "auto": by the device's memory, the store's chunks, and what is recomputed.
        batch: how many of the first axes count images, each of which is computed by itself.
        shared: arguments, by their names, that are needed whole; those of another grid are anyway.
        progress: whether a line on stderr says what is done, of how much.
        resume: continue an earlier stream that was the same (docs/how-to/stream.md) and left notes beside `out`; keep them.
        constants: the function's other arguments, by their names.

    Returns:
        What the pipeline returns, as it lies in `out`; reductions as NumPy's arrays, of images with their axes in front.

    Raises:
        SemanticError: what `pipeline.window` raises; files that are damaged, unknown, another stream's, a source's, or differ.
        OSError: a file cannot be opened or written.
    """
    of = function if isinstance(function, Pipeline) else pipeline(function)
    sources = [source_of(each) for each in (source if isinstance(source, tuple) else (source,))]
    work = StreamWork(of, sources, batch, (shared,) if isinstance(shared, str) else tuple(shared), constants)
    work.cut(chunks, out)
    return work.run(out, resume, Progress(of.name, work.plan, progress))


class StreamWork:
    """A pipeline, its sources and their chunks; `run` computes it pass by pass."""

    def __init__(
        self, of: Pipeline, sources: Sequence[Any], batch: int, shared: tuple[str, ...], constants: dict[str, Any]
    ) -> None:
        self.pipeline, self.sources, self.shared, self.constants = of, sources, shared, constants
        names = _source_names(of, constants, len(sources))
        if not sources:
            raise SemanticError("`source=` has no arrays; give one for each argument of the pipeline")
        _check_points(sources[0].shape)
        batch = leading_axes(batch, len(sources[0].shape) - 1)  # the pipeline gets the others
        self.lead = tuple(sources[0].shape[:batch])
        self.batched = [batch > 0 and tuple(each.shape[:batch]) == self.lead for each in sources]
        self.types = [
            (tuple(each.shape)[batch * b :], np.dtype(each.dtype))
            for each, b in zip(sources, self.batched, strict=True)
        ]
        self.of: GridPartition = of._in_parts(self.types, constants, shared)
        self.grid = self.of.footprint.grid
        _check_points((*self.lead, *self.grid))
        windows = [shape[: len(self.grid)] == self.grid for shape, _ in self.types]
        arrays = {name: value for name, value in constants.items() if is_array(value)}
        self.named = dict(zip(names, sources, strict=False)) | arrays
        self.windowed = [w and name not in shared for w, name in zip(windows, names, strict=False)]
        traced, footprint = self.of.programs[-1]
        self.kinds = traced.kinds
        self.inside = [v in footprint.cut for v in traced.program.results]
        self.several = traced.several

    # --- chunks ---------------------------------------------------------------------------------------------------

    def cut(self, chunks: Any, out: Any) -> None:
        needed = self.of.footprint
        if isinstance(chunks, str) and chunks == "auto":
            self.chunking = choose_chunks(needed, self._point_bytes(), self._units(out), *window_bytes())
            self._check_uncut()
            return
        extents = tuple(chunks) if isinstance(chunks, Iterable) else (chunks,)
        if len(extents) != len(self.grid) or not all(is_integer(n) and n > 0 for n in extents):
            raise SemanticError(
                f'`chunks=` is "auto" or an extent for each axis of the grid {self.grid}, not {chunks!r}'
            )
        if self.uncut and any(c < n for c, n in zip(extents, self.grid, strict=True)):
            if not all(isinstance(reason, EndToEnd) for reason in needed.whole.values()):
                raise SemanticError(f"`chunks=` {extents} cuts the grid {self.grid}, and {self.uncut}")
            self._check_uncut()  # every window would be the whole, so that is the only one
        sizes = (-(-int(c) // multiple(needed, a)) * multiple(needed, a) for a, c in enumerate(extents))
        whole = needed.whole.keys()
        self.chunking = Chunking(
            needed, tuple(n if a in whole else min(c, n) for a, (c, n) in enumerate(zip(sizes, self.grid, strict=True)))
        )

    def _check_uncut(self) -> None:
        """Refuse a grid that cannot be cut and needs more memory than there is."""
        room, size = memory(), self._point_bytes() * math.prod(self.grid)
        if self.uncut and size > room:
            raise SemanticError(f"the grid {self.grid} takes {size} bytes where there are {room}, and {self.uncut}")

    @property
    def uncut(self) -> str:
        """The reason why no axis can be cut; "" if one can."""
        whole = self.of.footprint.whole
        return f"none of its axes can be cut: {whole[0]}" if len(whole) == len(self.grid) else ""

    def _point_bytes(self) -> int:
        points = math.prod(self.grid)
        inputs = [
            math.prod(shape) * dtype.itemsize for (shape, dtype), w in zip(self.types, self.windowed, strict=True) if w
        ]
        inputs += [
            math.prod(kind.array_shape) * kind.array_dtype.itemsize
            for kind, c in zip(self.kinds, self.inside, strict=True)
            if c
        ]
        return int(-(-sum(inputs) // points) + FIELDS * -(-max(inputs, default=0) // points))

    def _units(self, out: Any) -> list[int]:
        """Return the multiples for chunks: the chunks of a result's store, so that none is written twice, or those of a source."""
        axes, lead = len(self.grid), len(self.lead)
        of_out = [getattr(each, "chunks", None) for each in (out if isinstance(out, (tuple, list)) else (out,))]
        of_source = [getattr(each, "chunks", None) for each, w in zip(self.sources, self.windowed, strict=True) if w]
        chunk = next((c for c in (*of_out, *of_source) if c and len(c) >= lead + axes), None)
        return [1] * axes if chunk is None else [min(int(c), n) for c, n in zip(chunk[lead:], self.grid, strict=False)]

    @property
    def is_cut(self) -> bool:
        """Return whether images are cut into windows; otherwise the pipeline is called for each."""
        return math.prod(self.chunking.counts) > 1

    @property
    def results_stage(self) -> int:
        """The stage number of the results, after all stages."""
        return len(self.of.pipeline_stages.stages) if self.is_cut else 0

    @property
    def values_stage(self) -> int:
        """The stage number of an image's other values."""
        return self.results_stage + 1

    @property
    def at_once(self) -> bool:
        """Return whether the last stage and the results are computed in one pass."""
        return self.is_cut and self.of.footprint.at_once

    @property
    def stages(self) -> int:
        """The number of passes before that of the results."""
        return self.results_stage - self.at_once

    @property
    def plan(self) -> str:
        images = f"{math.prod(self.lead)} images, each in " * bool(self.lead)
        passes = self.stages + any(self.inside)
        return f"{images}{self.chunking}" + f", {passes} passes that each compute what they need" * (passes > 1)

    # --- passes ---------------------------------------------------------------------------------------------------

    def run(self, out: Any, resume: bool, progress: Progress) -> Any:
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        if out is None:
            outs = [None] * sum(self.inside)
        if len(outs) != sum(self.inside):
            raise SemanticError(
                f"`out=` has {len(outs)} arrays, and {sum(self.inside)} results are of the grid; reductions are returned"
                + f"; {self.uncut}" * bool(self.uncut)
            )
        check_no_alias(self.named, outs)
        with exclusive_outputs(outs):
            checkpoint = self._checkpoint(outs, resume)
            finished = False
            try:
                results = self._results(outs, checkpoint, progress)
                finished = True
            finally:
                checkpoint.close(finished)
                progress.end()
                let_go()
        return results

    def _checkpoint(self, outs: Sequence[Any], resume: bool) -> Checkpoint:
        """Return the checkpoint, with earlier lines if all result files exist."""
        files = [file for each in outs if (file := file_of(each)) is not None]
        if not files:
            if resume:
                raise SemanticError("`resume=` needs a file for the results as `out=`: the checkpoint lies beside it")
            return Checkpoint((), {}, False, False)
        each = [paths for paths in map(beside, outs) if paths]
        identity = stream_identity(self, [first.removesuffix(ENDING) for first, *_ in each])
        return Checkpoint([*dict.fromkeys(chain(*each))], identity, resume, all(map(os.path.exists, files)))

    def _outs(self, targets: Sequence[Any], mode: str) -> list[Any]:
        kinds = [kind for kind, inside in zip(self.kinds, self.inside, strict=True) if inside]
        chunk = [1] * len(self.lead) + list(self.chunking.chunk)
        return [
            created(each, kind, (*self.lead, *kind.array_shape), [*chunk, *kind.tensor_shape], mode)
            for each, kind in zip(targets, kinds, strict=True)
        ]

    def _results(self, targets: Sequence[Any], checkpoint: Checkpoint, progress: Progress) -> Any:
        passes = self.stages + bool(targets or not self.is_cut)  # calls of the pipeline, if images are not cut
        total = passes * math.prod((*self.chunking.counts, *self.lead))
        outs = self._outs(targets, "r" if checkpoint.resumed else "")
        there = self._there(outs, checkpoint)
        progress.begin(total, len(there) + sum(stage < self.stages for stage, _ in checkpoint.done))
        values = ImageValues(self.lead, self.kinds, self.inside)
        for image, arrays in checkpoint.values(self.values_stage):
            values.take(image, arrays)
        todo = [place for place in self._places() if place not in there] if outs else []
        if todo or values.left:
            if checkpoint.resumed:
                outs.clear()  # an HDF5 file that is open for reads cannot be opened for writes
                outs += self._outs(targets, "r+")
            self._compute(todo, values, outs, checkpoint, progress)
        on_grid, rest = iter(outs), iter(values.arrays)
        results = [next(on_grid if inside else rest) for inside in self.inside]
        return tuple(results) if self.several else results[0]

    def _compute(
        self,
        todo: Sequence[Place],
        values: ImageValues,
        outs: Sequence[Any],
        checkpoint: Checkpoint,
        progress: Progress,
    ) -> None:
        """Compute and write chunks of results, and the values of images without them."""
        earlier: StageResults = dict.fromkeys(np.ndindex(*self.lead), ())
        for stage in range(self.stages):
            parts = self._stage(stage, earlier, checkpoint, progress)
            earlier = {image: earlier[image] + parts[image] for image in earlier}

        def compute(place: Place, arguments: Sequence[Array]) -> list[Array]:
            results: list[Array] = self._called(place, arguments, None, earlier)
            return results

        def put(place: Place, results: list[Array]) -> None:
            image, _ = self._split(place)
            if new := values.put(image, results):
                checkpoint.note(self.values_stage, image, map(as_text, new))
            if not outs and not self.is_cut:
                progress.step()

        def write(place: Place, results: list[Array]) -> None:
            on_grid = [array for array, inside in zip(results, self.inside, strict=True) if inside]
            self._write(place, on_grid, outs, checkpoint)
            put(place, results)
            progress.step()

        if self.at_once:
            earlier = self._with_results(todo, earlier, outs, checkpoint, progress)
        else:
            overlapped(todo, self._read, compute, write)
        left = [(*image, *next(self.chunking.places())) for image in sorted(values.left)]
        overlapped(left, self._read, compute, put)

    def _write(self, place: Place, results: Sequence[Array], outs: Sequence[Any], checkpoint: Checkpoint) -> None:
        """Write a chunk's points of results on the grid."""
        for array, points in zip(outs, results, strict=True):
            written(array, self._at(place), points)
        checkpoint.note(self.results_stage, place, map(checksum, results))

    def _there(self, outs: Sequence[Any], checkpoint: Checkpoint) -> set[Place]:
        """Return the chunks of results that were written and are unchanged."""
        noted = {place: sums for (stage, place), sums in checkpoint.done.items() if stage == self.results_stage}
        return {
            place
            for place, sums in noted.items()
            if len(sums) == len(outs)  # checkpoints of earlier versions have none
            and (not self.at_once or (self.stages, place) in checkpoint.done)
            and all(is_written(array, self._at(place), sum_) for array, sum_ in zip(outs, sums, strict=True))
        }

    def _stage(self, stage: int, earlier: StageResults, checkpoint: Checkpoint, progress: Progress) -> StageResults:
        """Return the results of a stage for each image; parts of finished chunks are read from the checkpoint."""
        parts: dict[Place, Any] = {}

        def compute(place: Place, arguments: Sequence[Array]) -> Any:
            return self._called(place, arguments, stage, earlier)

        def note(place: Place, results: Any) -> None:
            parts[place] = results
            if todo:  # otherwise all chunks were done before
                checkpoint.note_parts(stage, place, results)
                progress.step()

        done = [place for place in self._places() if (stage, place) in checkpoint.done]
        todo = [place for place in self._places() if (stage, place) not in checkpoint.done]
        overlapped(todo or done[:1], self._read, compute, note)
        return self._joined(stage, parts, checkpoint, earlier)

    def _with_results(
        self,
        todo: Sequence[Place],
        earlier: StageResults,
        outs: Sequence[Any],
        checkpoint: Checkpoint,
        progress: Progress,
    ) -> StageResults:
        """Compute the last stage together with the results on the grid; return the results of all stages."""
        parts: dict[Place, Any] = {}

        def compute(place: Place, arguments: Sequence[Array]) -> Any:
            return self._window(place, self.stages, earlier).at_once(*arguments, **self.constants)

        def write(place: Place, both: Any) -> None:
            parts[place], results = both
            if todo:  # otherwise all chunks were done before
                checkpoint.note_parts(self.stages, place, parts[place])
                self._write(place, results, outs, checkpoint)
                progress.step()

        overlapped(todo or [next(self._places())], self._read, compute, write)
        new = self._joined(self.stages, parts, checkpoint, earlier)
        return {image: earlier[image] + new[image] for image in earlier}

    def _joined(
        self, stage: int, parts: dict[Place, Any], checkpoint: Checkpoint, images: Iterable[Place]
    ) -> StageResults:
        """Return the results of a stage for each image, from new and earlier parts."""
        like, of = next(iter(parts.values())), self.of.footprint

        def part(place: Place) -> Any:
            return parts[place] if place in parts else checkpoint.parts(stage, place, like)

        return {image: of.known(part((*image, *chunk)) for chunk in self.chunking.places()) for image in images}

    def _places(self) -> Iterator[Place]:
        """Give the chunks of all images."""
        return ((*image, *place) for image in np.ndindex(*self.lead) for place in self.chunking.places())

    def _split(self, place: Place) -> tuple[Place, Place]:
        return place[: len(self.lead)], place[len(self.lead) :]

    def _at(self, place: Place) -> tuple[Any, ...]:
        """Return the place of a chunk in results."""
        image, chunk = self._split(place)
        return (*image, *map(slice, *self.chunking.points(chunk)))

    def _read(self, place: Place) -> list[Array]:
        """Read the arguments of a window."""
        index, chunk = self._split(place)
        ends = self.of.footprint.window(*self.chunking.computed(chunk))
        arrays = [
            window_of(
                source, index if batched else (), ends if windowed else None, self.grid, mapping(source) is not None
            )
            for source, batched, windowed in zip(self.sources, self.batched, self.windowed, strict=True)
        ]  # memory-mapped data is read here, not during computation
        for each in self.sources:
            unmapped(each)
        return arrays

    def _window(self, place: Place, stage: int | None, earlier: StageResults) -> PipelineWindow:
        image, chunk = self._split(place)
        start, stop = self.chunking.points(chunk)
        computed = self.chunking.computed(chunk)
        return self.pipeline.window(self.grid, start, stop, self.shared, stage, earlier[image], computed)

    def _called(self, place: Place, arguments: Sequence[Array], stage: int | None, earlier: StageResults) -> Any:
        call = self._window(place, stage, earlier) if self.is_cut else self.pipeline
        results = call(*arguments, **self.constants)
        return list(results) if stage is None and self.several else [results] if stage is None else results


class ImageValues:
    """The results on other grids, for each image.

    Args:
        lead: the extents of the image axes.
        kinds: the types of an image's results.
        inside: whether each result is on the grid; those are left out here.

    Attributes:
        arrays: an array for each other result, over all images.
        left: the images without values so far.
    """

    def __init__(self, lead: Place, kinds: Sequence[FieldType], inside: Sequence[bool]) -> None:
        self.others = [n for n, on_grid in enumerate(inside) if not on_grid]
        self.arrays = [np.empty((*lead, *kinds[n].array_shape), kinds[n].array_dtype) for n in self.others]
        self.left: set[Place] = set(np.ndindex(*lead)) if self.others else set()

    def put(self, image: Place, results: Sequence[Array]) -> list[Array]:
        """Store the values of an image from its results: any of its windows has the same. Return them; () if they were stored."""
        if image not in self.left:
            return []
        values = [results[n] for n in self.others]
        self.take(image, values)
        return values

    def take(self, image: Place, values: Sequence[Array]) -> None:
        """Store the values of an image."""
        self.left.discard(image)
        for array, value in zip(self.arrays, values, strict=True):
            array[image] = value


def _check_points(extents: Sequence[int]) -> None:
    """Refuse arguments without points to cut, or with only one."""
    if not extents or 0 in extents:
        what = f"a grid of {'×'.join(map(str, extents))} has none" if extents else "a 0-D array has no axes"
        raise SemanticError(f"a stream goes through points, and {what}; call the pipeline itself")


def _source_names(of: Pipeline, constants: dict[str, Any], count: int) -> list[str]:
    """Return the names of the source arguments, for this number of sources."""
    parameters = of.signature.parameters
    unknown = next((name for name in constants if name not in parameters), None)
    if unknown is not None and not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        near = meant(unknown, (*parameters, *OPTIONS))
        raise SemanticError(
            f"neither gp.stream nor pipeline `{of.name}` takes `{unknown}=`"
            f"{near or '; `chunks=` says how large windows are'}"
        )
    names = [name for name in parameters if name not in constants]
    if count > len(names) and not any(each.kind is each.VAR_POSITIONAL for each in parameters.values()):
        raise SemanticError(
            f"`source=` has {count} arrays, one for each argument, and pipeline `{of.name}` takes {len(names)}; images in "
            "files of their own are a single source, the list of their paths, with `batch=1`"
        )
    return names
