"""Linear indices of threads, and `_ravel` and `_unravel`, against NumPy's."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same

GRIDS = [(), (300,), (19, 70), (3, 18, 21), (1, 5, 1)]


def floored(index: np.ndarray, dims: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """The place that an index counts: all coordinates but the first one are inside."""
    places: list[np.ndarray] = []
    for n in dims[:0:-1]:
        index, rest = np.divmod(index, n)
        places.insert(0, rest)
    return (index, *places)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_index_of_threads(device: str, grid: tuple[int, ...]) -> None:
    @gp.operator(outputs=(gp.FieldType(grid, dtype="int32"),) * 2)
    def indices():
        return _index(), _index("global")

    at = np.arange(math.prod(grid), dtype=np.int32).reshape(grid)
    all_same(indices(), (at, at))


@pytest.mark.parametrize(("grid", "group"), [((300,), (7,)), ((19, 70), (4, 8)), ((3, 18, 21), (2, 3, 5))], ids=str)
def test_index_in_groups_and_of_groups(device: str, grid: tuple[int, ...], group: tuple[int, ...]) -> None:
    """Ragged groups too; `_unravel` takes the places apart by constants of the launch."""
    counts = tuple(-(-n // size) for n, size in zip(grid, group, strict=True))

    @gp.operator(outputs=(gp.FieldType(grid, dtype="int32"),) * 2 + (gp.FieldType(grid, 3, "int32"),) * 3)
    def indices():
        _localThreads(*group)
        here = _unravel(_index("local") + 0 * _column, (_localLayers, _localRows, _localColumns))
        there = _unravel(_index("group") * 1, (_groupLayers, _groupRows, _groupColumns))
        return _index("local"), _index("group"), _vector(*here), _vector(*there), _vector(*_out_of_groups())

    def _out_of_groups():
        return _groupLayers, _groupRows, _groupColumns

    where = np.indices(grid)
    sizes = np.array(group).reshape(-1, *[1] * len(grid))
    local, ours = where % sizes, where // sizes
    padded = np.zeros((2, 3, *grid), np.int32)
    padded[0, 3 - len(grid) :], padded[1, 3 - len(grid) :] = local, ours
    all_same(
        indices(),
        (
            np.ravel_multi_index(tuple(local), group).astype(np.int32),
            np.ravel_multi_index(tuple(ours), counts).astype(np.int32),
            np.moveaxis(padded[0], 0, -1),
            np.moveaxis(padded[1], 0, -1),
            np.broadcast_to(np.int32((1,) * (3 - len(grid)) + counts), (*grid, 3)),
        ),
    )


@pytest.mark.parametrize(("group", "counts"), [((8,), (5,)), ((4, 8), (3, 2)), ((2, 1, 4), (1, 3, 2))], ids=str)
def test_a_grid_of_groups(device: str, group: tuple[int, ...], counts: tuple[int, ...]) -> None:
    """So many work-groups, each of which writes one point: the grid is theirs, whatever the output's."""

    @gp.operator(outputs=gp.FieldType(counts, dtype="int32"))
    def totals():
        _localThreads(*group, groups=counts)
        count = _local(_intVar())
        with _if(_index("local") == 0):
            count @= 0
        _syncThreadsLocal()
        _atomic_add(_pointerTo(count), _index())
        _syncThreadsLocal()
        with _if(_index("local") == 0):
            _writeTensor(_out0, count, *(_groupLayer, _groupRow, _groupColumn)[3 - len(group) :])

    grid = tuple(n * size for n, size in zip(counts, group, strict=True))
    index = np.arange(math.prod(grid), dtype=np.int32).reshape(grid)
    split = index.reshape([n for pair in zip(counts, group, strict=True) for n in pair])
    same(totals(), split.sum(axis=tuple(range(1, 2 * len(group), 2)), dtype=np.int32))


