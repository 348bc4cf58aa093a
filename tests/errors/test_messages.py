"""Wrong uses of kernel values: each message, and the line that it names."""

import numpy as np
import pytest
from wrong import BIG, INTEGER, SCALAR, VECTOR2, VECTOR3, Wrongs

import gpuop as gp
from gpuop.dsl import *

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


@WRONGS.add(NO_TRUTH)
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


@WRONGS.add("a recorded value is not a Python float; convert on the device with `_convert_float(x)`")
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


@WRONGS.add("round")
def python_round():
    gp.operator(lambda f: round(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("math")
def python_math():
    import math

    gp.operator(lambda f: math.sqrt(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("numpy")
def numpy_function():
    gp.operator(lambda f: np.sqrt(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("format")
def formatted():
    gp.operator(lambda f: float(f"{_readTensor(f):.2f}"))(SCALAR)  # here


# --- types --------------------------------------------------------------------------------------------------------------


@WRONGS.add("add: vectors of different lengths, float2 and float3; take components (`v.xy`) or use scalars")
def vector_lengths():
    @gp.operator
    def added(a, b):
        return _readTensor(a) + _readTensor(b)  # here

    added(VECTOR2, VECTOR3)


@WRONGS.add("a float2 has no component `z`: its components are x, y")
def z_of_a_2_vector():
    gp.operator(lambda f: _readTensor(f).z)(VECTOR2)  # here


@WRONGS.add("a float is a scalar: it has no component `x`")
def x_of_a_scalar():
    gp.operator(lambda f: _readTensor(f).x)(SCALAR)  # here


@WRONGS.add("component 3 of a float3 does not exist")
def component_out_of_range():
    gp.operator(lambda f: _readTensor(f)[3])(VECTOR3)  # here


@WRONGS.add("a vector is indexed by a Python integer")
def computed_component():
    gp.operator(lambda f: _readTensor(f)[_column])(VECTOR3)  # here


@WRONGS.add("slice")
def component_slice():
    gp.operator(lambda f: _readTensor(f)[:2])(VECTOR3)  # here


@WRONGS.add("a kernel value has no attribute 'sqrt'")
def unknown_attribute():
    gp.operator(lambda f: _readTensor(f).sqrt())(SCALAR)  # here


@WRONGS.add("_float3 has 3 components, but its arguments have 2")
def too_few_components():
    gp.operator(lambda f: _float3(_readTensor(f), 1.0))(SCALAR)  # here


@WRONGS.add("_float3 has 3 components, but its arguments have 4")
def too_many_components():
    gp.operator(lambda f: _float3(_readTensor(f), 1.0))(VECTOR3)  # here


@WRONGS.add("invert wants integers or bools, not float; convert first, as in `_convert_int(x)`")
def invert_float():
    gp.operator(lambda f: ~_readTensor(f))(SCALAR)  # here


@WRONGS.add("and wants integers or bools")
def and_of_floats():
    gp.operator(lambda f: _readTensor(f) & 1)(SCALAR)  # here


@WRONGS.add("a shift amount is an integer that is not negative, not -1")
def negative_shift():
    gp.operator(lambda f: _readTensor(f) << -1)(INTEGER)  # here


@WRONGS.add("300 does not fit uchar")
def number_too_big():
    pixels = gp.ScalarField(np.zeros((4, 5), "u1"))
    gp.operator(lambda f: _readTensor(f) + 300)(pixels)  # here


@WRONGS.add("-1 does not fit uint")
def negative_number():
    counts = gp.ScalarField(np.zeros((4, 5), "u4"))
    gp.operator(lambda f: _readTensor(f) + -1)(counts)  # here


@WRONGS.add("does not fit float")
def float_too_big():
    gp.operator(lambda f: _readTensor(f) * 1e40)(SCALAR)  # here


@WRONGS.add("a list cannot stand in a kernel")
def list_operand():
    gp.operator(lambda f: _readTensor(f) + [1, 2])(SCALAR)  # here


@WRONGS.add("a ndarray cannot stand in a kernel; wrap arrays in a Field and read them with `_readTensor`")
def array_operand():
    weights = np.ones(3)
    gp.operator(lambda f: _readTensor(f) * weights)(SCALAR)  # here


@WRONGS.add("a str cannot stand in a kernel")
def string_operand():
    gp.operator(lambda f: _readTensor(f) + "1")(SCALAR)  # here


@WRONGS.add("complex")
def complex_operand():
    gp.operator(lambda f: _readTensor(f) * 1j)(SCALAR)  # here


@WRONGS.add("_pow takes 2 arguments, not 1")
def argument_count():
    gp.operator(lambda f: _pow(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("kernel values have no dtype complex64")
def unknown_dtype():
    gp.operator(lambda f: _convert(_readTensor(f), "complex64"))(SCALAR)  # here


@WRONGS.add("float3 does not convert to float2")
def assign_other_length():
    @gp.operator
    def shortened(field):
        v = _float2Var()
        v @= _readTensor(field)  # here
        return v

    shortened(VECTOR3)


@WRONGS.add("a component is assigned twice")
def component_twice():
    @gp.operator
    def twice(field):
        v = _var(_readTensor(field))
        v.xx = v.yz  # here
        return v

    twice(VECTOR3)


@WRONGS.add("a Field is not a kernel value; read it with `_readTensor(f)`")
def unread_field():
    gp.operator(lambda f: _sqrt(f))(SCALAR)  # here


@WRONGS.add("a Field is not a kernel value; read it with `_readTensor(f)`")
def unread_field_in_arithmetic():
    gp.operator(lambda f, g: _readTensor(f) + g)(SCALAR, INTEGER)  # here


@WRONGS.add("size")
def reinterpretation():
    gp.operator(lambda f: _as_long(_readTensor(f)))(SCALAR)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()
