"""Points of states on a device: packed into memory of their own there, and placed, without the rest of the states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.kinds_of_field import is_big_tensor
from gpuop.dsl.operators.operator import Operator
from gpuop.fusion.program import Program, program
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf
from gpuop.ops.gather import own_place
from gpuop.ops.slicing import sliced
from gpuop.runtime.base.backend import Backend, Buffer
from gpuop.runtime.execute import Prepared
from gpuop.windows.windowed_kernel import NUMBER

Region = tuple[tuple[int, int], ...]  # for each axis the first point, and the one behind the last
Regions = tuple[Region, ...]
Compiling = Callable[[Program, Backend], Prepared]


@dataclass(frozen=True)
class Placing:
    """What writes a part of a state; `whole` and `part` are the values that are given each time."""

    prepared: Prepared
    values: Mapping[int, Any]
    whole: int
    part: int

    def put(self, whole: Buffer, part: Buffer) -> None:
        given = {**self.values, self.whole: whole, self.part: part}
        self.prepared.run(given, dict.fromkeys(self.prepared.plan.program.wanted, whole))


class WindowRegions:
    """Regions of states that lie alike.

    Args:
        ends: the points that the states have.
        kinds: of the states.
        backend: where they are.
        compiled: compiles for it.
    """

    def __init__(self, ends: Region, kinds: Sequence[FieldType], backend: Backend, compiled: Compiling) -> None:
        self.ends, self.kinds, self.backend, self._compiled = ends, list(kinds), backend, compiled
        self._packs: dict[Regions, tuple[Program, Prepared, dict[int, Buffer]]] = {}
        self._places: dict[Regions, tuple[list[Placing], list[Buffer]]] = {}

    def _slices(self, region: Region) -> tuple[slice, ...]:
        return tuple(slice(a - first, b - first) for (a, b), (first, _) in zip(region, self.ends, strict=True))

    def parts(self, regions: Regions) -> list[FieldType]:
        """The types of what regions have, of each state."""
        return [kind.replace(field_shape=[b - a for a, b in each]) for each in regions for kind in self.kinds]

    def packed(self, regions: Regions, states: Sequence[Buffer]) -> list[Buffer]:
        """Memory that has the points of regions, until it is asked for again; in the order of the device's queue."""
        if regions not in self._packs:
            leaves = [Leaf(kind) for kind in self.kinds]
            what = program([sliced(Field.of(leaf), self._slices(region)).node for region in regions for leaf in leaves])
            made = {v: self.backend.empty(what.types[v]) for v in what.wanted if v not in what.leaves}
            self._packs[regions] = what, self._compiled(what, self.backend), made
        what, prepared, made = self._packs[regions]
        values = prepared.run(dict(zip(what.leaves, states, strict=True)), made)
        return [values[v] for v in what.wanted]

    def room(self, regions: Regions) -> list[Buffer]:
        """Memory that `place` takes the points of regions from."""
        return self._placings(regions)[1]

    def place(self, regions: Regions, states: Sequence[Buffer]) -> None:
        """Set the points of regions."""
        for n, (placing, part) in enumerate(zip(*self._placings(regions), strict=True)):
            placing.put(states[n % len(states)], part)

    def _placings(self, regions: Regions) -> tuple[list[Placing], list[Buffer]]:
        if regions not in self._places:
            starts = [[each.start for each in self._slices(region)] for region in regions for _ in self.kinds]
            parts = self.parts(regions)
            each = zip(self.kinds * len(regions), parts, starts, strict=True)
            self._places[regions] = [self._placing(*one) for one in each], [self.backend.empty(part) for part in parts]
        return self._places[regions]

    def _placing(self, whole: FieldType, part: FieldType, start: Sequence[int]) -> Placing:
        leaves = [Leaf(whole), Leaf(part), *(Leaf(NUMBER, by_value=True) for _ in start)]
        what = program([placed(*map(Field.of, leaves)).node])
        given = dict(zip(leaves, [None, None, *((n,) for n in start)], strict=True))
        number = {node: v for v, node in what.leaves.items()}
        values = {v: given[node] for node, v in number.items() if isinstance(node, Leaf)}
        return Placing(self._compiled(what, self.backend), values, number[leaves[0]], number[leaves[1]])


def _write_part(whole: Field, part: Field, *start: Field) -> None:
    """Write a part of a field, in its memory; threads are the part's points."""
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
