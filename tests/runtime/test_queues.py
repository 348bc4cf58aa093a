"""Queues: each in order, with values that all of them share, and memory that lives as long as any needs it."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from contextvars import copy_context

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime.devices import current, discover

from .held import DRIVERS, IN_PLACE, held

rng = np.random.default_rng(17)
DEVICES = [device.name for device in gp.devices()]
each_driver = pytest.mark.parametrize("opened", DRIVERS, indirect=True)


@gp.operator
def twice(f):
    return _readTensor(f) * 2


@gp.operator
def mirror(f):
    return _readTensor(f, _columns - 1 - _column)


@pytest.fixture
def opened(request):
    with gp.use_device(request.param) as backend:
        yield backend


def array_of(n):
    return rng.random(n, np.float32)


# --- which one ------------------------------------------------------------------------------------------------------


def test_a_queue_is_of_the_device_in_use(device):
    main = current()
    with gp.queue("one") as one, gp.queue("two", priority="low") as two:
        assert one.main is two.main is main.main and one is not two and current() is gp.device() is two
        with gp.queue("one") as again:
            assert again is one
        with gp.queue("one", priority="high") as other:
            assert other is not one
        if device in DEVICES:
            assert gp.device(device) is two
    assert current() is main
    with pytest.raises(ZeroDivisionError), gp.queue("one"):
        _ = 1 / 0
    assert current() is main


def test_the_device_may_change_inside():
    with gp.queue("io"):
        for name in DEVICES:
            with gp.use_device(name) as backend:
                assert backend.name == name and backend is not backend.main
                assert twice(gp.ScalarField([1.0, 2.0])).numpy().tolist() == [2, 4]


def test_threads_have_their_own():
    results = {}

    def work(name):
        with gp.queue(name):
            ready.wait()
            results[name] = current(), twice(gp.ScalarField(np.full(100, 3, "f"))).numpy().sum()
            ready.wait()

    def plain():
        results["plain"] = current(), 0

    ready = threading.Barrier(3)
    with gp.queue("outer"):
        threads = [threading.Thread(target=work, args=(f"queue {k}",)) for k in range(3)]
        threads.append(threading.Thread(target=plain))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({id(queue) for queue, _ in results.values()}) == 4
    assert results.pop("plain")[0] is current().main
    assert [total for _, total in results.values()] == [600] * 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": ""}, 'a queue has a name, as in `gp.queue\\("io"\\)`'),
        ({"name": 3}, "a queue has a name"),
        ({"name": "io", "priority": "urgent"}, 'the priority of a queue is "high", "normal" or "low", not \'urgent\''),
        ({"name": "io", "after": [3]}, "`after=` takes Events, which `gp.submit` and `fetch` give, not "),
        (
            {"name": "io", "after": gp.ScalarField([1])},
            "`after=` takes Events, which `gp.submit` and `fetch` give, not a ScalarField",
        ),
    ],
)
def test_wrong_queues(options, says):
    with pytest.raises(gp.SemanticError, match=says) as caught:
        gp.queue(**options)
    assert str(caught.value).endswith("gp.queue(**options)")  # the user's line
    assert current() is current().main


# --- what runs there ------------------------------------------------------------------------------------------------


def test_everything_runs_in_a_queue(device):
    a = array_of(50)
    gain = gp.Parameter(3.0)

    @gp.pipeline
    def scaled(array):
        return mirror(gp.ScalarField(array)) * gain

    outside = gp.evaluate(twice(gp.ScalarField(a)))
    with gp.queue("work") as queue:
        inside = gp.evaluate(mirror(outside))
        np.testing.assert_array_equal(inside.numpy(), (a * 2)[::-1])
        np.testing.assert_array_equal(scaled(a), a[::-1] * 3)
        np.testing.assert_array_equal(gp.iterate(twice, inside, times=3).numpy(), (a * 16)[::-1])
        with gp.ComputeGraph() as graph:
            state = gp.ScalarField(a)
            state.next = state + outside
            graph.probe(state, "state")
        graph.step(2)
        assert graph._stepper.bound.backend is queue
    graph.step()
    np.testing.assert_allclose(graph.read("state"), a * 7, rtol=1e-6)
    np.testing.assert_array_equal((inside + outside).numpy(), (a * 2)[::-1] + a * 2)
    gain.set(5.0)
    np.testing.assert_array_equal(scaled(a), a[::-1] * 5)


def test_compiled_once_for_all_queues(monkeypatch):
    f = gp.ScalarField(a := array_of(40))
    np.testing.assert_array_equal((mirror(f) - 7).numpy(), a[::-1] - 7)
    main = current()
    monkeypatch.setattr(type(main), "compile", None)
    for name in ("first", "second"):
        with gp.queue(name):
            np.testing.assert_array_equal((mirror(gp.ScalarField(a + 1)) - 7).numpy(), (a + 1)[::-1] - 7)


# --- order ----------------------------------------------------------------------------------------------------------


@each_driver
def test_values_of_one_queue_are_waited_for_in_another(opened):
    """Those that it uses, and no others: it runs while the other is held."""
    a = array_of(500)
    f, warm = gp.evaluate(gp.ScalarField(a), gp.ScalarField(a + 1))
    for each in (twice(warm), twice(warm + 0), mirror(twice(warm)), mirror(warm)):
        gp.submit(each).result()
    with gp.queue("third"):
        twice(warm).numpy()
    with gp.queue("other") as other:
        before = gp.evaluate(twice(f))
        with held(other) as let_go:
            late = gp.evaluate(twice(f + 0))
            with gp.queue("third"):
                early = gp.submit(mirror(before))
                assert np.array_equal(early.result(), a[::-1] * 2)
                after = gp.submit(mirror(late))
                assert not after.done
            let_go()
            assert np.array_equal(after.result(), a[::-1] * 2)


@each_driver
def test_values_of_before_there_was_another_queue(opened):
    """A queue that uses them waits for all that was enqueued until then, and for nothing later."""
    a = array_of(500)
    opener = next(opener for device, opener in discover() if device.name == opened.name)
    with gp.use_device(opener()) as alone:
        f, g = gp.evaluate(gp.ScalarField(a)), twice(gp.ScalarField(a))
        gp.submit(g, f + 0).result()
        with gp.queue("io"):
            gp.evaluate(gp.ScalarField(a)).fetch().result()
        with held(alone) as let_go:
            late = gp.submit(f + 0)
            with gp.queue("io"):
                fetched = [f.fetch(), g.fetch()]
            until = time.monotonic() + 5
            while not all(event.done for event in fetched) and time.monotonic() < until:
                time.sleep(0.001)
            assert [event.done for event in (*fetched, late)] == [True, True, False]
            let_go()
        assert np.array_equal(f.fetch().result(), a) and np.array_equal(fetched[1].result(), a * 2)
        assert np.array_equal(late.result(), a)


@each_driver
def test_a_queue_waits_for_events(opened):
    a = array_of(500)
    f = gp.evaluate(gp.ScalarField(a))
    for name in ("free", "bound", "also bound"):
        with gp.queue(name):
            gp.submit(mirror(f + 2), twice(f), f + 2, twice(f) * 1).result()
            for each in (mirror(f + 2), twice(f), f + 2, twice(f) * 1):
                each.numpy()
    with held(opened) as let_go:
        first = gp.submit(twice(f))
        with gp.queue("free"):
            assert np.array_equal(gp.submit(f + 2).result(), a + 2)
        with gp.queue("bound", after=first):
            second = gp.submit(mirror(f + 2))
        with gp.queue("also bound", after=[second, first]):
            third = gp.submit(twice(f) * 1)
        assert not first.done and not second.done and not third.done
        let_go()
        assert np.array_equal(third.result(), a * 2) and first.done and second.done
    assert np.array_equal(second.result(), a[::-1] + 2)


@pytest.mark.skipif(len(DEVICES) < 2, reason="there is one device")
def test_events_of_another_device():
    with gp.use_device(DEVICES[0]):
        done = gp.submit(twice(gp.ScalarField(array_of(2000))))
    with gp.use_device(DEVICES[1]), gp.queue("after", after=[done]):
        assert done.done
        assert twice(gp.ScalarField([1.0])).numpy().tolist() == [2]


# --- memory ---------------------------------------------------------------------------------------------------------


@each_driver
def test_memory_lives_until_all_queues_have_used_it(opened):
    """Fields are dropped while another queue, which is held, is to read them; new fields come meanwhile."""
    a = array_of(20_000)
    fields = [gp.ScalarField(a + k) for k in range(4)]
    gp.evaluate(*(twice(f) for f in fields))
    with gp.queue("reader") as reader:
        (mirror(gp.evaluate(twice(gp.ScalarField(a)))) + 1).numpy()
    outs = [gp.pinned(20_000) for _ in fields]
    for out in outs:
        out[...] = 0
    filled = gp.ScalarField(np.full(20_000, -1, "f")).sum().numpy()
    with held(reader) as let_go:
        for k, out in enumerate(outs):
            (value,) = (gp.evaluate(twice(fields[k])),)
            with gp.queue("reader"):
                done = (mirror(value) + 1).fetch(out)
            del value
        fields.clear()
        gc.collect()
        for _ in range(10):
            assert gp.ScalarField(np.full(20_000, -1, "f")).sum().numpy() == filled
        assert not done.done and not any(out.any() for out in outs)
        let_go()
        done.wait()
    for k, out in enumerate(outs):
        assert np.array_equal(out, (a + k)[::-1] * 2 + 1)


@pytest.mark.parametrize("opened", IN_PLACE, indirect=True)
def test_arrays_live_until_kernels_have_used_them(opened):
    """Kernels read and write NumPy's arrays where they lie; the call fails before it has waited for them."""

    def fails(number):
        raise ValueError("no")

    fine = gp.HostOperator(lambda number: number, gp.Parameter(1.0), outputs=gp.FieldType(()))
    broken = gp.HostOperator(fails, gp.Parameter(1.0), outputs=gp.FieldType(()))

    @gp.pipeline
    def both(array, works):
        return twice(gp.ScalarField(array)), fine if works else broken

    both(array_of(30_000), True)
    with pytest.raises(ValueError, match="no"):
        both(array_of(30_000), False)
    values = array_of(30_000)
    lives = weakref.ref(values)
    with held(opened) as let_go:
        with pytest.raises(ValueError, match="no"):
            both(values, False)
        del values
        gc.collect()
        assert lives() is not None
        let_go()
        opened.synchronize()
    opened.keep(None)
    gc.collect()
    assert lives() is None


