"""Windows of a ComputeGraph: its states step on a part of their grid, and halo exchange updates the points around it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.base.misspelt import hinted_methods
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.sources import Adjustable, HostArray
from gpuop.engine.evaluate import argument
from gpuop.engine.graphs.bound_graph import BoundGraph
from gpuop.engine.graphs.stepped_graph import SteppedGraph, grid_of, probe_named, reduced_before
from gpuop.engine.graphs.window_regions import Region, WindowRegions, bring_parts, fetch_parts
from gpuop.engine.jit.grid_window import GridWindow, reducing
from gpuop.engine.jit.window_stages import GridCollective
from gpuop.fusion.program import Program, needed_ops
from gpuop.fusion.windows.footprint import Footprint, Place, places
from gpuop.fusion.windows.gather import window_of
from gpuop.fusion.windows.kernel import NUMBER
from gpuop.fusion.windows.program import window_program
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Effect
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node
from gpuop.ir.visit import effects
from gpuop.runtime.base.backend import Array, Buffer, download
from gpuop.runtime.execute import Prepared

Combining = Callable[[Any], Sequence[Any]]  # takes a window's parts, and gives those of all windows


@dataclass(frozen=True, eq=False)
class WindowStage:
    """The compiled program of a window's parts of a stage."""

    joint: Sequence[GridCollective]
    program: Program
    prepared: Prepared

    def parts(self, states: Mapping[int, Buffer], start: Place, stop: Place) -> tuple[Any, ...]:
        """Compute the parts of the points [start, stop)."""
        backend, what = self.prepared.backend, self.program
        arguments = {v: states[v] if v in states else argument(node, backend) for v, node in what.leaves.items()}
        values = self.prepared.run(arguments)
        arrays = iter([download(what.types[v], values[v], backend) for v in what.results])
        return tuple(each.part(arrays, start, stop) for each in self.joint)


def make_known(stage: WindowStage, parts: Sequence[Any], needed: Footprint, leaves: Mapping[Node, Leaf]) -> None:
    """Combine the parts of all windows and set the values of a stage."""
    for each, value in zip(stage.joint, needed.known(parts), strict=True):
        leaf = leaves[each.node]
        assert isinstance(leaf.source, Adjustable)
        leaf.source.set(np.asarray(value, leaf.type.array_dtype).reshape(leaf.type.array_shape))


@dataclass(frozen=True)
class WindowState:
    """A state of a graph, on the whole grid; `parted` is True if windows have parts of it."""

    name: str
    kind: FieldType
    parted: bool


