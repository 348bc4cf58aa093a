"""ComputeGraph: states, steps, probes. A prepared step plans nothing and allocates nothing; it only launches."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from types import TracebackType
from weakref import ref

from gpuop.base.config import config
from gpuop.base.errors import DeviceError, GpuopError, SemanticError, described, naming_arguments
from gpuop.base.finalizers import WeakKeys
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.names import name_of_argument
from gpuop.dsl.fields.sources import HostArray
from gpuop.dsl.recorder.precisions import choosing
from gpuop.engine.evaluate import driven, prepare
from gpuop.engine.graphs.active_graph import open_graphs
from gpuop.engine.graphs.bound_graph import BoundGraph
from gpuop.engine.graphs.next_values import next_values
from gpuop.engine.graphs.sensors import Actuator, Frames, Sensor
from gpuop.engine.graphs.stepped_graph import probe_named
from gpuop.engine.graphs.stepper import Stepper, times
from gpuop.engine.graphs.window_stages import NO_STAGES, GraphStages
from gpuop.engine.graphs.windowing import GraphWindowing
from gpuop.engine.interop import own
from gpuop.engine.show.graph_picture import Ends
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.program import Program
from gpuop.ir.values import Leaf, made
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.base.backend import Array, Backend
from gpuop.runtime.devices import FORKED, current, device_name, open_device, opened
from gpuop.runtime.discovery import Device
from gpuop.runtime.tuning.chooser import limits_on

_owner: WeakKeys[Leaf, ref[ComputeGraph]] = WeakKeys()  # a graph holds its states: do not hold it


class ComputeGraph(GraphWindowing):
    """A synchronous data-flow graph clocked by `step`.

        with gp.ComputeGraph() as graph:
            background = gp.ScalarField(np.zeros((480, 640), "f"))
            background.next = 0.9 * background + 0.1 * frame
            graph.probe(background, "background")
        graph.step(100)
        graph.read("background")

    Args:
        device: a device's name, or one of `devices()`; by default the current one when the graph first runs.
        optimize: False leaves every operator a kernel of its own, which runs at every step.
        checked: check the execution of kernels, as in `use_device`.
        precision: how exactly its operators compute, as of `gp.precision`.

    Raises:
        DeviceError: `device` is not the name of one.
        SemanticError: for a wrong definition or call; a graph runs after its `with`, and not after `release`.
        CompileError, DeviceError: from the first step or reset, when it is compiled for its device.
    """

    @naming_arguments
    def __init__(
        self,
        device: str | Device | Backend | None = None,
        optimize: bool = True,
        checked: bool = False,
        precision: str | None = None,
    ) -> None:
        if device is not None:
            device_name(device)  # refuses what is no device at the line of the graph
        self._device, self._optimize, self._checked = device, optimize, checked
        self._pin, self._precision = pinned(), choosing(precision)
        self._states: dict[Leaf, Field] = {}
        self._sensors: dict[Leaf, Frames] = {}
        self._actuators: list[Actuator] = []
        self._probes: dict[str, Field] = {}
        self._closed = False
        self._gone: Callable[[], GpuopError] | None = None  # makes the error of a graph that cannot run any more
        self._lock = threading.RLock()
        self._stepper: Stepper | None = None
        self._plan: Plan | None = None

    # --- definition ---------------------------------------------------------------------------------------------

    def __enter__(self) -> ComputeGraph:
        if self._closed:
            raise SemanticError("this ComputeGraph is defined already; make another one")
        self._precision.__enter__()
        open_graphs().append(self)
        self._begun = next(made)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        open_graphs().remove(self)
        self._precision.__exit__(kind, error, trace)
        self._closed = True
        if kind is not None:
            self._gone = partial(
                SemanticError, "the `with` block of this ComputeGraph ended with an error; define it again"
            )
            for leaf in (*self._states, *self._sensors):
                driven.discard(leaf)
                _owner.discard(leaf)

    def probe(self, field: Field, name: str | None = None) -> Field:
        """Make a field readable while the graph runs.

        Args:
            field: a Field, which is then computed at every step.
            name: by default the field's own, else that of the argument's variable.

        Returns:
            The field.

        Raises:
            SemanticError: no Field, a name that another probe has, or the graph is defined already.
        """
        if not isinstance(field, Field):
            raise SemanticError(f"probe wants a Field, not {described(field)}")
        if self._closed:
            raise SemanticError("this ComputeGraph is defined already: probe inside its `with`")
        label = name or self._free(field.name or name_of_argument() or f"probe{len(self._probes)}")
        if label in self._probes:
            raise SemanticError(f"there is a probe {label!r} already; give another name")
        self._probes[label] = field
        return field

    def _free(self, name: str) -> str:
        """The name, with a number where another probe has it: several fields may have been assigned to one variable."""
        return next(n for k in count(1) if (n := f"{name}{k}" if k > 1 else name) not in self._probes)

    def set_next(self, state: Field, value: Field) -> None:
        """`state.next = value`."""
        leaf = state.node
        if not isinstance(leaf, Leaf) or not isinstance(leaf.source, HostArray):
            raise SemanticError(
                "only a field made from an array has a `.next`: it is a state, and the array is what it starts from"
            )
        if leaf in _owner:
            raise SemanticError("this field has a `.next` already; a state is driven once")
        if leaf.number < self._begun:
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
        _owner[leaf], self._states[leaf] = ref(self), value
        driven[leaf] = None

    def join(self, part: object) -> None:
        """Add a sensor or an actuator; they are served in the order of their definition."""
        if isinstance(part, Actuator):
            self._actuators.append(part)
        elif isinstance(part, Sensor):
            _owner[part.leaf] = ref(self)
            self._sensors[part.leaf] = part.frames

    # --- the plan -----------------------------------------------------------------------------------------------

    def _program(self, stages: GraphStages = NO_STAGES) -> Program:
        if not self._closed:
            raise SemanticError("this ComputeGraph is still being defined; run it after its `with` block")
        if self._gone:
            raise self._gone()
        seen = [*self._probes.values(), *(a.field for a in self._actuators)]
        what = stages.program([own(f.node) for f in seen], next_values(self._states))
        for leaf in what.leaves.values():
            owner = _owner.get(leaf) if isinstance(leaf, Leaf) else None
            if isinstance(leaf, Leaf) and owner is not None and owner() is not self:
                part = "sensor" if leaf.source.role == "sensor" else "state"
                raise SemanticError(
                    f"a {part} of another ComputeGraph is used here; read it there and make a field of the array"
                )
        return what.repeated(list(self._states))

    @property
    def plan(self) -> Plan:
        """The plan of a step."""
        with self._lock:
            return self._plan if self._plan and self._stepper else self._plan_on(self._backend())

    def _plan_on(self, backend: Backend) -> Plan:
        limits = limits_on(backend, self._pin)
        if self._plan is None or self._plan.limits != limits:
            self._plan = plan(self._program(), self._optimize, limits)
        return self._plan

    def _ends(self) -> Ends:
        what = self.plan.program
        leaves = {leaf: v for v, leaf in what.leaves.items() if isinstance(leaf, Leaf)}
        sources = {v: leaf.source.role for leaf, v in leaves.items()}
        sources |= {leaves[leaf]: "state" for leaf in self._states if leaf in leaves}
        sinks = [("probe", name) for name in self._probes] + [("actuator", a.field.name) for a in self._actuators]
        seen, targets = what.wanted[: len(sinks)], what.wanted[len(sinks) :]
        labels = {v: name for v, (_, name) in zip(seen, sinks, strict=True)}
        labels |= {v: f"{leaf.name}.next" for v, leaf in zip(targets, self._states, strict=True) if leaf.name}
        nexts = what.cycle.nexts if what.cycle is not None else ()
        taken = [(v, *sink) for v, sink in zip(seen, sinks, strict=True)]
        return Ends(sources, taken, nexts, labels | what.names)

    # --- running ------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """States take their initial values, sensors their next frame, and everything is evaluated: tick 0."""
        self._live().reset()

    def step(self, n: int = 1) -> bool:
        """All states take their `.next` values together, sensors their next frame, then everything is evaluated; n times.

        It does not wait for the device. The first one resets first.

        Args:
            n: how many steps; 0 or more.

        Returns:
            False, having stopped there, when a sensor is exhausted: the step that it has no frame for does nothing.

        Raises:
            SemanticError: n is negative, or no integer.
        """
        return (self._stepper or self._live()).step(times(n))

    @property
    def tick(self) -> int:
        """Steps since the last reset."""
        return (self._stepper.tick or 0) if self._stepper is not None else 0

    def read(self, what: Field | str) -> Array:
        """The values of a probed field, as of `tick`; waits. Any thread may call it.

        Args:
            what: a probed Field, or a probe's name.

        Returns:
            An array of the field's `type.array_shape` and dtype (uint8 for unorm8); yours to change.

        Raises:
            SemanticError: it is not probed.
        """
        name = probe_named(what, self._probes)
        return self._live().read(list(self._probes).index(name)).reshape(self._probes[name].type.array_shape)

    def synchronize(self) -> None:
        """Wait for the device, and until actuators have all arrays of this tick."""
        if self._stepper is not None:
            self._stepper.synchronize()

    def run(self) -> None:
        """Step in a thread until `stop`, or until a sensor is exhausted. `read` and `Parameter.set` work meanwhile."""
        self._live().run()

    def stop(self) -> None:
        """End `run`, and wait for its end; raises the error that ended it."""
        if self._stepper is not None:
            self._stepper.stop()

    def wait(self) -> None:
        """Wait until `run` ends because a sensor is exhausted; raises the error that ended it otherwise."""
        if self._stepper is not None:
            self._stepper.wait()

    def release(self) -> None:
        """Stop, and free the memory of the device; the graph cannot run any more."""
        try:
            self.stop()
        finally:
            with self._lock:
                self._stepper, self._gone = None, partial(SemanticError, "this ComputeGraph was released")

    def _live(self) -> Stepper:
        with self._lock:
            if self._stepper is None:
                what, backend = self._program(), self._backend()
                prepared = prepare(what, backend, self._pin, self._optimize, planned=partial(self._plan_on, backend))
                bound = BoundGraph(prepared, what, list(self._states), len(self._probes) + len(self._actuators))
                self._stepper = Stepper(bound, list(self._sensors.values()), self._actuators)
                _that_ran[self] = None
            return self._stepper

    def _backend(self) -> Backend:
        """The device of the graph."""
        backend = current() if self._device is None else opened(self._device, config.debug > 0)
        return open_device(backend.name, checked=True) if self._checked else backend


_that_ran: WeakKeys[ComputeGraph, None] = WeakKeys()


def _in_child() -> None:
    """Reset graphs in a forked process, which has neither their devices nor their threads, and copies of their locks."""
    for graph in _that_ran:
        graph._lock, graph._stepper = threading.RLock(), None
        graph._gone = partial(DeviceError, f"this ComputeGraph ran in another process, and {FORKED}")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
