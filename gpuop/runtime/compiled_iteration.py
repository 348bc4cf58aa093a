"""Iterations on a device: launches are bound once for each of two sets of buffers that states are in, then repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, repeat
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
        together, count = kernel.together(limits)
        self.parts = {1: kernel.turn, count: together}  # by the turns that they are
        self.count = count
        self.bodies = {turns: prepare(part.plan(limits)) for turns, part in self.parts.items()}
        self.until = prepare(kernel.until.plan(limits)) if kernel.until is not None else None

    def launched(self) -> Iterator[int]:
        """The turns of each launch."""
        times = self.kernel.times
        if times is None:
            return repeat(self.count)
        return chain(repeat(self.count, times // self.count), repeat(1, times % self.count))

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
        self.memory = {turns: self._memory(turns) for turns in self.turns.bodies}
        if self.turns.until is not None:
            self.memory[0] = self._memory(0)
        own = {v: self.backend.empty(types[v]) for v in wanted}
        first = {v: outputs[wanted.index(v)] for v in wanted}  # a value may be that of several states
        self.outputs = outputs
        self.buffer_sets = [[first[v] for v in wanted], [own[v] for v in wanted]]
        self.launches: dict[tuple[int | None, int, int], list[Callable[[], Any]]] = {}
        self.tests: dict[int, tuple[list[Callable[[], Any]], Argument]] = {}

    def _memory(self, turns: int) -> dict[int, Buffer]:
        """Buffers for what so many turns compute, or the condition (0); the next states have theirs."""
        prepared = self.turns.bodies[turns] if turns else self.turns.until
        assert prepared is not None
        nexts = self.turns.parts[turns].program.wanted if turns else ()
        types = prepared.plan.program.types
        made = (v for step in prepared.plan.launches for v in step.outputs if v not in nexts)
        return {v: self.backend.empty(types[v]) for v in made}

    def adjust(self, position: int, scalars: Argument) -> None:
        """Give later runs another by-value argument."""
        self.given[position] = scalars
        self.launches.clear()
        self.tests.clear()

    def run(self) -> None:
        """Take all turns. Where their number is known, the last one writes the outputs."""
        kernel = self.kernel
        known = kernel.times is not None and kernel.until is None
        start = (sum(1 for _ in self.turns.launched()) - 1) % 2 if known else 0
        current: int | None = None
        done = 0
        for number, turns in enumerate(self.turns.launched()):
            following = (start + number) % 2
            self.backend.launch(self._turn(current, following, turns))
            current, done = following, done + turns
            if kernel.until is not None and done % kernel.every == 0 and self._ends(current):
                break
        self._deliver(current)

    def _turn(self, current: int | None, following: int, turns: int) -> list[Callable[[], Any]]:
        """The launches of turns that take the states from one set of buffers (None: the inputs) to another."""
        key = current, following, turns
        if key not in self.launches:
            part = self.turns.parts[turns]
            values = self.memory[turns] | dict(zip(part.program.wanted, self.buffer_sets[following], strict=True))
            self.launches[key] = self._bound(self.turns.bodies[turns], part, current, values)
        return self.launches[key]

    def _bound(
        self, prepared: CompiledPlan, part: Part, current: int | None, made: Mapping[int, Argument]
    ) -> list[Callable[[], Any]]:
        states = self.given if current is None else [*self.buffer_sets[current], *self.given[len(self.outputs) :]]
        values = {v: states[position] for v, position in part.given.items()} | dict(made)
        return [part for number in range(len(prepared.plan.launches)) for part in prepared.bind(number, values).parts]

    def _ends(self, current: int) -> bool:
        """Whether the condition holds for the states; waits."""
        part, prepared = self.kernel.until, self.turns.until
        assert part is not None and prepared is not None
        (wanted,) = part.program.wanted
        if current not in self.tests:
            self.tests[current] = self._bound(prepared, part, current, self.memory[0]), self.memory[0][wanted]
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
