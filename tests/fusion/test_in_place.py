"""States that take their next values in place: which do, what that saves, and that it changes nothing else."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.fusion.cross_thread import access_pattern
from gpuop.fusion.inplace import in_place
from gpuop.runtime.base.backend import Launch
from gpuop.runtime.devices import current
from gpuop.runtime.execute import Prepared
from tests.codegen.nvrtc import compile_cuda
from tests.harness import blur, image, same_bits

A, B, C = (image(9, 13) + k for k in range(3))
NBYTES = A.nbytes
CPUS = [device.name for device in gp.devices() if device.name.startswith("opencl")]


def overwritten(graph):
    """The names of the states that their next values are written over."""
    over = {value for kernel in json.loads(graph.explain("json"))["kernels"] for value in kernel["in_place"]}
    what = graph.plan.program
    return sorted(what.leaves[state].name for state, value in what.cycle.nexts if value in over)


def compare(graph, step, states, times=5):
    """The graph's probes are what the function makes of the states, named alike, at every tick."""
    graph.reset()
    for tick in range(times):
        for name, want in states.items():
            same_bits(graph.read(name), want, f"{name} at {tick}")
        graph.step()
        states = dict(zip(states, step(*states.values()), strict=True))


def test_a_state_of_own_points_has_one_buffer(device, monkeypatch):
    sizes = []
    empty = type(current()).empty
    monkeypatch.setattr(type(current()), "empty", lambda self, kind: (sizes.append(kind.nbytes), empty(self, kind))[1])
    with gp.ComputeGraph() as graph:
        a = gp.ScalarField(A)
        a.next = a * 0.5 + 1
        graph.probe(a, "a")
    facts = json.loads(graph.explain("json"))
    assert overwritten(graph) == ["a"] and (facts["buffers"], facts["buffer_bytes"]) == (0, 0)
    assert "  in place, when the next step begins: a.next\n" in graph.explain()
    del sizes[:]  # what the device was measured with, for what `explain` predicts
    graph.step()
    assert sum(sizes) == (NBYTES if current().only_enqueues else 2 * NBYTES)
    with gp.ComputeGraph() as other:
        b = gp.ScalarField(A)
        b.next = blur(b)
        other.probe(b, "b")
    del sizes[:]
    other.step()
    assert sum(sizes) == 2 * NBYTES
    assert overwritten(other) == [] and json.loads(other.explain("json"))["buffer_bytes"] == NBYTES
    compare(graph, lambda a: [a * np.float32(0.5) + 1], {"a": A})


def test_states_of_one_kernel_that_read_each_other(device):
    """All reads of a thread come before its writes."""
    with gp.ComputeGraph() as graph:
        a = gp.ScalarField(A)
        b = gp.ScalarField(B)
        c = gp.ScalarField(C)
        a.next = b + c
        b.next = a - c
        c.next = a + 2 * b
        for name, field in zip("abc", (a, b, c), strict=True):
            graph.probe(field, name)
    assert graph.kernel_count == 1 and overwritten(graph) == ["a", "b", "c"]
    compare(graph, lambda a, b, c: (b + c, a - c, a + 2 * b), {"a": A, "b": B, "c": C})


def test_two_that_change_places(device):
    with gp.ComputeGraph() as graph:
        a, b = gp.ScalarField(A), gp.ScalarField(B)
        a.next, b.next = b, a
        graph.probe(a, "a")
        graph.probe(b, "b")
    compare(graph, lambda a, b: (b, a), {"a": A, "b": B})


def test_a_circle_of_kernels(device):
    """One of them does not wait: its value would be read too late."""
    with gp.ComputeGraph() as graph:
        a = gp.ScalarField(A)
        b = gp.ScalarField(B)
        c = gp.ScalarField(C)
        a.next, b.next, c.next = blur(b), blur(c), blur(a)
        for name, field in zip("abc", (a, b, c), strict=True):
            graph.probe(field, name)
    assert graph.kernel_count == 3 and len(overwritten(graph)) == 2
    blurred = lambda f: blur(gp.ScalarField(f)).numpy()  # noqa: E731
    compare(graph, lambda a, b, c: (blurred(b), blurred(c), blurred(a)), {"a": A, "b": B, "c": C}, 3)


