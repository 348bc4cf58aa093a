"""`_sort` and `_select` of lists: networks, against NumPy and SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.builtins.sorting_networks import forgetting, selection, sorting

from .compare import all_same, same

rng = np.random.default_rng(12)


def through(network, values) -> list:
    array = list(values)
    for first, second in network:
        if array[first] > array[second]:
            array[first], array[second] = array[second], array[first]
    return array


@pytest.mark.parametrize("count", range(1, 10))
def test_networks(count: int) -> None:
    """Every list of zeros and ones, which is enough for any values (D. E. Knuth, volume 3, 5.3.4)."""
    for bits in itertools.product((0, 1), repeat=count):
        assert through(sorting(count), bits) == sorted(bits)
        for k in range(count):
            for network, place in (selection(count, k), forgetting(count, k)):
                assert through(network, bits)[place] == sorted(bits)[k]


def test_larger_networks() -> None:
    for count in (13, 25, 49):
        values = rng.permutation(count).tolist()
        assert through(sorting(count), values) == list(range(count))
        for k in range(count):
            network, place = selection(count, k)
            assert through(network, values)[place] == k


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
def test_sorts(device: str, dtype: str) -> None:
    values = rng.integers(0, 100, (7, 40)).astype(dtype)
    actual = gp.operator(lambda fs: tuple(_sort([_readTensor(f) for f in fs])))([gp.ScalarField(v) for v in values])
    all_same(actual, list(np.sort(values, 0)))


def test_types_and_vectors(device: str) -> None:
    """All convert to their common type first; components are sorted apart."""
    a, b = rng.integers(0, 255, 30).astype("uint8"), rng.integers(-300, 300, 30).astype("int16")
    v = rng.random((30, 3), np.float32)

    @gp.operator
    def ordered(f, g, v):
        low, middle, high = _sort(_readTensor(f), _readTensor(g), 7)
        x = _readTensor(v)
        return low, middle, high, _select([x, x.zxy, x.yzx], 1), _select([5, 3, 4], -1), *_sort([_readTensor(f)])

    three = np.sort([a.astype("int16"), b, np.full(30, 7, "int16")], 0)
    turned = np.median([v, v[:, [2, 0, 1]], v[:, [1, 2, 0]]], 0)
    want = [*three, turned, np.full(30, 5, "int32"), a]
    all_same(ordered(gp.ScalarField(a), gp.ScalarField(b), gp.VectorField(v)), want)


@pytest.mark.parametrize(("size", "k"), [(3, 4), (5, 1)])
def test_ranks_of_windows(device: str, size: int, k: int) -> None:
    image = rng.random((11, 13), np.float32)
    offsets = [(r, c) for c in range(size) for r in range(size)]

    @gp.operator
    def ranked(f):
        half = size // 2
        return _select([_readTensor(f, offset=(r - half, c - half), border="symmetric") for r, c in offsets], k)

    same(ranked(gp.ScalarField(image)), scipy.ndimage.rank_filter(image, k, size=size))


def test_only_what_is_wanted_is_computed() -> None:
    """The least of nine takes eight minima, and the median of nine thirty minima and maxima."""
    kind = [gp.FieldType(64)] * 9
    for k, count in ((0, 8), (-1, 8), (4, 30)):
        text = gp.operator(lambda *fs, k=k: _select([_readTensor(f) for f in fs], k)).source(*kind, target="opencl")
        assert text.count(" ? ") == count


def test_nan_is_kept() -> None:
    """Wherever it comes to: what goes in comes out."""
    values = rng.random((5, 60)).astype("float32")
    values[rng.random(values.shape) < 0.2] = np.nan
    actual = gp.operator(lambda fs: tuple(_sort([_readTensor(f) for f in fs])))([gp.ScalarField(v) for v in values])
    same(np.sort([g.numpy() for g in actual], 0), np.sort(values, 0))
