"""`gp.vmap` of kernels: what it computes for a batch is what NumPy computes for one entry after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.borders import CHECKED, away

from .compare import all_same, same

rng = np.random.default_rng(41)
GRIDS = ((), (7,), (5, 6), (3, 4, 5), (2, 3, 4, 5))
BATCH = 3


def batch(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, (BATCH, *shape)).astype(dtype)
    return rng.standard_normal((BATCH, *shape)).astype(dtype)


def looped(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    return np.stack([function(*each) for each in zip(*arrays, strict=True)])


# --- places ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("border", CHECKED)
@pytest.mark.parametrize("grid", GRIDS[1:4], ids=str)
def test_windows(device: str, grid: tuple[int, ...], border: str) -> None:
    """Near and far outside of an entry, and never in another one."""
    steps = [
        tuple(k if a == axis else 0 for a in range(len(grid))) for axis in range(len(grid)) for k in (-1, 1, -9, 8)
    ]
    steps += [(1,) * len(grid), (-2,) * len(grid)]

    @gp.operator
    def taps(f):
        total = _var(0.0)
        for n, step in enumerate(steps):
            total += (n + 1) * _readTensor(f, offset=step, border=border)
        return total

    def of_one(a: np.ndarray) -> np.ndarray:
        total = np.zeros(a.shape, np.float32)
        for n, step in enumerate(steps):
            total = total + np.float32(n + 1) * away(a, *step, border=border)
        return total

    x = batch(*grid)
    same(gp.vmap(taps)(gp.ScalarField(x)), looped(of_one, x))


@pytest.mark.parametrize("grid", GRIDS[1:4], ids=str)
def test_computed_places(device: str, grid: tuple[int, ...]) -> None:
    """Also those that another field tells, and that are not affine."""

    @gp.operator
    def picked(f, shift):
        at = [p * p + _readTensor(shift) for p in (_layer, _row, _column)[3 - len(grid) :]]
        return _readTensor(f, *at, border="wrap")

    def of_one(a: np.ndarray, shift: np.ndarray) -> np.ndarray:
        at = np.meshgrid(*(np.arange(n) ** 2 for n in grid), indexing="ij")
        return a[tuple((p + shift) % n for p, n in zip(at, grid, strict=True))]

    x, shift = batch(*grid), batch(*grid, dtype=np.int32)
    same(gp.vmap(picked)(gp.ScalarField(x), gp.ScalarField(shift)), looped(of_one, x, shift))


def test_shared_arguments(device: str) -> None:
    """Own points, other places and numbers of what is the same for all entries, in grids of every rank."""

    @gp.operator
    def both(f, g, number):
        places = (_layer, _row, _column)[3 - len(grid) :]
        return _readTensor(f) + _readTensor(g) * _readTensor(number) + _readTensor(g, *[p + 1 for p in places])

    for grid in GRIDS[1:4]:
        x, y = batch(*grid), rng.standard_normal(grid).astype(np.float32)
        number = gp.Parameter(np.float32(0.5))
        next_y = away(y, *(1,) * len(grid))
        result = gp.vmap(both, in_axes=(0, None, None))(gp.ScalarField(x), gp.ScalarField(y), number)
        same(result, looped(lambda a, y=y, n=next_y: a + y * np.float32(0.5) + n, x))
        result = gp.vmap(both, in_axes=(None, 0, None))(gp.ScalarField(y), gp.ScalarField(x), number)
        same(result, looped(lambda a, y=y: y + a * np.float32(0.5) + away(a, *(1,) * a.ndim), x))


def test_numbers_of_each_entry(device: str) -> None:
    """0D fields are another axis alone."""

    @gp.operator
    def scaled(f, by):
        return _readTensor(f) * _readTensor(by)

    by = batch()
    for grid in GRIDS[:4]:
        x = batch(*grid)
        same(gp.vmap(scaled)(gp.ScalarField(x), gp.ScalarField(by)), looped(lambda a, b: a * b, x, by))


@pytest.mark.parametrize("grid", GRIDS[1:4], ids=str)
def test_positions(device: str, grid: tuple[int, ...]) -> None:
    """Positions, extents and linear indices are those of an entry."""

    @gp.operator(outputs=[gp.FieldType(grid, dtype="int32")] * 2)
    def told(f):
        _writeTensor(_out0, _index() + _convert_int(_readTensor(f)))
        _writeTensor(_out1, (_layer * 100 + _row) * 100 + _column + (_layers * 100 + _rows) * 100 + _columns)

    def of_one(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places, extents = np.zeros(grid, np.int32), 0
        for n, at in zip((1, 1, *grid)[-3:], [0] * (3 - len(grid)) + [*np.indices(grid, np.int32)], strict=True):
            places, extents = places * 100 + at, extents * 100 + n
        return np.arange(np.prod(grid), dtype=np.int32).reshape(grid) + a, places + np.int32(extents)

    x = batch(*grid, dtype=np.int32)
    results = gp.vmap(told)(gp.ScalarField(x))
    all_same(results, [looped(lambda a, k=k: of_one(a)[k], x) for k in range(2)])


def test_four_dimensions(device: str) -> None:
    """Their first ones are one axis of kernels already."""

    @gp.operator
    def taps(f):
        return _readTensor(f, offset=(1, 0, 0, -1), border="reflect") - _readTensor(f, offset=(-1, 2, 1, 0), border=0)

    x = batch(*GRIDS[4])
    whole = gp.vmap(taps)(gp.ScalarField(x))
    same(whole, looped(lambda a: away(a, 1, 0, 0, -1, border="reflect") - away(a, -1, 2, 1, 0, border="zero"), x))


def test_names(device: str) -> None:
    @gp.operator
    def next_row(f):
        return _readTensor(f, y=_dim("y") + 1)

    x = batch(4, 5)
    for dims in ("img:y:x", "_:y:x"):
        same(gp.vmap(next_row)(gp.ScalarField(x, dims=dims)), away(x, 0, 1, 0))
    assert gp.vmap(next_row)(gp.ScalarField(x, dims="img:y:x")).dims.y == 4


# --- tensors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", GRIDS[:4], ids=str)
def test_tensors(device: str, grid: tuple[int, ...]) -> None:
    @gp.operator
    def turned(f):
        v = _readTensor(f)
        return _vector(v.y, v.z, v.x)

    @gp.operator(outputs=gp.FieldType(grid, (3, 3)))
    def doubled(f):
        with _forEachTensorElement((3, 3)):
            _writeTensorElement(_out0, 2 * _readTensorElement(f))

    x, y = batch(*grid, 3), batch(*grid, 3, 3)
    same(gp.vmap(turned)(gp.VectorField(x)), x[..., [1, 2, 0]])
    same(gp.vmap(doubled)(gp.MatrixField(y)), 2 * y)


def test_complex_numbers(device: str) -> None:
    x = np.rint(batch(4, 5) * 8) + 1j * np.rint(batch(4, 5) * 8)
    same(gp.vmap(lambda f: f.conj() * f.T[0, 0])(gp.ComplexField(x)), looped(lambda a: a.conj() * a[0, 0], x))


# --- writes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", GRIDS[1:4], ids=str)
def test_scattered(device: str, grid: tuple[int, ...]) -> None:
    """Values written outside of an entry are dropped, and never are in another one."""

    @gp.operator(default=-1)
    def moved(f):
        _writeTensor(_out0, _readTensor(f), *[p + 2 for p in (_layer, _row, _column)[3 - len(grid) :]])

    x = batch(*grid)
    same(gp.vmap(moved)(gp.ScalarField(x)), looped(lambda a: away(a, *(-2,) * a.ndim, border="zero") + _outside(a), x))


def _outside(a: np.ndarray) -> np.ndarray:
    return away(np.ones_like(a), *(-2,) * a.ndim, border="zero") - 1


def test_histograms(device: str) -> None:
    @gp.operator(outputs=gp.FieldType(10, dtype="int32"), default=0)
    def counts(f):
        _globalThreads(f)
        _atomic_add(_pointerTo(_out0, _convert_int(_readTensor(f)) / 10), 1)

    @gp.operator(outputs=gp.FieldType((2, 2, 3), dtype="int32"), default=0)
    def by_place(f):
        _globalThreads(f)
        _atomic_add(_pointerTo(_out0, _layer - 1, _row % 2, _column), _readTensor(f))

    def placed(a: np.ndarray) -> np.ndarray:
        out = np.zeros((2, 2, 3), np.int32)
        for layer, row, column in np.ndindex(a.shape):
            if 0 <= layer - 1 < 2 and column < 3:
                out[layer - 1, row % 2, column] += a[layer, row, column]
        return out

    for grid in GRIDS[1:4]:
        x = batch(*grid, dtype=np.int32)
        expected = looped(lambda a: np.bincount(a.ravel() // 10, minlength=10).astype(np.int32), x)
        same(gp.vmap(counts)(gp.ScalarField(x)), expected)
    x = batch(4, 3, 5, dtype=np.int32)
    same(gp.vmap(by_place)(gp.ScalarField(x)), looped(placed, x))


def test_inout(device: str) -> None:
    @gp.operator(inout="a")
    def raised(a, b):
        _writeTensor(a, _readTensor(a) + _readTensor(b))

    @gp.operator(inout="a")
    def put(a, b):
        _writeTensor(a, _readTensor(b), 0, _column)

    x, y = batch(4, 5), rng.standard_normal((4, 5)).astype(np.float32)
    for f, of_one in ((raised, lambda a, b: a + b), (put, lambda a, b: np.stack([b[-1], *a[1:]]))):
        if f is put:
            y = np.broadcast_to(y[:1], y.shape).copy()
            x[:] = x[:, :1]
        mapped = gp.vmap(f, in_axes=(0, None))(gp.ScalarField(x), gp.ScalarField(y))
        same(mapped, looped(lambda a, y=y, g=of_one: g(a, y), x))
        shared = gp.vmap(f, in_axes=(None, 0))(gp.ScalarField(y), gp.ScalarField(x))
        same(shared, looped(lambda b, y=y, g=of_one: g(y, b), x))


# --- work-groups ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [(2, 4), (3, 4)], ids=str)
def test_work_groups(device: str, group: tuple[int, int]) -> None:
    """Groups are of one entry, in which they have the places that they had, at edges too."""

    def body(f):
        shared = _local(_floatArray(_localRows, _localColumns))
        shared[_localRow, _localColumn] = _readTensor(f)
        _syncThreadsLocal()
        value = shared[_localRow, (_localColumn + 1) % _localColumns]
        return value + 100 * _groupRow + 1000 * _groupColumn + 10000 * _groupRows + 10 * _groupLayer

    def of_one(a: np.ndarray) -> np.ndarray:
        rows, columns = np.indices(a.shape[-2:])
        near = np.roll(a.reshape(*a.shape[:-1], -1, 4), -1, -1).reshape(a.shape)
        layers = np.arange(a.shape[0])[:, None, None] if a.ndim == 3 else 0
        places = 100 * (rows // group[0]) + 1000 * (columns // 4) + 10000 * -(-a.shape[-2] // group[0]) + 10 * layers
        return near + places.astype(np.float32)

    @gp.operator
    def in_planes(f):
        _localThreads(*group)
        return body(f)

    @gp.operator
    def in_space(f):
        _localThreads(1, *group)
        return body(f)

    x, y = np.rint(batch(4, 8) * 100), np.rint(batch(3, 4, 8) * 100)
    same(gp.vmap(in_planes)(gp.ScalarField(x)), looped(of_one, x))
    same(gp.vmap(in_space)(gp.ScalarField(y)), looped(of_one, y))


def test_groups_of_layers(device: str) -> None:
    """Layers of an entry that are whole groups."""

    @gp.operator
    def summed(f):
        _localThreads(2, 1, 4)
        return _reduceGroup(_readTensor(f), "add") + _groupLayer * 1000 + _groupLayers * 10000 + _localLayer * 100000

    x = batch(6, 3, 4, dtype=np.int32)
    layers = np.arange(6)[:, None, None]
    sums = x.reshape(BATCH, 3, 2, 3, 4).sum((2, 4))[:, :, None, :, None].repeat(2, 2).reshape(BATCH, 6, 3, 1)
    expected = sums + layers // 2 * 1000 + 30000 + layers % 2 * 100000
    same(gp.vmap(summed)(gp.ScalarField(x)), np.broadcast_to(expected, x.shape).astype(np.int32))


def test_groups_of_a_grid_of_their_own(device: str) -> None:
    @gp.operator(outputs=gp.FieldType(2, dtype="int32"))
    def sums(f):
        _localThreads(8, groups=2)
        total = _reduceGroup(_readTensor(f, _index()), "add")
        with _if(_localColumn == 0):
            _writeTensor(_out0, total, _groupColumn)

    x = batch(16, dtype=np.int32)
    same(gp.vmap(sums)(gp.ScalarField(x)), x.reshape(BATCH, 2, 8).sum(-1).astype(np.int32))


def test_tiles(device: str) -> None:
    """Tiles of entries of any extents, whose tail threads run too."""

    @gp.operator
    def blurred(f):
        _localThreads(4, 8, whole_groups=True)
        tile = _tile(f, 4, 8, halo=1, border="reflect")
        return tile[_localRow - 1, _localColumn + 1] + tile[_localRow + 1, _localColumn - 1]

    for grid in ((5, 9), (8, 16), (2, 5)):
        x = batch(*grid)
        same(gp.vmap(blurred)(gp.ScalarField(x)), away(x, -1, 1, border="reflect") + away(x, 1, -1, border="reflect"))


# --- batches --------------------------------------------------------------------------------------------------------


@gp.operator
def slope(f):
    return _readTensor(f, _row, _column + 1) - 2 * _readTensor(f, _row - 1, _column)


def sloped(a: np.ndarray) -> np.ndarray:
    return away(a, 0, 1) - 2 * away(a, -1, 0)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_entries(device: str, count: int) -> None:
    x, y = (
        rng.standard_normal((count, 4, 5)).astype(np.float32),
        rng.standard_normal((count, 2, 3, 4)).astype(np.float32),
    )
    same(gp.vmap(slope)(gp.ScalarField(x)), sloped(x))
    third = gp.operator(lambda f: _readTensor(f, _layer + 1, _row, _column))
    same(gp.vmap(third)(gp.ScalarField(y)), away(y, 1, 0, 0) if count else y)


def test_nested(device: str) -> None:
    """A batch of batches, the inner or the outer one of each argument, in any order of axes."""
    x, y, z = batch(2, 4, 5), batch(4, 5), rng.standard_normal((2, 4, 5)).astype(np.float32)
    same(gp.vmap(gp.vmap(slope))(gp.ScalarField(x)), sloped(x))
    steep = gp.operator(
        lambda f, g: _readTensor(f, _row + 1, _column) * _readTensor(g) + _readTensor(g, _row, _column - 1)
    )
    expected = away(y, 1, 0)[:, None] * z + away(z, 0, -1)
    inner = gp.vmap(gp.vmap(steep, in_axes=(None, 0)), in_axes=(0, None))
    same(inner(gp.ScalarField(y), gp.ScalarField(z)), expected)
    outer = gp.vmap(gp.vmap(steep, in_axes=(0, None)), in_axes=(None, 0), out_axes=1)
    same(outer(gp.ScalarField(y), gp.ScalarField(z)), expected)
    deep = gp.operator(lambda f: _readTensor(f, _layer + 1, _row, _column - 1, border="wrap"))
    w = batch(2, 3, 4, 5)
    same(gp.vmap(gp.vmap(deep))(gp.ScalarField(w)), np.roll(w, (-1, 1), (2, 4)))


@pytest.mark.parametrize("axis", range(-3, 3))
def test_axes(device: str, axis: int) -> None:
    x = rng.standard_normal((6, 4, 5)).astype(np.float32)  # no number of channels
    moved = np.moveaxis(x, 0, axis)
    same(gp.vmap(slope, in_axes=axis)(gp.ScalarField(moved)), sloped(x))
    same(gp.vmap(slope, out_axes=axis)(gp.ScalarField(x)), np.moveaxis(sloped(x), 0, axis))


def test_axes_of_tensors(device: str) -> None:
    """The channels of a photograph are a batch of images."""
    x = rng.standard_normal((40, 5, 3)).astype(np.float32)
    expected = np.stack([sloped(x[..., c]) for c in range(3)])
    same(gp.vmap(slope, in_axes=-1)(gp.VectorField(x)), expected)
    whole = gp.vmap(slope, in_axes=2, out_axes=2)(gp.VectorField(x))
    same(whole, np.moveaxis(expected, 0, -1))