def test_a_delay_line(device):
    frames = [np.full(4, k, "f") for k in range(9)]
    with gp.ComputeGraph() as graph:
        frame = gp.Sensor(gp.FieldType(4), iter(frames))
        line = [gp.ScalarField(np.full(4, -k, "f"), dtype="float32") for k in range(1, 5)]
        for late, early in zip(line, [frame, *line], strict=False):
            late.next = early
        graph.probe(line[-1], "last")
    assert json.loads(graph.explain("json"))["buffer_bytes"] == 0
    want = [-4, -3, -2, -1, 0, 1, 2, 3, 4]
    for tick in range(9):
        assert tick == 0 or graph.step()
        assert graph.read("last")[0] == want[tick]
    assert not graph.step()


def test_neighbours_and_what_others_need_keep_two_buffers(device):
    with gp.ComputeGraph() as graph:
        stencil = gp.ScalarField(A)
        seen = gp.ScalarField(A)
        twice = gp.ScalarField(A)
        also = gp.ScalarField(A)
        used = gp.ScalarField(A)
        stencil.next = blur(stencil)
        seen.next = graph.probe(seen + 1, "seen")
        used.next = mirror(used)
        graph.probe(mirror(used) + 1, "used")
        twice.next = also.next = twice + also
        graph.probe(stencil, "stencil")
        graph.probe(twice, "twice")
    assert overwritten(graph) == []
    graph.step(2)
    same_bits(graph.read("seen"), A + 3)
    same_bits(graph.read("twice"), A * 4)


@gp.operator(outputs=lambda f: f.type)
def mirror(f):
    _writeTensor(_out0, _readTensor(f), _row, _columns - 1 - _column)


@gp.operator(outputs=lambda v: v.type)
def turned(v):
    x = _readTensor(v)
    _writeTensor(_out0, x.yx)


@gp.operator
def scaled(t):
    with _forEachTensorElement(_out0):
        _writeTensorElement(_out0, _readTensorElement(t) * 2)


def test_tensors(device):
    pairs, big = image(5, 6, 2), image(4, 5, 3, 3)
    with gp.ComputeGraph() as graph:
        v = gp.VectorField(pairs)
        m = gp.MatrixField(big)
        v.next, m.next = turned(v), m * 2
        graph.probe(v, "v")
        graph.probe(m, "m")
    assert overwritten(graph) == ["m", "v"]
    compare(graph, lambda v, m: (v[..., ::-1], m * 2), {"v": pairs, "m": big})


def test_a_number_that_every_thread_reads(device):
    with gp.ComputeGraph() as graph:
        gain = gp.ScalarField(np.float32(1))
        total = gp.ScalarField(A)
        gain.next = gain * 2
        total.next = total * gain
        graph.probe(gain, "gain")
        graph.probe(total, "total")
    assert overwritten(graph) == ["gain", "total"]
    compare(graph, lambda gain, total: (gain * 2, total * gain), {"gain": np.float32(1), "total": A})


def test_parameters_and_values_in_between(device):
    """A waiting field reads values of the last evaluation; those that the parameter changes are computed again."""
    gain = gp.Parameter(2.0)
    with gp.ComputeGraph() as graph:
        a = gp.ScalarField(A)
        b = gp.ScalarField(B)
        other = gp.ScalarField(C)
        a.next = a + mirror(mirror(mirror(other)) * gain)
        b.next = b - mirror(mirror(mirror(other * 3)))
        other.next = mirror(other)
        for name, field in (("a", a), ("b", b), ("other", other)):
            graph.probe(field, name)
    assert overwritten(graph) == ["a", "b"]
    states = A, B, C
    graph.reset()
    for tick, factor in enumerate((2, 2, 3, 3, 4)):
        gain.set(factor)
        x, y, z = states
        states = x + z[:, ::-1] * np.float32(factor), y - (z * 3)[:, ::-1], z[:, ::-1]
        graph.step()
        for name, want in zip(("a", "b", "other"), states, strict=True):
            same_bits(graph.read(name), want, f"{name} at {tick + 1}")


