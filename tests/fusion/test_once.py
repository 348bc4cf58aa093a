"""Values that are the same in all steps: computed once, or when a parameter is set, apart from the values that change."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime.base.backend import Launch
from gpuop.runtime.execute import Prepared
from tests.conftest import GPU, is_driver
from tests.harness import image, same_bits

PHOTO = image(24, 40)
ZEROS = np.zeros((24, 40), "f")


@gp.operator
def dear(f):
    """400 operations, which NumPy does too."""
    x = _var(_readTensor(f))
    with _for(200):
        x @= x * 0.75 + 0.125
    return x


def dear_numpy(x):
    for _ in range(200):
        x = x * np.float32(0.75) + np.float32(0.125)
    return x


@gp.operator(outputs=lambda f: f.type)
def mirror(f):
    _writeTensor(_out0, _readTensor(f), _row, _columns - 1 - _column)


@gp.operator
def beside(f, g):
    return _readTensor(f) + _readTensor(g, _row, _column + 1)


@pytest.fixture
def ran(monkeypatch):
    """The number of launches of each kernel, by name."""
    counts: Counter[str] = Counter()
    bind = Prepared.bind

    def counting(self, number, values):
        launch, name = bind(self, number, values), self.plan.launches[number].kernel.name
        return Launch((partial(counts.update, [name]), *launch.parts), launch.adjust)

    monkeypatch.setattr(Prepared, "bind", counting)
    return counts


def runs(graph):
    return {kernel["name"]: kernel["runs"] for kernel in json.loads(graph.explain("json"))["kernels"]}


def test_constants_are_computed_once(device, ran):
    with gp.ComputeGraph() as graph:
        photo, total = gp.ScalarField(PHOTO), gp.ScalarField(ZEROS)
        total.next = total + dear(photo)
        graph.probe(total, "total")
    assert graph.kernel_count == 2 and runs(graph) == {"dear": "once", "add": "at every step"}
    graph.step(4)
    graph.reset()
    graph.step(2)
    same_bits(graph.read("total"), dear_numpy(PHOTO) + dear_numpy(PHOTO))
    assert ran == {"dear": 1, "add": 6}


def test_a_graph_of_constants_only(device, ran):
    with gp.ComputeGraph() as graph:
        graph.probe(dear(gp.ScalarField(PHOTO)) * 2, "out")
    assert graph.kernel_count == 1
    graph.step(5)
    same_bits(graph.read("out"), dear_numpy(PHOTO) * 2)
    assert list(ran.values()) == [1] and graph.tick == 5
    assert "computed once: nothing that it depends on changes" in graph.explain()


def test_parameters_are_waited_for(device, ran):
    gain, level = gp.Parameter(2.0), gp.Parameter(1.0)
    with gp.ComputeGraph() as graph:
        photo, total = gp.ScalarField(PHOTO), gp.ScalarField(ZEROS)
        graph.probe(mirror(photo * gain), "scaled")
        graph.probe(dear(mirror(photo) + level), "raised")
        total.next = total + dear(photo * gain)
        graph.probe(total, "total")
    graph.step(3)
    first = Counter(ran)
    want = 3 * [dear_numpy(PHOTO * 2)]
    level.set(5.0)
    graph.step()
    again = ran - first
    assert sum("mirror" in name for name in again) == 0 and {n for n, count in again.items()} == {"add_dear", "add"}
    same_bits(graph.read("raised"), dear_numpy(PHOTO[:, ::-1] + 5))
    want.append(dear_numpy(PHOTO * 2))
    gain.set(3.0)
    same_bits(graph.read("scaled"), PHOTO[:, ::-1] * 2)  # as of the tick
    graph.step(2)
    same_bits(graph.read("scaled"), PHOTO[:, ::-1] * 3)
    same_bits(graph.read("total"), sum([*want, *2 * [dear_numpy(PHOTO * 3)]], ZEROS))
    settled = Counter(ran)
    graph.step(3)
    assert set(ran - settled) == {"add"}


def test_what_is_kept_is_not_overwritten(device):
    """Values of one layout in a long chain, where buffers are used again and again."""
    gain = gp.Parameter(1.0)
    with gp.ComputeGraph() as graph:
        photo, state = gp.ScalarField(PHOTO), gp.ScalarField(ZEROS)
        fixed = mirror(mirror(mirror(photo) + 1) + 2)
        turned = mirror(mirror(fixed * gain) + 3)
        moving = mirror(mirror(mirror(mirror(state) + turned) + fixed))
        state.next = mirror(moving) + 1
        graph.probe(moving, "moving")
    fixed = ((PHOTO[:, ::-1] + 1)[:, ::-1] + 2)[:, ::-1]
    want, factor = ZEROS, np.float32(1)
    graph.reset()
    for tick in range(7):
        same_bits(graph.read("moving"), moving_of(want, factor, fixed), str(tick))
        if tick in (2, 4):
            gain.set(factor := np.float32(tick))
        want = moving_of(want, factor, fixed)[:, ::-1] + 1  # the parameter was set before the step
        graph.step()


def moving_of(state, gain, fixed):
    turned = ((fixed * gain)[:, ::-1] + 3)[:, ::-1]
    return ((state[:, ::-1] + turned)[:, ::-1] + fixed)[:, ::-1][:, ::-1]


def test_next_values_that_do_not_change(device):
    gain = gp.Parameter(2.0)
    with gp.ComputeGraph() as graph:
        photo, fixed, held = gp.ScalarField(PHOTO), gp.ScalarField(ZEROS), gp.ScalarField(ZEROS)
        fixed.next, held.next = dear(photo), photo * gain
        graph.probe(fixed, "fixed")
        graph.probe(held, "held")
    graph.reset()
    same_bits(graph.read("fixed"), ZEROS)
    for _ in range(3):
        graph.step()
        same_bits(graph.read("fixed"), dear_numpy(PHOTO))
        same_bits(graph.read("held"), PHOTO * 2)
    gain.set(7.0)
    same_bits(graph.read("held"), PHOTO * 2)
    graph.step()
    same_bits(graph.read("held"), PHOTO * 7)
    graph.reset()
    same_bits(graph.read("fixed"), ZEROS)


def test_cheap_values_are_fused_all_the_same():
    with gp.ComputeGraph() as graph:
        photo, total = gp.ScalarField(PHOTO), gp.ScalarField(ZEROS)
        total.next = total * 0.5 + (photo * 2 + 1)
        graph.probe(total, "total")
    assert graph.kernel_count == 1 and set(runs(graph).values()) == {"at every step"}
    graph.step(2)
    same_bits(graph.read("total"), (PHOTO * 2 + 1) * np.float32(0.5) + (PHOTO * 2 + 1))


def test_dear_values_stay_apart_and_explain_says_by_how_much(device):
    with gp.ComputeGraph() as graph:
        photo, total = gp.ScalarField(PHOTO), gp.ScalarField(ZEROS)
        total.next = beside(total, dear(photo))
        graph.probe(total, "total")
    # kept for neighbours it would be read no more; recomputed it would not be written
    passes = 1 if is_driver(device) or device == GPU else 2
    assert runs(graph)["dear"] == "once" and f"saves {3.75 * passes} KiB " in graph.explain()
    graph.step(2)
    same_bits(graph.read("total"), 2 * np.pad(dear_numpy(PHOTO), ((0, 0), (0, 1)), "edge")[:, 1:])
    with gp.ComputeGraph() as local:
        photo, total = gp.ScalarField(PHOTO), gp.ScalarField(ZEROS)
        total.next = total + dear(photo)
        local.probe(total, "total")
    (apart,) = json.loads(local.explain("json"))["apart"]
    assert apart["reason"].startswith("computing at every step what is always the same takes ")
    assert apart["reason"].endswith("and saves 3.75 KiB (worth 3.84e+04 operations)")


def test_kernels_that_share_only_what_they_read():
    """A constant value is not in one kernel with a changing one, though both read the photo."""
    with gp.ComputeGraph() as graph:
        photo, total = gp.ScalarField(PHOTO), gp.ScalarField(ZEROS)
        total.next = total + photo
        graph.probe(photo * 3, "fixed")
        graph.probe(total, "total")
    assert runs(graph) == {"multiply": "once", "add": "at every step"}
    assert "one of them would be computed at every step, though its values are always the same" in graph.explain()
    assert graph.explain().count("a step moves 11.2 KiB of that") == 1


def test_what_acts_runs_at_every_step(device, ran):
    calls = []

    def noted(array):
        calls.append(1)
        return array

    @gp.operator
    def shows(f):
        with _if((_row == 0) & (_column == 0)):
            _print("here")
        return _readTensor(f)

    with gp.ComputeGraph() as graph:
        graph.probe(gp.HostOperator(noted, gp.ScalarField(PHOTO), outputs=gp.FieldType((24, 40))), "host")
        graph.probe(shows(gp.ScalarField(PHOTO)), "shown")
    graph.step(3)
    graph.synchronize()
    assert len(calls) == 4 and ran["shows"] == 4


def test_an_evaluation_that_fails_is_made_up_for(device):
    broken = []

    def fragile(array):
        if broken:
            raise OSError("no disk")
        return array

    gain = gp.Parameter(1.0)
    with gp.ComputeGraph() as graph:
        photo, total = gp.ScalarField(PHOTO), gp.ScalarField(ZEROS)
        total.next = gp.HostOperator(fragile, total + dear(photo) * gain, outputs=total.type)
        graph.probe(total, "total")
    graph.step()
    broken.append(1)
    gain.set(2.0)
    with pytest.raises(OSError, match="no disk"):
        graph.step()
    broken.clear()
    graph.step()
    same_bits(graph.read("total"), dear_numpy(PHOTO) + dear_numpy(PHOTO) * 2)


def test_unoptimised_graphs_run_what_was_written(device, ran):
    with gp.ComputeGraph(optimize=False) as graph:
        graph.probe(dear(gp.ScalarField(PHOTO)), "out")
    graph.step(3)
    assert ran == {"dear": 4} and runs(graph) == {"dear": "at every step"}


def test_profiles_measure_all_kernels(device):
    with gp.ComputeGraph() as graph:
        photo, total = gp.ScalarField(PHOTO), gp.ScalarField(ZEROS)
        total.next = total + dear(photo)
        graph.probe(total, "total")
    once, usual = graph.profile(3).rows
    assert (once.runs, usual.runs) == ("once", "at every step") and once.median_ms > 0 and usual.median_ms > 0
    assert (once.share, usual.share) == (0, 1) and "1 dear (once)" in str(graph.profile(1))
    want = ZEROS
    for _ in range(5):
        want = want + dear_numpy(PHOTO)
    graph.step()
    same_bits(graph.read("total"), want)
    with gp.ComputeGraph() as constant:
        constant.probe(dear(gp.ScalarField(PHOTO)))
    assert [row.share for row in constant.profile(2).rows] == [1]
