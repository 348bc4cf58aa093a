"""A compute graph that runs: its buffers on a device, and launches bound to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from gpuop.dsl.arrays import Adjustable
from gpuop.fusion.buffers import allocation
from gpuop.fusion.graph import Program
from gpuop.fusion.rates import Rate
from gpuop.ir.graph import Leaf
from gpuop.runtime.backend import Argument, Array, Backend, Launch, download, planes_of
from gpuop.runtime.execute import Prepared
from gpuop.session import argument
from gpuop.streams import Frames


class Place:
    """The buffers of values while states are in one of their two places, and launches bound to them once they are wanted.

    Attributes:
        usual: the launches of every evaluation.
        late: those that make next values when the next step begins.
    """

    def __init__(self, buffers: dict[int, Argument]) -> None:
        self.buffers = buffers
        self.forget()

    def forget(self) -> None:
        """Have launches bound anew."""
        self.launches: list[Launch] | None = None
        self.usual: list[Callable[[], object]] = []
        self.late: list[Callable[[], object]] = []

    def bind(self, prepared: Prepared) -> list[Launch]:
        if self.launches is None:
            steps = prepared.plan.steps
            self.launches = [prepared.bind(number, self.buffers) for number in range(len(steps))]
            timed = [(step, b) for step, b in zip(steps, self.launches, strict=True) if step.rate is Rate.STEP]
            self.usual = prepared.backend.sequence([launch for step, launch in timed if not step.over])
            self.late = prepared.backend.sequence([launch for step, launch in timed if step.over])
        return self.launches


class Running:
    """A graph's buffers on a device, and launches bound to them.

    A state's buffer and that of its next value change places at each step, so launches are bound once for either place.

    Args:
        what: wants what can be read, then the next values of the states.
        states: leaves, in the order of those.
        readable: how many of the wanted values can be read.
    """

    def __init__(self, prepared: Prepared, what: Program, states: list[Leaf], readable: int) -> None:
        self.prepared, self.what = prepared, what
        self.backend: Backend = prepared.backend
        self.tick: int | None = None
        number = {node: value for value, node in what.leaves.items()}
        self.wanted, self.targets = what.wanted[:readable], what.wanted[readable:]
        sources = {v: n.source for v, n in what.leaves.items() if isinstance(n, Leaf)}
        self.parameters = {v: source for v, source in sources.items() if isinstance(source, Adjustable)}
        self.sensors = {source: v for v, source in sources.items() if isinstance(source, Frames)}
        self.initial = {number[leaf]: leaf for leaf in states if leaf in number}
        self.versions = dict.fromkeys(self.parameters, -1)  # of the values that the launches have
        self.takers = {v: self._takers(v) for v in self.parameters}
        self.driving = {v: self._driving(v) for v in self.parameters}
        self.keeping = {v: self._keeping(v) for v in self.parameters}
        self.kept = [n for n, step in enumerate(prepared.plan.steps) if step.rate is not Rate.STEP]
        self.stale = set(self.kept)  # those that are to be run
        self.waiting = any(step.over for step in prepared.plan.steps)  # whether next values are made when a step begins
        self.place, self.other, self.copies = self._places()
        self.valid = False  # whether everything is evaluated; not so after an evaluation that failed
        self.done = 0  # late launches of a step that failed among them

    def _places(self) -> tuple[Place, Place, list[tuple[int, int]]]:
        """Where values are before and after an odd number of steps, and (state, next value) where that is copied."""
        buffers = self._allocate()
        swapped, copies = dict(buffers), []
        stay = {v for number in self.kept for v in self.prepared.plan.steps[number].outputs}
        for state, value in self._nexts():
            if buffers[state] is buffers[value]:
                continue
            if value in stay:
                copies.append((state, value))
            else:
                swapped[state], swapped[value] = buffers[value], buffers[state]
                stay.add(value)
        first = Place(buffers)
        swaps = any(swapped[state] is not buffers[state] for state in self.initial)
        return first, Place(swapped) if swaps else first, copies

    def _nexts(self) -> tuple[tuple[int, int], ...]:
        return self.what.cycle.nexts if self.what.cycle is not None else ()

    def _allocate(self) -> dict[int, Argument]:
        types = self.what.types
        own = {*self.initial, *self.parameters, *self.sensors.values()}
        buffers = {v: argument(n, self.backend) for v, n in self.what.leaves.items() if v not in own}
        buffers |= {v: self.backend.empty(types[v]) for v in own if not self._by_value(v)}
        shared = allocation(self.prepared.plan)
        made = [self.backend.empty(kind) for kind in shared.kinds]
        buffers |= {v: made[number] for v, number in shared.of.items()}
        for value, state in (pair for step in self.prepared.plan.steps for pair in step.over):
            buffers[value] = buffers[state] if self.backend.whole else self.backend.empty(types[value])
        for value in self.sensors.values():
            zeros = np.zeros((types[value].planes, types[value].field_shape.points), types[value].storage.numpy)
            self.backend.write(buffers[value], zeros)
        return buffers

    def _by_value(self, value: int) -> bool:
        return value in self.parameters and bool(getattr(self.what.leaves[value], "by_value", False))

    # --- parameters ---------------------------------------------------------------------------------------------

    def _takers(self, parameter: int) -> list[tuple[int, int]]:
        """The steps that take a parameter, and at which position."""
        steps = enumerate(self.prepared.plan.steps)
        return [(n, position) for n, step in steps for position, v in enumerate(step.inputs) if v == parameter]

    def _keeping(self, parameter: int) -> list[int]:
        """The steps that run again when a parameter is set, and only then."""
        reached, kept = {parameter}, []
        for number, step in enumerate(self.prepared.plan.steps):
            if step.rate is not Rate.STEP and reached.intersection(step.inputs):
                reached.update(step.outputs)
                kept.append(number)
        return kept

    def _driving(self, parameter: int) -> list[int]:
        """The steps that compute the next values of states again when a parameter is set; none if it drives no state."""
        reached = {parameter}
        for op in self.what.ops:
            if reached.intersection(op.inputs):
                reached.update(op.outputs)
        needed, again = reached.intersection(self.targets), []
        for number, step in reversed(list(enumerate(self.prepared.plan.steps))):
            if step.rate is Rate.STEP and needed.intersection(step.outputs):
                needed.update(step.inputs)
                if not step.over:  # which runs in any case
                    again.append(number)
        return again

    def _set(self) -> list[int]:
        """Give the launches the parameters that were set; which these are."""
        changed = [v for v, source in self.parameters.items() if source.state[0] != self.versions[v]]
        for value in changed:
            version, data = self.parameters[value].state
            planes = planes_of(self.what.types[value], data)
            if self._by_value(value):
                self._adjust(value, tuple(planes.reshape(-1).tolist()))
            else:
                self.backend.write(self.place.buffers[value], planes)
            self.stale.update(self.keeping[value])
            self.versions[value] = version
        return changed

    def _adjust(self, value: int, scalars: Argument) -> None:
        for place in (self.place, self.other):
            place.buffers[value] = scalars
            if place.launches is not None:
                for number, position in self.takers[value]:
                    place.launches[number].adjust(position, scalars)

    # --- a step -------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """States take their initial values: tick 0, to be evaluated."""
        self.load([leaf.source for leaf in self.initial.values()], 0)

    def load(self, states: Sequence[Array], tick: int) -> None:
        """States take values from outside; to be evaluated."""
        self.valid, self.done = False, 0
        for (value, leaf), array in zip(self.initial.items(), states, strict=True):
            self.backend.write(self.place.buffers[value], planes_of(leaf.type, array))
        self.tick = tick

    def advance(self) -> None:
        """States take their next values: the next tick, to be evaluated."""
        assert self.tick is not None
        if not self.done:
            if not self.valid:
                self.evaluate()
            if self.parameters:
                self._follow()
            self.valid = False
        if self.waiting:
            self._finish()
        for state, value in self.copies:
            self.backend.copy(self.what.types[state], self.place.buffers[value], self.place.buffers[state])
        self.place, self.other = self.other, self.place
        self.tick += 1

    def _follow(self) -> None:
        """Compute again what the next values of states depend on through parameters that were set."""
        changed = self._set()
        if changed:
            self.valid = False
            self._renew({number for v in changed for number in self.driving[v]})

    def _finish(self) -> None:
        """Make the next values that waited for this step."""
        self.place.bind(self.prepared)
        try:
            self.backend.launch(self._late())
        except Exception:
            self.done -= 1  # the one that failed wrote nothing; one that was interrupted has been enqueued
            raise
        self.done = 0

    def _late(self) -> Iterator[Callable[[], object]]:
        """What is left of the late launches, counted: none may run twice, as it overwrites what it reads."""
        for launch in self.place.late[self.done :]:
            self.done += 1
            yield launch

    def give(self, frames: Iterable[Frames]) -> None:
        """Sensors show the frames that are ready; to be evaluated."""
        for each in frames:
            planes = each.taken()
            if planes is not None and each in self.sensors:
                self.backend.write(self.place.buffers[self.sensors[each]], planes)

    def evaluate(self) -> None:
        """Compute everything from states, sensors and parameters; before that, end a step that failed among its launches."""
        if self.done:
            self.advance()
        self.valid = False
        if self.parameters:
            self._set()
        if self.stale:
            self._renew(set())
        place = self.place
        if place.launches is None:
            place.bind(self.prepared)
        self.backend.launch(place.usual)
        self.valid = True

    def _renew(self, besides: set[int]) -> None:
        """Run what does not run at every step and has to, and other steps."""
        launches = self.place.bind(self.prepared)
        self.backend.launch([launches[number].run for number in sorted(self.stale | besides)])
        self.stale.clear()

    def forget(self) -> None:
        """Compute again what is computed once."""
        self.stale.update(self.kept)

    def rebind(self, prepared: Prepared) -> None:
        """Launch another preparation of the same plan from now on, on the same device and memory."""
        self.prepared, self.backend = prepared, prepared.backend
        self.place.forget()
        self.other.forget()

    # --- values -------------------------------------------------------------------------------------------------

    def read(self, number: int) -> Array:
        """The array of a value that can be read; waits."""
        if not self.valid:
            self.evaluate()
        value = self.wanted[number]
        return download(self.what.types[value], self.place.buffers[value], self.backend)

    def states(self) -> list[tuple[Leaf, Array]]:
        """The states that anything depends on, with their values; waits."""
        if self.done:
            self.advance()
        buffers = self.place.buffers
        return [(leaf, download(leaf.type, buffers[v], self.backend)) for v, leaf in self.initial.items()]
