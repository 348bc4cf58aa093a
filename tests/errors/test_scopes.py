"""Wrong assignments, variables and arrays: each message, and the line that it names."""

from pathlib import Path

import pytest

import gpuop as gp
from gpuop.base.errors import PACKAGE
from gpuop.dsl import *
from gpuop.dsl.recorder import source_checks
from gpuop.dsl.recorder.source_checks import _check, _functions

from .wrong import BIG, INTEGER, SCALAR, VECTOR3, Wrongs

WRONGS = Wrongs()


# --- names and scopes ------------------------------------------------------------------------------------------------------


@WRONGS.add("declare `x = _var(…)` before the block and assign `x @= …` inside")
def name_rebound_in_a_block():
    @gp.operator
    def clip(field):
        x = _readTensor(field)
        with _if(x > 1):
            x = x * 0 + 1  # here
        _writeTensor(_out0, x)

    clip(SCALAR)


@WRONGS.add("`return` inside a `with _if(…)` block ends the recording whatever the condition is")
def return_in_a_block():
    @gp.operator
    def clip(field):
        with _if(_readTensor(field) > 1):
            return 1.0  # here
        return 0.0

    clip(SCALAR)


@WRONGS.add("`return` inside a `with _for(…)` block")
def return_of_a_helper_in_a_block():
    def first(field):
        with _for(3) as i:
            if field is not None:
                return i  # here
        return 0

    @gp.operator
    def clip(field):
        return first(field)

    clip(SCALAR)


@WRONGS.add("`x` is a variable: assign with `x @= …`")
def variable_rebound_to_a_number():
    @gp.operator
    def clip(field):
        x = _var(_readTensor(field))
        with _if(x > 1):
            x = 0.0  # here
        _writeTensor(_out0, x)

    clip(SCALAR)


@WRONGS.add("`x` is a variable: assign with `x @= …`")
def variable_rebound_in_a_block():
    @gp.operator
    def clip(field):
        x = _var(_readTensor(field))
        with _if(x > 1):
            x = _readTensor(field) + 1  # here
            x += 1
        _writeTensor(_out0, x)

    clip(SCALAR)


@WRONGS.add("`y` was made in a `_if` block that has ended")
def value_after_its_block():
    @gp.operator
    def doubled(field):
        x = _readTensor(field)
        with _if(x > 1):
            y = x * 2
        _writeTensor(_out0, y)  # here

    doubled(SCALAR)


@WRONGS.add("`t` was made in a `_if` block that has ended")
def value_with_the_name_of_temporaries():
    @gp.operator
    def doubled(field):
        with _if(_readTensor(field) > 1):
            t = _readTensor(field) * 2
        return t + 1  # here

    doubled(SCALAR)


@WRONGS.add("this value was made in a `_if` block that has ended")
def value_without_a_name():
    @gp.operator
    def doubled(field):
        made = []
        with _if(_readTensor(field) > 1):
            made.append(_readTensor(field) * 2)
        return made[0]  # here

    doubled(SCALAR)


@WRONGS.add("`v` was made in a `_for` block that has ended")
def variable_after_its_block():
    @gp.operator
    def last(field):
        with _for(10) as i:
            v = _var(i)
        v @= 1  # here
        _writeTensor(_out0, v)

    last(INTEGER)


@WRONGS.add("`i` was made in a `_for` block that has ended")
def counter_after_its_loop():
    @gp.operator
    def last(field):
        with _for(10) as i:
            pass
        return i  # here

    last(INTEGER)


@WRONGS.add("array `a` belongs to a block that has ended")
def array_after_its_block():
    @gp.operator
    def last(field):
        with _if(_readTensor(field) > 0):
            a = _floatArray(3)
        return a[0]  # here

    last(SCALAR)


@WRONGS.add("`x` was made in another operator; pass it as a Field, or compute it here")
def value_of_another_operator():
    kept = []
    with gp.GPUOperator(SCALAR.type):
        x = _readTensor(SCALAR)
        kept.append(x)
        _writeTensor(_out0, x)
    gp.operator(lambda f: _readTensor(f) + kept[0])(SCALAR)  # here


@WRONGS.add("`@=` assigns to variables, and this is an expression; make a variable of it with `v = _var(x)`")
def assign_to_an_expression():
    @gp.operator
    def one(field):
        x = _readTensor(field)
        x @= 1  # here
        return x

    one(SCALAR)


@WRONGS.add("`i` is read-only: a loop's counter is not assigned; copy it with `v = _var(i)`")
def assign_to_a_counter():
    @gp.operator
    def last(field):
        with _for(10) as i:
            i += 1  # here
        _writeTensor(_out0, 1)

    last(SCALAR)


@WRONGS.add(
    "components of a variable can be assigned, and this is an expression; make a variable of it with `v = _var(x)`"
)
def component_of_an_expression():
    @gp.operator
    def red(field):
        v = _readTensor(field)
        v.x = 1  # here
        return v

    red(VECTOR3)


@WRONGS.add("components of a variable can be assigned, and this is an expression")
def item_of_an_expression():
    @gp.operator
    def red(field):
        v = _readTensor(field)
        v[0] = 1  # here
        return v

    red(VECTOR3)


@WRONGS.add("`@=` assigns to variables, and this is an expression")
def assign_to_a_thread_constant():
    @gp.operator
    def row(field):
        _row.assign(1)  # here
        return _row

    row(SCALAR)


@WRONGS.add("array `a` has 2 dimensions: give 2 indices, not 1")
def array_index_count():
    @gp.operator
    def first(field):
        a = _floatArray(2, 3)
        return a[0]  # here

    first(SCALAR)


@WRONGS.add("index 3 is outside array `a`, whose extent is 3")
def array_index_outside():
    @gp.operator
    def first(field):
        a = _floatArray(3)
        a[3] = 1  # here
        return a[0]

    first(SCALAR)


@WRONGS.add("the dimensions of an array are positive Python integers")
def computed_dimension():
    @gp.operator
    def first(field):
        return _floatArray(_readTensor(field))[0]  # here

    first(INTEGER)


@WRONGS.add("a big tensor (7 elements) fits no variable; use `_tensorElementVar(f)`")
def big_variable():
    gp.operator(lambda f: _tensorVar(f))(BIG)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()


def test_bodies_of_gpuop_return_outside_of_blocks():
    """They are not checked when they are recorded."""
    for path in Path(PACKAGE).rglob("*.py"):
        for functions in _functions(str(path)).values():
            for statement in (stmt for function in functions for stmt in function.body):
                _check(statement, str(path), "")


def test_files_of_functions_without_blocks_are_not_parsed(monkeypatch):
    monkeypatch.setattr(source_checks, "_functions", None)

    @gp.operator
    def half(field):
        return _readTensor(field) / 2

    assert half(SCALAR).node.call.kernel.name == "half"
