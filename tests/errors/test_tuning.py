"""Wrong uses of `tune=`, `gp.tuning`, `gp.tune`, records and grids of targets: each message, and the line that it names."""

import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()


def body(field, block=1):
    return _readTensor(field)


@WRONGS.add("operator `body` has no argument blocks, which `tune=` has choices for")
def unknown_argument():
    gp.operator(tune={"blocks": (8, 16)})(body)  # here


@WRONGS.add("`tune=` has values for each parameter, as `(8, 16, 32)`, and for block 8")
def one_value():
    gp.operator(tune={"block": 8})(body)  # here


@WRONGS.add(
    "`outputs=` of operator `body` is a function that does not take all of the operator's arguments, which are field, block "
    "(too many positional arguments); let it take all, or only some under their names"
)
def outputs_that_do_not_take_choices():
    gp.operator(outputs=lambda f: f.type, tune={"block": (8, 16)})(body)(SCALAR)  # here


@WRONGS.add("`tune=` has no choices; leave it out")
def no_choices():
    gp.operator(tune=[])(body)  # here


@WRONGS.add("`tune=` has one choice twice")
def equal_choices():
    gp.operator(tune={"block": (8, 16, 8)})(body)  # here


@WRONGS.add("`tune=` has more than 1024 choices, and each is recorded")
def too_many_choices():
    gp.operator(tune=({"block": n} for n in iter(int, 1)))(body)  # here


@WRONGS.add("all choices of `tune=` are of the same parameters, not of block and vt")
def other_parameters():
    gp.operator(tune=[{"block": 1}, {"vt": 1}])(body)  # here


@WRONGS.add("each choice of `tune=` is a dict of parameters by name, not 8")
def choices_without_names():
    gp.operator(tune=(8, 16))(body)  # here


@WRONGS.add('`tune=` takes a dict such as {"block": (8, 16)}, or several dicts, not an int')
def a_number():
    gp.operator(tune=8)(body)  # here


@WRONGS.add("`tune=` of operator `body` has no choice with block=9")
def choice_that_is_none():
    gp.operator(tune=[{"block": 1, "vt": 1}])(lambda field, block, vt: None)
    tuned = gp.operator(name="body", tune=[{"block": 1, "vt": 1}])(lambda field, block, vt: None)
    tuned(SCALAR, block=9)  # here


@WRONGS.add("too large")
def all_unsupported():
    @gp.operator(tune={"block": (8, 16)})
    def wrong(field, block):
        raise gp.UnsupportedError("too large")  # here

    wrong(SCALAR)


@WRONGS.add(
    "the variants of operator `wrong` give fields of one type; with block=2 it gives 4×5 int32, and not 4×5 float32"
)
def other_types():
    @gp.operator(tune={"block": (1, 2)})
    def wrong(field, block):  # here
        return _readTensor(field) if block == 1 else _row

    wrong(SCALAR)


@WRONGS.add("there is no mode 'always'; one of never, stored, auto, force")
def unknown_mode():
    gp.tuning("always")  # here


@WRONGS.add("tune takes a Field, a ComputeGraph, or a function that gives a Field or a tuple of them; this is an int")
def tuned_number():
    gp.tune(3)  # here


@WRONGS.add("`seconds` is a time above 0, not -1")
def negative_time():
    gp.tune(SCALAR, seconds=-1)  # here


# --- records ------------------------------------------------------------------------------------------------------------


@WRONGS.add("the entries of a table are all records, or none: cuda has an int")
def record_beside_a_number():
    _target.choose({"opencl": {"nt": 1}, "cuda": 2})  # here


@WRONGS.add("the record for cuda has no vt, which others have; give it to `default=`")
def member_that_is_missing():
    _target.choose({"opencl": {"nt": 1, "vt": 2}, "cuda": {"nt": 1}})  # here


@WRONGS.add("the record for cuda:sm_80 has vtt, which `default=` lacks")
def member_of_another_name():
    _target.choose({"cuda:sm_80": {"vtt": 1}}, default={"vt": 1})  # here


@WRONGS.add("the records of this table have no member vtt; they have nt, vt".replace("vtt;", "'vtt';"))
def member_that_is_none():
    _target.choose({"opencl": {"nt": 1, "vt": 2}}).vtt  # here


@WRONGS.add("the entries of a table are of one type, not of float, int")
def members_of_two_types():
    _target.choose({"opencl": {"nt": 1}, "cuda": {"nt": 1.5}})  # here


@WRONGS.add("an extent of a thread grid is 0 or more, and for one target it is -4")
def negative_grid():
    @gp.operator
    def wrong(field):
        _globalThreads(_target.choose({"opencl": 4, "cuda": -4}, default=4))  # here
        _writeTensor(_out0, 1.0, 0, 0)

    wrong(SCALAR)


@WRONGS.add("a thread grid does not follow `_target.local_memory_bytes`; choose it from a table")
def grid_of_a_device():
    @gp.operator
    def wrong(field):
        _globalThreads(_target.local_memory_bytes // 4)  # here
        _writeTensor(_out0, 1.0, 0, 0)

    wrong(SCALAR)


@WRONGS.add("the thread grid of a `gp.GPUOperator` is the same on all targets; make it a `@gp.operator`")
def grid_in_another_form():
    with gp.GPUOperator(SCALAR.type):
        _globalThreads(_target.simd_width)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message_and_line(wrong):
    wrong.check()
