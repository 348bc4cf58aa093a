"""Wrong uses of fields: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp

from .wrong import INTEGER, SCALAR, VECTOR2, VECTOR3, Wrongs

WRONGS = Wrongs()


@WRONGS.add(
    "add: the grids differ, 4×5 and 5×4; counted from the last axis, their extents must be equal, or one side 1"
)
def grids_differ():
    SCALAR + gp.ScalarField(np.ones((5, 4), "f"))  # here


@WRONGS.add(
    "subtract: the grids differ, 4×5 and 4; counted from the last axis, their extents must be equal, or one side 1; "
    "`f[:, np.newaxis]` makes an axis of extent 1"
)
def means_of_rows():
    SCALAR - SCALAR.mean(axis=1)  # here


@WRONGS.add("matmul: the shapes (4, 5) and (4, 5) do not match: 5 is different from 4")
def product_of_matrices():
    SCALAR @ SCALAR  # here


@WRONGS.add("multiply: the tensors differ, 2 and 3; they must be equal, or one side scalar")
def tensors_differ():
    VECTOR2 * VECTOR3  # here


@WRONGS.add(
    "add of a Field and an array of shape 5×4: the Field has 4×5, and counted from the last axis extents must be equal, or one "
    "side 1; wrap it in a `gp.Parameter` if every point takes all of it"
)
def field_and_array():
    SCALAR + np.ones((5, 4), "f")  # here


@WRONGS.add(
    "add of a Field and an array of shape 5×4: the Field has 4×5, and counted from the last axis extents must be equal, or one "
    "side 1; wrap it in a `gp.Parameter` if every point takes all of it"
)
def array_and_field():
    np.ones((5, 4), "f") + SCALAR  # here


@WRONGS.add("subtract of a Field and a list")
def field_and_list():
    SCALAR - [1]  # here


@WRONGS.add(
    "bitwise_and does not take float32 fields; comparisons beside it need parentheses, as in `(f > a) & (f < b)`"
)
def bits_of_floats():
    SCALAR & SCALAR  # here


@WRONGS.add(f"add: the number {2**70} does not fit int32; convert the Field first, as in `f.astype('float32')`")
def a_number_beyond_all_integers():
    gp.ScalarField([1, 2]) + 2**70  # here


@WRONGS.add("power: integers to negative integer powers are not allowed; a float exponent, as -1.0, gives float32")
def integers_to_a_negative_power():
    return INTEGER**-1  # here


@WRONGS.add("power: integers to negative integer powers are not allowed; a float exponent, as -2.0, gives float32")
def bytes_to_a_negative_power_of_numpys():
    return np.power(gp.ScalarField(np.zeros((4, 5), "u1")), np.int8(-2))  # here


@WRONGS.add("power: integers to negative integer powers are not allowed; a float exponent, as -3.0, gives float32")
def integers_to_negative_powers_of_a_tensor():
    return gp.VectorField(np.ones((2, 3), np.int32)) ** np.array([2, -3, 1])  # here


@WRONGS.add("add: the number 300 does not fit uint8")
def algebra_number_too_big():
    gp.ScalarField(np.zeros((4, 5), "u1")) + 300  # here


@WRONGS.add(
    "the truth value of a 4×5 bool Field is ambiguous: only 0D scalars convert; `&` and `|` join comparisons, `np.where` chooses, "
    "as do `np.maximum` and `np.minimum`"
)
def truth_of_a_field():
    if SCALAR.numpy()[0, 0] == SCALAR:  # here
        pass


@WRONGS.add("float() of a 4×5 float32 Field is ambiguous")
def float_of_a_field():
    float(SCALAR)  # here


@WRONGS.add(
    "a Field cannot be iterated over or unpacked; slices of it are fields (`y, x = f[0], f[1]`), `.numpy()` gives an array"
)
def iterate_a_field():
    for _row in SCALAR:  # here
        pass


@WRONGS.add("a Field has no attribute 'strides'; gpuop chooses the layout of values in memory")
def strides_of_a_field():
    SCALAR.strides  # here


@WRONGS.add("a Field has no attribute 'nxt' to set; fields are immutable, `.next` and `.name` are all that can be set")
def misspelled_next():
    SCALAR.nxt = SCALAR + 1  # here


@WRONGS.add("a Field has no attribute 'dtype' to set")
def set_dtype():
    SCALAR.dtype = "int32"  # here


@WRONGS.add("a Field is immutable")
def assign_to_a_slice():
    SCALAR[0] = 1  # here


@WRONGS.add("numpy.kron does not take Fields; `np.multiply.outer(a, b)` has all products; transpose and reshape it")
def numpy_function():
    np.kron(SCALAR, SCALAR)  # here


@WRONGS.add("numpy.gcd.reduce does not take Fields; evaluate first, with `.numpy()`")
def numpy_reduction():
    np.gcd.reduce(INTEGER)  # here


@WRONGS.add("numpy.spacing does not take Fields; `np.nextafter(f, np.inf) - f` is the distance to the next number")
def numpy_ufunc():
    np.spacing(SCALAR)  # here


@WRONGS.add("fields are made of numbers, not of")
def field_of_strings():
    gp.ScalarField(["a", "b"])  # here


@WRONGS.add("an array of shape (4,) has no 2 tensor axes at its end")
def too_few_axes():
    gp.MatrixField(np.ones(4))  # here


@WRONGS.add("a ColorField is made from uint8 of shape (rows, columns, 3 or 4), not from float64 of shape (4, 5, 3)")
def float_colours():
    gp.ColorField(np.ones((4, 5, 3)))  # here


@WRONGS.add("a complex64 field does not convert to float32; take `.real`, `.imag` or `abs(f)`")
def complex_as_real():
    gp.ComplexField(np.ones(3)).astype("float32")  # here


@WRONGS.add("numpy.polyder does not take Fields; evaluate first, with `.numpy()`")
def derived():
    np.polyder(SCALAR)  # here


@WRONGS.add("a Field has no attribute 'next'; `.next` is only set, inside a graph's `with`; `graph.read(f)` gives")
def next_is_read():
    SCALAR.next  # here


@WRONGS.add("<class 'numpy.float32'> is a dtype, not a tensor shape; write `dtype='float32'`")
def dtype_as_a_tensor_shape():
    gp.FieldType((480, 640), np.float32)  # here


@WRONGS.add("'uint8' is a dtype, not a tensor shape; write `dtype='uint8'`")
def text_as_a_tensor_shape():
    gp.FieldType((480, 640), "uint8")  # here


@WRONGS.add("`round` of Python does not take Fields; `np.round(f, decimals)` rounds them")
def rounded():
    round(SCALAR, 2)  # here


@WRONGS.add("a Field has no len(); its grid is in `.field_shape`, its tensor in `.tensor_shape`, both in `.shape`")
def length():
    len(SCALAR)  # here


@WRONGS.add(
    "a chained comparison such as `a < f < b` is an `and` in Python, which asks a 4×5 bool Field for one truth value; write "
    "`(a < f) & (f < b)`"
)
def chained_comparison():
    bool(50 < SCALAR < 100)  # here


@WRONGS.add("the format '.2f' of a 4×5 float32 Field is ambiguous: only 0D scalars convert; use `.numpy()`")
def formatted():
    format(SCALAR, ".2f")  # here


@WRONGS.add("fields have no dtype 'complex256'; one of bool,")
def complex_dtype():
    gp.ScalarField(np.ones(3, "clongdouble"))  # here


@WRONGS.add("fields have no dtype 'float23'; one of bool,")
def unknown_dtype():
    SCALAR.type.replace(dtype="float23")  # here


@WRONGS.add("a shape has no negative extents: (-1, 3)")
def negative_shape():
    gp.FieldType((-1, 3))  # here


@WRONGS.add("this Parameter has shape (), the new value (2,); make another Parameter")
def parameter_shape():
    gp.Parameter(1.0).set([1, 2])  # here


@WRONGS.add("this Parameter is int32, which does not hold 0.5; make it of another dtype, as gp.Parameter(1.0)")
def parameter_fraction():
    gp.Parameter(1).set(0.5)  # here


@WRONGS.add("this Parameter is uint8, which does not hold 300; make it of another dtype, as gp.Parameter(a value)")
def parameter_range():
    gp.Parameter(np.uint8(2)).set(300)  # here


@WRONGS.add("this Parameter is float32, which does not hold 1e+50")
def parameter_overflow():
    gp.Parameter(1.0).set(np.float64(1e50))  # here


@WRONGS.add("this Parameter is float32, which does not hold (3+2j)")
def parameter_complex():
    gp.Parameter(1.0).set(3 + 2j)  # here


@WRONGS.add("a graph takes a number of steps, 0 or more, not -3")
def negative_steps():
    with gp.ComputeGraph() as graph:
        graph.probe(SCALAR + 1)
    graph.step(-3)  # here


@WRONGS.add("where of a Field takes three arguments: where(condition, a, b); or see `np.nonzero`")
def where_of_one():
    np.where(SCALAR > 1)  # here


@WRONGS.add("evaluate wants Fields, not a list")
def evaluate_a_list():
    gp.evaluate([SCALAR])  # here


@WRONGS.add("where of a Field and an array of shape 3: the Field has 4×5, and counted from the last axis")
def where_of_an_array():
    np.where(SCALAR > 1, 1, np.ones(3))  # here


@WRONGS.add("this is a Field already, use it as it is; its type is in `.type`, its values come with `.numpy()`")
def parameter_of_a_field():
    gp.Parameter(SCALAR)  # here


@WRONGS.add("this is a Field already, a 4×5 float32 field, whose tensor_order is 0, not 1")
def vectors_of_scalars():
    gp.VectorField(SCALAR)  # here


@WRONGS.add('this is a Field already, a 4×5 float32 field; `.astype("int32")` converts it')
def integers_of_floats():
    gp.ScalarField(SCALAR, dtype="int32")  # here


@WRONGS.add("a list makes no array: setting an array element with a sequence")
def field_of_a_ragged_list():
    gp.ScalarField([[1], [1, 2]])  # here


@WRONGS.add("an integer of this list does not fit int32; give a NumPy array of int64")
def field_of_big_integers():
    gp.ScalarField([1, 2**40])  # here


@WRONGS.add("this integer does not fit int32; give a NumPy array of float64")
def field_of_a_big_integer():
    gp.ScalarField(10**30)  # here


@WRONGS.add("multiply: the number ~1e5000 does not fit float32")
def more_digits_than_python_writes():
    SCALAR * 10**5000  # here


@WRONGS.add(
    f"fill_value={10**30} does not fit the field's dtype, int32; its least and greatest value are -2147483648 and 2147483647"
)
def filled_with_a_big_integer():
    np.full_like(SCALAR, 10**30, "int32")  # here


@WRONGS.add("add of a Field and an array of shape 4: the Field has 4×5, and counted from the last axis")
def array_of_the_first_axis():
    SCALAR + np.ones(4, "f")  # here


@WRONGS.add("add of a Field and an array of shape 4×5×2: the Field has 4×5×3")
def array_of_other_tensors():
    VECTOR3 + np.ones((4, 5, 2))  # here


@WRONGS.add("add of a Field and an array: wrap it in a Field (`gp.ScalarField(a)`)")
def array_of_which_the_field_is_stretched():
    SCALAR + np.ones((2, 4, 5), "f")  # here


@WRONGS.add("a shape is made of integers, not (3.5,)")
def float_shape():
    gp.FieldType(3.5)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()
