"""Uses of atomic functions: histograms, counters, extremes, loops of compare and swap. Expected values are NumPy's."""

from __future__ import annotations

import numpy as np
import skimage.data

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(11)


@gp.operator(outputs=gp.FieldType(256, (), "int32"))
def histogram(image):
    _globalThreads(image)
    _atomic_inc(_pointerTo(_out0, _convert_int(_readTensor(image))))


def test_histogram_of_a_photograph(device: str) -> None:
    image = skimage.data.camera()[::3, ::3].copy()
    expected = np.histogram(image, 256, (0, 256))[0].astype(np.int32)
    same(histogram(gp.ScalarField(image)), expected)
    brighter = np.minimum(image.astype(np.float32) * 1.5, 255).astype(np.uint8)
    scaled = np.minimum(gp.ScalarField(image) * np.float32(1.5), 255)
    same(histogram(scaled), np.bincount(brighter.ravel(), minlength=256).astype(np.int32))


def test_histogram_in_local_memory(device: str) -> None:
    image = skimage.data.camera()[::3, ::3].copy()

    @gp.operator(outputs=gp.FieldType(256, (), "uint32"))
    def counted(f):
        _localThreads(16, 16)
        _globalThreads((176, 176))
        counts = _local(_uintArray(256))
        number = _localRow * _localColumns + _localColumn
        counts[number] = 0
        _syncThreadsLocal()
        with _if((_row < f.field_shape[0]) & (_column < f.field_shape[1])):
            _atomic_inc(_pointerTo(counts[_convert_int(_readTensor(f, _row, _column))]))
        _syncThreadsLocal()
        _atomic_add(_pointerTo(_out0, number), counts[number])

    same(counted(gp.ScalarField(image)), np.bincount(image.ravel(), minlength=256).astype(np.uint32))


def test_colour_histogram(device: str) -> None:
    image = skimage.data.astronaut()[::4, ::4].copy()

    @gp.operator(outputs=(gp.FieldType((3, 256), (), "int32"), gp.FieldType(256, 3, "int32")))
    def histograms(f):
        _globalThreads(f)
        for k, level in enumerate(_convert_int3(_readTensor(f))):
            _atomic_inc(_pointerTo(_out0, k, level))
            _atomic_inc(_pointerTo(_out1, level, k))

    expected = np.stack([np.bincount(image[..., k].ravel(), minlength=256) for k in range(3)]).astype(np.int32)
    all_same(histograms(gp.VectorField(image)), (expected, expected.T))


def test_stream_compaction(device: str) -> None:
    a = rng.integers(0, 1000, 700).astype(np.int32)

    @gp.operator(outputs=(gp.FieldType(700, (), "int32"), gp.FieldType((), (), "int32")), default=-1)
    def compact(f):
        x = _readTensor(f)
        with _if(x % 7 == 0):
            _writeTensor(_out0, x, _atomic_add(_pointerTo(_out1), 1) + 1)

    result, last = compact(gp.ScalarField(a))
    values = a[a % 7 == 0]
    same(last, np.int32(len(values) - 1))
    actual = result.numpy()
    np.testing.assert_array_equal(np.sort(actual[: len(values)]), np.sort(values))
    assert (actual[len(values) :] == -1).all()


def test_greatest_and_where(device: str) -> None:
    a = rng.permutation(60 * 70).reshape(60, 70).astype(np.int32)

    @gp.operator(outputs=(gp.FieldType((), (), "int32"), gp.FieldType((), (), "int32"), gp.FieldType(60, (), "int32")))
    def extremes(f):
        _globalThreads(f)
        x = _readTensor(f)
        _atomic_max(_pointerTo(_out0), x)
        _atomic_max(_pointerTo(_out1), x * 4200 + _row * _columns + _column)
        _atomic_max(_pointerTo(_out2, _row), x)

    small = a % 500
    code = small.ravel() * 4200 + np.arange(4200)
    all_same(extremes(gp.ScalarField(small)), (small.max(), code.max().astype(np.int32), small.max(1)))


def test_compare_and_swap_loop(device: str) -> None:
    """A product modulo a prime, which no single function gives."""
    a = rng.integers(1, 97, 60).astype(np.int32)

    @gp.operator(outputs=gp.FieldType((), (), "int32"), default=1)
    def product(f):
        _globalThreads(f)
        x = _readTensor(f)
        seen = _var(1)
        with _while(True):
            old = _atomic_cmpxchg(_pointerTo(_out0), seen, seen * x % 97)
            with _if(old == seen):
                _break()
            seen @= old

    expected = 1
    for x in a.tolist():
        expected = expected * x % 97
    same(product(gp.ScalarField(a)), np.int32(expected))


def test_producers_and_consumers(device: str) -> None:
    """Producers are fused into a kernel with atomics; who reads what it counted waits for all of them."""
    a = rng.integers(0, 100, (30, 30)).astype(np.int32)

    @gp.operator
    def doubled(f):
        return _readTensor(f) * 2

    @gp.operator(outputs=gp.FieldType((30, 30), (), "int32"))
    def scattered(f):
        x = _readTensor(f)
        _atomic_add(_pointerTo(_out0, x % 30, x / 30), x)

    image = gp.ScalarField(a)
    with gp.ComputeGraph() as graph:
        graph.probe(doubled(scattered(doubled(image) + 1)), "out")
    twice = a * 2 + 1
    expected = np.zeros((30, 30), np.int32)
    np.add.at(expected, (twice % 30, twice // 30), twice)
    same(graph.read("out"), expected * 2)
    assert graph.kernel_count == 2
    graph.step(2)
    same(graph.read("out"), expected * 2)


def test_own_points_and_loops(device: str) -> None:
    """An element of the thread's own point, updated in turns; the result of one is an operand of another."""

    @gp.operator(outputs=gp.FieldType((3, 5), 2, "int32"))
    def counted():
        with _for(4) as i:
            before = _atomic_add(_pointerTo(_out0, _row, _column, 0), i)
            _atomic_max(_pointerTo(_out0, _row, _column, 1), before * 10)

    same(counted(), np.broadcast_to(np.int32([6, 30]), (3, 5, 2)))


def test_operands_convert(device: str) -> None:
    @gp.operator(outputs=(gp.FieldType((), (), "uint32"), gp.FieldType((), (), "float32")))
    def mixed():
        _globalThreads(4)
        _atomic_add(_pointerTo(_out0), _convert_uchar(_column + 254))
        _atomic_sub(_pointerTo(_out0), 1)
        _atomic_add(_pointerTo(_out1), _column)
        _atomic_add(_pointerTo(_out1), _column > 1)

    same(mixed()[0], np.uint32(254 + 255 + 255 + 255 - 4))
    same(mixed()[1], np.float32(8))
