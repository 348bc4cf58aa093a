"""Wrong calls of operators: each message, and the line that it names."""

import functools

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()


@gp.operator
def scaled(field, factor=1):
    return _readTensor(field) * factor


BOUND = (
    "arrays and lists are constants that are compiled in, of at most 4096; "
    "make it a Field (`gp.ScalarField(a)`) or a `gp.Parameter`"
)


UNKNOWN = 'there is no precision \'quick\'; one of "exact", "contract" and "fast"'


@WRONGS.add(UNKNOWN)
def unknown_precision_of_an_operator():
    gp.operator(precision="quick")  # here


@WRONGS.add(UNKNOWN)
def unknown_precision_of_a_recorded_block():
    with gp.GPUOperator(SCALAR.type, precision="quick"):  # here
        pass


@WRONGS.add(UNKNOWN)
def unknown_precision_of_a_graph():
    gp.ComputeGraph(precision="quick")  # here


@WRONGS.add(UNKNOWN)
def unknown_precision_of_a_pipeline():
    gp.pipeline(precision="quick")  # here


@WRONGS.add(UNKNOWN)
def unknown_precision():
    gp.precision("quick")  # here


@WRONGS.add("an operator has one precision in all of its body: put `with gp.precision(…):` around its call")
def precision_in_a_body():
    def body(field):
        with gp.precision("fast"):  # here
            return _readTensor(field) * 2

    gp.operator(body)(SCALAR)


@WRONGS.add(f"argument `factor` of operator `scaled` has 4097 numbers: {BOUND}")
def long_array_argument():
    scaled(SCALAR, np.ones(4097))  # here


@WRONGS.add(
    f"argument `factor` of operator `scaled` has 4225 numbers: {BOUND}; sums with so many weights are "
    '`gpuop.ndimage.convolve(f, weights, method="fft")`'
)
def many_weights():
    scaled(SCALAR, np.ones((65, 65)))  # here


@WRONGS.add(f"argument `factor` of operator `scaled` has 307200 numbers: {BOUND}\n")
def a_picture_as_an_argument():
    scaled(SCALAR, np.ones((480, 640), "f"))  # here


@WRONGS.add(f"argument `factor` of operator `scaled` has 5000 numbers: {BOUND}")
def long_list_argument():
    scaled(SCALAR, [[1, 2]] * 2500)  # here


@WRONGS.add("argument `factor[1]` of operator `scaled` is an array of object, not of numbers")
def array_of_objects():
    scaled(SCALAR, [1, np.array([None, 2])])  # here


@WRONGS.add("reads want a Field, not an ndarray; wrap arrays, as in `gp.ScalarField(array)`")
def array_instead_of_a_field():
    gp.operator(lambda field, other: _readTensor(field))(np.ones((4, 5), "f"), SCALAR)  # here


@WRONGS.add(
    "argument `factor` of operator `scaled` is a set; it must be a Field, a Parameter, numbers "
    "(also in lists, tuples and arrays), or another constant that Python can hash"
)
def unhashable_constant():
    scaled(SCALAR, {1, 2})  # here


@WRONGS.add("an output is declared by a FieldType, not by an int; write `field.type`, or `gp.FieldType((8, 8))`")
def shape_as_an_output_type():
    gp.operator(outputs=(8, 8))(lambda f: _readTensor(f))(SCALAR)  # here


OF_ONE_POINT = "functions of gpuop take whole fields, and a recorded value is that of one point: call them with the field, and read"
INDEXED = (
    "NumPy does not compute with a recorded value, or index an array by it: it exists only on the device; `table = "
    "_constantArray(array)` makes a table for computed indices, as in `table[i]`; `_where(c, a, b)` chooses"
)


@WRONGS.add(INDEXED)
def array_at_a_recorded_index():
    gp.operator(lambda f, w: _readTensor(f) * w[_column])(SCALAR, np.arange(5))  # here


@WRONGS.add(
    "functions of gpuop take whole fields, and a recorded value is that of one point: call them with the field, and read the result"
)
def smoothed_point():
    gp.operator(lambda f: gp.ndimage.gaussian_filter(_readTensor(f), 1))(SCALAR)  # here


@WRONGS.add(
    "functions of gpuop take whole fields, and a recorded value is that of one point: call them with the field, and read the result"
)
def determinant_of_a_point():
    gp.operator(lambda f: gp.linalg.det(_readTensor(f)))(SCALAR)  # here


@WRONGS.add(
    "functions of gpuop take whole fields, and a recorded value is that of one point: call them with the field, and read the result"
)
def transformed_point():
    gp.operator(lambda f: gp.fft.fft(_readTensor(f)))(SCALAR)  # here


