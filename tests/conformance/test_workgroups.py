"""Work-groups: their shapes and identity constants, local memory, barriers. Expected values are NumPy's."""

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
FLAT = ((16, 16), (32, 8), (64, 4), (128, 2), (256, 1))


def floats(*shape: int) -> Any:
    return rng.integers(-99, 100, shape).astype(np.float32)


def rounded(shape: Sequence[int], group: Sequence[int]) -> tuple[int, ...]:
    """The thread grid of whole groups that covers a shape."""
    return tuple(-(-n // g) * g for n, g in zip(shape, group, strict=True))


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
        *((((179,), (size,)) for size in (1, 7, 64, 256))),
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


@pytest.mark.parametrize("form", ["shape", "field", "type"])
@pytest.mark.parametrize("first", ["local", "global"])
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


@pytest.mark.parametrize("tensor", [(3,), (2, 2), (7,), (4, 5), (1,)], ids=str)
@pytest.mark.parametrize("grid", [(), (50,), (5, 9), (3, 4, 5)], ids=str)
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


# --- cooperation ------------------------------------------------------------------------------------------------------------


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
                fold(1 << _convert_int(k) if False else _int(1, k))
        else:
            for k in range(5, -1, -1):
                fold(1 << k)
        with _if(_localColumn == 0):
            _writeTensor(_out0, partial[0], _groupColumn)

    def _int(one, k):
        return _var(one) << k

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
        _localThreads(8, 16)
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
    # surplus threads load nothing: what they would have loaded is missing at the last rows and columns
    same(box_in_whole_groups(image), expected)
    inner = box(gp.ScalarField(image)).numpy()
    np.testing.assert_array_equal(inner[:38, :46], np.asarray(expected)[:38, :46])


def box_in_whole_groups(image: Any) -> Any:
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


# --- barriers in blocks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [64, 50, 5])
def test_values_across_barriers(device: str, columns: int) -> None:
    """Scalars, vectors, variables and arrays of before a barrier are used after it; variables change in between."""
    a = rng.integers(1, 99, (columns, 2)).astype(np.float32)

    @gp.operator(outputs=gp.FieldType(columns, 4, "float32"))
    def mixed(f):
        _localThreads(16)
        shared = _local(_floatArray(16))
        x, y = _readTensor(f)
        both = _vector(y, x) * 2
        count, pair, own = _var(1.0), _var(_float2(x, 1)), _floatArray(3)
        own[1] = x
        shared[_localColumn] = x + y
        _syncThreadsLocal()
        left = shared[_max(_localColumn - 1, 0)]
        count += x
        pair.y = left
        own[_convert_int(x) % 3] += y
        _syncThreadsLocal()
        shared[_localColumn] = count
        _syncThreadsLocal()
        count @= count + shared[_localColumn] + both.x
        with _if(left > 80):
            pair.x = -left
        return _float4(count, pair.x + both.y, pair.y, own[0] + own[1] * 10 + own[2] * 100)

    x, y = a.T
    local = np.arange(columns) % 16
    left = (x + y)[np.arange(columns) - (local > 0)]
    own = np.zeros((columns, 3), np.float32)
    own[:, 1] = x
    own[np.arange(columns), x.astype(int) % 3] += y
    first = np.where(left > 80, -left, x) + 2 * x
    expected = np.stack([2 * (1 + x) + 2 * y, first, left, own @ np.float32([1, 10, 100])], -1)
    same(mixed(gp.VectorField(a)), expected)


@pytest.mark.parametrize("bound", ["constant", "parameter", "field", "group"])
def test_loops_with_uniform_bounds(device: str, bound: str) -> None:
    """Neighbours exchange values, as often as a number says that is known late; nested loops, a uniform break."""
    a = rng.integers(0, 99, 70).astype(np.int32)
    turns = {"constant": 3, "parameter": gp.Parameter(np.int32(3)), "field": gp.ScalarField(np.int32(3)), "group": 3}
    given = turns[bound]

    @gp.operator
    def shifted(f):
        _localThreads(32)
        ring = _local(_intArray(32))
        x = _var(_readTensor(f))
        count = _readTensor(given) if isinstance(given, gp.Field) else _groupColumn + 1 if bound == "group" else given
        done = _var(0)
        with _for(count) as i:
            with _for(100) as j:
                with _if(j > i):
                    _break()
                ring[_localColumn] = x
                _syncThreadsLocal()
                x @= ring[(_localColumn + 1) % 32] if bound != "group" else ring[_localColumn ^ 1]
                _syncThreadsLocal()
                done += 1
        return x * 100 + done

    padded = np.zeros(96, np.int32)
    padded[:70] = a
    rings = padded.reshape(3, 32)
    count = [1, 2, 3] if bound == "group" else [3] * 3
    rows = []
    for ring, n in zip(rings, count, strict=True):
        steps = n * (n + 1) // 2
        moved = np.arange(32) ^ (steps % 2) if bound == "group" else (np.arange(32) + steps) % 32
        rows.append(ring[moved] * 100 + steps)
    result = shifted(gp.ScalarField(a)).numpy()
    keep = np.arange(70) < (70 if bound == "group" else 64)  # in the last group, what surplus threads hold is not exchanged
    np.testing.assert_array_equal(result[keep], np.concatenate(rows)[:70][keep])


@pytest.mark.parametrize("flag", [0, 1])
def test_barriers_under_uniform_conditions(device: str, flag: int) -> None:
    a = rng.integers(0, 99, (6, 40)).astype(np.int32)

    @gp.operator
    def swapped(f, on):
        _localThreads(2, 16)
        shared = _local(_intArray(2, 16))
        x = _var(_readTensor(f))
        twice = x * 2
        with _if(_readTensor(on) > 0):
            shared[_localRow, _localColumn] = x + twice
            _syncThreadsLocal()
            x @= shared[1 - _localRow, _localColumn]
        with _elseif(_groupRow == 1):
            shared[_localRow, _localColumn] = twice
            _syncThreadsLocal()
            x @= shared[1 - _localRow, _localColumn]
        with _else():
            x += 1
        return x

    other = a.reshape(3, 2, 40)[:, ::-1].reshape(6, 40)
    group = np.arange(6)[:, None] // 2
    expected = other * 3 if flag else np.where(group == 1, other * 2, a + 1)
    same(swapped(gp.ScalarField(a), gp.ScalarField(np.int32(flag))), expected.astype(np.int32))


def test_a_condition_in_shared_and_in_private_memory(device: str) -> None:
    """What decides about a barrier may lie in memory, the same for all threads of the group; surplus threads see it too."""
    a = rng.integers(0, 99, 45).astype(np.int32)

    @gp.operator
    def until(f):
        _localThreads(16)
        most, shared, limits = _local(_intVar()), _local(_intArray(16)), _intArray(2)
        limits[0] = 2
        limits[1] = limits[0] + 1
        with _if(_localColumn == 0):
            most @= 0
        _syncThreadsLocal()
        _atomic_max(_pointerTo(most), _readTensor(f))
        _syncThreadsLocal()
        x = _var(0)
        with _while(lambda: (most > 50) & (x < limits[1])):
            shared[_localColumn] = x
            _syncThreadsLocal()
            x @= shared[0] + 1
            _syncThreadsLocal()
        return most * 10 + x

    padded = np.zeros(48, np.int32)
    padded[:45] = a
    most = np.repeat(padded.reshape(3, 16).max(1), 16)[:45]
    same(until(gp.ScalarField(a)), most * 10 + np.where(most > 50, 3, 0).astype(np.int32))


def test_continue_and_assignments_around_barriers(device: str) -> None:
    a = rng.integers(0, 9, 21).astype(np.int32)

    @gp.operator
    def body(f):
        _localThreads(8)
        shared = _local(_intArray(8))
        x, total = _var(_readTensor(f)), _var(0)
        with _for(4) as i:
            with _if(i == 2):
                _continue()
            fresh = _var(x)  # anew at every turn
            step = _intVar()
            shared[_localColumn] = fresh
            step += i
            _syncThreadsLocal()
            with _if(_localColumn > 0):
                fresh += shared[_localColumn - 1]
                x += step
            _syncThreadsLocal()
            total += fresh
        return total

    x, total = a.copy(), np.zeros(21, np.int32)
    inner = np.arange(21) % 8 > 0
    for i in (0, 1, 3):
        total += x + np.where(inner, np.roll(x, 1), 0)
        x = x + np.where(inner, i, 0).astype(np.int32)
    same(body(gp.ScalarField(a)), total)


# --- memory -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double"],
)
@pytest.mark.parametrize("space", ["private", "local", "volatile"])
def test_arrays_of_every_type(device: str, name: str, space: str) -> None:
    """One to three dimensions, scalars and vectors: what is written is read back, by another thread where it is shared."""
    qualifier = {"private": lambda x: x, "local": _local, "volatile": lambda x: _volatile(_local(x))}[space]
    vectors = {} if name == "bool" else {lanes: globals()[f"_{name}{lanes}Array"] for lanes in (2, 3, 4)}
    make = globals()[f"_{name}Array"]
    a = rng.integers(0, 2 if name == "bool" else 100, 37).astype(np.int32)

    @gp.operator
    def through(f):
        _localThreads(8)
        x = _readTensor(f)
        one, two, three = qualifier(make(8)), qualifier(make(2, 4)), qualifier(make(2, 2, 2))
        at, total = _localColumn, _var(0)
        one[at] = x
        two[at / 4, at % 4] = one[at]
        three[at / 4, at / 2 % 2, at % 2] = two[at / 4, at % 4]
        wide = {lanes: qualifier(m(8)) for lanes, m in vectors.items()}
        for lanes, array in wide.items():
            array[at] = _vector(*(x + k for k in range(lanes)))
        _syncThreadsLocal()
        other = at ^ 1 if space != "private" else at
        total += _convert_int(three[other / 4, other / 2 % 2, other % 2])
        for lanes, array in wide.items():
            for k in range(lanes):
                total += _convert_int(array[other][k]) * (k + 1)
        return total

    swapped = a.copy()
    if space != "private":
        swapped[:36] = a[:36].reshape(-1, 2)[:, ::-1].ravel()
    expected = swapped.copy()
    for lanes in vectors:
        expected += sum((swapped + k) * (k + 1) for k in range(lanes)).astype(np.int32)
    got = through(gp.ScalarField(a)).numpy()
    same(got[:36], expected[:36], name)


def test_local_variables(device: str) -> None:
    """Scalars and vectors, by component, of several types; compound assignment by one thread."""
    a = rng.integers(0, 99, 50).astype(np.int32)

    @gp.operator(outputs=gp.FieldType(50, 4, "float32"))
    def shared(f):
        _localThreads(16)
        first, pair, colour = _local(_intVar()), _volatile(_local(_float2Var())), _local(_uchar4Var())
        flag, small = _local(_volatile(_boolVar())), _local(_half3Var())
        with _if(_localColumn == 1):
            first @= _readTensor(f)
            pair.x = first + 0.5
            pair[1] = 7
            pair.yx = pair.xy
            first += 1
            colour @= _uchar4(1, 2, 3, 250)
            colour.w += 10
            flag @= first > 50
            small @= _half3(1, 2, 3) / 4
        _syncThreadsLocal()
        kept = _var(pair)
        kept.x *= 2
        return _float4(first, kept.x * 1000 + pair.y, _dot(_convert_float3(small), 1) + colour.w, flag)

    x = np.repeat(a[1::16], 16)[:50]
    expected = np.stack([x + 1, 14000 + x + 0.5, np.full(50, 1.5 + 4), x + 1 > 50], -1).astype(np.float32)
    same(shared(gp.ScalarField(a)), expected)


def test_a_private_array_of_vectors(device: str) -> None:
    a = rng.integers(0, 99, (6, 9)).astype(np.float32)

    @gp.operator
    def body(f):
        cube = _float2Array(3, 5, 7)
        with _for(3) as i:
            with _for(5) as j:
                with _for(7) as k:
                    cube[i, j, k] = _float2(i * 100 + j * 10 + k, _readTensor(f))
        return cube[_row % 3, _column % 5, _row].x + cube[2, 4, 6].y + cube[0, 1, 6].x

    r, c = np.indices((6, 9))
    same(body(gp.ScalarField(a)), (r % 3 * 100 + c % 5 * 10 + r + a + 16).astype(np.float32))


def test_declared_in_helpers_and_blocks(device: str) -> None:
    a = rng.integers(0, 99, 40).astype(np.int32)

    def exchanged(x, where):
        memory = _volatile(_local(_intArray(2 * _localColumns)))
        memory[2 * _localColumn] = x
        _syncThreadsLocal()
        return memory[2 * where]

    @gp.operator
    def body(f):
        _localThreads(8)
        x = _var(exchanged(_readTensor(f), 7 - _localColumn))
        with _for(2):
            x @= exchanged(x, _localColumn ^ 1)
            _syncThreadsLocal()
        with _if(_groupColumn % 2 == 0):
            temporary = _local(_intVar())
            with _if(_localColumn == 3):
                temporary @= x
            _syncThreadsLocal()
            x += temporary
        return x

    turned = a.reshape(5, 8)[:, ::-1].copy()
    turned[::2] += turned[::2, 3:4]
    same(body(gp.ScalarField(a)), turned.reshape(40))


def test_an_array_that_gets_its_qualifier_later(device: str) -> None:
    """`_local` annotates what it is given: the name of before means the same memory."""

    @gp.operator(outputs=gp.FieldType(8, (), "int32"))
    def body():
        _localThreads(8)
        v = _intVar()
        shared = _local(v)
        a = _intArray(8)
        again = _local(a)
        a[_localColumn] = _localColumn
        with _if(_localColumn == 0):
            v @= 100
        _syncThreadsLocal()
        return again[7 - _localColumn] + shared

    same(body(), np.arange(107, 99, -1, dtype=np.int32))


def test_two_kernels_with_local_memory_in_a_graph(device: str) -> None:
    """Fused or not: equal."""
    a = rng.integers(0, 99, (20, 21)).astype(np.float32)

    def mirrored(axis):
        @gp.operator
        def mirror(f):
            _localThreads(4, 8)
            shared = _local(_floatArray(_localRows, _localColumns))
            shared[_localRow, _localColumn] = _readTensor(f)
            _syncThreadsLocal()
            last = _min(_localColumns, _columns - _groupColumn * _localColumns) - 1
            r, c = (3 - _localRow, _localColumn) if axis == 0 else (_localRow, last - _localColumn)
            return shared[r, c] + 1

        return mirror

    expected = a.copy()
    for start, stop in ((0, 8), (8, 16), (16, 21)):
        expected[:, start:stop] = expected[:, start:stop][:, ::-1]
    expected = expected.reshape(5, 4, 21)[:, ::-1].reshape(20, 21) * 2 + 4
    for optimize in (True, False):
        with gp.ComputeGraph(optimize=optimize) as graph:
            image = gp.ScalarField(a)
            graph.probe(mirrored(0)(mirrored(1)(image * 2) + 1) + 1, "out")
        same(graph.read("out"), expected.astype(np.float32))
    same(mirrored(0)(mirrored(1)(gp.ScalarField(a) * 2) + 1) + 1, expected.astype(np.float32))


def test_states_and_local_memory(device: str) -> None:
    """A kernel with a barrier that is launched again and again."""
    a = rng.integers(0, 9, 48).astype(np.int32)

    @gp.operator
    def scan(f):
        _localThreads(16)
        shared = _local(_intArray(16))
        shared[_localColumn] = _readTensor(f)
        _syncThreadsLocal()
        total = _var(0)
        with _for(_localColumn + 1) as i:
            total += shared[i]
        return total

    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(a)
        state.next = scan(state) % 1000
        graph.probe(state, "state")
    graph.step(5)
    expected = a
    for _ in range(5):
        expected = np.cumsum(expected.reshape(3, 16), 1).reshape(48) % 1000
    same(graph.read("state"), expected.astype(np.int32))
