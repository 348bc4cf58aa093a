"""Wrong arguments of the integer and relational functions: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.builtins import functions as table

from .wrong import INTEGER, SCALAR, VECTOR2, VECTOR3, Wrongs

WRONGS = Wrongs()
LONGS = gp.ScalarField(np.arange(20).reshape(4, 5))
UNSIGNED = gp.VectorField(np.ones((4, 5, 2), "u4"))


@WRONGS.add("_hadd wants integers, not float and int; convert first, as in `_convert_int(x)`")
def integer_function_of_floats():
    gp.operator(lambda f, g: _hadd(_readTensor(f), _readTensor(g)))(SCALAR, INTEGER)  # here


@WRONGS.add("_clz wants integers, not float; convert first, as in `_convert_int(x)`")
def row_of_floats():
    gp.operator(lambda f: _clz(_readTensor(f)))(SCALAR)  # here


@WRONGS.add(
    "_abs wants integers, not float3; of floats it is `_fabs(x)`, or `abs(x)`, of complex numbers `_complexAbs(z)`; or convert"
)
def abs_of_floats():
    gp.operator(lambda f: _abs(_readTensor(f)))(VECTOR3)  # here


@WRONGS.add("_rotate wants integers, not float; convert first")
def rotate_by_floats():
    gp.operator(lambda f: _rotate(_readTensor(f), 1.5))(INTEGER)  # here


@WRONGS.add("_mad_sat wants integers, not int and int and float")
def integer_function_of_a_fraction():
    gp.operator(lambda f: _mad_sat(_readTensor(f), _readTensor(f), 0.5))(INTEGER)  # here


@WRONGS.add("_mul24 wants ints or uints, not long and long; convert first, as in `_convert_int(x)`, or write `x * y`")
def mul24_of_longs():
    gp.operator(lambda f: _mul24(_readTensor(f), _readTensor(f)))(LONGS)  # here


@WRONGS.add("_add_sat takes 2 arguments, not 1")
def too_few_arguments():
    gp.operator(lambda f: _add_sat(_readTensor(f)))(INTEGER)  # here


@WRONGS.add("_complexMul wants complex numbers, vectors of real and imaginary part, or real scalars, not a float3")
def complex_function_of_three():
    gp.operator(lambda f: _complexMul(_readTensor(f), 2))(VECTOR3)  # here


@WRONGS.add("_isnan takes 1 argument, not 2")
def too_many_arguments():
    gp.operator(lambda f: _isnan(_readTensor(f), 1))(SCALAR)  # here


@WRONGS.add("_isless: vectors of different lengths, float2 and float3; take components (`v.xy`) or use scalars")
def lengths():
    gp.operator(lambda f, g: _isless(_readTensor(f), _readTensor(g)))(VECTOR2, VECTOR3)  # here


@WRONGS.add("_any wants bools or signed integers, not a float3; compare first, as in `_any(x > 0)`")
def any_of_floats():
    gp.operator(lambda f: _any(_readTensor(f)))(VECTOR3)  # here


@WRONGS.add("_all wants bools or signed integers, not a uint2; compare first, as in `_all(x > 0)`")
def all_of_unsigned():
    gp.operator(lambda f: _all(_readTensor(f)))(UNSIGNED)  # here


@WRONGS.add("_bitselect wants three operands of one integer or floating type, not float, float and int")
def bitselect_of_types():
    gp.operator(lambda f, g: _bitselect(_readTensor(f), _readTensor(f), _readTensor(g)))(SCALAR, INTEGER)  # here


@WRONGS.add("_bitselect wants three operands of one integer or floating type, not bool, bool and bool")
def bitselect_of_bools():
    gp.operator(lambda f: _bitselect(_readTensor(f) > 0, _readTensor(f) > 1, _readTensor(f) > 2))(SCALAR)  # here


@WRONGS.add("the condition of _select is of bools or integers, not a float; compare, as in `x > 0`")
def select_by_floats():
    gp.operator(lambda f: _select(1, 2, _readTensor(f)))(SCALAR)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()


@pytest.mark.parametrize("entry", [e for e in table.table() if e.group == "integer"], ids=lambda e: e.name)
def test_no_integer_function_takes_floats(entry):
    with gp.use_device("reference"), pytest.raises(gp.SemanticError, match=f"{entry.name} wants int"):
        gp.operator(lambda f: getattr(gp.dsl, entry.name)(*[_readTensor(f)] * entry.arity))(SCALAR)
