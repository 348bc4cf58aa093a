"""Checked execution: threads that race for local memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .planted import Bugs, Program, check_right, check_wrong

bugs = Bugs()
rng = np.random.default_rng(11)
IMAGE = gp.ScalarField(rng.random((16, 16), np.float32))
LINE = gp.ScalarField(np.arange(40, dtype="f"))
ORDER = "in no certain order"
SYNC = "put `_syncThreadsLocal()` between the two"
ONE = "let one thread write it, or use atomics"


@bugs.add(
    f"thread (row 0, column 1) reads `tile[0, 0]`, and thread (row 0, column 0) of its work-group writes it in {{there}}, "
    f"{ORDER}; {SYNC}",
    there="# stored",
)
def first_barrier(right: bool) -> Any:
    @gp.operator
    def shifted(f):
        _localThreads(8, 8)
        tile = _local(_floatArray(8, 8))
        tile[_localRow, _localColumn] = _readTensor(f)  # stored
        if right:
            _syncThreadsLocal()
        return tile[_localRow, _max(_localColumn - 1, 0)]  # here

    return shifted(IMAGE)


@bugs.add(
    f"thread (row 0, column 0) writes `tile_b[0, 0]`, and thread (row 1, column 0) of its work-group reads it in {{there}}, "
    f"{ORDER}; {SYNC}",
    there="# read",
)
def second_barrier(right: bool) -> Any:
    """A tiled product of matrices needs two barriers in each turn."""

    @gp.operator
    def product(a, b):
        _localThreads(4, 4)
        tile_a, tile_b = _local(_floatArray(4, 4)), _local(_floatArray(4, 4))
        total = _floatVar()
        with _for(4) as t:
            tile_b[_localRow, _localColumn] = _readTensor(b, t * 4 + _localRow, _column)  # here
            tile_a[_localRow, _localColumn] = _readTensor(a, _row, t * 4 + _localColumn)
            _syncThreadsLocal()
            with _for(4) as k:
                total += tile_a[_localRow, k] * tile_b[k, _localColumn]  # read
            if right:
                _syncThreadsLocal()
        return total

    return product(IMAGE, IMAGE)


@bugs.add(
    f"thread (column 0) writes `shared`, and thread (column 7) of its work-group writes it with another value in the same line, "
    f"{ORDER}; {ONE}"
)
def all_write_one(right: bool) -> Any:
    """Equal values are no race, and whoever wrote one may read it."""

    @gp.operator
    def first(f):
        _localThreads(8)
        shared = _local(_floatVar())
        shared @= _readTensor(f, _groupColumn * 8) if right else _readTensor(f)  # here
        return shared + 1

    return first(LINE)


@bugs.add(
    f"thread (column 0) writes `counts[0]`, and thread (column 4) of its work-group reads it in the same line, {ORDER}; {SYNC}, "
    "or use atomics"
)
def lost_updates_of_a_groups_histogram(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType(40, (), "int32"))
    def counted(f):
        _localThreads(8)
        counts = _local(_intArray(8))
        counts[_localColumn] = 0
        _syncThreadsLocal()
        if right:
            _atomic_add(_pointerTo(counts[_localColumn % 4]), 1)
        else:
            counts[_localColumn % 4] += 1  # here
        _syncThreadsLocal()
        return counts[_localColumn]

    return counted(LINE)


@bugs.add(
    f"thread (column 0) reads `found`, and thread (column 3) of its work-group writes it in {{there}}, {ORDER}; {SYNC}",
    there="# found",
)
def flag(right: bool) -> Any:
    """Several threads write the same; those that do not must wait before they read it."""

    @gp.operator(outputs=gp.FieldType(40, (), "int32"))
    def any_large(f):
        _localThreads(8)
        found = _local(_intVar())
        with _if(_localColumn == 0):
            found @= 0
        _syncThreadsLocal()
        with _if(_readTensor(f) % 8 > 2):
            found @= 1  # found
        if right:
            _syncThreadsLocal()
        return found  # here

    return any_large(LINE)


@bugs.add(
    f"thread (column 0) reads `bins[1]`, and thread (column 1) of its work-group changes it atomically in {{there}}, {ORDER}; "
    f"{SYNC}",
    there="# counted",
)
def histogram(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType((5, 4), (), "int32"))
    def counts(f):
        _globalThreads(40)
        _localThreads(8)
        bins = _local(_intArray(4))
        with _if(_localColumn < 4):
            bins[_localColumn] = 0
        _syncThreadsLocal()
        _atomic_inc(_pointerTo(bins[_convert_int(_readTensor(f, _column)) % 4]))  # counted
        if right:
            _syncThreadsLocal()
        with _if(_localColumn < 4):
            _writeTensor(_out0, bins[(_localColumn + 1) % 4], _groupColumn, _localColumn)  # here

    return counts(LINE)


@bugs.add(
    f"thread (column 5) changes `total` atomically, and thread (column 0) of its work-group writes it in {{there}}, {ORDER}; "
    f"{SYNC}",
    there="# zeroed",
)
def counter(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType(40, (), "int32"))
    def counted(f):
        _localThreads(8)
        total = _local(_intVar())
        with _if(_localColumn == 0):
            total @= 0  # zeroed
        if right:
            _syncThreadsLocal()
        with _if(_localColumn > 4):
            _atomic_inc(_pointerTo(total))  # here
        _syncThreadsGlobal()
        return total

    return counted(LINE)


@pytest.mark.parametrize(("program", "message"), bugs.all)
def test_wrong(program: Program, message: str) -> None:
    check_wrong(program, message)


@pytest.mark.parametrize(("program", "message"), bugs.all)
def test_right(program: Program, message: str) -> None:
    check_right(program)
