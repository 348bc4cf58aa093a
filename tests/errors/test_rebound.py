"""Python names that blocks bind anew, and loops that Python decides: what is silent, and what is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()
LINE = gp.ScalarField(np.float32([0.1, 0.9, 0.6]))


def bound(name: str, block: str, initial: str) -> str:
    return (
        f"`{name}` is bound to another value inside this `{block}` block, which the device cannot see; declare "
        f"`{name} = _var({initial})` before the block and assign `{name} @= …` inside, or bind it outside the block if it is "
        "meant for Python"
    )


# --- read after the block -----------------------------------------------------------------------------------------------


@WRONGS.add(bound("label", "_if", "0"))
def number_in_a_condition():
    @gp.operator
    def threshold(f):
        label = 0
        with _if(_readTensor(f) > 0.5):
            label = 255  # here
        return label + 1

    threshold(LINE)


@WRONGS.add(bound("high", "_if", "0.0"))
def number_that_becomes_a_value():
    @gp.operator
    def split(f):
        low = high = 0.0
        v = _readTensor(f)
        with _if(v > 0.5):
            high = v  # here
        with _else():
            low = v
        return low, high

    split(LINE)


@WRONGS.add(bound("n", "_for", "0"))
def count_of_turns():
    @gp.operator
    def count(f):
        n = 0
        with _for(10):
            n += 1  # here
        return n

    count(LINE)


@WRONGS.add(bound("n", "_forEachTensorElement", "1"))
def count_of_elements():
    @gp.operator
    def count(f):
        n = 1
        with _forEachTensorElement(3):
            n *= 2  # here
        return _readTensor(f) * n

    count(LINE)


@WRONGS.add(bound("label", "_else", "1"))
def number_of_two_branches():
    @gp.operator
    def choose(f):
        with _if(_readTensor(f) > 0.5):
            label = 1
        with _else():
            label = 0  # here
        return label * 2.0

    choose(LINE)


@WRONGS.add(bound("label", "_if", "…").replace("to another value", "for the first time, and read after it,"))
def number_of_one_branch():
    @gp.operator
    def choose(f):
        with _if(_readTensor(f) > 0.5):
            label = 1  # here
        return label * 2.0

    choose(LINE)


@WRONGS.add(bound("k", "_if", "0"))
def places_in_a_loop_of_pythons():
    """The next turn reads it: Python counts the turns, not those that hold."""

    @gp.operator
    def found(f):
        places, k = _intArray(3), 0
        for at in range(3):
            with _if(_readTensor(f, at) > 0.5):
                places[k] = at
                k += 1  # here
        return places[0]

    found(LINE)


@WRONGS.add(bound("n", "_if", "0"))
def name_of_an_outer_function():
    @gp.operator
    def count(f):
        n = 0

        def add():
            nonlocal n
            with _if(_readTensor(f) > 0.5):
                n += 1  # here

        add()
        return n

    count(LINE)


@WRONGS.add(bound("size", "_codegenIf", "4"))
def number_that_a_target_decides():
    @gp.operator
    def sizes(f):
        size = 4
        with _codegenIf(_target.backend == "cuda"):
            size = 8  # here
        return size + 1

    sizes(LINE)


@WRONGS.add(bound("source", "_if", "…"))
def field():
    @gp.operator
    def either(f, g):
        source = f
        with _if(_column > 1):
            source = g  # here
        return _readTensor(source)

    either(LINE, LINE + 1)


@WRONGS.add(bound("point", "_while", "…"))
def tuple_of_numbers():
    @gp.operator
    def walk(f):
        point, n = (0, 1), _var(0)
        with _while(n < 3):
            n += 1
            point = (point[1], point[0] + 1)  # here
        return point[0] + n

    walk(LINE)


@WRONGS.add(bound("best", "_if", "…"))
def nothing_that_becomes_a_value():
    @gp.operator
    def either(f):
        best, v = None, _readTensor(f)
        with _if(v > 0.5):
            best = v  # here
        return _readTensor(f) if best is None else best

    either(LINE)


@WRONGS.add(bound("scale", "_if", "2.0"))
def number_of_numpys():
    @gp.operator
    def scaled(f):
        scale = np.float32(2)
        with _if(_readTensor(f) > 0.5):
            if scale > 1:
                scale = np.float32(3)  # here
        with _if(_column > 0):
            _assert(_readTensor(f) * scale < 9, "")
        return _readTensor(f)

    scaled(LINE)


# --- what is Python's -----------------------------------------------------------------------------------------------------


def counters_of_unrolled_loops(v):
    total, n = _var(0.0), 0
    for k in range(3):
        with _if(v > 0.5):
            weight = k + 1
            weight *= 2
            total += weight
        n += 1
    return total + n


def again_before_it_is_read(v):
    total, k = _var(0.0), 0
    with _if(v > 0.5):
        k = 5
        total += k
    k = 1
    for k in range(2):
        total += k
    return total + k


def never_read(v):
    k, total = 3, _var(v)
    with _for(2):
        k = 4  # noqa: F841
    return total


def alike(v):
    k, pair, total = 2, (1, 2), _var(v)
    with _if(v > 0.5):
        k, pair = 2, (1, 2)
        total += k
    return total + k + pair[1]


def of_a_comprehension(v):
    k, total = 7, _var(v)
    with _for(3):
        total += sum([k + 0 for k in range(4)])
    return total + k


def in_a_for_of_pythons(v):
    total = _var(v)
    with _for(2):
        for k in range(3):
            total += k
    for k in range(2):
        total += k
    return total


def first_bound_in_a_loop_that_runs(v):
    total = _var(v)
    with _for(2):
        half = 4 // 2
        total += half
    return total + half


def until_another_branch_of_python(v, wide=True):
    k, total = 1, _var(v)
    with _if(v > 0.5):
        k = 2
        total += k
    if wide:
        k = 3
    elif total is None:
        k = 4
    else:
        raise AssertionError
    return total + k


def lists_and_functions(v):
    values, total = [], _var(0.0)
    with _if(v > 0.5):
        values = [1, 2]

        def double(x):
            return 2 * x

        total += double(values[1])
    return total + len(values)


LEGAL: dict[Callable[..., Any], Callable[[Any], Any]] = {
    counters_of_unrolled_loops: lambda v: np.where(v > 0.5, 15, 3),
    again_before_it_is_read: lambda v: np.where(v > 0.5, 7, 2),
    never_read: lambda v: v,
    alike: lambda v: np.where(v > 0.5, v + 2, v) + np.float32(4),
    of_a_comprehension: lambda v: v + np.float32(25),
    in_a_for_of_pythons: lambda v: v + np.float32(7),
    first_bound_in_a_loop_that_runs: lambda v: v + np.float32(6),
    until_another_branch_of_python: lambda v: np.where(v > 0.5, v + np.float32(2), v) + np.float32(3),
    lists_and_functions: lambda v: np.where(v > 0.5, 6, 2),
}  # fmt: skip


@pytest.mark.parametrize("body", LEGAL)
def test_what_python_may_bind(body: Callable[..., Any]) -> None:
    with gp.use_device("reference"):
        actual = gp.operator(lambda f: body(_readTensor(f)))(LINE).numpy()
    np.testing.assert_allclose(actual, LEGAL[body](LINE.numpy()), rtol=1e-6)


# --- loops that Python decides ----------------------------------------------------------------------------------------------

COUNT = "count in a variable, as in `n = _var(0)` before it and `n += 1` inside"


@WRONGS.add(f"this `_while` never ends once it runs: its condition is True in Python; {COUNT}, or leave by `_break()`")
def counted_in_python():
    @gp.operator
    def steps(f):
        n = 0
        with _while(n < 10):  # here
            n += 1
        return _readTensor(f) + n

    steps(LINE)


@WRONGS.add(f"this `_while` never ends once it runs: its condition is True in Python; {COUNT}, or leave by `_break()`")
def left_by_an_inner_loop_only():
    @gp.operator
    def steps(f):
        with _while(lambda: True):  # here
            with _for(3):
                _break()

    steps(LINE)


@WRONGS.add(f"this `_while` never runs: its condition is False in Python; {COUNT}")
def never_true():
    @gp.operator
    def steps(f):
        n = 10
        with _while(n < 10):  # here
            n += 1

    steps(LINE)


@WRONGS.add(f"this `_while` never runs: its condition is 0 in Python; {COUNT}")
def zero_of_a_function():
    gp.operator(lambda f: _while(lambda: 0))(LINE)  # here


@WRONGS.add("this `_while` never ends once it runs: nothing in the block changes what its condition depends on;")
def another_variable_counts():
    @gp.operator
    def steps(f):
        n, m = _var(0), _var(0)
        with _while(n < 10):  # here
            m += 1
        return m

    steps(LINE)


@WRONGS.add("this `_while` never ends once it runs: nothing in the block changes what its condition depends on;")
def values_never_change():
    @gp.operator
    def steps(f):
        v, m = _readTensor(f), _var(0)
        with _while(_sqrt(v) + m * 0 < _readTensor(f, _column + 1)):  # here
            with _if(m > 3):
                _continue()
            v = v + 0
        return m

    steps(SCALAR[0])


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_messages(wrong):
    wrong.check()


def test_loops_that_end(device: str) -> None:
    """By a break, a variable, an array, local memory, an atomic result; or that never run, as positions say."""

    @gp.operator(outputs=gp.FieldType(3, 4, "int32"))
    def counted():
        n, steps, found = _intArray(1), _intVar(), _intVar()
        with _while(True):
            steps += 1
            with _if(steps > _column + 2):
                _break()
        with _while(n[0] < 5):
            n[0] += 2
        with _while(_layer > 0):
            steps += 100
        left = _intVar(4)
        with _while(lambda: left > _row):
            left -= 1
            found += 1
        _writeTensor(_out0, _vector(steps, n[0], left, found))

    assert counted().numpy().tolist() == [[k + 3, 6, 0, 4] for k in range(3)]
