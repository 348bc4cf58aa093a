"""Atomic functions on every kind of memory, and what they are for. Expected values are NumPy's and plain Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(11)
DTYPES = {"int": "int32", "uint": "uint32", "long": "int64", "ulong": "uint64"}

# an update with x, which is one of the threads' numbers, and what it leaves: after all, their order does not matter
UPDATES: dict[str, tuple[Callable[..., Any], Callable[[int, int], int]]] = {
    "add": (_atomic_add, lambda old, x: old + x),
    "sub": (_atomic_sub, lambda old, x: old - x),
    "max": (_atomic_max, max),
    "min": (lambda p, x: _atomic_min(p, x - 20), lambda old, x: min(old, x - 20)),
    "and": (lambda p, x: _atomic_and(p, x | 33), lambda old, x: old & (x | 33)),
    "inc": (lambda p, x: _atomic_inc(p), lambda old, x: old + 1),
    "xchg": (lambda p, x: _atomic_xchg(p, 99), lambda old, x: 99),
    "dec": (lambda p, x: _atomic_dec(p), lambda old, x: old - 1),
    "or": (_atomic_or, lambda old, x: old | x),
    "xor": (lambda p, x: _atomic_xor(p, x * 5), lambda old, x: old ^ (x * 5)),
    "cmpxchg": (lambda p, x: _atomic_cmpxchg(p, 37, 1234), lambda old, x: 1234 if old == 37 else old),
    "compxchg": (lambda p, x: _atomic_compxchg(p, 36, 1234), lambda old, x: old),
}
COUNT, START = len(UPDATES), 37
NUMBERS = range(20, 70)


@pytest.mark.parametrize("word", DTYPES)
def test_every_function_everywhere(device: str, word: str) -> None:
    """Local variables and arrays, outputs' and tensors' elements, 0D outputs; results ignored."""
    dtype = DTYPES[word]
    kinds = (gp.FieldType(COUNT, 3, dtype), gp.FieldType((2, COUNT), (), dtype), gp.FieldType((COUNT, 2), (), dtype))
    single = gp.FieldType((), (), dtype)

    @gp.operator(outputs=(*kinds, *(single,) * 7), default=START)
    def updates():
        _globalThreads(len(NUMBERS))
        _localThreads(64)
        x = globals()[f"_convert_{word}"](_column + NUMBERS[0])
        several = _volatile(_local(globals()[f"_{word}Array"](2, COUNT)))
        alone = [_local(globals()[f"_{word}Var"]()) for _ in UPDATES]
        with _if(_column == 0):
            for k, variable in enumerate(alone):
                variable @= START
                several[1, k] = START
        _syncThreadsLocal()
        for k, (update, _) in enumerate(UPDATES.values()):
            update(_pointerTo(_out0, _column % 1 + k, 2), x)
            update(_pointerTo(_out1, 1, k), x)
            update(_pointerTo(several[_column % 1 + 1, k]), x)
            update(_pointerTo(alone[k]), x)
            if k < 7:
                update(_pointerTo(globals()[f"_out{k + 3}"]), x)
        _syncThreadsLocal()
        with _if(_column == 0):
            for k, variable in enumerate(alone):
                _writeTensor(_out2, variable, k, 0)
                _writeTensor(_out2, several[1, k], k, 1)

    values = []
    for _, meaning in UPDATES.values():
        value = START
        for x in NUMBERS:
            value = meaning(value, x) % 2 ** (8 * np.dtype(dtype).itemsize) if word[0] == "u" else meaning(value, x)
        values.append(value)
    done = np.array(values, dtype)
    vectors, image = np.full((COUNT, 3), START, dtype), np.full((2, COUNT), START, dtype)
    vectors[:, 2] = image[1] = done
    all_same(updates(), (vectors, image, np.stack([done, done], -1), *done[:7]))


@pytest.mark.parametrize("word", DTYPES)
def test_of_a_threads_own_memory(device: str, word: str) -> None:
    """A variable and an array's element; the result is what was there."""
    dtype = DTYPES[word]

    @gp.operator(outputs=gp.FieldType((COUNT, len(NUMBERS)), 4, dtype))
    def own():
        _globalThreads(len(NUMBERS))
        x = globals()[f"_convert_{word}"](_column + NUMBERS[0])
        for k, (update, _) in enumerate(UPDATES.values()):
            v, a = _volatile(globals()[f"_{word}Var"](START)), globals()[f"_{word}Array"](2, 3)
            a[1, _column % 3] = START
            first = update(_pointerTo(v), x)
            second = update(_pointerTo(a[1, _column % 3]), x)
            _writeTensor(_out0, _vector(first, v, second, a[1, _column % 3]), k, _column)

    values = np.array([[meaning(START, x) for x in NUMBERS] for _, meaning in UPDATES.values()]).astype(dtype)
    old = np.full_like(values, START)
    same(own(), np.stack([old, values, old, values], -1))


