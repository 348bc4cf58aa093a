"""Wrong calls of operators, and wrong uses of fields: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import INTEGER, SCALAR, VECTOR2, VECTOR3, Wrongs

WRONGS = Wrongs()


# --- calling -----------------------------------------------------------------------------------------------------------------


@gp.operator
def scaled(field, factor=1):
    return _readTensor(field) * factor


@WRONGS.add("argument `factor` of operator `scaled` is an array; wrap it in a Field (`gp.ScalarField(a)`) or a `gp.Parameter`")
def array_argument():
    scaled(SCALAR, np.ones(3))  # here


@WRONGS.add("argument `field` of operator `scaled` is an array")
def array_instead_of_a_field():
    scaled(np.ones((4, 5), "f"))  # here


@WRONGS.add("argument `factor` of operator `scaled` is a list; it must be a Field, a Parameter or a hashable constant (a tuple instead of a list)")
def unhashable_constant():
    scaled(SCALAR, [1, 2])  # here


@WRONGS.add("operator `scaled`: missing a required argument: 'field'")
def missing_argument():
    scaled()  # here


@WRONGS.add("operator `scaled` is called with a kernel value for `field`; inside a body call plain Python functions")
def operator_in_a_body():
    gp.operator(lambda f: scaled(_readTensor(f)))(SCALAR)  # here


@WRONGS.add("operator `nothing` has no fields among its arguments: declare its outputs, as in `@gp.operator(outputs=gp.FieldType(…))`")
def no_fields():
    @gp.operator
    def nothing(n):
        return _row * n  # here

    nothing(3)


@WRONGS.add("an output is declared by a FieldType, not by a ScalarField; write `field.type`")
def field_as_an_output_type():
    with gp.GPUOperator(SCALAR):  # here
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


# --- fields and their algebra ----------------------------------------------------------------------------------------------------


@WRONGS.add("add: the grids differ, 4×5 and 5×4; they must be equal, or one side 0D")
def grids_differ():
    SCALAR + gp.ScalarField(np.ones((5, 4), "f"))  # here


@WRONGS.add("multiply: the tensors differ, 2 and 3; they must be equal, or one side scalar")
def tensors_differ():
    VECTOR2 * VECTOR3  # here


@WRONGS.add("add of a Field and an array: wrap it in a Field, as in `gp.ScalarField(a)`")
def field_and_array():
    SCALAR + np.ones((4, 5), "f")  # here


@WRONGS.add("add of a Field and an array: wrap it in a Field, as in `gp.ScalarField(a)`")
def array_and_field():
    np.ones((4, 5), "f") + SCALAR  # here


@WRONGS.add("add of a Field and a list")
def field_and_list():
    SCALAR + [1]  # here


@WRONGS.add("bitwise_and does not take float32 fields")
def bits_of_floats():
    SCALAR & SCALAR  # here


@WRONGS.add("add: the number 300 does not fit uint8")
def algebra_number_too_big():
    gp.ScalarField(np.zeros((4, 5), "u1")) + 300  # here


@WRONGS.add("the truth value of a 4×5 bool Field is ambiguous: only 0D scalars convert; use `.numpy()`")
def truth_of_a_field():
    if SCALAR == SCALAR.numpy()[0, 0]:  # here
        pass


@WRONGS.add("float() of a 4×5 float32 Field is ambiguous")
def float_of_a_field():
    float(SCALAR)  # here


@WRONGS.add("a Field cannot be iterated over; `.numpy()` gives an array")
def iterate_a_field():
    for row in SCALAR:  # here
        print(row)


@WRONGS.add("indexing a Field is not available in this version of gpuop: take an array, `f.numpy()[…]`")
def slice_a_field():
    SCALAR[::2]  # here


@WRONGS.add("Field.sum is not available in this version of gpuop; use `.numpy()` and NumPy")
def sum_a_field():
    SCALAR.sum()  # here


@WRONGS.add("a Field has no attribute 'shape'; its grid is in `.field_shape`, its tensor in `.tensor_shape`")
def shape_of_a_field():
    SCALAR.shape  # here


@WRONGS.add("a Field has no attribute 'nxt' to set; fields are immutable, `.next` and `.name` are all that can be set")
def misspelled_next():
    SCALAR.nxt = SCALAR + 1  # here


@WRONGS.add("a Field has no attribute 'dtype' to set")
def set_dtype():
    SCALAR.dtype = "int32"  # here


@WRONGS.add("a Field is immutable")
def assign_to_a_slice():
    SCALAR[0] = 1  # here


@WRONGS.add("numpy.dot does not take Fields; evaluate first, with `.numpy()`")
def numpy_function():
    np.dot(SCALAR, SCALAR)  # here


@WRONGS.add("numpy.add.reduce does not take Fields; evaluate first, with `.numpy()`")
def numpy_reduction():
    np.add.reduce(SCALAR)  # here


@WRONGS.add("numpy.gcd does not take Fields; evaluate first, with `.numpy()`")
def numpy_ufunc():
    np.gcd(INTEGER, 2)  # here


@WRONGS.add("fields are made of numbers, not of")
def field_of_strings():
    gp.ScalarField(["a", "b"])  # here


@WRONGS.add("an array of shape (4,) has no 2 tensor axes at its end")
def too_few_axes():
    gp.MatrixField(np.ones(4))  # here


@WRONGS.add("a field has at most 3 dimensions (layers, rows, columns), not 4: (1, 2, 2, 2)")
def too_many_dimensions():
    gp.ScalarField(np.ones((1, 2, 2, 2)))  # here


@WRONGS.add("a ColorField is made from uint8 of shape (rows, columns, 3 or 4), not from float64 of shape (4, 5, 3)")
def float_colours():
    gp.ColorField(np.ones((4, 5, 3)))  # here


@WRONGS.add("fields have no dtype 'complex128'; one of bool,")
def complex_dtype():
    gp.ScalarField(np.ones(3, "complex128"))  # here


@WRONGS.add("fields have no dtype 'float23'; one of bool,")
def unknown_dtype():
    SCALAR.type.replace(dtype="float23")  # here


@WRONGS.add("a shape has no negative extents: (-1, 3)")
def negative_shape():
    gp.FieldType((-1, 3))  # here


@WRONGS.add("this Parameter has shape (), the new value (2,); make another Parameter")
def parameter_shape():
    gp.Parameter(1.0).set([1, 2])  # here


@WRONGS.add("where of a Field takes three arguments: where(condition, a, b)")
def where_of_one():
    np.where(SCALAR > 1)  # here


@WRONGS.add("evaluate wants Fields, not a list")
def evaluate_a_list():
    gp.evaluate([SCALAR])  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()
