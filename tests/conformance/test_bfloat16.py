"""bfloat16 in memory: float32 in kernels, and the nearest bfloat16 at each write, on every device."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.ir.bfloat16 import CODED
from tests.bfloat16 import ALL, codes, nearest
from tests.harness import same_bits

rng = np.random.default_rng(21)
BITS = rng.integers(0, 2**32, 2**16, dtype=np.uint32)
TIES = ((np.arange(2**15, dtype=np.uint32) << np.uint32(17)) + np.uint32(0x8000)).view(np.float32)
NUMBERS = np.concatenate([BITS.view(np.float32), TIES, np.float32([3.4e38, -3.4e38, 1e-45, -1e-45, 0.0, -0.0])])


def bf(array, order=0):
    return gp.Field(array, order, "bfloat16")


def of(kind):
    return kind.replace(dtype="bfloat16")


def test_every_value_is_read_as_float(device: str) -> None:
    @gp.operator(outputs=gp.FieldType(2**16, (), "float32"))
    def same(f):
        return _readTensor(f)

    result = same(bf(ALL)).numpy()
    numbers = ~np.isnan(ALL)
    same_bits(result[numbers], ALL[numbers])
    assert np.isnan(result[~numbers]).all()


def test_writes_round_to_nearest_even(device: str) -> None:
    @gp.operator(outputs=lambda f: of(f.type))
    def written(f):
        return _readTensor(f)

    result = written(gp.Field(NUMBERS)).numpy()
    assert result.dtype == np.float32
    same_bits(codes(result), codes(nearest(NUMBERS)))
    same_bits(codes(bf(NUMBERS).numpy()), codes(nearest(NUMBERS)))  # by the host


def test_vectors_and_elements(device: str) -> None:
    for lanes in (2, 3, 4, 5):
        array = rng.normal(size=(7, 9, lanes)).astype(np.float32)

        @gp.operator(outputs=lambda f: f.type)
        def thirds(f):
            with _forEachTensorElement(f.type.tensor_shape):
                _writeTensorElement(_out0, _readTensorElement(f, _row, _column + 1, _tensorElement) / 3, _tensorElement)

        @gp.operator(outputs=lambda f: f.type)
        def together(f):
            return _readTensor(f, _row, _column + 1) / 3

        x = nearest(array)
        expected = nearest(np.concatenate([x[:, 1:], x[:, -1:]], 1) / np.float32(3))
        for operator in (thirds, together)[: 2 if lanes < 5 else 1]:
            same_bits(operator(bf(array, 1)).numpy(), expected, f"{operator} {lanes}")


@pytest.mark.parametrize("border", ["clamp", "wrap", "symmetric", "reflect", 0.3])
def test_borders(device: str, border: object) -> None:
    array = rng.normal(size=(6, 37)).astype(np.float32)
    mode = "edge" if border == "clamp" else border if isinstance(border, str) else "constant"
    more = {"constant_values": nearest(0.3)} if mode == "constant" else {}
    padded = np.pad(nearest(array), 2, mode=mode, **more)

    @gp.operator(outputs=lambda f: f.type)
    def near(f):
        return _readTensor(f, _row - 1, _column + 2, border=border) + _readTensor(f, _row + 2, _column, border=border)

    expected = nearest(padded[1:7, 4:] + padded[4:, 2:39])
    same_bits(near(bf(array)).numpy(), expected)


def test_fused_values_are_rounded(device: str) -> None:
    """A value that passes in a register is the one that would have been stored."""
    array = rng.normal(size=(33, 65)).astype(np.float32)

    @gp.operator(outputs=lambda f: f.type)
    def squared(f):
        v = _readTensor(f)
        return v * v + 1.1

    @gp.operator(outputs=lambda f: f.type)
    def beside(f):
        return _readTensor(f) * 0.3 + _readTensor(f, _row, _column + 1, border="zero")

    x = nearest(array)
    y = nearest(x * x + np.float32(1.1))
    after = np.pad(y, ((0, 0), (0, 1)))[:, 1:]
    result = beside(squared(bf(array)))
    same_bits(result.numpy(), nearest(y * np.float32(0.3) + after))


def test_unwritten_points_and_numbers(device: str) -> None:
    """`default=` is rounded, and so is a value that comes as an argument."""

    @gp.operator(outputs=lambda f, g: gp.FieldType(f.field_shape, (), "bfloat16"), default=0.1)
    def some(f, g):
        with _if(_column % 2 == 0):
            _writeTensor(_out0, _readTensor(f) + g)

    array, number = rng.normal(size=(4, 32)).astype(np.float32), nearest(np.float32(0.7))
    expected = nearest(nearest(array) + number)
    expected[:, 1::2] = nearest(np.float32(0.1))
    same_bits(some(bf(array), bf(0.7)).numpy(), expected)


def test_conversions(device: str) -> None:
    """By way of float32."""
    integers = rng.integers(-(2**31), 2**31, 999, dtype=np.int64).astype(np.int32)
    whole = gp.Field(integers).astype("bfloat16")
    same_bits(whole.numpy(), nearest(integers.astype(np.float32)))
    back = whole.astype("int32").numpy()
    near = nearest(integers.astype(np.float32)).astype(np.float64)
    assert np.array_equal(back, np.clip(np.trunc(near), -(2**31), 2**31 - 1))
    narrow = rng.normal(size=999).astype(np.float16)
    same_bits(gp.Field(narrow).astype("bfloat16").numpy(), nearest(narrow.astype(np.float32)))
    with np.errstate(over="ignore"):
        half, expected = bf(NUMBERS).astype("float16").numpy(), nearest(NUMBERS).astype(np.float16)
    np.testing.assert_array_equal(half, expected)
    rounded = gp.operator(lambda f: _convert(_readTensor(f), "bfloat16") * 3)(gp.Field(NUMBERS))
    assert rounded.dtype == "float32"
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(rounded.numpy(), nearest(NUMBERS) * np.float32(3))


def test_tiles_and_variables(device: str) -> None:
    @gp.operator(outputs=lambda f: f.type.replace(field_shape=f.field_shape[::-1]))
    def turned(f):
        _localThreads(8, 8)
        t, own = _tile(f, 8, 8, at=(_groupColumn * 8, _groupRow * 8)), _tensorVar(f)
        own @= t[_localColumn, _localRow] * 1.1
        _writeTensor(_out0, own)

    array = rng.normal(size=(20, 30)).astype(np.float32)
    same_bits(turned(bf(array)).numpy(), nearest(nearest(array).T * np.float32(1.1)))


def test_numbers_of_operators(device: str) -> None:
    """States of a graph, parameters and probes."""
    rate = gp.Parameter(codes(nearest(1.1)).view(CODED))
    assert rate.dtype == "bfloat16"
    with gp.ComputeGraph() as graph:
        state = bf(np.ones((5, 40)))
        state.next = state * rate
        graph.probe(state, "state")
    expected = np.ones((5, 40), np.float32)
    for number in (1.1, 1.1, 0.7):
        rate.set(number)
        graph.step()
        expected = nearest(expected * nearest(number))
    same_bits(graph.read("state"), expected)
    graph.release()
