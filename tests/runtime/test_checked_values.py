"""Checked execution: local memory that nobody wrote, division by zero, assertions."""

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
COUNTS = gp.ScalarField(np.int32([3, 0, 2, 5, 0, 1]))
LINE = gp.ScalarField(np.arange(20, dtype="f"))
DIVIDED = "and the result, 0, is used; leave such threads out with `_if`, or choose another value with `_where`"
UNWRITTEN = (
    "which no thread of its work-group has written, and local memory is not initialised; write it before, and wait with "
    "`_syncThreadsLocal()`"
)


# --- memory that nobody wrote ---------------------------------------------------------------------------------------------


@bugs.add(f"thread (column 7) reads `tile[0]`, {UNWRITTEN}")
def ring(right: bool) -> Any:
    @gp.operator
    def rotated(f):
        _localThreads(8, whole_groups=True)
        tile = _local(_floatArray(8))
        with _if(_localColumn >= (0 if right else 1)):
            tile[_localColumn] = _readTensor(f)
        _syncThreadsLocal()
        return tile[_min(_localColumn + 1, 3)] if right else tile[(_localColumn + 1) % 8]  # here

    return rotated(LINE)


@bugs.add(f"thread (column 8) changes `counter` atomically, {UNWRITTEN}")
def counter_of_one_group(right: bool) -> Any:
    """The first group sets its counter; the second has one of its own."""

    @gp.operator(outputs=gp.FieldType(16, (), "int32"))
    def counted():
        _localThreads(8)
        counter = _local(_intVar())
        with _if((_localColumn if right else _column) == 0):
            counter @= 0
        _syncThreadsLocal()
        _atomic_inc(_pointerTo(counter))  # here
        _syncThreadsLocal()
        return counter

    return counted()


@bugs.add(f"thread (row 0, column 0) reads `pair[1]`, {UNWRITTEN}")
def component(right: bool) -> Any:
    """The other component may be read."""

    @gp.operator
    def components(f):
        _localThreads(8, 8)
        pair = _local(_float2Var())
        with _if((_localRow == 0) & (_localColumn == 0)):
            pair.x = 3
        _syncThreadsLocal()
        return _readTensor(f) + (pair.x if right else pair.y)  # here

    return components(IMAGE)


# --- division -----------------------------------------------------------------------------------------------------------------


@bugs.add(f"an integer is divided by 0 in thread (column 1), {DIVIDED}")
def quotient(right: bool) -> Any:
    @gp.operator
    def shares(n):
        count = _readTensor(n)
        share = 60 / count  # here
        return _where(count != 0, share, -1) if right else share

    return shares(COUNTS)


@bugs.add(f"an integer is divided by 0 in thread (column 4), {DIVIDED}")
def remainder_in_a_block(right: bool) -> Any:
    @gp.operator
    def left(n):
        count, rest = _readTensor(n), _var(0)
        with _if(count != 0 if right else _column > 1):
            rest @= 7 % count  # here
        return rest

    return left(COUNTS)


@bugs.add(f"an integer is divided by 0 in thread (column 1), {DIVIDED}")
def floor_of_a_vector(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType(6, 2, "int32"))
    def floors(n):
        count = _readTensor(n)
        both = _int2(-7, 7) // _int2(3, count)  # here
        safe = _where(_int2(1, count) != 0, both, 0)
        return safe if right else both

    return floors(COUNTS)


@bugs.add(f"an integer is divided by 0 in thread (column 1), {DIVIDED}")
def condition(right: bool) -> Any:
    @gp.operator
    def many(n):
        count, found = _readTensor(n), _var(0)
        large = 60 / count > 25  # here
        with _while((count != 0) & large & (found < 2) if right else large & (found < 2)):
            found += 1
        with _if(_or(count == 0, 9 % count == 0)):
            found += 10
        return found

    return many(COUNTS)


# --- assertions ----------------------------------------------------------------------------------------------------------------


@bugs.add("an assertion does not hold: counts are positive; the first thread seen is column 1")
def assertion(right: bool) -> Any:
    @gp.operator
    def positive(n):
        count = _readTensor(n)
        _assert(count >= 0 if right else count > 0, "counts are positive")  # here
        return count

    return positive(COUNTS)


@bugs.add("an assertion does not hold; the first thread seen is layer 1, row 0, column 3")
def assertion_in_a_block(right: bool) -> Any:
    @gp.operator
    def large(f):
        x = _readTensor(f)
        with _if(_layer == 1):
            _assert(x < (99 if right else 18))  # here
        return x

    return large(VOLUME)


@pytest.mark.parametrize(("program", "message"), bugs.all)
def test_wrong(program: Program, message: str) -> None:
    check_wrong(program, message)


@pytest.mark.parametrize(("program", "message"), bugs.all)
def test_right(program: Program, message: str) -> None:
    check_right(program)
