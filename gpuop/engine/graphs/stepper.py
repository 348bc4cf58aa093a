"""Steps of a graph: frames come in, states change, everything is evaluated, arrays go out. Each step is atomic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count

from gpuop.base.errors import DeviceError, SemanticError
from gpuop.engine.graphs.bound_graph import BoundGraph
from gpuop.engine.graphs.sensors import Actuator, Frames, Outlets
from gpuop.engine.graphs.threads import FairLock, Loop, Worker
from gpuop.ir.types import is_integer
from gpuop.ir.values import Leaf
from gpuop.runtime.base.backend import Array, Part
from gpuop.runtime.execute import Prepared, followers

UNSEEN = 4  # steps that a graph in a thread may enqueue before it waits for the device


def times(n: object) -> int:
    """Check a number of steps; SemanticError for any other value."""
    if not is_integer(n) or n < 0:
        raise SemanticError(f"a graph takes a number of steps, 0 or more, not {n!r}")
    return int(n)


class Stepper:
    """Steps a graph that is on a device. Sources and sinks are called while others can read.

    Args:
        actuators: their fields are the last values that `bound` can read.
    """

    def __init__(self, bound: BoundGraph, sensors: Sequence[Frames], actuators: Sequence[Actuator]) -> None:
        self.bound, self.sensors = bound, sensors
        self._step_lock = FairLock()  # held for whole steps; acquired before the other one
        self._buffer_lock = FairLock()  # held while buffers are in use; readers need only this one
        self._worker = Worker("gpuop sensors") if any(s.pipelined for s in sensors) else None
        self._has_streams = bool(sensors or actuators)
        self._is_plain = not self._has_streams  # True if a step needs only the buffers: no streams, and no profile
        first = len(bound.readable) - len(actuators)
        self._outlets = Outlets(actuators, lambda number: self._read(first + number))
        self._loop: Loop | None = None
        self._own = bound.prepared
        self._followed = self._measured = False  # by open profiles; by `through`

    @property
    def tick(self) -> int | None:
        return self.bound.tick

    # --- steps --------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        with self._step_lock:
            self._follow()
            self._settle()
            for frames in self.sensors:
                frames.fetch(self._worker)
            self._outlets.hand_over()
            with self._buffer_lock:
                self.bound.reset(self.sensors, self._stream_parts())
                self._evaluate()
            self._outlets.feed()

    def _settle(self) -> None:
        """Finish an interrupted step, so that its frames are used; the device may fail at the rest of it."""
        with suppress(DeviceError), self._buffer_lock:
            self.bound.settle()

    def step(self, n: int = 1) -> bool:
        """Take n steps; False if a sensor is exhausted before the last one."""
        bound, lock = self.bound, self._buffer_lock
        if bool(followers) is not self._followed:
            self._follow()
        if n == 1:
            with lock:  # one step without streams needs no more
                if self._is_plain and bound.now[0] is not None:
                    bound.advance()
                    bound.evaluate()
                    return True
        with self._step_lock:
            if bound.now[0] is None:
                self.reset()
            if self._has_streams:
                return all(self._step() for _ in range(n))
            left = n
            while left:
                with lock:
                    while True:
                        bound.advance()
                        bound.evaluate()
                        left -= 1
                        if not left or lock.wanted():
                            break
            return True

    def _step(self) -> bool:
        with self._buffer_lock:
            self.bound.settle()
        self._outlets.feed()  # arrays that an interrupted step has not delivered
        complete = not self.sensors or all(frames.fetch(self._worker) for frames in self.sensors)
        self._outlets.hand_over()
        if complete:
            with self._buffer_lock:
                self.bound.advance(self.sensors, self._stream_parts())
                self._evaluate()
            self._outlets.feed()
        return complete

    def _stream_parts(self) -> list[Part]:
        """Parts of a step that follow the frames: mark these as used, and the arrays of sinks as due."""
        return [*(frames.used for frames in self.sensors), self._outlets.owe]

    def _evaluate(self) -> None:
        for frames in self.sensors:
            frames.look_ahead(self._worker)
        self.bound.evaluate()

    @contextmanager
    def through(self, prepared: Prepared) -> Iterator[Callable[[], bool]]:
        """Make steps launch another preparation of the same plan, and block other steps.

        Yields:
            A function that steps, and runs occasional kernels too.
        """
        with self._step_lock:
            own = self.bound.prepared
            try:
                self._measured = True
                self._rebind(prepared, False)
                if self.tick is None:
                    self.reset()

                def step() -> bool:
                    self.bound.renew()
                    return self.step()

                yield step
            finally:
                self._rebind(own, not self._has_streams)
                self._measured = False

    def _follow(self) -> None:
        """Start or stop to record launches, as profiles are opened or closed."""
        with self._step_lock:
            now = bool(followers)
            if now is not self._followed and not self._measured:
                self._rebind(self._own.launching() if now else self._own, not self._has_streams)
                self._followed = now

    def _rebind(self, prepared: Prepared, plain: bool) -> None:
        with self._buffer_lock:
            self._is_plain = plain
            self.bound.rebind(prepared)

    # --- values -------------------------------------------------------------------------------------------------

    def read(self, number: int) -> Array:
        """Read a value as of the tick."""
        if self.tick is None:
            with self._step_lock:
                if self.tick is None:
                    self.reset()
        return self._read(number)

    def _read(self, number: int) -> Array:
        with self._buffer_lock:
            return self.bound.read(number)

    def states(self) -> tuple[int, list[tuple[Leaf, Array]]]:
        """The tick, and the states as of it."""
        with self._step_lock:
            if self.tick is None:
                self.reset()
            with self._buffer_lock:
                states = self.bound.states()
                return self.bound.tick or 0, states

    def load(self, states: Sequence[Array], tick: int) -> None:
        """Set states and tick; sensors show their current frame, or their first, and actuators are not fed."""
        with self._step_lock:
            self._settle()
            first = self.tick is None
            for frames in self.sensors if first else ():
                frames.fetch(self._worker)
            self._outlets.hand_over()
            with self._buffer_lock:
                shown = self.sensors if first else []
                self.bound.load(states, tick, shown, [*(frames.used for frames in shown), self._outlets.forget])
                self.bound.evaluate()

    def synchronize(self) -> None:
        """Wait for the device and for the actuators."""
        with self._step_lock:
            self._outlets.settle()
        self.bound.backend.synchronize()

    # --- in a thread --------------------------------------------------------------------------------------------

    def run(self) -> None:
        with self._step_lock:
            if self._loop is not None and self._loop.alive:
                raise SemanticError("this ComputeGraph is running; `graph.stop()` it before you run it again")
            self._join()
            counter = count(1)
            self._loop = Loop(lambda: self._stepped(next(counter)))
            self._loop.start()

    def _stepped(self, number: int) -> bool:
        done = self.step()
        if number % UNSEEN == 0:  # bounds the queue of the device
            self.bound.backend.synchronize()
        return done

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.stop()
        self.wait()

    def wait(self) -> None:
        if self._join():
            self.synchronize()

    def _join(self) -> bool:
        """Wait for the end of the thread; False, without waiting, in a sink or source, which the thread waits for."""
        return self._loop is None or self._loop.join()
