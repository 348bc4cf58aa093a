"""Atomic steps of a running graph: an interrupted step has happened wholly or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from gpuop.fusion.launch import Rate
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Argument, Launch, Part, indivisible
from gpuop.runtime.execute import Prepared

Copies = Sequence[tuple[FieldType, int, int]]  # (type, next value, state): copies of a step on the device
Buffers = dict[int, Argument]

no_op = bool  # a part that does nothing, in one C call


class BoundLaunches:
    """The launches of a plan, bound to one set of buffers.

    Attributes:
        launch: enqueues parts.
        every_step: the parts of every evaluation.
        deferred: parts at the start of the following step that compute next values beside the states: they may run again.
        overwrites: parts of the following step, after these, that write next values over the states. None may run twice;
            once the first has run, the graph is at the next tick.
    """

    def __init__(self, prepared: Prepared, buffers: Buffers, copies: Copies, following: Buffers) -> None:
        planned, backend = prepared.plan.launches, prepared.backend
        self.launch = backend.launch
        self.launches: list[Launch] = [prepared.bind(number, buffers) for number in range(len(planned))]
        each_step = [(p, bound) for p, bound in zip(planned, self.launches, strict=True) if p.rate is Rate.EVERY_STEP]
        self.every_step = backend.sequence([bound for p, bound in each_step if not p.over])
        updates = backend.sequence([bound for p, bound in each_step if p.over])
        self.deferred: list[Part] = [] if backend.only_enqueues else updates
        self.overwrites: list[Part] = updates if backend.only_enqueues else []
        self.overwrites += [
            partial(backend.copy, kind, buffers[value], following[state]) for kind, value, state in copies
        ]
        if self.overwrites and not indivisible(self.overwrites[0]):
            self.overwrites.insert(0, no_op)


class BufferSet:
    """A buffer for each value, and the launches bound to these buffers once they are wanted.

    Attributes:
        following: the set that the next step uses; this one where nothing changes places.
    """

    following: BufferSet

    def __init__(self, prepared: Prepared, buffers: Buffers, copies: Copies) -> None:
        self.prepared, self.buffers, self.copies = prepared, buffers, copies
        self.bound: BoundLaunches | None = None

    def bind(self) -> BoundLaunches:
        if self.bound is None:
            self.bound = BoundLaunches(self.prepared, self.buffers, self.copies, self.following.buffers)
        return self.bound


# the tick (None before the first reset), and the buffers in use
Moment = tuple["int | None", BufferSet]


class Change:
    """A transition of the states to another moment: parts that run in order; it cannot be undone once the first has run.

    A signal handler may raise an exception between any two bytecodes, but not within a C call.
    `Backend.launch` counts parts as it runs them, without a bytecode in between, so parts that are `indivisible`, such as
    the first, run once; the others may run again.

    Attributes:
        to: the moment.
        ran: the return values of the parts that have run. The moment counts as reached once there is one: the rest runs
            before a value is read.
    """

    __slots__ = ("parts", "ran", "to")

    def __init__(self, to: Moment, parts: Sequence[Part], ran: Sequence[Any] = ()) -> None:
        self.to, self.parts, self.ran = to, parts, [*ran]

    def finish(self) -> None:
        """Run the remaining parts; if one fails, it and those after it remain."""
        backend = self.to[1].prepared.backend
        backend.launch(self.parts[len(self.ran) :] if self.ran else self.parts, self.ran)
