"""Expanded loops of GPUs load before they compute: where it matters, the same bits, and never past what writes."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel
from gpuop.runtime import devices
from tests.codegen.nvrtc import ptx_of
from tests.conftest import Widened

rng = np.random.default_rng(17)
CUDA = target_named("cuda")


def kernels_of(*results: gp.Field) -> list[Kernel]:
    return [step.kernel for step in plan(program([result.node for result in results])).launches]


def text_of(*results: gp.Field) -> str:
    return generate(replace(kernels_of(*results)[0], target=CUDA), CUDA).text


def field(*shape: int) -> gp.Field:
    return gp.ScalarField(rng.random(shape, np.float32))


def unrolled() -> object:
    """The interpreter of kernels as GPUs have them."""
    return mock.patch.dict(devices._open, reference=Widened())


SUMS = {
    "all": lambda f: np.sqrt(f).sum(),
    "rows": lambda f: (1 / (f + 1)).sum(axis=1),
    "columns": lambda f: np.sqrt(f).sum(axis=0),
    "places": lambda f: np.sqrt(f).argmax(axis=0),
    "two": lambda f: (np.sqrt(f) / (f * f + 1)).max(axis=0),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("shape", [(1, 1), (65, 3), (33, 700), (300, 33), (3, 1025)], ids=str)
def test_bits(name, shape):
    """The results of the reference for the recorded kernels."""
    x = rng.random(shape, np.float32)
    with gp.use_device("reference"):
        want = SUMS[name](gp.ScalarField(x)).numpy()
    with unrolled(), gp.use_device("reference"):
        actual = SUMS[name](gp.ScalarField(x)).numpy()
    assert actual.tobytes() == want.tobytes()


@pytest.mark.parametrize("name", SUMS)
def test_all_loads_of_a_turn_come_first(name):
    """In what NVIDIA's compiler makes, too, which puts loads behind divisions that may branch. Extremes begin with a value."""
    text = text_of(SUMS[name](field(4096, 512)))
    assert "_ahead[8]" in text
    events = re.findall(r"ld\.global|(?:sqrt|div|rcp)\.rn", ptx_of(text, "compute_90"))
    runs = [len(run) for run in re.findall("l+", "".join(e[0] for e in events))]
    assert runs[-1] % 8 == 0 and sum(runs) - runs[-1] in (0, 1, runs[-1]), events


def test_what_stays_one_loop():
    """Nothing that branches, and loops that no hint expands."""
    assert "_ahead" not in text_of(field(4096, 512).sum(axis=0))
    assert "_ahead" not in text_of(looping(field(64, 64), expanded=1))
    assert "_ahead" in text_of(looping(field(64, 64), expanded=4))


@gp.operator
def looping(f, *, expanded):
    total = _var(0.0)
    with _for(4, unroll=expanded) as i:
        total += _sqrt(_readTensor(f, i, _column))
    return total


@gp.operator
def stepping(f, places):
    """Each turn reads where the one before it says, and what a table says."""
    at, total = _var(0), _var(0.0)
    with _for(8, unroll=8) as i:
        here = _readTensor(places, at)
        there = _readTensor(places, _readTensor(places, i))
        total += _sqrt(_readTensor(f, _row, here)) + _readTensor(f, _row, there) / 3
        at @= here
        with _if(total > 4):
            total -= _readTensor(f, _row, i) / 7
    return total


@gp.operator(outputs=lambda f: f.type)
def updating(f):
    """Each turn reads what the one before it wrote."""
    _globalThreads(1, 1)
    with _for(8, unroll=8) as i:
        _writeTensor(_out0, _sqrt(_readTensor(f, 0, i)) / 2, 0, i + 1)


def test_turns_that_need_one_another():
    """A read that depends on a variable or a condition stays where it is; the rest is loaded ahead.

    Places that only lead to what is loaded ahead are read there alone: no array has them.
    """
    x, places = rng.random((5, 9), np.float32), rng.permutation(9).astype("i4")
    result = stepping(gp.ScalarField(x), gp.ScalarField(places))
    text = text_of(result)
    ahead, behind = text.split("sqrt", 1)
    assert re.findall(r"\w+_ahead\w*\[8\]", ahead) == ["t_ahead[8]"] and "t_ahead[i_1]" in behind
    assert re.findall(r"= places\[places\[i\]\]|= places\[min\(max\(places\[i\]", ahead) and "places[i_1]" not in behind
    with gp.use_device("reference"):
        want = stepping(gp.ScalarField(x), gp.ScalarField(places)).numpy()
    with unrolled(), gp.use_device("reference"):
        actual = stepping(gp.ScalarField(x), gp.ScalarField(places)).numpy()
    assert actual.tobytes() == want.tobytes()


def test_loops_that_write_are_left():
    assert "_ahead" not in text_of(updating(field(1, 16)))


def test_hints_of_outer_loops_go_first():
    """A loop in a loop, which together ask for too much: the inner one is expanded still."""
    text = text_of(nested(field(64, 64)))
    assert text.count("#pragma unroll") == 2 and "_ahead[32]" in text


@gp.operator
def nested(f):
    total = _var(0.0)
    with _for(32, unroll=32) as i:
        with _for(32, unroll=32) as j:
            total += _sqrt(_readTensor(f, i, j)) / 3
    return total


def test_columns_of_large_fields_are_reduced_by_many_threads():
    """Each thread reads 64 values of 16,384, though few others add up what they make."""
    with gp.ComputeGraph() as graph:
        image = gp.Sensor(gp.FieldType((16384, 16384)), lambda: None)
        graph.probe(np.sqrt(image).sum(axis=0), "columns")
    first, *_ = graph.plan.launches
    assert first.kernel.grid.threads == 16384 * 16384 // 64


def test_loads_that_are_the_same_in_all_iterations_stay():
    """Neighbours share the words of a key in memory, as of one that is an argument: each iteration's copy would have its own."""
    key = gp.random.fold_in(gp.random.key(3), gp.Parameter(np.int32(5)))
    kernel = kernels_of(gp.random.normal(key, (4096, 4096)))[-1]
    text = generate(replace(kernel, target=CUDA), CUDA).text
    assert kernel.inputs
    assert "points of 4096x4096, neighbours" in text
    assert "sqrt(" in text
    assert "loaded(" not in text
