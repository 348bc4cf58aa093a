"""Wrong iterations: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp

from .wrong import INTEGER, SCALAR, VECTOR3, Wrongs

WRONGS = Wrongs()


def twice(u: gp.Field) -> gp.Field:
    return u * 2


@WRONGS.add("iterate never ends: give `times=`, or a condition `until=`")
def no_end():
    gp.iterate(twice, SCALAR)  # here


@WRONGS.add("iterate: `turn`: missing a required argument: 'v'; it gets 1 field, as many as iterate starts from")
def too_few_states():
    def turn(u, v):
        return v, u

    gp.iterate(turn, SCALAR, times=3)  # here


@WRONGS.add("iterate: `twice`: too many positional arguments; it gets 2 fields, as many as iterate starts from")
def too_many_states():
    gp.iterate(twice, (SCALAR, SCALAR), times=3)  # here


@WRONGS.add("iterate: the condition of `turn`: too many positional arguments; it gets 2 fields")
def a_condition_of_one_state():
    def turn(u, v):
        return v, u

    gp.iterate(turn, (SCALAR, SCALAR), until=lambda u: u.max() > 9)  # here


@WRONGS.add("`times=` is the number of iterations, an integer that is not negative, not -1")
def negative_times():
    gp.iterate(twice, SCALAR, times=-1)  # here


@WRONGS.add("`times=` is the number of iterations, an integer that is not negative, not 2.0")
def times_of_a_float():
    gp.iterate(twice, SCALAR, times=2.0)  # here


@WRONGS.add("`every=` is a number of iterations, an integer of 1 or more, not 0")
def never_looks():
    gp.iterate(twice, SCALAR, until=lambda u: u.max() > 9, every=0)  # here


@WRONGS.add("`until=` is a function of the fields, not a Field: `until=lambda u: …`")
def condition_of_a_field():
    gp.iterate(twice, SCALAR, until=SCALAR.max() > 9)  # here


@WRONGS.add("iterate wants a function of fields, not a ScalarField")
def no_function():
    gp.iterate(SCALAR, twice, times=2)  # here


@WRONGS.add("iterate starts from a Field or a tuple of Fields, not from an ndarray")
def array():
    gp.iterate(twice, np.ones(3), times=2)  # here


@WRONGS.add(
    "iterate: `lambda` returns a 4×5 float32 field for a 4×5 int32 field; one iteration gives what the next one takes: "
    'write `.astype("int32")`, or `_convert_int(…)` in the operator'
)
def other_type():
    gp.iterate(lambda u: u * 0.5, INTEGER, times=2)  # here


@WRONGS.add("iterate: `twice` returns a Field, and gets a tuple of 1; one iteration gives what the next one takes")
def field_for_a_tuple():
    gp.iterate(twice, (SCALAR,), times=2)  # here


@WRONGS.add("iterate: `lambda` returns a tuple of 1, and gets a tuple of 2;")
def too_few():
    gp.iterate(lambda u, v: (u,), (SCALAR, VECTOR3), times=2)  # here


@WRONGS.add("iterate: `lambda` returns None; it returns Fields")
def nothing():
    gp.iterate(lambda u: None, SCALAR, times=2)  # here


@WRONGS.add("iterate: the condition of `twice` is a 4×5 bool field; it is a 0D field of bool, as `abs(u).max() < 1e-3`")
def condition_at_every_point():
    gp.iterate(twice, SCALAR, until=lambda u: u > 9)  # here


@WRONGS.add("iterate: the condition of `twice` is a bool; it is a 0D field of bool")
def condition_of_python():
    gp.iterate(twice, SCALAR, until=lambda u: True)  # here


@WRONGS.add(
    "iterate: the condition of `twice` is a 0D float32 field; it is a 0D field of bool, as `abs(u).max() < 1e-3`"
)
def condition_without_a_comparison():
    gp.iterate(twice, SCALAR, until=lambda u: u.mean())  # here


@WRONGS.add("iterate: the condition of `twice` is a 0D int64 field; it is a 0D field of bool")
def condition_that_counts():
    gp.iterate(twice, SCALAR, until=lambda u: (u > 9).sum(), times=3)  # here


@WRONGS.add(
    "iterate: too many positional arguments; it takes (function, u), and by name times, until, every, checkpoints"
)
def times_by_position():
    gp.iterate(twice, SCALAR, 20)  # here


@WRONGS.add('write `.astype("bfloat16")`, or `@gp.operator(outputs="same")`')
def state_of_bfloat16():
    gp.iterate(lambda u: u.astype("float32"), SCALAR.astype("bfloat16"), times=2)  # here


@WRONGS.add("leave out `.numpy()`, `float()` and `int()`, and compute with fields, as `u.max() < 1`")
def values_of_a_turn():
    gp.iterate(lambda u: u * float(u.max()), SCALAR, times=2)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_wrong_iterations(wrong):
    wrong.check()
