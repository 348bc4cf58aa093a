"""The execution of a stream: windows of chunks are read, computed and written, pass by pass, and partial results combined."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.engine.jit.window_call import PipelineWindow
from gpuop.fusion.windows.buffer_pool import let_go
from gpuop.fusion.windows.footprint import Place
from gpuop.fusion.windows.gather import window_of
from gpuop.runtime.base.backend import Array
from gpuop.scaleout.stream.alias_check import check_no_alias, exclusive_outputs
from gpuop.scaleout.stream.checkpoint import ENDING, Checkpoint, beside
from gpuop.scaleout.stream.chunk_plan import StreamPlan
from gpuop.scaleout.stream.identity import stream_identity
from gpuop.scaleout.stream.prefetch import overlapped
from gpuop.scaleout.stream.progress import Progress
from gpuop.scaleout.stream.stores import checksum, created, file_of, is_written, mapping, unmapped, written
from gpuop.scaleout.stream.whole_results import ImageValues

StageResults: TypeAlias = dict[Place, tuple[Array, ...]]  # results of stages, for each image


class StreamWork(StreamPlan):
    """A stream that runs, pass by pass."""

    def run(self, out: Any, resume: bool, progress: Progress) -> Any:
        wanted = list(out) if isinstance(out, (tuple, list)) else [out]
        if out is None:
            wanted = [None] * sum(self.inside)
        if len(wanted) != sum(self.inside):
            raise SemanticError(
                f"`out=` has {len(wanted)} arrays, and {sum(self.inside)} results are of the grid; reductions are returned"
                + f"; {self.uncut}" * bool(self.uncut)
            )
        check_no_alias(self.named, wanted)
        with exclusive_outputs(wanted):
            checkpoint = self._checkpoint(wanted, resume)
            finished = False
            try:
                results = self._results(wanted, checkpoint, progress)
                finished = True
            finally:
                checkpoint.close(finished)
                progress.end()
                let_go()
        return results

    def _checkpoint(self, wanted: Sequence[Any], resume: bool) -> Checkpoint:
        """Return the checkpoint, with earlier lines if all result files exist."""
        files = [file for each in wanted if (file := file_of(each)) is not None]
        if not files:
            if resume:
                raise SemanticError("`resume=` wants a file of results, `out=`, beside which it is noted what is done")
            return Checkpoint((), {}, False, False)
        each = [paths for paths in map(beside, wanted) if paths]
        identity = stream_identity(self, [first.removesuffix(ENDING) for first, *_ in each])
        return Checkpoint([*dict.fromkeys(chain(*each))], identity, resume, all(map(os.path.exists, files)))

    def _outs(self, wanted: Sequence[Any], mode: str) -> list[Any]:
        kinds = [kind for kind, inside in zip(self.kinds, self.inside, strict=True) if inside]
        chunk = [1] * len(self.lead) + list(self.chunking.chunk)
        return [
            created(each, kind, (*self.lead, *kind.array_shape), [*chunk, *kind.tensor_shape], mode)
            for each, kind in zip(wanted, kinds, strict=True)
        ]

    def _results(self, wanted: Sequence[Any], checkpoint: Checkpoint, progress: Progress) -> Any:
        passes = self.stages + bool(wanted or not self.is_cut)  # calls of the pipeline, if images are not cut
        total = passes * math.prod((*self.chunking.counts, *self.lead))
        outs = self._outs(wanted, "r" if checkpoint.resumed else "")
        there = self._there(outs, checkpoint)
        progress.begin(total, len(there) + sum(stage < self.stages for stage, _ in checkpoint.done))
        values = ImageValues(self.lead, self.kinds, self.inside)
        for image, arrays in checkpoint.values(self.values_stage):
            values.take(image, arrays)
        todo = [place for place in self._places() if place not in there] if outs else []
        if todo or values.left:
            if checkpoint.resumed:
                outs.clear()  # an HDF5 file that is open for reads cannot be opened for writes
                outs += self._outs(wanted, "r+")
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
                checkpoint.note_values(self.values_stage, image, new)
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
