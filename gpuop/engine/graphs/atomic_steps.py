"""What a step of a running graph is made of, so that it is whole or has not been, whatever interrupts it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from gpuop.fusion.launch_frequency import Rate
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Argument, Launch, Part, indivisible
from gpuop.runtime.execute import Prepared

Copies = Sequence[tuple[FieldType, int, int]]  # (type, next value, state): what a step copies on the device
Buffers = dict[int, Argument]

no_op = bool  # a part that does nothing, as one call of C's


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
    """What brings the states to another moment: parts that run in order, from the first one on without return.

    The handler of a signal may raise an exception between any two bytecodes, but not inside of a call of C's.
    `Backend.launch` counts parts as it runs them, without a bytecode in between, so those that are `indivisible`, as the
    first one, run once; the others may run again.

    Attributes:
        to: the moment.
        ran: what the parts returned that ran. The moment is reached, for everybody who asks, once there is one: the rest
            is made up for when somebody wants to see it.
    """

    __slots__ = ("parts", "ran", "to")

    def __init__(self, to: Moment, parts: Sequence[Part], ran: Sequence[Any] = ()) -> None:
        self.to, self.parts, self.ran = to, parts, [*ran]

    def finish(self) -> None:
        """Run the parts that have not run; from the one that fails on they are left."""
        backend = self.to[1].prepared.backend
        backend.launch(self.parts[len(self.ran) :] if self.ran else self.parts, self.ran)
