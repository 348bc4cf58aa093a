"""Barriers in loops of every kind. Expected values are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(5)


@pytest.mark.parametrize("bound", ["constant", "parameter", "field", "group"])
def test_loops_with_uniform_bounds(device: str, bound: str) -> None:
    """Neighbours exchange values, as often as a number says that is known late; nested loops, a uniform break."""
    a = rng.integers(0, 99, 70).astype(np.int32)
    turns = {"constant": 3, "parameter": gp.Parameter(np.int32(3)), "field": gp.ScalarField(np.int32(3)), "group": 3}
    given = turns[bound]

    @gp.operator
    def shifted(f):
        _localThreads(32, whole_groups=True)
        ring = _local(_intArray(32))
        x = _var(_readTensor(f))
        count = _readTensor(given) if isinstance(given, gp.Field) else _groupColumn + 1 if bound == "group" else given
        done = _var(0)
        with _for(count) as i:
            with _for(100) as j:
                with _if(j > i):
                    _break()
                ring[_localColumn] = x
                _syncThreadsLocal()
                x @= ring[(_localColumn + 1) % 32] if bound != "group" else ring[_localColumn ^ 1]
                _syncThreadsLocal()
                done += 1
        return x * 100 + done

    rings = np.pad(a, (0, 26), "edge").reshape(3, 32)
    count = [1, 2, 3] if bound == "group" else [3] * 3
    rows = []
    for ring, n in zip(rings, count, strict=True):
        steps = n * (n + 1) // 2
        moved = np.arange(32) ^ (steps % 2) if bound == "group" else (np.arange(32) + steps) % 32
        rows.append(ring[moved] * 100 + steps)
    same(shifted(gp.ScalarField(a)), np.concatenate(rows)[:70].astype(np.int32))


def test_continue_and_assignments_around_barriers(device: str) -> None:
    a = rng.integers(0, 9, 21).astype(np.int32)

    @gp.operator
    def body(f):
        _localThreads(8)
        shared = _local(_intArray(8))
        x, total = _var(_readTensor(f)), _var(0)
        with _for(4) as i:
            with _if(i == 2):
                _continue()
            fresh = _var(x)  # anew at every turn
            step = _intVar()
            shared[_localColumn] = fresh
            step += i
            _syncThreadsLocal()
            with _if(_localColumn > 0):
                fresh += shared[_localColumn - 1]
                x += step
            _syncThreadsLocal()
            total += fresh
        return total

    x, total = a.copy(), np.zeros(21, np.int32)
    inner = np.arange(21) % 8 > 0
    for i in (0, 1, 3):
        total += x + np.where(inner, np.roll(x, 1), 0)
        x = x + np.where(inner, i, 0).astype(np.int32)
    same(body(gp.ScalarField(a)), total)


def test_unrolled_loops_and_loops_over_elements(device: str) -> None:
    a = rng.integers(0, 99, (19, 6)).astype(np.int32)

    @gp.operator(outputs=lambda f: f.type)
    def sums(f):
        _localThreads(8)
        shared = _local(_intArray(8))
        total = _var(0)
        with _for(3, unroll=True) as i:
            own = _intArray(2)
            own[i % 2] += _column
            shared[_localColumn] = own[0] + 10 * own[1] + i
            _syncThreadsLocal()
            total += shared[0]
            _syncThreadsLocal()
        with _forEachTensorElement(f.tensor_shape):
            shared[_localColumn] = _readTensorElement(f)
            _syncThreadsLocal()
            _writeTensorElement(_out0, shared[0] + total)
            _syncThreadsLocal()

    first = np.arange(19) // 8 * 8
    same(sums(gp.VectorField(a)), a[first] + (12 * first + 3)[:, None].astype(np.int32))


def test_a_barrier_in_the_condition_of_a_loop(device: str) -> None:
    a = rng.integers(0, 9, 20).astype(np.int32)

    @gp.operator
    def counted(f):
        _localThreads(8)
        left = _local(_intVar())
        turns, x = _var(0), _readTensor(f)
        with _if(_localColumn == 0):
            left @= x

        def more():
            _syncThreadsLocal()
            some = left > 0
            _syncThreadsLocal()
            return some

        with _while(more):
            turns += x
            with _if(_localColumn == 0):
                left @= left - 1
        return turns

    same(counted(gp.ScalarField(a)), a * a[np.arange(20) // 8 * 8])


ARRAYS = {"uint8": _ucharArray, "int32": _intArray, "float32": _floatArray}


@pytest.mark.parametrize(("group", "dtype"), [(7, "float32"), (8, "int32"), (8, "uint8"), (64, "int32")])
def test_turns_that_end_before_they_wait(device: str, group: int, dtype: str) -> None:
    a = rng.integers(1, 256, 4 * group).astype(dtype)

    @gp.operator
    def least(f):
        _localThreads(group)
        shared, noughts, x = _local(ARRAYS[dtype](group)), _local(ARRAYS[dtype](group)), _var(_readTensor(f))
        with _if(_localColumn < 4):
            noughts[_localColumn] = 0
        _syncThreadsLocal()
        x @= _max(x, noughts[_localColumn % 4])
        _syncThreadsLocal()
        q = _var(0)
        with _while(q < 3):
            q @= q + 1
            with _if(q == 2):
                _continue()
            shared[_localColumn] = x
            _syncThreadsLocal()
            last = _var(shared[group - 1])
            _syncThreadsLocal()
            x @= _min(x, last)
        return x

    same(least(gp.Field(a)), np.minimum(a, a[group - 1 :: group].repeat(group)))


def walked(x: np.ndarray) -> np.ndarray:
    """The result of the loop below for rows of threads."""
    for q in range(1, 6):
        x = x + np.roll(x, -3, 1)
        if q > 1:
            x = x * 3 + q
        if q == 2:
            continue
        x = (x ^ 5) + np.roll(x ^ 5, -1, 1)
        if q == 5:
            return x + 1000
        if q != 4:
            x = x & 0xFFFF
            x = x + np.roll(x, -2, 1)
    return x


def test_turns_that_end_in_the_middle_and_loops_that_are_left(device: str) -> None:
    """`continue` among conditions, before and behind barriers, and `break` beside it; the condition waits too."""
    a = rng.integers(0, 99, 32).astype(np.int32)

    @gp.operator
    def walk(f):
        _localThreads(8)
        shared, x, q = _local(_intArray(8)), _var(_readTensor(f)), _var(0)

        def exchanged(distance):
            nonlocal x
            shared[_localColumn] = x
            _syncThreadsLocal()
            x @= x + shared[(_localColumn + distance) % 8]
            _syncThreadsLocal()

        def more():
            exchanged(3)
            return q < 9

        with _while(more):
            q += 1
            with _if(q > 1):
                x @= x * 3 + q
                with _if(q == 2):
                    _continue()
                x @= x ^ 5
            with _else():
                x @= x ^ 5
            exchanged(1)
            with _if(q == 4):
                _continue()
            with _if(q == 5):
                x += 1000
                _break()
            x @= x & 0xFFFF
            exchanged(2)
        return x

    same(walk(gp.Field(a)), walked(a.reshape(-1, 8)).ravel().astype(np.int32))
