"""A plan on a device: compiled once, then launched with whatever buffers it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuop.config import config
from gpuop.fusion.explain import explain
from gpuop.fusion.iteration import Iteration, plan_of
from gpuop.fusion.plan import Plan
from gpuop.ir.kernel import HostFunction, Kernel
from gpuop.ir.text import show
from gpuop.runtime.backend import Argument, Backend, Buffer, Launch, download, planes_of
from gpuop.runtime.trace import note_launch
from gpuop.runtime.turns import Turns


class Prepared:
    """A compiled plan. `run` allocates; a compute graph binds the launches to buffers of its own instead."""

    def __init__(self, backend: Backend, plan: Plan) -> None:
        self.backend = backend
        self.plan = plan
        config.trace(2, lambda: f"gpuop: {explain(plan)}")
        config.trace(3, lambda: "\n".join(show(step.kernel) for step in plan.steps))
        self.programs = [self._compiled(step.kernel) for step in plan.steps]
        wanted = set(plan.program.wanted)
        self.last_use = {
            value: n
            for n, step in enumerate(plan.steps)
            for value in (*step.inputs, *step.outputs)
            if value not in wanted
        }

    def _compiled(self, kernel: Kernel) -> Any:
        if isinstance(kernel, Iteration):
            return Turns(
                self.backend, kernel, lambda program: Prepared(self.backend, plan_of(program, self.plan.limits))
            )
        return None if isinstance(kernel, HostFunction) else self.backend.compile(kernel)

    def bind(self, number: int, values: Mapping[int, Argument]) -> Launch:
        """A step of the plan with these values."""
        step = self.plan.steps[number]
        arguments = [values[v] for v in (*step.inputs, *step.outputs)]
        if isinstance(step.kernel, HostFunction):
            return _bind_host(step.kernel, arguments, self.backend)
        program = self.programs[number]
        return program.bind(arguments) if isinstance(program, Turns) else self.backend.bind(program, arguments)

    def run(self, values: dict[int, Argument]) -> dict[int, Buffer]:
        """Launch everything; `values` holds the leaves and gains the wanted values."""
        types = self.plan.program.types
        for number, step in enumerate(self.plan.steps):
            for value in step.outputs:
                values[value] = self.backend.empty(types[value])
            self.backend.launch((self.bind(number, values).run,))
            for value in {*step.inputs, *step.outputs}:
                if self.last_use.get(value) == number:
                    del values[value]
        return values


def _bind_host(kernel: HostFunction, arguments: list[Argument], backend: Backend) -> Launch:
    """From the device to the host and back; waits for what it needs."""
    given = arguments[: len(kernel.inputs)]

    def run() -> None:
        note_launch(kernel.name, "on the host")
        results = kernel.run([download(p.type, a, backend) for p, a in zip(kernel.inputs, given, strict=True)])
        for param, buffer, array in zip(kernel.written, arguments[len(given) :], results, strict=True):
            backend.write(buffer, planes_of(param.type, array))

    return Launch(run, given.__setitem__)
