"""Loops that rebind one name, as people write them, with evaluation between the turns in every way there is."""

from __future__ import annotations

import gc
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine import evaluate
from tests.harness import half_and_double, same_bits

X = np.arange(1, 7, dtype=np.float32)


@gp.operator
def left(f):
    return _readTensor(f, _column - 1, border="wrap")


def other_device() -> str:
    """Another device than the one in use, if there is one."""
    return next((d.name for d in gp.devices() if d.name != evaluate.current().name), "reference")


def elsewhere(u: gp.Field) -> None:
    with gp.use_device(other_device()):
        u.numpy()


def probed(u: gp.Field) -> None:
    with gp.ComputeGraph() as graph:
        graph.probe(u + 0, "u")
    graph.read("u")
    graph.release()


# What may happen to a value between one turn and the next.
BETWEEN: dict[str, Callable[[gp.Field], object]] = {
    "nothing": lambda u: None,
    "numpy": lambda u: u.numpy(),
    "numpy, every other turn": lambda u: u.numpy() if int(u.numpy().flat[0]) % 2 else None,
    "asarray": np.asarray,
    "evaluate, its result dropped": lambda u: gp.evaluate(u),
    "evaluate, with others": lambda u: gp.evaluate(u, u + 1, gp.ScalarField(X)),
    "a reduction of it": lambda u: float(u.sum()),
    "a value made of it": lambda u: (u * 2 + left(u)).numpy(),
    "on another device": elsewhere,
    "in a graph": probed,
    "shown": lambda u: u._repr_html_(),
    "collected": lambda u: (u.numpy(), gc.collect()),
}


@pytest.mark.parametrize("between", BETWEEN)
def test_one_name_in_a_loop(device, between):
    u, want = gp.ScalarField(X), X
    for _ in range(4):
        u = u * 2
        BETWEEN[between](u)
    same_bits(u.numpy(), X * 16)
    u = gp.ScalarField(X)
    for _ in range(4):
        u = left(u) * 2
        want = np.roll(want, 1) * 2
        BETWEEN[between](u)
    same_bits(u.numpy(), want)
    same_bits((u - u.min()).numpy(), want - want.min())
    assert float(u.sum()) == want.sum() and u.name == "u"
    probed(u)


@pytest.mark.parametrize("between", ["numpy", "a reduction of it", "on another device"])
def test_two_names_that_change_places(device, between):
    """Both are given values when the other one is used: of one line, of one name, of two outputs."""
    a, b = gp.ScalarField(X), gp.ScalarField(X * 3)
    p, q = X, X * np.float32(3)
    for turn in range(4):
        a, b = half_and_double(b) if turn % 2 else (b + 1, a * 2)
        p, q = (q / 2, q * 2) if turn % 2 else (q + 1, p * 2)
        BETWEEN[between]((a, b)[turn % 2])
    same_bits(a.numpy(), np.float32(p))
    same_bits(b.numpy(), np.float32(q))


def test_only_the_end_evaluated_and_then_used(device):
    u = gp.ScalarField(X)
    for _ in range(4):
        u = u * 2
    same_bits(u.numpy(), X * 16)
    assert float(u.sum()) == X.sum() * 16
    turns = [gp.ScalarField(X)]
    for _ in range(6):
        u = turns[-1] * 2
        turns.append(u)
    turns[3].numpy()
    turns[5].numpy()
    expected = [X * 2**k + 1 for k in range(7)]
    for step in (1, -1):  # given values behind, before and beside those that are computed
        for result, want in zip(gp.evaluate(*(u + 1 for u in turns[::step])), expected[::step], strict=True):
            same_bits(result.numpy(), want.astype("f"))


def test_parameters_set_between(device):
    gain, offset = gp.Parameter(2.0), gp.Parameter(0.0)
    u, turns = gp.ScalarField(X), []
    for turn in range(5):
        u = u * gain + offset
        turns.append(u)
        offset.set(float(turn))
        u.numpy()
    for g, evaluated in ((2.0, turns), (3.0, turns[::2]), (2.0, turns[:1])):
        gain.set(g)
        offset.set(1.0)
        for u in evaluated:
            u.numpy()
        offset.set(0.0)
        same_bits(turns[-1].numpy(), X * np.float32(g) ** 5)
        assert float(turns[2].max()) == X.max() * g**3


def test_devices_in_turns(device):
    """A value kept on one device is computed anew on the other, as far back as nothing is kept there."""
    u, want = gp.ScalarField(X), X
    for turn in range(6):
        u = left(u) + 1
        want = np.roll(want, 1) + 1
        with gp.use_device(other_device()) if turn % 2 else nullcontext():
            same_bits(u.numpy(), want)
    assert float((u * 2).sum()) == 2 * want.sum()


def test_a_kept_value_lives_as_long_as_it_is_needed(device):
    u = left(gp.ScalarField(X))
    u.numpy()
    first = weakref.ref(u.node.call)
    for _ in range(3):
        u = u * 2
    gc.collect()
    assert first() is not None
    same_bits(u.numpy(), np.roll(X, 1) * 8)
    u = gp.evaluate(u)
    gc.collect()
    assert first() is None


def test_long_loops_take_equal_time_for_each_turn():
    """Nothing looks back beyond what is kept; and what is left behind is dropped without recursion."""
    with gp.use_device("reference"):
        gain = gp.Parameter(1.0)
        u, times = gp.ScalarField(X), []
        for _ in range(2):
            start = time.process_time()
            for _ in range(2 * sys.getrecursionlimit()):
                u = u * gain
                u.numpy()
            times.append(time.process_time() - start)
        assert times[1] < 2 * times[0]
        gain.set(1.0)
        same_bits(u.numpy(), X)
