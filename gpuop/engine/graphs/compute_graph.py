"""ComputeGraph: states, steps, probes. A prepared step plans nothing and allocates nothing; it only launches."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any

from gpuop.base.cache.atomic_files import Path
from gpuop.base.config import config
from gpuop.base.errors import (
    DeviceError,
    GpuopError,
    SemanticError,
    described,
    naming_arguments,
)
from gpuop.base.finalizers import WeakKeys
from gpuop.base.misspelt import hinted_methods
from gpuop.base.system import in_forked_child
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.precisions import choosing
from gpuop.engine.dump import explained, source_of
from gpuop.engine.evaluate import plan_ahead, prepare
from gpuop.engine.graphs.active_graph import open_graphs
from gpuop.engine.graphs.bound_graph import BoundGraph
from gpuop.engine.graphs.definition import GraphDefinition
from gpuop.engine.graphs.differentiated_graph import DifferentiatedGraph
from gpuop.engine.graphs.saving import read, write
from gpuop.engine.graphs.stepped_graph import NO_STAGES, SteppedGraph, footprint_of, probe_named
from gpuop.engine.graphs.stepper import Stepper, times
from gpuop.engine.graphs.window import Combining, GraphWindow
from gpuop.engine.show.graph_picture import draw_plan
from gpuop.engine.show.raster import write_picture
from gpuop.engine.show.scene import Scene
from gpuop.engine.show.svg import svg
from gpuop.fusion.buffers import nbytes_of
from gpuop.fusion.iteration import launches
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.program import Program
from gpuop.fusion.report.networks import kernels_of, operators_of
from gpuop.fusion.windows.footprint import Footprint
from gpuop.ir.values import node_numbers
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.base.backend import Array, Backend
from gpuop.runtime.devices import FORKED, Device, current, device_name, open_device, opened
from gpuop.runtime.execute import Prepared
from gpuop.runtime.profile.profiler import Profile, profile
from gpuop.runtime.tuning.chooser import limits_on


@hinted_methods
class ComputeGraph(DifferentiatedGraph):
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

    stays = (
        "a ComputeGraph has memory of a device and threads of this process; send a function that builds it, and its states by "
        "`graph.save` and `graph.load`"
    )

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
        self._definition = GraphDefinition()
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
        open_graphs().append(self._definition)
        self._definition.begun = next(node_numbers)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        open_graphs().remove(self._definition)
        self._precision.__exit__(kind, error, trace)
        self._closed = True
        if kind is not None:
            self._gone = partial(
                SemanticError, "the `with` block of this ComputeGraph ended with an error; define it again"
            )
            self._definition.give_up()

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
        self._definition.probe(field, name)
        return field

    # --- the plan -----------------------------------------------------------------------------------------------

    def _program(self) -> Program:
        if not self._closed:
            raise SemanticError("this ComputeGraph is still being defined; run it after its `with` block")
        if self._gone:
            raise self._gone()
        return self._definition.program(NO_STAGES)

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

    def _scene(self) -> Scene:
        plan = self.plan
        return draw_plan(plan, self._definition.ends(plan.program))

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
        name = probe_named(what, self._definition.probes)
        return (
            self._live()
            .read(list(self._definition.probes).index(name))
            .reshape(self._definition.probes[name].type.array_shape)
        )

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

    # --- files and windows -----------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write states and tick to an .npz file, atomically.

        States are identified by their names, which are those of variables unless `field.name = …` gives others; those that share
        a name, or have none, as in lists, by the order of their `.next`.

        Args:
            path: of the file, which is replaced where it exists.

        Raises:
            OSError: it cannot be written.
        """
        tick, states = self._live().states()
        write(path, tick, [(leaf.name, leaf.type, array) for leaf, array in states])

    def load(self, path: Path) -> None:
        """Take states and tick from a file that `save` wrote, and evaluate. Parameters do not change.

        Sensors keep their frames; those of a graph that has not run take their first, which is the one of that tick: to go on
        at tick t in another process, begin its source with frame t.

        Args:
            path: of the file.

        Raises:
            SemanticError: it is no such file, it is damaged, or its states have other names or types; nothing changes.
            OSError: it cannot be opened.
        """
        stepper = self._live()
        expected = [(leaf.name, leaf.type) for leaf in stepper.bound.state_leaves.values()]
        tick, arrays = read(path, expected)
        stepper.load(arrays, tick)

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
        return footprint_of(self._definition, self._program(), steps)

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
        if self._definition.sensors or self._definition.actuators:
            raise SemanticError("a ComputeGraph with sensors or actuators has no windows; probe what is to be seen")
        if times(steps) == 0:
            raise SemanticError("a window of a ComputeGraph is for 1 step or more")
        graph = SteppedGraph.of(self._definition, self._program(), self._backend(), self._compiled)
        return GraphWindow(graph, start, stop, int(steps), combine)

    def _compiled(self, what: Program, backend: Backend) -> Prepared:
        return prepare(what, backend, self._pin, self._optimize)

    # --- inspection -------------------------------------------------------------------------------------------------

    @property
    def kernel_count(self) -> int:
        """The kernels of the plan, after optimisation; an iteration that a condition ends counts with its most turns.

        Those whose values cannot change are launched once, or when a parameter is set, and count all the same.
        """
        return launches(self.plan)

    @property
    def nbytes(self) -> int:
        """The bytes of memory that the graph has on its device: states, frames, arrays, and what kernels write.

        Constants that other graphs share count too. What an iteration keeps between its iterations is not known before it runs.
        """
        return nbytes_of(self.plan)

    def explain(self, format: str = "text") -> str:
        """Per kernel what was fused into it and how; per pair left apart, why, and what that costs.

        The operations of a kernel are those of its bodies, for each component of a vector; loops with computed bounds count once
        ("at least"). Registers are estimates, of 32 bits. A saved or an added byte is worth ten operations. Pairs that are left
        apart for the same reason, of operators of the same names, are one line ("3 times"), with their bytes together.

        Args:
            format: "text", each of more than 12 kernels a line; "full", text with all of each; "json": an object with these keys:
                kernels: a list, in the order of launches, of objects with
                    number (from 1), name, threads (text), thread_count, work_group (a list), host, where (of a Python function),
                    operators: a list of {number, name, precision, variant (of `tune=`, or ""), file, line, method, part}; the
                    method is "alone", "registers", "stage", "side by side" or "recomputed", and a part shares values, inputs,
                    outputs: lists of {value, name, type, bytes, kernel (that makes it, or null)}, read_bytes, written_bytes,
                    alternating (names of those used as they lie), operations, operations_exact, registers, local_bytes, runs ("at
                    every step", "once", or "when set": when a parameter is), in_place (a list of outputs), lanes ({count, form,
                    reason}: the points of a thread on the graph's device, "scalar", "wide", "spaced" or "vector", and why there
                    are not more), schedule (null, or {method, and its parameters by name}: how threads share points that others
                    need), refused_pin (null, or {method, reason}: a schedule that is pinned and does not suit the kernel),
                    not_taken (null, or {method, reason}: one that suits, and is not shown to stay inside its arrays), integer_sums,
                    float_pairs (in the place of double), dynamic (null, or {extents, reason (why for each size), looked (where
                    Python asked), constants (or extents)}), repeats (null, or of an iteration {times, every, together, turn,
                    back}), predictions (null on the reference, of iterations and of host functions, else a list of {method, its
                    parameters, ms}: the times of the schedules that suit the kernel on the graph's device, the chosen one first);
                lines: a list of {file, line, text, kernels (numbers), bytes, ms (predicted, or null)}, by last operators;
                apart: a list of {producer, consumer, producer_kernel, consumer_kernel, value, name, bytes, reason};
                states: a list of {value, name, next, next_name, kernel (that makes the next value, or null), takes: "in place"
                    (written over the state), "buffer" (the state's buffer is then the next value's) or "copy"};
                kernel_count (as the attribute), library_calls, operator_count, moved_bytes, step_bytes (of that, what every
                step moves), floor_bytes (were all one kernel), ratio, buffers, buffer_bytes (what kernels write), predicted
                (null, or {ms, unfused_ms, unfused_kernel_count}: of `optimize=False`), traced_again (why, or ""), to_planes,
                from_planes (lists of {value, name, bytes}: arrays that the host copies), tier (of sizes, a sentence or "").

        Returns:
            A str.

        Raises:
            SemanticError: another format, or the graph is still being defined.
        """
        return explained(self.plan, self._backend(), format, self._definition.ends(self.plan.program).labels)

    def source(self, target: str | None = None, form: str = "text") -> str:
        """The generated text of all kernels, as they are fused for the graph's device or a target, or what compilers make of it.

        Args:
            target: "opencl" (any device of it), "opencl:cpu", "cuda", or an architecture as "cuda:sm_75"; by default that of the
                graph's device.
            form: as of `Operator.source`.

        Returns:
            A str.

        Raises:
            SemanticError: an unknown target or form, or the graph is still being defined.
            DeviceError: as of `Operator.source`.
        """
        what = self.plan if target is None else plan_ahead(self._program(), target, self._pin, self._optimize)
        return source_of(what, target, form, self._backend())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._definition}, tick {self.tick}>"

    @property
    def network(self) -> Any:
        """The compute graph after fusion: a networkx.DiGraph whose nodes are kernels, from 0 on, in the order of launches.

        It is the condensation of `operators`, as these read after fusion: some compute for themselves what they read.
        Nodes have the attributes `name`, `operators` (names), `members` (the operators' nodes in `operators`), `threads` (the
        thread grid as text) and `device`; edges have `values` (the numbers, as of `explain(format="json")`, of those that go
        through memory from one kernel to the other). `network.graph["mapping"]` is a dict from operators to kernels. It is the
        caller's own: changing it changes no plan.
        """
        return kernels_of(self.plan, self._backend().name)

    @property
    def operators(self) -> Any:
        """The compute graph before fusion: a networkx.DiGraph whose nodes are operators, by number, as they were recorded.

        Nodes have the attributes `name`, `shape` and `dtype` (of the first output, as an array), `device` ("host" for functions
        of Python), `inputs` and `outputs` (numbers of values), `kernel` (the node of `network` that it is part of; None if its
        values are only computed where they are read) and `recomputed_in` (the kernels that compute it for themselves). Edges
        lead to the operators that read values of others. They have `values` (their numbers) and `reads`, a dict that has for
        each value {"kind": "point"} (a thread reads its own point), {"kind": "stencil", "low": …, "high": …} (points at constant
        distances: the least and the greatest offset along each axis of the grid) or {"kind": "whole"} (any point). It is the
        caller's own: changing it changes no plan.
        """
        return operators_of(self.plan, self._backend().name)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draw the plan: kernels as boxes around their operators, with what moves between them.

        Args:
            path: ends with .svg (in a browser, reasons and types are shown under the mouse) or .png (needs Pillow).

        Raises:
            SemanticError: another ending, no Pillow for a .png, or the graph is still being defined.
        """
        write_picture(path, self._scene)

    def profile(self, steps: int = 20) -> Profile:
        """Measure how long each kernel takes, with the device's own clock, over steps that the graph takes.

        States, sensors and actuators go on as with `step`; it ends early when a sensor is exhausted. Kernels that do not
        run at every step do so here.

        Args:
            steps: how many; 1 or more.

        Returns:
            A table when printed; `.rows` have number, name, median_ms, spread_ms (of the middle half), predicted_ms (as in
            `explain`), nbytes (that the
            kernel must move), gb_per_s, share (of the time of the kernels that run at every step) and runs (when it does);
            `.uploads`, of the sensors that had frames, have name, median_ms, spread_ms, nbytes and gb_per_s.

        Raises:
            SemanticError: `steps` is not 1 or more.
        """
        stepper = self._live()
        return profile(stepper.bound.prepared, steps, stepper.through)

    def _repr_html_(self) -> str | None:
        """The drawing, for notebooks; None for a graph that has no plan, which is shown as text."""
        try:
            return f'<div style="overflow: auto">{svg(self._scene())}</div>'
        except GpuopError:
            return None

    # --- the device -------------------------------------------------------------------------------------------------

    def _live(self) -> Stepper:
        with self._lock:
            if self._stepper is None:
                what, backend = self._program(), self._backend()
                prepared = prepare(what, backend, self._pin, self._optimize, planned=partial(self._plan_on, backend))
                graph = self._definition
                bound = BoundGraph(prepared, what, list(graph.states), len(graph.probes) + len(graph.actuators))
                self._stepper = Stepper(bound, list(graph.sensors.values()), graph.actuators)
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


in_forked_child(_in_child)
