"""Kernels that would keep more values than a thread has registers are split; what a device has decides about the rest too."""

from __future__ import annotations

import functools
import operator
import re

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.fusion.kernel_limits import LEAST, Limits
from gpuop.fusion.kernel_statistics import registers
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.program import program
from gpuop.fusion.report.explain import explain
from gpuop.runtime.devices import current
from tests.harness import graph_of, image, same_bits

SHAPE = (13, 37)
x, y = image(*SHAPE), image(*SHAPE)
a, b = gp.ScalarField(x), gp.ScalarField(y)


def fan(f: gp.Field, n: int) -> tuple[gp.Field, gp.Field]:
    """Two sums of n values, from the first to the last and back: all of the values are needed at once."""
    values = [np.sqrt(f * float(k + 1)) for k in range(n)]
    return functools.reduce(operator.add, values), functools.reduce(operator.sub, reversed(values))


def planned(fields: tuple[gp.Field, ...], limits: Limits = LEAST) -> Plan:
    return plan(program([f.node for f in fields]), True, limits)


def kept(what: Plan) -> list[int]:
    return [registers(step.kernel) for step in what.launches]


def test_the_fewest_kernels_without_a_limit():
    assert len(planned(fan(a, 60)).launches) == 1 and kept(planned(fan(a, 60)))[0] > 60


@pytest.mark.parametrize(("most", "kernels"), [(200, 1), (64, 1), (40, 3), (20, 5)])
def test_no_piece_keeps_too_much(most, kernels):
    plan = planned(fan(a, 60), Limits(registers=most))
    assert len(plan.launches) == kernels, kept(plan)
    assert max(kept(plan)) <= most
    assert all(len(step.inputs) + len(step.outputs) <= 96 for step in plan.launches)
    assert sorted(op.number for step in plan.launches for op in step.ops) == list(range(len(plan.program.ops)))


@pytest.mark.parametrize("most", [16, 40])
def test_the_pieces_compute_what_the_whole_does(device, monkeypatch, most):
    monkeypatch.setattr(current(), "limits", Limits(registers=most))
    graph = graph_of(lambda: dict(zip("pq", fan(a * b, 50 + most % 7), strict=True)))
    graph.reset()
    assert graph.kernel_count > 1 and f"registers, more than {most}" in graph.explain()
    values = [np.sqrt(x * y * np.float32(k + 1)) for k in range(50 + most % 7)]
    same_bits(graph.read("p"), functools.reduce(operator.add, values))
    same_bits(graph.read("q"), functools.reduce(operator.sub, reversed(values)))


def test_it_is_split_where_the_least_crosses():
    """Two fans of one input, all of whose values are needed at once: each has a kernel, and only the input is read twice."""
    (p, q), (r, s) = fan(a, 40), fan(a + 1, 40)
    assert kept(planned((p, r, q, s)))[0] > 80
    plan = planned((p, r, q, s), Limits(registers=60))
    assert len(plan.launches) == 2 and max(kept(plan)) <= 60
    assert [len(step.inputs) for step in plan.launches] == [1, 1]
    assert [len(step.outputs) for step in plan.launches] == [2, 2]
    need = kept(planned((p, r, q, s)))[0]
    assert f"both read it, but together they would keep about {need} registers, more than 60; costs" in explain(plan)


def test_explain_says_the_numbers_and_the_cost():
    need = kept(planned(fan(a, 60)))[0]
    text = explain(planned(fan(a, 60), Limits(registers=40)))
    assert f"together they would keep about {need} registers, more than 40; costs" in text
    assert re.search(r"  sqrt → \w+ \(\d+ times\): together they would keep", text)  # one line for pairs that are alike


def test_equal_programs_are_split_equally():
    texts = {explain(planned(fan(gp.ScalarField(x), 60), Limits(registers=30))) for _ in range(3)}
    assert len(texts) == 1


def test_one_operator_that_keeps_too_much_stays():
    @gp.operator
    def hungry(f):
        values = [_var(_readTensor(f) * k) for k in range(50)]
        with _if(_readTensor(f) > 0.5):
            values[0] @= values[-1]
        return functools.reduce(operator.add, values) * functools.reduce(operator.sub, values)

    plan = planned((hungry(a),), Limits(registers=30))
    assert len(plan.launches) == 1 and kept(plan)[0] > 30


def test_pieces_have_few_enough_arguments():
    """A kernel stays as it is if every cut would give a side too many arguments."""
    plan = planned(fan(a, 60), Limits(arguments=4, registers=20))
    assert all(len(step.inputs) + len(step.outputs) <= 4 for step in plan.launches)


def test_the_smallest_limits_have_a_plan():
    plan = planned((*fan(a, 9), (a * b).sum()), Limits(arguments=1, local_bytes=1, registers=1))
    assert {v for step in plan.launches for v in step.outputs} >= set(plan.program.results)


def test_kernels_are_launched_after_those_that_they_need():
    plan = planned((*fan(a, 60), fan(b, 30)[0].sum()), Limits(registers=20))
    ready = set(plan.program.leaves)
    for step in plan.launches:
        assert ready.issuperset(step.inputs)
        ready.update(step.outputs)


@gp.operator
def tiled(f):
    _localThreads(8, 16, whole_groups=True)
    tile = _local(_floatArray(_localRows, _localColumns))
    tile[_localRow, _localColumn] = _readTensor(f)
    _syncThreadsLocal()
    return tile[_localRow, 15 - _localColumn]


def test_local_memory_of_the_device_decides():
    fields = (tiled(a), tiled(a * b))
    assert len(planned(fields, Limits(local_bytes=1024)).launches) == 1
    plan = planned(fields, Limits(local_bytes=1023))
    assert len(plan.launches) == 2
    assert "together they would use 1024 bytes of local memory, more than 1023" in explain(plan)


def test_devices_say_what_they_have(device):
    limits = current().limits
    assert limits.arguments >= 96 and limits.local_bytes >= 32768
    assert (limits.registers is None) == (current().target.device == "cpu")


def test_iterations_are_planned_for_the_device(device, monkeypatch):
    monkeypatch.setattr(current(), "limits", Limits(registers=17))

    def turn(u: gp.Field) -> gp.Field:
        first, second = fan(u, 24)
        return np.sqrt(abs(first * second)) * 0.01

    graph = graph_of(lambda: {"u": gp.iterate(turn, a, times=2)})
    graph.reset()
    assert graph.kernel_count > 2
    want = x
    for _ in range(2):
        values = [np.sqrt(want * np.float32(k + 1)) for k in range(24)]
        product = functools.reduce(operator.add, values) * functools.reduce(operator.sub, reversed(values))
        want = np.sqrt(abs(product)) * np.float32(0.01)
    same_bits(graph.read("u"), want)
