"""ComputeGraph while it runs: states that change together, steps, resets, parameters, threads, and misuse."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.fields.sources import Adjustable
from gpuop.engine import evaluate
from gpuop.engine.graphs import compute_graph
from gpuop.runtime.devices import current
from tests.harness import blur, image, same_bits

START = np.arange(6, dtype="f").reshape(2, 3)


def counter(**options):
    with gp.ComputeGraph(**options) as graph:
        count = gp.ScalarField(np.zeros((3, 5), "int32"))
        count.next = count + 1
        graph.probe(count, "count")
        graph.probe(count * 10, "tenfold")
    return graph


def test_step_reset_and_tick(device):
    graph = counter()
    assert graph.tick == 0
    assert graph.step() is True and graph.tick == 1  # the first step resets first
    assert (graph.read("count") == 1).all() and (graph.read("tenfold") == 10).all()
    graph.step(41)
    assert graph.tick == 42 and (graph.read("count") == 42).all() and (graph.read("tenfold") == 420).all()
    graph.reset()
    assert graph.tick == 0 and (graph.read("count") == 0).all() and (graph.read("tenfold") == 0).all()
    graph.step(0)
    graph.step(3)
    assert graph.tick == 3 and (graph.read("tenfold") == 30).all()
    graph.synchronize()


def test_a_read_resets_and_its_array_is_the_callers(device):
    graph = counter()
    first = graph.read("count")
    assert (first == 0).all()
    first += 5
    assert (graph.read("count") == 0).all() and first.flags.writeable


def test_states_change_together(device):
    with gp.ComputeGraph() as graph:
        a, b, c = gp.ScalarField(START), gp.ScalarField(START + 10), gp.ScalarField(START + 20)
        a.next, b.next, c.next = b, a, a + b + c
        for name, field in (("a", a), ("b", b), ("c", c)):
            graph.probe(field, name)
    x, y, z = START, START + 10, START + 20
    for _ in range(5):
        graph.step()
        x, y, z = y, x, x + y + z
        for name, want in (("a", x), ("b", y), ("c", z)):
            same_bits(graph.read(name), want, name)


def test_fibonacci_from_a_state_that_follows_another(device):
    with gp.ComputeGraph() as graph:
        older, newer = gp.ScalarField(np.int64(0)), gp.ScalarField(np.int64(1))
        older.next = newer
        newer.next = older + newer
        graph.probe(older, "n")
    values = [int(graph.read("n"))]
    for _ in range(80):
        graph.step()
        values.append(int(graph.read("n")))
    assert values[:8] == [0, 1, 1, 2, 3, 5, 8, 13] and values[80] == 23416728348467685


def test_what_next_may_be(device):
    constant = gp.ScalarField(START * 100)
    with gp.ComputeGraph() as graph:
        fixed, held, shared, also, shown, by_value = (gp.ScalarField(START + k) for k in range(6))
        fixed.next = constant
        held.next = held
        grown = shared * 2 + also
        shared.next = also.next = grown  # one value for two states
        shown.next = graph.probe(shown + 1, "shown plus one")
        by_value.next = by_value * gp.Parameter(0.5)
        for name, field in {
            "fixed": fixed,
            "held": held,
            "shared": shared,
            "also": also,
            "grown": grown,
            "shown": shown,
        }.items():
            graph.probe(field, name)
        graph.probe(by_value, "by value")
        graph.probe(constant, "constant")
    graph.reset()
    same_bits(graph.read("fixed"), START)
    p, q = START + 2, START + 3
    for tick in range(1, 4):
        graph.step()
        p = q = p * 2 + q
        for name, want in {
            "fixed": START * 100, "constant": START * 100, "held": START + 1, "shared": p, "also": q, "grown": p * 2 + q,
            "shown": START + 4 + tick, "shown plus one": START + 5 + tick, "by value": (START + 5) / 2**tick,
        }.items():  # fmt: skip
            same_bits(graph.read(name), want.astype("f"), f"{name} at {tick}")


def test_stencils_over_states_equal_numpy_and_ignore_optimisation(device):
    start = image(33, 47)
    results = []
    for optimize in (True, False):
        with gp.ComputeGraph(optimize=optimize) as graph:
            u, v = gp.ScalarField(start), gp.ScalarField(start * 0)
            v.next = v * 0.9 + (blur(u) - u) * 0.3
            u.next = u + v
            graph.probe(u, "u")
        graph.step(20)
        results.append(graph.read("u"))
    same_bits(*results)


def test_several_graphs_share_constants_but_not_states(device):
    shared = gp.ScalarField(START)
    graphs = []
    for k in range(3):
        with gp.ComputeGraph() as graph:
            total = gp.ScalarField(START * 0)
            total.next = total + shared * (k + 1)
            graph.probe(total, "total")
        graphs.append(graph)
    for turn in range(4):
        for graph in graphs[turn % 3 :]:
            graph.step()
    for k, graph in enumerate(graphs):
        same_bits(graph.read("total"), START * (k + 1) * graph.tick)
    assert [graph.tick for graph in graphs] == [2, 3, 4]


def test_threads_with_graphs_of_their_own(device):
    wrong: list[BaseException] = []

    def work(gain):
        try:
            for _ in range(3):
                with gp.ComputeGraph() as graph:
                    state = gp.ScalarField(START * 0)
                    state.next = state + gain
                    graph.probe(state, "state")
                graph.step(20)
                same_bits(graph.read("state"), np.full_like(START, 20 * gain))
                same_bits((gp.ScalarField(START) * gain).numpy(), START * np.float32(gain))
        except BaseException as failed:  # noqa: BLE001 - reported by the main thread
            wrong.append(failed)

    threads = [threading.Thread(target=work, args=(gain,)) for gain in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def parametrised():
    gain, offset = gp.Parameter(2.0), gp.Parameter(np.arange(25, dtype="f").reshape(5, 5))  # by value, and in memory
    with gp.ComputeGraph() as graph:
        state = gp.MatrixField(np.ones((3, 5, 5), "f"))
        state.next = state * gain + offset
        graph.probe(state, "state")
        graph.probe(gain, "gain")
        graph.probe(offset, "offset")
    return graph, gain, offset


def test_parameters_change_between_steps_without_compiling(device, monkeypatch):
    graph, gain, offset = parametrised()
    graph.step()
    want = np.ones((3, 5, 5), "f") * 2 + offset.numpy()
    same_bits(graph.read("state"), want)
    for owner, name in ((type(current()), "compile"), (compute_graph, "plan"), (evaluate, "plan")):
        monkeypatch.setattr(owner, name, lambda *_: pytest.fail("compiled or planned again"))
    for value in (3.0, 0.5, 0.25):
        gain.set(value)
        offset.set(np.full((5, 5), value))
        same_bits(graph.read("state"), want)  # as of `tick`
        graph.step()
        want = want * np.float32(value) + np.float32(value)  # set before the step: what the state takes depends on it
        same_bits(graph.read("state"), want)
    assert graph.read("gain") == np.float32(0.25) and (graph.read("offset") == 0.25).all()


def test_reads_of_parameters_are_as_of_tick(device):
    graph, gain, offset = parametrised()
    graph.reset()
    gain.set(7.0)
    offset.set(np.zeros((5, 5)))
    assert graph.read("gain") == 2 and graph.read("offset")[1, 1] == 6
    graph.step()
    assert graph.read("gain") == 7 and graph.read("offset")[1, 1] == 0


def test_parameters_set_from_another_thread(device):
    level = gp.Parameter(0)
    with gp.ComputeGraph() as graph:
        graph.probe(gp.ScalarField(np.zeros(50, "int32")) + level, "level")
    stop = threading.Event()

    def turn():
        n = 0
        while not stop.is_set():
            level.set(n := n + 1)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        last = -1
        for _ in range(60):
            graph.step()
            value = graph.read("level")
            assert (value == value[0]).all() and value[0] >= last  # never torn, never older
            last = value[0]
            assert (gp.ScalarField(np.zeros(9, "int32")) + level * 2).numpy()[0] >= 2 * last
    finally:
        stop.set()
        thread.join()
    assert isinstance(level._source, Adjustable)


def test_release(device):
    graph = counter()
    graph.step(2)
    kernels = graph.kernel_count
    graph.release()
    for use in (graph.step, graph.reset, lambda: graph.read("count")):
        with pytest.raises(gp.SemanticError, match=r"this ComputeGraph was released"):
            use()
    assert graph.kernel_count == kernels
    counter().release()  # before it ran


def test_graphs_are_collected():
    graph = counter()
    graph.step()
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None


def test_misuse():
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(START)
        seen = graph.probe(state + 1, "seen")
        state.next = seen
        with pytest.raises(gp.SemanticError, match=r"has a `\.next` already"):
            state.next = seen
        with pytest.raises(gp.SemanticError, match=r"only a field made from an array has a `\.next`"):
            seen.next = state
        with pytest.raises(gp.SemanticError, match=r"only a field made from an array"):
            gp.Parameter(1.0).next = state
        with pytest.raises(gp.SemanticError, match=r"takes a field of the same type, not 2×3 int32"):
            gp.ScalarField(START).next = gp.ScalarField(START.astype("i"))
        with pytest.raises(gp.SemanticError, match=r"takes a Field, such as `np.full_like\(state, 0\)`, not a float"):
            gp.ScalarField(START).next = 1.0
        with pytest.raises(gp.SemanticError, match=r"there is a probe 'seen' already"):
            graph.probe(state, "seen")
        with pytest.raises(gp.SemanticError, match=r"still being defined"):
            graph.step()
    with pytest.raises(gp.SemanticError, match=r"is not probed \(probes: 'seen'\)"):
        graph.read(state)
    with pytest.raises(gp.SemanticError, match=r"'other' is not probed"):
        graph.read("other")
    with pytest.raises(gp.SemanticError, match=r"defined already: probe inside"):
        graph.probe(state)
    with pytest.raises(gp.SemanticError, match=r"defined already"), graph:
        pass
    with pytest.raises(gp.SemanticError, match=r"`\.next` is set inside"):
        gp.ScalarField(START).next = seen
    same_bits(graph.read(seen), START + 1)
    with gp.ComputeGraph() as thief:
        thief.probe(state * 2, "stolen")
    with pytest.raises(gp.SemanticError, match=r"a state of another ComputeGraph is used here"):
        thief.step()


def test_fields_made_outside_are_constants():
    outside = gp.ScalarField(START)
    before = outside * 2
    with gp.ComputeGraph() as graph:
        with pytest.raises(gp.SemanticError, match=r"made before the `with` of the graph, and is a constant inside"):
            outside.next = outside + 1
        state = gp.ScalarField(START)
        state.next = state + outside
        graph.probe(state, "state")
        graph.probe(before, "before")
    graph.step(2)
    same_bits(graph.read("state"), START + START + START)
    same_bits(graph.read("before"), START * 2)
    same_bits(before.numpy(), START * 2)


def test_a_body_that_raises_leaves_no_graph_open():
    with pytest.raises(ZeroDivisionError), gp.ComputeGraph():
        1 / 0
    with pytest.raises(gp.SemanticError, match=r"`\.next` is set inside"):
        gp.ScalarField(START).next = gp.ScalarField(START) + 1


def test_a_parameter_set_between_steps_counts_in_the_next_step(device: str) -> None:
    rate = gp.Parameter(1.0)
    with gp.ComputeGraph() as graph:
        total = gp.ScalarField(np.zeros(3, "f"))
        total.next = total + rate
        graph.probe(total, "total")
    graph.step(2)
    rate.set(10.0)
    graph.step()
    assert graph.read("total").tolist() == [12.0] * 3
    graph.step(2)
    assert graph.read("total").tolist() == [32.0] * 3


def test_a_slider_costs_nothing(device, monkeypatch):
    """No memory is asked for, nothing is bound, and only what states depend on is computed again."""
    calls = []

    def counted(array):
        calls.append(1)
        return array

    shown, driving, matrix = gp.Parameter(1.0), gp.Parameter(1.0), gp.Parameter(np.zeros((5, 5), "f"))
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(np.zeros((2, 3), "f"))
        state.next = state + driving
        graph.probe(gp.HostOperator(counted, state * shown, outputs=state.type), "shown")
        graph.probe(state, "state")
        graph.probe(matrix, "matrix")
    graph.step(2)
    for name in ("bind", "empty", "upload", "compile"):
        monkeypatch.setattr(type(current()), name, lambda *_: pytest.fail("not a bare step"))
    del calls[:]
    for k in range(5):
        shown.set(k)
        matrix.set(np.full((5, 5), k))
        graph.step()
        assert (graph.read("shown") == (k + 3) * k).all() and (graph.read("matrix") == k).all()
    assert len(calls) == 5
    driving.set(10)
    graph.step(2)
    assert (graph.read("state") == 27).all() and len(calls) == 7
    writes = []
    write = type(current()).write
    monkeypatch.setattr(type(current()), "write", lambda *args: (writes.append(1), write(*args))[1])
    graph.step(3)
    assert len(writes) == 3  # what the host function made
