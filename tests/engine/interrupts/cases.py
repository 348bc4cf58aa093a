"""Graphs with a model of each in NumPy, and the check that what an interrupted graph has is all of one step."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine.graphs.active_graph import open_graphs

N = 70
START = np.arange(N, dtype="f")
Values = dict[str, np.ndarray]


@gp.operator
def left(a):
    return _readTensor(a, _column - 1, border="wrap")


@gp.operator(outputs=lambda a: a.type)
def gathered(a):
    """Sums of neighbours in the first half, nothing in the second one: the output is filled before."""
    with _if(_column % 2 == 0):
        _writeTensor(_out0, _readTensor(a) + _readTensor(a, _column + 1), _column / 2)


@dataclass
class Case:
    """A graph and what it does.

    Attributes:
        build: defines states and probes, inside the graph's `with`.
        step: what the states become, with a gain and the frame that the step began with.
    """

    build: Callable[[Case], None]
    step: Callable[[Values, float, float], Values]
    states: Values = field(default_factory=dict)
    gain: gp.Parameter | None = None
    frames: Iterator[np.ndarray] | None = None
    sunk: list[deque[np.ndarray]] = field(default_factory=list)

    def state(self, name: str, values: np.ndarray = START) -> gp.Field:
        self.states[name] = values
        result = gp.ScalarField(values)
        result.name = name
        open_graphs()[-1].probe(result, name)
        return result

    def sensor(self, pipelined: bool) -> gp.Field:
        self.frames = map(np.zeros(N, "f").__add__, count())  # of C's alone: what a source loses itself is not ours
        return gp.Sensor(gp.FieldType(N), self.frames, "frame", pipelined)

    def actuator(self, values: gp.Field, pipelined: bool) -> None:
        actual: deque[np.ndarray] = deque()
        self.sunk.append(actual)
        gp.Actuator(values, actual.append, pipelined)


def filled(k):
    return np.full(N, k)


def buffered(case):
    s, t = case.state("s"), case.state("t")
    s.next, t.next = left(s), t + 1


def in_place(case):
    a, b, wide = case.state("a"), case.state("b", START[:9]), case.state("wide", START[:21].reshape(3, 7))
    a.next, b.next, wide.next = a + 1, b - 1, wide + 2


def one_kernel(case):
    a, b = case.state("a"), case.state("b")
    a.next, b.next = b + 1, a


def fills(case):
    a, b = case.state("a"), case.state("b")
    a.next, b.next = a + 1, gathered(a)


def copies(case):
    case.gain = gp.Parameter(1.0)
    a, b, c = (case.state(name) for name in "abc")
    a.next = b.next = left(a) + 1
    c.next = left(gp.ScalarField(START) * case.gain)


def changes_of_buffers(case):
    a, b, c, d, late = (case.state(name, START + k) for k, name in enumerate(("a", "b", "c", "d", "late")))
    a.next, b.next = b, a
    c.next = d.next = left(c)
    frame = case.sensor(False)
    late.next = frame
    open_graphs()[-1].probe(frame, "frame")


def iterations(case):
    a, b = case.state("a"), case.state("b")
    a.next = gp.iterate(lambda u: left(u) + 1, a, times=3)
    b.next = gp.iterate(lambda u: u + 2, b, until=lambda u: u.max() > 0)


def on_the_host(case):
    a, b = case.state("a"), case.state("b")
    a.next = gp.HostOperator(lambda x: x[::-1] + 1, a, outputs=a.type)
    b.next = b + left(a)


def parameters(case):
    case.gain = gp.Parameter(1.0)
    a, b = case.state("a"), case.state("b")
    a.next, b.next = a + case.gain, left(left(b) + case.gain)


def streams(case, pipelined=False):
    case.gain = gp.Parameter(1.0)
    frame = case.sensor(pipelined)
    last, total = case.state("last"), case.state("total")
    last.next, total.next = frame, total + frame * case.gain
    open_graphs()[-1].probe(frame + 0, "frame")
    case.actuator(left(last), pipelined)
    case.actuator(frame * 1, pipelined)


def pipelined_streams(case):
    streams(case, True)


def _gathered(a):
    return np.concatenate([a[::2] + a[1::2], np.zeros(N - N // 2, "f")])


def _host(v, gain, frame):
    return {"a": v["a"][::-1] + 1, "b": v["b"] + np.roll(v["a"], 1)}


def _copies(v, gain, frame):
    a = np.roll(v["a"], 1) + 1
    return {"a": a, "b": a, "c": np.roll(START * np.float32(gain), 1)}


def _changes_of_buffers(v, gain, frame):
    c = np.roll(v["c"], 1)
    return {"a": v["b"], "b": v["a"], "c": c, "d": c, "late": filled(frame).astype("f")}


def _iterations(v, gain, frame):
    b = v["b"] + 2
    return {"a": np.roll(v["a"], 3) + 3, "b": b}


def _streams(v, gain, frame):
    return {"last": filled(frame).astype("f"), "total": v["total"] + np.float32(frame * gain)}


MODELS = {
    buffered: lambda v, g, f: {"s": np.roll(v["s"], 1), "t": v["t"] + 1},
    in_place: lambda v, g, f: {"a": v["a"] + 1, "b": v["b"] - 1, "wide": v["wide"] + 2},
    one_kernel: lambda v, g, f: {"a": v["b"] + 1, "b": v["a"]},
    fills: lambda v, g, f: {"a": v["a"] + 1, "b": _gathered(v["a"])},
    copies: _copies,
    changes_of_buffers: _changes_of_buffers,
    iterations: _iterations,
    on_the_host: _host,
    parameters: lambda v, g, f: {"a": v["a"] + g, "b": np.roll(np.roll(v["b"], 1) + g, 1)},
    streams: _streams,
    pipelined_streams: _streams,
}
NAMES = {build.__name__: build for build in MODELS}


@dataclass(frozen=True)
class Moment:
    """The expected content of a graph: its states' values, and the frame that is shown."""

    tick: int
    values: Values
    frame: float = 0.0


