"""Work-groups: the guide's tiles, shapes of groups, identity constants, thread grids. Expected values are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(5)
FLAT = ((16, 16), (32, 8), (64, 4), (128, 2), (256, 1))


def floats(*shape: int) -> Any:
    return rng.integers(-99, 100, shape).astype(np.float32)


# --- the guide's example ------------------------------------------------------------------------------------------------


def tile(field: gp.Field) -> Any:
    memory = _local(_tensorArray(field, _localRows, _localColumns))
    memory[_localRow, _localColumn] = _readTensor(field, _row, _column)
    _syncThreadsGlobal()
    return memory


def identity_transform(field: gp.Field, *group: int) -> gp.Field:
    with gp.GPUOperator(field.type) as op:
        if group:
            _localThreads(gp.Shape(*group))
        input_tile = tile(field)
        local_row = _row - _groupRow * _localRows
        local_column = _column - _groupColumn * _localColumns
        _writeTensor(_out0, input_tile[local_row, local_column])
    return op.output


@pytest.mark.parametrize("group", [(), *FLAT], ids=str)
def test_identity_through_tiles(device: str, group: tuple[int, ...]) -> None:
    image = floats(179, 179)
    same(identity_transform(gp.ScalarField(image), *group), image)


def test_tiles_of_other_tensors(device: str) -> None:
    colour = rng.integers(0, 256, (33, 20, 4)).astype(np.uint8)
    same(identity_transform(gp.ColorField(colour), 8, 8), colour)
    for dtype, tensor in (("int8", (2,)), ("float16", (3,)), ("float64", (2, 2)), ("uint64", ()), ("bool", ())):
        values = rng.integers(0, 2, (7, 19, *tensor)).astype(dtype)
        same(identity_transform(gp.Field(values, len(tensor)), 4, 4), values, dtype)


# --- shapes and constants -------------------------------------------------------------------------------------------------


def identities(grid: tuple[int, ...], group: tuple[int, ...]) -> tuple[Any, ...]:
    """Per point: place, place in the group, group; as vectors of (layer, row, column)."""
    where = np.zeros((*grid, 3), np.int32)
    where[..., 3 - len(grid) :] = np.moveaxis(np.indices(grid), 0, -1)
    size = np.int32((1,) * (3 - len(group)) + group)
    return where, where % size, where // size, np.broadcast_to(size, where.shape)


@pytest.mark.parametrize(
    ("grid", "group"),
    [
        *(((179, 179), group) for group in FLAT),
        *(((179,), (size,)) for size in (1, 7, 64, 256)),
        ((5, 7, 11), (2, 4, 8)),
        ((5, 7, 11), (1, 16, 16)),
        ((5, 7, 11), (3, 5)),
        ((3, 2), (8, 8)),
        ((1, 1), (16, 16)),
        ((1, 1), (1, 1)),
        ((0, 5), (4, 4)),
        ((9, 70), (64,)),
    ],
    ids=str,
)  # fmt: skip
def test_identity_constants(device: str, grid: tuple[int, ...], group: tuple[int, ...]) -> None:
    @gp.operator(outputs=(gp.FieldType(grid, 3, "int32"),) * 5)
    def places():
        _localThreads(*group)
        return (
            _vector(_layer, _row, _column),
            _vector(_localLayer, _localRow, _localColumn),
            _vector(_groupLayer, _groupRow, _groupColumn),
            _vector(_localLayers, _localRows, _localColumns),
            _vector(_layers, _rows, _columns),
        )

    count = np.broadcast_to(np.int32((1,) * (3 - len(grid)) + grid), (*grid, 3))
    all_same(places(), (*identities(grid, group), count))


@pytest.mark.parametrize(
    ("form", "first"), [("shape", "local"), ("field", "local"), ("field", "global"), ("type", "global")]
)
def test_global_threads(device: str, form: str, first: str) -> None:
    """The grid of another field, in every form, before or after `_localThreads`; what is outside the output is dropped."""
    source = gp.ScalarField(floats(21, 35))
    given = {"shape": (21, 35), "field": source, "type": source.type}[form]

    @gp.operator(outputs=gp.FieldType((20, 33), 2, "int32"))
    def transposed(f):
        if first == "local":
            _localThreads(8, 16)
        _globalThreads(given)
        if first == "global":
            _localThreads(gp.Shape(8, 16))
        _writeTensor(_out0, _vector(_row * _columns + _column, _localColumn + 100 * _groupRow), _row, _column)

    r, c = np.indices((20, 33)).astype(np.int32)
    same(transposed(source), np.stack([r * 35 + c, c % 16 + r // 8 * 100], -1))


@pytest.mark.parametrize(
    ("grid", "tensor"),
    [((), (7,)), ((), (2, 2)), ((50,), (3,)), ((50,), (4, 5)), ((5, 9), (2, 2)), ((5, 9), (7,)),
     ((3, 4, 5), (1,)), ((3, 4, 5), (6,))],
    ids=str,
)  # fmt: skip
def test_a_thread_for_each_element(device: str, grid: tuple[int, ...], tensor: tuple[int, ...]) -> None:
    kind = gp.FieldType(grid, tensor, "int32")
    count = kind.tensor_points

    @gp.operator(outputs=(kind, kind))
    def elements():
        _globalThreads(grid, tensor)
        place = (_layer, _row, _column)[3 - len(grid) :]
        number = _tensorElement + 100 * _column + 10000 * _row + 1000000 * _layer
        _writeTensorElement(_out0, number, *place, _tensorElement)
        _writeTensorElement(_out1, _tensorElements, *place, count - 1 - _tensorElement)

    *place, element = np.indices((*grid, count))
    scales = (1000000, 10000, 100)[3 - len(grid) :]
    number = element + sum((p * s for p, s in zip(place, scales, strict=True)), np.zeros_like(element))
    all_same(
        elements(),
        (number.astype(np.int32).reshape(*grid, *tensor), np.full((*grid, *tensor), count, np.int32)),
    )


@pytest.mark.parametrize(
    ("given", "grid", "tensor"),
    [((3, 4), (3, 4), ()), ((np.int64(2), 3, 4), (2, 3, 4), ()), ((7,), (7,), ()),
     (((3, 4), 2), (3, 4), (2,)), ((5, (2, 3)), (5,), (2, 3))],
    ids=str,
)  # fmt: skip
def test_extents_of_the_grid_and_of_the_tensor(given: Any, grid: tuple[int, ...], tensor: tuple[int, ...]) -> None:
    """Numbers side by side are the grid's; what follows a shape is the tensor's, as is `tensor=`."""
    kind = gp.FieldType(grid, tensor, "int32")
    here = (_layer, _row, _column)[3 - len(grid) :]

    def number() -> None:
        _writeTensorElement(_out0, _layer * 1000 + _row * 100 + _column * 10 + _tensorElement, *here, _tensorElement)

    @gp.operator(outputs=kind)
    def positional():
        _globalThreads(*given)
        number()

    @gp.operator(outputs=kind)
    def named():
        _globalThreads(*grid, tensor=tensor)
        number()

    *place, element = np.indices((*grid, kind.tensor_points))
    scales = (1000, 100, 10)[3 - len(grid) :]
    expected = sum((p * s for p, s in zip(place, scales, strict=True)), element).astype(np.int32)
    with gp.use_device("reference"):
        for op in (positional, named):
            same(op(), expected.reshape(*grid, *tensor))


def test_elements_in_groups(device: str) -> None:
    """`_localThreads` shapes the grid's axes; the elements of a tensor are in groups of their own."""
    v = rng.integers(0, 99, (9, 13, 6)).astype(np.int32)

    @gp.operator(outputs=gp.FieldType((9, 13), 6, "int32"))
    def mirrored(f):
        _globalThreads(f, f.tensor_shape)
        _localThreads(4, 8)
        shared = _local(_intArray(4, 8))
        shared[_localRow, _localColumn] = _readTensorElement(f, _row, _column, _tensorElement)
        _syncThreadsLocal()
        left = _max(_column - 1, _groupColumn * _localColumns) - _groupColumn * _localColumns
        _writeTensorElement(_out0, shared[_localRow, left], _row, _column, _tensorElement)

    c = np.arange(13)
    same(mirrored(gp.VectorField(v)), v[:, np.maximum(c - 1, c // 8 * 8)])


def test_one_thread_for_0D(device: str) -> None:
    @gp.operator(outputs=gp.FieldType((), 3, "int32"))
    def alone():
        shared = _local(_int3Var())
        shared @= _int3(1, 2, 3)
        _syncThreadsLocal()
        return shared + _vector(_localColumn, _groupColumn, _localColumns)

    same(alone(), np.int32([1, 2, 4]))
