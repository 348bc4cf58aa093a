"""What a stream does: chunks are cut, and what windows of them give is put together, from pass to pass."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from gpuop.dsl.fields.arrays import is_array
from gpuop.errors import SemanticError
from gpuop.ir.types import is_integer
from gpuop.pipelines.parted import Parted
from gpuop.pipelines.pipeline import Pipeline
from gpuop.runtime.base.backend import Array
from gpuop.streaming.chunking import Chunking, chosen, multiple, window_bytes
from gpuop.streaming.image_values import ImageValues
from gpuop.streaming.journal import ENDING, Journal
from gpuop.streaming.overlapping import overlapped
from gpuop.streaming.progress import Progress
from gpuop.streaming.stores import checksum, created, file_of, is_written, mapping, unmapped, written
from gpuop.streaming.stream_arguments import check_points, source_names
from gpuop.streaming.stream_identity import stream_identity
from gpuop.streaming.whereabouts import check_apart, writing_alone
from gpuop.windows.footprint import Place
from gpuop.windows.pieces import window_of
from gpuop.windows.reused import let_go

FIELDS = 2  # fields between arguments and results that a window has at once, as a rule
Known: TypeAlias = dict[Place, tuple[Array, ...]]  # what stages have given of each image


class StreamWork:
    """A pipeline, its sources, and how they are cut."""

    def __init__(
        self, made: Pipeline, sources: Sequence[Any], batch: int, shared: tuple[str, ...], constants: dict[str, Any]
    ) -> None:
        self.pipeline, self.sources, self.shared, self.constants = made, sources, shared, constants
        names = source_names(made, constants)
        if not sources:
            raise SemanticError("`source=` has no arrays; give one for each argument of the pipeline")
        check_points(sources[0].shape)
        most = len(sources[0].shape) - 1
        if not is_integer(batch) or not 0 <= batch <= most:
            raise SemanticError(
                f"`batch=` is a number of axes, from 0 to {most}, not {batch!r}: the pipeline gets the others"
            )
        self.lead = tuple(sources[0].shape[:batch])
        self.batched = [batch > 0 and tuple(each.shape[:batch]) == self.lead for each in sources]
        self.types = [
            (tuple(each.shape)[batch * b :], np.dtype(each.dtype))
            for each, b in zip(sources, self.batched, strict=True)
        ]
        self.of: Parted = made._in_parts(self.types, constants, shared)
        self.grid = self.of.footprint.grid
        check_points((*self.lead, *self.grid))
        windows = [shape[: len(self.grid)] == self.grid for shape, _ in self.types]
        arrays = {name: value for name, value in constants.items() if is_array(value)}
        self.named = dict(zip(names, sources, strict=False)) | arrays
        self.windowed = [w and name not in shared for w, name in zip(windows, names, strict=False)]
        traced, found = self.of.programs[-1]
        self.kinds = traced.kinds
        self.inside = [v in found.cut for v in traced.program.wanted]
        self.several = traced.several

    # --- chunks ---------------------------------------------------------------------------------------------------

    def cut(self, chunks: Any, out: Any) -> None:
        needed = self.of.footprint
        if isinstance(chunks, str) and chunks == "auto":
            self.chunking = chosen(needed, self._point_bytes(), self._units(out), window_bytes())
            return
        given = tuple(chunks) if isinstance(chunks, Iterable) else (chunks,)
        if len(given) != len(self.grid) or not all(is_integer(n) and n > 0 for n in given):
            raise SemanticError(
                f'`chunks=` is "auto" or an extent for each axis of the grid {self.grid}, not {chunks!r}'
            )
        sizes = (-(-int(c) // multiple(needed, a)) * multiple(needed, a) for a, c in enumerate(given))
        whole = needed.whole.keys()
        self.chunking = Chunking(
            needed, tuple(n if a in whole else min(c, n) for a, (c, n) in enumerate(zip(sizes, self.grid, strict=True)))
        )

    def _point_bytes(self) -> int:
        points = math.prod(self.grid)
        given = [
            math.prod(shape) * dtype.itemsize for (shape, dtype), w in zip(self.types, self.windowed, strict=True) if w
        ]
        given += [
            math.prod(kind.array_shape) * kind.array_dtype.itemsize
            for kind, c in zip(self.kinds, self.inside, strict=True)
            if c
        ]
        return int(-(-sum(given) // points) + FIELDS * -(-max(given, default=0) // points))

    def _units(self, out: Any) -> list[int]:
        """What chunks are multiples of: chunks of the results' store, so that none is written twice; else of the source's."""
        axes, lead = len(self.grid), len(self.lead)
        of_out = [getattr(each, "chunks", None) for each in (out if isinstance(out, (tuple, list)) else (out,))]
        of_source = [getattr(each, "chunks", None) for each, w in zip(self.sources, self.windowed, strict=True) if w]
        known = next((c for c in (*of_out, *of_source) if c and len(c) >= lead + axes), None)
        return [1] * axes if known is None else [min(int(c), n) for c, n in zip(known[lead:], self.grid, strict=False)]

    @property
    def is_cut(self) -> bool:
        """Whether there are windows of an image, and not a call of the pipeline for each."""
        return math.prod(self.chunking.counts) > 1

    @property
    def stages(self) -> int:
        """Passes before that of the results."""
        return len(self.of.staged.stages) if self.is_cut else 0

    @property
    def plan(self) -> str:
        images = f"{math.prod(self.lead)} images, each in " * bool(self.lead)
        passes = self.stages + any(self.inside)
        return f"{images}{self.chunking}" + f", {passes} passes that each compute what they need" * (passes > 1)

    # --- running --------------------------------------------------------------------------------------------------

    def run(self, out: Any, resume: bool, progress: Progress) -> Any:
        wanted = list(out) if isinstance(out, (tuple, list)) else [out]
        if out is None:
            wanted = [None] * sum(self.inside)
        if len(wanted) != sum(self.inside):
            raise SemanticError(
                f"`out=` has {len(wanted)} arrays, and {sum(self.inside)} results are of the grid; reductions are returned"
            )
        check_apart(self.named, wanted)
        with writing_alone(wanted):
            journal = self._journal([file_of(each) for each in wanted], resume)
            finished = False
            try:
                results = self._results(self._outs(wanted, journal), journal, progress)
                finished = True
            finally:
                journal.close(finished)
                progress.end()
                let_go()
        return results

    def _journal(self, files: Sequence[str | None], resume: bool) -> Journal:
        """What is done already, if all files are there that have it."""
        known = [file for file in files if file is not None]
        if not known:
            if resume:
                raise SemanticError("`resume=` wants a file of results, `out=`, beside which it is noted what is done")
            return Journal((), {}, resume)
        told = stream_identity(self.of, self.named, self.chunking, known)
        beside = dict.fromkeys(os.path.realpath(file) + ENDING for file in known)
        return Journal([*beside], told, resume and all(map(os.path.exists, known)))

    def _outs(self, wanted: Sequence[Any], journal: Journal) -> list[Any]:
        kinds = [kind for kind, inside in zip(self.kinds, self.inside, strict=True) if inside]
        chunk = [1] * len(self.lead) + list(self.chunking.chunk)
        return [
            created(each, kind, (*self.lead, *kind.array_shape), [*chunk, *kind.tensor_shape], journal.resumed)
            for each, kind in zip(wanted, kinds, strict=True)
        ]

    def _results(self, outs: Sequence[Any], journal: Journal, progress: Progress) -> Any:
        images, alone = [*np.ndindex(*self.lead)], not (outs or self.is_cut)  # a call for each, which is a pass
        known: Known = dict.fromkeys(images, ())
        total = (self.stages + bool(outs or alone)) * math.prod(self.chunking.counts) * len(images)
        there = self._there(outs, journal)
        progress.begin(total, len(there) + sum(stage < self.stages for stage, _ in journal.done))
        for stage in range(self.stages):
            given = self._stage(stage, known, journal, progress)
            known = {image: known[image] + given[image] for image in images}
        values = ImageValues(self.lead, self.kinds, self.inside)

        def compute(place: Place, given: Sequence[Array]) -> list[Array]:
            found: list[Array] = self._called(place, given, None, known)
            values.put(self._split(place)[0], found)
            return found

        def write(place: Place, found: list[Array]) -> None:
            _, inner = self._owned(place)
            grid = [array[inner] for array, inside in zip(found, self.inside, strict=True) if inside]
            for array, points in zip(outs, grid, strict=True):
                written(array, self._at(place), points)
            journal.note(self.stages, place, map(checksum, grid))
            progress.step()

        todo = [place for place in self._places() if place not in there] if outs else []
        overlapped(todo, self._read, compute, write)
        left = [(*image, *next(self.chunking.places())) for image in sorted(values.left)]
        overlapped(left, self._read, compute, lambda *_: progress.step() if alone else None)
        on_grid, rest = iter(outs), iter(values.arrays)
        results = [next(on_grid if inside else rest) for inside in self.inside]
        return tuple(results) if self.several else results[0]

    def _there(self, outs: Sequence[Any], journal: Journal) -> set[Place]:
        """The chunks of results that were written, and are so still."""
        noted = {place: sums for (stage, place), sums in journal.done.items() if stage == self.stages}
        return {
            place
            for place, sums in noted.items()
            if len(sums) == len(outs)  # journals of earlier versions have none
            and all(is_written(array, self._at(place), known) for array, known in zip(outs, sums, strict=True))
        }

    def _stage(self, stage: int, known: Known, journal: Journal, progress: Progress) -> Known:
        """What a stage gives of each image; the parts of chunks that were done before are read."""
        parts: dict[Place, Any] = {}

        def compute(place: Place, given: Sequence[Array]) -> Any:
            return self._called(place, given, stage, known)

        def note(place: Place, found: Any) -> None:
            parts[place] = found
            if todo:  # else it was done before
                journal.note_parts(stage, place, found)
                progress.step()

        done = [place for place in self._places() if (stage, place) in journal.done]
        todo = [place for place in self._places() if (stage, place) not in journal.done]
        overlapped(todo or done[:1], partial(self._read, exactly=True), compute, note)
        like = next(iter(parts.values()))
        parts |= {place: journal.parts(stage, place, like) for place in done if place not in parts}
        of = self.of.footprint
        return {image: of.known(parts[(*image, *chunk)] for chunk in self.chunking.places()) for image in known}

    def _places(self) -> Iterator[Place]:
        """The chunks of all images."""
        return ((*image, *place) for image in np.ndindex(*self.lead) for place in self.chunking.places())

    def _split(self, place: Place) -> tuple[Place, Place]:
        return place[: len(self.lead)], place[len(self.lead) :]

    def _owned(self, place: Place) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Where a chunk's points are in the grid, and in what is computed for it."""
        _, chunk = self._split(place)
        (start, stop), (first, _) = self.chunking.points(chunk), self.chunking.computed(chunk)
        owned = tuple(map(slice, start, stop))
        return owned, tuple(slice(a - f, b - f) for a, b, f in zip(start, stop, first, strict=True))

    def _at(self, place: Place) -> tuple[Any, ...]:
        """Where a chunk is in results."""
        return (*self._split(place)[0], *self._owned(place)[0])

    def _read(self, place: Place, exactly: bool = False) -> list[Array]:
        """The arguments of a window, in memory; `exactly` of a chunk's points."""
        index, chunk = self._split(place)
        ends = self.of.footprint.window(*(self.chunking.points if exactly else self.chunking.computed)(chunk))
        found = [
            window_of(
                source, index if batched else (), ends if windowed else None, self.grid, mapping(source) is not None
            )
            for source, batched, windowed in zip(self.sources, self.batched, self.windowed, strict=True)
        ]  # what is mapped is read here, not when computed
        for each in self.sources:
            unmapped(each)
        return found

    def _called(self, place: Place, given: Sequence[Array], stage: int | None, known: Known) -> Any:
        image, chunk = self._split(place)
        start, stop = (self.chunking.computed if stage is None else self.chunking.points)(chunk)
        how = (self.grid, start, stop, self.shared, stage, known[image])
        found = (self.pipeline.window(*how) if self.is_cut else self.pipeline)(*given, **self.constants)
        return list(found) if stage is None and self.several else [found] if stage is None else found
