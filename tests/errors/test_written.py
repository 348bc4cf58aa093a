"""Outputs of which too little is written: at own points they are written on every path, or have a default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .wrong import Wrongs

WRONGS = Wrongs()
PATHS = (
    "_out0 is not written on every path through `op`; write it in the other branch too, or give the output a `default=`"
)
Body = Callable[[], None]


# --- what holds of a scalar holds of every tensor, however its elements are counted -------------------------------------------


def plainly(write: Body) -> None:
    write()


def in_one_branch(write: Body) -> None:
    with _if(_column > 2):
        write()


def in_both_branches(write: Body) -> None:
    with _if(_column > 2):
        write()
    with _else():
        write()


def in_all_but_the_last_branch(write: Body) -> None:
    with _if(_column > 3):
        write()
    with _elseif(_column > 2):
        write()


def in_a_while(write: Body) -> None:
    turns = _var(0)
    with _while(turns < _column - 2):
        turns += 1
        write()


def up_to_the_break(write: Body) -> None:
    with _while(True):
        write()
        _break()


def before_each_break(write: Body) -> None:
    turns = _var(0)
    with _while(True):
        with _if(turns > 3):
            write()
            _break()
        with _elseif(_column == turns):
            turns += 1
            _continue()
        write()
        with _if(_column > 4):
            _break()
        turns += 1


def before_one_break(write: Body) -> None:
    with _while(True):
        with _if(_column < 3):
            _break()
        write()
        _break()


def in_a_loop(write: Body) -> None:
    with _for(2):
        write()


def in_a_loop_of_any_turns(write: Body) -> None:
    with _for(_column - 2):
        write()


def before_a_break(write: Body) -> None:
    with _for(2):
        with _if(_column <= 2):
            _break()
        write()


def beside_a_loop_that_is_left(write: Body) -> None:
    with _for(9) as k:
        with _if(k > _column):
            _break()
    write()


COMPLETE = {plainly, in_both_branches, in_a_loop, beside_a_loop_that_is_left, up_to_the_break, before_each_break}
CONTROLS = [
    plainly, in_one_branch, in_both_branches, in_all_but_the_last_branch, in_a_while, in_a_loop, in_a_loop_of_any_turns,
    before_a_break, beside_a_loop_that_is_left, up_to_the_break, before_each_break, before_one_break,
]  # fmt: skip


def each_element(n: int, control: Callable[[Body], None]) -> None:
    with _forEachTensorElement(n):
        control(lambda: _writeTensorElement(_out0, 1))


def counted(n: int, control: Callable[[Body], None]) -> None:
    with _for(n) as k:
        control(lambda: _writeTensorElement(_out0, 1, k))


def counted_in_halves(n: int, control: Callable[[Body], None]) -> None:
    for bounds in ((n // 2,), (n - 1, n // 2 - 1, -1)):
        with _for(*bounds) as k:
            control(lambda k=k: _writeTensorElement(_out0, 1, k))


def unrolled(n: int, control: Callable[[Body], None]) -> None:
    for k in range(n):
        control(lambda k=k: _writeTensorElement(_out0, 1, k))


@pytest.mark.parametrize("way", [each_element, counted, counted_in_halves, unrolled])
@pytest.mark.parametrize("control", CONTROLS)
def test_own_points(control: Callable[[Body], None], way: Callable[[int, Callable[[Body], None]], None]) -> None:
    """The points 3, 4, 5 are written, and the others where the control is complete."""
    expected = np.repeat(np.float32([[1 if control in COMPLETE else 9]] * 3 + [[1]] * 3), 5, 1)
    for planes in (1, 4, 5):
        for outside in (False, True):
            check(control, way, planes, outside, expected[:, :planes])


def check(control: Any, way: Any, planes: int, outside: bool, expected: Any) -> None:
    kind = gp.FieldType(6, planes)

    def op() -> None:
        if outside:
            control(lambda: way(planes, plainly))
        else:
            way(planes, control)

    with gp.use_device("reference"):
        if control in COMPLETE:
            gp.operator(outputs=kind)(op)()
        else:
            with pytest.raises(gp.SemanticError) as caught:
                gp.operator(outputs=kind)(op)()
            assert caught.value.message == PATHS
        written = gp.operator(outputs=kind, default=9)(op)().numpy()
    assert np.array_equal(written, expected), (planes, outside)


def test_computed_elements_start_from_the_default() -> None:
    @gp.operator(outputs=gp.FieldType(2, 5))
    def op() -> None:
        with _if(_column == 0):
            with _forEachTensorElement(5):
                _writeTensorElement(_out0, _tensorElement, 4 - _tensorElement)

    with gp.use_device("reference"):
        assert op().numpy().tolist() == [[4, 3, 2, 1, 0], [0] * 5]


# --- threads that cover less than the output ----------------------------------------------------------------------------


@WRONGS.add(
    "_out0 is 20, and the threads, 10, write only their own points of it; give it a `default=`, which the others keep, "
    "or more threads by `_globalThreads`"
)
def fewer_threads():
    @gp.operator(outputs=gp.FieldType(20))
    def ones():
        _globalThreads(10)
        _writeTensor(_out0, 1, _column)  # here

    ones()


@WRONGS.add("_out1 is 3×5, and the threads, 4×4, write only their own points of it; give it a `default=`")
def fewer_columns_of_another_output():
    @gp.operator(outputs=(gp.FieldType((4, 4)), gp.FieldType((3, 5))))
    def two():
        _writeTensor(_out0, 1)
        with _if(_row > 1):
            _writeTensor(_out1, 1, _row, _column)  # here

    two()


@WRONGS.add("_out0 is 20, and the threads, 16, write only their own points of it; give it a `default=`")
def fewer_threads_of_whole_groups():
    @gp.operator(outputs=gp.FieldType(20))
    def ones():
        _globalThreads(10)
        _localThreads(8, whole_groups=True)
        _writeTensor(_out0, 1, _column)  # here

    ones()


@WRONGS.add(PATHS)
def fewer_elements():
    @gp.operator(outputs=gp.FieldType(4, 7))
    def op():
        _globalThreads(4, tensor=5)
        _writeTensorElement(_out0, 1)  # here

    op()


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_messages(wrong):
    wrong.check()


def test_what_is_no_point_of_their_own_starts_from_the_default() -> None:
    """A default says that it is meant; so do places that are computed."""

    def shifted() -> None:
        _globalThreads(3)
        _writeTensor(_out0, 1, _column + 1)

    def own() -> None:
        _globalThreads(3)
        _writeTensor(_out0, 1, _column)

    def own_of_more() -> None:
        _globalThreads(9)
        _writeTensor(_out0, 1, _column)

    kind = gp.FieldType(5)
    with gp.use_device("reference"):
        assert gp.operator(outputs=kind)(shifted)().numpy().tolist() == [0, 1, 1, 1, 0]
        assert gp.operator(outputs=kind, default=7)(own)().numpy().tolist() == [1, 1, 1, 7, 7]
        assert gp.operator(outputs=kind)(own_of_more)().numpy().tolist() == [1] * 5
