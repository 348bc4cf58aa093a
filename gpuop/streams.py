"""What flows into a graph and out of it at each step: sensors and actuators, in step with it or one step apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from gpuop.background import Worker
from gpuop.dsl import hooks
from gpuop.dsl.arrays import Array, as_field, converted, host_array
from gpuop.dsl.field import Field
from gpuop.dsl.names import names_given
from gpuop.errors import SemanticError, described, here
from gpuop.ir.graph import Leaf
from gpuop.ir.types import FieldType
from gpuop.runtime.backend import planes_of

END = object()  # what an exhausted source gives
Planes = Array | None  # of a frame; None keeps the old one


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

    def __init__(self, frame_type: FieldType, source: Any, name: str | None = None, pipelined: bool = False) -> None:
        if not isinstance(frame_type, FieldType):
            raise SemanticError(f"a Sensor wants the FieldType of its frames, not {described(frame_type)}")
        called = name or "".join(names_given(1))
        frames = Frames(frame_type, _producer(source), f"sensor `{called}`" if called else "a sensor", pipelined)
        leaf = Leaf(frame_type, frames, name=called)
        for slot, value in {"frames": frames, "leaf": leaf, "node": leaf}.items():
            object.__setattr__(self, slot, value)
        hooks.join(self)


def _producer(source: Any) -> Callable[[], Any]:
    """A function that gives the next array, None, or END."""
    if callable(source) and not hasattr(source, "__next__"):

        def produce() -> Any:
            try:
                return source()
            except StopIteration:
                return END

        return produce
    if not isinstance(source, Iterable) or isinstance(source, Field):
        raise SemanticError(f"a Sensor wants a function or an iterable that gives arrays, not {described(source)}")
    iterator = iter(source)
    return lambda: next(iterator, END)


class Frames:
    """The source of a sensor's leaf: asks for frames, and keeps one that was fetched until a step takes it."""

    def __init__(self, kind: FieldType, produce: Callable[[], Any], who: str, pipelined: bool) -> None:
        self.kind, self.who, self.pipelined, self.loc = kind, who, pipelined, here()
        self._produce = produce
        self._ready: tuple[Planes] | None = None
        self._ahead: Future[tuple[Planes] | None] | None = None
        self.exhausted = False

    def fetch(self, worker: Worker | None) -> bool:
        """Have a frame ready; False where there is none any more. Raises what the source raises."""
        if self._ready is None and not self.exhausted:
            if self.pipelined:
                self.look_ahead(worker)
                ahead, self._ahead = self._ahead, None
                self._ready = ahead.result() if ahead is not None else None
            else:
                self._ready = self._next()
            self.exhausted = self._ready is None
        return self._ready is not None

    def look_ahead(self, worker: Worker | None) -> None:
        """Let the worker fetch the next frame of a pipelined sensor."""
        if worker is not None and self.pipelined and self._ahead is None and not self.exhausted:
            self._ahead = worker.submit(self._next)

    def taken(self) -> Planes:
        """The frame that is ready, which is then used; None where the old one stays."""
        ready, self._ready = self._ready, None
        return ready[0] if ready is not None else None

    def _next(self) -> tuple[Planes] | None:
        value = self._produce()
        if value is END:
            return None
        if value is None:
            return (None,)
        return (planes_of(self.kind, self._converted(value)),)

    def _converted(self, value: Any) -> Array:
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
            return as_field(array, len(self.kind.tensor_shape), self.kind.dtype)[1]
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

    def __init__(self, field: Field, sink: Callable[[Array], Any], pipelined: bool = False) -> None:
        if not isinstance(field, Field):
            raise SemanticError(f"an Actuator wants a Field, not {described(field)}")
        if not callable(sink):
            raise SemanticError(f"an Actuator wants a function that takes an array, not {described(sink)}")
        self.field, self.sink, self.pipelined = field, sink, pipelined
        hooks.join(self)


class Outlets:
    """The actuators of a graph that runs.

    Args:
        read: gives the array of an actuator, by its number.
    """

    def __init__(self, actuators: Sequence[Actuator], read: Callable[[int], Array]) -> None:
        numbered = list(enumerate(actuators))
        self._read = read
        self._prompt = [(n, a.sink) for n, a in numbered if not a.pipelined]
        self._later = [(n, a.sink) for n, a in numbered if a.pipelined]
        self._worker = Worker("gpuop actuators") if self._later else None
        self._owed = False  # whether pipelined sinks have yet to get the arrays of this tick
        self._sent: Future[None] | None = None

    def feed(self) -> None:
        """The graph has another tick."""
        self._owed = bool(self._later)
        _call((sink, partial(self._read, n)) for n, sink in self._prompt)

    def hand_over(self) -> None:
        """Give this tick to the pipelined sinks, once they are done with the one before; raises what they raised there."""
        sent, self._sent = self._sent, None
        if sent is not None:
            sent.result()
        if self._owed and self._worker is not None:
            arrays = [(sink, self._read(n)) for n, sink in self._later]
            self._owed = False
            self._sent = self._worker.submit(lambda: _call((sink, partial(_same, array)) for sink, array in arrays))

    def settle(self) -> None:
        """Deliver everything and wait for it."""
        self.hand_over()
        sent, self._sent = self._sent, None
        if sent is not None:
            sent.result()


def _same(array: Array) -> Array:
    return array


def _call(calls: Iterable[tuple[Callable[[Array], Any], Callable[[], Array]]]) -> None:
    """Call sinks in order, all of them; then raise the first error."""
    errors = []
    for sink, array in calls:
        try:
            sink(array())
        except Exception as failed:  # noqa: BLE001 - raised below
            errors.append(failed)
    if errors:
        raise errors[0]
