"""The states of a ComputeGraph on a window of their grid: they step there, and their margins are brought up to date by others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.sources import HostArray
from gpuop.errors import SemanticError
from gpuop.fusion.program import Program
from gpuop.graphs.bound_graph import BoundGraph
from gpuop.graphs.window_regions import Compiling, Region, WindowRegions
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node
from gpuop.runtime.base.backend import Array, Backend, Buffer
from gpuop.windows.footprint import Footprint, Place, of_steps, places, turn_of
from gpuop.windows.pieces import window_of
from gpuop.windows.surroundings import Surroundings
from gpuop.windows.windowed_kernel import NUMBER, WindowOf
from gpuop.windows.windowed_program import on_window


def probe_named(what: Field | str, probes: Mapping[str, Field]) -> str:
    """The name of what is probed.

    Raises:
        SemanticError: it is not probed.
    """
    node = getattr(what, "node", None)
    name = what if isinstance(what, str) else next((name for name, f in probes.items() if f.node == node), None)
    if name is None or name not in probes:
        have = ", ".join(map(repr, probes)) or "none"
        raise SemanticError(f"{what!r} is not probed (probes: {have}); call `graph.probe(field)` inside the `with`")
    return name


@dataclass(frozen=True, eq=False)
class SteppedGraph:
    """What windows ask of a graph.

    Attributes:
        program: wants what is probed, and then what states take next.
        fields: what is probed, by name.
    """

    program: Program
    fields: Mapping[str, Field]
    backend: Backend
    compiled: Compiling

    @property
    def probes(self) -> dict[str, int]:
        """The values of what is probed."""
        return dict(zip(self.fields, self.program.wanted, strict=False))

    @property
    def nexts(self) -> dict[int, int]:
        assert self.program.cycle is not None
        return dict(self.program.cycle.nexts)

    def needs(self, steps: int, start: Place, stop: Place) -> tuple[Program, Surroundings, Footprint, dict[str, str]]:
        """What a window needs, of states and all that is probed; and which probes are not computed in windows, with reasons."""
        nexts, refused = self.nexts, dict[str, str]()
        turn = turn_of(self.program, nexts)
        found, footprint = of_steps(turn, list(nexts), steps)
        footprint.window(start, stop)  # refuses what must be whole
        cut = cut_axes(start, stop, footprint.grid)
        seen: list[int] = []
        for name, value in self.probes.items():
            more = turn_of(self.program, nexts, [*seen, value])
            around, reach = of_steps(more, list(nexts), steps)
            reason = next((why for axis, why in reach.whole.items() if axis in cut), "")
            if reason:
                refused[name] = reason
            else:
                seen.append(value)
                turn, found, footprint = more, around, reach
        return turn, found, footprint, refused


@dataclass(frozen=True)
class WindowState:
    """A state of a graph, on the whole grid; `parted`: whether windows have parts of it."""

    name: str
    kind: FieldType
    parted: bool


class GraphWindow:
    """The points [start, stop) of a graph's states, with as much around them as so many steps need: what `graph.window` gives.

    Args:
        graph: what it is a window of.
        start, stop, steps: as of `graph.window`.

    Attributes:
        footprint: what the steps need.
        ends: for each axis the first point that it has, and the one behind the last; counted from the other end where ends meet.
        left: how many steps the points around it allow before they are to be `put` again.
        states: the graph's states.
        probes: what can be read; whether it is computed in parts.
    """

    def __init__(self, graph: SteppedGraph, start: Sequence[int], stop: Sequence[int], steps: int) -> None:
        grid = _grid_of(graph)
        self.start, self.stop = places(start, stop, grid)
        turn, found, self.footprint, self._refused = graph.needs(steps, self.start, self.stop)
        self.ends: Region = self.footprint.window(self.start, self.stop)
        self.steps = self.left = steps
        self.backend = graph.backend
        self._fields = graph.fields
        self.probes = {name: v in found.cut for name, v in graph.probes.items() if name not in self._refused}
        what = self._program(graph, turn, found, cut_axes(self.start, self.stop, grid))
        prepared = graph.compiled(what, graph.backend)
        leaves = [what.leaves[v] for v in graph.nexts]
        self._bound = BoundGraph(prepared, what, [n for n in leaves if isinstance(n, Leaf)], len(self.probes))
        states = zip(graph.nexts, leaves, strict=True)
        self.states = [WindowState(node.name, graph.program.types[v], v in found.cut) for v, node in states]
        kinds = [what.types[v] for v, state in zip(graph.nexts, self.states, strict=True) if state.parted]
        self._regions = WindowRegions(self.ends, kinds, graph.backend, graph.compiled)
        self._begin = [np.asarray(leaf.source.read()[0]) for leaf in self._bound.state_leaves.values()]
        self._bound.load(self._begin, 0)

    # --- the program ----------------------------------------------------------------------------------------------

    def _program(self, graph: SteppedGraph, turn: Program, found: Surroundings, cut: frozenset[int]) -> Program:
        """The program on the window, whose leaves have its points."""
        whole, nexts = self.footprint.grid, graph.nexts
        seen = tuple(graph.probes[name] for name in self.probes)
        turn = replace(turn, wanted=(*seen, *nexts.values()))
        extents = tuple(b - a for a, b in self.ends)
        of = WindowOf(found.grid, type(found.grid)(extents), cut, cut & frozenset(self.footprint.periodic))
        made = on_window(turn, found, of)
        used = {*made.program.wanted, *nexts, *(v for op in made.program.ops for v in op.inputs)}
        leaves: dict[int, Node] = {v: node for v, node in made.program.leaves.items() if v in used}
        for v in leaves.keys() & found.cut if cut else ():
            node = turn.leaves[v]
            assert isinstance(node, Leaf)
            array = window_of(np.asarray(node.source.read()[0]), (), self.ends, whole)
            leaves[v] = Leaf(made.program.types[v], HostArray(array), node.by_value, node.name)
        for (name, axis), v in made.numbers.items():
            first, n = self.ends[axis][0], whole[axis]
            place = {"origin": first % n, "first": self.start[axis] - first, "last": self.stop[axis] - first}
            leaves[v] = Leaf(NUMBER, HostArray(np.array(place[name], np.int32)), by_value=True)
        cycle = graph.program.cycle
        return replace(made.program, leaves=leaves, cycle=cycle, key=(*made.program.key, cycle))

    # --- steps ----------------------------------------------------------------------------------------------------

    @property
    def tick(self) -> int:
        """Steps since the start."""
        return self._bound.tick or 0

    def step(self, n: int = 1) -> None:
        """Take steps; points around [start, stop) are then right for as many steps less.

        Args:
            n: how many; 0 or more.

        Raises:
            SemanticError: more than are `left`.
        """
        if n > self.left:
            raise SemanticError(f"this window has {self.left} steps left, not {n}; `put` the points around it first")
        for _ in range(n):
            self._bound.advance()
        self.left -= n

    def synchronize(self) -> None:
        """Wait for the device."""
        self.backend.synchronize()

    def read(self, what: Field | str) -> Array:
        """The points [start, stop) of what is probed; all of what is on no grid. It is right as long as steps are left.

        Args:
            what: a probed Field, or a probe's name.

        Raises:
            SemanticError: it is not probed, or has no windows.
        """
        name = self.name_of(what)
        if name in self._refused:
            raise SemanticError(f"probe {name!r} is not computed in parts of the grid: {self._refused[name]}")
        return self._inner(self._bound.read(list(self.probes).index(name)), self.probes[name])

    def name_of(self, what: Field | str) -> str:
        """The name of what is probed.

        Args:
            what: a probed Field, or a probe's name.
        """
        return probe_named(what, self._fields)

    def values(self) -> list[Array]:
        """The points [start, stop) of each state; all of what is on no grid."""
        found = zip(self._bound.states(), self.states, strict=True)
        return [self._inner(array, state.parted) for (_, array), state in found]

    def load(self, states: Sequence[Array], tick: int) -> None:
        """Take states at a tick.

        Args:
            states: of the whole grid, in the order of `self.states`.
            tick: steps since the start.
        """
        grid = self.footprint.grid
        given = zip(states, self.states, strict=True)
        self._bound.load([window_of(a, (), self.ends, grid) if state.parted else a for a, state in given], tick)
        self.left = self.steps

    def reset(self) -> None:
        """Be at tick 0 again."""
        self._bound.load(self._begin, 0)
        self.left = self.steps

    def _inner(self, array: Array, parted: bool) -> Array:
        """The points that are wanted, of a value on the window."""
        ends = zip(self.start, self.stop, self.ends, strict=True)
        return array[tuple(slice(a - first, b - first) for a, b, (first, _) in ends)] if parted else array

    # --- regions --------------------------------------------------------------------------------------------------

    @property
    def _buffers(self) -> list[Buffer]:
        """Where the states on the grid are now."""
        self._bound.settle()
        buffers = self._bound.now[1].buffers
        return [buffers[v] for v, state in zip(self._bound.state_leaves, self.states, strict=True) if state.parted]

    def parts(self, regions: Sequence[Region]) -> list[FieldType]:
        """The types of what regions have: of each region, of each state on the grid.

        Args:
            regions: of the grid: for each axis the first point and the one behind the last.
        """
        return self._regions.parts(tuple(regions))

    def packed(self, regions: Sequence[Region]) -> list[Buffer]:
        """Memory of the device with the points of regions, as `parts` has them; it is another's when it is asked for again.

        Args:
            regions: of the grid: for each axis the first point and the one behind the last.
        """
        return self._regions.packed(tuple(regions), self._buffers)

    def room(self, regions: Sequence[Region]) -> list[Buffer]:
        """Memory of the device for the points of regions, as `parts` has them, for `place`.

        Args:
            regions: of the grid: for each axis the first point and the one behind the last.
        """
        return self._regions.room(tuple(regions))

    def place(self, regions: Sequence[Region]) -> None:
        """Set the points of regions, all that are around [start, stop), to what is in their room.

        Args:
            regions: of the grid: for each axis the first point and the one behind the last.
        """
        self._regions.place(tuple(regions), self._buffers)
        self._bound.evaluated = None
        self.left = self.steps

    def take(self, regions: Sequence[Region], out: Array) -> None:
        """Bring the points of regions to the host, put together on the device: bytes of the parts, one after the other.

        Args:
            regions: of the grid: for each axis the first point and the one behind the last.
            out: gets them.
        """
        backend, pieces = self.backend, self._pieces(regions, out)
        for (kind, planes), buffer in zip(pieces, self.packed(regions), strict=True):
            if backend.only_enqueues:
                backend.fetch(kind, buffer, planes)
            else:
                planes[...] = backend.download(kind, buffer)
        backend.wait(backend.record())

    def put(self, regions: Sequence[Region], taken: Array) -> None:
        """Set the points of regions, all that are around [start, stop), to bytes that `take` has given.

        Args:
            regions: of the grid: for each axis the first point and the one behind the last.
            taken: those bytes.
        """
        for (_, planes), buffer in zip(self._pieces(regions, taken), self.room(regions), strict=True):
            self.backend.write(buffer, planes)
        self.place(regions)

    def _pieces(self, regions: Sequence[Region], memory: Array) -> list[tuple[FieldType, Array]]:
        """Planes of the parts, that lie one after the other."""
        parts, at, found = self.parts(regions), 0, []
        for kind in parts:
            planes = memory[at : at + kind.nbytes].view(kind.storage.numpy)
            found.append((kind, planes.reshape(kind.planes, kind.field_shape.points)))
            at += kind.nbytes
        return found


def cut_axes(start: Place, stop: Place, grid: Place) -> frozenset[int]:
    """The axes of which a window has not all points."""
    return frozenset(axis for axis, ends in enumerate(zip(start, stop, strict=True)) if ends != (0, grid[axis]))


def _grid_of(graph: SteppedGraph) -> Place:
    return of_steps(turn_of(graph.program, graph.nexts), list(graph.nexts), 0)[1].grid