def test_saved_and_loaded_in_between(device, tmp_path):
    def build():
        with gp.ComputeGraph() as graph:
            a = gp.ScalarField(A)
            a.next = a * 0.5 + 1
            graph.probe(a * 2, "double")
        return graph

    graph, other = build(), build()
    graph.step(3)
    graph.save(tmp_path / "a.npz")
    want = A
    for _ in range(3):
        want = want * np.float32(0.5) + 1
    with np.load(tmp_path / "a.npz") as members:
        same_bits(members["state0"], want)
    other.step(7)
    other.load(tmp_path / "a.npz")
    same_bits(other.read("double"), want * 2)
    other.step()
    graph.profile(1)
    same_bits(graph.read("double"), other.read("double"))
    graph.reset()
    same_bits(graph.read("double"), A * 2)


@pytest.mark.parametrize("action", ["step", "read", "save"])
@pytest.mark.parametrize("error", [gp.DeviceError, KeyboardInterrupt])
def test_a_launch_that_fails_runs_again_and_no_other(device, monkeypatch, tmp_path, error, action):
    """Of three kernels in one step the second one fails: the first one has overwritten its state."""
    failing = []

    def bind(self, number, values):
        launch, name = original(self, number, values), self.plan.launches[number].kernel.name

        def fail():
            if failing:
                raise failing.pop()

        parts = launch.parts
        if name == "subtract":  # an interrupt comes when the driver's function is done
            parts = (fail, *parts) if error is gp.DeviceError else (*parts, fail)
        return Launch(parts, launch.adjust)

    original = Prepared.bind
    monkeypatch.setattr(Prepared, "bind", bind)
    starts = np.rint(A * 9), np.rint(B[:4] * 9), C[:, :3]  # sums are exact
    with gp.ComputeGraph() as graph:
        a, b, wide = map(gp.ScalarField, starts)
        a.next, b.next, wide.next = a + 1, b - 1, wide * 2
        for name, field in (("a", a), ("b", b), ("wide", wide)):
            field.name = name
            graph.probe(field)
    assert graph.kernel_count == 3 and overwritten(graph) == ["a", "b", "wide"]
    graph.step(2)
    failing.append(error)
    with pytest.raises(error):
        graph.step()
    done = graph.tick
    assert done == (3 if current().only_enqueues else 2)  # a state is overwritten, or none
    if action == "save":
        graph.save(tmp_path / "states.npz")
        with np.load(tmp_path / "states.npz") as members:
            same_bits(members["state0"], starts[0] + done)
    elif action == "step":
        graph.step()
        done += 1
    assert graph.tick == done
    for name, want in zip(("a", "b", "wide"), (starts[0] + done, starts[1] - done, starts[2] * 2**done), strict=True):
        same_bits(graph.read(name), want, name)


def test_such_pointers_are_not_restricted():
    """A compiler may not assume that other arguments point elsewhere."""
    with gp.ComputeGraph() as graph:
        a, photo = gp.ScalarField(A), gp.ScalarField(B)
        a.next = a * 0.5 + photo
        graph.probe(a, "a")
    text = graph.source("opencl")
    assert "__global const float *a," in text and "__global float *out0)" in text
    assert "__global const float *restrict b," in text
    cuda = graph.source("cuda")
    assert "const float *a," in cuda and "float *out0)" in cuda and "const float *__restrict__ b," in cuda
    compile_cuda(cuda, "sm_90")


def test_text_of_widened_states():
    """Threads with several points have the pointers of those with one."""
    with gp.ComputeGraph() as graph:
        a, photo = gp.ScalarField(np.zeros((1024, 512), "f4")), gp.ScalarField(np.ones((1024, 512), "f4"))
        a.next = a * 0.5 + photo
        graph.probe(a, "a")
    cuda = graph.source("cuda")
    assert "lanes" in cuda and "const float *a," in cuda and "float *out0)" in cuda
    assert "const float *__restrict__ photo," in cuda or "const float *__restrict__ b," in cuda