@hinted_methods
class GraphWindow:
    """The points [start, stop) of a graph's states, with the halo of so many steps; made by `graph.window`.

    Args:
        graph: the graph of the states.
        start, stop, steps, combine: as of `graph.window`.
        probed: True if probes can be read.

    Attributes:
        footprint: the needs of the steps.
        ends: for each axis the first point that it has, and the one behind the last; counted from the other end where ends meet.
        left: the steps that its halo still allows before the next `put`.
        states: the graph's states.
        probes: the probes that can be read; True for those that are computed in parts.
    """

    def __init__(
        self,
        graph: SteppedGraph,
        start: Sequence[int],
        stop: Sequence[int],
        steps: int,
        combine: Combining | None,
        probed: bool = True,
    ) -> None:
        self._graph, self._combine = graph, combine
        self.start, self.stop = places(start, stop, grid_of(graph.program))
        self._needs = needs = graph.needs(steps, self.start, self.stop, probed)
        self.footprint = needs.footprint
        self._window = GridWindow.of(self.footprint, self.start, self.stop)
        self.ends: Region = self._window.ends
        self.steps = self.left = steps
        self.backend, self._leaves = graph.backend, dict[int, Node]()
        self.probes = {name: v in needs.halos.cut for name, v in needs.probes.items()}
        what = self._program((*needs.probes.values(), *graph.nexts.values()), graph.nexts)
        what = replace(what, cycle=graph.program.cycle, key=(*what.key, graph.program.cycle))
        prepared = graph.compiled(what, graph.backend)
        leaves = [what.leaves[v] for v in graph.nexts]
        self._bound = BoundGraph(prepared, what, [n for n in leaves if isinstance(n, Leaf)], len(self.probes))
        states = zip(graph.nexts, leaves, strict=True)
        self.states = [WindowState(node.name, graph.program.types[v], v in needs.halos.cut) for v, node in states]
        kinds = [what.types[v] for v, state in zip(graph.nexts, self.states, strict=True) if state.parted]
        self._regions = WindowRegions(self.ends, kinds, graph.backend, graph.compiled)
        self._begin = [np.asarray(leaf.source.read()[0]) for leaf in self._bound.state_leaves.values()]
        self._bound.load(self._begin, 0)
        self._stages = [self._stage(stage) for stage in graph.staged] if needs.reduced else []

    # --- programs -------------------------------------------------------------------------------------------------

    def _program(
        self, results: Sequence[int], retained: Collection[int] = (), collectives: Sequence[GridCollective] = ()
    ) -> Program:
        """The program that computes `results` on the window; the leaves in `retained` stay even if nothing reads them.

        Args:
            collectives: the stage whose parts are computed from `results`.
        """
        needs, window = self._needs, self._window
        halos = needs.halos
        turn = replace(needs.turn, ops=needed_ops(list(needs.turn.ops), tuple(results)), results=tuple(results))
        windowed = window_program(turn, halos, window.shape.of_kernels(halos, self.footprint.periodic))
        if collectives:
            windowed = reducing(windowed, collectives, window.shape)
        used = {*windowed.program.results, *retained, *(v for op in windowed.program.ops for v in op.inputs)}
        leaves: dict[int, Node] = {v: node for v, node in windowed.program.leaves.items() if v in used}
        for v in leaves.keys() & halos.cut if window.shape.cut else ():
            leaves[v] = self._leaf(v, windowed.program.types[v])
        for (name, axis), v in windowed.numbers.items():
            number = np.array(window.number(name, axis), np.int32)
            leaves[v] = Leaf(NUMBER, HostArray(number), by_value=True)
        return replace(windowed.program, leaves=leaves)

    def _leaf(self, value: int, kind: FieldType) -> Node:
        """The window of a field; all programs share it."""
        if value not in self._leaves:
            node = self._needs.turn.leaves[value]
            assert isinstance(node, Leaf)
            array = window_of(self._graph.constant(node), (), self.ends, self.footprint.grid)
            self._leaves[value] = Leaf(kind, HostArray(array), node.by_value, node.name)
        return self._leaves[value]

    def _stage(self, stage: Sequence[tuple[GridCollective, int | None, int]]) -> WindowStage:
        """The program of a stage's parts, of those values that this window needs."""
        needed = [(each, field) for each, _, field in stage if field in self._needs.reduced]
        joint = [each for each, _ in needed]
        what = self._program([field for _, field in needed], collectives=joint)
        return WindowStage(joint, what, self._graph.compiled(what, self.backend))

    # --- steps ----------------------------------------------------------------------------------------------------

    @property
    def tick(self) -> int:
        """Steps since the start."""
        return self._bound.tick or 0

    def step(self, n: int = 1) -> None:
        """Take steps; the halo is then valid for as many steps less.

        Args:
            n: how many; 0 or more.

        Raises:
            SemanticError: more than are `left`.
        """
        if n > self.left:
            raise SemanticError(f"this window has {self.left} steps left, not {n}; `put` the points around it first")
        for _ in range(n):
            if self._needs.waits:
                self._reduce()
            self._bound.advance()
        self.left -= n

    def synchronize(self) -> None:
        """Wait for the device."""
        self.backend.synchronize()

    def read(self, what: Field | str) -> Array:
        """The points [start, stop) of a probe; all of one that is on no grid. It is valid as long as steps are left.

        Args:
            what: a probed Field, or a probe's name.

        Raises:
            SemanticError: it is not probed, or has no windows.
        """
        name = self.name_of(what)
        if name in self._needs.refused:
            raise SemanticError(f"probe {name!r} is not computed in parts of the grid: {self._needs.refused[name]}")
        graph = self._graph
        if reduced_before(graph.program, [graph.probes[name]], graph.reduced):
            self._reduce()
        array = self._inner(self._bound.read(list(self.probes).index(name)), self.probes[name])
        kind = graph.fields[name].type
        return array.reshape(
            (*array.shape[: len(self.start)], *kind.tensor_shape) if self.probes[name] else kind.array_shape
        )

    def _reduce(self) -> None:
        """Compute the collective values of the current states, from the parts of all windows."""
        if self._combine is None:
            first = self._stages[0].joint[0]
            raise SemanticError(
                f"{first}: a window computes a part of it; give `combine=`, a function that gives the parts of all windows"
            )
        self._bound.settle()
        for stage in self._stages:
            buffers = self._bound.now[1].buffers
            states = {v: buffers[v] for v in self._bound.state_leaves}
            parts = self._combine(stage.parts(states, self.start, self.stop))
            make_known(stage, parts, self.footprint, self._graph.stages.known)
        self._bound.evaluated = None

    def name_of(self, what: Field | str) -> str:
        """The name of a probe.

        Args:
            what: a probed Field, or a probe's name.
        """
        return probe_named(what, self._graph.fields)

    def values(self) -> list[Array]:
        """The points [start, stop) of each state; all of a state that is on no grid."""
        pairs = zip(self._bound.states(), self.states, strict=True)
        return [self._inner(array, state.parted) for (_, array), state in pairs]

    def load(self, states: Sequence[Array], tick: int) -> None:
        """Take states at a tick.

        Args:
            states: of the whole grid, in the order of `self.states`.
            tick: steps since the start.
        """
        grid = self.footprint.grid
        pairs = zip(states, self.states, strict=True)
        self._bound.load([window_of(a, (), self.ends, grid) if state.parted else a for a, state in pairs], tick)
        self.left = self.steps

    def reset(self) -> None:
        """Return to tick 0."""
        self._bound.load(self._begin, 0)
        self.left = self.steps

    def _inner(self, array: Array, parted: bool) -> Array:
        """The points [start, stop) of a value on the window."""
        return array[self._window.inner] if parted else array

    # --- regions --------------------------------------------------------------------------------------------------

    @property
    def _places(self) -> list[Buffer]:
        """The current buffers of the states."""
        self._bound.settle()
        buffers = self._bound.now[1].buffers
        return [buffers[v] for v in self._bound.state_leaves]

    @property
    def _buffers(self) -> list[Buffer]:
        """The current buffers of the states on the grid."""
        return [buffer for buffer, state in zip(self._places, self.states, strict=True) if state.parted]

    def parts(self, regions: Sequence[Region]) -> list[FieldType]:
        """The types of the parts of regions: for each region, for each state on the grid.

        Args:
            regions: of the grid: for each axis the first point and the one behind the last.
        """
        return self._regions.parts(tuple(regions))

    def packed(self, regions: Sequence[Region]) -> list[Buffer]:
        """Memory of the device with the points of regions, in the order of `parts`; the next call for them overwrites it.

        Args:
            regions: of the grid: for each axis the first point and the one behind the last.
        """
        return self._regions.packed(tuple(regions), self._buffers)

    def room(self, regions: Sequence[Region]) -> list[Buffer]:
        """Memory of the device for the points of regions, in the order of `parts`, for `place`.

        Args:
            regions: of the grid: for each axis the first point and the one behind the last.
        """
        return self._regions.room(tuple(regions))

    def place(self, regions: Sequence[Region]) -> None:
        """Set the points of regions, which are the whole halo, to the content of their room.

        Args:
            regions: of the grid: for each axis the first point and the one behind the last.
        """
        self._regions.place(tuple(regions), self._buffers)
        self._bound.evaluated = None
        self.left = self.steps

    def take(self, regions: Sequence[Region], out: Array) -> None:
        """Copy the points of regions to the host, packed on the device: the bytes of all parts, one after the other.

        Args:
            regions: of the grid: for each axis the first point and the one behind the last.
            out: gets the bytes.
        """
        backend = self.backend
        fetch_parts(backend, self.parts(regions), self.packed(regions), out)
        backend.wait(backend.record())

    def put(self, regions: Sequence[Region], values: Array) -> None:
        """Set the points of regions, which are the whole halo, to the bytes of `take`.

        Args:
            regions: of the grid: for each axis the first point and the one behind the last.
            values: those bytes.
        """
        backend = self.backend
        bring_parts(backend, self.parts(regions), self.room(regions), values)
        brought = backend.record()
        self.place(regions)
        backend.wait(brought)


