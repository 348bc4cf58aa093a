"""Arrays whose points' elements alternate in memory, as the colours of photos: kernels read and write them where they lie.

Expected values are NumPy's, whatever the dtype, the number of elements, the size and the place of an array.
"""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import _column, _out0, _readTensor, _readTensorElement, _row, _vector, _writeTensorElement

rng = np.random.default_rng(31)

DTYPES = ("uint8", "int8", "uint16", "float16", "float32", "int32", "float64", "int64")
SHAPES = ((1, 1), (3, 15), (5, 33), (4, 64))
NONE = ((0, 5), (5, 0))  # points
VIEWS = {
    "whole": np.s_[:],
    "rows apart": np.s_[::2, 3:-1],
    "rows from the last": np.s_[::-1],
    "columns from the last": np.s_[:, ::-1],
    "columns apart": np.s_[:, ::2],
    "elements from the last": np.s_[..., ::-1],
}


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers whose sums every dtype has."""
    return rng.integers(0, 4, shape).astype(dtype)


def unaligned(array: np.ndarray, behind: int) -> np.ndarray:
    """The array, begun so many bytes behind an aligned place."""
    memory = np.zeros(array.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + behind
    there = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    there[...] = array
    return there


@gp.operator(outputs=lambda f: f.type)
def mixed(f):
    """The elements in the opposite order, the last one with the first one added."""
    own = _readTensor(f)
    *others, last = (own[k] for k in reversed(range(f.type.planes)))
    return _vector(*others, last + own[f.type.planes - 1])


def mixed_of(a):
    turned = a[..., ::-1].copy()
    turned[..., -1] += a[..., -1]
    return turned


@gp.operator
def total(f):
    own = _readTensor(f)
    return sum((own[k] for k in range(1, f.type.planes)), own[0])


@gp.operator
def across(f):
    """Sums of three columns."""
    return sum((_readTensor(f, _row, _column + k) for k in (0, 1)), _readTensor(f, _row, _column - 1))


@gp.operator
def down(f):
    return sum((_readTensor(f, _row + k, _column) for k in (0, 1)), _readTensor(f, _row - 1, _column))


def threes(a, axis):
    """Sums of three neighbours, the edges repeated."""
    padded = np.pad(a, [(int(n == axis),) * 2 for n in range(a.ndim)], "edge")
    return sum(padded.take(range(k, k + a.shape[axis]), axis) for k in range(3))


PIPELINES = {
    "one point": (lambda f: mixed(f), mixed_of),
    "each element": (lambda f: 3 - f, lambda a: 3 - a),
    "a number of each point": (lambda f: total(f), lambda a: a.sum(-1)),
    "a window": (lambda f: across(mixed(f)), lambda a: threes(mixed_of(a), 1)),
    "windows of each element": (lambda f: down(across(f)), lambda a: threes(threes(a, 1), 0)),
    "windows of numbers": (lambda f: down(across(total(f))), lambda a: threes(threes(a.sum(-1), 1), 0)),
    "both": (lambda f: (mixed(down(f)), total(across(f))), lambda a: (mixed_of(threes(a, 0)), threes(a, 1).sum(-1))),
}


def check(name: str, array: np.ndarray, out: bool = False) -> None:
    compute, expected = PIPELINES[name]
    pipeline = gp.pipeline(lambda a: compute(gp.VectorField(a)))
    right = expected(array.astype(np.int64))
    rights = right if isinstance(right, tuple) else (right,)
    outs = [unaligned(np.zeros(each.shape, array.dtype), 16 * n) for n, each in enumerate(rights)] if out else None
    results = pipeline(array, out=outs) if out else pipeline(array)
    for result, each in zip(results if isinstance(results, (tuple, list)) else (results,), rights, strict=True):
        np.testing.assert_array_equal(result, each)
        assert result.dtype == array.dtype


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("planes", [2, 3, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_size(device, dtype, planes, name):
    for shape in SHAPES:
        check(name, numbers((*shape, planes), dtype))


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("view", VIEWS)
def test_views(device, view, name):
    check(name, numbers((40, 134, 3), "float32")[VIEWS[view]])
    check(name, numbers((150, 270, 3), "uint8")[VIEWS[view]])  # large enough to be used where it lies


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("behind", [1, 2, 4, 16, 52])
def test_arrays_that_begin_anywhere(device, behind, name):
    check(name, unaligned(numbers((9, 67, 3), "uint8"), behind), out=True)
    if behind % 4 == 0:
        check(name, unaligned(numbers((9, 64, 3), "float32"), behind), out=True)


@pytest.mark.parametrize("shape", NONE)
def test_no_points(device, shape):
    result = gp.pipeline(lambda a: mixed(gp.VectorField(a)))(np.zeros((*shape, 3), np.uint8))
    assert result.shape == (*shape, 3) and result.dtype == np.uint8


def test_five_elements(device):
    check_of = gp.pipeline(lambda a: gp.VectorField(a) * 2)
    array = numbers((5, 33, 5), "float32")
    np.testing.assert_array_equal(check_of(array), array * 2)


@gp.operator(outputs=lambda f, g: f.type)
def scaled(f, g):
    return _readTensor(f) * _readTensor(g)


def test_beside_numbers_of_points(device):
    pipeline = gp.pipeline(lambda a, b: scaled(gp.VectorField(a), gp.ScalarField(b)))
    for shape in ((5, 64), (7, 33), (200, 131)):
        array, mask = numbers((*shape, 3), "uint8"), numbers(shape, "uint8")
        np.testing.assert_array_equal(pipeline(array, mask), array * mask[..., None])
        apart = numbers((*shape[:-1], shape[-1] + 9), "uint8")[:, 4:-5]
        np.testing.assert_array_equal(pipeline(array, apart), array * apart[..., None])


def test_a_result_in_the_place_of_its_argument(device):
    double = gp.pipeline(lambda a: mixed(gp.VectorField(a)))
    for columns in (33, 64):
        array = numbers((5, columns, 3), "uint8")
        right = mixed_of(array)
        double(array, out=array)
        np.testing.assert_array_equal(array, right)


def test_what_lies_between_rows_and_behind_results_stays(device):
    memory = numbers((6, 70, 3), "uint8")
    kept, out = memory.copy(), memory[1:5, 2:67]
    given = numbers((4, 65, 3), "uint8")
    gp.pipeline(lambda a: mixed(gp.VectorField(a)))(given, out=out)
    kept[1:5, 2:67] = mixed_of(given)
    np.testing.assert_array_equal(memory, kept)


@pytest.mark.parametrize("name", PIPELINES)
def test_extents_as_arguments(device, name):
    """One kernel for all sizes, and for rows shorter than a vector."""
    compute, expected = PIPELINES[name]
    pipeline = gp.pipeline(dynamic=True)(lambda a: compute(gp.VectorField(a)))
    for shape in ((9, 64), (5, 33), (40, 131), (3, 7)):
        array = numbers((*shape, 3), "uint8")
        results, rights = pipeline(array), expected(array.astype(np.int64))
        for result, right in zip(
            *((each if isinstance(each, tuple) else (each,)) for each in (results, rights)), strict=True
        ):
            np.testing.assert_array_equal(result, right)


@gp.operator(outputs=lambda f: f.type)
def one_by_one(f):
    """The elements are written one after another, the last one of each row first, by its neighbours."""
    _writeTensorElement(_out0, _readTensorElement(f, _row, _column + 1, 2), 0)
    _writeTensorElement(_out0, _readTensorElement(f, _row, _column, 0), 2)
    _writeTensorElement(_out0, _readTensorElement(f, _row + 1, _column, 1), 1)


@pytest.mark.parametrize("dynamic", [False, True])
def test_elements_that_are_written_one_by_one(device, dynamic):
    pipeline = gp.pipeline(dynamic=dynamic)(lambda a: one_by_one(gp.VectorField(a)))
    for columns in (64, 33):
        array = numbers((5, columns, 3), "uint8")
        padded = np.pad(array, ((0, 1), (0, 1), (0, 0)), "edge")
        right = np.stack([padded[:-1, 1:, 2], padded[1:, :-1, 1], array[..., 0]], -1)
        np.testing.assert_array_equal(pipeline(array), right)


@pytest.mark.parametrize("axis", [0, 1])
def test_reductions(device, axis):
    sums = gp.pipeline(lambda a: gp.VectorField(a).sum(axis=axis))
    for shape in ((70, 64, 3), (33, 131, 3)):
        array = numbers(shape, "float32")
        np.testing.assert_array_equal(sums(array), array.sum(axis))


@pytest.mark.parametrize("what", ["turned", "mirrored", "every second", "doubled", "beside"])
def test_other_places(device, what):
    places = {
        "turned": lambda f: f.transpose(1, 0, 2),
        "mirrored": lambda f: f[:, ::-1],
        "every second": lambda f: f[::2, 1::2],
        "doubled": lambda f: np.repeat(f, 2, axis=1),
        "beside": lambda f: np.concatenate([f, f + 1], axis=1),
    }[what]
    moved = gp.pipeline(lambda a: places(gp.VectorField(a)))
    for shape in ((40, 64, 3), (33, 35, 3)):
        array = numbers(shape, "uint8")
        np.testing.assert_array_equal(moved(array), places(array))


@gp.operator(outputs=lambda f: f.type)
def turned(f):
    """Red, green, blue as blue, green, red."""
    colour = _readTensor(f)
    return _vector(colour[2], colour[1], colour[0])


@pytest.mark.parametrize("columns", [35, 64])
def test_other_kinds(device, columns):
    """Bytes from 0 to 1, truths, and complex numbers, whose parts alternate."""
    photo = rng.integers(0, 256, (33, columns, 3), dtype=np.uint8)
    swap = gp.pipeline(lambda a: turned(gp.VectorField(a, dtype="unorm8")))
    np.testing.assert_array_equal(swap(photo), photo[..., ::-1])
    truths = photo > 99
    np.testing.assert_array_equal(gp.pipeline(lambda a: turned(gp.VectorField(a)))(truths), truths[..., ::-1])
    np.testing.assert_array_equal(gp.pipeline(lambda a: ~gp.VectorField(a))(truths), ~truths)
    waves = (photo[..., 0] + 1j * photo[..., 1]).astype(np.complex64)
    np.testing.assert_array_equal(gp.pipeline(lambda a: np.conj(gp.ComplexField(a)) * 2)(waves), waves.conj() * 2)
    beside = gp.pipeline(lambda a: np.roll(gp.ComplexField(a), 1, axis=1))
    np.testing.assert_array_equal(beside(waves), np.roll(waves, 1, axis=1))