class Trial:
    """A graph to which things are done, some of them interrupted, and what it should have."""

    def __init__(self, name: str, device: str, folder: str) -> None:
        build = NAMES[name]
        self.case = Case(build, MODELS[build])
        with gp.ComputeGraph(device) as self.graph:
            build(self.case)
        self.path = os.path.join(folder, f"{name} {device}.npz")
        self.now = Moment(0, self.case.states, -1.0)
        self.saved = self.now
        self.log: list[Moment] = []  # what sinks are to get
        self.expected(self.reset)
        self.expected(self.save)

    # Each gives what is to be done, and the moment that it leads to.

    def step(self) -> tuple[Callable[[], object], Moment]:
        now, gain = self.now, float(self.now.tick % 3 + 1)
        return lambda: (self._set(gain), self.graph.step()), Moment(
            now.tick + 1, self.case.step(now.values, gain, now.frame), now.frame + 1
        )

    def reset(self) -> tuple[Callable[[], object], Moment]:
        return self.graph.reset, Moment(0, self.case.states, self.now.frame + 1)

    def save(self) -> tuple[Callable[[], object], Moment]:
        return partial(self.graph.save, self.path), self.now

    def load(self) -> tuple[Callable[[], object], Moment]:
        return partial(self.graph.load, self.path), Moment(self.saved.tick, self.saved.values, self.now.frame)

    def read(self) -> tuple[Callable[[], object], Moment]:
        return lambda: (self._set(5.0), self._read()), self.now

    def _set(self, gain: float) -> None:
        if self.case.gain is not None:
            self.case.gain.set(gain)

    def _read(self) -> Values:
        return {name: self.graph.read(name) for name in self.case.states}

    def expected(self, action: Callable[[], tuple[Callable[[], object], Moment]]) -> list[str]:
        """Do it, without an interrupt; what is wrong then."""
        do, then = action()
        do()
        return self.problems(action, then)

    def problems(self, action: Callable[..., object], *may: Moment) -> list[str]:
        """The torn value; one of these moments must be whole."""
        results = [self._torn(moment) for moment in may]
        right = next((moment for moment, wrong in zip(may, results, strict=True) if not wrong), None)
        if right is None:
            return [wrong for each in results for wrong in each]
        if action == self.save and not self._is_saved(self.saved):
            if not self._is_saved(right):
                return ["a torn file"]
            self.saved = right
        if right is may[-1] and action in (self.step, self.reset):
            self.log.append(right)
        self.now = right
        return []

    def at_once(self, action: Callable[[], tuple[Callable[[], object], Moment]], *may: Moment) -> list[str]:
        """The fault when that comes after an interrupted step, of which only the tick has been looked at."""
        self.now = next((moment for moment in may if moment.tick == self.graph.tick), may[0])
        self.log.clear()  # of what was interrupted sinks need not have got everything
        result = self.expected(action) + self.expected(self.step)
        if self.case.sunk:
            self.graph.synchronize()
            for actual in self.case.sunk:
                actual.clear()
            self.log.clear()
        return result

    def _torn(self, want: Moment) -> list[str]:
        tick, actual = self.graph.tick, self._read()
        result = (
            [f"tick {tick}, then {self.graph.tick}, not {want.tick}"]
            if (tick, self.graph.tick) != (want.tick,) * 2
            else []
        )
        for name, values in want.values.items():
            if not np.array_equal(actual[name], values):
                result.append(f"{name} at {tick} is {actual[name].ravel()[:4]}, not {values.ravel()[:4]}")
        if self.case.frames is not None and self.graph.read("frame")[0] != want.frame:
            result.append(f"frame {self.graph.read('frame')[0]}, not {want.frame}")
        return result

    def _is_saved(self, moment: Moment) -> bool:
        with np.load(self.path) as members:
            arrays = [members[f"state{k}"] for k in range(len(members.files) - 1)]
        want = list(moment.values.values())
        return len(arrays) == len(want) and all(map(np.array_equal, arrays, want))

    def goes_on(self) -> list[str]:
        """The fault in two more steps, or in a sink that did not get every step once."""
        result = self.expected(self.step) + self.expected(self.step)
        if self.case.sunk and not result:
            self.graph.synchronize()
            wants = [np.roll(moment.values["last"], 1)[0] for moment in self.log], [m.frame for m in self.log]
            for actual, want in zip(self.case.sunk, wants, strict=True):
                firsts = [array[0] for array in actual]
                if firsts != want:
                    result.append(f"a sink got {firsts}, not {want}")
                actual.clear()
            self.log.clear()
        return result


class Interrupted(BaseException):
    """The exception of a signal's handler."""
