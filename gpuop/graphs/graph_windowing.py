"""What graphs say of windows of their states' grid."""

from __future__ import annotations

from collections.abc import Sequence

from gpuop.dsl.fields.field import Field
from gpuop.errors import SemanticError
from gpuop.evaluation import prepare
from gpuop.fusion.program import Program
from gpuop.graphs.graph_window import GraphWindow, SteppedGraph
from gpuop.graphs.saving import Saving
from gpuop.graphs.stepper import times
from gpuop.ir.values import Leaf
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.execute import Prepared


class GraphWindowing(Saving):
    """Has graphs step on windows of their grid."""

    _states: dict[Leaf, Field]
    _probes: dict[str, Field]

    def window(self, start: Sequence[int], stop: Sequence[int], steps: int = 1) -> GraphWindow:
        """The states' points [start, stop), on the graph's device, in memory of their own; they step with the bits of the whole.

        Each window has as much around its points as `footprint(steps)` says, and what is probed needs. After so many steps
        these are to be had of other windows (`take`), and `put`; `gpuop.mpi.Domain` does that.

        Args:
            start, stop: for each axis of the grid the first point, and the one behind the last.
            steps: how many steps are taken between; 1 or more.

        Returns:
            A GraphWindow, at tick 0.

        Raises:
            SemanticError: points outside of the grid, or what cannot be computed so, with the operator and its line.
        """
        if self._sensors or self._actuators:
            raise SemanticError("a ComputeGraph with sensors or actuators has no windows; probe what is to be seen")
        if times(steps) == 0:
            raise SemanticError("a window of a ComputeGraph is for 1 step or more")
        what = self._program()
        if any(len(field.type.field_shape) > 3 for field in self._states.values()):
            raise SemanticError("windows are of states on grids of up to 3 axes")
        graph = SteppedGraph(what, self._probes, self._backend(), self._compiled)
        return GraphWindow(graph, start, stop, int(steps))

    def _compiled(self, what: Program, backend: Backend) -> Prepared:
        return prepare(what, backend, self._pin, self._optimize)