class WindowFace(GraphWindow):
    """Points of a window with the halo of its steps, which the window has."""

    def __init__(self, window: GraphWindow, region: Region) -> None:
        start, stop = zip(*region, strict=True)
        super().__init__(window._graph, start, stop, window.steps, None, probed=False)
        self.window = window

    def run_ahead(self) -> None:
        """Enqueue these points as they are after the window's next steps."""
        window, regions = self.window, iter(self.window.packed([self.ends]))
        places = zip(window._places, self.states, strict=True)
        self._bound.copy_states([next(regions) if state.parted else place for place, state in places], window.tick)
        self.left = self.steps
        self.step(self.steps)


class WindowFaces:
    """Regions of a window that other windows need after its steps; one within another is computed with it.

    Args:
        window: its steps may be computed twice.
        regions: of its points.
    """

    def __init__(self, window: GraphWindow, regions: Collection[Region]) -> None:
        outer = {r for r in regions if not any(r != other and _inside(r, other) for other in regions)}
        self.faces = {region: WindowFace(window, region) for region in sorted(outer)}
        self._of = {r: next(face for o, face in self.faces.items() if _inside(r, o)) for r in regions}

    def run_ahead(self) -> None:
        """Enqueue all faces as they are after the window's next steps."""
        for face in self.faces.values():
            face.run_ahead()

    def packed(self, regions: Collection[Region]) -> list[Buffer]:
        """Memory of the device with the points of regions, as of `GraphWindow.packed`."""
        return [buffer for region in regions for buffer in self._of[region].packed([region])]


def repeatable(window: GraphWindow) -> bool:
    """Return whether steps can be computed twice: they have no effects and wait for no reduction over the grid."""
    needs = window._needs
    kernels = [op.kernel for op in needs.turn.ops]
    return not needs.waits and all(isinstance(k, Kernel) and not effects(k.body) & Effect.HOST for k in kernels)


def _inside(region: Region, other: Region) -> bool:
    return all(a <= first and last <= b for (first, last), (a, b) in zip(region, other, strict=True))
