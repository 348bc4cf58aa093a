"""Wrong reads, writes, outputs, operators and fields: each message, and the line that it names."""

import numpy as np
import pytest
from wrong import BIG, INTEGER, SCALAR, VECTOR2, VECTOR3, Wrongs

import gpuop as gp
from gpuop.dsl import *

WRONGS = Wrongs()


# --- reading -----------------------------------------------------------------------------------------------------------


@WRONGS.add("`_readTensor` belongs in an operator's body: a function under `@gp.operator`, or a `with gp.GPUOperator(…)` block")
def read_outside():
    _readTensor(SCALAR)  # here


@WRONGS.add("belongs in an operator's body")
def thread_constant_outside():
    _row + 1  # here


@WRONGS.add("belongs in an operator's body")
def block_outside():
    with _for(3):  # here
        pass


@WRONGS.add("belongs in an operator's body")
def variable_outside():
    _floatVar()  # here


@WRONGS.add("`f` has 2 dimensions (row, column): give 2 coordinates or none, not 1")
def index_count():
    gp.operator(lambda f: _readTensor(f, _column))(SCALAR)  # here


@WRONGS.add("a coordinate of `f` is a scalar integer, not a float; convert with `_convert_int(x)`")
def float_index():
    gp.operator(lambda f: _readTensor(f, _row / 2.0, _column))(SCALAR)  # here


@WRONGS.add("`f` has big tensors (7 elements); read elements with `_readTensorElement(f, …, element)`")
def whole_read_of_a_big_tensor():
    gp.operator(lambda f: _readTensor(f))(BIG)  # here


@WRONGS.add("border='mirror' is none of clamp, zero, wrap, reflect, symmetric, unchecked, or a number")
def unknown_border():
    gp.operator(lambda f: _readTensor(f, _row, _column + 1, border="mirror"))(SCALAR)  # here


@WRONGS.add("border=1.5 does not fit the field's dtype, int32")
def border_does_not_fit():
    gp.operator(lambda f: _readTensor(f, _row, _column + 1, border=1.5))(INTEGER)  # here


@WRONGS.add("`f` has no tensor element 3: its tensors have 3")
def element_outside():
    gp.operator(lambda f: _readTensorElement(f, 3))(VECTOR3)  # here


@WRONGS.add("_out0 is write-only; keep what you wrote in a variable, or read it in a following operator")
def read_an_output():
    @gp.operator
    def twice(field):
        _writeTensor(_out0, _readTensor(field))
        _writeTensor(_out0, _readTensor(_out0) * 2)  # here

    twice(SCALAR)


@WRONGS.add("_out0 is write-only")
def output_in_arithmetic():
    @gp.operator
    def twice(field):
        _writeTensor(_out0, _readTensor(field))
        _writeTensor(_out0, _sqrt(_out0))  # here

    twice(SCALAR)


@WRONGS.add("reads want a Field, not an ndarray; wrap arrays, as in `gp.ScalarField(array)`")
def read_an_array():
    gp.operator(lambda f: _readTensor(f) + _readTensor(np.zeros((4, 5)), 0, 0))(SCALAR)  # here


@WRONGS.add("`g` is 3×5, the threads are 4×5: own points do not match; give coordinates to read at")
def other_grid():
    gp.operator(lambda f, g: _readTensor(f) + _readTensor(g))(SCALAR, gp.ScalarField(np.ones((3, 5), "f")))  # here


@WRONGS.add("_sampleTensor is not available in this version of gpuop")
def not_yet():
    import gpuop.dsl

    gpuop.dsl._sampleTensor(SCALAR, 0.5, 0.5)  # here


# --- writing -------------------------------------------------------------------------------------------------------------


@WRONGS.add("operator `forgotten` never writes its output _out0; add `_writeTensor(_out0, …)`, or return a value")
def forgotten_output():
    @gp.operator
    def forgotten(field):  # here
        x = _var(_readTensor(field))
        x += 1

    forgotten(SCALAR)


@WRONGS.add("never writes its output _out1; add `_writeTensor(_out1, …)`, or declare fewer outputs")
def forgotten_second_output():
    with gp.GPUOperator(SCALAR.type, SCALAR.type):  # here
        _writeTensor(_out0, _readTensor(SCALAR))


@WRONGS.add("_out0 is not written on every path through `some`; write it in the other branch too, or give the output a `default=`")
def not_on_every_path():
    @gp.operator
    def some(field):
        x = _readTensor(field)
        with _if(x > 1):
            _writeTensor(_out0, x)  # here
        with _elseif(x > 0):
            _writeTensor(_out0, 0)

    some(SCALAR)


@WRONGS.add("a float is written to _out0, which is int32 by default: convert it (`_convert_int(v)`), or declare `outputs=`")
def float_to_a_defaulted_int():
    @gp.operator
    def half(field):
        _writeTensor(_out0, _readTensor(field) * 0.5)  # here

    half(INTEGER)


@WRONGS.add("a scalar is written to _out0, whose default type is 4×5 float32[3]: declare `outputs=`, or spread it")
def scalar_to_a_defaulted_vector():
    @gp.operator
    def red(field):
        _writeTensor(_out0, _readTensor(field).x)  # here

    red(VECTOR3)


@WRONGS.add("a float3 is written to _out0, whose tensors have 1 element (4×5 float32); declare the output's type")
def vector_to_a_scalar():
    with gp.GPUOperator(SCALAR.type):
        _writeTensor(_out0, _readTensor(VECTOR3))  # here


@WRONGS.add("_out0 has big tensors (7 elements); write them with `_writeTensorElement(_out0, value, element)`")
def whole_write_of_a_big_tensor():
    with gp.GPUOperator(BIG.type):
        _writeTensor(_out0, 0.0)  # here


@WRONGS.add("operator `one` has no _out3: its only output is _out0; declare more output types")
def no_such_output():
    @gp.operator
    def one(field):
        _writeTensor(_out3, _readTensor(field))  # here

    one(SCALAR)


@WRONGS.add("writes want an output, `_out0` … `_out9`, not a ScalarField: Fields are immutable")
def write_to_a_field():
    @gp.operator
    def overwrite(field):
        _writeTensor(field, 1)  # here

    overwrite(SCALAR)


@WRONGS.add("operator `both` both writes outputs and returns a value; do one of them")
def write_and_return():
    @gp.operator
    def both(field):
        _writeTensor(_out0, 1)
        return _readTensor(field)  # here

    both(SCALAR)


@WRONGS.add("operator `broken` returns a dict; it returns kernel values, or nothing after `_writeTensor`")
def return_a_dict():
    @gp.operator
    def broken(field):
        return {"x": _readTensor(field)}  # here

    broken(SCALAR)


@WRONGS.add("operator `pair` returns 1 value for 2 declared outputs")
def returned_count():
    @gp.operator(outputs=lambda f: (f.type, f.type))
    def pair(field):
        return _readTensor(field)  # here

    pair(SCALAR)


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


@WRONGS.add("the truth value of a 4×5 float32 Field is ambiguous: only 0D scalars convert; use `.numpy()`")
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


@WRONGS.add("Field slicing, `f[…]`, is not available in this version of gpuop; use `.numpy()` and NumPy")
def slice_a_field():
    SCALAR[::2]  # here


@WRONGS.add("Field.sum is not available in this version of gpuop; use `.numpy()` and NumPy")
def sum_a_field():
    SCALAR.sum()  # here


@WRONGS.add("a Field has no attribute 'shape'; it has `.field_shape` and `.tensor_shape`")
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
