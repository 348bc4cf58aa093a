"""`gp.iterate`: a function of fields applied to its own results, outside of graphs, in pipelines and in graphs."""

from __future__ import annotations

import time

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.harness import counting, image, same_bits


@gp.operator
def sweep(u, b):
    """A turn of Jacobi's method for Laplace(u) = b, with u = 0 outside."""
    near = [_readTensor(u, _row + dr, _column + dc, border="zero") for dr, dc in ((-1, 0), (1, 0), (0, -1), (0, 1))]
    return (near[0] + near[1] + (near[2] + near[3]) - _readTensor(b)) / 4


def swept(u: np.ndarray, b: np.ndarray, turns: int) -> np.ndarray:
    for _ in range(turns):
        p = np.pad(u, 1)
        u = (p[:-2, 1:-1] + p[2:, 1:-1] + (p[1:-1, :-2] + p[1:-1, 2:]) - b) / np.float32(4)
    return u


def blend(u: gp.Field) -> gp.Field:
    return 0.75 * u + 0.25 * np.sqrt(u)


def test_outside_of_graphs(device):
    u, b = image(17, 23), image(17, 23)
    start, right = gp.ScalarField(u), gp.ScalarField(b)
    for turns in (0, 1, 2, 3, 10):
        same_bits(gp.iterate(lambda v: sweep(v, right), start, times=turns).numpy(), swept(u, b, turns))
    later = gp.iterate(lambda v: sweep(v, right * 2), start + 1, times=4) - right  # between other operators
    same_bits(later.numpy(), swept(u + 1, b * 2, 4) - b)
    again = gp.iterate(lambda v: sweep(v, right), gp.iterate(lambda v: sweep(v, right), start, times=2), times=3)
    same_bits(again.numpy(), swept(u, b, 5))


def test_several_fields(device):
    a, b = image(9, 14), image(9, 14)
    fields = gp.ScalarField(a), gp.ScalarField(b)
    p, q = gp.iterate(lambda x, y: (y, x + y), fields, times=5)  # a state becomes another one
    x, y = a, b
    for _ in range(5):
        x, y = y, x + y
    same_bits(p.numpy(), x)
    same_bits(q.numpy(), y)
    p, q = gp.iterate(lambda x, y: (x + y,) * 2, fields, times=3)  # two states become one
    same_bits(p.numpy(), (a + b) * 4)
    same_bits(q.numpy(), (a + b) * 4)
    p, q = gp.iterate(lambda x, y: (x, y * x), fields, times=2)  # one stays
    same_bits(p.numpy(), a)
    same_bits(q.numpy(), b * a * a)
    (only,) = gp.iterate(lambda x: (x * 2,), fields[:1], times=2)
    same_bits(only.numpy(), a * 4)
    constant = gp.ScalarField(b)
    p, q = gp.iterate(lambda x, y: (x * 0.5, np.sqrt(constant)), fields, times=2)  # one does not depend on any
    same_bits(p.numpy(), a / 4)
    np.testing.assert_allclose(q.numpy(), np.sqrt(b), rtol=1e-6)


def test_other_types(device):
    v, m = image(5, 6, 3), np.arange(12, dtype="i4").reshape(3, 2, 2)
    x, y = gp.iterate(lambda x, y: (x * 2, y + 1), (gp.VectorField(v), gp.MatrixField(m)), times=3)
    same_bits(x.numpy(), v * 8)
    same_bits(y.numpy(), m + 3)
    big = image(4, 9)
    same_bits(gp.iterate(lambda f: f[..., ::-1] * 2, gp.VectorField(big), times=3).numpy(), big[..., ::-1] * 8)
    same_bits(gp.iterate(lambda f: ~f, gp.ScalarField(v[..., 0] > 0.5), times=3).numpy(), v[..., 0] <= 0.5)
    number = gp.iterate(lambda p: p * p + 1, gp.Parameter(1.0), times=3)
    assert float(number) == 26


def test_until(device):
    count = gp.ScalarField(np.zeros(7, "i4"))
    for every, limit, want in ((1, None, 18), (5, None, 20), (5, 1000, 20), (5, 12, 12), (7, 3, 3)):
        actual = gp.iterate(lambda u: u + 1, count, until=lambda u: u.max() >= 18, every=every, times=limit).numpy()
        assert (actual == want).all(), (every, limit, actual)
    limit = gp.ScalarField(np.int32(4))
    x, y = gp.iterate(lambda x, y: (x + 1, x), (count, count), until=lambda x, y: y.max() >= np.abs(limit))
    assert (x.numpy() == 5).all() and (y.numpy() == 4).all()


@pytest.mark.parametrize(("times", "every", "turns"), [(7, 4, 4), (5, 2, 4), (9, 3, 6), (3, 2, 3), (3, 5, 3)])
def test_looks_only_where_it_is_to(times, every, turns):
    """The condition holds after four turns."""
    with gp.use_device("reference"):
        u = gp.iterate(
            lambda u: u + 1, gp.ScalarField(np.zeros(3)), times=times, until=lambda u: u.min() > 3, every=every
        )
        assert u.numpy().tolist() == [turns] * 3


def test_converges(device):
    u, b = np.zeros((15, 15), np.float32), image(15, 15)
    right = gp.ScalarField(b)

    def change(v: gp.Field) -> gp.Field:
        return abs(sweep(v, right) - v).max() < 1e-5

    actual = gp.iterate(lambda v: sweep(v, right), gp.ScalarField(u), until=change, every=10, times=5000).numpy()
    turns = 0
    while turns == 0 or np.abs(swept(u, b, 1) - u).max() >= np.float32(1e-5):
        u, turns = swept(u, b, 10), turns + 10
    assert 100 < turns < 1000
    same_bits(actual, u)


