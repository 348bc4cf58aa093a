"""Work that is enqueued and not waited for: its results, its time, who waits for it, and what it needs meanwhile."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine import evaluate

from .held import DRIVERS, held

rng = np.random.default_rng(17)
KINDS = [((), 0), ((0, 3), 0), ((5,), 0), ((5, 7), 0), ((3, 5, 2), 0), ((5, 7, 3), 1), ((4, 6), 1), ((2, 3, 2, 2), 2)]


@gp.operator
def twice(f):
    return _readTensor(f) * 2


@pytest.fixture
def opened(request):
    with gp.use_device(request.param) as backend:
        yield backend


each_driver = pytest.mark.parametrize("opened", DRIVERS, indirect=True)


def array_of(shape, dtype="float32"):
    return np.asarray(rng.random(shape) * 100).astype(dtype)


# --- results ------------------------------------------------------------------------------------------------------


def test_results_are_arrays(device):
    a = array_of((6, 9))
    f = gp.ScalarField(a)
    one, several = gp.submit(twice(f)), gp.submit(twice(f), f + 1)
    assert np.array_equal(one.result(), a * 2) and one.result() is one.result()
    first, second = several.result()
    assert np.array_equal(first, a * 2) and np.array_equal(second, a + 1)
    one.wait()
    assert one.done and several.done and 0 <= one.seconds < 60
    assert repr(one).startswith("<Event on ")


def test_fields_that_were_submitted_have_their_values(device, monkeypatch):
    doubled = twice(gp.ScalarField(a := array_of(9)))
    gp.submit(doubled).wait()
    monkeypatch.setattr(evaluate, "prepare", None)  # nothing is computed anew but what is not known
    with pytest.raises(TypeError):
        (doubled + 1).numpy()
    monkeypatch.undo()
    assert np.array_equal((doubled + 1).numpy(), a * 2 + 1)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64", "bool", "complex64", "float16"])
def test_fetch(device, dtype):
    for shape, order in KINDS if dtype == "uint8" else KINDS[-2:]:
        a = array_of(shape, dtype)
        out = gp.pinned(shape, dtype)
        f = gp.Field(a, tensor_order=order)
        assert f.fetch(out=out).result() is out
        np.testing.assert_array_equal(out, a)
        computed = np.where(True, f, f).fetch().result()
        assert computed.dtype == a.dtype and np.array_equal(computed, a), (shape, order)


def test_fetch_of_colours(device):
    a = array_of((4, 5, 4), "uint8")
    out = np.zeros((4, 5, 4), "uint8")
    gp.ColorField(a).fetch(out).wait()
    np.testing.assert_array_equal(out, a)


def test_fetch_of_many_bytes(device):
    a = array_of((700, 901, 3) if device.startswith("opencl") else (70, 91, 3))
    np.testing.assert_array_equal((gp.VectorField(a) + 1).fetch().result(), a + 1)


def test_pinned_memory(device):
    assert gp.pinned(5).shape == (5,) and gp.pinned(()).shape == () and gp.pinned((0, 3), "uint8").size == 0
    result = gp.pinned((3, 4), np.int16)
    assert result.dtype == np.int16 and result.shape == (3, 4) and result.flags.c_contiguous and result.flags.writeable
    assert result.ctypes.data % 64 == 0 and gp.pinned(2, "unorm8").dtype == np.uint8
    result[...] = 7
    assert (result == 7).all()


def test_another_thread_lets_go_of_pinned_memory(device):
    objects = [gp.pinned(1000), gp.queue("that is not kept")]
    with objects[1]:
        (gp.Field(np.ones(3)) + 1).numpy()
    thread = threading.Thread(target=lambda: (objects.clear(), gc.collect()))
    thread.start()
    thread.join()
    assert not objects  # and no warning, which would be an error


# --- errors -------------------------------------------------------------------------------------------------------

FRAME = gp.FieldType((2, 3))


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ([1, 2], "fetch: `out=` takes a NumPy array, not a list"),
        (np.zeros((3, 2), "f"), r"fetch: `out=` takes an array of shape \(2, 3\) and dtype float32, not one of shape \(3, 2\)"),
        (np.zeros((2, 3)), "and dtype float64"),
        (np.zeros((3, 2), "f").T, "fetch: `out=` takes a contiguous array, in C order"),
        (np.broadcast_to(np.float32(0), (2, 3)), "read-only"),
    ],
)  # fmt: skip
def test_arrays_that_nothing_is_fetched_into(out, says):
    with pytest.raises(gp.SemanticError, match=says):
        gp.ScalarField(np.zeros((2, 3), "f")).fetch(out=out)


def test_what_cannot_be_submitted():
    with pytest.raises(gp.SemanticError, match="submit wants Fields, not "):
        gp.submit(np.zeros(3))
    with pytest.raises(gp.SemanticError, match="submit wants at least one Field"):
        gp.submit()
    with pytest.raises(gp.SemanticError, match="no negative extents"):
        gp.pinned((2, -1))
    with pytest.raises(gp.SemanticError, match="dtype"):
        gp.pinned(2, "U5")
    with gp.ComputeGraph():
        frame = gp.Sensor(FRAME, [])
    with pytest.raises(gp.SemanticError):
        gp.submit(frame + 1)


def test_what_fails_leaves_the_library_usable(device):
    f = gp.ScalarField(a := array_of(5))

    def fails(array):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        gp.submit(gp.HostOperator(fails, twice(f), outputs=f.type))
    assert np.array_equal(gp.submit(twice(f)).result(), a * 2)


@pytest.mark.parametrize("name", [d.name for d in gp.devices()])
def test_assertions_that_fail(name):
    @gp.operator
    def small(f):
        _assert(_readTensor(f) < 1, "too large")
        return _readTensor(f)

    with gp.use_device(name, checked=True):
        assert gp.submit(small(gp.ScalarField(np.zeros(3, "f")))).result().tolist() == [0, 0, 0]
        assert small(gp.ScalarField(np.zeros((3, 2), "f"))).fetch().result().tolist() == [[0, 0]] * 3
        with pytest.raises(gp.GpuopError, match="too large"):
            gp.submit(small(gp.ScalarField(np.ones(3, "f"))))


# --- in time --------------------------------------------------------------------------------------------------------


@each_driver
def test_a_result_does_not_wait_for_what_came_later(opened):
    f = gp.evaluate(gp.ScalarField(a := array_of(1000)))
    gp.submit(twice(f + 1)).result()
    twice(f - 1).numpy()
    first = gp.submit(twice(f))
    with held(opened) as let_go:
        second = gp.submit(twice(f + 1))
        assert np.array_equal(first.result(), a * 2)
        assert first.done and not second.done
        let_go()
        assert np.array_equal(second.result(), (a + 1) * 2)


@each_driver
def test_what_is_enqueued_outlives_its_fields(opened):
    """Fields, events and arrays are dropped before the device begins; other memory takes their place, if it is free."""
    a = array_of(5000)
    f = gp.evaluate(gp.ScalarField(a))
    out = gp.pinned(5000)
    for each in (twice(f + 1), f - 1):
        each.fetch(out).wait()
    out[...] = 0
    dropped = gp.pinned(5000)
    with held(opened) as let_go:
        done = twice(f + 1).fetch(out)
        (f - 1).fetch(dropped)
        del f, dropped
        gc.collect()
        others = [opened.empty(gp.FieldType(5000)) for _ in range(8)]
        assert not done.done and not out.any()
        let_go()
        done.wait()
    del others
    assert np.array_equal(out, (a + 1) * 2)


@each_driver
def test_seconds_are_the_devices(opened):
    f = gp.evaluate(gp.ScalarField(array_of(10)))
    twice(f).numpy()
    with held(opened) as let_go:
        done = gp.submit(twice(f))
        time.sleep(0.05)
        let_go()
    assert done.seconds < 0.05


# --- asyncio ----------------------------------------------------------------------------------------------------------


def test_await(device):
    a = array_of((4, 5))

    async def main():
        f = gp.ScalarField(a)
        both = await asyncio.gather(gp.submit(twice(f)), (f + 1).fetch(out=gp.pinned((4, 5))))
        done = gp.submit(f - 1)
        done.wait()
        return *both, await done

    doubled, more, less = asyncio.run(main())
    assert np.array_equal(doubled, a * 2) and np.array_equal(more, a + 1) and np.array_equal(less, a - 1)


@each_driver
def test_who_waits_is_told_when_it_is_done(opened):
    """Events of a queue end in their order, whoever is waited for first; a task that gave up is not told."""
    f = gp.evaluate(gp.ScalarField(array_of(10)))
    early, late = twice(f), f + 1
    early.numpy(), late.numpy()
    early, late = twice(f), f + 1
    messages = []

    async def waits(event, name):
        await event
        messages.append(name)

    async def main():
        with held(opened) as let_go:
            first, second = gp.submit(early), gp.submit(late)
            tasks = [asyncio.create_task(waits(second, "second")), asyncio.create_task(waits(second, "again"))]
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(waits(first, "gave up"), 0.02)
            tasks.append(asyncio.create_task(waits(first, "first")))
            await asyncio.sleep(0.02)
            assert not messages
            let_go()
            await asyncio.gather(*tasks)

    asyncio.run(main())
    assert sorted(messages) == ["again", "first", "second"]


@each_driver
def test_a_loop_that_is_closed(opened):
    f = gp.evaluate(gp.ScalarField(array_of(10)))
    gp.submit(twice(f) + 1).result()

    async def main(done):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(done._arrived(), 0.01)

    with held(opened) as let_go:
        done = gp.submit(twice(f) + 1)
        asyncio.run(main(done))
        let_go()
    assert (done.result() == f.numpy() * 2 + 1).all()
