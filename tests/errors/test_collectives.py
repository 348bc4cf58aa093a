"""Collective operations that are written wrongly: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import SCALAR, VECTOR2, Wrongs

WRONGS = Wrongs()


@WRONGS.add(
    "`_reduceGroup(…)` is not reached by all threads of a work-group together: the condition of `with _if(_column > 2):` (line "
)
def reduction_under_a_varying_condition():
    @gp.operator
    def total(field):
        _localThreads(2, 4)
        found = _var(0.0)
        with _if(_column > 2):
            found += _reduceGroup(_readTensor(field), "add")  # here
        return found

    total(SCALAR)


@WRONGS.add("may differ between them; put it outside, and what depends on the thread inside")
def scan_in_a_loop_that_the_scan_ends():
    @gp.operator
    def total(field):
        left = _var(_readTensor(field))
        with _while(left > 0):
            left -= _scanGroup(left, "max")  # here
        return left

    total(SCALAR)


@WRONGS.add("the condition of `with _if(several > 2):` (line ")
def condition_that_is_common_to_a_part_only():
    @gp.operator
    def count(field):
        _localThreads(4, 4)
        x = _var(_readTensor(field))
        several = _countGroup(x > 0, over="column")
        with _if(several > 2):
            x += _broadcastGroup(x, 1)  # here
        return x

    count(SCALAR)


@WRONGS.add(
    "_reduceGroup has no operation 'plus'; it has add, mul, min, max, fmin, fmax, and, or, xor, and functions of two values"
)
def unknown_operation():
    gp.operator(lambda field: _reduceGroup(_readTensor(field), "plus"))(SCALAR)  # here


@WRONGS.add("_reduceGroup takes the name of an operation or a function of two values, not a type")
def operation_that_is_a_type():
    gp.operator(lambda field: _reduceGroup(_readTensor(field), np.float64))(SCALAR)  # here


@WRONGS.add(
    "_reduceGroup takes the name of an operation or a function of two values, not a function: too many positional"
)
def operation_on_one_value():
    gp.operator(lambda field: _reduceGroup(_readTensor(field), lambda a: a))(SCALAR)  # here


@WRONGS.add("_scanGroup takes the name of an operation or a function of two values, not an int")
def operation_that_is_a_number():
    gp.operator(lambda field: _scanGroup(_readTensor(field), 3))(SCALAR)  # here


@WRONGS.add("`&` wants integers or bools, not float and float")
def bits_of_floats():
    gp.operator(lambda field: _reduceGroup(_readTensor(field), "and"))(SCALAR)  # here


@WRONGS.add("the function that _reduceGroup combines values with uses its two arguments and constants only")
def function_of_another_value():
    @gp.operator
    def total(field):
        x = _readTensor(field)
        return _reduceGroup(x, lambda a, b: a + b * x)  # here

    total(SCALAR)


@WRONGS.add("it accesses no memory and no other value of the kernel")
def function_that_reads():
    @gp.operator
    def total(field):
        return _reduceGroup(_readTensor(field), lambda a, b: a + b * _readTensor(field, 0, 0))  # here

    total(SCALAR)


@WRONGS.add("it accesses no memory and no other value of the kernel")
def function_that_assigns():
    @gp.operator
    def total(field):
        count = _var(0)

        def counted(a, b):
            count.assign(count + 1)
            return a + b

        return _reduceGroup(_readTensor(field), counted) + count  # here

    total(SCALAR)


@WRONGS.add("_scanGroup with a function needs `identity=`, the value before the first thread")
def exclusive_scan_without_identity():
    @gp.operator
    def scan(field):
        return _scanGroup(_readTensor(field), lambda a, b: a * b, inclusive=False)  # here

    scan(SCALAR)


@WRONGS.add("_ballotGroup: a part has 32 threads at most, a bit each, not 64")
def more_threads_than_bits():
    @gp.operator
    def vote(field):
        _localThreads(4, 16)
        return _ballotGroup(_readTensor(field) > 0)  # here

    vote(SCALAR).numpy()


@WRONGS.add(
    "_countGroup: `over=3` makes no equal parts of a work-group of 16 threads; give a divisor of 16, or the name of an axis"
)
def parts_that_do_not_divide():
    @gp.operator
    def count(field):
        _localThreads(4, 4)
        return _countGroup(_readTensor(field) > 0, over=3)  # here

    count(SCALAR)


@WRONGS.add("_reduceGroup: `over=` names an axis, 'layer', 'row', 'column', not 'columns'")
def parts_along_no_axis():
    gp.operator(lambda field: _reduceGroup(_readTensor(field), "add", over="columns"))(SCALAR)  # here


@WRONGS.add("_selectGroup takes a scalar, not a float2; vectors have no order")
def selection_of_vectors():
    gp.operator(lambda field: _selectGroup(_readTensor(field), 2))(VECTOR2)  # here


@WRONGS.add("the thread of _shuffleGroup is a scalar integer, not a float")
def thread_that_is_no_integer():
    gp.operator(lambda field: _shuffleGroup(_readTensor(field), 1.5))(SCALAR)  # here


@WRONGS.add("`_allGroup` wants a scalar condition, not a bool2")
def vote_of_vectors():
    gp.operator(lambda field: _allGroup(_readTensor(field) > 0))(VECTOR2)  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_message_and_line(wrong):
    wrong.check()


def test_parts_that_only_a_target_has():
    """A target that decides about parts is told when they do not divide its work-groups."""

    @gp.operator
    def total(f):
        _localThreads(12)
        return _reduceGroup(_readTensor(f), "add", over=_target.choose({"opencl": 5, "reference": 4}))

    f = gp.ScalarField(np.arange(24, dtype=np.int32))
    with gp.use_device("reference"):
        np.testing.assert_array_equal(total(f).numpy(), np.repeat(np.arange(24).reshape(6, 4).sum(1), 4))
    with pytest.raises(gp.SemanticError, match="`over=5` makes no equal parts of a work-group of 12 threads"):
        total.source(f.type, target="opencl")


@pytest.mark.parametrize("whole", [False, True])
def test_checked_execution_finds_nothing_wrong(whole):
    """Neither races nor memory that nobody wrote, in groups and parts that lack threads, and from turn to turn."""

    @gp.operator
    def together(f):
        _localThreads(4, 10, whole_groups=whole)
        x = _var(_readTensor(f))
        with _for(3):
            x @= _scanGroup(x, "add", over="row") - _reduceGroup(x, "max") + _selectGroup(x, 7, over=5)
            x += (
                _shuffleGroupXor(x, 5, over=20)
                + _scanGroup(x, "max", inclusive=False)
                - _broadcastGroup(x, 3, over="column")
            )
        return x

    x = np.random.default_rng(3).integers(0, 100, (9, 23)).astype(np.int32)
    with gp.use_device("reference"):
        plain = together(gp.ScalarField(x)).numpy()
    with gp.use_device("reference", checked=True):
        np.testing.assert_array_equal(together(gp.ScalarField(x)).numpy(), plain)
