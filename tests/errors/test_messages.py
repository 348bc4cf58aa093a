"""Python on kernel values: each message, and the line that it names."""

import math

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import INTEGER, SCALAR, Wrongs

WRONGS = Wrongs()
NO_TRUTH = "a recorded value has no truth value"


# --- truth values ----------------------------------------------------------------------------------------------------


@WRONGS.add(NO_TRUTH)
def python_if():
    @gp.operator
    def brighten(field):
        x = _readTensor(field)
        if x > 0:  # here
            x = x + 1
        return x

    brighten(SCALAR)


@WRONGS.add(NO_TRUTH)
def python_while():
    @gp.operator
    def halve(field):
        x = _var(_readTensor(field))
        while x > 1:  # here
            x /= 2
        return x

    halve(SCALAR)


@WRONGS.add(NO_TRUTH)
def python_and():
    @gp.operator
    def inside(field):
        x = _readTensor(field)
        return _where(x > 0 and x < 1, 1, 0)  # here

    inside(SCALAR)


@WRONGS.add(
    "a chained comparison such as `a < x < b` is an `and` in Python, which asks a recorded value for its truth; write `(a < "
    "x) & (x < b)`"
)
def chained():
    gp.operator(lambda f: _where(50 < _readTensor(f) < 100, 1, 0))(SCALAR)  # here


@WRONGS.add("a chained comparison such as `a < x < b` is")
def chained_in_an_if():
    @gp.operator
    def inside(field):
        x = _readTensor(field)
        if 0 <= x <= 1:  # here
            return x
        return 0

    inside(SCALAR)


@WRONGS.add(NO_TRUTH)
def python_or():
    @gp.operator
    def outside(field):
        x = _readTensor(field)
        with _if((x < 0) or (x > 1)):  # here
            _writeTensor(_out0, 0)

    outside(SCALAR)


@WRONGS.add(NO_TRUTH)
def python_not():
    gp.operator(lambda f: _where(not (_readTensor(f) > 0), 1, 0))(SCALAR)  # here


@WRONGS.add("a chained comparison such as `a < x < b` is")
def chained_comparison():
    @gp.operator
    def inside(field):
        x = _readTensor(field)
        return _where(0 < x < 1, 1, 0)  # here

    inside(SCALAR)


@WRONGS.add(NO_TRUTH)
def conditional_expression():
    gp.operator(lambda f: 1.0 if _readTensor(f) > 0 else 0.0)(SCALAR)  # here


@WRONGS.add("use `with _if(c):`, `with _while(c):`, `&`, `|`, `~`, `_min`, `_max`, `_where(c, a, b)`")
def python_max():
    @gp.operator
    def positive(field):
        return max(_readTensor(field), 0)  # here

    positive(SCALAR)


@WRONGS.add(NO_TRUTH)
def python_min():
    @gp.operator
    def small(field):
        return min(_readTensor(field), 0)  # here

    small(SCALAR)


@WRONGS.add(NO_TRUTH)
def membership():
    @gp.operator
    def listed(field):
        return _where(_readTensor(field) in (1, 2), 1, 0)  # here

    listed(SCALAR)


# --- Python's numbers ---------------------------------------------------------------------------------------------------


@WRONGS.add("a recorded value is not a Python integer; convert on the device with `_convert_int(x)`")
def python_int():
    gp.operator(lambda f: int(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("a recorded value is not a Python float: it exists only on the device")
def python_float():
    gp.operator(lambda f: float(_readTensor(f)))(INTEGER)  # here


@WRONGS.add("it exists only on the device; use `with _for(n) as i:`")
def python_range():
    @gp.operator
    def total(field):
        sum_ = _floatVar()
        for i in range(_readTensor(field)):  # here
            sum_ += i
        return sum_

    total(INTEGER)


@WRONGS.add("it exists only on the device")
def list_index():
    gp.operator(lambda f: [1.0, 2.0][_readTensor(f)])(INTEGER)  # here


@WRONGS.add("a scalar value cannot be unpacked or iterated over")
def iterate_scalar():
    @gp.operator
    def total(field):
        return sum(_readTensor(field))  # here

    total(SCALAR)


@WRONGS.add("a scalar value cannot be unpacked or iterated over")
def unpack_scalar():
    @gp.operator
    def swapped(field):
        a, b = _readTensor(field)  # here
        return a - b

    swapped(SCALAR)


@WRONGS.add("`round` of Python does not take kernel values; use `_rint(x)`, or `_round(x)`")
def python_round():
    gp.operator(lambda f: round(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("use the kernel's own functions (`_exp(x)` for `math.exp(x)`)")
def python_exponential():
    gp.operator(lambda f: math.exp(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("use the kernel's own functions (`_atan2(a, b)` for `math.atan2(a, b)`)")
def python_angle():
    gp.operator(lambda f: math.atan2(_readTensor(f), 2.0))(SCALAR)  # here


@WRONGS.add("use the kernel's own functions (`_sin(x)` for `math.sin(x)`)")
def python_function_without_a_word():
    gp.operator(lambda f: math.modf(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("use the kernel's own functions (`_sqrt(x)` for `math.sqrt(x)`)")
def python_math():
    gp.operator(lambda f: math.sqrt(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("numpy.sqrt does not take kernel values; kernels have functions of their own, as `_sqrt(x)`")
def numpy_function():
    gp.operator(lambda f: np.sqrt(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("numpy.exp does not take kernel values; kernels have functions of their own, as `_exp(x)`")
def numpy_exponential():
    gp.operator(lambda f: np.exp(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("numpy.arcsinh does not take kernel values; kernels have functions of their own, as `_asinh(x)`")
def numpy_inverse():
    gp.operator(lambda f: np.arcsinh(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("numpy.maximum does not take kernel values; kernels have functions of their own, as `_max(a, b)`")
def numpy_extreme():
    gp.operator(lambda f: np.maximum(_readTensor(f), 0))(SCALAR)  # here


# NumPy functions that are written in Python: the line is the user's, not NumPy's.
OF_SEVERAL = (
    "makes a table for computed indices, as in `table[i]`; `_where(c, a, b)` chooses, and `_sum(values)`, `_min` and `_max` "
    "take lists of values"
)


@WRONGS.add(OF_SEVERAL)
def numpy_sum():
    gp.operator(lambda f: np.sum([_readTensor(f), _readTensor(f)]))(SCALAR)  # here


@WRONGS.add(OF_SEVERAL)
def numpy_mean():
    gp.operator(lambda f: np.mean([_readTensor(f), 1]))(SCALAR)  # here


@WRONGS.add(OF_SEVERAL)
def numpy_percentile():
    gp.operator(lambda f: np.percentile([_readTensor(f), 1], 50))(SCALAR)  # here


@WRONGS.add("a value of 3 components is unpacked into 3 names, not into 2; `v.xy` has the first two, `v[i]` has one")
def unpacked_into_too_few():
    @gp.operator
    def two(field):
        x, y = _readTensor(field)  # here
        return x + y

    two(gp.VectorField(np.zeros((4, 5, 3))))


@WRONGS.add("a value of 3 components is unpacked into 3 names, not into 4")
def unpacked_into_too_many():
    @gp.operator
    def four(field):
        x, y, z, w = _readTensor(field)  # here
        return x + y + z + w

    four(gp.VectorField(np.zeros((4, 5, 3))))


@WRONGS.add("a function that this calls calls itself without end; a kernel repeats by `with _for(n) as i:`")
def calls_itself():
    @gp.operator
    def endless(field):
        return endless(field)  # here

    endless(SCALAR)


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()
