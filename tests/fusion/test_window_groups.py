"""Operators with work-groups, in windows that begin and end where these do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

import gpuop as gp
from gpuop.base.errors import SemanticError
from gpuop.dsl import *
from tests.harness import image
from tests.nightly import left_to_nightly

from .test_windows import parts, taken

MODES = {
    "clamp": ("nearest", "edge"),
    "reflect": ("mirror", "reflect"),
    "symmetric": ("reflect", "symmetric"),
    "wrap": ("wrap",) * 2,
}
WEIGHTS = np.array([[1, 0, -2, 0, 0], [0, 0, 3, 0, 0], [0, 0, 0, 0.5, 0]], np.float32)


def tiled(border):
    """A stencil of a tile, and where its work-group is."""

    @gp.operator
    def stencil(f):
        _localThreads(4, 8)
        tile = _tile(f, 4, 8, halo=(1, 2), border=border)
        taps = zip(*np.nonzero(WEIGHTS), strict=True)
        total = sum(tile[_localRow + r - 1, _localColumn + c - 2] * float(WEIGHTS[r, c]) for r, c in taps)
        return total + _groupRow * 64 + _groupColumns * 8 + _groupColumn

    return stencil


def turned(border):
    """Each point has the value of the one at the other end of its work-group, and of the one before that."""

    @gp.operator
    def turn(f):
        _localThreads(4, 2, whole_groups=True)
        block = _local(_floatArray(4, 2))
        block[_localRow, _localColumn] = _readTensor(f, _groupRow * 4 + _localRow, _column) * 2
        _syncThreadsLocal()
        return block[3 - _localRow, 1 - _localColumn] + _readTensor(f, _row - _localRow - 1, _column, border=border)

    return turn


def turned_by_numpy(x, mode):
    rows, columns = np.indices(x.shape)
    last = np.array(x.shape)[:, None, None] - 1
    there = np.minimum([rows - rows % 4 + 3 - rows % 4, columns - columns % 2 + 1 - columns % 2], last)
    return x[tuple(there)] * 2 + np.pad(x, ((1, 0), (0, 0)), mode)[rows - rows % 4, columns]


@pytest.mark.parametrize(
    ("border", "grid"), [("clamp", (14, 21)), ("reflect", (14, 21)), ("symmetric", (13, 26)), ("wrap", (16, 24))]
)
def test_groups_of_windows_are_those_of_the_whole(device, border, grid):
    if device != "reference" and border == "symmetric":
        left_to_nightly("borders of drivers are alike")
    stencil, turn, x, mode = tiled(border), turned(border), image(*grid), MODES[border]
    program = gp.pipeline(lambda x: turn(stencil(gp.ScalarField(x))))
    rows, columns = np.indices(grid)
    once = ndimage.correlate(x, WEIGHTS, mode=mode[0])
    once = once + rows // 4 * 64 + -(-grid[1] // 8) * 8 + columns // 8
    whole, needed = program(x), program.footprint(x)
    np.testing.assert_allclose(whole, turned_by_numpy(once, mode[1]), rtol=1e-5)
    assert needed.halo == (((8, 8), (16, 8)) if border == "reflect" else ((8, 4), (8, 8)))
    assert {axis: n for axis, (n, _) in needed.multiples.items()} == {0: 4, 1: 8}
    windows = parts(grid, 4, 8) if device == "reference" else [((8, 0), (12, 16))]
    for start, stop in windows:
        part = np.ascontiguousarray(taken(x, needed.window(start, stop)))
        result = program.window(grid, start, stop)(part)
        np.testing.assert_array_equal(result, whole[tuple(map(slice, start, stop))])


def test_fields_that_work_groups_have_whole(device):
    """Threads beyond the grid read the nearest point, of what comes in windows and of what does not."""
    x, table = image(13, 21), image(13, 21)[::-1].copy()

    @gp.operator
    def turned(f, whole):
        _localThreads(4, 8, whole_groups=True)
        block = _local(_floatArray(4, 8))
        block[_localRow, _localColumn] = _readTensor(f) - _readTensor(whole)
        _syncThreadsLocal()
        return block[3 - _localRow, 7 - _localColumn]

    program = gp.pipeline(lambda x: turned(gp.ScalarField(x), gp.ScalarField(table)))
    rows, columns = np.indices(x.shape)
    there = np.minimum(rows - rows % 4 + 3 - rows % 4, 12), np.minimum(columns - columns % 8 + 7 - columns % 8, 20)
    for start, stop in [((8, 8), (13, 21)), ((4, 8), (8, 16))]:
        inner = tuple(map(slice, start, stop))
        result = program.window(x.shape, start, stop)(np.ascontiguousarray(x[inner]))
        np.testing.assert_array_equal(result, (x - table)[there][inner])


@gp.operator(outputs=gp.FieldType(9, (), "int32"))
def counted(f):
    """A histogram of each work-group in local memory, then of all."""
    _localThreads(4, 8, whole_groups=True)
    _globalThreads(f)
    counts, number = _local(_intArray(9)), _localRow * 8 + _localColumn
    with _if(number < 9):
        counts[number] = 0
    _syncThreadsLocal()
    with _if((_row < f.field_shape[0]) & (_column < f.field_shape[1])):
        _atomic_inc(_pointerTo(counts[_convert_int(_readTensor(f) * 9)]))
    _syncThreadsLocal()
    with _if(number < 9):
        _atomic_add(_pointerTo(_out0, number), counts[number])


@gp.pipeline
def shares(x):
    field = tiled("clamp")(gp.ScalarField(x)) * 0 + gp.ScalarField(x)
    counts = counted(field)
    return tiled("clamp")(field) + counts.max(), counts


def test_streams_and_dask_choose_windows_of_whole_groups():
    da, gd = pytest.importorskip("dask.array"), pytest.importorskip("gpuop.dask")
    x = image(14, 27)
    with gp.use_device("reference"):
        whole = shares(x)
        np.testing.assert_array_equal(whole[1], np.bincount((x * 9).astype(int).ravel(), minlength=9))
        streamed = gp.stream(shares, x, chunks=(3, 9), progress=False)
        field = da.from_array(x, ((5, 2, 7), (9, 18)))
        blocks = gd.map_blocks(shares, field)
        assert blocks[0].chunks == ((8, 6), (16, 11))
        for result, one in zip(
            (*streamed, *(each.compute(scheduler="synchronous") for each in blocks)), whole * 2, strict=True
        ):
            np.testing.assert_array_equal(result, one)
        with pytest.raises(
            SemanticError, match=r"chunks of axis 0 must end at multiples of 4, which `rechunk=True` does"
        ):
            gd.map_blocks(shares, field, rechunk=False)


def test_windows_that_cut_groups_are_refused():
    stencil, x = tiled("wrap"), image(14, 24)
    program = gp.pipeline(lambda x: stencil(gp.ScalarField(x)))
    with pytest.raises(
        SemanticError, match=r"axis 0 .* must be whole.*`stencil` .*has work-groups of 4 rows, of which 14 is no"
    ):
        program.window(x.shape, (0, 0), (4, 24))(x)
    with pytest.raises(
        SemanticError, match=r"windows begin and end at multiples of 8 along axis 1.* is 4:24: operator `stencil`"
    ):
        program.window(x.shape, (0, 4), (14, 24))(x)

    @gp.operator
    def strided(f):
        _localThreads(4, 8)
        return _readTensor(f, _groupRow * 5, _column) + _localRow

    @gp.operator
    def one_group(f):
        _localThreads(16, 8)
        return _readTensor(f) + _localRow

    for operator, reason in (
        (strided, "`strided` .* reads `f` along rows at a place that is no constant distance away"),
        (one_group, "`one_group` .* has work-groups of 16 rows, and the axis has 14"),
    ):
        program = gp.pipeline(lambda x, operator=operator: operator(gp.ScalarField(x)))
        with pytest.raises(SemanticError, match=f"axis 0 .* must be whole.*{reason}"):
            program.window(x.shape, (0, 0), (4, 24))(x[:4])
