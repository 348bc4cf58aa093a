"""Inspection of a ComputeGraph: its plan as text, data, source and picture, its profile; and fields as HTML."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sized
from pathlib import Path
from typing import Any

from gpuop.base.errors import GpuopError, SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.engine.dump import explained, source_of
from gpuop.engine.evaluate import plan_ahead
from gpuop.engine.graphs.stepper import Stepper
from gpuop.engine.graphs.window_stages import NO_STAGES, GraphStages
from gpuop.engine.show.graph_picture import Ends, draw_plan
from gpuop.engine.show.html import field_html, no_values_html
from gpuop.engine.show.raster import write_png
from gpuop.engine.show.scene import Scene
from gpuop.engine.show.svg import svg
from gpuop.fusion.buffers import nbytes_of
from gpuop.fusion.iteration import launches
from gpuop.fusion.plan import Plan
from gpuop.fusion.program import Program
from gpuop.fusion.report.networks import kernels_of, operators_of
from gpuop.ir.schedule_override import Pin
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.profile.profiler import Profile, profile


class Inspection(ABC):
    """The inspection of a graph, from its plan and the roles of its values outside of it."""

    _states: Sized
    _sensors: Sized
    _actuators: Sized
    _probes: Sized
    _pin: Pin | None
    _optimize: bool

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """The plan of a step."""

    @abstractmethod
    def _program(self, stages: GraphStages = NO_STAGES) -> Program:
        """The program of a step, on any device; with the values that stages reduce, whose results are leaves."""

    @abstractmethod
    def _ends(self) -> Ends:
        """The sources and sinks of the plan's values."""

    @property
    @abstractmethod
    def tick(self) -> int:
        """Steps since the last reset."""

    @abstractmethod
    def _live(self) -> Stepper:
        """The graph on its device."""

    @abstractmethod
    def _backend(self) -> Backend:
        """The device of the graph."""

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

        A kernel's operations are those that its operators' bodies write, on each component of a vector; loops with computed
        bounds count once ("at least"). Registers are estimated, in units of 32 bits. Bytes that are saved, or that it costs more,
        are worth the operations that a device is taken to do while they move, ten for each. Pairs left apart of operators of
        the same names, for the same reason, are one line ("3 times"), with their bytes together.

        Args:
            format: "text" for people; "json" for programs: an object with these keys, in this order:
                kernels: a list, in the order of launches, of objects with
                    number (from 1), name, threads (text), thread_count, work_group (a list), host, where (of a Python function),
                    operators: a list of {number, name, precision, variant (of `tune=`, or ""), file, line, method, part};
                    the method is "alone", "registers", "stage", "side by side" or "recomputed", and a part shares values,
                    inputs, outputs: lists of {value, name, type, bytes, kernel (that makes it, or null)}, read_bytes,
                    written_bytes, operations, operations_exact, registers, local_bytes, runs ("at every step", "once", or
                    "when set": when a parameter is), in_place (a list of outputs), lanes ({count, form, reason}: the points of
                    a thread on the graph's device, "scalar", "wide", "spaced" or "vector", and why there are not more),
                    schedule (null, or {method, and its parameters by name}: how threads share points that others need),
                    refused_pin (null, or {method, reason}: a schedule that is pinned and does not suit the kernel),
                    not_taken (null, or {method, reason}: one that suits, and is not shown to stay inside its arrays), dynamic
                    (null, or {extents, reason (why for each size), looked (where Python asked), constants (or extents)}), repeats
                    (null, or of an iteration {times, every, together, turn: such an object, of the turns that are one launch}),
                    predictions (null on the reference, of iterations and of host functions, else a list of {method, its
                    parameters, ms}: the times that are expected of the schedules that suit the kernel on the graph's device,
                    the chosen one first; what the device does in a second is measured once and kept on disk);
                apart: a list of {producer, consumer, producer_kernel, consumer_kernel, value, name, bytes, reason};
                states: a list of {value, name, next, next_name, kernel (that makes the next value, or null), takes: "in place"
                    (written over the state), "buffer" (the state's buffer is then the next value's) or "copy"};
                kernel_count (as the attribute), library_calls, operator_count, moved_bytes, step_bytes (of that, what every step
                moves), floor_bytes (were all one kernel), ratio, buffers, buffer_bytes (the memory of what kernels write),
                predicted (null, or {ms, unfused_ms, unfused_kernel_count}: of `optimize=False`), traced_again (why, or "").

        Returns:
            A str.

        Raises:
            SemanticError: another format, or the graph is still being defined.
        """
        return explained(self.plan, self._backend(), format, self._ends().labels)

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
        parts = {"state": self._states, "sensor": self._sensors, "actuator": self._actuators, "probe": self._probes}
        told = [f"{len(have)} {what}{'s' * (len(have) > 1)}" for what, have in parts.items() if have]
        return f"<{type(self).__name__} {', '.join(told or ['empty'])}, tick {self.tick}>"

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
        ending = Path(path).suffix.lower()
        if ending not in (".svg", ".png"):
            raise SemanticError(f"draw writes .svg and .png files, not {Path(path).name!r}; name the file so")
        if ending == ".png":
            write_png(self._scene(), path)
        else:
            Path(path).write_text(svg(self._scene()), encoding="utf-8")

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

    def _scene(self) -> Scene:
        return draw_plan(self.plan, self._ends())

    def _repr_html_(self) -> str | None:
        """The drawing, for notebooks; None for a graph that has no plan, which is shown as text."""
        try:
            return f'<div style="overflow: auto">{svg(self._scene())}</div>'
        except GpuopError:
            return None


def show(field: Field) -> str:
    """A field as HTML: evaluated and drawn by its type, or a line of text if it has no values. Raises no GpuopError."""
    title = f"{field.name} {field.type}".strip()
    try:
        values = field.numpy()
    except GpuopError as none:
        return no_values_html(title, str(none))
    kind = field.node.type
    return field_html(title, values.reshape(kind.array_shape), kind)