def test_limits_of_the_device(device: str) -> None:
    """A grid-stride loop over as many groups as the device runs at once."""
    found = gp.device()
    size = min(found.max_work_group_size, 64)
    assert size >= 1 and found.compute_units >= 1

    @gp.operator(outputs=gp.FieldType(1000), default=-1)
    def squares(f):
        _localThreads(size, groups=found.compute_units)
        with _for(_index(), 1000, _columns) as i:
            _writeTensor(_out0, _readTensor(f, i) * _readTensor(f, i), i)

    values = np.arange(1000, dtype="f")
    same(squares(gp.ScalarField(values)), values * values)


def test_counts_of_default_groups(device: str) -> None:
    """They are the same whether anything else of a group is asked for, and are extents of arrays."""

    @gp.operator(outputs=(gp.FieldType((19, 70), dtype="int32"),) * 2)
    def alone():
        ones = _intArray(_groupColumns)
        ones[_groupColumns - 1] = _groupRows
        return _groupRows * _localRows - _rows + 1, ones[_groupColumns - 1]

    whole, rows = alone()
    assert (whole.numpy() > 0).all() and (rows.numpy() == rows.numpy()[0, 0]).all() and rows.numpy().min() >= 1


DIMS = [(2, 3, 4), (5,), (24,), (1, 24, 1), (3, 1, 2, 2, 1, 2), (4, 96, 3), (7, 11)]


