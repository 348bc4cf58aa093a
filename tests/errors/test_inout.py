"""Operators that update fields and are written wrongly: each message, and the line that it names."""

import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()


@WRONGS.add(
    "`a` is updated in place, and each thread writes its own point: another thread may read that point before or after this; for "
    "the values from before give the same field as one more argument"
)
def another_point():
    @gp.operator(inout="a")
    def shifted(a):
        _writeTensor(a, _readTensor(a, _row, _column - 1))  # here

    shifted(SCALAR)


@WRONGS.add("`a` is a parameter, which has no memory that threads could update")
def a_parameter():
    @gp.operator(inout="a")
    def set_by_one(a):
        _globalThreads(8)
        with _if(_column == 3):
            _writeTensor(a, 2.0)

    set_by_one(gp.Parameter(1.5))  # here


@WRONGS.add("operator `nothing` never writes `a`, which `inout=` names; add `_writeTensor(a, …)`, or leave it out")
def never_written():
    @gp.operator(inout="a")
    def nothing(a):  # here
        _readTensor(a)

    nothing(SCALAR)


@WRONGS.add("operator `doubled` updates `a`, and has no _out0: write the argument itself")
def an_output():
    @gp.operator(inout="a")
    def doubled(a):
        _writeTensor(_out0, 2 * _readTensor(a))  # here

    doubled(SCALAR)


@WRONGS.add("operator `doubled` updates its arguments, so it returns nothing; write them")
def a_returned_value():
    @gp.operator(inout="a")
    def doubled(a):
        return 2 * _readTensor(a)  # here

    doubled(SCALAR)


@WRONGS.add("not a ScalarField: Fields are immutable, but for arguments that `inout=` names")
def an_argument_that_is_not_named():
    @gp.operator(inout="a")
    def doubled(a, b):
        _writeTensor(b, 2 * _readTensor(a))  # here

    doubled(SCALAR, SCALAR)


@WRONGS.add("operator `doubled` updates `a`, which is a Field, not a float")
def a_number():
    @gp.operator(inout="a")
    def doubled(a):
        _writeTensor(a, 2 * _readTensor(a))

    doubled(2.0)  # here


@WRONGS.add("`inout=` names 'b', which is no argument; these are a")
def an_unknown_name():
    def doubled(a):
        _writeTensor(a, 2 * _readTensor(a))

    gp.operator(inout="b")(doubled)  # here


@WRONGS.add("an operator that updates its arguments has them as outputs: leave out `outputs=`")
def outputs_too():
    def doubled(a):
        _writeTensor(a, 2 * _readTensor(a))

    gp.operator(inout="a", outputs=SCALAR.type)(doubled)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message_and_line(wrong):
    wrong.check()
