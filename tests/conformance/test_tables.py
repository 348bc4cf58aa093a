"""Tables in constant memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import has_double, same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(3)
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def extremes(dtype: str) -> Any:
    if dtype == "bool":
        return np.array([True, False, False, True])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, 0, 100, info.min + 1], dtype)
    info = np.finfo(dtype)
    return np.array([info.max, -info.max, info.tiny, 0.1, -0.0, np.nan, np.inf, -np.inf, 1 + info.eps], dtype)


@pytest.mark.parametrize("dtypes", [INTEGERS, ("bool", "float16", "float32"), ("float64",)])
def test_every_dtype(device: str, dtypes: tuple[str, ...]) -> None:
    """NumPy arrays keep their dtype; the greatest and least values, infinity and NaN survive."""
    if "float64" in dtypes and not has_double():
        pytest.skip("no double")
    values = {dtype: extremes(dtype) for dtype in dtypes}

    @gp.operator(outputs=tuple(gp.FieldType(20, (), dtype) for dtype in dtypes))
    def looked_up():
        return tuple(_constantArray(table)[_column % len(table)] for table in values.values())

    result = looked_up() if len(dtypes) > 1 else (looked_up(),)
    for actual, (dtype, table) in zip(result, values.items(), strict=True):
        same(actual, np.resize(table, 20), dtype)
        if dtype.startswith("float"):
            assert np.signbit(actual.numpy()[4]), dtype  # -0


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 4), (1, 1, 1), (5, 1)], ids=str)
def test_dimensions(device: str, shape: tuple[int, ...]) -> None:
    values = rng.integers(-99, 99, shape).astype(np.int32)

    @gp.operator(outputs=gp.FieldType(24, (), "int32"))
    def looked_up():
        table, nested = _constantArray(values), _constantArray(values.tolist())
        assert table.shape == nested.shape == shape
        rest, index = _column, []
        for extent in reversed(shape):
            index.insert(0, rest % extent)
            rest = rest / extent
        return table[tuple(index)] + nested[tuple(index)]

    flat = np.ravel_multi_index(np.unravel_index(np.arange(24) % values.size, shape), shape)
    same(looked_up(), values.ravel()[flat] * 2)


def test_lists_become_int_or_float(device: str) -> None:
    @gp.operator
    def sums(f):
        whole, real, flags = _constantArray([1, 2, 3]), _constantArray((0.5, 1)), _constantArray([True, False])
        assert str(whole[0].type) == "int" and str(real[0].type) == "float" and str(flags[0].type) == "bool"
        wide = _constantArray(np.arange(3, dtype=np.int64))  # an array keeps its dtype
        assert str(wide[0].type) == "long"
        k = _readTensor(f)
        return whole[k] + real[k % 2] + _where(flags[k % 2], 10, 20) + _convert_int(wide[k])

    k = np.int32([0, 1, 2, 0])
    expected = np.float32([1, 2, 3])[k] + np.float32([0.5, 1])[k % 2] + np.float32([10, 20])[k % 2] + k
    same(sums(gp.ScalarField(k)), expected.astype(np.float32))


@gp.operator
def toned(f):
    curve = _constantArray(np.float32([0, 1, 4, 9, 16]))
    return curve[_convert_int(_readTensor(f))]


@gp.operator
def levelled(f):
    curve = _constantArray([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2])
    return _readTensor(f) + curve[_convert_int(_readTensor(f))]


def test_two_operators_with_tables_fused(device: str) -> None:
    """Tables of one name and of different values, in one kernel."""
    a = rng.integers(0, 5, (6, 7)).astype(np.float32)
    with gp.ComputeGraph() as graph:
        graph.probe(levelled(toned(gp.ScalarField(a))), "out")
    squares = a**2
    curve = np.float32([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2])
    same(graph.read("out"), squares + curve[squares.astype(int)])
    assert graph.kernel_count == 1


def test_tables_in_blocks_loops_and_groups(device: str) -> None:
    """A table is the same for all turns; coefficients of a filter; next to local memory and barriers."""
    a = rng.integers(0, 50, 60).astype(np.int32)
    weights = [1, 4, 6, 4, 1]

    @gp.operator
    def smooth(f):
        _localThreads(16)
        shared = _local(_intArray(16))
        total = _var(0)
        with _for(5) as k:
            taps = _constantArray(weights)
            total += taps[k] * _readTensor(f, _column + k - 2, border="zero")
        shared[_localColumn] = total
        _syncThreadsLocal()
        with _if(_column % 2 == 0):
            total += _constantArray(weights)[_column % 5] * 1000
        return total + shared[_localColumn]

    filtered = np.convolve(a, weights, "same")
    column = np.arange(60)
    same(
        smooth(gp.ScalarField(a)),
        np.int32(filtered * 2 + np.where(column % 2 == 0, np.array(weights)[column % 5] * 1000, 0)),
    )


def test_the_largest_table(device: str) -> None:
    values = rng.integers(0, 2**31, 16128).astype(np.int32)

    @gp.operator(outputs=gp.FieldType(100, (), "int32"))
    def looked_up():
        return _constantArray(values)[_column * 161]

    same(looked_up(), values[: 100 * 161 : 161])


def test_a_changed_table_is_another_kernel(device: str) -> None:
    """An array that a body captures may change between calls."""
    values = np.arange(4, dtype=np.int32)

    @gp.operator(outputs=gp.FieldType(4, (), "int32"))
    def looked_up():
        return _constantArray(values)[_column]

    first = looked_up()
    values[2] = 100
    same(first, np.int32([0, 1, 2, 3]))
    same(looked_up(), values)
