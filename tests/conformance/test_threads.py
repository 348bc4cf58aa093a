"""The thread identity constants: in every dimensionality they exist, and agree with each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same


@pytest.mark.parametrize("grid", [(), (37,), (19, 70), (3, 18, 21), (1, 1, 1), (300,)], ids=str)
def test_places_and_counts(device: str, grid: tuple[int, ...]) -> None:
    kinds = (gp.FieldType(grid, 3, "int32"), gp.FieldType(grid, 3, "int32"), gp.FieldType(grid, 2, "int32"))

    @gp.operator(outputs=kinds)
    def places():
        return (
            _vector(_layer, _row, _column),
            _vector(_layers, _rows, _columns),
            _vector(_tensorElement, _tensorElements),
        )

    where = np.zeros((*grid, 3), np.int32)
    where[..., 3 - len(grid) :] = np.moveaxis(np.indices(grid), 0, -1)
    extents = np.broadcast_to(np.int32((1, 1, 1)[: 3 - len(grid)] + grid), where.shape)
    all_same(places(), (where, extents, np.broadcast_to(np.int32([0, 3]), (*grid, 2))))


@pytest.mark.parametrize("grid", [(), (300,), (19, 70), (3, 18, 21)], ids=str)
def test_work_groups(device: str, grid: tuple[int, ...]) -> None:
    """Group, size and place within it give the place in the grid; axes that are not there count 0 and 1."""
    kinds = (gp.FieldType(grid, 3, "int32"),) * 4

    @gp.operator(outputs=kinds)
    def groups():
        local, group = _vector(_localLayer, _localRow, _localColumn), _vector(_groupLayer, _groupRow, _groupColumn)
        size = _vector(_localLayers, _localRows, _localColumns)
        return local, group, size, group * size + local - _vector(_layer, _row, _column)

    local, group, size, zero = (r.numpy() for r in groups())
    assert not zero.any() and (local >= 0).all() and (local < size).all() and (group >= 0).all()
    assert (size == size.reshape(-1, 3)[0]).all() and size.min() >= 1
    missing = 3 - len(grid)
    assert not local[..., :missing].any() and not group[..., :missing].any() and (size[..., :missing] == 1).all()


def test_elements(device: str) -> None:
    """`_tensorElement` of the thread's own axis, of inner loops, and of none."""
    for count in (1, 4, 9):
        kind = gp.FieldType((4, 5), count, "int32")

        @gp.operator(outputs=kind)
        def whole():
            with _forEachTensorElement(kind.tensor_shape):  # noqa: B023
                _writeTensorElement(
                    _out0, _tensorElement * 100 + _row * 10 + _column + _tensorElements * 1000, _tensorElement
                )

        r, c, e = np.indices((4, 5, count)).astype(np.int32)
        same(whole(), e * 100 + r * 10 + c + np.int32(count * 1000))

    @gp.operator(outputs=gp.FieldType(3, 6, "int32"))
    def nested():
        total = _intVar()
        with _forEachTensorElement((2, 4)):
            total += _tensorElement
            with _forEachTensorElement(3):
                total += 100 * _tensorElement
        with _forEachTensorElement(6):
            _writeTensorElement(_out0, total + _tensorElement)

    same(nested(), np.broadcast_to(np.arange(6, dtype=np.int32) + 28 + 8 * 300, (3, 6)))


def test_constants_as_bounds_and_coordinates(device: str) -> None:
    a = np.random.default_rng(3).integers(0, 9, (6, 7)).astype(np.int32)

    def sums(f):
        along, down = _intVar(), _intVar()
        with _for(_columns) as c:
            along += _readTensor(f, _row, c)
        with _for(_rows - 1, -1, -1) as r:
            down @= down * 2 + _readTensor(f, r, _column)
        return along, down

    down: Any = 0
    for row in a[::-1]:
        down = down * 2 + row
    all_same(
        gp.operator(sums)(gp.Field(a)),
        (np.repeat(a.sum(1, dtype=np.int32)[:, None], 7, 1), np.repeat(down[None], 6, 0)),
    )


@pytest.mark.parametrize("grid", [(7,), (1, 6), (3, 1, 5)], ids=str)
def test_extents_and_places_as_divisors(device: str, grid: tuple[int, ...]) -> None:
    """A divisor that cannot be zero is not compared with zero: compilers would warn of that."""

    @gp.operator(outputs=gp.FieldType(grid, (4,), "int32"))
    def divided():
        x = _column + 2 * _row + 9
        parts = (x % _columns, x / (_columns + 1), x % (2 * _rows + _columns), x / (_column + 1))
        return _vector(*parts)

    row, column = ([0, 0, *np.indices(grid)][-2:]) if len(grid) > 1 else (0, np.arange(grid[0]))
    x, columns, rows = column + 2 * row + 9, grid[-1], ([1, *grid][-2])
    want = (x % columns, x // (columns + 1), x % (2 * rows + columns), x // (column + 1))
    same(divided(), np.stack(np.broadcast_arrays(*want), -1).astype(np.int32))
    assert "?" not in divided.source(target="opencl")


def test_the_grid_is_the_first_outputs(device: str) -> None:
    """Other outputs may have other grids; they are written at explicit points."""
    kinds = gp.FieldType((4, 6), (), "int32"), gp.FieldType(24, (), "int32"), gp.FieldType((2, 3), (), "int32")

    def body():
        n = _row * _columns + _column
        _writeTensor(_out0, n)
        _writeTensor(_out1, 100 + n, 23 - n)
        with _if(_and(_row < 2, _column % 2 == 0)):
            _writeTensor(_out2, n, _row, _column / 2)

    n = np.arange(24, dtype=np.int32)
    all_same(gp.operator(outputs=kinds)(body)(), (n.reshape(4, 6), 123 - n, np.int32([[0, 2, 4], [6, 8, 10]])))


def test_no_threads_leave_the_default(device: str) -> None:
    """Not what was in the memory before."""

    @gp.operator(outputs=gp.FieldType(20), default=7)
    def unwritten(f):
        _globalThreads(0)
        _writeTensor(_out0, _readTensor(f, _column), _column)

    for _ in range(2):
        assert (gp.ScalarField(np.full(20, 3.0, "f")) * 2).numpy().sum() == 120  # memory that is used again
        assert unwritten(gp.ScalarField(np.ones(0, "f"))).numpy().tolist() == [7] * 20
