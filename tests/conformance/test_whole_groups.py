"""Tiles on grids that are no multiple of their work-groups: tail threads run too. Expected values are NumPy's."""

from __future__ import annotations

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


def pick(device: str, few: list[Any], more: list[Any]) -> list[Any]:
    """Sizes: drivers take long to compile each of them."""
    return few if device.startswith("opencl") else few + more


@gp.operator
def mean_of_three(f):
    _localThreads(16, whole_groups=True)
    tile = _local(_floatArray(18))
    tile[_localColumn + 1] = _readTensor(f)
    with _if(_localColumn == 0):
        tile[0] = _readTensor(f, _column - 1)
    with _if(_localColumn == 15):
        tile[17] = _readTensor(f, _column + 1)
    _syncThreadsLocal()
    return (tile[_localColumn] + tile[_localColumn + 1] + tile[_localColumn + 2]) / 3


def test_halo_of_every_size(device: str) -> None:
    for n in pick(device, [1, 40], [*range(2, 40), 47, 48, 49]):
        a = floats(n)
        padded = np.pad(a, 1, "edge")
        same(mean_of_three(gp.ScalarField(a)), (padded[:-2] + padded[1:-1] + padded[2:]) / np.float32(3), str(n))


@gp.operator(outputs=lambda f: f.type.replace(field_shape=f.field_shape[::-1]))
def transpose(f):
    _localThreads(8, 8, whole_groups=True)
    tile = _local(_tensorArray(f, 8, 9))
    tile[_localRow, _localColumn] = _readTensor(f, _groupColumn * 8 + _localRow, _groupRow * 8 + _localColumn)
    _syncThreadsLocal()
    _writeTensor(_out0, tile[_localColumn, _localRow])


def test_transposes(device: str) -> None:
    for shape in pick(device, [(13, 21)], [(4, 5), (1, 1), (1, 30), (30, 1), (16, 24), (8, 9), (23, 41)]):
        a = floats(*shape)
        same(transpose(gp.ScalarField(a)), a.T, str(shape))
    pairs = floats(11, 5, 2)
    same(transpose(gp.VectorField(pairs)), pairs.transpose(1, 0, 2))


def test_neighbours_of_a_transpose_fuse_with_it(device: str) -> None:
    """Operators before are computed at the places that are read, operators behind at the point of the thread."""
    a, b = floats(13, 21), floats(21, 13)

    def graph(optimize: bool) -> gp.ComputeGraph:
        with gp.ComputeGraph(optimize=optimize) as graph:
            turned = transpose(gp.ScalarField(a) * 2 + 1)
            graph.probe(turned * gp.ScalarField(b), "product")
            graph.probe(np.where(turned > 0, turned, 0), "positive")
        return graph

    fused, plain = graph(True), graph(False)
    assert fused.kernel_count == 1 < plain.kernel_count, fused.explain()
    for value in (fused, plain):
        same(value.read("product"), (a * 2 + 1).T * b)
        same(value.read("positive"), np.maximum((a * 2 + 1).T, 0))


@pytest.mark.parametrize("shape", [(33, 17, 29), (5, 40, 3), (1, 1, 1)], ids=str)
def test_tiled_matrix_product(device: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = floats(m, k), floats(k, n)

    @gp.operator(outputs=gp.FieldType((m, n)))
    def product(left, right):
        _localThreads(8, 8, whole_groups=True)
        tile_a, tile_b = _local(_floatArray(8, 8)), _local(_floatArray(8, 8))
        total = _floatVar()
        with _for(0, k, 8) as step:
            tile_a[_localRow, _localColumn] = _readTensor(left, _row, step + _localColumn, border="zero")
            tile_b[_localRow, _localColumn] = _readTensor(right, step + _localRow, _column, border="zero")
            _syncThreadsLocal()
            with _for(8) as i:
                total += tile_a[_localRow, i] * tile_b[i, _localColumn]
            _syncThreadsLocal()
        return total

    same(product(gp.ScalarField(a), gp.ScalarField(b)), a @ b)


@pytest.mark.parametrize("border", ["zero", "reflect"])
def test_separable_blur(device: str, border: str) -> None:
    """Rows are summed into a second tile, which a second pass sums by columns."""
    a = floats(19, 37)

    @gp.operator
    def blur(f):
        rows, columns = 8, 16
        _localThreads(rows, columns, whole_groups=True)
        tile, sums = _local(_floatArray(rows + 4, columns + 4)), _local(_floatArray(rows + 4, columns))
        with _for(_localRow, rows + 4, rows) as r:
            with _for(_localColumn, columns + 4, columns) as c:
                at = _row - _localRow + r - 2, _column - _localColumn + c - 2
                tile[r, c] = _readTensor(f, *at, border=border)
        _syncThreadsLocal()
        with _for(_localRow, rows + 4, rows) as r:
            sums[r, _localColumn] = sum((tile[r, _localColumn + k] for k in range(1, 5)), tile[r, _localColumn])
        _syncThreadsLocal()
        return sum((sums[_localRow + k, _localColumn] for k in range(1, 5)), sums[_localRow, _localColumn])

    padded = np.pad(a, 2, mode="constant" if border == "zero" else border)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5))
    same(blur(gp.ScalarField(a)), windows.sum((-1, -2)).astype(np.float32))