def test_unoptimised_graphs_keep_two_buffers(device):
    with gp.ComputeGraph(optimize=False) as graph:
        a = gp.ScalarField(A)
        a.next = a + 1
        graph.probe(a, "a")
    assert overwritten(graph) == []
    compare(graph, lambda a: [a + 1], {"a": A})


@pytest.mark.parametrize("name", ["reference", gp.devices()[0].name])
def test_a_checked_graph_stops_where_it_was(name):
    @gp.operator
    def guarded(f):
        _assert(_readTensor(f) < 3, "too much")
        return _readTensor(f) + 1

    with gp.ComputeGraph(name, checked=True) as graph:
        a, b = gp.ScalarField(np.zeros(5, "f")), gp.ScalarField(np.zeros(5, "f"))
        a.next, b.next = guarded(a), b + 1
        graph.probe(a, "a")
        graph.probe(b, "b")
    graph.step(2)
    for _ in range(2):
        with pytest.raises(gp.SemanticError, match="too much"):
            graph.step(2)
    assert graph.tick == 3


@gp.operator
def neighbours(f):
    """The number of ones among the eight points around one."""
    return sum(_readTensor(f, _row + r, _column + c, border="wrap") for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float64"])
@pytest.mark.parametrize(
    ("shape", "faded"),
    [
        ((256, 256), True),  # vectors divide rows, and threads the grid
        ((129, 272), True),  # a thread has one row or three
        ((130, 250), False),  # vectors overlap: what is read by two threads must not be overwritten
    ],
)
def test_a_state_of_own_points_beside_a_stencil_has_its_vectors(shape, faded, dtype, device):
    """Whoever is fused with a stencil runs as it does: in vectors on CPUs, and in place only if these do not overlap."""
    start = np.random.default_rng(3).integers(0, 2, shape).astype(dtype)
    with gp.ComputeGraph() as graph:
        cells = gp.ScalarField(start)
        trace = gp.ScalarField(np.float32(start))
        cells.next = (neighbours(cells) == 3).astype(dtype)
        trace.next = np.maximum(np.float32(0.97) * trace, cells).astype("float32")
        graph.probe(cells, "cells")
        graph.probe(trace, "trace")
    facts = json.loads(graph.explain("json"))
    target = current().target
    if target.vector_length > 1 and (dtype != "float64" or target.widening == "vector"):
        assert [kernel["schedule"]["method"] for kernel in facts["kernels"]] == ["vector rows"]
        assert overwritten(graph) == ["trace"] * faded
    around = lambda f: sum(  # noqa: E731
        np.roll(f, (r, c), (0, 1)) for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c
    )
    compare(
        graph,
        lambda c, t: ((around(c) == 3).astype(dtype), np.maximum(np.float32(0.97) * t, c).astype(np.float32)),
        {"cells": start, "trace": np.float32(start)},
    )


@gp.operator
def spread(f):
    return (_readTensor(f, _row - 1, _column) + _readTensor(f, _row + 1, _column) + _readTensor(f)) / 3


@pytest.mark.skipif(not CPUS, reason="no OpenCL driver that works")
def test_states_that_stages_compute_neighbours_from_keep_two_buffers():
    """A stage reads a state at a thread's own points, but computes those of neighbours too; whether a schedule suits or not."""
    with gp.ComputeGraph(CPUS[0]) as graph:
        a = gp.ScalarField(np.ones((300, 400), "f"))
        a.next = spread(spread(np.sqrt(a + 1)))
        graph.probe(a, "a")
    graph.step()
    (launch,) = graph.plan.launches
    assert launch.kernel.intermediates and launch.kernel.inputs[0] not in access_pattern(launch.kernel).gathers
    assert [each.over for each in in_place([launch], graph.plan.program, None)] == [()]
