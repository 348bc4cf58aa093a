"""Grids of every shape, tensors of every size, and arrays as NumPy users have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, compute, same

rng = np.random.default_rng(11)
GRIDS: tuple[tuple[int, ...], ...] = (
    (), (1,), (17,), (1, 1), (1, 40), (40, 1), (15, 15), (16, 16), (17, 17), (31, 31), (32, 32), (33, 33), (179, 179), (5, 7, 3),
    (1, 1, 1), (0,), (0, 4), (4, 0), (2, 0, 3),
)  # fmt: skip
TENSORS: tuple[tuple[int, ...], ...] = ((), (1,), (2,), (3,), (4,), (5,), (7,), (1, 1), (2, 2), (1, 3), (7, 7), (5, 1))


def floats(*shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


def index_sum(field):
    """A number that tells the thread's own point, plus the field."""
    return _readTensor(field) + (_layer * 10000 + _row * 100 + _column)


def indices(grid: tuple[int, ...]) -> Any:
    weights = (10000, 100, 1)[3 - len(grid) :]
    return sum((w * i for w, i in zip(weights, np.indices(grid), strict=True)), np.zeros(grid, np.int64))


def test_grids(device: str) -> None:
    operator = gp.operator(index_sum)
    fields = [rng.integers(0, 9, grid).astype(np.float32) for grid in GRIDS]
    results = [operator(gp.Field(a)) for a in fields]
    all_same(results, [np.asarray(a + indices(a.shape), np.float32) for a in fields], [str(g) for g in GRIDS])


def test_neighbours_on_grids(device: str) -> None:
    """Tail threads neither read nor write: each point gets its successor, with wrapping, along the last axis."""

    @gp.operator
    def shifted(field):
        where = {1: (_column + 1,), 2: (_row, _column + 1), 3: (_layer, _row, _column + 1)}[
            field.field_shape.dimensions
        ]
        return _readTensor(field, *where, border="wrap")

    grids = [(17,), (1, 40), (40, 1), (33, 33), (5, 7, 3)]
    fields = [floats(*g) for g in grids]
    all_same([shifted(gp.Field(a)) for a in fields], [np.roll(a, -1, -1) for a in fields], [str(g) for g in grids])


def elementwise(field):
    with _forEachTensorElement(field.tensor_shape):
        _writeTensorElement(_out0, _readTensorElement(field) * 2 + _tensorElement, _tensorElement)


@pytest.mark.parametrize("grid", [(), (5,), (3, 18), (2, 3, 4)], ids=str)
def test_tensors(device: str, grid: tuple[int, ...]) -> None:
    operator = gp.operator(elementwise)
    tensors = TENSORS if len(grid) == 2 else ((1,), (4,), (7,), (2, 2), (7, 7))
    arrays = [floats(*grid, *tensor) for tensor in tensors]
    expected = [
        a * 2 + np.arange(np.prod(t, dtype=int), dtype=np.float32).reshape(t)
        for a, t in zip(arrays, tensors, strict=True)
    ]
    results = [operator(gp.Field(a, len(t))) for a, t in zip(arrays, tensors, strict=True)]
    all_same(results, expected, [str(t) for t in tensors])


def test_whole_small_tensors(device: str) -> None:
    small = [t for t in TENSORS if np.prod(t) <= 4]
    arrays = [floats(6, 5, *t) for t in small]
    flipped = gp.operator(lambda f: _readTensor(f, 5 - _row, 4 - _column) + 1)
    all_same(
        [flipped(gp.Field(a, len(t))) for a, t in zip(arrays, small, strict=True)], [a[::-1, ::-1] + 1 for a in arrays]
    )


def test_elements_at_places(device: str) -> None:
    """Element reads and writes at explicit points and computed elements, of small and of big tensors."""
    small, big = floats(4, 5, 3), floats(4, 5, 7)

    def reverse(field):
        n = field.tensor_shape.points
        with _forEachTensorElement(field.tensor_shape):
            _writeTensorElement(
                _out0,
                _readTensorElement(field, 3 - _row, _column, n - 1 - _tensorElement),
                _row,
                4 - _column,
                _tensorElement,
            )

    for a in (small, big):
        same(gp.operator(reverse)(gp.VectorField(a)), a[::-1, ::-1, ::-1])


