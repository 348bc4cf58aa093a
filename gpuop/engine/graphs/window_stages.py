"""Stages of graphs that step in windows: the parts of reductions and updates, and the values that they combine to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.sources import Adjustable
from gpuop.engine.evaluate import argument
from gpuop.engine.interop import own
from gpuop.engine.jit.window_stages import GridCollective, StageUpdate, collective_stages
from gpuop.fusion.program import Program, needed_ops, program
from gpuop.fusion.windows.footprint import Footprint, Place
from gpuop.ir.types import Shape
from gpuop.ir.values import Leaf, Node, Result
from gpuop.ops.elementwise.algebra import copied
from gpuop.runtime.base.backend import Buffer, download
from gpuop.runtime.execute import Prepared

Combining = Callable[[Any], Sequence[Any]]  # takes a window's parts, and gives those of all windows


class GraphStages:
    """The collective values of a graph, by stage: reductions over the grid, and updates. A stage is known before the next begins.

    Attributes:
        known: the leaf that stands for each of them in the program.
    """

    def __init__(self, wanted: Sequence[Node], grid: Shape) -> None:
        self.stages = collective_stages(wanted, tuple(grid), lambda node: node.type.field_shape == grid)
        nodes = [each.node for stage in self.stages for each in stage]
        self.known: dict[Node, Leaf] = {node: Leaf(node.type, _nothing(node), name=node.name) for node in nodes}

    def program(self, seen: Sequence[Node], nexts: Sequence[Node]) -> Program:
        """The program of the seen values, of the values that windows compute for stages, in order, and of next values of states."""
        fields = [_computed(each) for stage in self.stages for each in stage]
        taken = [copied(Field.of(node)).node if node in self.known else node for node in nexts]
        what = program([*seen, *fields, *taken], self.known)
        return replace(what, leaves={v: self.known.get(node, node) for v, node in what.leaves.items()})

    def parts(self, fields: Iterable[int]) -> set[int]:
        """The values among `fields`, in the order of stages, that are parts as they are: those of updates."""
        joint = [each for stage in self.stages for each in stage]
        return {v for v, each in zip(fields, joint, strict=False) if isinstance(each, StageUpdate)}

    def leaves(self, what: Program) -> set[int]:
        """The leaves of a program that stand for collective values."""
        known = set(self.known.values())
        return {v for v, node in what.leaves.items() if node in known}


def _computed(each: GridCollective) -> Node:
    """The node that windows compute; for an update a copy of its call, because a leaf replaces the call itself elsewhere."""
    if isinstance(each, StageUpdate):
        return Result(replace(each.node.call), each.node.index)
    return own(each.field.node)


def _nothing(node: Result) -> Adjustable:
    """The source of a value that is not known yet."""
    return Adjustable(node.type, np.zeros(node.type.array_shape, node.type.array_dtype))


NO_STAGES = GraphStages([], Shape())  # for graphs that compute all of their grid


def reduced_before(what: Program, values: Iterable[int], fields: Mapping[int, int]) -> list[int]:
    """The reduced values that others depend on.

    Args:
        fields: leaves that stand for collective values, each with the value that windows compute.
    """
    found: dict[int, None] = {}
    wanted = set(values)
    while wanted:
        used = wanted.union(*(op.inputs for op in needed_ops(list(what.ops), tuple(wanted))))
        wanted = {fields[v] for v in used if v in fields}.difference(found)
        found.update(dict.fromkeys(wanted))
    return list(found)


@dataclass(frozen=True, eq=False)
class WindowStage:
    """The compiled program of a window's parts of a stage."""

    joint: Sequence[GridCollective]
    program: Program
    prepared: Prepared

    def parts(self, states: Mapping[int, Buffer], start: Place, stop: Place) -> tuple[Any, ...]:
        """Compute the parts of the points [start, stop)."""
        backend, what = self.prepared.backend, self.program
        given = {v: states[v] if v in states else argument(node, backend) for v, node in what.leaves.items()}
        values = self.prepared.run(given)
        arrays = iter([download(what.types[v], values[v], backend) for v in what.wanted])
        return tuple(each.part(arrays, start, stop) for each in self.joint)


def make_known(stage: WindowStage, parts: Sequence[Any], needed: Footprint, known: Mapping[Node, Leaf]) -> None:
    """Combine the parts of all windows and set the values of a stage."""
    for each, value in zip(stage.joint, needed.known(parts), strict=True):
        leaf = known[each.node]
        assert isinstance(leaf.source, Adjustable)
        leaf.source.set(np.asarray(value, leaf.type.array_dtype).reshape(leaf.type.array_shape))
