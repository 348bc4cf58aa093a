"""Checked execution: threads that race for places in outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime.reference import positions

from .planted import Bugs, Program, arrays, check_right, check_wrong, checked

bugs = Bugs()
rng = np.random.default_rng(11)
IMAGE = gp.ScalarField(rng.random((16, 16), np.float32))
LINE = gp.ScalarField(np.arange(40, dtype="f"))
ORDER = "in no certain order"
ONE = "let one thread write it, or use atomics"


@bugs.add(
    f"thread (column 0) writes the output at (column 0), and thread (column 36) writes it with another value in the same line, "
    f"{ORDER}; {ONE}"
)
def scatter(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType(4))
    def scattered(f):
        _globalThreads(40)
        x = _readTensor(f)
        _writeTensor(_out0, (_column % 4) * 2.0 if right else x, _column % 4)  # here

    return scattered(LINE)


@bugs.add(
    f"thread (row 1, column 0) writes the output at (row 0, column 0, element 1), and thread (row 0, column 0) writes it with "
    f"another value in {{there}}, {ORDER}; {ONE}",
    there="# own",
)
def two_statements(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType((16, 16), 2), default=0)
    def written(f):
        x = _readTensor(f)
        _writeTensorElement(_out0, x, _row, _column, 1)  # own
        with _if(_row == 1):
            _writeTensorElement(_out0, x, _row - 1, _column, 0 if right else 1)  # here

    return written(IMAGE)


@bugs.add(
    f"thread (column 0) writes the output at (column 0), and thread (column 4) reads it in {{there}}, {ORDER}; {ONE}",
    there="# read",
)
def lost_updates_of_a_histogram(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType(4, (), "int32"), default=0)
    def counted(f):
        _globalThreads(f)
        place = _convert_int(_readTensor(f)) % 4
        if right:
            _atomic_add(_pointerTo(_out0, place), 1)
        else:
            count = _var(_readTensor(_out0, place))  # read
            count += 1
            _writeTensor(_out0, count, place)  # here

    return counted(LINE)


@bugs.add(
    f"thread (column 0) writes the output at (column 0), and thread (column 32) writes it with another value in the same line, "
    f"{ORDER}; {ONE} (no barrier orders different work-groups)"
)
def after_a_barrier(right: bool) -> Any:
    """A barrier orders the threads of one group."""

    @gp.operator(outputs=gp.FieldType(5))
    def last(f):
        _globalThreads(40)
        _localThreads(8)
        x = _readTensor(f, _column)
        for turn in range(2):
            with _if(_localColumn == turn):
                _writeTensor(_out0, x, _groupColumn if right else 0)  # here
            _syncThreadsGlobal()

    return last(LINE)


@bugs.add(
    f"thread (column 1) writes the output at (column 0), and thread (column 0) writes it with another value in {{there}}, "
    f"{ORDER}; {ONE}",
    there="# first",
)
def local_fence(right: bool) -> Any:
    """The fence of `_syncThreadsLocal` is for local memory."""

    @gp.operator(outputs=gp.FieldType(5))
    def two(f):
        _globalThreads(40)
        _localThreads(8)
        with _if(_localColumn == 0):
            _writeTensor(_out0, _readTensor(f, 3), _groupColumn)  # first
        (_syncThreadsGlobal if right else _syncThreadsLocal)()
        with _if(_localColumn == 1):
            _writeTensor(_out0, _readTensor(f, 5), _groupColumn)  # here

    return two(LINE)


@bugs.add(
    f"thread (column 0) writes the output at (column 0), and thread (column 1) changes it atomically in {{there}}, {ORDER}; use "
    "atomics in both places, or two outputs",
    there="# added",
)
def partly_atomic(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType(2, (), "int32"))
    def summed():
        _globalThreads(40)
        with _if(_column > 0):
            _atomic_add(_pointerTo(_out0, 0), _column)  # added
        with _if(_column == 0):
            _writeTensor(_out0, _column + 5, 1 if right else 0)  # here

    return summed()


@bugs.add(
    f"thread (column 0, element 0) writes the output at (column 0), and thread (column 39, element 2) writes it with another "
    f"value in the same line, {ORDER}; {ONE}"
)
def elements(right: bool) -> Any:
    """A thread for each element, and an output that has a point for each thread of one element."""

    @gp.operator(outputs=gp.FieldType(40))
    def threes(f):
        _globalThreads(40, tensor=3)
        point = 39 - _column if right else _column // 64
        _writeTensor(_out0, _column * 1.0 if right else _column + _tensorElement * 0.5, point)  # here

    return threes(LINE)


@bugs.add(
    "no thread writes the output at (column 10), which has no `default=` to hold there; write all of it, by more threads or by "
    "loops, or give the output a `default=`"
)
def too_few_threads(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType(20))
    def half(f):
        _globalThreads(10)
        with _for(2 if right else 1) as k:
            _writeTensor(_out0, _readTensor(f, _column), _column + 10 * k)  # here

    return half(LINE)


@bugs.add(
    "no thread writes the output at (row 0, column 15, element 1), which has no `default=` to hold there; write all of it, by "
    "more threads or by loops, or give the output a `default=`"
)
def missing_element(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType((16, 16), 2))
    def written(f):
        x = _readTensor(f)
        _writeTensorElement(_out0, x, 15 - _row, _column, 0)  # here
        with _if(_row + _column < (31 if right else 30)):
            _writeTensorElement(_out0, x, 15 - _row, _column, 1)

    return written(IMAGE * 2) + 1


@bugs.add(
    "no thread writes the output at (column 39), which has no `default=` to hold there; write all of it, by more threads or by "
    "loops, or give the output a `default=`"
)
def default_says_so(right: bool) -> Any:
    @gp.operator(outputs=lambda f: f.type, default=0 if right else None)
    def moved(f):
        _writeTensor(_out0, _readTensor(f) + 1, _column - 1)  # here

    return moved(LINE)


@pytest.mark.parametrize(("program", "message"), bugs.all)
def test_wrong(program: Program, message: str) -> None:
    check_wrong(program, message)


@pytest.mark.parametrize(("program", "message"), bugs.all)
def test_right(program: Program, message: str) -> None:
    check_right(program)


def test_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that the interpreter runs one after the other race all the same."""
    monkeypatch.setattr(positions, "CHUNK", 8)
    for program in (scatter, after_a_barrier, two_statements):
        with checked(), pytest.raises(gp.SemanticError, match="writes it with another value"):
            arrays(program(False))
        check_right(program)
