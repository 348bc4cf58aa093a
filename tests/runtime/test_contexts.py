"""The device in use: chosen for a thread or a task, for the process, or for one call; and what `gp.release` gives back."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine import evaluate
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime import devices
from gpuop.runtime.tuning.modes import mode_in_use

A = np.arange(12, dtype="f").reshape(3, 4)
FIRST = gp.devices()[0].name


@gp.operator
def doubled(f):
    return _readTensor(f) * 2


@gp.pipeline
def tripled(x, by=1):
    return doubled(gp.ScalarField(x)) * by + gp.ScalarField(x)


@pytest.fixture
def everywhere():
    """The process's device, put back."""
    before = list(devices._process_choice)
    yield gp.set_device
    devices._process_choice[:] = before


def in_threads(*works):
    """The results of functions that run side by side in threads of their own."""
    values = [None] * len(works)

    def run(number, work):
        values[number] = work()

    threads = [threading.Thread(target=run, args=each) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return values


def test_threads_do_not_move_one_anothers_work():
    together = threading.Barrier(2)

    def work(name):
        with gp.use_device(name):
            together.wait()
            values = gp.device().name, doubled(gp.ScalarField(A)).numpy()[0, 3]
            together.wait()
        return *values, gp.device().name

    outside = gp.device().name
    with gp.use_device("reference"):
        result = in_threads(lambda: work(FIRST), lambda: work("reference"))
        assert gp.device().name == "reference"
    assert result == [(FIRST, 6, outside), ("reference", 6, outside)]


def test_tasks_have_their_own():
    async def work(name):
        with gp.use_device(name):
            await asyncio.sleep(0)
            return gp.device().name

    async def both():
        return await asyncio.gather(work(FIRST), work("reference"))

    assert asyncio.run(both()) == [FIRST, "reference"]


def test_the_device_of_the_process(everywhere):
    everywhere("reference")
    assert in_threads(lambda: gp.device().name) == ["reference"]
    with gp.use_device(FIRST):
        assert gp.device().name == FIRST
    with pytest.raises(gp.DeviceError, match="there is no device 'nowhere'"):
        everywhere("nowhere")
    assert gp.device().name == "reference"
    everywhere(gp.device(FIRST))
    assert gp.device().name == FIRST
    everywhere(None)
    assert not devices._process_choice


def test_threads_of_graphs_have_the_device_of_who_starts_them():
    calls = []
    with gp.use_device("reference"), gp.ComputeGraph() as graph:
        frames = gp.Sensor(gp.FieldType(3), iter(np.ones((3, 3), "f")))
        gp.Actuator(frames, lambda array: calls.append(gp.device().name))
        gp.Actuator(frames, lambda array: calls.append(gp.device().name), pipelined=True)
        graph.probe(frames, "frames")
    with gp.use_device("reference"):
        graph.run()
    graph.wait()
    assert set(calls) == {"reference"} and len(calls) == 6


def test_the_device_of_a_call(everywhere):
    everywhere("reference")
    out = np.empty_like(A)
    assert tripled(A, 4, out=out, device=FIRST) is out
    np.testing.assert_array_equal(out, A * 9)
    assert gp.device().name == "reference"
    own = gp.pipeline(lambda x, device: gp.ScalarField(x) * device)
    np.testing.assert_array_equal(own(A, device=3), A * 3)
    for asks in (tripled, tripled.explain, tripled.nbytes):
        with pytest.raises(gp.DeviceError, match="there is no device 'nowhere'"):
            asks(A, device="nowhere")
    with pytest.raises(gp.SemanticError, match="gives Fields here, which are computed on the device in use"):
        tripled(gp.ScalarField(A), device=FIRST)


@pytest.mark.parametrize("on", dict.fromkeys((FIRST, "reference")))
def test_release(on, everywhere):
    everywhere(on)
    lazy, leaf = doubled(gp.ScalarField(A)), gp.evaluate(doubled(gp.ScalarField(A + 1)))
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(A)
        state.next = doubled(state)
        graph.probe(state, "state")
    graph.step()
    first = lazy.numpy(), tripled(A)
    (traced,) = [entry for _, entry in tripled.traces._entries.values() if entry.program.key][-1:]
    prepared = [weakref.ref(each) for each in traced.prepared.values()]
    assert any(each() for each in prepared)
    del traced
    gp.release()
    gc.collect()
    assert not any(each() for each in prepared)
    np.testing.assert_array_equal((lazy.numpy(), tripled(A)), first)
    np.testing.assert_array_equal(leaf.numpy(), A * 2 + 2)
    graph.step()
    np.testing.assert_array_equal(graph.read("state"), A * 4)


def test_kernels_of_many_shapes_are_let_go(monkeypatch):
    """However many pipelines there are, what all of them have compiled is bounded together."""
    plans = evaluate._plans
    monkeypatch.setattr(plans, "most", 4)
    results = [gp.pipeline(lambda x, k=k: gp.ScalarField(x) * k) for k in range(2)]
    with gp.use_device("reference"):
        for n in range(50, 60):
            for k, each in enumerate(results):
                assert each(np.ones(n, "f"))[-1] == k
    alive = [p for each in results for _, entry in each.traces._entries.values() for p in entry.prepared.values()]
    assert len(alive) <= 4


CONTEXTS = {
    "use_device": (lambda: gp.use_device("reference"), lambda: gp.device().name == "reference"),
    "queue": (lambda: gp.queue("io"), lambda: gp.device().queue_name == "io"),
    "schedule": (lambda: gp.schedule("plain"), lambda: pinned() is not None),
    "tuning": (lambda: gp.tuning("never"), lambda: mode_in_use().name == "never"),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_contexts_can_be_entered_again(name):
    make, holds = CONTEXTS[name]
    before = holds()
    graph = make()
    for _ in range(2):
        with graph:
            with graph:
                assert holds()
            assert holds()
        assert holds() == before
    with pytest.raises(ZeroDivisionError), graph:
        raise ZeroDivisionError
    assert holds() == before


def test_profiles_can_be_opened_again():
    profile = gp.profile()
    with profile as one:
        (gp.ScalarField(np.ones(3)) * 2).numpy()
    with profile as other:
        pass
    assert one is not other and len(one.launches) == 1 and not other.launches


def test_devices_are_named_or_listed():
    listed = next(device for device in gp.devices() if device.name == FIRST)
    with gp.use_device(listed):
        assert gp.device().name == FIRST
    assert gp.device(listed) is gp.device(FIRST)
    for chosen in (listed, gp.device(FIRST)):
        with gp.ComputeGraph(device=chosen) as graph:
            graph.probe(gp.ScalarField(np.arange(3.0)) + 1, "sum")
        graph.step()
        np.testing.assert_array_equal(graph.read("sum"), [1, 2, 3])
    for wrong in (3, ["cpu"], object()):
        with (
            pytest.raises(gp.DeviceError, match=r"one of gpuop.devices\(\), not (int|list|object)"),
            gp.use_device(wrong),
        ):
            pass


def test_a_device_that_there_is_not_is_refused_without_its_block():
    for name, sentence in (("gpu7", "there is no device 'gpu7'; found: "), (3, "a device is a name, ")):
        with pytest.raises(gp.DeviceError, match=sentence):
            gp.use_device(name)


@pytest.mark.parametrize("name", ["use_device", "queue", "schedule", "profile"])
def test_a_context_without_its_block_has_no_attributes(name):
    arguments = {"use_device": ["reference"], "queue": ["io"], "schedule": ["plain"], "profile": []}[name]
    with pytest.raises(
        AttributeError, match=rf"`gp.{name}\(…\)` alone has no attribute 'name': it begins with its block"
    ):
        getattr(gp, name)(*arguments).name
