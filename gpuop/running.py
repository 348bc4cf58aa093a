"""A compute graph that runs: its buffers on a device, and launches bound to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from gpuop.dsl.field import Adjustable
from gpuop.fusion.buffers import allocation
from gpuop.fusion.graph import Program
from gpuop.ir.graph import Leaf
from gpuop.runtime.backend import Argument, Array, Backend, Launch, download, planes_of
from gpuop.runtime.execute import Prepared
from gpuop.session import argument
from gpuop.streams import Frames


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
        self.swaps: list[tuple[int, int]] = []
        self.copies: list[tuple[int, int]] = []
        for leaf, value in zip(states, self.targets, strict=True):
            if leaf in number:
                taken = any(value == other for _, other in self.swaps)
                (self.copies if taken else self.swaps).append((number[leaf], value))
        self.versions = dict.fromkeys(self.parameters, -1)  # of the values that the launches have
        self.takers = {v: self._takers(v) for v in self.parameters}
        self.driving = {v: self._driving(v) for v in self.parameters}
        self.buffers = self._allocate()
        self.swapped = False
        self.bound: dict[bool, list[Launch]] = {}
        self.runs: dict[bool, list[Callable[[], None]]] = {}
        self.valid = False  # whether everything is evaluated; not so after an evaluation that failed

    def _allocate(self) -> dict[int, Argument]:
        types = self.what.types
        own = {*self.initial, *self.parameters, *self.sensors.values()}
        buffers = {v: argument(n, self.backend) for v, n in self.what.leaves.items() if v not in own}
        buffers |= {v: self.backend.empty(types[v]) for v in own if not self._by_value(v)}
        shared = allocation(self.prepared.plan)
        made = [self.backend.empty(kind) for kind in shared.kinds]
        buffers |= {v: made[number] for v, number in shared.of.items()}
        for value in self.sensors.values():
            zeros = np.zeros((types[value].planes, types[value].field_shape.points), types[value].storage.numpy)
            self.backend.write(buffers[value], zeros)
        return buffers

    def _by_value(self, value: int) -> bool:
        return value in self.parameters and bool(getattr(self.what.leaves[value], "by_value", False))

    def _takers(self, parameter: int) -> list[tuple[int, int]]:
        """The steps that take a parameter, and at which position."""
        steps = enumerate(self.prepared.plan.steps)
        return [(n, position) for n, step in steps for position, v in enumerate(step.inputs) if v == parameter]

    def _driving(self, parameter: int) -> list[int]:
        """The steps that compute the next values of states again when a parameter is set; none if it drives no state."""
        reached = {parameter}
        for op in self.what.ops:
            if reached.intersection(op.inputs):
                reached.update(op.outputs)
        needed, kept = reached.intersection(self.targets), []
        for number, step in reversed(list(enumerate(self.prepared.plan.steps))):
            if needed.intersection(step.outputs):
                needed.update(step.inputs)
                kept.append(number)
        return kept[::-1]

    # --- a step -------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """States take their initial values: tick 0, to be evaluated."""
        self.load([leaf.source for leaf in self.initial.values()], 0)

    def load(self, states: Sequence[Array], tick: int) -> None:
        """States take values from outside; to be evaluated."""
        self.valid = False
        for (value, leaf), array in zip(self.initial.items(), states, strict=True):
            self.backend.write(self.buffers[value], planes_of(leaf.type, array))
        self.tick = tick

    def advance(self) -> None:
        """States take their next values: the next tick, to be evaluated."""
        assert self.tick is not None
        if not self.valid:
            self.evaluate()
        changed = self._set() if self.parameters else []
        self.valid = False
        if changed:  # the values that the states are about to take depend on them
            again = sorted({number for v in changed for number in self.driving[v]})
            self.backend.launch([self._launches()[number] for number in again])
        for state, value in self.copies:
            self.backend.copy(self.what.types[state], self.buffers[value], self.buffers[state])
        for state, value in self.swaps:
            self.buffers[state], self.buffers[value] = self.buffers[value], self.buffers[state]
        self.swapped = bool(self.swaps) and not self.swapped
        self.tick += 1

    def give(self, frames: Iterable[Frames]) -> None:
        """Sensors show the frames that are ready; to be evaluated."""
        for each in frames:
            planes = each.taken()
            if planes is not None and each in self.sensors:
                self.backend.write(self.buffers[self.sensors[each]], planes)

    def evaluate(self) -> None:
        """Compute everything from states, sensors and parameters."""
        self.valid = False
        if self.parameters:
            self._set()
        self.backend.launch(self._launches())
        self.valid = True

    def _set(self) -> list[int]:
        """Give the launches the parameters that were set; which these are."""
        changed = [v for v, source in self.parameters.items() if source.state[0] != self.versions[v]]
        for value in changed:
            self.versions[value], data = self.parameters[value].state
            planes = planes_of(self.what.types[value], data)
            if not self._by_value(value):
                self.backend.write(self.buffers[value], planes)
                continue
            self.buffers[value] = scalars = tuple(planes.reshape(-1).tolist())
            for launches in self.bound.values():
                for number, position in self.takers[value]:
                    launches[number].adjust(position, scalars)
        return changed

    def _launches(self) -> list[Callable[[], None]]:
        if self.swapped not in self.bound:
            steps = range(len(self.prepared.plan.steps))
            self.bound[self.swapped] = [self.prepared.bind(number, self.buffers) for number in steps]
            self.runs[self.swapped] = [launch.run for launch in self.bound[self.swapped]]
        return self.runs[self.swapped]

    def rebind(self, prepared: Prepared) -> None:
        """Launch another preparation of the same plan from now on, on the same device and memory."""
        self.prepared, self.backend = prepared, prepared.backend
        self.bound, self.runs = {}, {}

    # --- values -------------------------------------------------------------------------------------------------

    def read(self, number: int) -> Array:
        """The array of a value that can be read; waits."""
        if not self.valid:
            self.evaluate()
        value = self.wanted[number]
        return download(self.what.types[value], self.buffers[value], self.backend)

    def states(self) -> list[tuple[Leaf, Array]]:
        """The states that anything depends on, with their values; waits."""
        return [(leaf, download(leaf.type, self.buffers[v], self.backend)) for v, leaf in self.initial.items()]
