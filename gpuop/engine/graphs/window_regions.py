"""Regions of states on a device: packed into memory of their own, and placed back from such memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import is_big_tensor
from gpuop.dsl.operators.operator import Operator
from gpuop.fusion.program import Program, program
from gpuop.fusion.windows.kernel import NUMBER
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf
from gpuop.ops.layout.gather import own_place
from gpuop.ops.layout.slicing import sliced
from gpuop.runtime.base.backend import Argument, Array, Backend, Buffer, Launch, Part
from gpuop.runtime.execute import Prepared

Region = tuple[tuple[int, int], ...]  # for each axis the first point, and the one behind the last
Regions = tuple[Region, ...]
Compiling = Callable[[Program, Backend], Prepared]
Binding = Callable[[Regions, Sequence[Buffer]], tuple[list[Launch], list[Buffer]]]


class WindowRegions:
    """Regions of states with equal extents. Their copies are bound once for each assignment of states to buffers.

    Args:
        ends: the points that the states have.
        kinds: types of the states.
        backend: the device of the states.
        compiled: compiles a program for the device.
    """

    def __init__(self, ends: Region, kinds: Sequence[FieldType], backend: Backend, compiled: Compiling) -> None:
        self.ends, self.kinds, self.backend, self._compiled = ends, list(kinds), backend, compiled
        self._parts: dict[Regions, list[FieldType]] = {}
        self._rooms: dict[Regions, list[Buffer]] = {}
        self._moves: dict[tuple[str, Regions, tuple[int, ...]], tuple[list[Part], list[Buffer]]] = {}

    def parts(self, regions: Regions) -> list[FieldType]:
        """The types of the parts of regions, for each state."""
        if regions not in self._parts:
            each = [[b - a for a, b in region] for region in regions]
            self._parts[regions] = [kind.replace(field_shape=extents) for extents in each for kind in self.kinds]
        return self._parts[regions]

    def packed(self, regions: Regions, states: Sequence[Buffer]) -> list[Buffer]:
        """Memory with the points of regions, until the next call for them; in the order of the device's queue."""
        return self._moved("pack", regions, states, self._packing)

    def room(self, regions: Regions) -> list[Buffer]:
        """Memory that `place` takes the points of regions from."""
        if regions not in self._rooms:
            self._rooms[regions] = [self.backend.empty(part) for part in self.parts(regions)]
        return self._rooms[regions]

    def place(self, regions: Regions, states: Sequence[Buffer]) -> None:
        """Set the points of regions."""
        self._moved("place", regions, states, self._placing)

    def _moved(self, what: str, regions: Regions, states: Sequence[Buffer], bind: Binding) -> list[Buffer]:
        key = what, regions, tuple(map(id, states))
        if key not in self._moves:
            launches, results = bind(regions, states)
            self._moves[key] = self.backend.sequence(launches), results
        parts, results = self._moves[key]
        self.backend.launch(parts)
        return results

    def _packing(self, regions: Regions, states: Sequence[Buffer]) -> tuple[list[Launch], list[Buffer]]:
        leaves = [Leaf(kind) for kind in self.kinds]
        what = program([sliced(Field.of(leaf), self._slices(region)).node for region in regions for leaf in leaves])
        values: dict[int, Argument] = dict(zip(what.leaves, states, strict=True))
        launches = self._bound(self._compiled(what, self.backend), values)
        return launches, [values[v] for v in what.results]

    def _placing(self, regions: Regions, states: Sequence[Buffer]) -> tuple[list[Launch], list[Buffer]]:
        launches, parts = list[Launch](), zip(self.parts(regions), self.room(regions), strict=True)
        starts = [[(each.start,) for each in self._slices(region)] for region in regions for _ in self.kinds]
        for n, (start, (part, room)) in enumerate(zip(starts, parts, strict=True)):
            whole, state = self.kinds[n % len(states)], states[n % len(states)]
            leaves = [Leaf(whole), Leaf(part), *(Leaf(NUMBER, by_value=True) for _ in start)]
            what = program([placed(*map(Field.of, leaves)).node])
            arguments = dict(zip(leaves, [state, room, *start], strict=True))
            values = {v: arguments[node] for v, node in what.leaves.items() if isinstance(node, Leaf)}
            launches += self._bound(self._compiled(what, self.backend), values | dict.fromkeys(what.results, state))
        return launches, []

    def _slices(self, region: Region) -> tuple[slice, ...]:
        return tuple(slice(a - first, b - first) for (a, b), (first, _) in zip(region, self.ends, strict=True))

    def _bound(self, prepared: Prepared, values: dict[int, Argument]) -> list[Launch]:
        """Launches with their arguments; `values` gains memory for values that have none."""
        types = prepared.plan.program.types
        for step in prepared.plan.launches:
            values.update({v: self.backend.empty(types[v]) for v in step.outputs if v not in values})
        return [prepared.bind(n, values) for n in range(len(prepared.plan.launches))]


def _write_part(whole: Field, part: Field, *start: Field) -> None:
    """Write a part of a field, in its memory; a thread for each point of the part."""
    k._globalThreads(part.field_shape)
    own = own_place(len(start))
    point = [at + k._readTensor(first) for at, first in zip(own, start, strict=True)]
    if is_big_tensor(part.type):
        with k._forEachTensorElement(part.type.planes):
            element = k._tensorElement
            k._writeTensorElement(whole, k._readTensorElement(part, *own, element), *point, element)
    else:
        k._writeTensor(whole, k._readTensor(part, *own), *point)


placed = Operator(_write_part, None, "place", None, None, "whole", None, False)


# --- copies between the host and devices: consecutive bytes on the host, a buffer for each part on a device ---------------


def fetch_parts(queue: Backend, kinds: Sequence[FieldType], buffers: Sequence[Buffer], out: Array) -> None:
    """Enqueue copies to the host; they are complete when a mark that is recorded after them is reached."""
    for (kind, planes), buffer in zip(_planes(kinds, out), buffers, strict=True):
        if queue.only_enqueues:
            queue.fetch(kind, buffer, planes)
        else:
            planes[...] = queue.download(kind, buffer)


def bring_parts(queue: Backend, kinds: Sequence[FieldType], buffers: Sequence[Buffer], values: Array) -> None:
    """Enqueue copies from the host, whose memory must not change before a mark that is recorded after them is reached."""
    for (kind, planes), buffer in zip(_planes(kinds, values), buffers, strict=True):
        queue.bring(kind, buffer, planes)


def _planes(kinds: Sequence[FieldType], memory: Array) -> Iterator[tuple[FieldType, Array]]:
    at = 0
    for kind in kinds:
        planes = memory[at : at + kind.nbytes].view(kind.memory_dtype)
        yield kind, planes.reshape(kind.planes, kind.field_shape.points)
        at += kind.nbytes
