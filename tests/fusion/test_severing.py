"""Fission: code that runs point by point is apart from stencils before it, which then have vectors, if that is predicted to pay."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine.evaluate import plan_ahead
from gpuop.fusion.plan import Plan
from gpuop.fusion.program import program
from tests.as_gpus import used

x = np.random.default_rng(5).integers(0, 99, (200, 240)).astype(np.float32)
WHY = "as `halvings` does (the iterations of its loops differ between points), which is predicted to take "


@gp.operator
def box(f):
    return sum(_readTensor(f, _row + i, _column + j) for i in range(-2, 3) for j in range(-2, 3))


@gp.operator
def beside(f):
    return _readTensor(f, _row, _column + 1)


@gp.operator
def halvings(a, b):
    """The number of halvings of the sum of two values until it is below 1."""
    rest, count = _var(_readTensor(a) + _readTensor(b)), _intVar()
    with _while(rest >= 1):
        rest @= rest * 0.5
        count += 1
    return count


def planned(*fields: gp.Field, target: str = "opencl:cpu") -> Plan:
    return plan_ahead(program([f.node for f in fields]), target, None)


def kernels(what: Plan) -> list[set[str]]:
    return [{op.kernel.name for op in launch.ops} for launch in what.launches]


def of(stencil, grid=x) -> gp.Field:
    f = gp.ScalarField(grid)
    return halvings(stencil(stencil(f)) * 0.25, stencil(f) + 1)


def test_it_is_cut_where_least_is_moved():
    plan = planned(of(box))
    assert kernels(plan) == [{"box", "add"}, {"multiply", "halvings"}]
    assert plan.launches[0].kernel.intermediates  # the first sums, which nothing keeps from staying in the kernel
    assert {(a.producer.kernel.name, a.consumer.kernel.name) for a in plan.apart} == {
        ("box", "multiply"),
        ("add", "halvings"),
    }
    assert all(WHY in apart.reason for apart in plan.apart)


def test_more_values_than_one_are_made_of_one_behind_the_cut():
    f = box(gp.ScalarField(x))
    plan = planned(halvings(f + 1, f * 2))
    assert kernels(plan) == [{"box"}, {"add", "multiply", "halvings"}]


@pytest.mark.parametrize(
    ("fields", "target"),
    [
        pytest.param((of(beside),), "opencl:cpu", id="reads that cost less than memory"),
        pytest.param((of(box, x[:20]),), "opencl:cpu", id="a small grid"),
        pytest.param((halvings(gp.ScalarField(x) * 2, gp.ScalarField(x)),), "opencl:cpu", id="own points"),
        pytest.param((halvings(box(gp.ScalarField(x)) * 2, 1 * gp.ScalarField(x)),), "cuda", id="a GPU"),
    ],
)
def test_others_stay_together(fields, target):
    assert "halvings" in (last := kernels(planned(*fields, target=target))[-1]) and len(last) > 1


def test_results_are_those_of_numpy(device):
    padded = np.pad(x, 2, mode="edge")
    once = sum(padded[i : i + 200, j : j + 240] for i in range(5) for j in range(5))
    padded = np.pad(once, 2, mode="edge")
    twice = sum(padded[i : i + 200, j : j + 240] for i in range(5) for j in range(5))
    expected = np.maximum(np.frexp(twice * np.float32(0.25) + once + 1)[1], 0)
    np.testing.assert_array_equal(of(box).numpy(), expected)


def test_stages_have_no_loops_of_others():
    """A loop of the last stage, of which an earlier one wants nothing, would read that one's values in its own halo."""
    with used("reference:sm_90") as backend:
        assert backend.target.architecture == 90
        test_results_are_those_of_numpy(None)
