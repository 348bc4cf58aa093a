"""Sensors and actuators: what comes in and goes out at each tick, in which order, and what happens when one of them fails."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime.devices import current
from tests.harness import same_bits

KIND = gp.FieldType((2, 3))
both = pytest.mark.parametrize("pipelined", [False, True], ids=["prompt", "pipelined"])


def frame(k):
    return np.arange(6, dtype="f").reshape(2, 3) + 10 * k


def frames(n):
    return (frame(k) for k in range(n))


def summing(source, sinks=(), pipelined=False):
    """A graph with the probes "seen", what the sensor shows, and "sum", of what it showed at the ticks before."""
    with gp.ComputeGraph() as graph:
        seen = gp.Sensor(KIND, source, pipelined=pipelined)
        total = gp.ScalarField(np.zeros((2, 3), "f"))
        total.next = total + seen
        graph.probe(seen, "seen")
        graph.probe(total, "sum")
        for sink in sinks:
            gp.Actuator(seen + total, sink, pipelined)
    return graph


@both
def test_a_frame_for_each_tick(device, pipelined):
    graph = summing(frames(5), pipelined=pipelined)
    graph.reset()
    for tick in range(4):
        same_bits(graph.read("seen"), frame(tick))
        same_bits(graph.read("sum"), sum((frame(k) for k in range(tick)), np.zeros((2, 3), "f")))
        assert graph.step() is True and graph.tick == tick + 1


@both
def test_an_exhausted_sensor_keeps_its_last_frame(device, pipelined):
    graph = summing(frames(4), pipelined=pipelined)
    assert graph.step(10) is False and graph.tick == 3
    for _ in range(2):
        assert graph.step() is False and graph.tick == 3
        same_bits(graph.read("seen"), frame(3))
        same_bits(graph.read("sum"), frame(0) + frame(1) + frame(2))
    graph.reset()  # an iterator is not rewound
    assert graph.tick == 0
    same_bits(graph.read("seen"), frame(3))
    assert (graph.read("sum") == 0).all() and graph.step() is False


@both
def test_a_reset_takes_the_next_frame(device, pipelined):
    graph = summing(frames(9), pipelined=pipelined)
    graph.step(2)
    graph.reset()
    same_bits(graph.read("seen"), frame(3))
    graph.step()
    same_bits(graph.read("sum"), frame(3))


@both
def test_none_keeps_the_frame_and_before_any_it_is_zero(device, pipelined, monkeypatch):
    frames = [None, None, frame(1), None, frame(2)]
    graph = summing(frames, pipelined=pipelined)
    graph.reset()
    written = []
    write = type(current()).write
    monkeypatch.setattr(type(current()), "write", lambda *args: (written.append(1), write(*args))[1])
    for want in (0 * frame(0), 0 * frame(0), frame(1), frame(1), frame(2)):
        same_bits(graph.read("seen"), want)
        graph.step()
    assert len(written) == 2  # nothing that is unchanged is uploaded


def test_sources_of_every_kind(device):
    stack = np.stack([frame(k) for k in range(3)])
    count = iter(range(99))

    def counting():
        if (k := next(count)) == 3:
            raise StopIteration
        return frame(k)

    class Camera:
        def read(self):
            return counting()

    for source in (stack, list(stack), iter(stack), counting, Camera().read):
        count = iter(range(99))
        graph = summing(source)
        assert graph.step(99) is False and graph.tick == 2
        same_bits(graph.read("seen"), frame(2))


CONVERSIONS = [
    (gp.FieldType((2, 3)), np.arange(6).reshape(2, 3), np.arange(6, dtype="f").reshape(2, 3)),
    (gp.FieldType((2, 3)), [[0.5, 1, 2], [3, 4, 5]], np.array([[0.5, 1, 2], [3, 4, 5]], "f")),
    (gp.FieldType((2, 3), dtype="uint8"), np.full((2, 3), 7.0), np.full((2, 3), 7, "uint8")),
    (gp.FieldType((2, 3), dtype="bool"), np.eye(2, 3), np.eye(2, 3, dtype=bool)),
    (gp.FieldType((2, 2), 3), np.arange(12.0).reshape(2, 2, 3)[::-1], np.arange(12, dtype="f").reshape(2, 2, 3)[::-1]),
    (gp.FieldType(4, (2, 3), "int16"), np.arange(24).reshape(4, 2, 3), np.arange(24, dtype="int16").reshape(4, 2, 3)),
    (gp.FieldType((2, 2, 2), 7), np.ones((2, 2, 2, 7)), np.ones((2, 2, 2, 7), "f")),
    (gp.FieldType(()), 3, np.array(3, "f")),
    (gp.FieldType((), dtype="int64"), np.int64(2**40), np.array(2**40)),
    (gp.FieldType((2, 2), 4, "unorm8"), np.full((2, 2, 4), 200, "uint8"), np.full((2, 2, 4), 200, "uint8")),
    (gp.FieldType(3, dtype="complex64"), np.array([1, 2j, 3]), np.array([1, 2j, 3], "complex64")),
    (gp.FieldType((0, 3)), np.zeros((0, 3)), np.zeros((0, 3), "f")),
]  # fmt: skip


LOST = [  # a dtype, frames that it does not hold, and what of them the message names
    ("uint8", np.array([0.0, 0.7]), "0.7"), ("uint8", np.array([1.0, 300.0]), "300.0"), ("uint8", np.array([1, 300]), "300"),
    ("uint8", np.array([-1, 0], "int8"), "-1"), ("int16", np.array([1, np.nan]), "nan"), ("bool", np.array([1, 2]), "2"),
    ("float32", np.array([1, 1e300]), r"1e\+300"), ("float16", np.array([1, 70000]), "70000"),
    ("float32", np.array([1, 2j]), r"\(1\+0j\)"), ("uint64", np.array([-1, 0]), "-1"),
    ("int64", np.array([2**63], "u8"), str(2**63)), ("int16", np.array([1, 2j]), r"\(1\+0j\)"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "frame", "value"), LOST)
def test_frames_that_lose_values_are_refused(dtype, frame, value):
    """A camera of floats 0 … 1 is no film of zeros."""
    with gp.ComputeGraph() as graph:
        camera = gp.Sensor(gp.FieldType(len(frame), dtype=dtype), lambda: frame)
        graph.probe(camera * 1 if dtype != "bool" else ~camera, "seen")
    message = f"sensor `camera`: its frames are {dtype}, which does not hold {value}; convert them before, or declare another dtype"
    with pytest.raises(gp.SemanticError, match=message):
        graph.step()


@pytest.mark.parametrize(
    ("kind", "value", "want"), CONVERSIONS, ids=lambda v: str(v) if isinstance(v, gp.FieldType) else ""
)
def test_frames_are_converted_as_fields_are(device, kind, value, want):
    actual = []
    with gp.ComputeGraph() as graph:
        seen = gp.Sensor(kind, lambda: value)
        graph.probe(seen, "seen")
        gp.Actuator(seen, actual.append)
    graph.reset()
    same_bits(graph.read("seen"), np.array(want, order="C"))
    same_bits(actual[0], np.array(want, order="C"))


@both
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((3, 3)), r"sensor `seen`: an array of shape \(3, 3\) came; its frames are 2×3 float32 fields, whose arrays"),
        ("frame", r"sensor `seen`: fields are made of numbers, not of text"),
        (gp.ScalarField(frame(0)), r"sensor `seen`: this is a Field already, use it as it is"),
    ],
)  # fmt: skip
def test_wrong_frames(device, wrong, message, pipelined):
    graph = summing([frame(0), wrong, frame(2), frame(3)], pipelined=pipelined)
    graph.reset()
    with pytest.raises(gp.SemanticError, match=message) as caught:
        graph.step()
    assert "seen = gp.Sensor(KIND, source, pipelined=pipelined)" in str(caught.value)  # the line to look at
    assert graph.tick == 0
    graph.step()
    same_bits(graph.read("seen"), frame(2))
    same_bits(graph.read("sum"), frame(0))


@both
def test_a_source_that_raises_leaves_the_graph_as_it_was(device, pipelined):
    calls = iter(range(99))

    def source():
        if (k := next(calls)) in (0, 3, 4):
            raise ZeroDivisionError(f"call {k}")
        return frame(k)

    graph = summing(source, pipelined=pipelined)
    with pytest.raises(ZeroDivisionError, match="call 0"):
        graph.step()
    assert graph.step() and graph.tick == 1  # frames 1 and 2
    for k in (3, 4):
        with pytest.raises(ZeroDivisionError, match=f"call {k}"):
            graph.step(5)
        assert graph.tick == 1
        same_bits(graph.read("seen"), frame(2))
        same_bits(graph.read("sum"), frame(1))
    graph.step()
    same_bits(graph.read("seen"), frame(5))
    same_bits(graph.read("sum"), frame(1) + frame(2))


@both
def test_no_sensor_loses_a_frame_when_another_one_fails(device, pipelined):
    failing = iter(range(99))
    order = []

    def second():
        k = next(failing)
        order.append("second")
        if k == 1:
            raise OSError("no signal")
        return frame(k)

    def first():
        for k in range(99):
            order.append("first")
            yield frame(k)

    with gp.ComputeGraph() as graph:
        for name, source in (("first", first()), ("second", second)):
            graph.probe(gp.Sensor(KIND, source, name, pipelined))
    graph.reset()
    with pytest.raises(OSError, match="no signal"):
        graph.step()
    graph.step()
    same_bits(graph.read("first"), frame(1))
    same_bits(graph.read("second"), frame(2))
    assert order[:4] == ["first", "second"] * 2  # the order of their definition


def test_a_sensor_that_nobody_uses_counts(device):
    with gp.ComputeGraph() as graph:
        gp.Sensor(KIND, frames(3))
        graph.probe(gp.ScalarField(frame(0)) + 1, "one more")
    assert graph.step(9) is False and graph.tick == 2


@both
def test_sinks_get_every_tick(device, pipelined):
    values = [], []
    graph = summing(frames(4), [g.append for g in values], pipelined)
    graph.step(9)
    graph.synchronize()
    totals = [frame(0), frame(0) + frame(1), frame(0) + frame(1) + frame(2), sum(map(frame, range(4)))]
    for each in values:
        assert len(each) == 4
        for array, want in zip(each, totals, strict=True):
            same_bits(array, want.astype("f"))
            array[:] = 0  # theirs to change
    graph.reset()
    graph.synchronize()
    same_bits(values[0][4], frame(3))


def test_what_may_be_given_to_a_sink(device):
    actual = {}
    gain = gp.Parameter([1.0, 2.0])
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(np.zeros(3, "int32"))
        state.next = state + 1
        for name, field in {
            "state": state,
            "gain": gain,
            "constant": gp.ScalarField(frame(0)),
            "bits": state > 0,
        }.items():
            gp.Actuator(field, lambda array, name=name: actual.update({name: array}))
    graph.step(2)
    same_bits(actual["state"], np.full(3, 2, "int32"))
    same_bits(actual["gain"], np.array([1, 2], "f"))
    same_bits(actual["constant"], frame(0))
    same_bits(actual["bits"], np.full(3, True))


@both
def test_a_sink_that_raises(device, pipelined):
    before, after, bad = [], [], iter([None, OSError("disk full"), None, None, None])

    def failing(array):
        error = next(bad)
        if error is not None:
            raise error

    graph = summing(frames(9), [before.append, failing, after.append], pipelined)
    graph.reset()
    if pipelined:
        graph.step(2)  # the sinks get tick 1 meanwhile
    with pytest.raises(OSError, match="disk full"):
        graph.step()
    assert graph.tick == (2 if pipelined else 1)
    graph.step()
    graph.synchronize()
    assert len(before) == len(after) == graph.tick + 1
    same_bits(after[-1], sum(map(frame, range(graph.tick + 1))).astype("f"))


def test_a_pipelined_sink_is_one_tick_late(device):
    actual = []
    graph = summing(frames(9), [lambda a: actual.append(a[0, 0])], pipelined=True)
    graph.step(2)
    deadline = time.monotonic() + 5
    while len(actual) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert actual == [0, 10]  # ticks 0 and 1; 2 is with the device
    graph.stop()
    assert actual == [0, 10, 30]
    graph.stop()
    graph.release()
    assert actual == [0, 10, 30]


def test_pipelined_sources_work_while_others_do(device):
    begun, go = threading.Event(), threading.Event()

    def source():
        yield frame(0)
        begun.set()
        go.wait(10)
        yield frame(1)

    graph = summing(source(), pipelined=True)
    graph.reset()  # returns, with the second frame being made
    assert begun.wait(10)
    same_bits(graph.read("seen"), frame(0))
    go.set()
    assert graph.step()
    same_bits(graph.read("seen"), frame(1))


@both
def test_sources_and_sinks_may_look_at_the_graph(device, pipelined):
    records = []

    def source():
        if graph.tick:
            records.append(graph.read("sum")[0, 0])
        return frame(graph.tick)

    graph = summing(source, [lambda a: records.append((graph.tick, graph.read("seen").shape))], pipelined)
    graph.step(4)
    graph.synchronize()
    assert len([s for s in records if isinstance(s, tuple)]) == 5


def test_frames_go_into_the_same_memory_and_nothing_is_bound_again(device, monkeypatch):
    graph = summing(frames(20))
    graph.step(3)
    backend = type(current())
    for name in ("bind", "empty", "upload", "compile"):
        monkeypatch.setattr(backend, name, lambda *_: pytest.fail("not a bare step"))
    graph.step(9)
    monkeypatch.undo()
    same_bits(graph.read("seen"), frame(12))


def test_a_sensor_belongs_to_its_graph(device):
    with gp.ComputeGraph() as graph:
        sensor = gp.Sensor(KIND, frames(3), "camera")
        graph.probe(sensor)
    with gp.ComputeGraph() as thief:
        thief.probe(sensor + 1, "stolen")
    with pytest.raises(gp.SemanticError, match="a sensor of another ComputeGraph is used here"):
        thief.step()
    with pytest.raises(gp.SemanticError, match="a Sensor has frames only while its graph runs: probe the field"):
        (sensor + 1).numpy()
    same_bits(graph.read("camera"), frame(0))
    with pytest.raises(gp.SemanticError, match="wants a Field"), gp.ComputeGraph() as broken:
        gp.Actuator(gp.Sensor(KIND, frames(3)).name, print)
    with pytest.raises(gp.SemanticError, match="ended with an error"):
        broken.step()
