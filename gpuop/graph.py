"""ComputeGraph: states, steps, probes. A prepared step plans nothing and allocates nothing; it only launches."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary, ref

from gpuop.config import config
from gpuop.dsl import hooks
from gpuop.dsl.field import Adjustable, Field
from gpuop.errors import SemanticError, described
from gpuop.fusion.explain import explain
from gpuop.fusion.graph import Program, program
from gpuop.fusion.plan import Plan, plan
from gpuop.ir.graph import Leaf, Result
from gpuop.ops.algebra import copied
from gpuop.running import Running
from gpuop.runtime.backend import Array
from gpuop.runtime.devices import current, open_device
from gpuop.session import prepare, source_of

_building = threading.local()
_owner: WeakKeyDictionary[Leaf, ref[ComputeGraph]] = WeakKeyDictionary()  # a graph holds its states: do not hold it


def _open_graphs() -> list[ComputeGraph]:
    if not hasattr(_building, "stack"):
        _building.stack = []
    stack: list[ComputeGraph] = _building.stack
    return stack


class ComputeGraph:
    """A synchronous data-flow graph clocked by `step`.

        with gp.ComputeGraph() as graph:
            background = gp.ScalarField(np.zeros((480, 640), "f"))
            background.next = 0.9 * background + 0.1 * frame
            graph.probe(background, "background")
        graph.step(100)
        graph.read("background")

    Args:
        device: a device's name; by default the current one when the graph first runs.
        optimize: False leaves every operator a kernel of its own.
        checked: check the execution of kernels, as in `use_device`.
    """

    def __init__(self, device: str | None = None, optimize: bool = True, checked: bool = False) -> None:
        self._device, self._optimize, self._checked = device, optimize, checked
        self._states: dict[Leaf, Field] = {}
        self._probes: dict[str, Field] = {}
        self._closed = False
        self._gone = ""  # why it cannot run any more
        self._lock = threading.RLock()
        self._running: Running | None = None
        self._plan: Plan | None = None

    # --- definition ---------------------------------------------------------------------------------------------

    def __enter__(self) -> ComputeGraph:
        if self._closed:
            raise SemanticError("this ComputeGraph is defined already; make another one")
        _open_graphs().append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _open_graphs().remove(self)
        self._closed = True
        if kind is not None:
            self._gone = "the `with` block of this ComputeGraph ended with an error; define it again"
            for leaf in self._states:
                del _owner[leaf]

    def probe(self, field: Field, name: str | None = None) -> Field:
        """Make a field readable while the graph runs."""
        if not isinstance(field, Field):
            raise SemanticError(f"probe wants a Field, not {described(field)}")
        if self._closed:
            raise SemanticError("this ComputeGraph is defined already: probe inside its `with`")
        label = name or field.name or f"probe{len(self._probes)}"
        if label in self._probes:
            raise SemanticError(f"there is a probe {label!r} already; give another name")
        self._probes[label] = field
        return field

    def set_next(self, state: Field, value: Field) -> None:
        """`state.next = value`."""
        leaf = state.node
        if not isinstance(leaf, Leaf) or isinstance(leaf.source, Adjustable):
            raise SemanticError(
                "only a field made from an array has a `.next`: it is a state, and the array is what it starts from"
            )
        if leaf in _owner:
            raise SemanticError("this field has a `.next` already; a state is driven once")
        if not isinstance(value, Field):
            raise SemanticError(f"`.next` takes a Field, not {described(value)}")
        if value.type != state.type:
            raise SemanticError(f"`.next` of a {state.type} field takes a field of the same type, not {value.type}")
        _owner[leaf] = ref(self)
        self._states[leaf] = value

    # --- the plan -----------------------------------------------------------------------------------------------

    def _program(self) -> Program:
        if not self._closed:
            raise SemanticError("this ComputeGraph is still being defined; run it after its `with` block")
        if self._gone:
            raise SemanticError(self._gone)
        nexts = [
            value.node if isinstance(value.node, Result) else copied(value).node for value in self._states.values()
        ]
        what = program([*(f.node for f in self._probes.values()), *nexts])
        for leaf in what.leaves.values():
            owner = _owner.get(leaf) if isinstance(leaf, Leaf) else None
            if owner is not None and owner() is not self:
                raise SemanticError(
                    "a state of another ComputeGraph is used here; read it there and make a field of the array"
                )
        return what

    @property
    def plan(self) -> Plan:
        """What runs at each step."""
        with self._lock:
            if self._plan is None:
                self._plan = plan(self._program(), self._optimize)
            return self._plan

    @property
    def kernel_count(self) -> int:
        """Kernels launched per step, after optimisation."""
        return len(self.plan.steps)

    def explain(self) -> str:
        """Per kernel what was fused into it and how; per pair left apart, why."""
        return explain(self.plan)

    def source(self, target: str | None = None) -> str:
        """The generated text; target "opencl" or "cuda"."""
        return source_of(self.plan, target)

    @property
    def network(self) -> Any:
        """The optimised graph: a networkx.DiGraph whose nodes are kernels, with their operators and thread grid."""
        import networkx as nx

        graph = nx.DiGraph()
        maker = {value: n for n, step in enumerate(self.plan.steps) for value in step.outputs}
        for n, step in enumerate(self.plan.steps):
            graph.add_node(
                n, name=step.kernel.name, operators=[op.kernel.name for op in step.ops], threads=str(step.kernel.domain)
            )
            graph.add_edges_from((maker[value], n) for value in step.inputs if value in maker)
        return graph

    # --- running ------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """States take their initial values and everything is evaluated: tick 0."""
        with self._lock:
            self._live().reset()

    def step(self, n: int = 1) -> bool:
        """All states take their `.next` values together, then everything is evaluated; n times. Does not wait."""
        with self._lock:
            running = self._live()
            if running.tick is None:
                running.reset()
            for _ in range(n):
                running.step()
            return True

    @property
    def tick(self) -> int:
        """Steps since the last reset."""
        return (self._running.tick or 0) if self._running is not None else 0

    def read(self, what: Field | str) -> Array:
        """The array of a probed field (or of a probe's name), as of `tick`; waits."""
        with self._lock:
            node = getattr(what, "node", None)
            name = what if isinstance(what, str) else next((k for k, f in self._probes.items() if f.node == node), None)
            if name not in self._probes:
                have = ", ".join(map(repr, self._probes)) or "none"
                raise SemanticError(
                    f"{what!r} is not probed (probes: {have}); call `graph.probe(field)` inside the `with`"
                )
            running = self._live()
            if running.tick is None:
                running.reset()
            return running.read(list(self._probes).index(name))

    def synchronize(self) -> None:
        """Wait for the device."""
        with self._lock:
            if self._running is not None:
                self._running.backend.synchronize()

    def release(self) -> None:
        """Give the device's memory back; the graph cannot run any more."""
        with self._lock:
            self._running, self._gone = None, "this ComputeGraph was released"

    def _live(self) -> Running:
        if self._running is None:
            what = self._program()
            backend = current() if self._device is None else open_device(self._device, config.debug > 0)
            if self._checked:
                backend = open_device(backend.name, checked=True)
            prepared = prepare(what, backend, self._optimize)
            self._running = Running(prepared, what, list(self._states), len(self._probes))
        return self._running


def _set_next(state: Field, value: Any) -> None:
    graphs = _open_graphs()
    if not graphs:
        raise SemanticError("`.next` is set inside `with gp.ComputeGraph() as graph:`")
    graphs[-1].set_next(state, value)


hooks.set_next = _set_next
