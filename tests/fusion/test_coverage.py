"""Outputs are filled before a launch only where something of them may stay unwritten."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from tests.harness import image, same_bits

ROWS, COLUMNS = 9, 40
x = image(ROWS, COLUMNS)
vectors = image(ROWS, COLUMNS, 6)
a = gp.ScalarField(x)


def fills(*fields: gp.Field) -> list[float]:
    """The fill values of the outputs of all kernels."""
    steps = plan(program([f.node for f in fields])).launches
    return [value for step in steps for value in generate(step.kernel, target_named("opencl")).fills.values()]


def kind(*shape: int, tensor: tuple[int, ...] = ()) -> gp.FieldType:
    return gp.FieldType(shape, tensor)


@gp.operator(outputs=kind(COLUMNS, ROWS), default=7)
def transposed(f):
    _globalThreads(f)
    _writeTensor(_out0, _readTensor(f), _column, _row)


@gp.operator(outputs=kind(ROWS, COLUMNS), default=7)
def turned(f):
    _writeTensor(_out0, _readTensor(f), _rows - 1 - _row, COLUMNS - (_column + 1))


@gp.operator(outputs=kind(ROWS, 5), default=7)
def first_of_groups(f):
    _globalThreads(f)
    _localThreads(2, 8)
    with _if(_localColumn == 0):
        _writeTensor(_out0, _readTensor(f), _row, _groupColumn)


@gp.operator(outputs=kind(5, 8), default=7)
def folded(f):
    _globalThreads(f)
    _localThreads(1, 8)
    with _if((_row == 3) & (_localRow == 0)):
        _writeTensor(_out0, _readTensor(f), _groupColumn, _localColumn)


@gp.operator(outputs=kind(5, 8), default=7)
def folded_in_row_3(f):
    _globalThreads(f)
    _localThreads(1, 8)
    with _if(_row == 3):
        _writeTensor(_out0, _readTensor(f), _groupColumn, _localColumn)


@gp.operator(outputs=kind(ROWS, COLUMNS), default=7)
def row_by_row(f):
    _globalThreads(COLUMNS)
    with _for(ROWS) as i:
        _writeTensor(_out0, _readTensor(f, i, _column), i, _column)


@gp.operator(outputs=kind(COLUMNS, ROWS, tensor=(6,)), default=7)
def transposed_vectors(f):
    _globalThreads(kind(ROWS, COLUMNS))
    with _forEachTensorElement(f.tensor_shape):
        _writeTensorElement(_out0, _readTensorElement(f, _row, _column, _tensorElement), _column, _row, _tensorElement)


@gp.operator(outputs=kind(COLUMNS, ROWS, tensor=(2,)), default=7)
def both_elements(f):
    _globalThreads(f)
    _writeTensorElement(_out0, _readTensor(f), _column, _row, 0)
    _writeTensorElement(_out0, -_readTensor(f), _column, _row, 1)


def blocks(rows, columns, step=2, groups=(3, 5)):
    """Work-groups of 2×4 threads write blocks of so many rows and columns in strides, `step` rows and 4 columns."""

    @gp.operator(outputs=kind(ROWS, COLUMNS), default=7)
    def strided(f):
        _localThreads(2, 4, groups=groups)
        with _for(_localRow, rows, step) as r, _for(_localColumn, columns, 4) as c:
            at = _groupRow * 3 + r, _groupColumn * 8 + c
            _writeTensor(_out0, _readTensor(f, *at), *at)

    return strided(a)


@gp.operator(outputs=kind(ROWS, COLUMNS), default=7)
def grid_stride(f):
    _globalThreads(3, 7)
    with _for(_row, ROWS, _rows) as r, _for(4) as k, _for(_column, 10, _columns) as c:
        _writeTensor(_out0, _readTensor(f, r, 10 * k + 9 - c), r, 10 * k + 9 - c)


WRITTEN: dict[str, tuple[Callable[[], gp.Field], np.ndarray]] = {
    "transposed": (lambda: transposed(a), x.T),
    "turned": (lambda: turned(a), x[::-1, ::-1]),
    "a thread of each group": (lambda: first_of_groups(a), x[:, ::8]),
    "groups and threads": (lambda: folded_in_row_3(a), x[3].reshape(5, 8)),
    "a loop": (lambda: row_by_row(a), x),
    "blocks in strides": (lambda: blocks(3, 8), x),
    "blocks that overlap": (lambda: blocks(4, 9), x),
    "strides of the grid": (lambda: grid_stride(a), x),
    "elements": (lambda: transposed_vectors(gp.VectorField(vectors)), vectors.swapaxes(0, 1)),
    "element by element": (lambda: both_elements(a), np.stack([x.T, -x.T], -1)),
    "sliced": (lambda: a[::2, 3:] + 0, x[::2, 3:]),
}


@pytest.mark.parametrize("rows", [17, 32, 40])
def test_transposes_of_blocks_are_not_filled(rows):
    @gp.operator(outputs=kind(50, rows), default=7)
    def turned_in_blocks(f):
        _localThreads(4, 8, groups=(-(-rows // 16), 7))
        t = _tile(f, 16, 8)
        with _for(2, unroll=True) as i, _for(2) as k:
            c, r = 4 * i + _localRow, 8 * k + _localColumn
            _writeTensor(_out0, t[r, c], _groupColumn * 8 + c, _groupRow * 16 + r)

    values = image(rows, 50)
    field = turned_in_blocks(gp.ScalarField(values))
    assert fills(field) == []
    same_bits(field.numpy(), np.ascontiguousarray(values.T))


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_all_written_is_not_filled(device, name):
    build, want = WRITTEN[name]
    field = build()
    assert fills(field) == []
    same_bits(field.numpy(), np.ascontiguousarray(want))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "argmin"])
@pytest.mark.parametrize(
    "shape", [(21, 34), (480, 640), (100003,), (3, 5000), (5000, 3), (30, 40, 50), (70, 3), (70, 6)]
)
def test_reductions_fill_nothing(name, shape):
    order = 1 if shape in ((70, 3), (70, 6)) else 0
    field = gp.Field(image(*shape), order)
    for axis in (None, *range(len(shape))):
        assert fills(getattr(field, name)(axis=axis)) == [], axis


# --- what stays unwritten ---------------------------------------------------------------------------------------------


@gp.operator(outputs=kind(ROWS, COLUMNS), default=7)
def shifted_away(f):
    _writeTensor(_out0, _readTensor(f), _row, _column + 1)


@gp.operator(outputs=kind(ROWS, COLUMNS), default=7)
def diagonal(f):
    _writeTensor(_out0, _readTensor(f, _row, _row), _row, _row)


@gp.operator(outputs=kind(ROWS, COLUMNS), default=7)
def every_second(f):
    _writeTensor(_out0, _readTensor(f), _row, 2 * _column)


@gp.operator(outputs=kind(ROWS, COLUMNS), default=7)
def but_one_column(f):
    with _if(_column > 0):
        _writeTensor(_out0, _readTensor(f), _row, _column * 1)


@gp.operator(outputs=kind(3, 3), default=7)
def second_of_groups(f):
    _globalThreads((3, 17))  # the last group of a row has one thread
    _localThreads(1, 8)
    with _if(_localColumn == 1):
        _writeTensor(_out0, _readTensor(f, _row, _column), _row, _groupColumn)


@gp.operator(outputs=kind(3, 8), default=7)
def group_and_thread(f):
    _globalThreads(17)
    _localThreads(8)
    _writeTensor(_out0, _readTensor(f, 0, _column), _groupColumn, _localColumn)


@gp.operator(outputs=kind(COLUMNS, 2), default=7)
def own_row_is_fixed(f):
    _globalThreads(f)
    with _if(_row == 0):
        _writeTensor(_out0, _readTensor(f), _column, _row)


@gp.operator(outputs=kind(ROWS, COLUMNS), default=7)
def some_rows(f):
    _globalThreads(COLUMNS)
    with _for(ROWS) as i:
        with _if(_readTensor(f, i, _column) > 2):
            _break()
        with _if(i < 4):
            _writeTensor(_out0, _readTensor(f, i, _column), i, _column)


@gp.operator(outputs=kind(COLUMNS, ROWS, tensor=(2,)), default=7)
def one_element(f):
    _globalThreads(f)
    _writeTensorElement(_out0, _readTensor(f), _column, _row, 1)


@gp.operator(outputs=kind(COLUMNS, ROWS), default=7)
def contradicting(f):
    _globalThreads(f)
    with _if((_localColumn == 0) & (_localColumn == 1)):
        _writeTensor(_out0, _readTensor(f), _column, _row)


def holes(shape: tuple[int, ...], where: object, values: object) -> np.ndarray:
    want = np.full(shape, 7, np.float32)
    want[where] = values
    return want


few = np.arange(ROWS)
rows = np.arange(ROWS)[np.arange(ROWS) % 3 < 2]
columns = np.arange(COLUMNS)[np.arange(COLUMNS) % 8 < 6]
LEFT: dict[str, tuple[Callable[[], gp.Field], np.ndarray]] = {
    "beyond the end": (lambda: shifted_away(a), holes(x.shape, np.s_[:, 1:], x[:, :-1])),
    "one position twice": (lambda: diagonal(a), holes(x.shape, (few, few), x[few, few])),
    "every second": (lambda: every_second(a), holes(x.shape, np.s_[:, ::2], x[:, :20])),
    "a condition": (lambda: but_one_column(a), holes(x.shape, np.s_[:, 1:], x[:, 1:])),
    "a thread that not all groups have": (lambda: second_of_groups(a), holes((3, 3), np.s_[:, :2], x[:3, [1, 9]])),
    "a group that is not full": (
        lambda: group_and_thread(a),
        np.append(x[0, :17], np.full(7, 7, np.float32)).reshape(3, 8),
    ),
    "a fixed position": (lambda: own_row_is_fixed(a), holes((COLUMNS, 2), np.s_[:, 0], x[0])),
    "blocks that are too low": (lambda: blocks(2, 8), holes(x.shape, rows, x[rows])),
    "blocks that are too narrow": (lambda: blocks(3, 6), holes(x.shape, np.s_[:, columns], x[:, columns])),
    "too few blocks": (lambda: blocks(3, 8, groups=(3, 4)), holes(x.shape, np.s_[:, :32], x[:, :32])),
    "strides that are too long": (lambda: blocks(3, 8, step=3), holes(x.shape, rows, x[rows])),
    "some turns": (lambda: some_rows(a), holes(x.shape, np.s_[:4], x[:4])),
    "one element": (lambda: one_element(a), holes((COLUMNS, ROWS, 2), np.s_[..., 1], x.T)),
    "never": (lambda: contradicting(a), holes((COLUMNS, ROWS), np.s_[:0], 0)),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_may_stay_unwritten_has_its_default(device, name):
    build, want = LEFT[name]
    field = build()
    assert fills(field) == [7]
    same_bits(field.numpy(), want)


def test_two_conditions_that_a_thread_meets_are_not_understood(device):
    """The position in the grid and in the group are of one axis: such places are filled, and written all the same."""
    field = folded(a)
    assert fills(field) == [7]
    same_bits(field.numpy(), np.ascontiguousarray(x[3].reshape(5, 8)))


def test_atomics_start_from_the_default(device):
    @gp.operator(outputs=gp.FieldType(ROWS, dtype="int32"), default=5)
    def counted(f):
        _globalThreads(f)
        _atomic_add(_pointerTo(_out0, _row), 1)

    assert fills(counted(a)) == [5]
    same_bits(counted(a).numpy(), np.full(ROWS, 5 + COLUMNS, np.int32))
