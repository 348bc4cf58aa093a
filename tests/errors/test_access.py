"""Wrong reads and writes: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.ir.borders import WORDS

from .wrong import BIG, INTEGER, SCALAR, VECTOR3, Wrongs

WRONGS = Wrongs()


# --- reading -----------------------------------------------------------------------------------------------------------


@WRONGS.add(
    "`_readTensor` belongs in an operator's body: a function under `@gp.operator`, or a `with gp.GPUOperator(…)` block"
)
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


@WRONGS.add("`f` is 2D: give (row, column), or no coordinates, not 1")
def index_count():
    gp.operator(lambda f: _readTensor(f, _column))(SCALAR)  # here


@WRONGS.add("coordinates stand one by one, as in `(f, row, column)`, not in a tuple")
def index_tuple():
    gp.operator(lambda f: _readTensor(f, (_row, _column)))(SCALAR)  # here


@WRONGS.add("a coordinate of `f` is a scalar integer, not a float; convert with `_convert_int(x)`")
def float_index():
    gp.operator(lambda f: _readTensor(f, _row / 2.0, _column))(SCALAR)  # here


@WRONGS.add("`f` has big tensors (7 elements); read elements with `_readTensorElement(f, …, element)`")
def whole_read_of_a_big_tensor():
    gp.operator(lambda f: _readTensor(f))(BIG)  # here


@WRONGS.add(
    "there is no border='mirror': here that is \"reflect\" (the edge is not repeated); it is one of "
    f"{', '.join(WORDS)}, or a number"
)
def unknown_border():
    gp.operator(lambda f: _readTensor(f, _row, _column + 1, border="mirror"))(SCALAR)  # here


@WRONGS.add("there is no border='wrapped': did you mean 'wrap'? It is one of clamp, zero, ")
def misspelt_border():
    gp.operator(lambda f: _readTensor(f, _row, _column + 1, border="wrapped"))(SCALAR)  # here


@WRONGS.add(f"there is no border=None: it is one of {', '.join(WORDS)}, or a number")
def no_border():
    gp.operator(lambda f: _readTensor(f, _row, _column + 1, border=None))(SCALAR)  # here


DIVIDED = "`/` of Python integers gives a float, write `//`; convert with `_convert_int(x)`"


@WRONGS.add(f"an element of `f` is a scalar integer, not a float; {DIVIDED}")
def element_by_pythons_division():
    gp.operator(lambda f: _readTensorElement(f, 4 / 2))(VECTOR3)  # here


@WRONGS.add(f"a coordinate of `f` is a scalar integer, not a float; {DIVIDED}")
def coordinate_by_pythons_division():
    gp.operator(lambda f: _readTensor(f, 0, f.field_shape[1] / 2))(SCALAR)  # here


@WRONGS.add(
    "border=1.5 does not fit the field's dtype, int32; its least and greatest value are -2147483648 and 2147483647"
)
def border_does_not_fit():
    gp.operator(lambda f: _readTensor(f, _row, _column + 1, border=1.5))(INTEGER)  # here


@WRONGS.add(f"`border=` is a Python number or one of {', '.join(WORDS)}, not a Value")
def border_of_the_kernel():
    gp.operator(lambda f: _readTensor(f, _row, _column + 1, border=_readTensor(f)))(SCALAR)  # here


@WRONGS.add("a complex number stands beside `_exp`: of complex numbers it is `_complexExp(z)`")
def complex_of_numpy():
    gp.operator(lambda f: _exp(np.complex128(1j)))(SCALAR)  # here


@WRONGS.add(
    "f` has big tensors (6 elements); read elements with `_readTensorElement(f, …, element)`, inside `with _forEachTensorElement(f)"
)
def vectors_of_complex_numbers():
    gp.operator(lambda f: _readTensor(f) * 2)(gp.VectorField(np.ones((2, 3), "complex64")))  # here


@WRONGS.add(
    "element 1 is never written; complex numbers have two, which `with _forEachTensorElement(f):` goes through; write it"
)
def real_parts_alone():
    gp.operator(outputs="same")(lambda f: _writeTensorElement(_out0, 1.0, 0))(gp.ComplexField(np.ones(3)))  # here


@WRONGS.add(
    "_out0 has tensors of 3 elements, and element 1 is never written; write it too, or give the output a `default=`"
)
def element_never_written():
    @gp.operator
    def some(f):
        _writeTensorElement(_out0, 1, 0)  # here
        _writeTensorElement(_out0, 1, 2)

    some(VECTOR3)


@WRONGS.add("`unroll=` is True, False, or the number of iterations that become one, 1 or more, not 0")
def no_turns():
    @gp.operator
    def some(f):
        with _for(3, unroll=0):  # here
            pass
        return _readTensor(f)

    some(SCALAR)


@WRONGS.add("`whole_groups=` is True or False, not 'yes'")
def groups_in_words():
    @gp.operator
    def some(f):
        _localThreads(2, 2, whole_groups="yes")  # here
        return _readTensor(f)

    some(SCALAR)


@WRONGS.add("`f` has no tensor element 3: its tensors have elements 0 … 2")
def element_outside():
    gp.operator(lambda f: _readTensorElement(f, 3))(VECTOR3)  # here


@WRONGS.add("_out0 has big tensors (7 elements); read one by `_readTensorElement`")
def read_a_big_output():
    @gp.operator
    def twice(field):
        _writeTensor(_out0, _readTensor(_out0))  # here

    twice(BIG)


@WRONGS.add(
    "operator `returned` reads _out0 and returns a value, which is written after all else; keep the value in a variable, or "
    "write it by `_writeTensor(_out0, v)` before it is read, and return nothing"
)
def read_an_output_that_is_returned():
    @gp.operator
    def returned(field):
        return _readTensor(field) + _readTensor(_out0)  # here

    returned(SCALAR)


@WRONGS.add("_out0 cannot stand in a kernel; keep what you wrote in a variable, or read it by `_readTensor`")
def output_in_arithmetic():
    @gp.operator
    def twice(field):
        _writeTensor(_out0, _readTensor(field))
        _writeTensor(_out0, _sqrt(_out0))  # here

    twice(SCALAR)


@WRONGS.add("reads want a Field, not an ndarray; wrap arrays, as in `gp.ScalarField(array)`")
def read_an_array():
    gp.operator(lambda f: _readTensor(f) + _readTensor(np.zeros((4, 5)), 0, 0))(SCALAR)  # here


@WRONGS.add(
    "`g` is 3×5, the threads are 4×5 (as `f` is, the first Field): own points do not match; give coordinates to read at, "
    "or choose the threads by `_globalThreads(3, 5)`"
)
def other_grid():
    gp.operator(lambda f, g: _readTensor(f) + _readTensor(g))(SCALAR, gp.ScalarField(np.ones((3, 5), "f")))  # here


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


@WRONGS.add(
    "_out0 is not written on every path through `some`; write it in the other branch too, or give the output a `default=`"
)
def not_on_every_path():
    @gp.operator
    def some(field):
        x = _readTensor(field)
        with _if(x > 1):
            _writeTensor(_out0, x)  # here
        with _elseif(x > 0):
            _writeTensor(_out0, 0)

    some(SCALAR)


@WRONGS.add(
    "a float is written to _out0, which is int32 by default: convert it (`_convert_int(v)`), or declare `outputs=`"
)
def float_to_a_defaulted_int():
    @gp.operator
    def half(field):
        _writeTensor(_out0, _readTensor(field) * 0.5)  # here

    half(INTEGER)


@WRONGS.add(
    "a scalar is written to _out0, whose default type is 4×5 complex64: declare `outputs=`, or write `_float2(v, 0)`"
)
def scalar_to_a_complex_default():
    gp.operator(lambda f: _writeTensor(_out0, 1.0))(gp.ComplexField(np.ones((4, 5))))  # here


@WRONGS.add("a scalar is written to _out0, whose default type is 4×5 float32[3]: declare `outputs=`, or spread it")
def scalar_to_a_defaulted_vector():
    @gp.operator
    def red(field):
        _writeTensor(_out0, _readTensor(field).x)  # here

    red(VECTOR3)


@WRONGS.add("a float3 is written to _out0, which is 4×5 float32: declare the output with the type that you mean")
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


@WRONGS.add("`_readTensor(f)` is the value of a Field at a point, and `f.numpy()` those of all points, for the host")
def return_an_array():
    @gp.operator
    def broken(field):
        return field.numpy()  # here

    broken(SCALAR)


@WRONGS.add(
    "a kernel value has no attribute 'numpy'; it exists only on the device; return it, and call `.numpy()` of the Field"
)
def array_of_a_value():
    gp.operator(lambda f: _readTensor(f).numpy())(SCALAR)  # here


@WRONGS.add("operator `broken` returns a dict; it returns kernel values, or nothing after `_writeTensor`")
def return_a_dict():
    @gp.operator
    def broken(field):
        return {"x": _readTensor(field)}  # here

    broken(SCALAR)


@WRONGS.add("operator `twice` reads _out0 and returns a value, which is written after all else")
def read_an_output_before_a_return():
    @gp.operator(outputs="same")
    def twice(field):
        with _if(_readTensor(_out0, 0, 0) > 1):  # here
            _assert(_row < 9)
        return _readTensor(field)

    twice(SCALAR)


@WRONGS.add("_out0 cannot stand in a kernel; keep what you wrote in a variable, or read it by `_readTensor`")
def output_on_the_left():
    gp.operator(lambda f: _out0 * 2 + _readTensor(f))(SCALAR)  # here


@WRONGS.add("an ArrayVariable cannot stand in a kernel; read its elements, as in `a[i]`")
def array_in_arithmetic():
    gp.operator(lambda f: -_floatArray(4) < 1)(SCALAR)  # here


@WRONGS.add("`@=` assigns to variables, which an ArrayVariable is not; set its elements, as in `a[i] = v`")
def array_that_is_assigned():
    @gp.operator
    def filled(f):
        a = _floatArray(4)
        a @= 1.0  # here
        return _readTensor(f)

    filled(SCALAR)


@WRONGS.add("`@` does not multiply kernel values; `_dot(a, b)` is the product of two vectors")
def product_of_values():
    gp.operator(lambda f: _readTensor(f) @ _readTensor(f))(VECTOR3)  # here


@WRONGS.add("`@` does not multiply kernel values; `_dot(a, b)` is the product of two vectors")
def product_of_a_constant():
    gp.operator(lambda f: _row @ 2)(SCALAR)  # here


@WRONGS.add("a kernel value does not open a block; write `with _if(condition):`, or `with _while(condition):`")
def condition_as_a_block():
    @gp.operator
    def wrong(f):
        with _readTensor(f) > 0:  # here
            pass

    wrong(SCALAR)


@WRONGS.add("a Field does not open a block: `np.where(f > 0, a, b)` chooses between Fields")
def fields_condition_as_a_block():
    with SCALAR > 0:  # here
        pass


@WRONGS.add("operator `pair` returns 1 value, its declared outputs are 2")
def returned_count():
    @gp.operator(outputs=lambda f: (f.type, f.type))
    def pair(field):
        return _readTensor(field)  # here

    pair(SCALAR)


ALONE = "is not a kernel value; read it with `_readTensor("


@WRONGS.add(ALONE)
def product_of_fields_in_a_body():
    gp.operator(lambda f: f @ f.T)(SCALAR)  # here


@WRONGS.add(ALONE)
def inverse_of_a_field_in_a_body():
    gp.operator(lambda f: gp.linalg.inv(f[:3, :3]))(SCALAR)  # here


@WRONGS.add("_out0 cannot stand in a kernel; keep what you wrote in a variable, or read it by `_readTensor`")
def output_that_is_compared():
    gp.operator(lambda f: _writeTensor(_out0, _where(_out0 == 1, 2, 3)))(SCALAR)  # here


@WRONGS.add("an ArrayVariable cannot stand in a kernel; read its elements, as in `a[i]`")
def array_that_is_compared():
    gp.operator(lambda f: _where(_floatArray(3) != 1, 2, 3))(SCALAR)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()


def test_sums_of_products_of_fields_are_numbers_in_bodies():
    field = gp.ScalarField(np.arange(16, dtype="float32").reshape(4, 4))
    result = gp.operator(lambda f: _readTensor(f) + (f @ f).sum())(field).numpy()
    np.testing.assert_array_equal(result, field.numpy() + (field.numpy() @ field.numpy()).sum())
