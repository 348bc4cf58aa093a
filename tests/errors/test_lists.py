"""Wrong windows, borders by axis, lists to sort, and cases: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, Wrong, Wrongs

WRONGS = Wrongs()


@WRONGS.add("`_window(…)` stands without `with`; write `with _window(…):`")
def without_with():
    @gp.operator
    def body(f):
        _window([1, 2])  # here
        return _readTensor(f)

    body(SCALAR)


@WRONGS.add(
    "`_window` takes numbers that are known in Python, not a Field; loop over one by `with _for(w.field_shape) as place:`, and "
    "read `_readTensor(w, *place)`; sums with so many weights are"
)
def window_of_a_field():
    @gp.operator
    def body(f):
        with _window(f) as (_, weight):  # here
            pass
        return weight

    body(SCALAR)


@WRONGS.add("`centre=` is an integer for each of 2 dimensions, not (1,)")
def centre_of_another_rank():
    @gp.operator
    def body(f):
        with _window(np.ones((3, 3)), centre=(1,)) as (_, weight):  # here
            pass
        return weight

    body(SCALAR)


@WRONGS.add("`f` is 2D: `offset=` has a number for each dimension, (row, column), not 1")
def window_of_another_rank():
    @gp.operator
    def body(f):
        total = _var(0.0)
        with _window([1.0, 2.0]) as (offset, weight):
            total += weight * _readTensor(f, offset=offset)  # here
        return total

    body(SCALAR)


@WRONGS.add("`f` is 2D: `border=` is one for all, or one for each of (row, column)")
def too_few_borders():
    gp.operator(lambda f: _readTensor(f, offset=(0, 1), border=("wrap",)))(SCALAR)  # here


@WRONGS.add("`f`: the value outside of a field is one number for all axes, so `border=` takes no two numbers")
def two_numbers():
    gp.operator(lambda f: _readTensor(f, offset=(0, 1), border=(1, 2)))(SCALAR)  # here


@WRONGS.add("there is no border='nearest': here that is \"clamp\"")
def unknown_border():
    gp.operator(lambda f: _readTensor(f, offset=(0, 1), border=("wrap", "nearest")))(SCALAR)  # here


@WRONGS.add("_sort takes two values or more, or a list of values, not one value; of a vector's components: `_sort(*v)`")
def one_value():
    gp.operator(lambda f: _sort(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("`_select(values, k)` of 2 values has no k = 2")
def beyond_the_list():
    gp.operator(lambda f: _select([_readTensor(f), 1.0], 2))(SCALAR)  # here


@WRONGS.add("`_select(values, k)` takes a Python integer, not a recorded value; `_switch(k, _sort(values))` selects by")
def recorded_rank():
    gp.operator(lambda f: _select([_readTensor(f), 1.0], _column))(SCALAR)  # here


@WRONGS.add("`_select(values, k)` takes a list and an integer, not 1 arguments")
def no_rank():
    gp.operator(lambda f: _select([_readTensor(f), 1.0]))(SCALAR)  # here


@WRONGS.add(
    "a list cannot stand in a kernel; of several values there are `_sum`, `_min`, `_max`, `_and` (all), `_or` (any)"
)
def all_of_a_list():
    gp.operator(lambda f: _all([_readTensor(f) > 0, _column > 1]))(SCALAR)  # here


@WRONGS.add("every case of `_switch` gives as many values as the others, not 0 and 1")
def cases_of_unlike_many_values():
    gp.operator(lambda f: _switch(_column, lambda: _readTensor(f), lambda: None))(SCALAR)  # here


@WRONGS.add("_switch takes two values or more, or a list of values, not one value")
def one_case():
    gp.operator(lambda f: _switch(_column, 1))(SCALAR)  # here


@WRONGS.add("the index of `_switch` is a scalar integer, not a float")
def index_between():
    gp.operator(lambda f: _switch(_readTensor(f), 1, 2))(SCALAR)  # here


@WRONGS.add("this value was made in a `_switch` block that has ended")
def value_of_a_case():
    made = []

    def case():
        made.append(_readTensor(SCALAR) * 2)
        return made[0]

    @gp.operator
    def body(f):
        _switch(_column, case, 1.0)
        return made[0] + _readTensor(f)  # here

    body(SCALAR)


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong: Wrong) -> None:
    wrong.check()