@WRONGS.add(
    "operator `<lambda>` returns a list in a list; it returns kernel values, or nothing after `_writeTensor`; a matrix is written"
)
def matrix_of_lists():
    gp.operator(lambda f: [[_readTensor(f), 0.0], [0.0, 1.0]])(SCALAR)  # here


@WRONGS.add(INDEXED)
def matrix_at_a_recorded_index():
    gp.operator(lambda f, w: _readTensor(f) * w[0, _column % 3])(SCALAR, np.ones((3, 3)))  # here


@WRONGS.add(
    "a recorded value is not a Python integer: it exists only on the device; "
    "use `with _for(n) as i:`, or a table for computed indices, as `_constantArray(values)` makes"
)
def list_at_a_recorded_index():
    gp.operator(lambda f, w: _readTensor(f) * w[_column])(SCALAR, [1, 2, 3])  # here


@WRONGS.add(
    "an ndarray cannot stand in a kernel; "
    "wrap arrays in a Field and read them with `_readTensor`, or index them with Python integers"
)
def array_as_a_value():
    gp.operator(lambda f, w: _readTensor(f) * w)(SCALAR, np.ones(3))  # here


@WRONGS.add("operator `scaled`: missing a required argument: 'field'")
def missing_argument():
    scaled()  # here


@WRONGS.add("operator `scaled`: got an unexpected keyword argument 'image'")
def unknown_argument():
    scaled(image=SCALAR)  # here


@WRONGS.add("operator `scaled` is called with a kernel value for `field`; inside a body call plain Python functions")
def operator_in_a_body():
    gp.operator(lambda f: scaled(_readTensor(f)))(SCALAR)  # here


@WRONGS.add(
    "operator `nothing` has no fields among its arguments: declare its outputs, as in `@gp.operator(outputs=gp.FieldType(…))`"
)
def no_fields():
    @gp.operator
    def nothing(n):
        return _row * n  # here

    nothing(3)


ARRAY = (
    "operator `brighter` has no fields among its arguments: `{0}` is an array, which is a constant; pass `gp.ScalarField({0})`, "
    "or declare its outputs, as in `@gp.operator(outputs=gp.FieldType(…))`"
)


@gp.operator
def brighter(image):
    return _readTensor(image, _row, _column + 1) + 1


@WRONGS.add("reads want a Field, not an argument of a pipeline; wrap arrays, as in `gp.ScalarField(array)`")
def read_of_an_argument_of_a_pipeline():
    twice = gp.operator(lambda image: _readTensor(image) * 2)
    gp.pipeline(lambda photo: twice(photo))(np.ones((3, 4), "f"))  # here


@WRONGS.add(ARRAY.format("image"))
def list_for_a_field():
    brighter([[1.0, 2.0], [3.0, 4.0]])  # here


@WRONGS.add(ARRAY.format("image"))
def array_for_a_field():
    brighter(np.ones((3, 4), "f"))  # here


@WRONGS.add(ARRAY.format("image"))
def argument_of_a_pipeline_for_a_field():
    @gp.pipeline
    def bright(photo):
        return brighter(photo)  # here

    bright(np.ones((3, 4), "f"))


@WRONGS.add("an output is declared by a FieldType, not by a ScalarField; write `field.type`")
def field_as_an_output_type():
    with gp.GPUOperator(SCALAR):  # here
        _writeTensor(_out0, 1)


@WRONGS.add("`default=` has 1 values, and the outputs are 2")
def too_few_defaults():
    with gp.GPUOperator(SCALAR.type, SCALAR.type, default=(0,)):  # here
        _writeTensor(_out0, 1)


@WRONGS.add("the outputs of a GPUOperator exist after its `with` block")
def output_too_early():
    with gp.GPUOperator(SCALAR.type) as op:
        _writeTensor(_out0, 1)
        op.output  # here


@WRONGS.add("this GPUOperator has 2 outputs; use `.outputs`")
def output_of_two():
    with gp.GPUOperator(SCALAR.type, SCALAR.type) as op:
        _writeTensor(_out0, 1)
        _writeTensor(_out1, 1)
    op.output  # here


@WRONGS.add("an operator is made of a Python function, not of a partial; write a `def`")
def operator_of_a_partial_of_a_builtin():
    gp.operator(functools.partial(max, 1))  # here


@WRONGS.add("a pipeline is made of a Python function, not of an int; write a `def`")
def pipeline_of_a_number():
    gp.pipeline(3)  # here


@WRONGS.add("an operator has 1 to 10 outputs, not 11")
def too_many_outputs():
    with gp.GPUOperator(*[SCALAR.type] * 11):  # here
        pass


@WRONGS.add("an operator has 1 to 10 outputs, not 11")
def too_many_values():
    @gp.operator
    def eleven(field):
        return (_readTensor(field),) * 11  # here

    eleven(SCALAR)


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()
