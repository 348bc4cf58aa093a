"""Iterations on a device: launches are bound once for each assignment of states to buffers, then repeated."""

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

MOST_BOUND = 64  # cached assignments of states to buffers, with their bound launches


class CompiledPlan(Protocol):
    """A compiled plan."""

    plan: Plan

    def bind(self, number: int, values: dict[int, Argument]) -> Launch: ...


class CompiledIteration:
    """A compiled iteration.

    Args:
        limits: limits of the plans of its parts.
        prepare: compiles a plan.
    """

    def __init__(
        self, backend: Backend, kernel: Iteration, limits: Limits, prepare: Callable[[Plan], CompiledPlan]
    ) -> None:
        self.backend, self.kernel = backend, kernel
        together, count = kernel.together(limits)
        self.parts = {1: kernel.turn, count: together}  # by the number of iterations
        self.count = count
        self.bodies = {iterations: prepare(part.plan(limits)) for iterations, part in self.parts.items()}
        self.until = prepare(kernel.until.plan(limits)) if kernel.until is not None else None
        counted = kernel.times is not None and kernel.until is None
        self.places = StatePlaces(
            len(kernel.outputs), self.parts, self.launched() if counted else islice(self.launched(), 1)
        )

    def through(self, backend: Backend, each: Callable[[Any], CompiledPlan]) -> CompiledIteration:
        """Return the same for another queue of the device; a function maps each compiled plan to that queue."""
        other = copy.copy(self)
        other.backend = backend
        other.bodies = {iterations: each(body) for iterations, body in self.bodies.items()}
        other.until = each(self.until) if self.until is not None else None
        return other

    def launched(self) -> Iterator[int]:
        """Return the number of iterations in each launch."""
        times = self.kernel.times
        if times is None:
            return repeat(self.count)
        return chain(repeat(self.count, times // self.count), repeat(1, times % self.count))

    def bind(self, arguments: Sequence[Argument]) -> Launch:
        """Return a launch of all iterations with these inputs and outputs; it waits if a condition ends them."""
        bound = _Bound(self, list(arguments))
        return Launch((bound.run,), bound.adjust)


Place = tuple[int, ...]  # the buffer number of each state; inputs are -1, -2 …


class StatePlaces:
    """Assignments of states to buffers: states begin in the inputs, then alternate between buffers; results go to free ones.

    Args:
        launched: the number of iterations in each launch, as far as known.

    Attributes:
        last: the assignment after these launches.
    """

    def __init__(self, states: int, parts: Mapping[int, Part], launched: Iterable[int]) -> None:
        self.parts = parts
        types = (part.program.types[v] for part in parts.values() for v in part.program.results)
        self.kinds = list(dict.fromkeys(types))  # buffer numbers go round the types
        self.steps: dict[tuple[Place, int], tuple[Place, dict[int, int]]] = {}
        self.first: Place = tuple(~position for position in range(states))
        self.last = self.first
        for iterations in launched:
            self.last, _ = self.step(self.last, iterations)

    def kind(self, number: int) -> FieldType:
        """Return the type of a buffer."""
        return self.kinds[number % len(self.kinds)]

    def step(self, place: Place, iterations: int) -> tuple[Place, dict[int, int]]:
        """Return the assignment after some iterations, and the buffers of the states that they compute."""
        result = self.steps.get((place, iterations))
        if result is None:
            result = self.steps[place, iterations] = self._step(self.parts[iterations], place)
        return result

    def _step(self, part: Part, place: Place) -> tuple[Place, dict[int, int]]:
        used, buffers = set(place), dict[int, int]()
        for value in part.program.results:
            if value not in part.positions and value not in buffers:
                of_kind = count(self.kinds.index(part.program.types[value]), len(self.kinds))
                buffers[value] = next(number for number in of_kind if number not in used)
                used.add(buffers[value])
        return tuple(
            place[part.positions[v]] if v in part.positions else buffers[v] for v in part.program.results
        ), buffers


class _Bound:
    """The buffers of an iteration, with the outputs among them, and the launches that are bound to them."""

    def __init__(self, compiled: CompiledIteration, arguments: list[Argument]) -> None:
        self.compiled, self.kernel, self.backend = compiled, compiled.kernel, compiled.backend
        self.places = compiled.places
        self.inputs, self.outputs = arguments[: len(self.kernel.inputs)], arguments[len(self.kernel.inputs) :]
        self.types = [param.type for param in self.kernel.written]
        self.memory = {iterations: self._memory(iterations) for iterations in self.compiled.bodies}
        if self.compiled.until is not None:
            self.memory[0] = self._memory(0)
        self.buffers = self._written()
        self.launches: BoundedCache[tuple[Place, int], list[Callable[[], Any]]] = BoundedCache(MOST_BOUND)
        self.tests: BoundedCache[Place, list[Callable[[], Any]]] = BoundedCache(MOST_BOUND)

    def _memory(self, iterations: int) -> dict[int, Buffer]:
        """Allocate buffers for the intermediates of a part, or of the condition (0); states have buffers of their own."""
        prepared = self.compiled.bodies[iterations] if iterations else self.compiled.until
        assert prepared is not None
        nexts = self.compiled.parts[iterations].program.results if iterations else ()
        types = prepared.plan.program.types
        own = (v for step in prepared.plan.launches for v in step.outputs if v not in nexts)
        return {v: self.backend.empty(types[v]) for v in own}

    def _written(self) -> dict[int, Argument]:
        """Return the buffers that are outputs: those that the last iteration writes if it is known, otherwise the first ones."""
        parts = self.compiled.parts.values()
        counted = self.kernel.times is not None and self.kernel.until is None
        if not counted and any(v in part.positions for part in parts for v in part.program.results):
            return {}  # one state may end in the output of another one
        pairs = zip(reversed(self.places.last), reversed(self.outputs), strict=True)
        return {number: output for number, output in pairs if number >= 0}

    def _buffer(self, number: int) -> Argument:
        if number < 0:
            return self.inputs[~number]
        if number not in self.buffers:
            self.buffers[number] = self.backend.empty(self.places.kind(number))
        return self.buffers[number]

    # --- iterations -----------------------------------------------------------------------------------------------

    def adjust(self, position: int, scalars: Argument) -> None:
        """Set a by-value argument of later runs."""
        self.inputs[position] = scalars
        self.launches.clear()
        self.tests.clear()

    def run(self) -> None:
        """Run all iterations. If their number is known, the last one writes the outputs."""
        self.place, launched, until = self.places.first, self.compiled.launched(), self.kernel.until
        looking = None if until is None else self.kernel.every // self.compiled.count
        while count := self._take(islice(launched, looking)):
            if until is None or (count == self.kernel.every and self._ends(self.place)):
                break
        for kind, number, output in zip(self.types, self.place, self.outputs, strict=True):
            state = self._buffer(number)
            if state is not output:  # states that the outputs do not have yet
                self.backend.copy(kind, state, output)

    def _take(self, launched: Iterable[int]) -> int:
        """Launch, and return the number of iterations."""
        count = 0

        def launches() -> Iterator[list[Callable[[], Any]]]:
            nonlocal count
            for iterations in launched:
                yield self.launches.find((self.place, iterations), partial(self._part, self.place, iterations))
                self.place, count = self.places.step(self.place, iterations)[0], count + iterations

        self.backend.launch(chain.from_iterable(launches()))
        return count

    def _part(self, place: Place, iterations: int) -> list[Callable[[], Any]]:
        """Return the launches of a part with the states in these buffers."""
        buffers = {value: self._buffer(number) for value, number in self.places.step(place, iterations)[1].items()}
        return self._bound(
            self.compiled.bodies[iterations], self.compiled.parts[iterations], place, self.memory[iterations] | buffers
        )

    def _bound(
        self, prepared: CompiledPlan, part: Part, place: Place, buffers: Mapping[int, Argument]
    ) -> list[Callable[[], Any]]:
        states = [*map(self._buffer, place), *self.inputs[len(place) :]]
        values = {v: states[position] for v, position in part.positions.items()} | dict(buffers)
        return [part for number in range(len(prepared.plan.launches)) for part in prepared.bind(number, values).parts]

    def _ends(self, place: Place) -> bool:
        """Return whether the condition holds for the states; waits."""
        part, prepared = self.kernel.until, self.compiled.until
        assert part is not None and prepared is not None
        (output,), memory = part.program.results, self.memory[0]
        self.backend.launch(self.tests.find(place, partial(self._bound, prepared, part, place, memory)))
        return bool(download(part.program.types[output], memory[output], self.backend))
