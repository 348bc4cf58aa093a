"""Wrong tables and formats: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()


# --- tables -----------------------------------------------------------------------------------------------------------


@WRONGS.add("`table` is a constant table; copy what changes into an array, as `_floatArray(n)`")
def written_table():
    with gp.GPUOperator(SCALAR.type):
        table = _constantArray([1.0, 2.0])
        table[0] = 3  # here


@WRONGS.add("`table` is a constant table; copy what changes into an array, as `_floatArray(n)`")
def updated_table():
    with gp.GPUOperator(SCALAR.type):
        table = _constantArray([1.0, 2.0])
        table[0] += 3  # here


@WRONGS.add("a constant table is made of numbers that are known in Python, not of recorded values")
def table_of_values():
    with gp.GPUOperator(SCALAR.type):
        _constantArray([_row, _column])  # here


@WRONGS.add(
    "a constant table is made of numbers that are known in Python, not of a ScalarField; read Fields with `_readTensor`"
)
def table_of_a_field():
    with gp.GPUOperator(SCALAR.type):
        _constantArray(SCALAR)  # here


@WRONGS.add("a constant table is made of lists of one length")
def ragged_table():
    with gp.GPUOperator(SCALAR.type):
        _constantArray([[1, 2], [3]])  # here


@WRONGS.add("a constant table is made of numbers that are known in Python, not of str")
def table_of_text():
    with gp.GPUOperator(SCALAR.type):
        _constantArray(["a", "b"])  # here


@WRONGS.add("a constant table has 1 to 3 dimensions and is not empty, unlike one of shape (0,)")
def empty_table():
    with gp.GPUOperator(SCALAR.type):
        _constantArray([])  # here


@WRONGS.add("a constant table has 1 to 3 dimensions and is not empty, unlike one of shape (1, 1, 1, 1)")
def four_dimensions():
    with gp.GPUOperator(SCALAR.type):
        _constantArray([[[[1]]]])  # here


@WRONGS.add(
    "the constant tables of a kernel hold 64512 bytes, not 65536; read a Field instead; sums with so many weights are"
)
def large_table():
    with gp.GPUOperator(SCALAR.type):
        _constantArray(np.zeros((128, 128), "int32"))  # here


@WRONGS.add("the constant tables of a kernel hold 64512 bytes, not 80000; read a Field instead")
def large_tables():
    with gp.GPUOperator(SCALAR.type):
        for _ in range(2):
            _constantArray(np.zeros(10000, "int32"))  # here


@WRONGS.add("does not fit an int; give it a dtype, as `np.array(values, dtype)`")
def large_numbers():
    with gp.GPUOperator(SCALAR.type):
        _constantArray([1, 2**40])  # here


@WRONGS.add("index 3 is outside array `table`, whose extent is 3")
def index_outside_a_table():
    with gp.GPUOperator(SCALAR.type):
        table = _constantArray([1, 2, 3])
        table[3]  # here


# --- printing ---------------------------------------------------------------------------------------------------------


@WRONGS.add("`_print` has no value for the conversion '%d' in 'x = %d\\n'")
def print_too_few():
    with gp.GPUOperator(SCALAR.type):
        _print("x = %d\n")  # here


@WRONGS.add("`_print` has 1 more value than conversions in 'x\\n'")
def print_too_many():
    with gp.GPUOperator(SCALAR.type):
        _print("x\n", _row)  # here


@WRONGS.add("'%d' does not print a float; write '%g'")
def print_a_float_as_integer():
    with gp.GPUOperator(SCALAR.type):
        _print("%d\n", _var(0.5))  # here


@WRONGS.add("'%g' does not print an int; write '%d'")
def print_an_integer_as_float():
    with gp.GPUOperator(SCALAR.type):
        _print("%g\n", _row)  # here


@WRONGS.add("`_print` has no conversion '%s', but %d %i")
def print_text():
    with gp.GPUOperator(SCALAR.type):
        _print("%s\n", 3)  # here


@WRONGS.add(r"`_print` cannot write the character '\udcff' of '\udcff: %d'; leave it out")
def half_a_character_printed():
    with gp.GPUOperator(SCALAR.type):
        _print("\udcff: %d", 3)  # here


@WRONGS.add(r"`_print` cannot write the character '\x00' of 'x\x00%d'; leave it out")
def a_nul_printed():
    with gp.GPUOperator(SCALAR.type):
        _print("x\0%d", 3)  # here


@WRONGS.add("`_print` has no conversion '%', but ")
def print_a_lone_percent_sign():
    with gp.GPUOperator(SCALAR.type):
        _print("100%", 3)  # here


@WRONGS.add("a percent sign is written `%%`")
def print_a_percent_sign_without_value():
    with gp.GPUOperator(SCALAR.type):
        _print("100%\n")  # here


@WRONGS.add('`_print` takes a format first, as `_print("x = %g\\n", x)`')
def print_without_format():
    with gp.GPUOperator(SCALAR.type):
        _print(_row)  # here


@WRONGS.add("`_print` has no conversion '%*', but ")
def print_with_a_width_among_the_values():
    with gp.GPUOperator(SCALAR.type):
        _print("%*d\n", 3, _row)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message_and_line(wrong):
    wrong.check()


def test_print_and_barriers_belong_in_bodies():
    for function in (lambda: _print("x\n"), _syncThreadsLocal, lambda: _constantArray([1]), lambda: _localThreads(4)):
        with pytest.raises(gp.SemanticError, match="belongs in an operator's body"):
            function()