def test_tasks_have_their_own(device):
    """Each task of asyncio is in the queue that it chose, whichever task ran in between."""
    a = array_of(60)

    async def work(name):
        with gp.queue(name) as queue:
            for k in range(3):
                result = await gp.submit(twice(gp.ScalarField(a + k)))
                assert current() is queue and np.array_equal(result, (a + np.float32(k)) * 2)
                await asyncio.sleep(0)
        return queue

    async def main():
        return await asyncio.gather(*(work(f"task {k}") for k in range(3)))

    assert len({id(queue) for queue in asyncio.run(main())}) == 3


def test_threads_that_share_fields(device):
    """Queues that evaluate the same lazy fields at once."""
    a = array_of(3000)
    wrong = []
    shared = [mirror(gp.ScalarField(a)) + k for k in range(4)]

    def work(name):
        try:
            with gp.queue(name):
                for k in range(8):
                    f, n = shared[k % 4], float(k)
                    done = gp.submit(twice(f) + n, f)
                    whole, part = done.result()
                    assert np.array_equal(whole, (a[::-1] + np.float32(k % 4)) * 2 + np.float32(n))
                    assert np.array_equal(part, a[::-1] + np.float32(k % 4))
        except BaseException as failed:  # noqa: BLE001 - told by the thread that waits
            wrong.append(failed)

    threads = [threading.Thread(target=copy_context().run, args=(work, f"worker {k}")) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
