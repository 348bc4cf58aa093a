"""Iterations on a device: launches are bound once for each place that the states can be in, then repeated."""

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
    """The states go to and fro between the outputs (place 0) and buffers of our own (place 1); they come from the inputs."""

    def __init__(self, turns: CompiledIteration, arguments: list[Argument]) -> None:
        self.turns, self.kernel, self.backend = turns, turns.kernel, turns.backend
        self.given = arguments[: len(self.kernel.inputs)]
        outputs = arguments[len(self.kernel.inputs) :]
        wanted, types = self.kernel.turn.program.wanted, self.kernel.turn.program.types
        own = {v: self.backend.empty(types[v]) for v in wanted}
        first = {v: outputs[wanted.index(v)] for v in wanted}  # a value may be that of several states
        self.outputs = outputs
        self.places = [[first[v] for v in wanted], [own[v] for v in wanted]]
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
        place: int | None = None
        for turn in count() if times is None else range(times):
            following = (start + turn) % 2
            self.backend.launch(self._turn(place, following))
            place = following
            if self.kernel.until is not None and (turn + 1) % self.kernel.every == 0 and self._ends(place):
                break
        self._deliver(place)

    def _turn(self, place: int | None, following: int) -> list[Callable[[], Any]]:
        """The launches of a turn that takes the states from one place to another."""
        if (place, following) not in self.launches:
            nexts = dict(zip(self.kernel.turn.program.wanted, self.places[following], strict=True))
            self.launches[place, following] = self._bound(self.turns.body, self.kernel.turn, place, nexts)
        return self.launches[place, following]

    def _bound(
        self, prepared: CompiledPlan, part: Part, place: int | None, nexts: Mapping[int, Argument]
    ) -> list[Callable[[], Any]]:
        states = self.given if place is None else [*self.places[place], *self.given[len(self.outputs) :]]
        values = {v: states[position] for v, position in part.given.items()} | self.memory[part] | dict(nexts)
        return [part for number in range(len(prepared.plan.launches)) for part in prepared.bind(number, values).parts]

    def _ends(self, place: int) -> bool:
        """Whether the condition holds for the states; waits."""
        part, prepared = self.kernel.until, self.turns.until
        assert part is not None and prepared is not None
        (wanted,) = part.program.wanted
        if place not in self.tests:
            self.tests[place] = self._bound(prepared, part, place, {}), self.memory[part][wanted]
        launches, buffer = self.tests[place]
        self.backend.launch(launches)
        return bool(download(part.program.types[wanted], buffer, self.backend))

    def _deliver(self, place: int | None) -> None:
        """Bring the states to the outputs, where they are not."""
        assert place is not None
        types = [param.type for param in self.kernel.written]
        for kind, state, output in zip(types, self.places[place], self.outputs, strict=True):
            if state is not output:
                self.backend.copy(kind, state, output)
