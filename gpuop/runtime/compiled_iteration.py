"""Iterations on a device: launches are bound once for each way in which states lie in buffers, then repeated."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any, Protocol

from gpuop.bounded import BoundedCache
from gpuop.fusion.iteration import Iteration, Part
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import Plan
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Argument, Backend, Buffer, Launch, download

MOST_BOUND = 64  # ways in which states lie in buffers that launches are kept for


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

    def through(self, backend: Backend, each: Callable[[Any], CompiledPlan]) -> CompiledIteration:
        """The same for another queue of the device, with what a function makes of each compiled plan in it."""
        other = copy.copy(self)
        other.backend = backend
        other.bodies = {turns: each(body) for turns, body in self.bodies.items()}
        other.until = each(self.until) if self.until is not None else None
        return other

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


Place = tuple[int, ...]  # the number of the buffer that each state is in; those of inputs are -1, -2 …


class _Bound:
    """The states come from the inputs, then are in buffers in turn, the outputs among them: what is computed goes to free ones."""

    def __init__(self, turns: CompiledIteration, arguments: list[Argument]) -> None:
        self.turns, self.kernel, self.backend = turns, turns.kernel, turns.backend
        self.given, self.outputs = arguments[: len(self.kernel.inputs)], arguments[len(self.kernel.inputs) :]
        self.types = [param.type for param in self.kernel.written]
        self.memory = {turns: self._memory(turns) for turns in self.turns.bodies}
        if self.turns.until is not None:
            self.memory[0] = self._memory(0)
        self.first: Place = tuple(~position for position in range(len(self.outputs)))
        self.kinds: list[FieldType] = []  # of the buffers
        self.steps: dict[tuple[Place, int], tuple[Place, dict[int, int]]] = {}
        self.buffers = self._written()
        self.launches: BoundedCache[tuple[Place, int], list[Callable[[], Any]]] = BoundedCache(MOST_BOUND)
        self.tests: BoundedCache[Place, list[Callable[[], Any]]] = BoundedCache(MOST_BOUND)

    def _memory(self, turns: int) -> dict[int, Buffer]:
        """Buffers for what so many turns compute, or the condition (0); the next states have theirs."""
        prepared = self.turns.bodies[turns] if turns else self.turns.until
        assert prepared is not None
        nexts = self.turns.parts[turns].program.wanted if turns else ()
        types = prepared.plan.program.types
        made = (v for step in prepared.plan.launches for v in step.outputs if v not in nexts)
        return {v: self.backend.empty(types[v]) for v in made}

    # --- where states are -----------------------------------------------------------------------------------------

    def _step(self, place: Place, turns: int) -> tuple[Place, dict[int, int]]:
        """Where the states are after so many turns, and the buffers of the next states that these compute."""
        if (place, turns) not in self.steps:
            part, taken = self.turns.parts[turns], set(place)
            made: dict[int, int] = {}
            for value in part.program.wanted:
                if value not in part.given and value not in made:
                    made[value] = self._free(part.program.types[value], taken)
                    taken.add(made[value])
            after = (place[part.given[v]] if v in part.given else made[v] for v in part.program.wanted)
            self.steps[place, turns] = tuple(after), made
        return self.steps[place, turns]

    def _free(self, kind: FieldType, taken: set[int]) -> int:
        free = (number for number, other in enumerate(self.kinds) if other == kind and number not in taken)
        found = next(free, len(self.kinds))
        if found == len(self.kinds):
            self.kinds.append(kind)
        return found

    def _written(self) -> dict[int, Argument]:
        """The buffers that are outputs: those that the last turn writes, where it is known, or else the first one."""
        place, known = self.first, self.kernel.times is not None and self.kernel.until is None
        for turns in self.turns.launched():
            place, _ = self._step(place, turns)
            if not known:
                break
        parts = self.turns.parts.values()
        if not known and any(v in part.given for part in parts for v in part.program.wanted):
            return {}  # a state may end where another one is to be
        return {
            number: output
            for number, output in zip(reversed(place), reversed(self.outputs), strict=True)
            if number >= 0
        }

    def _buffer(self, number: int) -> Argument:
        if number < 0:
            return self.given[~number]
        if number not in self.buffers:
            self.buffers[number] = self.backend.empty(self.kinds[number])
        return self.buffers[number]

    # --- turns ----------------------------------------------------------------------------------------------------

    def adjust(self, position: int, scalars: Argument) -> None:
        """Give later runs another by-value argument."""
        self.given[position] = scalars
        self.launches.clear()
        self.tests.clear()

    def run(self) -> None:
        """Take all turns. Where their number is known, the last one writes the outputs."""
        kernel, place, done = self.kernel, self.first, 0
        for turns in self.turns.launched():
            self.backend.launch(self.launches.find((place, turns), partial(self._turn, place, turns)))
            place, done = self._step(place, turns)[0], done + turns
            if kernel.until is not None and done % kernel.every == 0 and self._ends(place):
                break
        self._deliver(place)

    def _turn(self, place: Place, turns: int) -> list[Callable[[], Any]]:
        """The launches of turns that take the states from there."""
        made = {value: self._buffer(number) for value, number in self._step(place, turns)[1].items()}
        return self._bound(self.turns.bodies[turns], self.turns.parts[turns], place, self.memory[turns] | made)

    def _bound(
        self, prepared: CompiledPlan, part: Part, place: Place, made: Mapping[int, Argument]
    ) -> list[Callable[[], Any]]:
        states = [*map(self._buffer, place), *self.given[len(place) :]]
        values = {v: states[position] for v, position in part.given.items()} | dict(made)
        return [part for number in range(len(prepared.plan.launches)) for part in prepared.bind(number, values).parts]

    def _ends(self, place: Place) -> bool:
        """Whether the condition holds for the states; waits."""
        part, prepared = self.kernel.until, self.turns.until
        assert part is not None and prepared is not None
        (wanted,), memory = part.program.wanted, self.memory[0]
        self.backend.launch(self.tests.find(place, partial(self._bound, prepared, part, place, memory)))
        return bool(download(part.program.types[wanted], memory[wanted], self.backend))

    def _deliver(self, place: Place) -> None:
        """Bring the states to the outputs, where they are not."""
        for kind, number, output in zip(self.types, place, self.outputs, strict=True):
            state = self._buffer(number)
            if state is not output:
                self.backend.copy(kind, state, output)
