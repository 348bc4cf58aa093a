"""Iterations on a device: launches are bound once for each of two sets of buffers that states are in, then repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Protocol

from gpuop.fusion.iteration import Iteration, Part
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import Plan
from gpuop.runtime.base.backend import Argument, Backend, Buffer, Launch, download


class CompiledPlan(Protocol):
    """A compiled plan."""

    plan: Plan

    def bind(self, number: int, values: Mapping[int, Argument]) -> Launch: ...


class CompiledIteration:
    """An iteration, compiled.

    Args:
        limits: of the plans of turns.
        prepare: compiles a plan.
    """

    def __init__(
        self, backend: Backend, kernel: Iteration, limits: Limits, prepare: Callable[[Plan], CompiledPlan]
    ) -> None:
        self.backend, self.kernel = backend, kernel
        self.body = prepare(kernel.turn.plan(limits))
        self.until = prepare(kernel.until.plan(limits)) if kernel.until is not None else None

    def bind(self, arguments: Sequence[Argument]) -> Launch:
        """A launch of all turns with these inputs and outputs; it waits where a condition ends them."""
        bound = _Bound(self, list(arguments))
        return Launch((bound.run,), bound.adjust)


class _Bound:
    """The states come from the inputs, then go to and fro between two sets of buffers: the outputs (0) and own ones (1)."""

    def __init__(self, turns: CompiledIteration, arguments: list[Argument]) -> None:
        self.turns, self.kernel, self.backend = turns, turns.kernel, turns.backend
        self.given = arguments[: len(self.kernel.inputs)]
        outputs = arguments[len(self.kernel.inputs) :]
        wanted, types = self.kernel.turn.program.wanted, self.kernel.turn.program.types
        own = {v: self.backend.empty(types[v]) for v in wanted}
        first = {v: outputs[wanted.index(v)] for v in wanted}  # a value may be that of several states
        self.outputs = outputs
        self.buffer_sets = [[first[v] for v in wanted], [own[v] for v in wanted]]
        self.memory = {
            part: self._memory(prepared)
            for part, prepared in ((self.kernel.turn, turns.body), (self.kernel.until, turns.until))
            if part is not None and prepared is not None
        }
        self.launches: dict[tuple[int | None, int], list[Callable[[], Any]]] = {}
        self.tests: dict[int, tuple[list[Callable[[], Any]], Argument]] = {}

    def _memory(self, prepared: CompiledPlan) -> dict[int, Buffer]:
        """Buffers for what a part computes; the next states have theirs."""
        types, wanted = prepared.plan.program.types, self.kernel.turn.program.wanted
        nexts = wanted if prepared is self.turns.body else ()
        made = (v for step in prepared.plan.launches for v in step.outputs if v not in nexts)
        return {v: self.backend.empty(types[v]) for v in made}

    def adjust(self, position: int, scalars: Argument) -> None:
        """Give later runs another by-value argument."""
        self.given[position] = scalars
        self.launches.clear()
        self.tests.clear()

    def run(self) -> None:
        """Take all turns. Where their number is known, the last one writes the outputs."""
        times = self.kernel.times
        start = (times - 1) % 2 if times is not None and self.kernel.until is None else 0
        current: int | None = None
        for turn in count() if times is None else range(times):
            following = (start + turn) % 2
            self.backend.launch(self._turn(current, following))
            current = following
            if self.kernel.until is not None and (turn + 1) % self.kernel.every == 0 and self._ends(current):
                break
        self._deliver(current)

    def _turn(self, current: int | None, following: int) -> list[Callable[[], Any]]:
        """The launches of a turn that takes the states from one set of buffers (None: the inputs) to another."""
        if (current, following) not in self.launches:
            nexts = dict(zip(self.kernel.turn.program.wanted, self.buffer_sets[following], strict=True))
            self.launches[current, following] = self._bound(self.turns.body, self.kernel.turn, current, nexts)
        return self.launches[current, following]

    def _bound(
        self, prepared: CompiledPlan, part: Part, current: int | None, nexts: Mapping[int, Argument]
    ) -> list[Callable[[], Any]]:
        states = self.given if current is None else [*self.buffer_sets[current], *self.given[len(self.outputs) :]]
        values = {v: states[position] for v, position in part.given.items()} | self.memory[part] | dict(nexts)
        return [part for number in range(len(prepared.plan.launches)) for part in prepared.bind(number, values).parts]

    def _ends(self, current: int) -> bool:
        """Whether the condition holds for the states; waits."""
        part, prepared = self.kernel.until, self.turns.until
        assert part is not None and prepared is not None
        (wanted,) = part.program.wanted
        if current not in self.tests:
            self.tests[current] = self._bound(prepared, part, current, {}), self.memory[part][wanted]
        launches, buffer = self.tests[current]
        self.backend.launch(launches)
        return bool(download(part.program.types[wanted], buffer, self.backend))

    def _deliver(self, current: int | None) -> None:
        """Bring the states to the outputs, where they are not."""
        assert current is not None
        types = [param.type for param in self.kernel.written]
        for kind, state, output in zip(types, self.buffer_sets[current], self.outputs, strict=True):
            if state is not output:
                self.backend.copy(kind, state, output)
