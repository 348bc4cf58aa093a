"""Compiled plans: compiled once, then launched with any buffers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from types import MappingProxyType
from typing import Any, ClassVar

from gpuop.base.config import config
from gpuop.base.records import dataclass
from gpuop.codegen.c.dialect import Source
from gpuop.fusion.buffers import allocation
from gpuop.fusion.iteration import Iteration, Reversal, swept
from gpuop.fusion.launch import PlannedLaunch, Rate
from gpuop.fusion.plan import Plan, plan_for
from gpuop.fusion.report.explain import explain
from gpuop.ir.kernel import DeviceFunction, HostFunction, Kernel, Launchable
from gpuop.ir.text import content, show
from gpuop.runtime.base.backend import Argument, Array, Backend, Buffer, Launch, Part, aligned, download
from gpuop.runtime.base.host_arrays import planes_of
from gpuop.runtime.base.launch_list import LaunchList, ListedLaunch
from gpuop.runtime.base.trace import note_launch
from gpuop.runtime.compiled_iteration import CompiledIteration
from gpuop.runtime.compiled_reversal import CompiledReversal


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Prebuilt(Launchable):
    """Generated text, and its CUDA binary: the kernels of bundles."""

    unfusible: ClassVar[str] = "is compiled already"
    source: Source
    binary: bytes | None

    @property
    def acts(self) -> bool:
        return False


Repeated = (CompiledIteration, CompiledReversal)
MOST_SPARE = (
    1 << 20
)  # bytes of intermediate values whose memory waits for the next call: drivers are slow to give small memory
followers: list[Callable[[Prepared], Prepared]] = []  # wrappers of plans that run, while profiles are open


class Prepared:
    """A compiled plan. `run` allocates buffers; a compute graph binds the launches to buffers of its own instead.

    Attributes:
        between: intermediate values whose memory may wait for the next run; none where they are large.
        has_all_memory: whether these are all intermediate values.
        spare: such memory.
        once: number of launches with the same results at each evaluation; they come first.
        lists: the launches of kernels for runs with all memory, by queue.
        swept: iterations whose states the way back through them needs, each with that, by the numbers of their launches.
    """

    def __init__(self, backend: Backend, plan: Plan) -> None:
        self.backend = backend
        self.plan = plan = plan_for(plan, backend.target)
        config.trace(2, lambda: f"gpuop: {explain(plan, 'full', target=backend.target)}")
        config.trace(
            3, lambda: "\n".join(show(step.kernel) for step in plan.launches if isinstance(step.kernel, Kernel))
        )
        # chains of operators make many equal kernels
        kernels = {content(step.kernel): step.kernel for step in plan.launches if isinstance(step.kernel, Kernel)}
        compiled = dict(zip(kernels, backend.compile_all(list(kernels.values())), strict=True))
        self.programs = [self._compiled(step, compiled) for step in plan.launches]
        self.kernels = [isinstance(step.kernel, (Kernel, Prebuilt)) for step in plan.launches]
        self.arguments = [_picker((*step.inputs, *step.outputs)) for step in plan.launches]
        results = set(plan.program.results)
        used = [dict.fromkeys((*step.inputs, *step.outputs)) for step in plan.launches]
        last = {value: n for n, values in enumerate(used) for value in values if value not in results}
        done = [[v for v in values if last.get(v) == n] for n, values in enumerate(used)]  # dead values by step
        self.begun, self.swept = [step.begun for step in plan.launches], swept(plan)
        self.spare: list[dict[int, Buffer]] = []
        self.once = sum(step.rate is Rate.ONCE for step in plan.launches)
        computed = {v for step in plan.launches for v in step.outputs if step.rate is not Rate.ONCE}
        self.replaced = [  # outputs that reuse the memory of dead values
            {v: source for v, source in step.replaced.items() if source in computed and source in dead}
            for step, dead in zip(plan.launches, done, strict=True)
        ]
        types = plan.program.types
        self.steps = [
            (number, [(v, types[v]) for v in step.outputs], self.replaced[number], done[number])
            for number, step in enumerate(plan.launches)
        ]
        self.between = [
            v
            for step, replaced in zip(plan.launches, self.replaced, strict=True)
            for v in step.outputs
            if v not in results and v not in replaced
        ]
        self.has_all_memory = sum(types[v].nbytes for v in self.between) <= MOST_SPARE
        if not self.has_all_memory:
            self.between = []
        self.lists: dict[Backend, LaunchList] = {}

    def take_spare(self) -> dict[int, Buffer]:
        """Return memory for intermediate values, which the caller adds to `spare` when the work in it is done."""
        try:
            return self.spare.pop()
        except IndexError:
            return {v: self.backend.empty(self.plan.program.types[v]) for v in self.between}

    def list_on(self, backend: Backend) -> LaunchList | None:
        """Return the launches for a queue, which have no memory of their own; None if not all are kernels of the same queue."""
        if backend not in self.lists and all(self.kernels) and not any(self.begun):
            launches = [
                ListedLaunch(program, (*step.inputs, *step.outputs), pick)
                for program, step, pick in zip(self.programs, self.plan.launches, self.arguments, strict=True)
            ]
            self.lists[backend] = backend.launch_list(launches)
        return self.lists.get(backend)

    def places_between(self) -> tuple[dict[int, int], int]:
        """Return the places of intermediate values in one piece of memory, and its size; values share what lives no longer."""
        buffers, wanted, size = allocation(self.plan), {*self.plan.program.results}, 0
        begins: dict[int, int] = {}
        for value, number in buffers.of.items():
            if value not in wanted and number not in begins:
                begins[number] = size
                size += aligned(buffers.kinds[number].nbytes)
        return {value: begins[number] for value, number in buffers.of.items() if value not in wanted}, size

    def on(self, backend: Backend) -> Prepared:
        """Return the same for another queue of the device."""
        return self if backend is self.backend else self.through(backend, lambda body: body.on(backend))

    def launching(self) -> Prepared:
        """Return the object that launches this plan now: itself, or the wrapper of an open profile."""
        return followers[-1](self) if followers else self

    def through(self, backend: Backend, each: Callable[[Prepared], Prepared]) -> Prepared:
        """Return the same for another queue of the device; a function maps the compiled plans of iterations to that queue."""
        other = copy.copy(self)
        other.backend = backend
        other.programs = [p.through(backend, each) if isinstance(p, Repeated) else p for p in self.programs]
        return other

    def _compiled(self, step: PlannedLaunch, compiled: Mapping[Any, Any]) -> Any:
        match step.kernel:
            case Kernel() as kernel:
                return compiled[content(kernel)]
            case Iteration() as kernel:
                return CompiledIteration(
                    self.backend, kernel, self.plan.limits, lambda plan: Prepared(self.backend, plan)
                )
            case Reversal() as kernel:
                return CompiledReversal(
                    self.backend, kernel, self.plan.limits, lambda plan: Prepared(self.backend, plan)
                )
            case Prebuilt(source=source, binary=binary):
                return self.backend.load(source, binary)
            case HostFunction() | DeviceFunction():
                return None
        raise AssertionError(f"no plan launches {step.kernel}")

    def bind(self, number: int, values: dict[int, Argument]) -> Launch:
        """Return a launch of a step with these values; an iteration leaves there what goes back through it."""
        step, program = self.plan.launches[number], self.programs[number]
        arguments = [*self.arguments[number](values)]
        if isinstance(step.kernel, HostFunction):
            return _bind_host(step.kernel, arguments, self.backend)
        if isinstance(step.kernel, DeviceFunction):
            return _bind_library(step.kernel, arguments, self.backend)
        if number in self.swept:
            back: CompiledReversal = self.programs[self.swept[number]]
            values[~self.swept[number]], launch = back.begin(arguments)
            return launch
        if isinstance(program, CompiledReversal):
            return program.bind(arguments, values.pop(~number, None))
        if isinstance(program, CompiledIteration):
            return program.bind(arguments)
        launch, copies = self.backend.bind(program, arguments), self._beginnings(number, values)
        return Launch((*copies, *launch.parts), launch.adjust) if copies else launch

    def _beginnings(self, number: int, values: Mapping[int, Argument]) -> list[Part]:
        """Return copies of the initial values of outputs, if these lie in other memory."""
        types, begun = self.plan.program.types, self.begun[number].items()
        pairs = [(v, values[v], values[initial]) for v, initial in begun if values[v] is not values[initial]]
        return [partial(self.backend.copy, types[v], initial, buffer) for v, buffer, initial in pairs]

    def upload(self, value: int, buffer: Buffer, planes: Array) -> Part:
        """Return a part that copies a frame of a sensor to a buffer."""
        return partial(self.backend.write, buffer, planes)

    def _once(self, number: int, values: dict[int, Argument]) -> None:
        if not self.kernels[number]:
            self.backend.launch(self.bind(number, values).parts)
        else:
            if self.begun[number]:
                self.backend.launch(self._beginnings(number, values))
            self.backend.once(self.programs[number], self.arguments[number](values))

    def constants(self, values: dict[int, Argument]) -> dict[int, Buffer]:
        """Run the launches that run once, and return their results that later launches read."""
        first = self.once
        self.run(values, {}, 0, first)
        read = {value for step in self.plan.launches[first:] for value in step.inputs}
        return {v: values[v] for step in self.plan.launches[:first] for v in step.outputs if v in read}

    def run(
        self,
        values: dict[int, Argument],
        memory: Mapping[int, Buffer] = MappingProxyType({}),
        first: int = 0,
        last: int | None = None,
    ) -> dict[int, Buffer]:
        """Launch everything; `values` has the leaves and gains the wanted values, in their buffers of `memory` if there are any.

        Args:
            first, last: the first launch, and the one behind the last; `values` has the results of those before it.
        """
        launching = self.launching() if followers else self
        for number, outputs, replaced, done in self.steps[first:last]:
            for value, kind in outputs:
                if value in memory:
                    values[value] = memory[value]
                else:
                    values[value] = values[replaced[value]] if value in replaced else self.backend.empty(kind)
            launching._once(number, values)
            for value in done:
                del values[value]
        return values


def _picker(numbers: Sequence[int]) -> Callable[[Mapping[int, Argument]], Sequence[Argument]]:
    """Return a function that gives the values of these numbers in order, by one call of C."""
    if len(numbers) > 1:
        return itemgetter(*numbers)
    return lambda values: [values[number] for number in numbers]


def _bind_host(kernel: HostFunction, arguments: list[Argument], backend: Backend) -> Launch:
    """Return a launch of a host function, between a download and an upload; it waits for its inputs."""
    inputs = arguments[: len(kernel.inputs)]

    def run() -> None:
        note_launch(kernel.name, kernel.where)
        results = kernel.run([download(p.type, a, backend) for p, a in zip(kernel.inputs, inputs, strict=True)])
        for param, buffer, array in zip(kernel.written, arguments[len(inputs) :], results, strict=True):
            backend.write(buffer, planes_of(param.type, array))

    return Launch((run,), inputs.__setitem__)


def _bind_library(kernel: DeviceFunction, arguments: list[Argument], backend: Backend) -> Launch:
    """Return a launch of a library function, in the order of the queue and on device memory; its arguments are buffers."""
    memory = [(param.type, buffer) for param, buffer in zip((*kernel.inputs, *kernel.written), arguments, strict=True)]
    count = len(kernel.inputs)

    def run() -> None:
        note_launch(kernel.name, kernel.where)
        with backend.arrays(memory[:count], memory[count:]) as arrays:
            kernel.run(arrays[:count], arrays[count:])

    return Launch((run,), memory.__setitem__)
