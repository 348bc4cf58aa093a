"""A compute graph that runs: its buffers on a device, and launches bound to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from gpuop.dsl.fields.sources import Adjustable
from gpuop.evaluation import argument
from gpuop.fusion.buffers import allocation
from gpuop.fusion.program import Program
from gpuop.fusion.rates import Rate
from gpuop.graphs.atomic_steps import BoundLaunches, Change, Moment, begin
from gpuop.graphs.streams import Frames
from gpuop.ir.values import Leaf
from gpuop.runtime.base.backend import Argument, Array, Backend, Part, download, planes_of
from gpuop.runtime.execute import Prepared


class BoundGraph:
    """A graph's buffers on a device, and launches bound to them.

    A state's buffer and that of its next value change places at each step, so launches are bound once for either place.
    An evaluation writes nothing that a state of the moment lives in. What is true when an exception comes, from a driver
    or a signal's handler, follows from single attributes: `now` is the moment, or the one that `change` leads to once it
    has begun; its values are there if it is `evaluated`.

    Args:
        what: wants what can be read, then the next values of the states.
        states: leaves, in the order of those.
        readable: how many of the wanted values can be read.
    """

    def __init__(self, prepared: Prepared, what: Program, states: list[Leaf], readable: int) -> None:
        self.what, self.plan = what, prepared.plan
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
        self.kept = [n for n, step in enumerate(self.plan.launches) if step.rate is not Rate.EVERY_STEP]
        self.stale = set(self.kept)  # those that are to be run
        self.now: Moment = (None, *self._places(prepared))
        self.change: Change | None = None
        self.evaluated: Moment | None = None

    @property
    def prepared(self) -> Prepared:
        return self.now[1].prepared

    @property
    def backend(self) -> Backend:
        return self.prepared.backend

    @property
    def tick(self) -> int | None:
        change = self.change
        return (change.to if change is not None and change.begun else self.now)[0]

    def _places(self, prepared: Prepared) -> tuple[BoundLaunches, BoundLaunches]:
        """Where values are before and after an odd number of steps."""
        buffers = self._allocate(prepared.backend)
        swapped, copies = dict(buffers), []
        stay = {v for number in self.kept for v in self.plan.launches[number].outputs}
        for state, value in self._nexts():
            if buffers[state] is buffers[value]:
                continue
            if value in stay:
                copies.append((self.what.types[state], value, state))
            else:
                swapped[state], swapped[value] = buffers[value], buffers[state]
                stay.add(value)
        first = BoundLaunches(prepared, buffers, copies)
        swaps = any(swapped[state] is not buffers[state] for state in self.initial)
        return first, BoundLaunches(prepared, swapped, copies) if swaps else first

    def _nexts(self) -> tuple[tuple[int, int], ...]:
        return self.what.cycle.nexts if self.what.cycle is not None else ()

    def _allocate(self, backend: Backend) -> dict[int, Argument]:
        types = self.what.types
        own = {*self.initial, *self.parameters, *self.sensors.values()}
        buffers = {v: argument(n, backend) for v, n in self.what.leaves.items() if v not in own}
        buffers |= {v: backend.empty(types[v]) for v in own if not self._by_value(v)}
        shared = allocation(self.plan)
        made = [backend.empty(kind) for kind in shared.kinds]
        buffers |= {v: made[number] for v, number in shared.of.items()}
        for value, state in (pair for step in self.plan.launches for pair in step.over):
            buffers[value] = buffers[state] if backend.whole else backend.empty(types[value])
        for value in self.sensors.values():
            zeros = np.zeros((types[value].planes, types[value].field_shape.points), types[value].storage.numpy)
            backend.write(buffers[value], zeros)
        return buffers

    def _by_value(self, value: int) -> bool:
        return value in self.parameters and bool(getattr(self.what.leaves[value], "by_value", False))

    # --- parameters ---------------------------------------------------------------------------------------------

    def _takers(self, parameter: int) -> list[tuple[int, int]]:
        """The steps that take a parameter, and at which position."""
        steps = enumerate(self.plan.launches)
        return [(n, position) for n, step in steps for position, v in enumerate(step.inputs) if v == parameter]

    def _keeping(self, parameter: int) -> list[int]:
        """The steps that run again when a parameter is set, and only then."""
        reached, kept = {parameter}, []
        for number, step in enumerate(self.plan.launches):
            if step.rate is not Rate.EVERY_STEP and reached.intersection(step.inputs):
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
        for number, step in reversed(list(enumerate(self.plan.launches))):
            if step.rate is Rate.EVERY_STEP and needed.intersection(step.outputs):
                needed.update(step.inputs)
                if not step.over:  # which runs in any case
                    again.append(number)
        return again

    def _changed(self) -> list[int]:
        return [v for v, source in self.parameters.items() if source.state[0] != self.versions[v]]

    def _set(self) -> None:
        """Give the launches the parameters that were set."""
        for value in self._changed():
            version, data = self.parameters[value].state
            planes = planes_of(self.what.types[value], data)
            if self._by_value(value):
                self._adjust(value, tuple(planes.reshape(-1).tolist()))
            else:
                self.backend.write(self.now[1].buffers[value], planes)
            self.stale.update(self.keeping[value])
            self.versions[value] = version

    def _adjust(self, value: int, scalars: Argument) -> None:
        for place in self.now[1:]:
            place.buffers[value] = scalars
            if place.bound is not None:
                for number, position in self.takers[value]:
                    place.bound.launches[number].adjust(position, scalars)

    # --- a step -------------------------------------------------------------------------------------------------

    def reset(self, also: Sequence[Part] = ()) -> None:
        """States take their initial values: tick 0, to be evaluated."""
        self.load([leaf.source.read()[0] for leaf in self.initial.values()], 0, also)

    def load(self, states: Sequence[Array], tick: int, also: Sequence[Part] = ()) -> None:
        """States take values from outside; to be evaluated."""
        _, place, other = self.now
        given = zip(self.initial.items(), states, strict=True)
        writes = [
            partial(self.backend.write, place.buffers[value], planes_of(leaf.type, array))
            for (value, leaf), array in given
        ]
        self._go(Change((tick, place, other), [begin, *writes, *also], [False]))  # it has begun

    def advance(self, also: Sequence[Part] = ()) -> None:
        """States take their next values: the next tick, to be evaluated.

        Args:
            also: parts of the step that come after that, and may run again.
        """
        if self.change is not None:
            self.settle()
        if self.evaluated is not self.now:
            self.evaluate()
        if self.parameters:
            self._follow()
        tick, place, other = self.now
        assert tick is not None
        bound = place.bound or place.bind()
        if bound.early:
            bound.launch(bound.early)
        if bound.late or also:
            late = [*(bound.late or [begin]), *also] if also else bound.late
            self._go(Change((tick + 1, other, place), late))
        else:
            self.now = tick + 1, other, place

    def _follow(self) -> None:
        """Compute again what the next values of states depend on through parameters that were set."""
        changed = self._changed()
        if changed:
            self.evaluated = None
            self._set()
            self._renew({number for v in changed for number in self.driving[v]})

    def shown(self, frames: Iterable[Frames]) -> list[Part]:
        """Parts of a step by which sensors show the frames that are ready."""
        ready = [(self.sensors[each], each.planes) for each in frames if each in self.sensors]
        buffers = self.now[1].buffers
        return [partial(self.backend.write, buffers[v], planes) for v, planes in ready if planes is not None]

    def _go(self, change: Change) -> None:
        self.change = change
        change.finish()
        self.now = change.to
        self.change = None

    def settle(self) -> None:
        """Go on with a change that was interrupted, if it has begun."""
        change = self.change
        if change is not None:
            if change.begun and self.now is not change.to:
                self._go(change)
            self.change = None

    def evaluate(self) -> None:
        """Compute everything from states, sensors and parameters."""
        if self.change is not None:
            self.settle()
        now, self.evaluated = self.now, None
        if self.parameters:
            self._set()
        if self.stale:
            self._renew(set())
        bound = now[1].bound or now[1].bind()
        bound.launch(bound.usual)
        self.evaluated = now

    def _renew(self, besides: set[int]) -> None:
        """Run what does not run at every step and has to, and other steps."""
        bound = self.now[1].bind()
        bound.launch([part for n in sorted(self.stale | besides) for part in bound.launches[n].parts])
        self.stale.clear()

    def forget(self) -> None:
        """Compute again what is computed once."""
        self.stale.update(self.kept)

    def rebind(self, prepared: Prepared) -> None:
        """Launch another preparation of the same plan from now on, on the same device and memory."""
        self.settle()
        self.backend.synchronize()
        tick, place, other = before = self.now
        first = BoundLaunches(prepared, place.buffers, place.copies)
        second = first if other is place else BoundLaunches(prepared, other.buffers, other.copies)
        self.now = tick, first, second
        if self.evaluated is before:
            self.evaluated = self.now

    # --- values -------------------------------------------------------------------------------------------------

    def read(self, number: int) -> Array:
        """The array of a value that can be read; waits."""
        self.settle()
        if self.evaluated is not self.now:
            self.evaluate()
        value = self.wanted[number]
        return download(self.what.types[value], self.now[1].buffers[value], self.backend)

    def states(self) -> list[tuple[Leaf, Array]]:
        """The states that anything depends on, with their values; waits."""
        self.settle()
        buffers = self.now[1].buffers
        return [(leaf, download(leaf.type, buffers[v], self.backend)) for v, leaf in self.initial.items()]
