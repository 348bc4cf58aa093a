"""`_tile`: blocks that a work-group loads together, of fields of every kind, wherever grids end. Expected values are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.runtime.planted import checked

from .compare import same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(41)


def numbers(*shape: int, dtype: Any = "float32") -> Any:
    return rng.integers(-99, 100, shape).astype(dtype)


@gp.operator(outputs=lambda f, *_: f.type.replace(field_shape=f.field_shape[::-1]))
def turned(f, block, rows=None):
    """Each thread takes `block / rows` values of its block, where it is given `rows` of threads."""
    if rows is not None:
        size = -(-f.field_shape[1] // block), -(-f.field_shape[0] // block)
        _localThreads(rows, block, groups=size)
    else:
        _localThreads(block, block)
    t = _tile(f, block, block, at=(_groupColumn * block, _groupRow * block))
    if rows is None:
        _writeTensor(_out0, t[_localColumn, _localRow])
    else:
        with _for(_localRow, block, rows) as r:
            _writeTensor(_out0, t[_localColumn, r], _groupRow * block + r, _groupColumn * block + _localColumn)


@pytest.mark.parametrize("shape", [(4, 5), (33, 17)], ids=str)
def test_transposes_of_any_size(device: str, shape: tuple[int, int]) -> None:
    a = numbers(*shape)
    same(turned(gp.ScalarField(a), 16), a.T)
    same(turned(gp.ScalarField(a), 32, 8), a.T)


@pytest.mark.parametrize("dtype", ["uint8", "float64", "bool", "complex64", "complex128"])
def test_types(device: str, dtype: str) -> None:
    if dtype in ("float64", "complex128") and device.startswith("cuda"):
        return
    a = numbers(11, 21, dtype=dtype)
    field = gp.ComplexField(a, dtype=dtype) if dtype.startswith("complex") else gp.ScalarField(a, dtype=dtype)
    same(turned(field, 8), a.T)


def test_colours_and_tensors(device: str) -> None:
    colours = rng.integers(0, 256, (9, 13, 4)).astype(np.uint8)
    same(turned(gp.ColorField(colours), 8), colours.transpose(1, 0, 2))
    big = numbers(7, 10, 6)

    @gp.operator(outputs=lambda f: f.type)
    def mirrored(f):
        _globalThreads(f, f.tensor_shape)
        _localThreads(4, 8)
        t = _tile(f, 4, 8, element=5 - _tensorElement)
        _writeTensorElement(_out0, t[_localRow, _localColumn], _tensorElement)

    same(mirrored(gp.VectorField(big)), big[..., ::-1])


@pytest.mark.parametrize(
    ("border", "mode"), [("clamp", "edge"), ("zero", "constant"), ("wrap", "wrap"), ("reflect", "reflect")]
)
def test_halos(device: str, border: str, mode: str) -> None:
    """The sum of 3×5 neighbours, by groups that are no multiple of the block, and that do not divide it."""
    a = numbers(11, 23)

    @gp.operator
    def summed(f):
        _localThreads(3, 7)
        t = _tile(f, _localRows, _localColumns, halo=(1, 2), border=border)
        return sum(t[_localRow + r - 1, _localColumn + c - 2] for r in range(3) for c in range(5))

    windows = np.lib.stride_tricks.sliding_window_view(np.pad(a, ((1, 1), (2, 2)), mode), (3, 5))
    same(summed(gp.ScalarField(a)), windows.sum((-1, -2)).astype(np.float32))


def test_one_and_three_dimensions(device: str) -> None:
    line, cube = numbers(75), numbers(5, 9, 6)

    @gp.operator
    def reversed_blocks(f):
        _localThreads(32)
        return _tile(f, 32, halo=1, border=-1)[_localColumns - _localColumn]

    whole = np.concatenate([line, np.full(22, -1, np.float32)])
    expected = [whole[32 * k + 1 : 32 * k + 33][::-1] for k in range(3)]
    same(reversed_blocks(gp.ScalarField(line)), np.concatenate(expected)[:75])

    @gp.operator(outputs=lambda f: f.type.replace(field_shape=(6, 5, 9)))
    def moved(f):
        _localThreads(2, 4, 4)
        t = _tile(f, 4, 4, 2, at=(_groupRow * 4, _groupColumn * 4, _groupLayer * 2))
        return t[_localRow, _localColumn, _localLayer]

    same(moved(gp.ScalarField(cube)), cube.transpose(2, 0, 1))


def test_more_dimensions(device: str) -> None:
    """A block of planes, by the thread's own layer, and one of all channels, with a halo along the first dimension."""
    x = rng.integers(0, 99, (2, 3, 13, 21)).astype(np.float32)

    @gp.operator
    def beside(f):
        _localThreads(1, 8, 8)
        block = _tile(f, 1, 1, 8, 8, halo=(0, 0, 1, 1), border="wrap")
        return block[0, 0, _localRow - 1, _localColumn] + block[0, 0, _localRow + 1, _localColumn - 1]

    @gp.operator
    def differences(f):
        _localThreads(1, 4, 8)
        block = _tile(f, 1, 3, 4, 8, at=(_groupLayer / 3, 0, _groupRow * 4, _groupColumn * 8), halo=(1, 0, 0, 0))
        mine = _dim(1)
        return block[0, (mine + 1) % 3, _localRow, _localColumn] - block[-1, mine, _localRow, _localColumn]

    same(beside(gp.ScalarField(x)), np.roll(x, 1, 2) + np.roll(x, (-1, 1), (2, 3)))
    same(differences(gp.ScalarField(x)), np.roll(x, -1, 1) - x[:1])


