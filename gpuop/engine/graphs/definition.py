"""The definition of a ComputeGraph: its states with their next values, its sensors, actuators and probes."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from itertools import count
from typing import TYPE_CHECKING
from weakref import ref

from gpuop.base.errors import SemanticError, described
from gpuop.base.finalizers import WeakKeys
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.names import name_of_argument
from gpuop.dsl.fields.sources import HostArray
from gpuop.engine.evaluate import driven
from gpuop.engine.graphs.sensors import Actuator, Frames, Sensor
from gpuop.engine.interop import own
from gpuop.engine.show.graph_picture import Ends
from gpuop.fusion.buffer_rotation import copying
from gpuop.fusion.program import Program
from gpuop.ir.values import Leaf, Node, Result
from gpuop.ops.elementwise.algebra import copied

if TYPE_CHECKING:
    from gpuop.engine.graphs.stepped_graph import GraphStages

_owners: WeakKeys[Leaf, ref[GraphDefinition]] = (
    WeakKeys()
)  # of states and sensors; a definition holds these: do not hold it


class GraphDefinition:
    """The parts of a graph, in the order of definition.

    Attributes:
        states: each with its next value.
        begun: the number of the first leaf that may be a state.
    """

    def __init__(self) -> None:
        self.states: dict[Leaf, Field] = {}
        self.sensors: dict[Leaf, Frames] = {}
        self.actuators: list[Actuator] = []
        self.probes: dict[str, Field] = {}
        self.begun = 0

    def probe(self, field: Field, name: str | None = None) -> None:
        """Add a probe, by default under the name of the field or of the variable of an argument."""
        label = name or self._free(field.name or name_of_argument() or f"probe{len(self.probes)}")
        if label in self.probes:
            raise SemanticError(f"there is a probe {label!r} already; give another name")
        self.probes[label] = field

    def _free(self, name: str) -> str:
        """The name, with a number where another probe has it: several fields may have been assigned to one variable."""
        return next(n for k in count(1) if (n := f"{name}{k}" if k > 1 else name) not in self.probes)

    def set_next(self, state: Field, value: Field) -> None:
        """`state.next = value`."""
        leaf = state.node
        if not isinstance(leaf, Leaf) or not isinstance(leaf.source, HostArray):
            raise SemanticError(
                "only a field made from an array has a `.next`: it is a state, and the array is what it starts from"
            )
        if leaf in _owners:
            raise SemanticError("this field has a `.next` already, and a state takes one")
        if leaf.number < self.begun:
            raise SemanticError(
                "this field was made before the `with` of the graph, and is a constant inside; make the state inside of it"
            )
        if not isinstance(value, Field):
            raise SemanticError(f"`.next` takes a Field, such as `np.full_like(state, 0)`, not {described(value)}")
        if value.type != state.type:
            instead = f"; `.astype({str(state.dtype)!r})` converts" if value.dtype != state.dtype else ""
            raise SemanticError(
                f"`.next` of a {state.type} field takes a field of the same type, not {value.type}{instead}"
            )
        _owners[leaf], self.states[leaf] = ref(self), value
        driven[leaf] = None

    def join(self, part: object) -> None:
        """Add a sensor or an actuator; they are served in the order of their definition."""
        if isinstance(part, Actuator):
            self.actuators.append(part)
        elif isinstance(part, Sensor):
            _owners[part.leaf] = ref(self)
            self.sensors[part.leaf] = part.frames

    def give_up(self) -> None:
        """Release the states and sensors of a definition that ended with an error."""
        for leaf in (*self.states, *self.sensors):
            driven.discard(leaf)
            _owners.discard(leaf)

    def program(self, stages: GraphStages) -> Program:
        """The program of a step, with the values that stages reduce, whose results are leaves."""
        fields = [*self.probes.values(), *(a.field for a in self.actuators)]
        what = stages.program([own(f.node) for f in fields], next_values(self.states))
        for leaf in what.leaves.values():
            owner = _owners.get(leaf) if isinstance(leaf, Leaf) else None
            if isinstance(leaf, Leaf) and owner is not None and owner() is not self:
                part = "sensor" if leaf.source.role == "sensor" else "state"
                raise SemanticError(
                    f"a {part} of another ComputeGraph is used here; read it there and make a field of the array"
                )
        return what.repeated(list(self.states))

    def ends(self, what: Program) -> Ends:
        """The sources and sinks of the values of a step."""
        leaves = {leaf: v for v, leaf in what.leaves.items() if isinstance(leaf, Leaf)}
        sources = {v: leaf.source.role for leaf, v in leaves.items()}
        sources |= {leaves[leaf]: "state" for leaf in self.states if leaf in leaves}
        sinks = [("probe", name) for name in self.probes] + [("actuator", a.field.name) for a in self.actuators]
        outputs, targets = what.results[: len(sinks)], what.results[len(sinks) :]
        labels = {v: name for v, (_, name) in zip(outputs, sinks, strict=True)}
        labels |= {v: f"{leaf.name}.next" for v, leaf in zip(targets, self.states, strict=True) if leaf.name}
        nexts = what.cycle.nexts if what.cycle is not None else ()
        return Ends(sources, [(v, *sink) for v, sink in zip(outputs, sinks, strict=True)], nexts, labels | what.names)

    def __str__(self) -> str:
        parts: dict[str, Sized] = {
            "state": self.states,
            "sensor": self.sensors,
            "actuator": self.actuators,
            "probe": self.probes,
        }
        counts = [f"{len(each)} {what}{'s' * (len(each) > 1)}" for what, each in parts.items() if each]
        return ", ".join(counts or ["empty"])


def next_values(states: Mapping[Leaf, Field]) -> list[Node]:
    """The next value of each state; a copy of a leaf whose buffer the state cannot take."""
    nodes = {state: value.node for state, value in states.items()}
    copies = copying(nodes, {state: state.type.nbytes for state in states})
    return [
        value.node if _is_taken(value.node) and state not in copies else copied(value).node
        for state, value in states.items()
    ]


def _is_taken(node: Node) -> bool:
    """Return whether gpuop owns the buffer of a value, and nothing changes there within a step or after it."""
    return isinstance(node, Result) or not (node.by_value or node.source.borrowed or node.source.role == "parameter")