def test_floats(device: str) -> None:
    a = rng.integers(-50, 50, 300).astype(np.float32) / 4

    kinds = (gp.FieldType(4, (), "float32"), gp.FieldType((), (), "float32"), gp.FieldType(300, (), "float32"))

    @gp.operator(outputs=kinds)
    def sums(f):
        _globalThreads(300)
        _localThreads(64)
        part, own, array = _local(_floatVar()), _floatVar(1), _floatArray(2)
        with _if(_localColumn == 0):
            part @= 0.5
        _syncThreadsLocal()
        x = _readTensor(f, _column)
        _atomic_add(_pointerTo(_out0, 0), x)
        _atomic_sub(_pointerTo(_out0, 1), x)
        _atomic_xchg(_pointerTo(_out0, 2), 7)
        _atomic_add(_pointerTo(_out0, 9), x)
        _atomic_sub(_pointerTo(part), x)
        was = _atomic_add(_pointerTo(own), x) + _atomic_xchg(_pointerTo(own), 2) + _atomic_sub(_pointerTo(array[1]), x)
        _syncThreadsLocal()
        with _if(_localColumn == 0):
            _atomic_add(_pointerTo(_out1), part)
        _writeTensor(_out2, was + own * 1000 + array[1], _column)

    total = a.sum()
    all_same(
        sums(gp.ScalarField(a)), (np.float32([total, -total, 7, 0]), np.float32(2.5 - total), 1 + 1 + a + 2000 - a)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_of_floats(device: str, dtype: str) -> None:
    """Extremes leave NaN out, and -0 is less than 0, so the order does not matter; what is compared are bits."""
    a = rng.integers(-9, 10, 300).astype(dtype) / 4
    a[::7] = np.nan
    zeros = np.where(np.arange(300) % 2 == 0, 0.0, -0.0).astype(dtype)
    kind = gp.FieldType(8, (), dtype)
    word = {"float32": "float", "float64": "double"}[dtype]

    @gp.operator(outputs=(kind, kind, gp.FieldType(300, (), dtype)), default=np.nan)
    def updates(f, g):
        _localThreads(64)
        _globalThreads(300)
        x, zero = _readTensor(f, _column), _readTensor(g, _column)
        local, own = _local(globals()[f"_{word}Array"](8)), globals()[f"_{word}Var"](1)
        with _if(_localColumn < 8):
            local[_localColumn] = 0.0
        _syncThreadsLocal()
        _atomic_min(_pointerTo(_out0, 0), x)
        _atomic_max(_pointerTo(_out0, 1), x)
        _atomic_min(_pointerTo(_out0, 2), zero)
        _atomic_max(_pointerTo(_out0, 3), zero)
        _atomic_xchg(_pointerTo(_out0, 4), zero * zero + 3)
        _atomic_add(_pointerTo(_out0, 5), x * 0)
        _atomic_min(_pointerTo(local[0]), x)
        _atomic_max(_pointerTo(local[1]), x)
        _atomic_min(_pointerTo(local[2]), zero)
        _atomic_cmpxchg(_pointerTo(local[3]), -0.0, 1)
        _atomic_cmpxchg(_pointerTo(local[4]), 0.0, 2)
        _syncThreadsLocal()
        with _if((_localColumn < 8) & (_groupColumn == 0)):
            _writeTensor(_out1, local[_localColumn], _localColumn)
        was = _atomic_min(_pointerTo(own), x) + 10 * _atomic_cmpxchg(_pointerTo(own), 1, 5)
        _writeTensor(_out2, was + own * 100, _column)

    first = a[:64]
    least = np.fmin(a, 1)
    expected = (1 + least * 10 + np.where(least == 1, 5, least) * 100).astype(dtype)
    all_same(
        updates(gp.ScalarField(a), gp.ScalarField(zeros)),
        (
            np.array([np.nanmin(a), np.nanmax(a), -0.0, 0.0, 3, np.nan, np.nan, np.nan], dtype),
            np.array([min(0, np.nanmin(first)), max(0, np.nanmax(first)), -0.0, 0, 2, 0, 0, 0], dtype),
            expected,
        ),
    )
    result = updates(gp.ScalarField(a), gp.ScalarField(zeros))[0].numpy()
    assert np.signbit(result[2]) and not np.signbit(result[3])


def test_tickets(device: str) -> None:
    """The values that a counter gives are a permutation; outside an output there is no counter."""
    kinds = (gp.FieldType((20, 30), (), "int32"), gp.FieldType((20, 30), (), "int32"), gp.FieldType(3, 2, "int32"))

    @gp.operator(outputs=kinds, default=5)
    def tickets():
        mine = _atomic_inc(_pointerTo(_out2, 1, 1))
        outside = _atomic_inc(_pointerTo(_out2, _row - 30, 0)) + _atomic_add(_pointerTo(_out2, 0, _column + 2), 1)
        _writeTensor(_out0, mine)
        _writeTensor(_out1, outside + _atomic_xchg(_pointerTo(_out2, 3, 1), mine))

    mine, outside, counters = (r.numpy() for r in tickets())
    np.testing.assert_array_equal(np.sort(mine.ravel()), np.arange(5, 605))
    assert not outside.any()
    same(counters, np.int32([[5, 5], [5, 605], [5, 5]]))


def test_tickets_in_local_memory(device: str) -> None:
    """Every group has its counter; the results live on after the barrier."""

    @gp.operator(outputs=gp.FieldType(150, (), "int32"))
    def places():
        _localThreads(32)
        counter, list_ = _local(_intVar()), _local(_intArray(32))
        with _if(_localColumn == 0):
            counter @= 0
        _syncThreadsLocal()
        place = _atomic_inc(_pointerTo(counter))
        list_[place] = 1
        _syncThreadsLocal()
        return place * 10000 + counter * 10 + list_[place]

    actual = places().numpy()
    sizes = np.repeat([32, 32, 32, 32, 22], [32, 32, 32, 32, 22])
    np.testing.assert_array_equal(actual % 10000, sizes * 10 + 1)
    for start in range(0, 150, 32):
        mine = np.sort(actual[start : start + 32] // 10000)
        np.testing.assert_array_equal(mine, np.arange(len(mine)))
