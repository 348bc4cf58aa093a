"""Iterations on a device: launches are bound once for each way in which states lie in buffers, then repeated."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, count, islice, repeat
from typing import Any, Protocol

from gpuop.base.lru import BoundedCache
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
        known = kernel.times is not None and kernel.until is None
        self.places = StatePlaces(
            len(kernel.outputs), self.parts, self.launched() if known else islice(self.launched(), 1)
        )

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


class StatePlaces:
    """Where states are: they come from the inputs, then are in buffers in turn; what is computed goes to free ones.

    Args:
        launched: the turns of the launches that there are, as far as that is known.

    Attributes:
        last: where the states are after those.
    """

    def __init__(self, states: int, parts: Mapping[int, Part], launched: Iterable[int]) -> None:
        self.parts = parts
        types = (part.program.types[v] for part in parts.values() for v in part.program.wanted)
        self.kinds = list(dict.fromkeys(types))  # buffers are numbered in turn: the first of each type, the second …
        self.steps: dict[tuple[Place, int], tuple[Place, dict[int, int]]] = {}
        self.first: Place = tuple(~position for position in range(states))
        self.last = self.first
        for turns in launched:
            self.last, _ = self.step(self.last, turns)

    def kind(self, number: int) -> FieldType:
        """Of a buffer."""
        return self.kinds[number % len(self.kinds)]

    def step(self, place: Place, turns: int) -> tuple[Place, dict[int, int]]:
        """Where the states are after so many turns, and the buffers of the next states that these compute."""
        found = self.steps.get((place, turns))
        if found is None:
            found = self.steps[place, turns] = self._step(self.parts[turns], place)
        return found

    def _step(self, part: Part, place: Place) -> tuple[Place, dict[int, int]]:
        taken, made = set(place), dict[int, int]()
        for value in part.program.wanted:
            if value not in part.given and value not in made:
                of_kind = count(self.kinds.index(part.program.types[value]), len(self.kinds))
                made[value] = next(number for number in of_kind if number not in taken)
                taken.add(made[value])
        return tuple(place[part.given[v]] if v in part.given else made[v] for v in part.program.wanted), made


class _Bound:
    """The buffers of an iteration, the outputs among them, and its launches with these."""

    def __init__(self, turns: CompiledIteration, arguments: list[Argument]) -> None:
        self.turns, self.kernel, self.backend = turns, turns.kernel, turns.backend
        self.places = turns.places
        self.given, self.outputs = arguments[: len(self.kernel.inputs)], arguments[len(self.kernel.inputs) :]
        self.types = [param.type for param in self.kernel.written]
        self.memory = {turns: self._memory(turns) for turns in self.turns.bodies}
        if self.turns.until is not None:
            self.memory[0] = self._memory(0)
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

    def _written(self) -> dict[int, Argument]:
        """The buffers that are outputs: those that the last turn writes, where it is known, or else the first one."""
        parts = self.turns.parts.values()
        known = self.kernel.times is not None and self.kernel.until is None
        if not known and any(v in part.given for part in parts for v in part.program.wanted):
            return {}  # a state may end where another one is to be
        pairs = zip(reversed(self.places.last), reversed(self.outputs), strict=True)
        return {number: output for number, output in pairs if number >= 0}

    def _buffer(self, number: int) -> Argument:
        if number < 0:
            return self.given[~number]
        if number not in self.buffers:
            self.buffers[number] = self.backend.empty(self.places.kind(number))
        return self.buffers[number]

    # --- turns ----------------------------------------------------------------------------------------------------

    def adjust(self, position: int, scalars: Argument) -> None:
        """Give later runs another by-value argument."""
        self.given[position] = scalars
        self.launches.clear()
        self.tests.clear()

    def run(self) -> None:
        """Take all turns. Where their number is known, the last one writes the outputs."""
        self.place, launched, until = self.places.first, self.turns.launched(), self.kernel.until
        looking = None if until is None else self.kernel.every // self.turns.count
        while taken := self._take(islice(launched, looking)):
            if until is None or (taken == self.kernel.every and self._ends(self.place)):
                break
        self._deliver(self.place)

    def _take(self, launched: Iterable[int]) -> int:
        """Launch, and count the turns."""
        taken = 0

        def launches() -> Iterator[list[Callable[[], Any]]]:
            nonlocal taken
            for turns in launched:
                yield self.launches.find((self.place, turns), partial(self._turn, self.place, turns))
                self.place, taken = self.places.step(self.place, turns)[0], taken + turns

        self.backend.launch(chain.from_iterable(launches()))
        return taken

    def _turn(self, place: Place, turns: int) -> list[Callable[[], Any]]:
        """The launches of turns that take the states from there."""
        made = {value: self._buffer(number) for value, number in self.places.step(place, turns)[1].items()}
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
