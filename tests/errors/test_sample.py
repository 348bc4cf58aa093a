"""Wrong samples: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.ir.borders import WORDS

from .wrong import BIG, INTEGER, SCALAR, VECTOR2, Wrong, Wrongs

WRONGS = Wrongs()


@WRONGS.add("`_sampleTensor` belongs in an operator's body")
def outside():
    _sampleTensor(SCALAR, 0.5, 0.5)  # here


@WRONGS.add("reads want a Field, not an ndarray; wrap arrays, as in `gp.ScalarField(array)`")
def an_array():
    gp.operator(lambda f: _sampleTensor(SCALAR.numpy(), 0.5, 0.5))(SCALAR)  # here


@WRONGS.add("_out0 is read by `_readTensor(_out0)`, or in a following operator")
def an_output():
    gp.operator(outputs=SCALAR.type)(lambda: _sampleTensor(_out0, 0.5, 0.5))()  # here


@WRONGS.add("`f` is 2D: give (row, column), not 1")
def too_few():
    gp.operator(lambda f: _sampleTensor(f, _column + 0.5))(SCALAR)  # here


@WRONGS.add("`f` is 2D: give (row, column), not 0")
def own_point():
    gp.operator(lambda f: _sampleTensor(f))(SCALAR)  # here


@WRONGS.add("`g` is 0D: give no coordinates, not 1")
def zero_dimensional():
    gp.operator(lambda f, g: _sampleTensor(g, 0.5))(SCALAR, gp.Parameter(1.5))  # here


@WRONGS.add("a coordinate of `f` is a scalar, not a float2; give its components one by one, as in")
def vector_coordinate():
    gp.operator(lambda f, v: _sampleTensor(f, _readTensor(v), 0.5))(SCALAR, VECTOR2)  # here


@WRONGS.add("a coordinate of `f` is a number, not a bool; convert with `_convert_float(x)`")
def bool_coordinate():
    gp.operator(lambda f: _sampleTensor(f, _row, _readTensor(f) > 1))(SCALAR)  # here


@WRONGS.add("a list cannot stand in a kernel")
def list_coordinate():
    gp.operator(lambda f: _sampleTensor(f, [0.5], 0.5))(SCALAR)  # here


@WRONGS.add("`f` has big tensors (7 elements), and `_sampleTensor` takes whole small ones; read elements at the points")
def big_tensors():
    gp.operator(lambda f: _sampleTensor(f, 0.5, 0.5))(BIG)  # here


@WRONGS.add(
    "there is no border='mirror': here that is \"reflect\" (the edge is not repeated); it is one of "
    f"{', '.join(WORDS)}, or a number"
)
def unknown_border():
    gp.operator(lambda f: _sampleTensor(f, _row, _column + 0.5, border="mirror"))(SCALAR)  # here


@WRONGS.add("border=0.5 does not fit the field's dtype, int32")
def border_does_not_fit():
    gp.operator(lambda f: _sampleTensor(f, _row, _column + 0.5, border=0.5))(INTEGER)  # here


@WRONGS.add("`f` has no points to read")
def no_points():
    empty = gp.ScalarField(np.zeros((0, 5), "f"))
    gp.operator(outputs=SCALAR.type)(lambda f: _writeTensor(_out0, _sampleTensor(f, 0.5, 0.5)))(empty)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message_and_line(wrong: Wrong) -> None:
    wrong.check()
