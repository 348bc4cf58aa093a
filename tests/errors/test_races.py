"""Writes of which it is certain that they race: each message, and the line that it names."""

import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import INTEGER, SCALAR, VECTOR3, Wrongs

WRONGS = Wrongs()


@WRONGS.add(
    "all 4×5 threads write _out0 at one place, and any of them may be the last: write at coordinates of the thread's own,"
)
def all_threads_write_one_place():
    @gp.operator
    def wrong(field):
        _writeTensor(_out0, _readTensor(field), 0, 0)  # here

    wrong(SCALAR)


@WRONGS.add("all 4×5 threads write _out0 at one place")
def all_threads_write_one_place_in_a_loop():
    @gp.operator
    def wrong(field):
        with _for(4) as i:
            _writeTensor(_out0, _readTensor(field), i, 0)  # here

    wrong(SCALAR)


@WRONGS.add("_out0 is written at the thread's own point")
def own_and_computed_points():
    @gp.operator
    def wrong(field):
        _writeTensor(_out0, 1)
        _writeTensor(_out0, 2, _row + 1, _column)  # here

    wrong(SCALAR)


@WRONGS.add("give the output a `default=` if they never meet")
def own_and_computed_points_on_some_paths():
    @gp.operator
    def wrong(field):
        with _if(_column < 2):
            _writeTensor(_out0, 1)
        with _else():
            _writeTensor(_out0, 2, _row, _column - 1)  # here

    wrong(SCALAR)


@WRONGS.add("_out0 is written at the thread's own point")
def own_points_and_atomics():
    @gp.operator
    def wrong(field):
        _writeTensor(_out0, 1)
        _atomic_add(_pointerTo(_out0, 0, 0), 1)  # here

    wrong(INTEGER)


@WRONGS.add(
    "_out0 is written by 3 threads at each point, one for each tensor element: write elements (`_writeTensorElement`)"
)
def several_threads_write_one_tensor():
    @gp.operator
    def wrong(field):
        _globalThreads(field, field.tensor_shape)
        _writeTensor(_out0, _readTensor(field))  # here

    wrong(VECTOR3)


@WRONGS.add("all 4×5 threads write _out0 at one place, and any of them may be the last")
def all_threads_write_0d():
    @gp.operator(outputs=gp.FieldType((), (), "float32"))
    def wrong(field):
        _globalThreads(field)
        _writeTensor(_out0, _readTensor(field))  # here

    wrong(SCALAR)


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message_and_line(wrong):
    wrong.check()
