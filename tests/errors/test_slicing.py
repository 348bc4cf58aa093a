"""Wrong slices and reductions: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, VECTOR3, Wrongs

WRONGS = Wrongs()
COMPLEX = gp.ComplexField(np.ones((4, 5), "c8"))
EMPTY = gp.ScalarField(np.ones((0, 5), "f"))


@WRONGS.add("index 4 is out of bounds for axis 0 with size 4")
def index_outside():
    SCALAR[4]  # here


@WRONGS.add("index -6 is out of bounds for axis 1 with size 5")
def negative_index_outside():
    SCALAR[:, -6]  # here


@WRONGS.add("3 indices for a 4×5 float32 field, which has 2 axes (2 of the grid, 0 of the tensor)")
def too_many_indices():
    SCALAR[0, ..., 1, 2]  # here


@WRONGS.add("an index has at most one ellipsis")
def two_ellipses():
    SCALAR[..., ...]  # here


@WRONGS.add(
    "a Field is indexed by integers, slices, `np.newaxis` and `...`, not by a list; `np.take(f, indices, axis)` takes"
)
def list_of_indices():
    SCALAR[[0, 1]]  # here


@WRONGS.add("not by an ndarray; `np.take(f, indices, axis)` takes what indices name")
def array_of_indices():
    SCALAR[np.array([0, 1])]  # here


@WRONGS.add("not by a bool; `.numpy()` gives an array")
def boolean_index():
    SCALAR[True]  # here


@WRONGS.add(
    "not by a Field; `np.where(mask, a, b)` chooses between values, `np.take(f, np.flatnonzero(mask))` takes those of a mask"
)
def mask():
    SCALAR[SCALAR > 3]  # here


@WRONGS.add("Fields of integers are indices with integers alone; `np.take(f, indices, axis)` takes along one axis")
def slice_beside_integers_of_a_field():
    SCALAR[SCALAR.astype("int32"), :2]  # here


@WRONGS.add("2 indices of Fields for a 4 float32[5] field, whose grid has 1 axes")
def integers_of_a_field_for_the_tensor():
    gp.VectorField(SCALAR.numpy())[gp.ScalarField([1, 2]), 0]  # here


@WRONGS.add("index 5 is out of bounds for axis 1 with size 5")
def integer_outside_beside_a_field():
    SCALAR[gp.ScalarField([1, 2]), 5]  # here


@WRONGS.add("not by a float; `.numpy()` gives an array")
def slice_of_floats():
    SCALAR[: 5 / 2]  # here


@WRONGS.add("a slice has no step 0")
def step_zero():
    SCALAR[::0]  # here


@WRONGS.add("this slice keeps no tensor element of a 4×5 float32[3] field; a tensor has at least one")
def no_tensor_element():
    VECTOR3[..., 3:]  # here


@WRONGS.add("in a kernel read it with `_readTensor(f, row, column)`")
def index_in_a_kernel():
    gp.operator(lambda f: f[_row, 0])(SCALAR)  # here


@WRONGS.add("axis 2 is out of bounds for a 4×5 float32 field, which has 2 axes")
def axis_outside():
    SCALAR.sum(axis=2)  # here


@WRONGS.add("an axis is given twice: (0, -2)")
def axis_twice():
    SCALAR.max(axis=(0, -2))  # here


@WRONGS.add("an axis is an integer, not a float")
def axis_of_a_float():
    SCALAR.mean(axis=1.0)  # here


@WRONGS.add("argmax takes one axis, or none for all of them, not a tuple")
def several_axes_of_argmax():
    SCALAR.argmax(axis=(0, 1))  # here


@WRONGS.add("mean of a Field takes `axis` and `keepdims=`, `where=` by name, not `out=`, `dtype=`; evaluate first")
def options_of_numpy():
    np.mean(SCALAR, out=None, where=True, dtype="f8")  # here


@WRONGS.add("std of a Field takes `axis` and `ddof=`, `keepdims=`, `where=` by name, not positional options; evaluate")
def positional_options():
    np.std(SCALAR, 0, "f8")  # here


@WRONGS.add("sum: `where=` is a Field or an array of bools, not one of float32")
def mask_of_floats():
    SCALAR.sum(where=SCALAR)  # here


@WRONGS.add("prod: `where=` is a Field or an array of bools, not an ndarray")
def mask_that_is_an_array_of_floats():
    SCALAR.prod(where=np.ones((4, 5)))  # here


@WRONGS.add("sum: `where=`, a 3×4×5 bool field, does not broadcast to a 4×5 float32 field")
def mask_of_more_axes():
    SCALAR.sum(where=gp.ScalarField(np.ones((3, 4, 5), bool)))  # here


@WRONGS.add("max with `where=` needs `initial=`, the value where nothing is chosen")
def extremes_of_what_may_be_nothing():
    SCALAR.max(where=SCALAR > 0)  # here


@WRONGS.add("sum: `initial=` would turn int64 into float32; convert first, with `.astype`")
def initial_of_another_dtype():
    (SCALAR > 0).sum(initial=0.5)  # here


@WRONGS.add("var: `ddof=` is a number, not a str")
def degrees_of_freedom():
    SCALAR.var(ddof="1")  # here


@WRONGS.add("gp.reduce takes a Field, not an ndarray; wrap arrays, as in `gp.ScalarField(a)`")
def reduced_array():
    gp.reduce(lambda a, b: a + b, np.ones(3), 0)  # here


@WRONGS.add("gp.reduce: the identity of a complex64 field is a number, not None")
def reduced_complex():
    gp.reduce(lambda a, b: a + b, COMPLEX, None)  # here


@WRONGS.add("gp.scan: the function returns a float3, but values are complex64; convert its result")
def three_of_a_pair():
    gp.scan(lambda a, b: _float3(a, 1), COMPLEX, 0)  # here


@WRONGS.add("gp.reduce takes a function of two values, not a function")
def function_of_one_value():
    gp.reduce(lambda a: a, SCALAR, 0)  # here


@WRONGS.add("gp.scan takes a function of two values, not an int")
def scanned_by_a_number():
    gp.scan(3, SCALAR, 0)  # here


@WRONGS.add("gp.scan: `inclusive=` is True or False, not an int")
def scanned_inclusively_by_a_number():
    gp.scan(lambda a, b: a, SCALAR, 0, inclusive=1)  # here


@WRONGS.add("numpy.cumsum of Fields takes a, axis: got an unexpected keyword argument 'dtype'")
def sums_of_another_dtype():
    np.cumsum(SCALAR, dtype="float64")  # here


@WRONGS.add("gp.reduce: the function reads a field; it may use only its two values, and constants")
def function_that_reads():
    gp.reduce(lambda a, b: a + _readTensor(SCALAR, 0, 0), SCALAR, 0)  # here


@WRONGS.add("gp.reduce: the function gives a value, not None")
def function_without_a_value():
    gp.reduce(lambda a, b: None, SCALAR, 0)  # here


@WRONGS.add("gp.reduce: the function returns a float, but values are bool; convert its result")
def function_of_another_dtype():
    gp.reduce(lambda a, b: a * 0.5, SCALAR > 0, False)  # here


@WRONGS.add("gp.reduce: the identity is a number that uint8 can represent, not 300")
def identity_beyond_the_dtype():
    gp.reduce(lambda a, b: a | b, gp.ScalarField(np.ones(3, "u1")), 300)  # here


@WRONGS.add("min does not take complex64 fields: complex numbers have no order")
def order_of_complex_numbers():
    COMPLEX.min()  # here


@WRONGS.add("max of a 0×5 float32 field: there is no value to choose along all axes together, which is empty")
def greatest_of_nothing():
    EMPTY.max()  # here


@WRONGS.add("argmin of a 0×5 float32 field: there is no value to choose along axis 0, which is empty")
def least_of_an_empty_axis():
    np.argmin(EMPTY, axis=0)  # here


@WRONGS.add("numpy.apply_over_axes does not take Fields; reductions take a tuple of axes")
def other_reductions():
    np.apply_over_axes(np.sum, SCALAR, (0, 1))  # here


@WRONGS.add("minimum.accumulate does not take complex64 fields: complex numbers have no order")
def least_so_far_of_complex_numbers():
    np.minimum.accumulate(gp.ScalarField(np.ones(4, np.complex64)))  # here


@WRONGS.add("median does not take complex64 fields: complex numbers have no order")
def median_of_complex_numbers():
    np.median(COMPLEX)  # here


@WRONGS.add("sort: a kind is one of 'quicksort', 'mergesort', 'heapsort', 'stable', not 'bubble'; all are stable")
def sorted_by_another_kind():
    np.sort(SCALAR, kind="bubble")  # here


@WRONGS.add("quantile: `q` is a number from 0 to 1, or a list of them, not []")
def no_quantiles():
    np.quantile(SCALAR, [])  # here


@WRONGS.add("percentile: `q` is a number from 0 to 100, or a list of them, not 101")
def percentile_above_all():
    np.percentile(SCALAR, 101)  # here


@WRONGS.add("quantile: a method is one of 'linear', 'hazen'")
def quantile_by_another_method():
    np.quantile(SCALAR, 0.5, method="cubic")  # here


@WRONGS.add("median of a 0×5 float32 field: there is no value to choose")
def median_of_nothing():
    np.median(EMPTY)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_wrong_slices_and_reductions(wrong):
    wrong.check()
