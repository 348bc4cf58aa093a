"""Wrong pointers and atomics: each message, and the line that it names."""

import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import INTEGER, SCALAR, Wrongs

WRONGS = Wrongs()


@WRONGS.add("`_pointerTo` takes a variable, an array's element written in it (`_pointerTo(a[i])`) or an output, not ")
def pointer_to_an_expression():
    with gp.GPUOperator(INTEGER.type):
        x = _intVar()
        _atomic_add(_pointerTo(x + 1), 1)  # here


@WRONGS.add("`_pointerTo` takes a variable, an array's element written in it (`_pointerTo(a[i])`) or an output, not ")
def pointer_to_a_named_element():
    with gp.GPUOperator(INTEGER.type):
        a = _intArray(4)
        x = a[1]
        _atomic_add(_pointerTo(x), 1)  # here


@WRONGS.add("(components of vectors have no pointer)")
def pointer_to_a_component():
    with gp.GPUOperator(INTEGER.type):
        v = _int2Var()
        _atomic_add(_pointerTo(v.x), 1)  # here


@WRONGS.add(
    "`_pointerTo` takes a variable, an array's element written in it (`_pointerTo(a[i])`) or an output, not the array `a`"
)
def pointer_to_an_array():
    with gp.GPUOperator(INTEGER.type):
        a = _intArray(4)
        _atomic_add(_pointerTo(a), 1)  # here


@WRONGS.add("`_pointerTo` takes a variable, an array's element written in it (`_pointerTo(a[i])`) or an output, not ")
def pointer_to_an_input():
    @gp.operator
    def wrong(field):
        _atomic_add(_pointerTo(field), 1)  # here

    wrong(INTEGER)


@WRONGS.add(
    "`_pointerTo` takes coordinates after an output only; an element of an array is written in brackets, `a[i, j]`"
)
def coordinates_of_an_array():
    with gp.GPUOperator(INTEGER.type):
        a = _intArray(4, 4)
        _atomic_add(_pointerTo(a, 1, 2), 1)  # here


@WRONGS.add("_out0 is 2D: give (row, column), or no coordinates, not 1")
def too_few_coordinates():
    with gp.GPUOperator(INTEGER.type):
        _atomic_add(_pointerTo(_out0, 1), 1)  # here


@WRONGS.add("_out0 has tensors of 3 elements: name the element too")
def no_element():
    with gp.GPUOperator(gp.FieldType((4, 5), 3, "int32")):
        _atomic_add(_pointerTo(_out0, 1, 2), 1)  # here


@WRONGS.add("_out0 has no tensor element 3: its tensors have elements 0 … 2")
def an_element_that_is_not_there():
    with gp.GPUOperator(gp.FieldType((4, 5), 3, "int32")):
        _atomic_add(_pointerTo(_out0, 1, 2, 3), 1)  # here


@WRONGS.add("operator `wrong` has no _out1")
def an_output_that_is_not_there():
    @gp.operator
    def wrong(field):
        _atomic_add(_pointerTo(_out1, 1, 2), 1)  # here

    wrong(INTEGER)


@WRONGS.add("_atomic_add takes a pointer, as `_atomic_add(_pointerTo(v)…)`, not ")
def no_pointer():
    with gp.GPUOperator(INTEGER.type):
        x = _intVar()
        _atomic_add(x, 1)  # here


@WRONGS.add("_atomic_cmpxchg takes a pointer and 2 operands, not 1")
def too_few_operands():
    with gp.GPUOperator(INTEGER.type):
        _atomic_cmpxchg(_pointerTo(_out0, 0, 0), 1)  # here


@WRONGS.add("_atomic_inc takes a pointer and 0 operands, not 1")
def too_many_operands():
    with gp.GPUOperator(INTEGER.type):
        _atomic_inc(_pointerTo(_out0, 0, 0), 1)  # here


@WRONGS.add("_atomic_and works on int, uint, long, ulong, not on a float")
def atomics_on_floats():
    with gp.GPUOperator(SCALAR.type):
        _atomic_and(_pointerTo(_out0, 0, 0), 1)  # here


@WRONGS.add("_atomic_add works on int, uint, long, ulong, float, double, not on a short")
def atomics_on_shorts():
    with gp.GPUOperator(SCALAR.type):
        shared = _local(_shortVar())
        _atomic_add(_pointerTo(shared), 1)  # here


@WRONGS.add("_atomic_or works on int, uint, long, ulong, not on an int4")
def atomics_on_vectors():
    with gp.GPUOperator(SCALAR.type):
        v = _int4Array(3)
        _atomic_or(_pointerTo(v[0]), 1)  # here


@WRONGS.add("`colour` is a float3; use an array")
def atomics_on_local_vectors():
    with gp.GPUOperator(SCALAR.type):
        colour = _local(_float3Var())
        _atomic_add(_pointerTo(colour), 1)  # here


@WRONGS.add("_atomic_add on an int takes an int, not a float; convert it first")
def float_to_int():
    @gp.operator
    def wrong(field):
        _atomic_add(_pointerTo(_out0, 0, 0), _readTensor(field) * 0.5)  # here

    wrong(INTEGER)


@WRONGS.add("_atomic_add on an int takes an int, not a float; convert it first")
def float_number_to_int():
    @gp.operator
    def wrong(field):
        _atomic_add(_pointerTo(_out0, 0, 0), 0.5)  # here

    wrong(INTEGER)


@WRONGS.add("-1 does not fit uint")
def number_that_does_not_fit():
    with gp.GPUOperator(gp.FieldType((4, 5), (), "uint32")):
        _atomic_add(_pointerTo(_out0, 0, 0), -1)  # here


@WRONGS.add("`table` is a constant table, which atomics cannot change")
def atomics_on_a_table():
    with gp.GPUOperator(INTEGER.type):
        table = _constantArray([1, 2, 3])
        _atomic_add(_pointerTo(table[1]), 1)  # here


@WRONGS.add("pointers are only for the atomic functions")
def pointer_arithmetic():
    with gp.GPUOperator(INTEGER.type):
        x = _intVar()
        x += _pointerTo(x)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message_and_line(wrong):
    wrong.check()
