"""Wrong calls of NumPy's functions with fields: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp

from .wrong import INTEGER, SCALAR, VECTOR3, Wrongs

WRONGS = Wrongs()
ROW = gp.ScalarField(np.arange(6, dtype="f"))


@WRONGS.add("transpose: 1 axes for a 4×5 float32 field, which has 2 axes: give each of them once")
def too_few_axes():
    np.transpose(SCALAR, (0,))  # here


@WRONGS.add("an axis is given twice: (0, 0)")
def an_axis_twice():
    SCALAR.transpose(0, 0)  # here


@WRONGS.add("axis 2 is out of bounds for a 4×5 float32 field, which has 2 axes")
def no_such_axis():
    np.flip(SCALAR, 2)  # here


@WRONGS.add("an axis is an integer, not a float")
def axis_of_float():
    np.roll(SCALAR, 1, axis=1.0)  # here


@WRONGS.add("moveaxis: 2 sources and 1 destinations: give as many of both")
def moved_to_nowhere():
    np.moveaxis(SCALAR, (0, 1), 0)  # here


@WRONGS.add("reshape: the 20 values of a 4×5 float32 field do not fill the shape (3, -1)")
def another_number_of_values():
    SCALAR.reshape(3, -1)  # here


@WRONGS.add("reshape: fields are in row-major order, `order=\"C\"`, not 'F'; transpose before and after")
def columns_first():
    np.reshape(SCALAR, (5, 4), order="F")  # here


@WRONGS.add("squeeze: axis 0 of a 4×5 float32 field has extent 4, not 1")
def squeezed():
    np.squeeze(SCALAR, 0)  # here


@WRONGS.add("broadcast_to: a 4×5 float32 field has axes (4, 5), which do not broadcast to (4, 6)")
def not_broadcast():
    np.broadcast_to(SCALAR, (4, 6))  # here


@WRONGS.add("concatenate: 4×5 float32 and 4×5 float32[3] fields do not join along axis 0")
def scalars_and_vectors():
    np.concatenate([SCALAR, VECTOR3])  # here


@WRONGS.add("numpy.concatenate takes Fields here, not an ndarray; wrap arrays, as in `gp.ScalarField(a)`")
def a_field_and_an_array():
    np.concatenate([SCALAR, np.ones((4, 5))])  # here


@WRONGS.add("stack: the fields have different shapes: 4×5 float32 and 6 float32")
def stack_of_shapes():
    np.stack([SCALAR, ROW])  # here


@WRONGS.add("concatenate of Fields has no `out` and no `casting`")
def concatenate_into():
    np.concatenate([SCALAR, SCALAR], out=np.ones((8, 5)))  # here


@WRONGS.add("split: 5 points do not make 2 equal parts; `np.array_split` makes unequal ones")
def unequal_parts():
    np.split(SCALAR, 2, axis=1)  # here


@WRONGS.add(
    "pad: of a Field the modes are constant, edge, wrap, reflect, symmetric, not 'linear_ramp'; for others write an operator"
)
def unknown_mode():
    np.pad(SCALAR, 1, mode="linear_ramp")  # here


@WRONGS.add("pad: mode 'reflect' of a Field does not take reflect_type='odd'")
def odd_reflection():
    np.pad(SCALAR, 1, mode="reflect", reflect_type="odd")  # here


@WRONGS.add("constant_values=0.5 does not fit the field's dtype, int32")
def half_of_integers():
    np.pad(INTEGER, 1, constant_values=0.5)  # here


@WRONGS.add("pad: `pad_width` is a number, a pair, or a pair for each of the 2 axes, not ((1, 1), (1, 1), (1, 1))")
def too_many_widths():
    np.pad(SCALAR, ((1, 1), (1, 1), (1, 1)))  # here


@WRONGS.add("pad: widths are 0 or more, not -1; slices remove points")
def negative_width():
    np.pad(SCALAR, -1)  # here


@WRONGS.add("take: index 5 is out of bounds for axis 1 with size 5")
def index_outside():
    np.take(SCALAR, [0, 5], axis=1)  # here


@WRONGS.add("take: indices are integers, not float64; `np.where(mask, a, b)` takes masks")
def float_indices():
    np.take(SCALAR, [0.5])  # here


@WRONGS.add("take: index 5 is out of bounds for axis 0 with size 4")
def field_of_indices():
    np.take(SCALAR, gp.ScalarField([1, 5]), axis=0)  # here


@WRONGS.add(
    "take: whether a Field's indices are within bounds depends on values, which are not known here; "
    'say `mode="clip"` or `mode="wrap"`'
)
def field_of_unknown_indices():
    gp.pipeline(lambda places: np.take(SCALAR, gp.ScalarField(places)))(np.array([1, 2]))  # here


@WRONGS.add("repeat: 2 counts for axis 0, which has 4 points: give as many, or one")
def counts_of_another_axis():
    np.repeat(SCALAR, [1, 2], axis=0)  # here


@WRONGS.add("repeat: counts are an integer or a list, not a Field, because they determine the shape of the result")
def counts_of_a_field():
    np.repeat(ROW, INTEGER[0])  # here


@WRONGS.add("this slice keeps no tensor element of a 4×5 float32[1] field; a tensor has at least one")
def no_differences_left():
    np.diff(VECTOR3, 3)  # here


@WRONGS.add("numpy.zeros_like of Fields takes a, dtype: got an unexpected keyword argument 'order'")
def an_argument_too_many():
    np.zeros_like(SCALAR, order="F")  # here


@WRONGS.add("updated: values of shape (3,) do not broadcast to (4, 2), the shape of this part")
def values_of_another_shape():
    gp.updated(SCALAR, np.s_[:, :2], ROW[:3])  # here


@WRONGS.add("values=0.5 does not fit the field's dtype, int32")
def values_of_another_dtype():
    gp.updated(INTEGER, 0, 0.5)  # here


@WRONGS.add("index 7 is out of bounds for axis 0 with size 4")
def update_outside():
    gp.updated(SCALAR, 7, 0)  # here


@WRONGS.add("a Field is immutable: `gp.updated(f, index, values)` makes a new one")
def assignment():
    SCALAR[0] = 1  # here


@WRONGS.add(
    "full: the value is a number, an array or a Parameter, not a Field; `np.broadcast_to(f, shape)` spreads one"
)
def full_of_a_field():
    gp.full((3, 4), ROW[0])  # here


@WRONGS.add("fill_value=300 does not fit the field's dtype, uint8")
def full_of_too_much():
    gp.full(3, 300, "uint8")  # here


@WRONGS.add("arange: there are no evenly spaced numbers from 0 to 5 by steps of 0")
def no_step():
    gp.arange(0, 5, 0)  # here


@WRONGS.add("arange: the number 299 does not fit uint8; give another dtype")
def range_of_too_much():
    gp.arange(300, dtype="uint8")  # here


@WRONGS.add("arange: a Field is not a number; `int(f)` or `float(f)` gives the value of a field")
def range_of_a_field():
    gp.arange(ROW[0])  # here


@WRONGS.add("linspace: bool is not a dtype of evenly spaced numbers; `.astype` converts")
def range_of_truths():
    gp.linspace(0, 1, 5, dtype="bool")  # here


@WRONGS.add("a 4×5 float32 field has 2 axes, so its tensor_order is 0 to 2, not 3")
def tensors_of_more_axes_than_there_are():
    SCALAR.with_tensor_order(3)  # here


@WRONGS.add("a tensor_order is an integer, not a float")
def a_tensor_order_of_float():
    SCALAR.with_tensor_order(1.0)  # here


@WRONGS.add("cog.expand: a border is cog.BorderClamp, cog.BorderZero, cog.BorderCyclic, not 'valid'")
def expanded_by_no_border():
    gp.cog.expand(SCALAR, gp.cog.BorderValid, 8, 8)  # here


@WRONGS.add(
    "cog.crossCorrelate: a border is cog.BorderClamp, cog.BorderZero, cog.BorderCyclic, cog.BorderValid, cog.BorderFull, not"
)
def correlated_by_scipys_word():
    gp.cog.convolve(SCALAR, SCALAR, "nearest")  # here


@WRONGS.add("cog.crossCorrelate: 6 float32 weights and a 4×5 float32 field differ in their number of dimensions")
def weights_of_one_dimension():
    gp.cog.crossCorrelate(SCALAR, ROW, gp.cog.BorderClamp)  # here


@WRONGS.add("functions of gpuop.cog take Fields, not an ndarray; wrap arrays, as in `gp.ScalarField(a)`")
def cog_of_an_array():
    gp.cog.flip(np.ones((4, 5), "f"))  # here


@WRONGS.add("meshgrid takes fields of one dimension, not 4×5 float32")
def grid_of_planes():
    gp.meshgrid(SCALAR, ROW)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong):
    wrong.check()
