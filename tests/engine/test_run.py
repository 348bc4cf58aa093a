"""Graphs that step in a thread: how they end, what may be done meanwhile, and that they leave nothing behind."""

from __future__ import annotations

import gc
import sys
import threading
import time
from contextvars import copy_context

import numpy as np
import pytest

import gpuop as gp
from gpuop.engine.graphs import threads as graph_threads
from tests.conftest import INTERPRETERS
from tests.process import python

both = pytest.mark.parametrize("pipelined", [False, True], ids=["prompt", "pipelined"])


def counter(frames=None, sink=None, pipelined=False, gain=1):
    """A graph that counts its steps, with a sensor of so many frames."""
    with gp.ComputeGraph() as graph:
        count = gp.ScalarField(np.zeros((4, 5), "int32"))
        count.next = count + gain
        graph.probe(count, "count")
        graph.probe(count * 2, "double")
        if frames is not None:
            graph.probe(
                gp.Sensor(gp.FieldType(3), (np.full(3, k) for k in range(frames)), pipelined=pipelined), "frame"
            )
        if sink is not None:
            gp.Actuator(count, sink, pipelined)
    return graph


def until(condition):
    """Wait for something that a thread is about to do."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@both
def test_wait_ends_with_the_sensors(device, pipelined):
    values = []
    graph = counter(20, lambda a: values.append(a[0, 0]), pipelined)
    graph.run()
    graph.wait()
    assert graph.tick == 19 and values == list(range(20))
    assert (graph.read("count") == 19).all() and (graph.read("frame") == 19).all()
    graph.wait()
    graph.run()  # may be tried again; there are no more frames
    graph.wait()
    assert graph.tick == 19 and graph.step() is False


def test_stop_and_run_again(device):
    graph = counter()
    graph.stop()  # before anything ran
    for _ in range(3):
        before = graph.tick
        graph.run()
        until(lambda before=before: graph.tick >= before + 5)
        graph.stop()
        graph.stop()
        tick = graph.tick
        assert (graph.read("count") == tick).all() and (graph.read("double") == 2 * tick).all()
        assert graph.step() and graph.tick == tick + 1


def test_run_twice(device):
    graph = counter()
    graph.run()
    with pytest.raises(gp.SemanticError, match=r"this ComputeGraph is running; `graph\.stop\(\)` it before"):
        graph.run()
    until(lambda: graph.tick > 3)
    graph.stop()
    with gp.ComputeGraph() as unfinished, pytest.raises(gp.SemanticError, match="still being defined"):
        unfinished.run()


@both
def test_errors_of_the_thread_come_from_wait(device, pipelined):
    def sink(array):
        if array[0, 0] == 4:
            raise OSError("disk full")

    for end in ("wait", "stop"):
        graph = counter(sink=sink, pipelined=pipelined)
        graph.run()
        until(lambda graph=graph: graph.tick >= 4)
        with pytest.raises(OSError, match="disk full"):
            graph.wait()
        getattr(graph, end)()  # once
        tick = graph.tick
        assert tick in (4, 5)
        graph.step()
        assert (graph.read("count") == tick + 1).all()


def test_errors_come_from_stop_and_from_the_next_run_too(device):
    def source():
        yield np.zeros(3)
        raise OSError("no signal")

    for end in ("stop", "run", "release"):
        with gp.ComputeGraph() as graph:
            graph.probe(gp.Sensor(gp.FieldType(3), source()), "frame")
        graph.run()
        until(lambda graph=graph: not graph._stepper._loop.alive)
        with pytest.raises(OSError, match="no signal"):
            getattr(graph, end)()
    with pytest.raises(gp.SemanticError, match="was released"):
        graph.step()


def test_others_get_their_turn(device):
    gain = gp.Parameter(np.int32(1))
    graph = counter(gain=gain)
    graph.run()
    for k in range(30):
        count, double = graph.read("count"), graph.read("double")
        assert (count == count[0, 0]).all() and double[0, 0] >= 2 * count[0, 0]  # whole, and never older
        gain.set(k % 3)
        if k % 10 == 0:
            assert graph.step()
            graph.synchronize()
    graph.reset()
    gain.set(0)
    graph.stop()


def test_many_steps_at_once_let_others_read(device):
    graph, calls, many, over = counter(), [], 1000, threading.Event()
    graph.reset()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # so that the reader comes while steps are taken, however short these are

    def read():
        while not over.is_set():
            count = graph.read("count")
            assert (count == count[0, 0]).all()
            calls.append(int(count[0, 0]))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        until(
            lambda: graph.step(many) and len({n for n in list(calls) if n % many}) > 5
        )  # seen while some were to come
    finally:
        sys.setswitchinterval(interval)
        over.set()
        reader.join(60)
    assert calls == sorted(calls)


def test_readers_do_not_wait_for_a_slow_source(device):
    go = threading.Event()

    def source():
        yield np.zeros(3)
        go.wait(60)
        yield np.ones(3)

    with gp.ComputeGraph() as graph:
        graph.probe(gp.Sensor(gp.FieldType(3), source()), "frame")
    graph.reset()
    graph.run()
    assert (graph.read("frame") == 0).all() and graph.tick == 0
    go.set()
    graph.wait()
    assert (graph.read("frame") == 1).all()


def test_several_graphs_at_once(device):
    graphs = [counter(15, gain=k) for k in range(1, 5)]
    for graph in graphs:
        graph.run()
    for k, graph in enumerate(graphs, 1):
        graph.wait()
        assert (graph.read("count") == 14 * k).all()


def test_graphs_run_from_several_threads(device):
    wrong = []

    def work(gain):
        try:
            for frames in (3, 7):
                graph = counter(frames, gain=gain)
                graph.run()
                graph.wait()
                assert (graph.read("count") == (frames - 1) * gain).all()
                graph.release()
        except BaseException as failed:  # noqa: BLE001 - reported by the main thread
            wrong.append(failed)

    threads = [threading.Thread(target=copy_context().run, args=(work, gain)) for gain in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


@both
def test_a_sink_may_stop_the_graph(device, pipelined):
    with gp.ComputeGraph() as graph:
        count = gp.ScalarField(np.zeros(3, "int32"))
        count.next = count + 1
        gp.Actuator(count, lambda a: graph.stop() if a[0] == 6 else None, pipelined)
    graph.run()
    graph.wait()
    assert graph.tick in ((6,) if not pipelined else (6, 7, 8))


def test_release_stops(device):
    graph = counter()
    graph.run()
    until(lambda: graph.tick > 2)
    bound = graph._stepper.bound
    graph.release()
    tick = bound.tick
    time.sleep(0.01)
    assert bound.tick == tick and not [loop for loop in graph_threads._loops if loop.alive]
    with pytest.raises(gp.SemanticError, match="was released"):
        graph.run()


def test_workers_end_with_their_graph(device):
    graph = counter(5, lambda a: None, pipelined=True)
    graph.step(3)
    graph.release()
    del graph
    gc.collect()
    until(lambda: not [t for t in threading.enumerate() if t.name in ("gpuop sensors", "gpuop actuators")])


LEFT_RUNNING = """
import time
import numpy as np
import gpuop as gp
from tests.as_gpus import used

def slow():
    while True:
        yield np.zeros(3)
        time.sleep({pause} if graph.tick > 1 else 0)

with used({device!r}):
    with gp.ComputeGraph() as graph:
        count = gp.ScalarField(np.zeros((64, 64), "f"))
        count.next = count + 1
        frame = gp.Sensor(gp.FieldType(3), slow(), pipelined={pipelined})
        gp.Actuator(count, lambda array: None, pipelined={pipelined})
        graph.probe(count, "count")
    graph.run()
    while graph.tick < 2:
        time.sleep(0.001)
print("end")
"""


@both
def test_the_process_ends_while_a_graph_runs(device, pipelined):
    """While it works, or waits for a sensor."""
    pause = 30 if pipelined == (device == "reference") else 0
    name = "reference" if device in INTERPRETERS else device
    done = python("-c", LEFT_RUNNING.format(device=name, pipelined=pipelined, pause=pause))
    assert (done.stdout, done.stderr) == ("end\n", "")