def test_threads_of_other_dimensions(device: str) -> None:
    """Groups in a row load blocks of rows and columns; one thread alone loads all."""
    a = numbers(10, 12)

    @gp.operator(outputs=gp.FieldType(6))
    def sums(f):
        _globalThreads(6)
        _localThreads(4)
        t = _tile(f, 5, 4, at=(_groupColumn * 5, 0))
        return sum(t[r, _localColumn] for r in range(5))

    same(sums(gp.ScalarField(a)), [*a[:5, :4].sum(0), *a[5:, :2].sum(0)])

    @gp.operator(outputs=gp.FieldType(()))
    def corner(f):
        t = _tile(f, 2, 3, at=(_int2(8, 9).x, 9))
        return sum(t[r, c] for r in range(2) for c in range(3))

    same(corner(gp.ScalarField(a)), a[8:, 9:].sum(dtype=np.float32))


def test_in_loops(device: str) -> None:
    """A matrix product; each turn waits before it loads, and tiles of two fields lie side by side."""
    left, right = numbers(19, 21), numbers(21, 10)

    @gp.operator(outputs=gp.FieldType((19, 10)))
    def product(a, b):
        _localThreads(8, 8)
        total = _floatVar()
        with _for(0, 21, 8) as k:
            mine = _tile(a, 8, 8, at=(_groupRow * 8, k), border="zero")
            other = _tile(b, 8, 8, at=(k, _groupColumn * 8), border="zero")
            with _for(8) as i:
                total += mine[_localRow, i] * other[i, _localColumn]
        return total

    fields = gp.ScalarField(left), gp.ScalarField(right)
    same(product(*fields), left @ right)
    if device == "reference":
        with checked():
            same(product(*fields), left @ right)


def test_sizes_that_the_target_decides(device: str) -> None:
    a = numbers(21, 13)

    @gp.operator(outputs=lambda f: f.type.replace(field_shape=(13, 21)))
    def flipped(f):
        n = _target.choose({"opencl": 4, "cuda": 16, "reference": 8})
        _localThreads(n, n)
        t = _tile(f, n, n, at=(_groupColumn * _localColumns, _groupRow * _localRows))
        return t[_localColumn, _localRow]

    same(flipped(gp.ScalarField(a)), a.T)


def test_whole_groups_and_returns(device: str) -> None:
    """Tail threads that run load their part; threads may have returned before in whole groups."""
    a = numbers(13)

    @gp.operator(default=-1)
    def some(f):
        _localThreads(4, whole_groups=True)
        with _if(_groupColumn == 1):
            _return()
        _writeTensor(_out0, _tile(f, 4)[3 - _localColumn])

    padded = np.pad(a, (0, 3), "edge").reshape(4, 4)[:, ::-1].copy()
    padded[1] = -1
    same(some(gp.ScalarField(a)), padded.ravel()[:13])


def test_neighbours_fuse(device: str) -> None:
    """Operators before are computed where the tile is loaded, operators behind at the point of the thread."""
    a, b = numbers(13, 21), numbers(21, 13)
    with gp.ComputeGraph() as graph:
        graph.probe(turned(gp.ScalarField(a) * 2 + 1, 16) * gp.ScalarField(b), "product")
    assert graph.kernel_count == 1, graph.explain()
    same(graph.read("product"), (a * 2 + 1).T * b)


@pytest.mark.parametrize(
    ("dtype", "tensor", "rows"),
    [("float32", (), "[16][17]"), ("uint8", (), "[16][20]"), ("int16", (), "[16][18]"), ("float32", 2, "[16][17][2]")],
)
def test_rows_need_other_banks(dtype: str, tensor: Any, rows: str) -> None:
    """In words of four bytes, or in elements that are more, two rows are an odd number apart."""
    text = turned.source(gp.FieldType((16, 16), tensor, dtype), 16, target="cuda")
    assert f" t{rows};" in text
