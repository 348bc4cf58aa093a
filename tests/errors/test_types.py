"""Kernel values of the wrong type: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import INTEGER, SCALAR, VECTOR2, VECTOR3, Wrongs

WRONGS = Wrongs()


# --- types --------------------------------------------------------------------------------------------------------------


@WRONGS.add("`+`: vectors of different lengths, float2 and float3; take components (`v.xy`) or use scalars")
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


@WRONGS.add("a float3 has no component 3: its components are 0 … 2")
def component_out_of_range():
    gp.operator(lambda f: _readTensor(f)[3])(VECTOR3)  # here


@WRONGS.add("a vector is indexed by a Python integer")
def computed_component():
    gp.operator(lambda f: _readTensor(f)[_column])(VECTOR3)  # here


@WRONGS.add("a vector is indexed by a Python integer; name several components, as in `v.xy`")
def component_slice():
    gp.operator(lambda f: _readTensor(f)[:2])(VECTOR3)  # here


@WRONGS.add("a kernel value has no attribute 'conj'; of a complex number, a pair of floats, it is `_complexConj(z)`")
def conjugate_as_a_method():
    gp.operator(lambda f: _readTensor(f).conj())(VECTOR2)  # here


@WRONGS.add("a kernel value has no attribute 'sqrt'")
def unknown_attribute():
    gp.operator(lambda f: _readTensor(f).sqrt())(SCALAR)  # here


@WRONGS.add("_float3 has 3 components, but its arguments have 2")
def too_few_components():
    gp.operator(lambda f: _float3(_readTensor(f), 1.0))(SCALAR)  # here


@WRONGS.add("_float3 has 3 components, but its arguments have 4")
def too_many_components():
    gp.operator(lambda f: _float3(_readTensor(f), 1.0))(VECTOR3)  # here


@WRONGS.add(
    "`~` wants integers or bools, not float; it binds more closely than comparisons do, so write "
    "`(x > a) & (x < b)`; `_convert_int(x)` converts"
)
def invert_float():
    gp.operator(lambda f: ~_readTensor(f))(SCALAR)  # here


@WRONGS.add("`&` wants integers or bools")
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
    gp.operator(lambda f: _readTensor(f) - [1, 2])(SCALAR)  # here


@WRONGS.add("an ndarray cannot stand in a kernel; wrap arrays in a Field and read them with `_readTensor`")
def array_operand():
    weights = np.ones(3)
    gp.operator(lambda f: _readTensor(f) * weights)(SCALAR)  # here


@WRONGS.add("a str cannot stand in a kernel; a kernel computes with numbers")
def string_operand():
    gp.operator(lambda f: _readTensor(f) + "1")(SCALAR)  # here


@WRONGS.add("Python cannot format a recorded value, which exists only on the device; `_print(format, x)` prints there")
def formatted_value():
    gp.operator(lambda f: f"{_readTensor(f):.3f}" and 1)(SCALAR)  # here


@WRONGS.add("a complex number stands beside `_mul`: `*` multiplies pairs part by part; `_complexMul(a, b)` multiplies")
def complex_operand():
    gp.operator(lambda f: _readTensor(f) * 1j)(SCALAR)  # here


@WRONGS.add(
    "a complex number stands beside `_lt`: functions take pairs part by part; write it as `_float2(real, imaginary)` where"
)
def complex_compared():
    gp.operator(lambda f: _where(_readTensor(f) < 1j, 1, 0))(VECTOR2)  # here


@WRONGS.add(
    "a complex number stands beside `_div`: `/` divides pairs part by part; `_complexDiv(a, b)` divides complex numbers"
)
def divided_by_a_complex_parameter():
    gp.operator(lambda f, p: _readTensor(f) / p)(VECTOR2, gp.Parameter(2j))  # here


@WRONGS.add("_pow takes 2 arguments, not 1")
def argument_count():
    gp.operator(lambda f: _pow(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("kernel values have no dtype complex64")
def unknown_dtype():
    gp.operator(lambda f: _convert(_readTensor(f), "complex64"))(SCALAR)  # here


@WRONGS.add(
    "a float3 does not convert to int: the lengths differ; take a component (`v.x`), or convert all of them with "
    "`_convert_int3(x)`"
)
def conversion_of_a_vector_to_a_scalar():
    gp.operator(lambda f: _convert_int(_float3(_readTensor(f), 1, 2)))(SCALAR)  # here


@WRONGS.add(
    "`total` is a float variable since tests/errors/test_types.py:171, and a float3 does not convert to float: declare "
    "`total = _var(_float3(0.0, 0.0, 0.0))`, or `_tensorVar(field)` for the tensors of any field, or take components, as `v.x`"
)
def number_that_colours_are_added_to():
    @gp.operator
    def summed(field):
        total = _var(0.0)
        total += _readTensor(field)  # here
        return total

    summed(VECTOR3)


@WRONGS.add("a float3 does not convert to float2: declare `v = _var(_float3(0.0, 0.0, 0.0))`")
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


@WRONGS.add("a 4×5 float32 Field is not a kernel value; read it with `_readTensor(f)`")
def unread_field():
    gp.operator(lambda f: _sqrt(f))(SCALAR)  # here


@WRONGS.add("a 4×5 int32 Field is not a kernel value; read it with `_readTensor(f)`")
def unread_field_in_arithmetic():
    gp.operator(lambda f, g: _readTensor(f) + g)(SCALAR, INTEGER)  # here


@WRONGS.add(
    "a float has not as many bits as a long: reinterpretation keeps the size of every component; `_convert_long(x)` converts"
)
def reinterpretation():
    gp.operator(lambda f: _as_long(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("an ArrayVariable cannot stand in a kernel; read its elements, as in `a[i]`")
def array_in_arithmetic():
    gp.operator(lambda f: _readTensor(f) + _floatArray(3))(SCALAR)  # here


@WRONGS.add("None cannot stand in a kernel; did a function forget its `return`?")
def helper_without_return():
    def gamma(x):
        _sqrt(x)

    gp.operator(lambda f: _readTensor(f) + gamma(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("a variable for tensors takes its type from a Field, not from a Value; `_var(x)` copies a value")
def variable_like_a_value():
    gp.operator(lambda f: _tensorVar(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("`_forEachTensorElement` takes a tensor's shape, as `f.tensor_shape`; count with `_for`")
def computed_tensor_shape():
    with gp.GPUOperator(SCALAR.type):
        with _forEachTensorElement(_row):  # here
            pass


@WRONGS.add("a vector has up to 4 components, not 5")
def long_vector():
    gp.operator(lambda f: _vector(1, 2, 3, 4, _readTensor(f)))(SCALAR)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()
