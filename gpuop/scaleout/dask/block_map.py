"""A pipeline over chunked arrays: its blocks, their inputs, and the task graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, product
from operator import getitem
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from gpuop.base.records import dataclass
from gpuop.fusion.windows.axis_blocks import AxisBlock, Chunks, GridBlocks
from gpuop.fusion.windows.gather import pieces
from gpuop.ir.types import FieldType
from gpuop.scaleout.dask.block_program import BlockPlace, BlockProgram, Slices, joined, piece_of
from gpuop.scaleout.dask.sliced_source import SlicedSource

ALL = slice(None)
FAN_IN = 8  # parts that one task joins
Key = tuple[Any, ...]


@dataclass(frozen=True)
class BlockArgument:
    """An argument of the pipeline.

    Attributes:
        array: the Dask array, with the image axes in front.
        counted: whether it has image axes.
        cut: whether it is read in windows.
        source: the source of windows, if they are not pieces of its chunks.
    """

    array: Any
    counted: bool
    cut: bool
    source: SlicedSource | None = None


@dataclass(frozen=True)
class BlockMap:
    """A pipeline over chunked arrays.

    Attributes:
        program: the program of the blocks.
        arguments: by name; the first one has the chunks of the results.
        images: the chunks of the image axes.
        chunks: the chunks of the grid's axes.
        cut: whether blocks are parts of the grid; otherwise each image is computed as a whole.
    """

    program: BlockProgram
    arguments: Mapping[str, BlockArgument]
    images: tuple[Chunks, ...]
    chunks: tuple[Chunks, ...]
    cut: bool

    @cached_property
    def blocks(self) -> GridBlocks:
        """The windows of the blocks, all of one shape."""
        return GridBlocks(self.program.footprint, self.chunks if self.cut else ())

    @cached_property
    def starts(self) -> list[list[int]]:
        """The starts of image chunks along each axis, and the end of the last one."""
        return [[0, *accumulate(chunks)] for chunks in self.images]

    @cached_property
    def name(self) -> str:
        keys = [argument.array.name for argument in self.arguments.values()]
        return f"{self.program.pipeline.name}-{tokenize(self.program, keys, self.images, self.chunks)}"

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of blocks along each axis of the grid, if it is cut."""
        return tuple(map(len, self.blocks.axes))

    @property
    def at_once(self) -> bool:
        """Return whether the last stage and the blocks of results are computed together."""
        return self.cut and self.program.footprint.at_once

    def parted(self, kind: FieldType) -> bool:
        """Return whether blocks give parts of a result."""
        return self.cut and kind.field_shape == self.program.footprint.grid

    def chunks_of(self, kind: FieldType) -> tuple[Chunks, ...]:
        """Return the chunks of a result."""
        parts = self.chunks if self.parted(kind) else ()
        return (*self.images, *parts, *((n,) for n in kind.array_shape[len(parts) :]))

    # --- results ------------------------------------------------------------------------------------------------

    def results(self) -> list[Any]:
        """Return the Dask arrays of the results, with the image axes in front."""
        name, tasks, kinds = self.name, self.tasks(), self.program.footprint.results
        arrays = [argument.array for argument in self.arguments.values()]
        whole = HighLevelGraph.from_collections(name, tasks, dependencies=arrays)
        if self._is_single:
            return [self._array(whole, name, kinds[0])]
        split_arrays = []
        for number, kind in enumerate(kinds):
            own = f"{name}-{number}"
            layers = {**whole.layers, own: dict(self._selections(own, number, kind))}
            split_arrays.append(
                self._array(HighLevelGraph(layers, {**whole.dependencies, own: {name}}), f"{name}-{number}", kind)
            )
        return split_arrays

    @property
    def _is_single(self) -> bool:
        """Return whether a block is that of the only result."""
        kinds = self.program.footprint.results
        return len(kinds) == 1 and (self.parted(kinds[0]) or not self.cut)

    def _selections(self, name: str, number: int, kind: FieldType) -> Iterator[tuple[Key, Any]]:
        """Return the tasks that select one of several results; one of another grid is in the first block."""
        axes = len(self.chunks_of(kind)) - len(self.images)
        for image in np.ndindex(*map(len, self.images)):
            for block in np.ndindex(*self.counts) if self.parted(kind) else [(0,) * len(self.counts)]:
                at = (*block, *(0,) * axes)[:axes] if self.parted(kind) else (0,) * axes
                if self.at_once and self.parted(kind):
                    of_grid = sum(map(self.parted, self.program.footprint.results[:number]))
                    yield (name, *image, *at), (getitem, (f"{self.name}-both", *image, *block), 1 + of_grid)
                else:
                    yield (name, *image, *at), (getitem, (self.name, *image, *block), number)

    def _array(self, graph: Any, name: str, kind: FieldType) -> Any:
        chunks, first = self.chunks_of(kind), next(iter(self.arguments.values())).array
        meta = np.empty_like(first._meta, shape=(0,) * len(chunks), dtype=kind.array_dtype)
        return da.Array(graph, name, chunks, meta=meta)

    # --- tasks --------------------------------------------------------------------------------------------------

    def tasks(self) -> dict[Any, Any]:
        """Return the tasks of stages, one for each block, and the tasks that cut pieces of chunks."""
        name, footprint = self.name, self.program.footprint
        tasks: dict[Any, Any] = {f"{name}-program": self.program}
        cutting = _Cutting(f"{name}-piece", tasks)
        several = (any(map(self.parted, footprint.results)) and not self.at_once) or not self.cut
        more = (0,) * (len(self.chunks_of(footprint.results[0])) - len(self.images) - len(self.counts))
        for image in np.ndindex(*map(len, self.images)):
            earlier = None
            for stage in range(len(footprint.stages) if self.cut else 0):
                earlier = self._stage(tasks, image, stage, earlier, cutting)
            for block in np.ndindex(*self.counts) if several else [(0,) * len(self.counts)]:
                place, lists = self._block(image, block, cutting)
                key = (name, *image, *block, *more) if self._is_single else (name, *image, *block)
                task = BlockProgram.result if self._is_single else BlockProgram.results
                tasks[key] = (task, f"{name}-program", place, earlier, *lists)
        return tasks

    def _stage(self, tasks: dict[Any, Any], image: Chunks, stage: int, earlier: Key | None, cutting: _Cutting) -> Key:
        """Return the key of the results of all stages so far: the root of a tree over the blocks."""
        name = f"{self.name}-stage{stage}"
        level: list[Key] = []
        for block in np.ndindex(*self.counts):
            place, lists = self._block(image, block, cutting)
            level.append((name, *image, *block))
            if self.at_once and stage == len(self.program.footprint.stages) - 1:
                both = (f"{self.name}-both", *image, *block)
                tasks[both] = (BlockProgram.at_once, f"{self.name}-program", place, earlier, *lists)
                tasks[level[-1]] = (getitem, both, 0)
            else:
                tasks[level[-1]] = (BlockProgram.parts, f"{self.name}-program", place, stage, earlier, *lists)
        height = 0
        while len(level) > 1:
            height += 1
            groups = [level[k : k + FAN_IN] for k in range(0, len(level), FAN_IN)]
            level = [(f"{name}-joined{height}", *image, k) for k in range(len(groups))]
            tasks |= {key: (joined, group) for key, group in zip(level, groups, strict=True)}
        root = (f"{name}-known", *image)
        tasks[root] = (BlockProgram.known, f"{self.name}-program", level[0], earlier)
        return root

    def _block(self, image: Chunks, block: Chunks, cutting: _Cutting) -> tuple[BlockPlace, list[list[Any]]]:
        """Return a block, and the pieces of each argument: their keys, or reads of the source."""
        ends = self.blocks.at(block)
        images = tuple(chunks[k] for chunks, k in zip(self.images, image, strict=True))
        lists, shapes, places = list[list[Any]](), [], []
        for argument in self.arguments.values():
            front, at = (images, image) if argument.counted else ((), ())
            own = argument.array.shape[len(front) :]
            if argument.cut and self.cut:
                if argument.source is None:
                    located = list(self._pieces(argument, at, block, cutting))
                else:
                    located = list(self._read(argument, argument.source, at, ends))
                shapes.append((*front, *(each.points for each in ends), *own[len(ends) :]))
            else:
                located = [((argument.array.name, *at, *(0,) * len(own)), ())]
                shapes.append((*front, *own))
            lists.append([piece for piece, _ in located])
            places.append(tuple(there for _, there in located))
        start, stop = (tuple(each.computed[k] for each in ends) for k in (0, 1))
        first, last = (tuple(each.wanted[k] for each in ends) for k in (0, 1))
        return BlockPlace(start if self.cut else None, stop, first, last, images, tuple(shapes), tuple(places)), lists

    def _read(
        self, argument: BlockArgument, source: SlicedSource, image: Chunks, ends: Sequence[AxisBlock]
    ) -> Iterator[tuple[Any, Slices]]:
        """Return the read of a window, with its place there; several parts if it wraps around the grid."""
        starts = (self.starts[axis][k : k + 2] for axis, k in enumerate(image))
        front = tuple(slice(*each) for each in starts)
        behind = tuple(slice(0, n) for n in argument.array.shape[len(front) + len(ends) :])
        windows = (pieces(*each.window, n) for each, n in zip(ends, self.program.footprint.grid, strict=True))
        for along in product(*windows):
            window = tuple(slice(first, last) for _, first, last in along)
            there = tuple(slice(at, at + last - first) for at, first, last in along)
            yield source.part((*front, *window, *behind)), ((ALL,) * len(image) + there)

    def _pieces(
        self, argument: BlockArgument, image: Chunks, block: Chunks, cutting: _Cutting
    ) -> Iterator[tuple[Key, Slices]]:
        """Return the keys of a window's pieces, each with its place in the window."""
        front = (ALL,) * len(image)
        tensor = argument.array.ndim - len(image) - len(block)
        for along in product(*(self.blocks.needed[axis][k] for axis, k in enumerate(block))):
            key = (argument.array.name, *image, *(piece.chunk for piece in along), *(0,) * tensor)
            there = (*front, *(piece.there for piece in along))
            extents = [chunks[piece.chunk] for chunks, piece in zip(self.chunks, along, strict=True)]
            inner = tuple(piece.places for piece in along)
            all_of_it = all((s.start, s.stop) == (0, n) for s, n in zip(inner, extents, strict=True))
            yield (key if all_of_it else cutting.key(key, (*front, *inner))), there


class _Cutting:
    """The tasks that cut pieces of chunks, each once."""

    def __init__(self, name: str, tasks: dict[Any, Any]) -> None:
        self.name, self.tasks = name, tasks
        self.keys: dict[Any, Key] = {}

    def key(self, chunk: Key, place: Slices) -> Key:
        piece = (chunk, tuple((s.start, s.stop) for s in place))
        if piece not in self.keys:
            self.keys[piece] = key = (self.name, len(self.keys))
            self.tasks[key] = (piece_of, chunk, place)
        return self.keys[piece]
