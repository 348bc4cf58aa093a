"""A ComputeGraph in the form that windows use: its reductions over the grid, and the needs of a window of its states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.sources import Adjustable
from gpuop.engine.evaluate import argument
from gpuop.engine.graphs.definition import GraphDefinition, next_values
from gpuop.engine.graphs.stepper import times
from gpuop.engine.graphs.window_regions import Compiling
from gpuop.engine.interop import own
from gpuop.engine.jit.grid_window import cut_axes
from gpuop.engine.jit.window_stages import GridCollective, StageUpdate, collective_stages
from gpuop.fusion.program import Program, needed_ops, program
from gpuop.fusion.windows.footprint import Footprint, Place, iteration_of, of_steps
from gpuop.fusion.windows.halo_inference import ProgramHalo
from gpuop.ir.types import Shape
from gpuop.ir.values import Leaf, Node, Result
from gpuop.ops.elementwise.algebra import copied
from gpuop.runtime.base.backend import Array, Backend, download


def probe_named(what: Field | str, probes: Mapping[str, Field]) -> str:
    """The name of a probe, by its field or name.

    Raises:
        SemanticError: it is not probed.
    """
    node = getattr(what, "node", None)
    name = what if isinstance(what, str) else next((name for name, f in probes.items() if f.node == node), None)
    if name is None or name not in probes:
        have = ", ".join(map(repr, probes)) or "none"
        raise SemanticError(f"{what!r} is not probed (probes: {have}); call `graph.probe(field)` inside the `with`")
    return name


class GraphStages:
    """The collective values of a graph, by stage: reductions over the grid, and updates. A stage is known before the next begins.

    Attributes:
        known: the leaf that stands for each of them in the program.
    """

    def __init__(self, outputs: Sequence[Node], grid: Shape) -> None:
        self.stages = collective_stages(outputs, tuple(grid), lambda node: node.type.field_shape == grid)
        nodes = [each.node for stage in self.stages for each in stage]
        self.known: dict[Node, Leaf] = {node: Leaf(node.type, _no_value(node), name=node.name) for node in nodes}

    def program(self, outputs: Sequence[Node], nexts: Sequence[Node]) -> Program:
        """The program of the seen values, of the values that windows compute for stages, in order, and of next values of states."""
        fields = [_computed(each) for stage in self.stages for each in stage]
        copies = [copied(Field.of(node)).node if node in self.known else node for node in nexts]
        what = program([*outputs, *fields, *copies], self.known)
        return replace(what, leaves={v: self.known.get(node, node) for v, node in what.leaves.items()})

    def parts(self, fields: Iterable[int]) -> set[int]:
        """The values among `fields`, in the order of stages, that are parts as they are: those of updates."""
        joint = [each for stage in self.stages for each in stage]
        return {v for v, each in zip(fields, joint, strict=False) if isinstance(each, StageUpdate)}

    def leaves(self, what: Program) -> set[int]:
        """The leaves of a program that stand for collective values."""
        leaves = set(self.known.values())
        return {v for v, node in what.leaves.items() if node in leaves}


def _computed(each: GridCollective) -> Node:
    """The node that windows compute; for an update a copy of its call, because a leaf replaces the call itself elsewhere."""
    if isinstance(each, StageUpdate):
        return Result(replace(each.node.call), each.node.index)
    return own(each.field.node)


def _no_value(node: Result) -> Adjustable:
    """The source of a value that is not known yet."""
    return Adjustable(node.type, np.zeros(node.type.array_shape, node.type.array_dtype))


NO_STAGES = GraphStages([], Shape())  # for graphs that compute all of their grid


def reduced_before(what: Program, values: Iterable[int], fields: Mapping[int, int]) -> list[int]:
    """The reduced values that others depend on.

    Args:
        fields: leaves that stand for collective values, each with the value that windows compute.
    """
    reduced: dict[int, None] = {}
    results = set(values)
    while results:
        used = results.union(*(op.inputs for op in needed_ops(list(what.ops), tuple(results))))
        results = {fields[v] for v in used if v in fields}.difference(reduced)
        reduced.update(dict.fromkeys(results))
    return list(reduced)


@dataclass(frozen=True, eq=False)
class SteppedGraph:
    """The interface of a graph that windows use.

    Attributes:
        program: its results are the probed values, then the next values of states.
        fields: the probed fields, by name.
    """

    program: Program
    fields: Mapping[str, Field]
    backend: Backend
    compiled: Compiling
    stages: GraphStages

    @staticmethod
    def of(definition: GraphDefinition, step: Program, backend: Backend, compiled: Compiling) -> SteppedGraph:
        """The form of a graph for windows; SemanticError if it has none.

        Args:
            step: the program of a step on the whole grid.
        """
        probed = [own(f.node) for f in definition.probes.values()]
        stages = GraphStages([*probed, *next_values(definition.states)], Shape(grid_of(step)))
        what = definition.program(stages)
        if any(len(field.type.field_shape) > 3 for field in definition.states.values()):
            raise SemanticError("windows are of states on grids of up to 3 axes")
        return SteppedGraph(what, definition.probes, backend, compiled, stages)

    @property
    def probes(self) -> dict[str, int]:
        """The values of the probes."""
        return dict(zip(self.fields, self.program.results, strict=False))

    @property
    def nexts(self) -> dict[int, int]:
        assert self.program.cycle is not None
        return dict(self.program.cycle.nexts)

    @cached_property
    def staged(self) -> list[list[tuple[GridCollective, int | None, int]]]:
        """The collective values by stage, each with its leaf, if one stands for it, and the value that windows compute."""
        numbers = {node: v for v, node in self.program.leaves.items()}
        fields, stage_leaves = iter(self.program.results[len(self.fields) :]), self.stages.known
        return [
            [(each, numbers.get(stage_leaves[each.node]), next(fields)) for each in stage]
            for stage in self.stages.stages
        ]

    @property
    def reduced(self) -> dict[int, int]:
        """The leaves that stand for collective values, each with the value that windows compute."""
        return {leaf: field for stage in self.staged for _, leaf, field in stage if leaf is not None}

    def constant(self, node: Leaf) -> Array:
        """The values of a constant field on the grid; a Parameter is never on a grid."""
        assert node.source.version is None
        if not node.source.borrowed:
            return np.asarray(node.source.read()[0])
        what = program([own(node)])
        arguments = {v: argument(leaf, self.backend) for v, leaf in what.leaves.items()}
        return download(node.type, self.compiled(what, self.backend).run(arguments)[what.results[0]], self.backend)

    def needs(self, steps: int, start: Place, stop: Place, probed: bool) -> WindowNeeds:
        """The needs of a window: of its states and, if it reads them, of all probes."""
        nexts, reduced, what = self.nexts, self.reduced, self.program
        stepping = reduced_before(what, nexts.values(), reduced)
        needs = WindowNeeds(*self._of(stepping, steps), stepping, {}, {}, bool(stepping))
        needs.footprint.window(start, stop)  # refuses an axis that must be whole
        cut = cut_axes(start, stop, needs.footprint.grid)
        for name, value in self.probes.items() if probed else ():
            before = reduced_before(what, [value], reduced)
            outputs = [*needs.reduced, *(v for v in before if v not in needs.reduced)]
            more = self._of([*outputs, *needs.probes.values(), value], steps)
            reason = next((why for axis, why in more[2].whole.items() if axis in cut), "")
            if reason:
                needs.refused[name] = reason
            else:
                needs = replace(needs, turn=more[0], halos=more[1], footprint=more[2], reduced=outputs)
                needs.probes[name] = value
        return needs

    def _of(self, outputs: Sequence[int], steps: int) -> tuple[Program, ProgramHalo, Footprint]:
        """An iteration that computes other values too, and its needs."""
        what, stages = self.program, self.stages
        turn, parts = iteration_of(what, self.nexts, outputs), stages.parts(what.results[len(self.fields) :])
        return turn, *of_steps(turn, list(self.nexts), steps, parts, stages.leaves(what))


@dataclass(frozen=True)
class WindowNeeds:
    """The needs of a window.

    Attributes:
        turn: the program of an iteration: next values of states, values to reduce, and probes.
        reduced: values that are reduced over the grid.
        probes: probes that can be read.
        refused: probes that cannot be read, with reasons.
        waits: True if a step takes values that are reduced.
    """

    turn: Program
    halos: ProgramHalo
    footprint: Footprint
    reduced: list[int]
    probes: dict[str, int]
    refused: dict[str, str]
    waits: bool


def grid_of(what: Program) -> Place:
    """The grid of a program that is repeated: that of its largest state."""
    assert what.cycle is not None
    nexts = dict(what.cycle.nexts)
    return of_steps(iteration_of(what, nexts), list(nexts), 0)[1].grid


def footprint_of(definition: GraphDefinition, step: Program, steps: int) -> Footprint:
    """The footprint of steps of a graph; `step` is the program of one on the whole grid."""
    stages = GraphStages(next_values(definition.states), Shape(grid_of(step)))
    what = definition.program(stages)
    assert what.cycle is not None
    states, outputs = dict(what.cycle.nexts), len(definition.probes) + len(definition.actuators)
    fields = what.results[outputs : len(what.results) - len(definition.states)]
    turn, parts = iteration_of(what, states, fields), stages.parts(fields)
    footprint = of_steps(turn, list(states), times(steps), parts, stages.leaves(what))[1]
    return replace(footprint, stages=tuple(tuple(map(str, stage)) for stage in stages.stages))
