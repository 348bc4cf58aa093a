"""A plan on a device: compiled once, then launched with whatever buffers it is given."""

from __future__ import annotations

from gpuop.config import config
from gpuop.fusion.explain import explain
from gpuop.fusion.plan import Plan
from gpuop.ir.text import show
from gpuop.runtime.backend import Argument, Backend, Buffer


class Prepared:
    """A compiled plan. `run` allocates; a compute graph binds the launches to buffers of its own instead."""

    def __init__(self, backend: Backend, plan: Plan) -> None:
        self.backend = backend
        self.plan = plan
        config.trace(2, lambda: f"gpuop: {explain(plan)}")
        config.trace(3, lambda: "\n".join(show(step.kernel) for step in plan.steps))
        self.programs = [backend.compile(step.kernel) for step in plan.steps]
        wanted = set(plan.program.wanted)
        self.last_use = {
            value: n
            for n, step in enumerate(plan.steps)
            for value in (*step.inputs, *step.outputs)
            if value not in wanted
        }

    def run(self, values: dict[int, Argument]) -> dict[int, Buffer]:
        """Launch everything; `values` holds the leaves and gains the wanted values."""
        types = self.plan.program.types
        for number, (step, program) in enumerate(zip(self.plan.steps, self.programs, strict=True)):
            for value in step.outputs:
                values[value] = self.backend.empty(types[value])
            self.backend.bind(program, [values[v] for v in (*step.inputs, *step.outputs)])()
            for value in (*step.inputs, *step.outputs):
                if self.last_use.get(value) == number:
                    del values[value]
        return values
