"""Checked execution: places outside fields, arrays and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .planted import Bugs, Program, check_right, check_wrong

bugs = Bugs()
IMAGE = gp.ScalarField(np.arange(63, dtype="f").reshape(7, 9))
VOLUME = gp.ScalarField(np.arange(30, dtype="f").reshape(2, 3, 5))
LINE = gp.ScalarField(np.arange(20, dtype="f"))
BIG = gp.VectorField(np.arange(60, dtype="f").reshape(12, 5))
SKIP = "or leave such threads out with `_if`"


@bugs.add(
    'thread (row 0, column 8) reads `f` outside, under border="unchecked": column 9 of 9; give a border rule, such as '
    f'border="clamp", {SKIP}'
)
def column_outside(right: bool) -> Any:
    @gp.operator
    def shifted(f):
        last = _columns - 1 if right else _columns
        return _readTensor(f, _row, _min(_column + 1, last), border="unchecked")  # here

    return shifted(IMAGE)


@bugs.add(
    'thread (layer 0, row 0, column 2) reads `f` outside, under border="unchecked": row -1 of 3; give a border rule, such '
    f'as border="clamp", {SKIP}'
)
def row_of_a_volume(right: bool) -> Any:
    @gp.operator(default=0)
    def above(f):
        with _if((_column > 1) & (_row > (0 if right else -1))):
            _writeTensor(_out0, _readTensor(f, _layer, _row - 1, _column, border="unchecked"))  # here

    return above(VOLUME)


@bugs.add(
    f"thread (row 0, column 3) reads `a[0, 3]`, outside the array: index 1 is 3, and the extent 3; keep it inside, {SKIP}"
)
def private_load(right: bool) -> Any:
    """The offset is inside the array, the index is not."""

    @gp.operator
    def loads(f):
        a = _floatArray(4, 3)
        a[1, 0] = _readTensor(f)
        return a[0 if not right else _row % 4, _column % (3 if right else 4)]  # here

    return loads(IMAGE)


@bugs.add(
    f"thread (column 4) writes `a[-1]`, outside the array: the index is -1, and the extent 8; keep it inside, {SKIP}"
)
def private_store(right: bool) -> Any:
    @gp.operator
    def stores(f):
        a = _floatArray(8)
        with _if(_column > (4 if right else 3)):
            a[_column % 8 - (0 if right else 5)] = _readTensor(f)  # here
        return a[_column % 8]

    return stores(LINE)


@bugs.add(
    f"thread (column 5) reads `table[5]`, outside the array: the index is 5, and the extent 5; keep it inside, {SKIP}"
)
def constant_load(right: bool) -> Any:
    @gp.operator
    def looked_up(f):
        table = _constantArray([1.5, 2.5, 3.5, 4.5, 5.5])
        return _readTensor(f) + table[_min(_column, 4) if right else _column]  # here

    return looked_up(LINE)


@bugs.add(
    f"thread (column 6) writes `tile[8]`, outside the array: the index is 8, and the extent 8; keep it inside, {SKIP}"
)
def local_store(right: bool) -> Any:
    @gp.operator
    def tiled(f):
        _localThreads(8)
        tile = _local(_floatArray(8))
        tile[_localColumn if right else _localColumn + 2 * (_column / 6)] = _readTensor(f)  # here
        _syncThreadsLocal()
        return tile[_localColumn]

    return tiled(LINE)


@bugs.add(
    f"thread (column 4) changes `bins[4]` atomically, outside the array: the index is 4, and the extent 4; keep it inside, {SKIP}"
)
def atomic_outside(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType(20, (), "int32"))
    def counts():
        _localThreads(10)
        bins = _local(_intArray(4))
        with _if(_localColumn < 4):
            bins[_localColumn] = 0
        _syncThreadsLocal()
        _atomic_inc(_pointerTo(bins[_localColumn % 4 if right else _localColumn]))  # here
        _syncThreadsLocal()
        return bins[_localColumn % 4]

    return counts()


@bugs.add(
    f"thread (column 0) reads element 5 of `f`, whose tensors have 5; keep it inside, for borders do not apply to elements, {SKIP}"
)
def element_in_a_loop(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType(12))
    def total(f):
        v = _floatVar()
        with _for(5 if right else 6) as k:
            v += _readTensorElement(f, _column, k)  # here
        return v

    return total(BIG)


@bugs.add(
    "thread (column 0, element 4) reads element 5 of `f`, whose tensors have 5; keep it inside, for borders do not apply to "
    f"elements, {SKIP}"
)
def element_of_a_thread(right: bool) -> Any:
    @gp.operator
    def turned(f):
        with _forEachTensorElement(f.tensor_shape):
            other = (_tensorElement + 1) % 5 if right else _tensorElement + 1
            _writeTensorElement(_out0, _readTensorElement(f, other))  # here

    return turned(BIG)


@pytest.mark.parametrize(("program", "message"), bugs.all)
def test_wrong(program: Program, message: str) -> None:
    check_wrong(program, message)


@pytest.mark.parametrize(("program", "message"), bugs.all)
def test_right(program: Program, message: str) -> None:
    check_right(program)
