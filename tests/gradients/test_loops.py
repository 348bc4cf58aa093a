"""Cotangents through loops, early exits and arrays, against differences in NumPy; what is refused, at its line."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.gradients.differences import check

A = np.random.default_rng(11).random(5) + 0.3
COUNTS = np.array([1.0, 2.0, 0.0, 5.0, 3.0])


def near(a, k):
    return a[np.minimum(np.arange(len(a)) + k, len(a) - 1)]


@gp.operator
def polynomial(x, c):
    total, value = _var(_convert_double(0)), _readTensor(x)
    with _for(4) as i:
        total @= total * value + _readTensor(c, i)
    return total


def test_polynomial_by_horners_rule(device):
    check(polynomial, horner, A, A[:4] + 1)


def horner(x, c):
    total = 0
    for k in c:
        total = total * x + k
    return total


@gp.operator
def overwritten(x):
    value = _var(_readTensor(x))
    value @= value * value
    before = _var(value)
    value @= value * 3 + before
    before @= before * value
    return value * before


def test_variables_that_are_assigned_again(device):
    def expected(a):
        value = a * a
        before, value = value, value * 3 + value
        return value * (before * value)

    check(overwritten, expected, A)


@gp.operator
def skipping(x):
    total = _var(_convert_double(0))
    with _for(6) as i:
        with _if(i == 3):
            _continue()
        total @= total + _readTensor(x, _column + i) * _convert_double(i)
    return total * total


def test_continue(device):
    check(skipping, lambda a: sum(near(a, i) * i for i in range(6) if i != 3) ** 2, A)


@gp.operator
def leaving(x):
    total = _var(_convert_double(0))
    with _for(6) as i:
        with _if(total > 1.0):
            _break()
        total @= total * 1.1 + _readTensor(x, _column + i) * _readTensor(x)
    return total * total


def left(a, count):
    total = np.zeros_like(a)
    for i in range(count):
        total = np.where(total > 1.0, total, total * 1.1 + near(a, i) * a)
    return total * total


def test_break(device):
    check(leaving, lambda a: left(a, 6), A)


@gp.operator
def long_linear(x):
    total, value = _var(_convert_double(0)), _readTensor(x)
    with _for(3000) as i:
        total @= total * 0.5 + value * value * _convert_double(i % 7)
    return total


def test_long_loop_that_carries_on_linearly(device):
    """Nothing is stored of its iterations."""

    def expected(a):
        total = 0
        for i in range(3000):
            total = total * 0.5 + a * a * (i % 7)
        return total

    check(long_linear, expected, A[:3])
    _, pull = gp.vjp(long_linear, x := gp.ScalarField(A))
    assert not [s for s in pull(x)[0].node.call.kernel.body if type(s).__name__ == "Declare"]


@gp.operator
def long_curved(x, c):
    total, value = _var(_convert_double(1)), _readTensor(x)
    before = value * value
    with _for(2, 400) as i:
        with _if(i % 3 == 1):
            total @= total * 0.99 + _sin(total) * value * 0.01 * _readTensor(c)
        with _else():
            total @= total + before * 0.001
    return total * before


def test_long_loop_whose_iterations_depend_on_those_before(device):
    """A value from before the loop is used in it and behind it; shares of a field that all threads read add up."""

    def expected(x, c):
        total = 1
        for i in range(2, 400):
            total = total * 0.99 + np.sin(total) * x * 0.01 * c if i % 3 == 1 else total + x * x * 0.001
        return total * x * x

    check(long_curved, expected, A[:3], np.asarray(0.7))


@gp.operator
def counted(x, n):
    total, value = _var(_convert_double(0)), _readTensor(x)
    before = value * value
    count = _convert_int(_readTensor(n))
    with _for(count) as i, _for(count) as j:
        total @= total + before * _convert_double(i + j)
    return total * before


def test_nested_loops_whose_iterations_data_decide(device):
    def expected(a):
        sums = np.array([sum(i + j for i in range(int(n)) for j in range(int(n))) for n in COUNTS])
        return a**4 * sums

    check(lambda x: counted(x, gp.ScalarField(COUNTS)), expected, A)


@gp.operator
def in_array(x):
    values = _doubleArray(4)
    with _for(4) as i:
        values[i] = _readTensor(x, _column + i) ** 2
    values[1] = values[1] * values[2]
    values[1] = values[1] + values[0]
    total = _var(_convert_double(0))
    with _for(4) as i:
        total @= total + values[i] * values[3 - i]
    return total


def test_array_of_a_thread(device):
    """A store hides what was there before."""

    def expected(a):
        values = [near(a, i) ** 2 for i in range(4)]
        values[1] = values[1] * values[2]
        values[1] = values[1] + values[0]
        return sum(values[i] * values[3 - i] for i in range(4))

    check(in_array, expected, A)


@gp.operator
def windowed(x):
    total = _var(_convert_double(0))
    with _for(-20, 21) as i, _for(-20, 21) as j:
        total @= total + _readTensor(x, _row + i, _column + j, border="wrap") * _convert_double(i * j % 5)
    return total * total


def test_window_that_is_too_long_to_unroll(device):
    def expected(a):
        return (
            sum(np.roll(a, (-i, -j), (0, 1)) * np.fmod(i * j, 5) for i in range(-20, 21) for j in range(-20, 21)) ** 2
        )

    check(windowed, expected, np.random.default_rng(3).random((3, 4)), atol=1e-6)


# --- what is refused ----------------------------------------------------------------------------------------------------


def refusal(operator) -> gp.SemanticError:
    with pytest.raises(gp.SemanticError) as error:
        gp.grad(lambda u: operator(u).sum())(gp.ScalarField(A))
    return error.value


def test_iterations_by_data_that_depend_on_those_before():
    @gp.operator
    def power(x):
        total, value = _var(_convert_double(1)), _readTensor(x)
        with _for(_convert_int(value * 4)):
            total @= total * value
        return total

    error = refusal(power)
    assert error.message.startswith(
        "`power` has no gradient: the slope of an iteration depends on `total` from before it, and data decide on the number of "
        "iterations; give the loop a number of them, and leave it by `_break()`"
    )
    assert "_for" in error.loc.text


def test_iterations_that_are_too_many_to_store():
    @gp.operator
    def many(x):
        total, value = _var(_convert_double(1)), _readTensor(x)
        with _for(3000):
            total @= total * 0.99 + _sin(total) * value
        return total

    error = refusal(many)
    assert error.message.startswith(
        "`many` has no gradient: its gradient needs `total` of all 3000 iterations, 24000 bytes for each thread and more than "
        "4096; make the loop a `gp.iterate` of an operator"
    )
    assert "_for" in error.loc.text


def test_array_in_a_branch():
    @gp.operator
    def branch(x):
        values, value = _doubleArray(2), _readTensor(x)
        values[0] = value
        with _if(value > 0.6):
            values[0] = value * value
        return values[0]

    error = refusal(branch)
    assert error.message.startswith(
        "`branch` has no gradient: the array `values` is used in a branch, or in a loop that is not"
    )
    assert "values[0] = value * value" in error.loc.text
