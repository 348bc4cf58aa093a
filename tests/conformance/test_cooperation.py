"""Threads of a group that work together: reductions, tiled products, stencils with halos. Expected values are NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(5)


def floats(*shape: int) -> Any:
    return rng.integers(-99, 100, shape).astype(np.float32)


def rounded(shape: Sequence[int], group: Sequence[int]) -> tuple[int, ...]:
    """The thread grid of whole groups that covers a shape."""
    return tuple(-(-n // g) * g for n, g in zip(shape, group, strict=True))


@pytest.mark.parametrize("loop", ["while", "for", "python"])
def test_tree_reduction(device: str, loop: str) -> None:
    values = rng.integers(0, 1000, 1000).astype(np.int32)
    groups = -(-1000 // 64)

    @gp.operator(outputs=gp.FieldType(groups, (), "int32"))
    def sums(f):
        _localThreads(64)
        _globalThreads(rounded((1000,), (64,)))
        partial = _local(_intArray(_localColumns))
        partial[_localColumn] = _readTensor(f, _column, border="zero")
        _syncThreadsLocal()

        def fold(stride):
            with _if(_localColumn < stride):
                partial[_localColumn] += partial[_localColumn + stride]
            _syncThreadsLocal()

        if loop == "while":
            stride = _var(_localColumns / 2)
            with _while(stride > 0):
                fold(stride)
                stride /= 2
        elif loop == "for":
            with _for(5, -1, -1) as k:
                fold(_var(1) << k)
        else:
            for k in range(5, -1, -1):
                fold(1 << k)
        with _if(_localColumn == 0):
            _writeTensor(_out0, partial[0], _groupColumn)

    expected = np.add.reduceat(values, np.arange(0, 1000, 64)).astype(np.int32)
    same(sums(gp.ScalarField(values)), expected)


def test_sums_of_groups(device: str) -> None:
    """A sum per group by atomics in local memory, added to one total."""
    image = rng.integers(0, 50, (37, 45)).astype(np.int32)

    @gp.operator(outputs=(gp.FieldType((5, 3), (), "int32"), gp.FieldType((), (), "int32")))
    def sums(f):
        _localThreads(8, 16)
        _globalThreads(f)
        total = _local(_intVar())
        with _if(_localRow + _localColumn == 0):
            total @= 0
        _syncThreadsLocal()
        _atomic_add(_pointerTo(total), _readTensor(f))
        _syncThreadsLocal()
        with _if((_localRow == 0) & (_localColumn == 0)):
            _writeTensor(_out0, total, _groupRow, _groupColumn)
            _atomic_add(_pointerTo(_out1), total)

    padded = np.zeros((40, 48), np.int32)
    padded[:37, :45] = image
    expected = padded.reshape(5, 8, 3, 16).sum((1, 3), dtype=np.int32)
    all_same(sums(gp.ScalarField(image)), (expected, image.sum(dtype=np.int32)))


@pytest.mark.parametrize("shape", [(33, 17, 29), (16, 16, 16), (5, 40, 3), (1, 1, 1)], ids=str)
def test_tiled_matrix_product(device: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = floats(m, k), floats(k, n)
    size = 8

    @gp.operator(outputs=gp.FieldType((m, n), (), "float32"))
    def product(left, right):
        _localThreads(size, size)
        _globalThreads(rounded((m, n), (size, size)))
        tile_a = _local(_floatArray(_localRows, _localColumns))
        tile_b = _local(_floatArray(_localRows, _localColumns))
        total = _floatVar()
        with _for((k + size - 1) // size) as step:
            tile_a[_localRow, _localColumn] = _readTensor(left, _row, step * size + _localColumn, border="zero")
            tile_b[_localRow, _localColumn] = _readTensor(right, step * size + _localRow, _column, border="zero")
            _syncThreadsLocal()
            with _for(size) as i:
                total += tile_a[_localRow, i] * tile_b[i, _localColumn]
            _syncThreadsLocal()
        _writeTensor(_out0, total, _row, _column)

    same(product(gp.ScalarField(a), gp.ScalarField(b)), a @ b)


def test_stencil_with_a_halo(device: str) -> None:
    """A box sum whose tile has a border of two; dimensions are constants of the launch."""
    image = floats(41, 53)

    @gp.operator
    def box(f):
        _localThreads(8, 16, whole_groups=True)
        rows, columns = _localRows + 4, _localColumns + 2 * 2
        halo = _local(_floatArray(rows, columns))
        first_row, first_column = _groupRow * _localRows - 2, _groupColumn * _localColumns - 2
        with _for(_localRow, rows, _localRows) as r:
            with _for(_localColumn, columns, _localColumns) as c:
                halo[r, c] = _readTensor(f, first_row + r, first_column + c, border="zero")
        _syncThreadsLocal()
        total = _floatVar()
        with _for(5) as dr:
            for dc in range(5):
                total += halo[_localRow + dr, _localColumn + dc]
        return total

    with_halo = np.pad(image, 2)
    expected = sum(with_halo[r : r + 41, c : c + 53] for r in range(5) for c in range(5))
    same(box(gp.ScalarField(image)), expected)
    same(box_on_a_rounded_grid(image), expected)


def box_on_a_rounded_grid(image: Any) -> Any:
    @gp.operator(outputs=gp.FieldType(image.shape, (), "float32"))
    def box(f):
        _localThreads(8, 16)
        _globalThreads(rounded(image.shape, (8, 16)))
        halo = _local(_floatArray(_localRows + 4, _localColumns + 4))
        for r in (0, 1):
            for c in (0, 1):
                with _if(_and(_localRow + 8 * r < 12, _localColumn + 16 * c < 20)):
                    halo[_localRow + 8 * r, _localColumn + 16 * c] = _readTensor(
                        f, _row + 8 * r - 2, _column + 16 * c - 2, border="zero"
                    )
        _syncThreadsLocal()
        total = _floatVar()
        for r in range(5):
            for c in range(5):
                total += halo[_localRow + r, _localColumn + c]
        _writeTensor(_out0, total, _row, _column)

    return box(gp.ScalarField(image))
