"""`gp.profile`: which launches are told of, when they were, and what they are told of as."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from contextvars import copy_context
from types import SimpleNamespace

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.trace import HostSpan
from gpuop.dsl import *
from gpuop.runtime.cuda import nvtx
from gpuop.runtime.profile import timeline

rng = np.random.default_rng(17)
DEVICES = [device.name for device in gp.devices()]
A = rng.random((30, 40), np.float32)


@gp.operator
def twice(f):
    return _readTensor(f) * 2


@gp.operator
def mirror(f):
    return _readTensor(f, _row, _columns - 1 - _column)


def stepping():
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(A)
        state.next = mirror(state) * 0.5
        graph.probe(state, "state")
    return graph


def counted(times, kind="kernel"):
    return {(row.name, row.count) for row in times.rows if row.kind == kind}


def counts(times):
    return [row.count for row in times.rows if row.kind == "kernel"]


# --- what is told of ------------------------------------------------------------------------------------------------


def test_fields_pipelines_graphs_and_iterations(device):
    @gp.pipeline
    def brighter(array):
        return mirror(gp.ScalarField(array)) + 1

    f, graph = gp.ScalarField(A), stepping()
    graph.step()
    began = time.perf_counter()
    with gp.profile() as times:
        for _ in range(3):
            np.testing.assert_array_equal(brighter(A), A[:, ::-1] + 1)
        np.testing.assert_array_equal((twice(f) - 1).numpy(), A * 2 - 1)
        graph.step(4)
        with gp.schedule("plain"):
            np.testing.assert_array_equal(gp.iterate(mirror, f, times=5).numpy(), A[:, ::-1])
        flipped = gp.HostOperator(np.flipud, twice(f), outputs=f.type)
        np.testing.assert_array_equal(flipped.numpy(), A[::-1] * 2)
    wall = 1e3 * (time.perf_counter() - began)
    assert counted(times) == {
        ("mirror_add", 3), ("twice_subtract", 1), ("mirror_multiply", 4), ("mirror", 5), ("twice", 1), ("flipud", 1)
    }  # fmt: skip
    assert {row.name: row.operators for row in times.rows}["mirror_add"] == ("mirror", "add")
    assert len(times.launches) == 15
    assert sum(row.ms for row in times.rows if row.kind == "kernel") == pytest.approx(times.total_ms)
    for launch in times.launches:
        assert launch.device == gp.device().name and launch.queue == ""
        assert 0 < launch.ms < wall and -5 < launch.start_ms < wall + 5
    for first, second in zip(times.launches, times.launches[1:], strict=False):
        assert first.start_ms + first.ms <= second.start_ms + 1e-3, "a queue runs in order"
    for row in times.rows:
        by_device = row.kind == "kernel" and row.name != "flipud"
        assert (row.predicted_ms > 0) == (device in DEVICES and device != "reference" and by_device)
    np.testing.assert_array_equal(graph.read("state"), A[:, ::-1] / 32)


def test_operators_that_are_computed_again_are_told(device):
    f = gp.ScalarField(A)
    with gp.profile() as times:
        (twice(f) + mirror(f)).sum(axis=1).numpy()
    assert set(times.rows[0].operators) >= {"twice", "mirror", "add", "sum"}


def test_only_what_is_inside(device):
    graph = stepping()
    graph.step(2)
    own = graph._stepper.bound.prepared
    with gp.profile() as times:
        graph.step(3)
        assert times.rows[0].count == 3, "rows may be read meanwhile"
        graph.step()
    graph.step(2)
    assert graph._stepper.bound.prepared is own
    twice(gp.ScalarField(A)).numpy()
    assert counts(times) == [4]
    np.testing.assert_array_equal(graph.read("state"), A / 2**8)
    with gp.profile() as again:
        graph.reset()
        graph.step()
    assert counts(again) == [2], "both evaluate"
    np.testing.assert_array_equal(graph.read("state"), A[:, ::-1] / 2)


def test_profiles_in_profiles(device):
    f, graph = gp.ScalarField(A), stepping()
    with gp.profile() as outer:
        twice(f).numpy()
        with gp.profile() as inner:
            mirror(f).numpy()
        assert graph.profile(2).rows[0].median_ms > 0
        graph.step()
        (f - 1).numpy()
    assert counted(inner) == {("mirror", 1)}
    assert counted(outer) >= {("twice", 1), ("mirror", 1), ("subtract", 1), ("mirror_multiply", 1)}


def test_what_fails_inside():
    f = gp.ScalarField(A)
    with pytest.raises(gp.SemanticError), gp.profile() as times:
        twice(f).numpy().reshape(gp.Shape(-1))
    mirror(f).numpy()
    assert counted(times) == {("twice", 1)}


def test_graphs_in_threads(device):
    graph = stepping()
    graph.step()
    with gp.profile() as times:
        graph.run()
        try:
            for _ in range(5):
                launches = times.launches  # while the thread launches
            while not times.launches:
                time.sleep(0.001)
        finally:
            graph.stop()
    assert len(launches) <= len(times.launches)
    assert times.rows[0].name == "mirror_multiply" and times.rows[0].count <= graph.tick


def test_threads_and_queues(device):
    def work(name):
        with gp.queue(name):
            for k in range(4):
                (twice(gp.ScalarField(A + k)) - 1).numpy()

    with gp.profile() as times:
        threads = [threading.Thread(target=copy_context().run, args=(work, f"queue {k}")) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(launch.queue for launch in times.launches) == ["queue 0"] * 4 + ["queue 1"] * 4
    assert counted(times) == {("twice_subtract", 8)}


def test_kernels_of_one_name_that_differ():
    with gp.profile() as times:
        twice(gp.ScalarField(A)).numpy()
        twice(gp.ScalarField(A[0])).numpy()
        twice(gp.ScalarField(A[1])).numpy()
    assert sorted(counts(times)) == [1, 2]


def test_many_launches(device, monkeypatch):
    monkeypatch.setattr(timeline, "UNREAD", 3)
    f = gp.ScalarField(A)
    with gp.profile() as times:
        for k in range(10):
            (f + gp.Parameter(float(k))).numpy()
    assert counted(times) == {("add", 10)}


def test_copies(device):
    """Copies to the device and from it, in their queues; all of them lie inside of the profile."""
    f, g = gp.ScalarField(A), gp.ScalarField(A + 1)
    with gp.profile() as times:
        np.testing.assert_array_equal(twice(f).numpy(), A * 2)
        gp.evaluate(twice(g))
        with gp.queue("io"):
            np.testing.assert_array_equal(twice(f).fetch().result(), A * 2)
    assert counted(times, "copy") == {("upload", 2), ("download", 2)}
    copies = [span for span in times.spans if span.kind == "copy"]
    assert [(span.name, span.queue) for span in copies] == [
        ("upload", ""), ("download", ""), ("upload", ""), ("download", "io")
    ]  # fmt: skip
    for span in copies:
        assert span.operators == () and span.device == gp.device().name
        assert 0 <= span.ms < times.wall_ms and -5 < span.start_ms < times.wall_ms + 5
    assert all(launch.kind == "kernel" for launch in times.launches)
    twice(f + 1).numpy()
    assert counted(times, "copy") == {("upload", 2), ("download", 2)}


def test_the_host(device):
    """The work of the host is counted once, however it is nested, and is less than the time that passed."""
    f = gp.ScalarField(A)
    with gp.profile() as times:
        for _ in range(2):
            (twice(f) - 1).numpy()
        time.sleep(0.02)
    host = {row.name: row for row in times.rows if row.kind == "host"}
    assert host["wait"].count >= 2 and ("plan" in host) == ("compile" in host)
    assert host["prepare"].count == 2 and host["record"].count >= 4 and host["convert"].count >= 1
    assert ("enqueue" in host) == gp.device().only_enqueues
    assert sum(row.ms for row in host.values()) <= times.wall_ms - 20
    assert {row.device for row in host.values()} == {"host"}
    threads = {span.queue for span in times.spans if span.kind == "host"}
    assert threads == {threading.current_thread().name}
    lines = str(times).split("\n\n")[-1].splitlines()
    assert lines[0] == "host" and lines[-1].split()[:2] == ["wall", "time"]
    assert float(lines[-1].split()[2]) == pytest.approx(times.wall_ms, abs=1e-3)
    rest = float(lines[-2].removeprefix("elsewhere").split()[0])
    assert rest == pytest.approx(times.wall_ms - sum(row.ms for row in host.values()), abs=1e-3) and rest >= 20


def test_arrays_are_converted_and_what_was_planned_is_found(device):
    shape = 7, 23  # of no other test
    array = np.ones(shape, "f")
    call = gp.pipeline(lambda a: gp.ScalarField(a) * 3)
    for plans in (1, 0):
        with gp.profile() as times:
            twice(gp.ScalarField(array) * 5).numpy()
            call(array)
        count = {row.name: row.count for row in times.rows if row.kind == "host"}
        assert (
            count["prepare"] == 2
            and count.get("plan", 0) == 2 * plans
            and count["record"] >= 2
            and count["convert"] >= 1
        )


def test_the_wall_time_has_what_the_device_does(device):
    with gp.ComputeGraph() as graph:
        u = gp.ScalarField(np.ones((200, 300), np.float32))
        u.next = np.sqrt(u + 1)
    with gp.profile() as times:
        graph.step(20)
    first, last = times.launches[0], times.launches[-1]
    assert times.wall_ms >= 0.9 * (last.start_ms + last.ms - first.start_ms)


def test_what_waits_inside_of_something_is_told_once():
    with gp.profile() as times:
        with HostSpan("plan"):
            time.sleep(0.01)
            with HostSpan("wait"):
                time.sleep(0.03)
    plan, wait = (next(row for row in times.rows if row.name == name) for name in ("plan", "wait"))
    assert plan.ms < 30 <= wait.ms
    assert next(span for span in times.spans if span.name == "plan").ms >= 40


# --- how it is shown ------------------------------------------------------------------------------------------------


def test_the_table():
    f = gp.ScalarField(A)
    with gp.profile() as times:
        for name in DEVICES:
            with gp.use_device(name):
                (twice(f) - 1).numpy()
                gp.evaluate(mirror(f), twice(mirror(f) + mirror(f)))
    tables = str(times).split("\n\n")
    assert [table.splitlines()[0] for table in tables] == [*DEVICES, "host"]
    for table in tables[:-1]:
        head, *rows, last = table.splitlines()[1:]
        assert head.split() == ["kernel", "count", "ms", "predicted", "share", "operators"]
        assert rows[0].startswith("twice_subtract ")
        assert re.search(r"  twice, subtract \(test_timeline.py:\d+\)$", rows[0])
        assert last.split()[:2] == [
            "all",
            str(sum(row.count for row in times.rows if row.device == table.splitlines()[0])),
        ]
        assert len({row.index("%") for row in rows}) == 1, "the columns are aligned"


def test_lines():
    """Those of the calls that a kernel is from, where nothing equal was planned before."""
    f = gp.ScalarField(A[:3, :7])
    with gp.profile() as times:
        once = f * 0.71875
        (once - 0.28125).numpy()
    line = test_lines.__code__.co_firstlineno + 4
    (row,) = (row for row in times.rows if row.kind == "kernel")
    assert row.lines == times.launches[0].lines == (f"test_timeline.py:{line}", f"test_timeline.py:{line + 1}")


def test_lines_of_pipelines():
    result = gp.pipeline(lambda a: (gp.ScalarField(a) * 0.34375).sum() + 1)
    line = test_lines_of_pipelines.__code__.co_firstlineno + 1
    actual = result.profile(A[:3, :11], steps=1)
    assert {row.lines for row in actual.rows} == {(f"test_timeline.py:{line}",)}
    text = str(actual).splitlines()[2:-1]
    assert text and all(row.endswith(f"%  test_timeline.py:{line}") for row in text)


def test_no_launches(tmp_path):
    with gp.profile() as times:
        pass
    assert str(times) == "nothing" and times.rows == () and times.total_ms == 0
    times.save(tmp_path / "empty.json")
    assert json.loads((tmp_path / "empty.json").read_text())["traceEvents"] == []


def test_the_trace(device, tmp_path):
    """As the trace event format says: complete events in microseconds, and names of processes and threads."""
    f = gp.ScalarField(A)
    with gp.profile() as times:
        twice(f).numpy()
        with gp.queue("io"):
            mirror(f).numpy()
    times.save(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    names = [e for e in trace["traceEvents"] if e["ph"] == "M"]
    assert {(e["name"], e["args"]["name"]) for e in names} == {
        ("process_name", gp.device().name), ("thread_name", "main queue"), ("thread_name", "io"),
        ("process_name", "host"), ("thread_name", threading.current_thread().name),
    }  # fmt: skip
    complete = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert [(e["name"], e["cat"]) for e in complete] == [(span.name, span.kind) for span in times.spans]
    assert {e["name"] for e in complete if e["cat"] == "copy"} == {"upload", "download"}
    assert len({e["pid"] for e in complete if e["cat"] != "host"}) == 1
    first, second = (e for e in complete if e["cat"] == "kernel")
    for event, launch in zip((first, second), times.launches, strict=True):
        assert event["ts"] == pytest.approx(1e3 * launch.start_ms) and event["dur"] == pytest.approx(1e3 * launch.ms)
        assert event["name"] == launch.name and event["args"]["operators"] == launch.name
        assert event["args"]["lines"] == ", ".join(launch.lines) != ""
    assert first["pid"] == second["pid"] and first["tid"] != second["tid"]


def test_ranges_for_nvidias_tools(monkeypatch):
    messages = []
    package = SimpleNamespace(
        start_range=lambda name: messages.append(("start", name)) or len(messages),
        end_range=lambda n: messages.append(("end", n)),
    )
    monkeypatch.setitem(sys.modules, "nvtx", package)
    nvtx._functions.cache_clear()
    first, second = nvtx.nvtx_range("a"), nvtx.nvtx_range("b")
    first()
    second()
    assert messages == [("start", "a"), ("start", "b"), ("end", 1), ("end", 2)]
    monkeypatch.setitem(sys.modules, "nvtx", None)
    monkeypatch.setattr(nvtx, "LIBRARIES", ("libnothing.so.1",))
    nvtx._functions.cache_clear()
    nvtx.nvtx_range("c")()
    nvtx._functions.cache_clear()
