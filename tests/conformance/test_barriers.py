"""Barriers: what is known before one is known after it, in blocks of every kind. Expected values are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(5)


@pytest.mark.parametrize("columns", [64, 50, 5])
def test_values_across_barriers(device: str, columns: int) -> None:
    """Scalars, vectors, variables and arrays of before a barrier are used after it; variables change in between."""
    a = rng.integers(1, 99, (columns, 2)).astype(np.float32)

    @gp.operator(outputs=gp.FieldType(columns, 4, "float32"))
    def mixed(f):
        _localThreads(16)
        shared = _local(_floatArray(16))
        x, y = _readTensor(f)
        both = _vector(y, x) * 2
        count, pair, own = _var(1.0), _var(_float2(x, 1)), _floatArray(3)
        own[1] = x
        shared[_localColumn] = x + y
        _syncThreadsLocal()
        left = shared[_max(_localColumn - 1, 0)]
        count += x
        pair.y = left
        own[_convert_int(x) % 3] += y
        _syncThreadsLocal()
        shared[_localColumn] = count
        _syncThreadsLocal()
        count @= count + shared[_localColumn] + both.x
        with _if(left > 80):
            pair.x = -left
        return _float4(count, pair.x + both.y, pair.y, own[0] + own[1] * 10 + own[2] * 100)

    x, y = a.T
    local = np.arange(columns) % 16
    left = (x + y)[np.arange(columns) - (local > 0)]
    own = np.zeros((columns, 3), np.float32)
    own[:, 1] = x
    own[np.arange(columns), x.astype(int) % 3] += y
    first = np.where(left > 80, -left, x) + 2 * x
    expected = np.stack([2 * (1 + x) + 2 * y, first, left, own @ np.float32([1, 10, 100])], -1)
    same(mixed(gp.VectorField(a)), expected)


@pytest.mark.parametrize("flag", [0, 1])
def test_barriers_under_uniform_conditions(device: str, flag: int) -> None:
    a = rng.integers(0, 99, (6, 40)).astype(np.int32)

    @gp.operator
    def swapped(f, on):
        _localThreads(2, 16)
        shared = _local(_intArray(2, 16))
        x = _var(_readTensor(f))
        twice = x * 2
        with _if(_readTensor(on) > 0):
            shared[_localRow, _localColumn] = x + twice
            _syncThreadsLocal()
            x @= shared[1 - _localRow, _localColumn]
        with _elseif(_groupRow == 1):
            shared[_localRow, _localColumn] = twice
            _syncThreadsLocal()
            x @= shared[1 - _localRow, _localColumn]
        with _else():
            x += 1
        return x

    other = a.reshape(3, 2, 40)[:, ::-1].reshape(6, 40)
    group = np.arange(6)[:, None] // 2
    expected = other * 3 if flag else np.where(group == 1, other * 2, a + 1)
    same(swapped(gp.ScalarField(a), gp.ScalarField(np.int32(flag))), expected.astype(np.int32))


def test_a_condition_in_shared_and_in_private_memory(device: str) -> None:
    """The condition of a barrier may lie in memory, the same for all threads of the group; tail threads see it too."""
    a = rng.integers(0, 99, 45).astype(np.int32)

    @gp.operator
    def until(f):
        _localThreads(16)
        most, shared, limits = _local(_intVar()), _local(_intArray(16)), _intArray(2)
        limits[0] = 2
        limits[1] = limits[0] + 1
        with _if(_localColumn == 0):
            most @= 0
        _syncThreadsLocal()
        _atomic_max(_pointerTo(most), _readTensor(f))
        _syncThreadsLocal()
        x = _var(0)
        with _while(lambda: (most > 50) & (x < limits[1])):
            shared[_localColumn] = x
            _syncThreadsLocal()
            x @= shared[0] + 1
            _syncThreadsLocal()
        return most * 10 + x

    padded = np.zeros(48, np.int32)
    padded[:45] = a
    most = np.repeat(padded.reshape(3, 16).max(1), 16)[:45]
    same(until(gp.ScalarField(a)), most * 10 + np.where(most > 50, 3, 0).astype(np.int32))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "uint32", "int64", "float16", "float64"])
def test_types_across_barriers(device: str, dtype: str) -> None:
    """Of tail threads they hold nothing; those of the grid find what they left."""
    a = rng.integers(0, 2 if dtype == "bool" else 50, 21).astype(dtype)

    @gp.operator
    def kept(f):
        _localThreads(8)
        x = _readTensor(f)
        v, twice = _var(x), x == x
        _syncThreadsLocal()
        with _if(twice):
            v @= v + x if dtype != "bool" else _not(v)
        _syncThreadsLocal()
        return v

    same(kept(gp.ScalarField(a)), ~a if dtype == "bool" else (a + a).astype(dtype))
