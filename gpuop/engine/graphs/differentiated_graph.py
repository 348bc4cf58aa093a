"""The gradients of a ComputeGraph, as its method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpuop.base.errors import NearNames, SemanticError, StaysHere, described, naming_arguments
from gpuop.dsl.fields.derivative_rules import derivatives
from gpuop.dsl.fields.field import Field
from gpuop.engine.evaluate import compute
from gpuop.engine.graphs.definition import GraphDefinition, next_values
from gpuop.engine.graphs.stepped_graph import probe_named
from gpuop.engine.graphs.stepper import times
from gpuop.ir.values import Leaf
from gpuop.runtime.base.backend import Array, Backend
from gpuop.runtime.base.host_arrays import array_of

if TYPE_CHECKING:
    from gpuop.fusion.program import Program


class DifferentiatedGraph(StaysHere, NearNames):
    """A graph that has gradients."""

    _definition: GraphDefinition

    def _program(self) -> Program:
        raise NotImplementedError

    def _backend(self) -> Backend:
        raise NotImplementedError

    @naming_arguments
    def gradient(
        self,
        of: Field | str,
        wrt: Field | str | Sequence[Field | str],
        steps: int,
        checkpoints: int | None = None,
    ) -> dict[str, Array]:
        """The derivative of a probe after some steps by the first values of states, and by parameters.

            slopes = graph.gradient("misfit", (u, speed), steps=1000, checkpoints=20)
            slopes["u"], slopes["speed"]

        The graph itself takes no step: its states stay as they are.

        Args:
            of: a probed 0D field of real numbers, or its name.
            wrt: states and parameters, or the names of states; one or several.
            steps: how many; 0 or more.
            checkpoints: as of `gp.iterate`: the most values of all states that are in memory at a time.

        Returns:
            A dict from names to arrays of the types of states and parameters.

        Raises:
            SemanticError: no such probe or state, a probe that is no real number or depends on a sensor, or a construct
                without a derivative, at its line.
        """
        self._program()  # refuses a graph that is not defined yet
        probe = self._definition.probes[probe_named(of, self._definition.probes)]
        fields = self._fields(list(wrt) if isinstance(wrt, (tuple, list)) else [wrt])
        nexts = dict(zip(self._definition.states, next_values(self._definition.states), strict=True))
        gradient = derivatives["gradient of a graph"]
        backend = self._backend()
        results = gradient(probe, nexts, list(fields.values()), times(steps), checkpoints)
        buffers = compute([field.node for field in results], backend)
        pairs = zip(fields, results, buffers, strict=True)
        return {name: array_of(field.type, backend.download(field.node.type, memory)) for name, field, memory in pairs}

    def _fields(self, wrt: Sequence[Any]) -> Mapping[str, Field]:
        """States and parameters, by name."""
        states = {leaf.name: Field.of(leaf, kind=value.type) for leaf, value in self._definition.states.items()}
        fields: dict[str, Field] = {}
        for each in wrt:
            field = states.get(each) if isinstance(each, str) else each
            leaf = field.node if isinstance(field, Field) else None
            known = isinstance(leaf, Leaf) and (leaf in self._definition.states or leaf.source.role == "parameter")
            if not isinstance(field, Field) or not known:
                have = ", ".join(map(repr, states)) or "none"
                what = repr(each) if isinstance(each, str) else described(each)
                raise SemanticError(f"gradient: `wrt=` takes states (here {have}) and parameters, not {what}")
            if not field.name or field.name in fields:
                wrong = f"two have the name {field.name!r}" if field.name else "one has none"
                raise SemanticError(f"gradient: results are by name, and {wrong}; `field.name = …` gives one")
            fields[field.name] = field
        return fields
