"""Memory of NumPy's that kernels work in lives until they are done, however a call of a pipeline is left."""

from __future__ import annotations

import gc
import sys
from contextlib import ExitStack, suppress
from weakref import ref

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.errors import DeviceError
from gpuop.dsl import _readTensor
from gpuop.runtime.base.current_queue import queue_of
from gpuop.runtime.devices import current
from tests.runtime.held import IN_PLACE, held

from .bytecodes import Places
from .cases import Interrupted

copied = gp.pipeline(lambda array: gp.operator(lambda f: _readTensor(f))(gp.Field(array)))


class Lent:
    """The arrays that a device has wrapped, of which nothing here keeps any."""

    def __init__(self, backend, monkeypatch):
        self.arrays, wrap = [], type(backend).wrap

        def noted(queue, array):
            wrapped = wrap(queue, array)
            if wrapped is not None:
                self.arrays.append(ref(array if array.base is None else array.base))
            return wrapped

        monkeypatch.setattr(type(backend), "wrap", noted)

    def alive(self):
        gc.collect()  # of tracebacks
        return [array() is not None for array in self.arrays]


@pytest.fixture(params=IN_PLACE)
def queue(request):
    with gp.use_device(request.param):
        yield current()


@pytest.fixture
def lent(queue, monkeypatch):
    return Lent(queue, monkeypatch)


@pytest.fixture
def left(queue, monkeypatch):
    """Calls are left where they would wait."""

    def leave(*_):
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(type(queue), "settle", leave)
        yield patch


class Made:
    """An object that NumPy can read and that makes an array each time."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __array__(self, dtype=None, copy=None):
        return self.array.copy()


@pytest.mark.parametrize("dtype", ["bool", "float32", "complex64"])
def test_until_it_is_waited_for(queue, lent, dtype, monkeypatch):
    """Copies of what kernels do not read as it lies, too."""
    calls, settle = [], type(queue).settle

    def settled(backend, buffers):
        calls.extend(lent.alive())
        lent.arrays.clear()
        settle(backend, buffers)

    monkeypatch.setattr(type(queue), "settle", settled)
    a = np.arange(24).reshape(4, 6).astype(dtype)
    locked = a.copy()
    locked.flags.writeable = False
    for array in (a, a.T, a[::-1, ::-1], a[::2, 1::3], locked, np.broadcast_to(a[0], (3, 6)), Made(a)):
        np.testing.assert_array_equal(copied(array), getattr(array, "array", array))
    assert all(calls) and (calls or dtype == "complex64")  # whose planes PoCL has of its own


def test_when_a_call_is_left(queue, lent, left):
    with held(queue):
        with pytest.raises(Interrupted):
            copied(np.ones((5, 6), "f"))
        assert lent.alive() == [True, True]
    left.undo()
    copied(np.ones(3, "f"))
    assert lent.alive()[:2] == [False, False]


def test_when_a_second_kernel_is_refused(queue, lent, monkeypatch):
    """By a driver that has no more memory, while the first one runs."""
    two = gp.pipeline(lambda array: (gp.Field(array).sum(), gp.Field(array) + 1))
    a = np.ones((50, 60), "f")
    two(a)
    once, launches = type(queue).launch_program, []

    def launch(backend, *args):
        launches.append(backend)
        if len(launches) > 1:
            raise DeviceError("no memory")
        once(backend, *args)

    monkeypatch.setattr(type(queue), "launch_program", launch)
    lent.arrays.clear()
    with held(queue):
        with pytest.raises(DeviceError, match="no memory"):
            two(a.copy())
        assert len(launches) == 2 and lent.alive() == [True] * len(lent.arrays)
    queue.settle([])
    assert not any(lent.alive())


def test_when_a_measurement_is_left(queue, lent, monkeypatch):
    launch = type(queue).launch

    def leave(_):
        raise Interrupted

    with ExitStack() as gates:

        def launched(backend, parts):
            gates.enter_context(held(backend))
            launch(backend, parts)

        monkeypatch.setattr(type(queue), "launch", launched)
        monkeypatch.setattr("gpuop.runtime.profile.profiler._Measured.seconds", leave)
        with pytest.raises(Interrupted):
            copied.profile(np.ones((5, 6), "f"))
        assert lent.alive() == [True, True]


def test_queues_that_end_in_another_order(queue):
    other = queue_of(queue, ("other", "normal"))
    arrays = [np.ones(3), np.ones(4)]
    refs = [ref(array) for array in arrays]
    with held(queue):
        queue.keep(arrays.pop(0))
        other.keep(arrays.pop())
        other.settle([])
        assert [array() is not None for array in refs] == [True, False]
    queue.settle([])
    assert refs[0]() is None


@pytest.mark.skipif(sys.version_info < (3, 11), reason="what handles an exception is in a table since 3.11")
def test_at_every_place(queue, lent, monkeypatch):
    """Whatever a signal's handler raises, from the launch until the call would wait."""
    launch, launched, ends = queue.cl.enqueue_nd_range_kernel, [], []

    def noted(*args):
        launched.append(places.count)
        launch(*args)

    def leave(*_):
        ends.append(places.count)
        raise Interrupted

    def call():
        with suppress(Interrupted):
            copied(np.ones((5, 6), "f"))

    for _ in range(4):  # the last one runs as later ones do
        copied(np.ones((5, 6), "f"))
    monkeypatch.setattr(queue.cl, "enqueue_nd_range_kernel", noted)
    monkeypatch.setattr(type(queue), "settle", leave)
    with held(queue):
        places = Places()
        places.run(call)
        lent.arrays.clear()
        wheres = []
        for n in range(launched[0] + 1, ends[0] + 1):
            places = Places(n)
            places.run(call)
            wheres.append(places.where)
        alive = lent.alive()
        assert all(wheres) and len(wheres) > 3 and len(alive) == 2 * len(wheres)
        assert not [where for where, *both in zip(wheres, alive[::2], alive[1::2], strict=True) if not all(both)]
