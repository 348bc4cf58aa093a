"""What a step of a running graph is made of, so that it is whole or has not been, whatever interrupts it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from gpuop.fusion.rates import Rate
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Argument, Launch, Part, indivisible
from gpuop.runtime.execute import Prepared

Copies = Sequence[tuple[FieldType, int, int]]  # (type, value, state): what a step copies


class Bound:
    """Launches bound to the buffers of a place.

    Attributes:
        launch: enqueues parts.
        usual: the parts of every evaluation.
        early: those that make next values when the next step begins, beside the states.
        late: those that make them in the place of the states then, and what is copied there.
    """

    def __init__(self, prepared: Prepared, buffers: dict[int, Argument], copies: Copies) -> None:
        steps, backend = prepared.plan.launches, prepared.backend
        self.launch = backend.launch
        self.launches: list[Launch] = [prepared.bind(number, buffers) for number in range(len(steps))]
        timed = [(step, b) for step, b in zip(steps, self.launches, strict=True) if step.rate is Rate.EVERY_STEP]
        self.usual = backend.sequence([launch for step, launch in timed if not step.over])
        over = backend.sequence([launch for step, launch in timed if step.over])
        self.early: list[Part] = [] if backend.whole else over
        self.late: list[Part] = over if backend.whole else []
        self.late += [partial(backend.copy, kind, buffers[value], buffers[state]) for kind, value, state in copies]
        if self.late and not indivisible(self.late[0]):
            self.late.insert(0, begin)


class BoundLaunches:
    """The buffers of values while states are in one of their two places, and launches bound to them once they are wanted."""

    def __init__(self, prepared: Prepared, buffers: dict[int, Argument], copies: Copies) -> None:
        self.prepared, self.buffers, self.copies = prepared, buffers, copies
        self.bound: Bound | None = None

    def bind(self) -> Bound:
        if self.bound is None:
            self.bound = Bound(self.prepared, self.buffers, self.copies)
        return self.bound


Moment = tuple[
    "int | None", BoundLaunches, BoundLaunches
]  # the tick, where values are, and where states were and will be


begin = bool  # a part that does nothing


class Change:
    """What brings the states to another moment: parts that run in order, from the first one on without return.

    The handler of a signal may raise an exception between any two bytecodes, but not inside of a call of C's.
    `Backend.launch` counts parts as it runs them, without a bytecode in between, so those that are `indivisible`, as the
    first one, run once; the others may run again.

    Attributes:
        to: the moment.
        begun: what the parts returned that ran. The moment is reached, for everybody who asks, once there is one: the rest
            is made up for when somebody wants to see it.
    """

    __slots__ = ("begun", "parts", "to")

    def __init__(self, to: Moment, parts: Sequence[Part], begun: Sequence[Any] = ()) -> None:
        self.to, self.parts, self.begun = to, parts, [*begun]

    def finish(self) -> None:
        """Run the parts that have not run; from the one that fails on they are left."""
        backend = self.to[1].prepared.backend
        backend.launch(self.parts[len(self.begun) :] if self.begun else self.parts, self.begun)
