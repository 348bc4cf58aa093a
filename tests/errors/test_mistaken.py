"""Mistakes in bodies that Python reports itself, or not at all: names of outer functions, floats in ints, indices of outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import INTEGER, SCALAR, Wrongs, marked

WRONGS = Wrongs()


def belongs(name: str, outer: str, inner: str) -> str:
    return (
        f"`{name}` belongs to `{outer}`, and `{inner}` assigns it, which makes it local there, as Python has it; write "
        f"`nonlocal {name}` at the beginning of `{inner}`, or assign a variable by `{name}.assign(…)`"
    )


@WRONGS.add(belongs("total", "summed", "add"))
def update_in_a_nested_function():
    @gp.operator
    def summed(f):
        total = _var(0.0)

        def add(x):
            total += x  # noqa: F823, F841  # here

        add(_readTensor(f))
        return total

    summed(SCALAR)


@WRONGS.add(belongs("best", "search", "better"))
def assignment_two_functions_out():
    @gp.operator
    def search(f):
        best = _var(0.0)

        def visit(x):
            def better():
                best @= x  # noqa: F823, F841  # here

            with _if(x > best):
                better()

        visit(_readTensor(f))
        return best

    search(SCALAR)


@WRONGS.add(belongs("total", "cog", "add"))
def update_in_cogs_form():
    def cog(f):
        with gp.GPUOperator(f.type) as op:
            total = _var(0.0)

            def add(x):
                total += x  # noqa: F823, F841  # here

            add(_readTensor(f))
            _writeTensor(_out0, total)
        return op.output

    cog(SCALAR)


@WRONGS.add("an output is not assigned; write `_writeTensor(_out0, v)`")
def assigned_output():
    @gp.operator
    def op(f):
        _out0 @= _readTensor(f)  # here

    op(SCALAR)


@WRONGS.add("`op` assigns `_row`, which is not a variable; copy it under a name of its own, as in `v = _var(_row)`")
def assigned_position():
    @gp.operator
    def op(f):
        _row += 1  # here
        return _readTensor(f, _row, _column)

    op(SCALAR)


@WRONGS.add(
    "an output is not an array: write `_writeTensor(_out0, v, _row, _column)`, or `_writeTensor(_out0, v)` at the thread's "
    "own point"
)
def output_like_an_array():
    @gp.operator
    def op(f):
        _out0[_row, _column] = _readTensor(f)  # here

    op(SCALAR)


@WRONGS.add(
    "_out0 is not an array: keep what you wrote in a variable, or read it by `_readTensor(_out0, _row, _column)`"
)
def output_read_like_an_array():
    @gp.operator
    def op(f):
        _writeTensor(_out0, _readTensor(f))
        _out0[_row, _column] += 1  # here

    op(SCALAR)


@WRONGS.add("the loop makes its counter itself: leave out the declaration of `i`, or give the counter another name")
def declared_counter():
    @gp.operator
    def op(f):
        i, total = _intVar(), _var(0.0)
        with _for(0, 5) as i:  # noqa: F811  # here
            total += i
        return total

    op(SCALAR)


@WRONGS.add("the loop makes its counter itself: leave out the declaration of `i`, or give the counter another name")
def counter_of_the_outer_loop():
    @gp.operator
    def op(f):
        total = _var(0.0)
        with _for(5) as i:
            with _for(3) as i:  # here
                total += i
        return total

    op(SCALAR)


@WRONGS.add("'cuda:sm_63' names no target: there is no sm_63, the nearest are sm_62 and sm_70")
def architecture_that_is_none():
    gp.operator(lambda f: _target.choose({"opencl": 1, "cuda:sm_63": 2}))(SCALAR)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_messages(wrong):
    wrong.check()


def test_pythons_own_mistakes_stay_its_own() -> None:
    @gp.operator
    def op(f):
        later = later + 1
        return later * 2

    with pytest.raises(UnboundLocalError, match="later"):
        op(SCALAR)


def test_later_architectures_are_targets() -> None:
    with gp.use_device("reference"):
        size = _target.choose({"cuda:sm_88": 1, "cuda:sm_150": 2, "reference": 3})
        assert repr(size) == "_target.choose({'cuda:sm_88': 1, 'cuda:sm_150': 2, 'reference': 3})"


# --- floats in ints -------------------------------------------------------------------------------------------------------


def added(f):
    s = _var(0)
    s += 0.5  # here
    return s


def scaled(f):
    s = _intVar(7)
    s *= _readTensor(f)  # here
    return s


def shared(f):
    s = _local(_intVar())
    s @= 1
    s -= _readTensor(f)  # here
    return s


def of_a_vector(f):
    s = _uchar2Var(200)
    s /= _float2(1.5, 2)  # here
    return s


@pytest.mark.parametrize("body", [added, scaled, shared, of_a_vector])
def test_a_float_that_an_int_takes_is_named(body: Any) -> None:
    kind = {of_a_vector: "uchar2"}.get(body, "int")
    with gp.use_device("reference"), pytest.warns(UserWarning, match="is truncated each time") as caught:
        gp.operator(body)(SCALAR)
    (warning,) = caught
    article = "an" if kind == "int" else "a"
    assert str(warning.message) == (
        f"`s` is {article} {kind} variable, so a float result is truncated each time; declare `s = _var(0.0)`, or say so by "
        "`s @= …`"
    )
    assert (warning.filename, warning.lineno) == (__file__, marked(body))


def test_what_an_int_may_take() -> None:
    """An assignment converts, and says so; ints stay ints, and floats take both."""

    @gp.operator(outputs=gp.FieldType((4, 5), 4, "int32"))
    def op(f, g):
        a, b, c, d = _var(7), _var(7), _var(0.0), _var(1)
        a @= a * 0.5
        b /= 2
        c += _readTensor(g)
        c *= 2
        d += _readTensor(g)
        _writeTensor(_out0, _vector(a, b, _convert_int(c), d))

    with gp.use_device("reference"):
        actual = op(SCALAR, INTEGER).numpy()
    g = np.arange(20).reshape(4, 5)
    assert np.array_equal(actual, np.stack([g * 0 + 3, g * 0 + 3, 2 * g, g + 1], -1))