def test_three_dimensions(device: str) -> None:
    """The greatest of each point's 27 neighbours, in tiles of 4×6×10."""
    a = floats(5, 7, 11)

    @gp.operator
    def greatest(f):
        size = (2, 4, 8)
        _localThreads(*size, whole_groups=True)
        tile = _local(_floatArray(*(n + 2 for n in size)))
        local, first = (_localLayer, _localRow, _localColumn), (_layer, _row, _column)
        with _for(local[0], 4, 2) as d, _for(local[1], 6, 4) as r, _for(local[2], 10, 8) as c:
            at = (g - mine + here - 1 for g, mine, here in zip(first, local, (d, r, c), strict=True))
            tile[d, r, c] = _readTensor(f, *at)
        _syncThreadsLocal()
        most = _var(tile[local])
        for d, r, c in np.ndindex(3, 3, 3):
            most @= _max(most, tile[local[0] + d, local[1] + r, local[2] + c])
        return most

    windows = np.lib.stride_tricks.sliding_window_view(np.pad(a, 1, "edge"), (3, 3, 3))
    same(greatest(gp.ScalarField(a)), windows.max((-1, -2, -3)))


@pytest.mark.parametrize("border", ["zero", "wrap", "reflect", "clamp", 7])
def test_own_points_of_tail_threads_have_borders(device: str, border: Any) -> None:
    """Whole groups reverse what they read: tail threads' values come to the first of the last group."""
    a = floats(21)

    @gp.operator(outputs=lambda f: gp.FieldType(f.field_shape, 2))
    def reversed_groups(f):
        _localThreads(8, whole_groups=True)
        tile = _local(_float2Array(8))
        tile[_localColumn] = _float2(_readTensor(f, _column, border=border), _readTensor(f))
        _syncThreadsLocal()
        return tile[7 - _localColumn]

    modes = {"zero": {"mode": "constant"}, 7: {"constant_values": 7}, "clamp": {"mode": "edge"}}
    padded = [np.pad(a, (0, 3), **modes.get(border, {"mode": border})), np.pad(a, (0, 3), "edge")]
    expected = np.stack([p.reshape(3, 8)[:, ::-1].ravel()[:21] for p in padded], -1)
    same(reversed_groups(gp.ScalarField(a)), expected.astype(np.float32))


def test_what_tail_threads_write(device: str) -> None:
    """Outside it is dropped, at own points too; inside it counts, and so do atomics. Positions go on beyond the grid."""

    @gp.operator(outputs=(gp.FieldType(21, (), "int32"),) * 3 + (gp.FieldType((), (), "int32"),))
    def threads():
        _localThreads(8, whole_groups=True)
        _writeTensor(_out0, _column)
        _writeTensor(_out1, _column, 23 - _column)
        _atomic_add(_pointerTo(_out2, _column - 3), _columns)
        _atomic_inc(_pointerTo(_out3))

    expected = np.arange(21), 23 - np.arange(21), np.full(21, 21), np.array(24)
    all_same(threads(), [e.astype(np.int32) for e in expected])


def test_threads_of_tensor_elements(device: str) -> None:
    a = floats(5, 11, 6)

    @gp.operator(outputs=lambda f: f.type)
    def mirrored(f):
        _globalThreads(f, f.tensor_shape)
        _localThreads(4, 8, whole_groups=True)
        tile = _local(_floatArray(4, 8))
        tile[_localRow, _localColumn] = _readTensorElement(f, _tensorElement)
        _syncThreadsLocal()
        _writeTensorElement(_out0, tile[_localRow, 7 - _localColumn], _tensorElement)

    padded = np.pad(a, ((0, 0), (0, 5), (0, 0)), "edge").reshape(5, 2, 8, 6)
    same(mirrored(gp.VectorField(a)), padded[:, :, ::-1].reshape(5, 16, 6)[:, :11])


def test_groups_that_the_target_decides(device: str) -> None:
    a = floats(45)

    @gp.operator
    def neighbour(f):
        size = _target.choose({"opencl": 16, "cuda": 32, "reference": 8})
        _localThreads(size, whole_groups=True)
        tile = _local(_floatArray(size))
        tile[_localColumn] = _readTensor(f)
        _syncThreadsLocal()
        return _where(_localColumn + 1 < _localColumns, tile[_min(_localColumn + 1, _localColumns - 1)], -1.0)

    size = {"opencl": 16, "cuda": 32, "sm_90": 32}.get(device.partition(":")[0], 8)
    expected = np.append(a[1:], a[-1])
    expected[size - 1 :: size] = -1
    same(neighbour(gp.ScalarField(a)), expected)
