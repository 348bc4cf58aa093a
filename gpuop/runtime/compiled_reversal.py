"""Reversals on a device: iterations run again from checkpoints, and what goes back meets their states from last to first."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from math import isqrt
from typing import Any

from gpuop.base.lru import BoundedCache
from gpuop.base.system import physical_memory
from gpuop.fusion.binomial_checkpoints import actions
from gpuop.fusion.iteration import Part, Reversal
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import Plan
from gpuop.ir.nodes import FieldParam
from gpuop.runtime.base.backend import Argument, Backend, Buffer, Launch, download
from gpuop.runtime.compiled_iteration import CompiledPlan

SHARE = 10  # of the device's memory, one part may keep all states
MOST_BOUND = 256  # cached places of states, with their bound launches
Calls = list[Callable[[], Any]]


class CompiledReversal:
    """A compiled reversal.

    Args:
        limits: limits of the plans of its parts.
        prepare: compiles a plan.
    """

    def __init__(
        self, backend: Backend, kernel: Reversal, limits: Limits, prepare: Callable[[Plan], CompiledPlan]
    ) -> None:
        self.backend, self.kernel = backend, kernel
        together, self.count = kernel.forward.together(limits)
        self.parts = {1: kernel.forward.turn, self.count: together}  # by the number of iterations
        self.bodies = {iterations: prepare(part.plan(limits)) for iterations, part in self.parts.items()}
        until = kernel.forward.until
        self.until = prepare(until.plan(limits)) if until is not None else None
        self.back = prepare(kernel.back.plan(limits))

    def through(self, backend: Backend, each: Callable[[Any], CompiledPlan]) -> CompiledReversal:
        """Return the same for another queue of the device; a function maps each compiled plan to that queue."""
        other = copy.copy(self)
        other.backend = backend
        other.bodies = {iterations: each(body) for iterations, body in self.bodies.items()}
        other.until = each(self.until) if self.until is not None else None
        other.back = each(self.back)
        return other

    def checkpoints(self, times: int) -> int:
        """Return the number of states to keep, the first included."""
        most = self.kernel.checkpoints
        if most is None:
            one = sum(param.type.nbytes for param in self.kernel.forward.written)
            fits = times * one * SHARE <= (self.backend.total_memory or physical_memory())
            most = times if fits else isqrt(times - 1) + 1
        return min(most, times)

    def begin(self, arguments: Sequence[Argument]) -> tuple[BoundReversal, Launch]:
        """Return a launch of the iteration itself with these inputs and outputs, which leaves states for the way back."""
        forward = self.kernel.forward
        bound = BoundReversal(self, arguments[: len(forward.inputs)])
        return bound, Launch((partial(bound.sweep, arguments[len(forward.inputs) :]),), bound.adjust)

    def bind(self, arguments: Sequence[Argument], begun: BoundReversal | None = None) -> Launch:
        """Return a launch of the whole with these inputs and outputs; it waits if a condition ends the iterations.

        Args:
            begun: the same with the iteration's inputs, whose states are there.
        """
        bound = begun or BoundReversal(self, ())
        bound.go_back(arguments)
        return Launch((bound.run,), bound.adjust)


FIRST, LAST = 0, -3  # the first states are the first checkpoint; what went back to them is the result
TURNS = -1, -2  # places that are used in turn
ENDS = -4  # the states after the last iteration


class _Places:
    """Memory for values of some types in places with a number, and launches that are bound to it."""

    def __init__(self, backend: Backend, params: Sequence[FieldParam], ready: Mapping[int, list[Argument]]) -> None:
        self.backend, self.params, self.memory = backend, params, dict(ready)

    def __getitem__(self, place: int) -> list[Argument]:
        if place not in self.memory:
            self.memory[place] = [self.backend.empty(param.type) for param in self.params]
        return self.memory[place]


class _Part:
    """A program with memory for what is between its launches.

    Args:
        nexts: whether its results are written to places.
    """

    def __init__(self, backend: Backend, part: Part, prepared: CompiledPlan, nexts: bool) -> None:
        self.backend, self.part, self.prepared = backend, part, prepared
        types = prepared.plan.program.types
        results = part.program.results if nexts else ()
        own = (v for step in prepared.plan.launches for v in step.outputs if v not in results)
        self.memory: dict[int, Buffer] = {v: backend.empty(types[v]) for v in own}

    def bound(self, inputs: Sequence[Argument], outputs: Sequence[Argument] = ()) -> Calls:
        """Return the launches from inputs to outputs; a result that is an input, or another result, is copied."""
        program, values = self.part.program, {v: inputs[position] for v, position in self.part.positions.items()}
        values |= self.memory
        copies: Calls = []
        for value, output in zip(program.results, outputs, strict=False):
            if value in values:
                copies.append(partial(self.backend.copy, program.types[value], values[value], output))
            else:
                values[value] = output
        steps = range(len(self.prepared.plan.launches))
        return [*(call for number in steps for call in self.prepared.bind(number, values).parts), *copies]


class BoundReversal:
    """The memory of a reversal, and the launches that are bound to it.

    Args:
        inputs: those of the iteration.
    """

    def __init__(self, compiled: CompiledReversal, inputs: Sequence[Argument]) -> None:
        self.compiled, self.kernel, self.backend = compiled, compiled.kernel, compiled.backend
        backend, forward = self.backend, self.kernel.forward
        self.inputs = list(inputs)
        self.states = _Places(backend, forward.written, {FIRST: self.inputs[: len(forward.outputs)]})
        bodies = compiled.bodies.items()
        self.turns = {n: _Part(backend, compiled.parts[n], body, True) for n, body in bodies}
        self.until = None
        if forward.until is not None and compiled.until is not None:
            self.until = _Part(backend, forward.until, compiled.until, False)
        self.launches: BoundedCache[tuple[Any, ...], Calls] = BoundedCache(MOST_BOUND)
        self.ready: int | None = None  # the place of the states before the last iteration, when checkpoints are kept

    def go_back(self, arguments: Sequence[Argument]) -> None:
        """Bind the way back to the inputs and outputs."""
        inputs, back = len(self.kernel.inputs), self.kernel.written
        self.inputs[:] = arguments[:inputs]
        self.states.memory[FIRST] = self.inputs[: len(self.kernel.forward.outputs)]
        bars = {FIRST: self.inputs[inputs - len(back) :], LAST: list(arguments[inputs:])}
        self.bars = _Places(self.backend, back, bars)
        self.back = _Part(self.backend, self.kernel.back, self.compiled.back, True)

    def adjust(self, position: int, scalars: Argument) -> None:
        """Set a by-value argument of later runs."""
        self.inputs[position] = scalars
        self.launches.clear()

    def sweep(self, outputs: Sequence[Argument]) -> None:
        """Run the iterations once, to the outputs, and keep the first checkpoints."""
        self.ready, self.states.memory[ENDS] = None, list(outputs)
        times = self.kernel.forward.times
        assert times is not None
        place = FIRST

        def launched() -> Iterator[Calls]:
            nonlocal place
            for action in actions(times, self.compiled.checkpoints(times)):
                for iterations, target in self._steps(action.source, action.iterations, action.target):
                    yield self._turn(iterations, place, target)
                    place = target
                if action.target is None:
                    break
            yield self._turn(1, place, ENDS)

        self.backend.launch(chain.from_iterable(launched()))
        self.ready = place

    def run(self) -> None:
        times = self.kernel.forward.times if self.until is None else self._counted(self.until)
        assert times is not None
        ready, self.ready = self.ready, None  # checkpoints have other states afterwards
        self.backend.launch(chain.from_iterable(self._calls(times, ready)))

    def _calls(self, times: int, ready: int | None) -> Iterator[Calls]:
        """Return the launches, in their order; without those of the first sweep if that is done."""
        bars = FIRST
        for action in actions(times, self.compiled.checkpoints(times)):
            if ready is not None and action.target is not None:
                continue
            place = action.source if ready is None else ready
            for iterations, target in self._steps(place, action.iterations, action.target) if ready is None else ():
                yield self._turn(iterations, place, target)
                place = target
            ready = None
            if action.target is None:
                times -= 1
                target = _other(bars) if times else LAST
                yield self.launches.find(
                    ("back", place, bars, target), partial(self.back.bound, self._with(place, bars), self.bars[target])
                )
                bars = target

    def _steps(self, place: int, iterations: int, target: int | None) -> Iterator[tuple[int, int]]:
        """Return the launches of iterations from a place, each with the place of its result: the last in the target."""
        count = self.compiled.count
        launched = [count] * (iterations // count) + [1] * (iterations % count)
        for n, each in enumerate(launched, 1):
            place = target if target is not None and n == len(launched) else _other(place)
            yield each, place

    def _turn(self, iterations: int, place: int, target: int) -> Calls:
        return self.launches.find(
            (iterations, place, target),
            lambda: self.turns[iterations].bound(self._with(place), self.states[target]),
        )

    def _with(self, place: int, bars: int | None = None) -> list[Argument]:
        """Return the inputs with the states, and what goes back, of other places."""
        states, back = self.states[place], [] if bars is None else self.bars[bars]
        return [*states, *self.inputs[len(states) : len(self.inputs) - len(back)], *back]

    def _counted(self, until: _Part) -> int:
        """Run the iterations until their condition holds, and return their number; waits."""
        place, total, forward = FIRST, 0, self.kernel.forward
        while forward.times is None or total < forward.times:
            some = forward.every if forward.times is None else min(forward.every, forward.times - total)
            for iterations, target in self._steps(place, some, None):
                self.backend.launch(self._turn(iterations, place, target))
                place = target
            total += some
            if some == forward.every and self._ends(until, place):
                break
        return total

    def _ends(self, until: _Part, place: int) -> bool:
        """Return whether the condition holds for the states; waits."""
        (output,) = until.part.program.results
        self.backend.launch(self.launches.find(("until", place), lambda: until.bound(self._with(place))))
        return bool(download(until.part.program.types[output], until.memory[output], self.backend))


def _other(place: int) -> int:
    """Return the place of the next value of one that is not kept."""
    return TURNS[1] if place == TURNS[0] else TURNS[0]
