"""A compute graph that runs: its buffers on a device, and launches bound to them."""

from __future__ import annotations

from collections.abc import Callable

from gpuop.dsl.field import Adjustable
from gpuop.fusion.graph import Program
from gpuop.ir.graph import Leaf
from gpuop.runtime.backend import Argument, Array, Backend, planes_of
from gpuop.runtime.execute import Prepared
from gpuop.session import argument, download


class Running:
    """A graph's buffers on a device, and launches bound to them.

    A state's buffer and that of its next value change places at each step, so launches are bound once for either place.
    """

    def __init__(self, prepared: Prepared, what: Program, states: list[Leaf], probes: int) -> None:
        self.prepared, self.what = prepared, what
        self.backend: Backend = prepared.backend
        self.tick: int | None = None
        number = {node: value for value, node in what.leaves.items()}
        self.wanted = what.wanted[:probes]
        targets = what.wanted[probes:]
        self.parameters = {
            v: n for v, n in what.leaves.items() if isinstance(n, Leaf) and isinstance(n.source, Adjustable)
        }
        self.initial = {number[leaf]: leaf for leaf in states if leaf in number}
        self.swaps: list[tuple[int, int]] = []
        self.copies: list[tuple[int, int]] = []
        for leaf, value in zip(states, targets, strict=True):
            if leaf in number:
                taken = any(value == other for _, other in self.swaps)
                (self.copies if taken else self.swaps).append((number[leaf], value))
        self.buffers = self._allocate()
        self.swapped = False
        self.bound: dict[bool, list[Callable[[], None]]] = {}
        self.versions: tuple[int, ...] = ()

    def _allocate(self) -> dict[int, Argument]:
        types = self.what.types
        buffers: dict[int, Argument] = {
            v: argument(n, self.backend) for v, n in self.what.leaves.items() if v not in self.initial
        }
        made = list(self.initial) + [v for step in self.prepared.plan.steps for v in step.outputs]
        return buffers | {v: self.backend.empty(types[v]) for v in made}

    def reset(self) -> None:
        for value, leaf in self.initial.items():
            self.backend.write(self.buffers[value], planes_of(leaf.type, leaf.source))
        self.tick = 0
        self._evaluate()

    def step(self) -> None:
        assert self.tick is not None
        if self._changed() and (self.swaps or self.copies):
            self._evaluate()  # a parameter was set: the values that the states are about to take depend on it
        for state, value in self.copies:
            self.backend.copy(self.what.types[state], self.buffers[value], self.buffers[state])
        for state, value in self.swaps:
            self.buffers[state], self.buffers[value] = self.buffers[value], self.buffers[state]
        self.swapped = not self.swapped
        self.tick += 1
        self._evaluate()

    def _changed(self) -> tuple[int, ...] | None:
        """The versions of the parameters, if they are not those of the last evaluation."""
        versions = tuple(leaf.source.state[0] for leaf in self.parameters.values())
        return versions if versions != self.versions else None

    def _evaluate(self) -> None:
        versions = self._changed()
        if versions is not None:
            self.buffers.update({v: argument(leaf, self.backend) for v, leaf in self.parameters.items()})
            self.versions, self.bound = versions, {}
        if self.swapped not in self.bound:
            steps = zip(self.prepared.plan.steps, self.prepared.programs, strict=True)
            self.bound[self.swapped] = [
                self.backend.bind(p, [self.buffers[v] for v in (*s.inputs, *s.outputs)]) for s, p in steps
            ]
        for launch in self.bound[self.swapped]:
            launch()

    def read(self, probe: int) -> Array:
        value = self.wanted[probe]
        return download(self.what.types[value], self.buffers[value], self.backend)
