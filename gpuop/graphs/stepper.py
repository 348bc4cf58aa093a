"""What a step is: frames come in, states change, everything is evaluated, arrays go out; each is whole or has not been."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count

import numpy as np

from gpuop.errors import DeviceError, SemanticError
from gpuop.graphs.bound_graph import BoundGraph
from gpuop.graphs.graph_threads import FairLock, Loop, Worker
from gpuop.graphs.streams import Actuator, Frames, Outlets
from gpuop.ir.values import Leaf
from gpuop.runtime.base.backend import Array, Part
from gpuop.runtime.execute import Prepared

UNSEEN = 4  # steps of a running graph that a device may have before it is waited for


def times(n: object) -> int:
    """A number of steps; SemanticError for what is none."""
    if not isinstance(n, (int, np.integer)) or n < 0:
        raise SemanticError(f"a graph steps a number of times, not {n!r}")
    return int(n)


class Stepper:
    """Steps a graph that is on a device. Sources and sinks are called while others can read.

    Args:
        actuators: their fields are the last of what `running` can read.
    """

    def __init__(self, running: BoundGraph, sensors: Sequence[Frames], actuators: Sequence[Actuator]) -> None:
        self.running, self.sensors = running, sensors
        self._turn = FairLock()  # to step; taken before the lock
        self._lock = FairLock()  # on buffers
        self._worker = Worker("gpuop sensors") if any(s.pipelined for s in sensors) else None
        self._streams = bool(sensors or actuators)
        self._plain = not self._streams  # and nobody measures
        first = len(running.wanted) - len(actuators)
        self._outlets = Outlets(actuators, lambda number: self._read(first + number))
        self._loop: Loop | None = None

    @property
    def tick(self) -> int | None:
        return self.running.tick

    # --- steps --------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        with self._turn:
            self._drop()
            for frames in self.sensors:
                frames.fetch(self._worker)
            self._outlets.hand_over()
            with self._lock:
                self.running.reset(self._arrivals())
                self._evaluate()
            self._outlets.feed()

    def _drop(self) -> None:
        """Use the frames of a step that was interrupted; the rest of it need not succeed."""
        with suppress(DeviceError), self._lock:
            self.running.settle()

    def step(self, n: int = 1) -> bool:
        """False, having done less, once a sensor is exhausted."""
        running, lock = self.running, self._lock
        if n == 1:
            with lock:  # which is enough for a single one
                if self._plain and running.now[0] is not None:
                    running.advance()
                    running.evaluate()
                    return True
        with self._turn:
            if running.now[0] is None:
                self.reset()
            if self._streams:
                return all(self._step() for _ in range(n))
            left = n
            while left:
                with lock:
                    while True:
                        running.advance()
                        running.evaluate()
                        left -= 1
                        if not left or lock.wanted():
                            break
            return True

    def _step(self) -> bool:
        with self._lock:
            self.running.settle()
        self._outlets.feed()  # what an interrupted step owes
        complete = not self.sensors or all(frames.fetch(self._worker) for frames in self.sensors)
        self._outlets.hand_over()
        if complete:
            with self._lock:
                self.running.advance(self._arrivals())
                self._evaluate()
            self._outlets.feed()
        return complete

    def _arrivals(self) -> list[Part]:
        """What sensors and actuators have of a step: frames are used and arrays are owed when it takes place."""
        return [*self._frames(), self._outlets.owe]

    def _frames(self) -> list[Part]:
        return [*self.running.shown(self.sensors), *(frames.used for frames in self.sensors)]

    def _evaluate(self) -> None:
        for frames in self.sensors:
            frames.look_ahead(self._worker)
        self.running.evaluate()

    @contextmanager
    def through(self, prepared: Prepared) -> Iterator[None]:
        """Meanwhile steps launch this preparation of the same plan, and nobody else steps."""
        with self._turn:
            own = self.running.prepared
            try:
                self._launch(prepared, False)
                yield
            finally:
                self._launch(own, not self._streams)

    def _launch(self, prepared: Prepared, plain: bool) -> None:
        with self._lock:
            self._plain = plain
            self.running.rebind(prepared)

    # --- values -------------------------------------------------------------------------------------------------

    def read(self, number: int) -> Array:
        """A value that can be read, as of the tick."""
        if self.tick is None:
            with self._turn:
                if self.tick is None:
                    self.reset()
        return self._read(number)

    def _read(self, number: int) -> Array:
        with self._lock:
            return self.running.read(number)

    def states(self) -> tuple[int, list[tuple[Leaf, Array]]]:
        """The tick and the states as of it."""
        with self._turn:
            if self.tick is None:
                self.reset()
            with self._lock:
                states = self.running.states()
                return self.running.tick or 0, states

    def load(self, states: Sequence[Array], tick: int) -> None:
        """Be at this tick with these states; sensors show the frames they have, or their first, and actuators are not fed."""
        with self._turn:
            self._drop()
            first = self.tick is None
            for frames in self.sensors if first else ():
                frames.fetch(self._worker)
            self._outlets.hand_over()
            with self._lock:
                self.running.load(states, tick, [*(self._frames() if first else ()), self._outlets.forget])
                self.running.evaluate()

    def synchronize(self) -> None:
        """Wait for the device and for the actuators."""
        with self._turn:
            self._outlets.settle()
        self.running.backend.synchronize()

    # --- in a thread --------------------------------------------------------------------------------------------

    def run(self) -> None:
        with self._turn:
            if self._loop is not None and self._loop.alive:
                raise SemanticError("this ComputeGraph is running; `graph.stop()` it before you run it again")
            self._join()
            counter = count(1)
            self._loop = Loop(lambda: self._stepped(next(counter)))
            self._loop.start()

    def _stepped(self, number: int) -> bool:
        done = self.step()
        if number % UNSEEN == 0:  # or what waits for the device would grow without end
            self.running.backend.synchronize()
        return done

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.stop()
        self.wait()

    def wait(self) -> None:
        if self._join():
            self.synchronize()

    def _join(self) -> bool:
        """Wait for the thread's end; False in a sink or source, which the thread waits for."""
        return self._loop is None or self._loop.join()