@pytest.mark.parametrize("dims", DIMS, ids=str)
@pytest.mark.parametrize("first", [0, -31], ids=["natural", "negative"])
def test_places_of_an_index(device: str, dims: tuple[int, ...], first: int) -> None:
    """Beyond both ends only the first coordinate is outside; what was taken apart is put together again."""
    kinds = (gp.FieldType(77, dtype="int32"),) * (len(dims) + 1)

    @gp.operator(outputs=kinds)
    def places():
        found = _unravel(_column + first, dims)
        return (*found, _ravel(found, dims))

    index = np.arange(77, dtype=np.int32) + np.int32(first)
    all_same(places(), (*floored(index, dims), index))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_indices_of_every_type(device: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    values = np.array([0, 1, 5, 6, 23, 24, 100, info.max, info.max - 1, info.min, info.min // 2, info.max // 3], dtype)
    dims = (3, 4, 2)

    @gp.operator
    def places(f):
        return _unravel(_readTensor(f), dims)

    wide = np.dtype(dtype) if np.dtype(dtype).itemsize > 2 else np.dtype(np.int32)
    all_same(places(gp.ScalarField(values)), floored(values.astype(wide), dims))


def test_indices_that_need_64_bits(device: str) -> None:
    """Of dimensions that int cannot count, or of a long."""
    dims = (5, 70000, 70000)
    places = [(4, 69999, 69999), (0, 0, 7), (3, 1, 2)]

    @gp.operator(outputs=(gp.FieldType(3, dtype="int64"),) * 4)
    def both(a, b, c):
        at = _ravel((_readTensor(a), _readTensor(b), _readTensor(c)), dims)
        return (at, *_unravel(at, dims))

    fields = [gp.ScalarField(np.array(axis, np.int32)) for axis in zip(*places, strict=True)]
    want = np.ravel_multi_index(tuple(np.array(places).T), dims)
    all_same(both(*fields), (want, *np.array(places, np.int64).T))

    @gp.operator(outputs=(gp.FieldType(3, dtype="int64"),) * 2)
    def narrow(a):
        return _unravel(_readTensor(a) - 3, (2**20, 2**20))  # an int, of dimensions that it cannot reach across

    all_same(narrow(fields[0]), floored(np.array(places)[:, 0] - 3, (2**20, 2**20)))


def test_extents_of_the_kernel(device: str) -> None:
    """Extents may be values; one that turns out to be 0 gives 0, as dividing by it does."""
    extents = np.array([0, 2, 3, 5, 8], np.int32)

    @gp.operator
    def places(f):
        n = _readTensor(f)
        outer, inner = _unravel(_column * 7 - 11, (4, n))
        return outer, inner, _ravel((outer, inner), (4, n))

    index = np.arange(5, dtype=np.int32) * 7 - 11
    with np.errstate(divide="ignore"):  # NumPy's 0 too
        want = (*np.divmod(index, extents), np.where(extents > 0, index, 0))
    all_same(places(gp.ScalarField(extents)), want)


def test_no_dimensions_and_numbers(device: str) -> None:
    @gp.operator(outputs=(gp.FieldType((), dtype="int32"),) * 4)
    def few():
        assert _unravel(_index(), ()) == ()
        return _ravel((), ()), _unravel(9, 3)[0], _unravel(np.int16(7), gp.Shape(2, 4))[1], _ravel((1, 2), (3, 4))

    all_same(few(), tuple(np.int32(n) for n in (0, 9, 3, 6)))


def test_a_grid_taken_apart_is_the_threads_own_place(device: str) -> None:
    """So a read there is one at the own point, which fuses like any other; fields and types stand for their grid."""
    image = np.random.default_rng(3).random((3, 5, 7), np.float32)

    @gp.operator
    def mirrored(f):
        layer, row, column = _unravel(_index(), f)
        return _readTensor(f, layer, row, column) - _readTensor(f, layer, row, _columns - 1 - column)

    @gp.operator
    def doubled(f):
        return _readTensor(f, *_unravel(_index(), f.type)) * 2

    field = gp.ScalarField(image)
    same(mirrored(field), image - image[..., ::-1])
    twice = doubled(doubled(field))
    same(twice, image * 4)
    with gp.ComputeGraph() as graph:
        graph.probe(doubled(doubled(gp.ScalarField(image))), "twice")
    assert graph.kernel_count == 1 and "own" not in graph.explain().split("left apart")[-1]


# --- what it costs ----------------------------------------------------------------------------------------------------


def body(op: gp.GPUOperator, *types: gp.FieldType) -> str:
    """The statements of the text, without the prolog."""
    return re.split(r"// \w+\n", op.source(*types, target="opencl"))[-1]


def test_taking_the_grid_apart_costs_nothing() -> None:
    @gp.operator
    def there(f):
        layer, row, column = _unravel(_index(), f.field_shape)
        return _readTensor(f, layer, row, column) + 1

    @gp.operator
    def here(f):
        return _readTensor(f) + 1

    kind = gp.FieldType((3, 18, 21))
    assert there.source(kind, target="opencl").replace("there", "here") == here.source(kind, target="opencl")


def test_no_step_is_in_vain() -> None:
    """No remainder of the first dimension, no clamps, no signs, one division for two, none by 1."""

    @gp.operator(outputs=gp.FieldType(96 * 363))
    def blocked(f):
        ic, y, x, reg, tile = _unravel(_index(), (3, 11, 11, 8, 12))
        return _readTensor(f, _ravel((tile, reg, ic, y, x), (12, 8, 3, 11, 11)))

    text = body(blocked, gp.FieldType(96 * 363))
    assert text.count("/") == 4 and text.count("%") == 4, text
    assert not re.search(r"min|max|<|\?|/ 1\b|% 1\b", text), text


@pytest.mark.parametrize(
    ("index", "want"),
    [
        (lambda: _column // 1 + _column % 1, "f[_column]"),
        (lambda: _column % 60, "f[_column]"),
        (lambda: _column + _column // 60, "f[_column]"),
        (lambda: (_column * 8 + 5) // 8, "f[_column]"),
        (lambda: (_column * 8 + 5) % 8 + _column, "f[_column + 5]"),
        (lambda: _min(_max(_column, 0), 100), "f[_column]"),
        (lambda: _column // 2 // 5, "f[_column / 10]"),
        (lambda: _column // 5 * 5 + _column % 5, "f[_column]"),
        (lambda: _column - _column // 7 * 7, "f[_column % 7]"),
        (lambda: _column % 12 % 4, "f[_column % 4]"),
        (lambda: (_column // 3) & 255, "f[_column / 3]"),
        (lambda: (_column << 2) >> 2, "f[_column << 2 >> 2]"),
    ],
)
def test_positions_have_plain_indices(index: object, want: str) -> None:
    @gp.operator(outputs=gp.FieldType(60))
    def read(f):
        return _readTensor(f, index())

    assert f"= {want};" in body(read, gp.FieldType(80))
