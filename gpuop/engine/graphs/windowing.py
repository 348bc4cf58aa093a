"""Footprints and windows of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.engine.evaluate import prepare
from gpuop.engine.graphs.next_values import next_values
from gpuop.engine.graphs.saving import Saving
from gpuop.engine.graphs.stepped_graph import SteppedGraph, grid_of
from gpuop.engine.graphs.stepper import times
from gpuop.engine.graphs.window import GraphWindow
from gpuop.engine.graphs.window_stages import Combining, GraphStages
from gpuop.engine.interop import own
from gpuop.fusion.program import Program
from gpuop.fusion.windows.footprint import Footprint, iteration_of, of_steps
from gpuop.ir.types import Shape
from gpuop.ir.values import Leaf
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.execute import Prepared


class GraphWindowing(Saving):
    """Footprints and windows of a graph."""

    _states: dict[Leaf, Field]
    _probes: dict[str, Field]

    def _stages(self, seen: bool = True) -> GraphStages:
        """The stages of the next values of states, and of probes if `seen`."""
        probed = [own(f.node) for f in self._probes.values()] if seen else []
        return GraphStages([*probed, *next_values(self._states)], Shape(grid_of(self._program())))

    def footprint(self, steps: int = 1) -> Footprint:
        """The halo of so many steps: how far around a point of the grid states depend on states.

        The grid is that of the largest state. Nothing runs, and probes do not count. A next value that is reduced over the
        grid, or updated by atomic operations, is a stage. Constants and sensors' frames on the grid are needed as far too.

        Args:
            steps: 0 or more.

        Returns:
            A Footprint, as of `Pipeline.footprint`.

        Raises:
            SemanticError: `steps` is negative, or the graph is not defined yet.
        """
        stages = self._stages(False)
        what = self._program(stages)
        assert what.cycle is not None
        states, seen = dict(what.cycle.nexts), len(self._probes) + len(self._actuators)
        fields = what.wanted[seen : len(what.wanted) - len(self._states)]
        turn, parts = iteration_of(what, states, fields), stages.parts(fields)
        footprint = of_steps(turn, list(states), times(steps), parts, stages.leaves(what))[1]
        return replace(footprint, stages=tuple(tuple(map(str, stage)) for stage in stages.stages))

    def window(
        self, start: Sequence[int], stop: Sequence[int], steps: int = 1, combine: Combining | None = None
    ) -> GraphWindow:
        """The states' points [start, stop), on the graph's device, in memory of their own; they step with the bits of the whole.

        Each window has the halo of `footprint(steps)` and of its probes. After so many steps the halo is exchanged: `take` from
        other windows, and `put`; `gpuop.mpi.Domain` does so.

        Args:
            start, stop: for each axis of the grid the first point, and the one behind the last.
            steps: how many steps are taken between; 1 or more.
            combine: for values that are reduced over the grid, or updated by atomic operations: takes this window's parts,
                which can be pickled, and returns a list of those of all windows, as `comm.allgather` of mpi4py. It is called when
                such a probe is read, and at each step if states depend on such values.

        Returns:
            A GraphWindow, at tick 0.

        Raises:
            SemanticError: points outside of the grid, or what cannot be computed so, with the operator and its line.
        """
        if self._sensors or self._actuators:
            raise SemanticError("a ComputeGraph with sensors or actuators has no windows; probe what is to be seen")
        if times(steps) == 0:
            raise SemanticError("a window of a ComputeGraph is for 1 step or more")
        stages = self._stages()
        what = self._program(stages)
        if any(len(field.type.field_shape) > 3 for field in self._states.values()):
            raise SemanticError("windows are of states on grids of up to 3 axes")
        graph = SteppedGraph(what, self._probes, self._backend(), self._compiled, stages)
        return GraphWindow(graph, start, stop, int(steps), combine)

    def _compiled(self, what: Program, backend: Backend) -> Prepared:
        return prepare(what, backend, self._pin, self._optimize)
