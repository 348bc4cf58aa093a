"""Points of states on a device: taken to the host, and put back, without the rest of the states."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.kinds_of_field import is_big_tensor
from gpuop.dsl.operators.operator import Operator
from gpuop.fusion.program import Program, program
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf
from gpuop.ops.gather import own_place
from gpuop.ops.slicing import sliced
from gpuop.runtime.base.backend import Array, Backend, Buffer, download
from gpuop.runtime.base.host_arrays import planes_of
from gpuop.runtime.execute import Prepared
from gpuop.windows.windowed_kernel import NUMBER

Region = tuple[tuple[int, int], ...]  # for each axis the first point, and the one behind the last
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
        self._packs: dict[tuple[Region, ...], tuple[Program, Prepared]] = {}
        self._puts: dict[tuple[Region, ...], list[tuple[FieldType, Placing]]] = {}

    def _slices(self, region: Region) -> tuple[slice, ...]:
        return tuple(slice(a - first, b - first) for (a, b), (first, _) in zip(region, self.ends, strict=True))

    def _parts(self, regions: Sequence[Region]) -> list[FieldType]:
        """The types of what regions have, of each state."""
        return [kind.replace(field_shape=[b - a for a, b in each]) for each in regions for kind in self.kinds]

    def nbytes(self, regions: Sequence[Region]) -> int:
        return sum(map(_nbytes, self._parts(regions)))

    def take(self, regions: tuple[Region, ...], states: Sequence[Buffer]) -> Array:
        """The bytes of regions, of each state after the other; waits."""
        if regions not in self._packs:
            leaves = [Leaf(kind) for kind in self.kinds]
            what = program([sliced(Field.of(leaf), self._slices(region)).node for region in regions for leaf in leaves])
            self._packs[regions] = what, self._compiled(what, self.backend)
        what, prepared = self._packs[regions]
        values = prepared.run(dict(zip(what.leaves, states, strict=True)))
        arrays = (download(what.types[v], values[v], self.backend) for v in what.wanted)
        return np.concatenate(
            [np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in arrays] or [np.empty(0, np.uint8)]
        )

    def put(self, regions: tuple[Region, ...], states: Sequence[Buffer], taken: Array) -> None:
        """Set the points of regions to what `take` gave."""
        if regions not in self._puts:
            starts = [[each.start for each in self._slices(region)] for region in regions for _ in self.kinds]
            each = zip(self.kinds * len(regions), self._parts(regions), starts, strict=True)
            self._puts[regions] = [(part, self._placing(kind, part, start)) for kind, part, start in each]
        at = 0
        for n, (kind, place) in enumerate(self._puts[regions]):
            end = at + _nbytes(kind)
            array = taken[at:end].view(kind.array_dtype).reshape(kind.array_shape)
            place.put(states[n % len(states)], self.backend.upload(kind, planes_of(kind, array)))
            at = end

    def _placing(self, whole: FieldType, part: FieldType, start: Sequence[int]) -> Placing:
        leaves = [Leaf(whole), Leaf(part), *(Leaf(NUMBER, by_value=True) for _ in start)]
        what = program([placed(*map(Field.of, leaves)).node])
        given = dict(zip(leaves, [None, None, *((n,) for n in start)], strict=True))
        number = {node: v for v, node in what.leaves.items()}
        values = {v: given[node] for node, v in number.items() if isinstance(node, Leaf)}
        return Placing(self._compiled(what, self.backend), values, number[leaves[0]], number[leaves[1]])


def _nbytes(kind: FieldType) -> int:
    return math.prod(kind.array_shape) * kind.array_dtype.itemsize


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