def test_parameters_take_effect(device):
    gain = gp.Parameter(2.0)
    f = gp.iterate(lambda u: u * gain, gp.ScalarField(np.ones(5, "f4")), times=3)
    assert (f.numpy() == 8).all()
    gain.set(3.0)
    assert (f.numpy() == 27).all()


@pytest.mark.parametrize("optimize", [True, False])
def test_in_graphs(device, optimize):
    heat, rate = image(11, 13), gp.Parameter(0.5)
    with gp.ComputeGraph(optimize=optimize) as graph:
        state = gp.ScalarField(heat)
        state.next = gp.iterate(lambda u: u + rate * (np.sqrt(u) - u), state, times=3)
        graph.probe(state * 2, "heat")
        graph.probe(gp.iterate(lambda u: u * 2, state, until=lambda u: u.min() > 100), "doubled")

    def expected(steps: int, factor: float) -> None:
        nonlocal heat
        for _ in range(3 * steps):
            heat = heat + np.float32(factor) * (np.sqrt(heat) - heat)
        doubled = heat
        while doubled.min() <= 100 or doubled is heat:
            doubled = doubled * 2
        same_bits(graph.read("heat"), heat * 2)
        same_bits(graph.read("doubled"), doubled)

    expected(0, 0.5)
    for steps in (1, 2, 3):
        graph.step(steps)
        expected(steps, 0.5)
    rate.set(0.25)  # the values that the states are about to take are computed again
    graph.step(2)
    expected(2, 0.25)


def test_in_pipelines(device):
    def relax(a, b):
        right = gp.ScalarField(b)
        return gp.iterate(lambda v: sweep(v, right), gp.ScalarField(a), times=6), right

    relaxed, traces = counting(relax)
    for _ in range(3):
        u, b = image(12, 9), image(12, 9)
        same_bits(relaxed(u, b)[0], swept(u, b, 6))
    assert len(traces) == 1


def test_nested(device):
    u, b = image(8, 9), image(8, 9)
    right = gp.ScalarField(b)
    both = gp.iterate(lambda v: gp.iterate(lambda w: sweep(w, right), v, times=2) * 0.5, gp.ScalarField(u), times=3)
    for _ in range(3):
        u = swept(u, b, 2) * np.float32(0.5)
    same_bits(both.numpy(), u)


# --- what it costs ----------------------------------------------------------------------------------------------------


def test_a_turn_is_planned_once():
    calls = []

    def turn(u: gp.Field) -> gp.Field:
        calls.append(u)
        return blend(u)

    with gp.use_device("reference"):
        with gp.ComputeGraph() as graph:
            graph.probe(gp.iterate(turn, gp.ScalarField(image(4, 5)), times=100), "x")
        assert len(calls) == 1
        assert graph.kernel_count == 100
        assert graph.source("opencl").count("__kernel") == 1
        began = time.perf_counter()
        gp.iterate(blend, gp.ScalarField(image(4, 5)), times=1000).numpy()
        assert time.perf_counter() - began < 10


@pytest.mark.skipif(not any(d.name == "opencl:0" for d in gp.devices()), reason="of OpenCL alone")
def test_drivers_make_kernels_once(monkeypatch):
    """Launches that are bound anew use pyopencl's kernels of those that are gone."""
    import pyopencl as cl

    u, results = image(7, 9), []
    with gp.use_device("opencl:0"):
        start = gp.ScalarField(u)
        first = gp.iterate(blend, start, times=5).numpy()
        submission = gp.submit(gp.iterate(blend, start, times=5))
        monkeypatch.setattr(cl, "Kernel", lambda *args, make=cl.Kernel: results.append(args) or make(*args))
        for _ in range(3):
            same_bits(gp.iterate(blend, start, times=5).numpy(), first)
        same_bits(submission.result(), first)
    assert not results


def test_what_does_not_change_is_computed_once():
    b = gp.ScalarField(image(6, 7))
    with gp.schedule("plain"), gp.ComputeGraph() as graph:
        expensive = np.sin(b) + 1
        graph.probe(gp.iterate(lambda u: u * expensive, b, times=10), "x")
    assert graph.kernel_count == 11
    assert "sin" in graph.source("opencl").split("__kernel")[1]
    text = graph.explain()
    assert "iterate_lambda repeats 10 iterations" in text
    assert "`iterate_lambda` repeats kernels of its own" in text


def test_explains_conditions():
    with gp.schedule("plain"), gp.ComputeGraph() as graph:
        f = gp.ScalarField(image(6, 7))
        graph.probe(gp.iterate(blend, f, until=lambda u: u.max() < 0.1, every=10, times=500), "x")
        graph.probe(gp.iterate(blend, f, until=lambda u: u.max() < 0.1), "y")
    text = graph.explain()
    assert (
        "iterate_blend repeats until its condition holds, looking after every 10 iterations, 500 iterations at most;"
        in text
    )
    assert "iterate_blend repeats until its condition holds, looking after every 1 iteration;" in text


def test_states_are_computed_together():
    """Reading one state after the other runs the turns once."""
    u, v = gp.iterate(lambda u, v: (v + 1, u * 2), (gp.zeros(5), gp.ones(5)), times=2)
    with gp.use_device("reference"):
        assert u.numpy().tolist() == [1.0] * 5
        with gp.profile() as timeline:
            assert v.numpy().tolist() == [4.0] * 5
    assert not [row for row in timeline.rows if row.kind == "kernel"]