def test_big_tensor_beside_other_statements(device: str) -> None:
    """A loop over elements that is not the whole body: one thread per point walks them."""
    a = floats(6, 9)

    def centred(field):
        total = _floatVar()
        with _forEachTensorElement(9):
            total += _readTensorElement(field)
        with _forEachTensorElement(9):
            _writeTensorElement(_out0, _readTensorElement(field, _tensorElement) - total / 9)

    sums = np.zeros(6, np.float32)
    for k in range(9):
        sums += a[:, k]
    same(gp.operator(centred)(gp.VectorField(a)), a - (sums / np.float32(9))[:, None])


def test_tensors_of_different_shape(device: str) -> None:
    """Several outputs of different tensor shape and dtype; a reduction over elements, and an expansion."""
    a = floats(5, 4, 6)
    grid = (5, 4)
    types = (
        gp.FieldType(grid),
        gp.FieldType(grid, 2),
        gp.FieldType(grid, (2, 3)),
        gp.FieldType(grid, 5, "int32"),
        gp.FieldType(grid, 4, "bool"),
    )

    def split(field):
        first, last = _readTensorElement(field, 0), _readTensorElement(field, 5)
        _writeTensor(_out0, first + last)
        _writeTensor(_out1, _float2(first, last))
        with _for(6) as k:
            _writeTensorElement(_out2, _readTensorElement(field, 5 - k), k)
        with _for(5) as k:
            _writeTensorElement(_out3, k * _column, k)
        _writeTensor(_out4, _float4(first, 0, 1, last) > 0)

    results = gp.operator(outputs=types)(split)(gp.VectorField(a))
    f, z, o = a[..., 0], a[..., 5], np.ones(grid, np.float32)
    counts = (np.arange(4)[:, None] * np.arange(5)).astype(np.int32)
    bools = np.stack([f, 0 * o, o, z], -1) > 0
    all_same(
        results,
        (f + z, np.stack([f, z], -1), a[..., ::-1].reshape(5, 4, 2, 3), np.broadcast_to(counts, (5, 4, 5)), bools),
    )


def test_arrays_as_users_have_them(device: str) -> None:
    base = floats(12, 14)
    read_only = base[:5, :6].copy()
    read_only.flags.writeable = False
    values = [
        base[::2, ::3],
        base.T,
        np.asfortranarray(base),
        base.astype(">f4"),
        base[::-1, ::-1],
        read_only,
        np.broadcast_to(base[0], (3, 14)),
    ]
    increment = gp.operator(lambda f: _readTensor(f) + 1)
    all_same(
        [increment(gp.ScalarField(a)) for a in values], [np.ascontiguousarray(a).astype(np.float32) + 1 for a in values]
    )
    big = base.astype(">f8"), (base * 9).astype(">i2"), (base * 9).astype(">c8")
    same(gp.ScalarField(big[0]), big[0].astype("f8"))
    same(gp.ScalarField(big[1]), big[1].astype("i2"))
    same(gp.ComplexField(big[2]), big[2].astype("c8"))
    vectors = np.moveaxis(floats(3, 6, 7), 0, -1)
    same(increment(gp.VectorField(vectors)), vectors + 1)


def test_arrays_are_copied(device: str) -> None:
    a = floats(4, 4)
    copy = a.copy()
    field = gp.ScalarField(a)
    a[:] = 0
    same(field, copy)
    out = (field + 1).numpy()
    out[:] = 0
    same(field + 1, copy + 1)


def test_a_large_grid(device: str) -> None:
    a = np.arange(3000 * 2001, dtype=np.int32).reshape(3000, 2001)
    mirrored = compute(lambda f: _readTensor(f, 2999 - _row, 2000 - _column), gp.ScalarField(a))
    same(mirrored, a[::-1, ::-1])


def test_arithmetic_of_positions_on_empty_grids(device: str) -> None:
    """Positions have no range there."""

    def shifted(field):
        row, column = _convert_ulong(_row), _convert_int(_column)
        return _convert_float(
            (_convert_char(1) << _convert_ushort(row)) + (column << column) + (column >> row) + column % 3
        )

    for shape in ((0, 3), (3, 0), (0, 0)):
        assert compute(shifted, gp.ScalarField(floats(*shape))).shape == shape
