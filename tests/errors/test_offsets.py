"""Wrong offsets, and loops along several dimensions: each message, and the line that it names."""

import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import BIG, SCALAR, VECTOR2, Wrong, Wrongs

WRONGS = Wrongs()


@WRONGS.add("`f` is 2D: `offset=` has a number for each dimension, (row, column), not 1")
def too_few():
    gp.operator(lambda f: _readTensor(f, offset=1))(SCALAR)  # here


@WRONGS.add("`f` is 2D: `offset=` has a number for each dimension, (row, column), not 3")
def too_many():
    gp.operator(lambda f: _readTensorElement(f, 0, offset=(0, 1, 2)))(BIG)  # here


@WRONGS.add("`f`: `offset=` is from the thread's own point, so no coordinates stand beside it")
def beside_coordinates():
    gp.operator(lambda f: _readTensor(f, _row, _column, offset=(0, 1)))(SCALAR)  # here


@WRONGS.add("a coordinate of `f` is a scalar integer, not a float")
def between_points():
    gp.operator(lambda f: _readTensor(f, offset=(0, 0.5)))(SCALAR)  # here


@WRONGS.add("`f` is 2D, and the threads are 1D: an offset is from the thread's own point, so give coordinates")
def other_threads():
    gp.operator(outputs=gp.FieldType(3))(lambda f: _readTensor(f, offset=(0, 1)))(SCALAR)  # here


@WRONGS.add("_out0 is 2D: `offset=` has a number for each dimension, (row, column), not 3")
def written_by_too_many():
    gp.operator(outputs="same")(lambda f: _writeTensor(_out0, _readTensor(f), offset=(0, 0, 1)))(SCALAR)  # here


@WRONGS.add("_out0: `offset=` is from the thread's own point, so no coordinates stand beside it")
def written_beside_coordinates():
    gp.operator(outputs="same")(lambda f: _writeTensorElement(_out0, 1.0, _row, _column, 0, offset=(0, 1)))(BIG)  # here


@WRONGS.add("a coordinate of _out0 is a scalar integer, not a float")
def written_between_points():
    gp.operator(outputs="same")(lambda f: _writeTensor(_out0, _readTensor(f), offset=(0.5, 0)))(SCALAR)  # here


@WRONGS.add(
    "`_pointerTo` takes coordinates after an output only; an element of an array is written in brackets, `a[i, j]`"
)
def pointer_to_a_variable_beside():
    gp.operator(outputs="same")(lambda f: _atomic_add(_pointerTo(_var(1), offset=1), 1))(SCALAR)  # here


@WRONGS.add(
    "`v` is updated in place, and each thread writes its own point: another thread may read that point before or after this"
)
def of_what_is_updated():
    @gp.operator(inout="v")
    def shifted(v):
        _writeTensor(v, _readTensor(v, offset=(0, 1)))  # here

    shifted(VECTOR2)


@WRONGS.add("`f` has big tensors (7 elements); read elements")
def of_big_tensors():
    gp.operator(lambda f: _readTensor(f, offset=(0, 1)))(BIG)  # here


@WRONGS.add("a scalar value cannot be unpacked or iterated over; use `with _for(n) as i:` for loops on the device, and")
def extents_side_by_side():
    @gp.operator
    def counted(f):
        with _for(2, 3) as (_, _):  # here
            pass
        return _readTensor(f)

    counted(SCALAR)


@WRONGS.add("`_for` along several dimensions takes tuples of one length, not of [2, 3]")
def other_lengths():
    @gp.operator
    def counted(f):
        with _for((2, 3), (4, 5, 6)):  # here
            pass
        return _readTensor(f)

    counted(SCALAR)


@WRONGS.add("a bound of `_for` is a scalar integer, not a float")
def no_integers():
    @gp.operator
    def counted(f):
        with _for((2, 2.5)):  # here
            pass
        return _readTensor(f)

    counted(SCALAR)


@WRONGS.add(
    "`r` is bound to another value inside this `_for` block, which the device cannot see; the loop makes its counter itself"
)
def counters_that_were_there():
    @gp.operator
    def counted(f):
        r = _var(0)
        with _for((2, 3)) as (r, _):  # noqa: F811  # here
            pass
        return _readTensor(f) + r

    counted(SCALAR)


@WRONGS.add('`outputs="same"` is the type of the first Field, and no argument is one')
def same_as_nothing():
    gp.operator(outputs="same")(lambda n: _column * n)(3)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message(wrong: Wrong) -> None:
    wrong.check()
