"""Interrupts leave no lock held."""

from __future__ import annotations

import random
import signal
import sys
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pytest

import gpuop as gp
from gpuop.engine.graphs.threads import FairLock

from .bytecodes import Places
from .cases import Interrupted
from .trials import _interrupt, _interrupted


def free(lock):
    """Return whether another thread gets it."""
    actual = []
    thread = threading.Thread(target=lambda: actual.append(lock.acquire(timeout=5)) or lock.release())
    thread.start()
    thread.join()
    return actual[0]


@contextmanager
def held(lock, until=lambda: False):
    """Another thread has the lock, until this ends or the lock is wanted."""
    has, ends = threading.Event(), threading.Event()

    def hold():
        with lock:
            has.set()
            while not ends.wait(0.0005) and not until():
                pass

    thread = threading.Thread(target=hold)
    thread.start()
    has.wait()
    yield
    ends.set()
    thread.join()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="what handles an exception is in a table since 3.11")
@pytest.mark.parametrize("contended", [False, True])
def test_at_every_place(contended):
    def action():
        with lock, lock:
            entered.append(True)

    lock, entered, interrupts = FairLock(), [], 0
    for n in range(1, 14):
        places = Places(n)
        with held(lock if contended else threading.Lock(), lock.wanted):
            interrupts += places.run(action)
        assert free(lock) and not lock.wanted(), places.where
    assert interrupts and entered


def test_while_waiting():
    lock = FairLock()
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        with held(lock):
            assert _interrupted(lock.__enter__, 0.02)
        assert free(lock) and not lock.wanted()
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("on", [device.name for device in gp.devices()])
def test_a_graph_that_runs(on):
    """The main thread looks at it, and stops it, and is interrupted."""
    with gp.ComputeGraph(on) as graph:
        s, t = gp.ScalarField(np.zeros(40, "f")), gp.ScalarField(np.ones((3, 4), "f"))
        s.next, t.next = s + 1, t + 1
        graph.probe(s, "s")
        graph.probe(s.sum() - t.sum() * 40 / 12, "difference")
    rng, count = random.Random(1), 0
    actions = [lambda: graph.read("s"), graph.step, graph._live().states, graph.stop, graph.synchronize]
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        for k in range(4000):
            if k >= 40 and count > 3:
                break
            with suppress(gp.SemanticError):  # it does still
                graph.run()
            count += _interrupted(actions[k % 5], rng.expovariate(1 / 0.0005))
            assert graph.read("difference") == -40
    finally:
        signal.signal(signal.SIGALRM, before)
        graph.stop()
    assert count > 3 and graph.read("s")[0] == graph.tick


def test_waiting_for_the_end_of_a_run():
    """A wait that is interrupted does not take the thread for dead."""
    frames = 0

    def source():
        nonlocal frames
        frames += 1
        ends.wait(0.005)
        return np.zeros(4)

    ends = threading.Event()
    with gp.ComputeGraph("reference") as graph:
        graph.probe(gp.Sensor(gp.FieldType(4), source), "s")
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        graph.run()
        for _ in range(3):
            assert _interrupted(graph.wait, 0.02)
            with pytest.raises(gp.SemanticError, match="this ComputeGraph is running"):
                graph.run()
    finally:
        signal.signal(signal.SIGALRM, before)
        ends.set()
        graph.stop()
    before_step = frames
    graph.step()
    assert frames == before_step + 1


def test_what_is_raised_comes_out():
    with pytest.raises(Interrupted), FairLock():
        raise Interrupted
