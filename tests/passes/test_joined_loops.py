"""Loops that turn alike and read one field become one, unless one of them needs what the other one, or what is between, does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.harness import image, same_bits

N = 5


def alone(f):
    low, high = _var(1.0), _var(0.0)
    with _for(N) as i:
        low @= _min(low, _readTensor(f, _column + i))
    first = _column + 1
    with _for(N) as j:
        high @= _max(high, _readTensor(f, first - 1 + j))
    return low + 2 * high


def only_assigned(f):
    """Declared between the loops, and not read in either of them."""
    a = _var(0.0)
    with _for(N) as i:
        a += _readTensor(f, _column + i)
    last = _var(2.0)
    with _for(N) as j:
        last @= _readTensor(f, _column + j)
    return a + 3 * last


def of_the_other(f):
    a, b = _var(0.0), _var(0.0)
    with _for(N) as i:
        a += _readTensor(f, _column + i)
    with _for(N) as j:
        b += _readTensor(f, _column + j) * a
    return b


def of_what_the_other_gave(f):
    a, b = _var(0.0), _var(0.0)
    with _for(N) as i:
        a += _readTensor(f, _column + i)
    scale = a * 2
    with _for(N) as j:
        b += _readTensor(f, _column + j) * scale
    return b


def of_what_was_assigned_between(f):
    a, b, scale = _var(0.0), _var(0.0), _var(1.0)
    with _for(N) as i:
        a += _readTensor(f, _column + i) * scale
    scale @= 3.0
    with _for(N) as j:
        b += _readTensor(f, _column + j) * scale
    return a + b


def before_it_is_assigned(f):
    a, scale = _var(0.0), _var(1.0)
    with _for(N) as i:
        a += _readTensor(f, _column + i) * scale
    with _for(N) as j:
        scale += _readTensor(f, _column + j)
    return a + scale


def after_it_was_assigned_between(f):
    a, last = _var(0.0), _var(0.0)
    with _for(N) as i:
        a += _readTensor(f, _column + i)
    last @= 7
    with _for(N) as j:
        last @= _readTensor(f, _column + j)
    return a + last


def of_which_either_may_assign(f):
    a = _var(0.0)
    with _for(N) as i:
        with _if(_readTensor(f, _column + i) > 0.5):
            a @= i
    with _for(N) as j:
        with _if(_readTensor(f, _column + j) < 0.25):
            a @= 10 + j
    return a


def read_between(f):
    a, b = _var(0.0), _var(0.0)
    with _for(N) as i:
        a += _readTensor(f, _column + i)
    kept = _var(b)
    with _for(N) as j:
        b += _readTensor(f, _column + j)
    return a + b + 10 * kept


def through_memory(f):
    kept, b = _floatArray(N), _var(0.0)
    with _for(N) as i:
        kept[i] = _readTensor(f, _column + i)
    with _for(N) as j:
        b += _readTensor(f, _column + j) * kept[N - 1 - j]
    return b


def that_ends_early(f):
    a, b = _var(0.0), _var(0.0)
    with _for(N) as i:
        a += _readTensor(f, _column + i)
        with _if(a > 1):
            _break()
    with _for(N) as j:
        b += _readTensor(f, _column + j)
    return a + b


def of_other_turns(f):
    a, b = _var(0.0), _var(0.0)
    with _for(N) as i:
        a += _readTensor(f, _column + i)
    with _for(1, N) as j:
        b += _readTensor(f, _column + j)
    return a + b


APART = (
    of_the_other, of_what_the_other_gave, of_what_was_assigned_between, before_it_is_assigned, after_it_was_assigned_between,
    of_which_either_may_assign, read_between, through_memory, that_ends_early, of_other_turns,
)  # fmt: skip


def text(body: Callable[..., Any]) -> str:
    return gp.operator(body).source(gp.FieldType(40), target="opencl")


@pytest.mark.parametrize("body", [alone, only_assigned, *APART], ids=lambda body: body.__name__)
def test_values(device, body):
    """The reference runs what was recorded, in which nothing is joined."""
    f = gp.ScalarField(image(40))
    actual = gp.operator(body)(f).numpy()
    with gp.use_device("reference"):
        same_bits(actual, gp.operator(body)(gp.ScalarField(f.numpy())).numpy())


def test_one_loop_reads_once():
    for body in (alone, only_assigned):
        assert text(body).count("for (") == 1 and text(body).count(" f[") == 1


@pytest.mark.parametrize("body", APART, ids=lambda body: body.__name__)
def test_two_loops(body):
    assert text(body).count("for (") == 2


def test_reductions_of_columns_read_each_value_once():
    a, b = gp.ScalarField(image(1200, 50)), gp.ScalarField(image(1200, 50))
    with gp.ComputeGraph() as graph:
        f = a * b
        for name in ("min", "max", "mean"):
            graph.probe(getattr(f, name)(axis=0), name)
    first = graph.source("opencl").split("__kernel")[1]
    assert graph.kernel_count == 2
    assert first.count("for (") == 2 * 2  # whole turns, and those that may be beyond the end
    assert first.count(" a[") == first.count(" b[") == 1 + 2
    np.testing.assert_array_equal(f.min(axis=0).numpy(), (a.numpy() * b.numpy()).min(axis=0))


def test_hints_are_not_given_where_they_ask_for_too_much():
    def sums(f, turns):
        total = _var(0.0)
        with _for(turns, unroll=turns) as i:
            total += _readTensor(f, _column + 2 * i)
        with _for(turns, unroll=turns) as i:
            total += _readTensor(f, _column + i * i)
        return total

    few, many = (gp.operator(lambda f, n=n: sums(f, n)).source(gp.FieldType(9), target="opencl") for n in (4, 400))
    assert few.count("#pragma unroll 4") == 2 and "#pragma" not in many.split("__kernel")[1]


def test_loops_around_loops_have_no_hints(device):
    """Intel's compiler crashes at some."""
    a = np.resize(np.arange(-17, 16, dtype="i4"), (16, 2, 3, 3))
    with gp.ComputeGraph() as graph:
        graph.probe(gp.MatrixField(a).max() > 0, "any")
        graph.probe(gp.MatrixField(a).max(), "max")
    text = graph.source("opencl").replace("    ", "")
    assert "#pragma unroll 2\nfor (" in text
    for loop in text.split("#pragma unroll 2\n")[1:]:
        assert "for (" not in loop[4:].split("}")[0]
    assert graph.read("any") and graph.read("max") == a.max()


@pytest.mark.parametrize("shape", [(40, 500), (40, 509), (3, 20000), (40000,), (2000, 3), (9, 9)], ids=str)
@pytest.mark.parametrize("axis", [0, -1])
def test_what_is_reduced_is_in_the_text_three_times_at_most(shape, axis):
    """Whole turns, those that may be beyond the end, and what extremes start from; turns that differ are not joined."""
    f = gp.ScalarField(np.random.default_rng(0).random(shape, "f"))
    with gp.ComputeGraph() as graph:
        g = np.sqrt(f)
        graph.probe(g.sum(axis=axis), "sum")
        graph.probe(g.max(axis=axis), "max")
    text = graph.source("opencl").split("__kernel")[1]
    few = f.field_shape[axis] <= 8  # they are read without a loop
    assert text.count("sqrt(") == f.field_shape[axis] if few else 2 <= text.count("sqrt(") <= 3
    np.testing.assert_allclose(g.sum(axis=axis).numpy(), np.sqrt(f.numpy()).sum(axis=axis, dtype="d"), rtol=3e-6)
