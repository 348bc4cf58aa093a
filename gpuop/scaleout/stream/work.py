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
from gpuop.scaleout.stream.alias_check import check_apart, writing_alone
from gpuop.scaleout.stream.checkpoint import ENDING, Journal, beside
from gpuop.scaleout.stream.chunk_plan import StreamCut
from gpuop.scaleout.stream.identity import stream_identity
from gpuop.scaleout.stream.prefetch import overlapped
from gpuop.scaleout.stream.progress import Progress
from gpuop.scaleout.stream.stores import checksum, created, file_of, is_written, mapping, unmapped, written
from gpuop.scaleout.stream.whole_results import ImageValues

Known: TypeAlias = dict[Place, tuple[Array, ...]]  # results of stages, for each image


class StreamWork(StreamCut):
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
        check_apart(self.named, wanted)
        with writing_alone(wanted):
            journal = self._journal(wanted, resume)
            finished = False
            try:
                results = self._results(wanted, journal, progress)
                finished = True
            finally:
                journal.close(finished)
                progress.end()
                let_go()
        return results

    def _journal(self, wanted: Sequence[Any], resume: bool) -> Journal:
        """Return the checkpoint, with earlier lines if all result files exist."""
        files = [file for each in wanted if (file := file_of(each)) is not None]
        if not files:
            if resume:
                raise SemanticError("`resume=` wants a file of results, `out=`, beside which it is noted what is done")
            return Journal((), {}, False, False)
        each = [paths for paths in map(beside, wanted) if paths]
        told = stream_identity(self, [first.removesuffix(ENDING) for first, *_ in each])
        return Journal([*dict.fromkeys(chain(*each))], told, resume, all(map(os.path.exists, files)))

    def _outs(self, wanted: Sequence[Any], kept: str) -> list[Any]:
        kinds = [kind for kind, inside in zip(self.kinds, self.inside, strict=True) if inside]
        chunk = [1] * len(self.lead) + list(self.chunking.chunk)
        return [
            created(each, kind, (*self.lead, *kind.array_shape), [*chunk, *kind.tensor_shape], kept)
            for each, kind in zip(wanted, kinds, strict=True)
        ]

    def _results(self, wanted: Sequence[Any], journal: Journal, progress: Progress) -> Any:
        passes = self.stages + bool(wanted or not self.is_cut)  # calls of the pipeline, if images are not cut
        total = passes * math.prod((*self.chunking.counts, *self.lead))
        outs = self._outs(wanted, "r" if journal.resumed else "")
        there = self._there(outs, journal)
        progress.begin(total, len(there) + sum(stage < self.stages for stage, _ in journal.done))
        values = ImageValues(self.lead, self.kinds, self.inside)
        for image, found in journal.values(self.values_stage):
            values.take(image, found)
        todo = [place for place in self._places() if place not in there] if outs else []
        if todo or values.left:
            if journal.resumed:
                outs.clear()  # an HDF5 file that is open for reads cannot be opened for writes
                outs += self._outs(wanted, "r+")
            self._compute(todo, values, outs, journal, progress)
        on_grid, rest = iter(outs), iter(values.arrays)
        results = [next(on_grid if inside else rest) for inside in self.inside]
        return tuple(results) if self.several else results[0]

    def _compute(
        self, todo: Sequence[Place], values: ImageValues, outs: Sequence[Any], journal: Journal, progress: Progress
    ) -> None:
        """Compute and write chunks of results, and the values of images without them."""
        known: Known = dict.fromkeys(np.ndindex(*self.lead), ())
        for stage in range(self.stages):
            given = self._stage(stage, known, journal, progress)
            known = {image: known[image] + given[image] for image in known}

        def compute(place: Place, given: Sequence[Array]) -> list[Array]:
            found: list[Array] = self._called(place, given, None, known)
            return found

        def put(place: Place, found: list[Array]) -> None:
            image, _ = self._split(place)
            if new := values.put(image, found):
                journal.note_values(self.values_stage, image, new)
            if not outs and not self.is_cut:
                progress.step()

        def write(place: Place, found: list[Array]) -> None:
            on_grid = [array for array, inside in zip(found, self.inside, strict=True) if inside]
            self._write(place, on_grid, outs, journal)
            put(place, found)
            progress.step()

        if self.at_once:
            known = self._with_results(todo, known, outs, journal, progress)
        else:
            overlapped(todo, self._read, compute, write)
        left = [(*image, *next(self.chunking.places())) for image in sorted(values.left)]
        overlapped(left, self._read, compute, put)

    def _write(self, place: Place, results: Sequence[Array], outs: Sequence[Any], journal: Journal) -> None:
        """Write a chunk's points of results on the grid."""
        for array, points in zip(outs, results, strict=True):
            written(array, self._at(place), points)
        journal.note(self.results_stage, place, map(checksum, results))

    def _there(self, outs: Sequence[Any], journal: Journal) -> set[Place]:
        """Return the chunks of results that were written and are unchanged."""
        noted = {place: sums for (stage, place), sums in journal.done.items() if stage == self.results_stage}
        return {
            place
            for place, sums in noted.items()
            if len(sums) == len(outs)  # checkpoints of earlier versions have none
            and (not self.at_once or (self.stages, place) in journal.done)
            and all(is_written(array, self._at(place), known) for array, known in zip(outs, sums, strict=True))
        }

    def _stage(self, stage: int, known: Known, journal: Journal, progress: Progress) -> Known:
        """Return the results of a stage for each image; parts of finished chunks are read from the checkpoint."""
        parts: dict[Place, Any] = {}

        def compute(place: Place, given: Sequence[Array]) -> Any:
            return self._called(place, given, stage, known)

        def note(place: Place, found: Any) -> None:
            parts[place] = found
            if todo:  # otherwise all chunks were done before
                journal.note_parts(stage, place, found)
                progress.step()

        done = [place for place in self._places() if (stage, place) in journal.done]
        todo = [place for place in self._places() if (stage, place) not in journal.done]
        overlapped(todo or done[:1], self._read, compute, note)
        return self._joined(stage, parts, journal, known)

    def _with_results(
        self, todo: Sequence[Place], known: Known, outs: Sequence[Any], journal: Journal, progress: Progress
    ) -> Known:
        """Compute the last stage together with the results on the grid; return the results of all stages."""
        parts: dict[Place, Any] = {}

        def compute(place: Place, given: Sequence[Array]) -> Any:
            return self._window(place, self.stages, known).at_once(*given, **self.constants)

        def write(place: Place, found: Any) -> None:
            parts[place], results = found
            if todo:  # otherwise all chunks were done before
                journal.note_parts(self.stages, place, parts[place])
                self._write(place, results, outs, journal)
                progress.step()

        overlapped(todo or [next(self._places())], self._read, compute, write)
        given = self._joined(self.stages, parts, journal, known)
        return {image: known[image] + given[image] for image in known}

    def _joined(self, stage: int, parts: dict[Place, Any], journal: Journal, images: Iterable[Place]) -> Known:
        """Return the results of a stage for each image, from new and earlier parts."""
        like, of = next(iter(parts.values())), self.of.footprint

        def part(place: Place) -> Any:
            return parts[place] if place in parts else journal.parts(stage, place, like)

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
        found = [
            window_of(
                source, index if batched else (), ends if windowed else None, self.grid, mapping(source) is not None
            )
            for source, batched, windowed in zip(self.sources, self.batched, self.windowed, strict=True)
        ]  # memory-mapped data is read here, not during computation
        for each in self.sources:
            unmapped(each)
        return found

    def _window(self, place: Place, stage: int | None, known: Known) -> PipelineWindow:
        image, chunk = self._split(place)
        start, stop = self.chunking.points(chunk)
        computed = self.chunking.computed(chunk)
        return self.pipeline.window(self.grid, start, stop, self.shared, stage, known[image], computed)

    def _called(self, place: Place, given: Sequence[Array], stage: int | None, known: Known) -> Any:
        call = self._window(place, stage, known) if self.is_cut else self.pipeline
        found = call(*given, **self.constants)
        return list(found) if stage is None and self.several else [found] if stage is None else found
