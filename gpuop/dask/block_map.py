"""A pipeline over chunked arrays: which blocks there are, what each needs, and the graph of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from operator import getitem
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from gpuop.dask.axis_blocks import AxisBlock, Piece, axis_blocks, pieces
from gpuop.dask.block_program import BlockPlace, BlockProgram, Slices, block_of
from gpuop.ir.types import FieldType
from gpuop.windows.footprint import Footprint

ALL = slice(None)
Chunks = tuple[int, ...]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Given:
    """An argument.

    Attributes:
        array: Dask's, with the axes in front that count images.
        counted: whether it has images.
        cut: whether it comes in windows.
    """

    array: Any
    counted: bool
    cut: bool


@dataclass(frozen=True)
class BlockMap:
    """A pipeline over chunked arrays.

    Attributes:
        program: what computes blocks.
        footprint: of the pipeline, on one image.
        given: the arguments by name; the first one has the chunks of the results.
        images: the chunks of the axes that count images.
        chunks: those of the grid's axes.
        cut: whether blocks are of parts of the grid; else each image is computed by itself.
    """

    program: BlockProgram
    footprint: Footprint
    given: Mapping[str, Given]
    images: tuple[Chunks, ...]
    chunks: tuple[Chunks, ...]
    cut: bool

    @cached_property
    def axes(self) -> list[list[AxisBlock]]:
        """The blocks along each axis of the grid."""
        if not self.cut:
            return [axis_blocks((n,), (0, 0), False) for n in self.footprint.grid]
        periodic = self.footprint.periodic
        ends = zip(self.chunks, self.footprint.halo, strict=True)
        return [axis_blocks(chunks, halo, axis in periodic) for axis, (chunks, halo) in enumerate(ends)]

    @cached_property
    def needed(self) -> list[list[list[Piece]]]:
        """For each axis and block where the points of the window lie."""
        if not self.cut:
            return [[[]] for _ in self.axes]
        return [
            [list(pieces(block.window, chunks)) for block in blocks]
            for blocks, chunks in zip(self.axes, self.chunks, strict=True)
        ]

    @cached_property
    def name(self) -> str:
        keys = [given.array.name for given in self.given.values()]
        return f"{self.program.pipeline.name}-{tokenize(self.program, keys, self.images, self.chunks)}"

    def results(self) -> list[Any]:
        """Dask's arrays of the results, with the axes in front that count images."""
        graph, arrays = self.graph(), [given.array for given in self.given.values()]
        kinds = self.footprint.results
        names = [self.name] if len(kinds) == 1 else [f"{self.name}-{k}" for k in range(len(kinds))]
        whole = HighLevelGraph.from_collections(self.name, graph, dependencies=arrays)
        out = []
        for number, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            layered = whole if len(kinds) == 1 else self._part_of(whole, name, number, kind)
            out.append(da.Array(layered, name, self.chunks_of(kind), meta=self._meta(kind)))
        return out

    def _part_of(self, whole: Any, name: str, number: int, kind: FieldType) -> Any:
        """The graph of one of several results."""
        more = (0,) * (len(self.chunks_of(kind)) - len(self.images) - len(self._counts))
        blocks = product(*(range(len(c)) for c in self.images), *map(range, self._counts))
        tasks = {(name, *block, *more): (getitem, (self.name, *block), number) for block in blocks}
        layers, above = {**whole.layers, name: tasks}, {**whole.dependencies, name: {self.name}}
        return HighLevelGraph(layers, above)

    @property
    def _counts(self) -> list[int]:
        """Blocks along each axis of the grid, where parts of it are computed."""
        return [len(blocks) for blocks in self.axes] if self.cut else []

    def chunks_of(self, kind: FieldType) -> tuple[Chunks, ...]:
        """Those of a result."""
        shape = kind.array_shape
        more = shape[len(self.chunks) :] if self.cut else shape
        return (*self.images, *(self.chunks if self.cut else ()), *((n,) for n in more))

    def _meta(self, kind: FieldType) -> Any:
        first = next(iter(self.given.values())).array
        return np.empty_like(first._meta, shape=(0,) * len(self.chunks_of(kind)), dtype=kind.array_dtype)

    # --- tasks --------------------------------------------------------------------------------------------------

    def graph(self) -> dict[Any, Any]:
        """The tasks: one for each block, and those that cut pieces of chunks for them."""
        program = f"{self.name}-program"
        tasks: dict[Any, Any] = {program: self.program}
        single = len(self.footprint.results) == 1
        more = (0,) * (len(self.chunks_of(self.footprint.results[0])) - len(self.images) - len(self._counts))
        cutting = _Cutting(f"{self.name}-piece", tasks)
        for image in np.ndindex(*map(len, self.images)):
            for block in np.ndindex(*self._counts):
                lists, place = self._task(image, block, cutting)
                key = (self.name, *image, *block, *(more if single else ()))
                tasks[key] = (block_of, program, place, *lists)
        return tasks

    def _task(self, image: Chunks, block: Chunks, cutting: _Cutting) -> tuple[list[list[Any]], BlockPlace]:
        ends = [self.axes[axis][k] for axis, k in enumerate(block)]
        extents = tuple(each.window[1] - each.window[0] for each in ends)
        images = tuple(chunks[k] for chunks, k in zip(self.images, image, strict=True))
        lists, shapes, places = [], [], []
        for given in self.given.values():
            front = images if given.counted else ()
            at = image if given.counted else ()
            if given.cut and self.cut:
                tensor = given.array.shape[len(front) + len(ends) :]
                found = list(self._pieces(given, at, block, cutting, len(tensor)))
                shapes.append((*front, *extents, *tensor))
            else:
                whole = given.array.shape[len(front) :]
                found = [((given.array.name, *at, *(0,) * len(whole)), ())]
                shapes.append((*front, *whole))
            lists.append([key for key, _ in found])
            places.append(tuple(there for _, there in found))
        start, stop = (tuple(each.computed[k] for each in ends) for k in (0, 1))
        inner = tuple(each.inner for each in ends)
        return lists, BlockPlace(start if self.cut else None, stop, inner, images, tuple(shapes), tuple(places))

    def _pieces(
        self, given: Given, image: Chunks, block: Chunks, cutting: _Cutting, tensor: int
    ) -> Iterator[tuple[Key, Slices]]:
        """The keys of a window's pieces, each with its place in the window."""
        for along in product(*(self.needed[axis][k] for axis, k in enumerate(block))):
            chunk = (*image, *(piece.chunk for piece in along), *(0,) * tensor)
            extents = [chunks[piece.chunk] for chunks, piece in zip(self.chunks, along, strict=True)]
            taken = tuple(piece.places for piece in along)
            there = (*(ALL,) * len(image), *(piece.there for piece in along))
            all_of_it = all((s.start, s.stop) == (0, n) for s, n in zip(taken, extents, strict=True))
            key = (given.array.name, *chunk)
            yield (key if all_of_it else cutting.key(key, (*(ALL,) * len(image), *taken))), there

    # --- facts --------------------------------------------------------------------------------------------------

    @property
    def tasks(self) -> int:
        """Blocks."""
        return prod(map(len, self.images)) * prod(self._counts)

    @property
    def recomputed(self) -> float:
        """Points that are computed for each that is wanted, halos among them."""
        if not self.cut:
            return 1.0
        each = [sum(b.window[1] - b.window[0] for b in blocks) / sum(chunks) for blocks, chunks in self._along()]
        return float(prod(each))

    def _along(self) -> Sequence[tuple[list[AxisBlock], Chunks]]:
        return list(zip(self.axes, self.chunks, strict=True))


class _Cutting:
    """The tasks that cut pieces of chunks, each once."""

    def __init__(self, name: str, tasks: dict[Any, Any]) -> None:
        self.name, self.tasks = name, tasks
        self.known: dict[Any, Key] = {}

    def key(self, chunk: Key, taken: Slices) -> Key:
        told = (chunk, tuple((s.start, s.stop) for s in taken))
        if told not in self.known:
            self.known[told] = key = (self.name, len(self.known))
            self.tasks[key] = (getitem, chunk, taken)
        return self.known[told]
