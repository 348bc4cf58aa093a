"""Inputs and outputs of a graph at each step: sensors and actuators, synchronous or pipelined by one step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, repeat
from typing import Any, ClassVar, NoReturn

import numpy as np

from gpuop.base.errors import SemanticError, described, here, naming_arguments
from gpuop.base.finalizers import CALL
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array, as_field, converted, host_array
from gpuop.dsl.fields.names import names_given
from gpuop.engine.graphs.active_graph import join
from gpuop.engine.graphs.threads import Job, Worker
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, LeafSource
from gpuop.runtime.base.host_arrays import planes_of

END = object()  # in the place of a frame: the source is exhausted
Planes = Array | None  # a frame's tensor elements × points; None: the frame before stays
Sink = Callable[[Array], Any]


class Sensor(Field):
    """A field whose values come from outside, a frame for each step of its ComputeGraph.

        frame = gp.Sensor(gp.FieldType((480, 640), dtype="uint8"), camera.read)

    Args:
        frame_type: the FieldType of all frames.
        source: a function without arguments, or an iterable, that gives arrays of `field_shape + tensor_shape`, which are
            converted to the dtype where that holds their values ("unorm8" takes uint8). None instead of an array keeps the
            frame before. Until the first frame the field is 0. When an iterable ends, or a function raises StopIteration,
            the graph's `step` does nothing any more and returns False: the last frame stays.
        name: of the field.
        pipelined: the source is asked one frame ahead, in a thread of its own, while the device works. Frames are the same.

    Raises:
        SemanticError: outside the definition of a graph, or for arguments of other kinds; from the step that needs the
            frame, if it has another shape, or values that the dtype does not hold. What the source raises also comes from
            that step, and leaves the graph as it was: the next step asks for the next frame.
    """

    __slots__ = ("frames", "leaf")
    frames: Frames
    leaf: Leaf

    @naming_arguments
    def __init__(self, frame_type: FieldType, source: Any, name: str | None = None, pipelined: bool = False) -> None:
        if not isinstance(frame_type, FieldType):
            raise SemanticError(f"a Sensor wants the FieldType of its frames, not {described(frame_type)}")
        called = name or "".join(names_given(1))
        frames = Frames(frame_type, _values(source), f"sensor `{called}`" if called else "a sensor", pipelined)
        leaf = Leaf(frame_type.folded, frames, name=called)
        self._stand_for(leaf, frame_type)
        for slot, value in {"frames": frames, "leaf": leaf}.items():
            object.__setattr__(self, slot, value)
        join(self)


def _values(source: Any) -> Iterator[Any]:
    if callable(source) and not hasattr(source, "__next__"):
        return map(CALL, repeat(source))  # a StopIteration that it raises ends this
    if not isinstance(source, Iterable) or isinstance(source, Field):
        raise SemanticError(f"a Sensor wants a function or an iterable that gives arrays, not {described(source)}")
    return iter(source)


class Frames(LeafSource):
    """The source of a sensor's leaf: fetches frames, and keeps a frame until a step has taken it.

    Every frame of the source is shown once, whatever interrupts it.
    """

    role: ClassVar[str] = "sensor"

    def __init__(self, kind: FieldType, values: Iterator[Any], who: str, pipelined: bool) -> None:
        self.kind, self.who, self.pipelined, self.loc = kind, who, pipelined, here()
        self._values = values
        self._pending: list[Any] = []  # the frame of the source, until it is used
        # the next frame: not requested (None), a job of the worker, ready (in a tuple), or END
        self._ready: Job | tuple[Planes] | object | None = None

    def read(self) -> NoReturn:
        raise SemanticError("a Sensor has frames only while its graph runs: probe the field, and `graph.read` it")

    def fetch(self, worker: Worker | None) -> bool:
        """Make a frame ready; False if the source is exhausted. Raises the errors of the source."""
        self.look_ahead(worker)
        job = self._ready
        if job is None:
            self._ready = self._next()
        elif isinstance(job, Job):
            error = job.wait()
            self._ready = job.value if error is None else None
            if error is not None:
                raise error
        return self._ready is not END

    def look_ahead(self, worker: Worker | None) -> None:
        """Let the worker fetch the next frame of a pipelined sensor."""
        if worker is not None and self.pipelined:
            if self._ready is None:
                self._ready = Job(self._next)
            if isinstance(self._ready, Job):
                worker.ask(self._ready)  # again if the first call was interrupted

    @property
    def planes(self) -> Planes:
        """The planes of the frame that is ready; None if the old one stays."""
        return self._ready[0] if isinstance(self._ready, tuple) else None

    def used(self) -> None:
        """Drop the frame that is ready, which a step has taken."""
        if isinstance(self._ready, tuple):
            self._ready = None
        self._pending.clear()

    def _next(self) -> object:
        if not self._pending:
            self._pending.extend(islice(self._values, 1))  # one C call: no exception of a signal handler loses a frame
        if not self._pending:
            return END
        (value,) = self._pending
        try:
            return (None if value is None else planes_of(self.kind, self._converted(value)),)
        except Exception:
            self._pending.clear()
            raise

    def _converted(self, value: Any) -> Array:
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], (bool, np.bool_)):
            raise SemanticError(
                f"{self.who}: a pair of {value[0]} and {described(value[1])} came, as `cap.read` of OpenCV gives, and a frame "
                "is an array: give the function `lambda: cap.read()[1]`",
                self.loc,
            )
        try:
            array = host_array(value)
            if array.shape != tuple(self.kind.array_shape):
                raise SemanticError(
                    f"an array of shape {array.shape} came; its frames are {self.kind} fields, whose arrays have shape "
                    f"{tuple(self.kind.array_shape)}"
                )
            if array.dtype.name != self.kind.dtype != "unorm8":
                array = converted(
                    array, self.kind.dtype, "its frames are", "convert them before, or declare another dtype"
                )
            return as_field(array, len(self.kind.tensor_shape), self.kind.dtype)[1]()
        except SemanticError as wrong:
            raise SemanticError(f"{self.who}: {wrong.message}", self.loc) from None


class Actuator:
    """Gives a field to a function at each step of a ComputeGraph, the reset to tick 0 included.

        gp.Actuator(motion, window.show)

    Args:
        field: what to give.
        sink: gets an array of `field_shape + tensor_shape`, of its own, at every tick.
        pipelined: the sink gets the array of a tick while the device works on the next one, in a thread of its own.
            `wait`, `stop`, `synchronize` and `release` deliver the last one.

    Raises:
        SemanticError: outside the definition of a graph, or for arguments of other kinds. What the sink raises comes from
            the step that feeds it, after it; of a pipelined one from the next step, before it. Others are fed all the same.
    """

    @naming_arguments
    def __init__(self, field: Field, sink: Callable[[Array], Any], pipelined: bool = False) -> None:
        if not isinstance(field, Field):
            raise SemanticError(f"an Actuator wants a Field, not {described(field)}")
        if not callable(sink):
            raise SemanticError(f"an Actuator wants a function that takes an array, not {described(sink)}")
        self.field, self.sink, self.pipelined = field, sink, pipelined
        join(self)


class Outlets:
    """The actuators of a graph that runs.

    Args:
        read: gives the array of an actuator, by its number.
    """

    def __init__(self, actuators: Sequence[Actuator], read: Callable[[int], Array]) -> None:
        numbered = list(enumerate(actuators))
        shapes = [a.field.type.array_shape for a in actuators]
        self._read: Callable[[int], Array] = lambda number: read(number).reshape(shapes[number])
        self._prompt = [(n, a.sink) for n, a in numbered if not a.pipelined]
        self._later = [(n, a.sink) for n, a in numbered if a.pipelined]
        self._worker = Worker("gpuop actuators") if self._later else None
        self._due: deque[tuple[int, Sink]] = deque()  # sinks that have yet to get the arrays of this tick
        # True if the pipelined sinks have yet to get the arrays of this tick; and the last job that gave them arrays
        self._sending: tuple[bool, Job | None] = False, None

    def owe(self) -> None:
        """Note a new tick, whose arrays every sink gets once."""
        self._due = deque(self._prompt)
        self._sending = bool(self._later), self._sending[1]

    def forget(self) -> None:
        """Note a new tick, whose arrays no sink gets."""
        self._due = deque()
        self._sending = False, self._sending[1]

    def feed(self) -> None:
        """Give all sinks the arrays that they have yet to get; then raise the first error."""
        errors = []
        while self._due:
            number, sink = self._due[0]
            gift: Callable[[], Any] = partial(sink, self._read(number))
            try:
                list(map(CALL, (self._due.popleft, gift)))  # one C call: the sink is called once, whatever interrupts
            except Exception as failed:  # noqa: BLE001 - raised below
                errors.append(failed)
        if errors:
            raise errors[0]

    def hand_over(self) -> None:
        """Give this tick to the pipelined sinks once they are done with the last one; raises the errors of that one."""
        self._wait()
        if self._sending[0] and self._worker is not None:
            gifts = [partial(sink, self._read(n)) for n, sink in self._later]
            job = Job(partial(_call, gifts))
            self._sending = False, job
            self._worker.ask(job)

    def _wait(self) -> None:
        owed, job = self._sending
        if job is not None and self._worker is not None:
            self._worker.ask(job)  # again if the first call was interrupted
            error = job.wait()
            self._sending = owed, None
            if error is not None:
                raise error

    def settle(self) -> None:
        """Deliver everything and wait for it."""
        self.feed()
        self.hand_over()
        self._wait()


def _call(gifts: Iterable[Callable[[], Any]]) -> None:
    """Call all of them; then raise the first error."""
    errors = []
    for gift in gifts:
        try:
            gift()
        except Exception as failed:  # noqa: BLE001 - raised below
            errors.append(failed)
    if errors:
        raise errors[0]
