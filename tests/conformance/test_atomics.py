"""Atomic functions on every kind of memory, and what they are for. Expected values are NumPy's and plain Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import skimage.data

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(11)
BITS = 2**32

# what an update with x of the threads' numbers leaves, started at 37: it does not depend on their order
UPDATES: dict[str, tuple[Callable[..., Any], Callable[[int, int], int]]] = {
    "add": (lambda p, x: _atomic_add(p, x), lambda old, x: old + x),
    "sub": (lambda p, x: _atomic_sub(p, x), lambda old, x: old - x),
    "inc": (lambda p, x: _atomic_inc(p), lambda old, x: old + 1),
    "dec": (lambda p, x: _atomic_dec(p), lambda old, x: old - 1),
    "min": (lambda p, x: _atomic_min(p, x - 20), lambda old, x: min(old, x - 20)),
    "max": (lambda p, x: _atomic_max(p, x), lambda old, x: max(old, x)),
    "and": (lambda p, x: _atomic_and(p, x | 33), lambda old, x: old & (x | 33)),
    "or": (lambda p, x: _atomic_or(p, x), lambda old, x: old | x),
    "xor": (lambda p, x: _atomic_xor(p, x * 5), lambda old, x: old ^ (x * 5)),
    "xchg": (lambda p, x: _atomic_xchg(p, 99), lambda old, x: 99),
    "cmpxchg": (lambda p, x: _atomic_cmpxchg(p, 37, 1234), lambda old, x: 1234 if old == 37 else old),
    "compxchg": (lambda p, x: _atomic_compxchg(p, 36, 1234), lambda old, x: old),
}
THREADS, START = 50, 37


def left(name: str, dtype: str) -> Any:
    """What all threads together make of START, one after the other."""
    value = START
    for x in range(20, 20 + THREADS):
        if dtype == "int32":
            value = UPDATES[name][1](value, x)
        else:  # min of unsigned values
            value = UPDATES[name][1](value, x) % BITS
    return np.array(value, np.int64).astype(dtype)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize("name", UPDATES)
def test_every_function_everywhere(device: str, name: str, dtype: str) -> None:
    """Local variables and arrays, outputs' elements and tensors' elements, 0D outputs; results ignored."""
    update = UPDATES[name][0]
    word = name_of(dtype)
    kinds = (gp.FieldType(3, 3, dtype), gp.FieldType((), (), dtype), gp.FieldType((2, 3), (), dtype), gp.FieldType(2, (), dtype))

    @gp.operator(outputs=kinds, default=START)
    def updates():
        _globalThreads(THREADS)
        _localThreads(64)
        x = globals()[f"_convert_{word}"](_column + 20)
        single, several = _local(globals()[f"_{word}Var"]()), _volatile(_local(globals()[f"_{word}Array"](2, 3)))
        with _if(_column == 0):
            single @= START
            several[1, 2] = START
        _syncThreadsLocal()
        update(_pointerTo(_out0, _column % 1 + 1, 2), x)
        update(_pointerTo(_out1), x)
        update(_pointerTo(_out2, 1, 2), x)
        update(_pointerTo(single), x)
        update(_pointerTo(several[1, _column % 1 + 2]), x)
        _syncThreadsLocal()
        with _if(_column == 0):
            _writeTensor(_out3, single, 0)
            _writeTensor(_out3, several[1, 2], 1)

    value = left(name, dtype)
    vectors, image = np.full((3, 3), START, dtype), np.full((2, 3), START, dtype)
    vectors[1, 2] = image[1, 2] = value
    all_same(updates(), (vectors, value, image, np.full(2, value, dtype)))


def name_of(dtype: str) -> str:
    return dtype.removesuffix("32")


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize("name", UPDATES)
def test_of_a_threads_own_memory(device: str, name: str, dtype: str) -> None:
    """A variable and an array's element; the result is what was there."""
    update, expected = UPDATES[name]
    word = name_of(dtype)

    @gp.operator(outputs=(gp.FieldType(40, 4, dtype),))
    def own():
        x = globals()[f"_convert_{word}"](_column + 20)
        v, a = _volatile(globals()[f"_{word}Var"](START)), globals()[f"_{word}Array"](2, 3)
        a[1, _column % 3] = START
        first = update(_pointerTo(v), x)
        second = update(_pointerTo(a[1, _column % 3]), x)
        return _vector(first, v, second, a[1, _column % 3])

    values = np.array([expected(START, x) for x in range(20, 60)], np.int64).astype(dtype)
    old = np.full(40, START, dtype)
    same(own(), np.stack([old, values, old, values], -1))


def test_floats(device: str) -> None:
    a = rng.integers(-50, 50, 300).astype(np.float32) / 4

    @gp.operator(outputs=(gp.FieldType(4, (), "float32"), gp.FieldType((), (), "float32"), gp.FieldType(300, (), "float32")))
    def sums(f):
        _globalThreads(300)
        _localThreads(64)
        part, own, array = _local(_floatVar()), _floatVar(1), _floatArray(2)
        with _if(_localColumn == 0):
            part @= 0.5
        _syncThreadsLocal()
        x = _readTensor(f, _column)
        _atomic_add(_pointerTo(_out0, 0), x)
        _atomic_sub(_pointerTo(_out0, 1), x)
        _atomic_xchg(_pointerTo(_out0, 2), 7)
        _atomic_add(_pointerTo(_out0, 9), x)
        _atomic_sub(_pointerTo(part), x)
        was = _atomic_add(_pointerTo(own), x) + _atomic_xchg(_pointerTo(own), 2) + _atomic_sub(_pointerTo(array[1]), x)
        _syncThreadsLocal()
        with _if(_localColumn == 0):
            _atomic_add(_pointerTo(_out1), part)
        _writeTensor(_out2, was + own * 1000 + array[1], _column)

    total = a.sum()
    all_same(sums(gp.ScalarField(a)), (np.float32([total, -total, 7, 0]), np.float32(2.5 - total), 1 + 1 + a + 2000 - a))


def test_tickets(device: str) -> None:
    """The values that a counter gives are a permutation; outside an output there is no counter."""
    kinds = (gp.FieldType((20, 30), (), "int32"), gp.FieldType((20, 30), (), "int32"), gp.FieldType(3, 2, "int32"))

    @gp.operator(outputs=kinds, default=5)
    def tickets():
        mine = _atomic_inc(_pointerTo(_out2, 1, 1))
        outside = _atomic_inc(_pointerTo(_out2, _row - 30, 0)) + _atomic_add(_pointerTo(_out2, 0, _column + 2), 1)
        _writeTensor(_out0, mine)
        _writeTensor(_out1, outside + _atomic_xchg(_pointerTo(_out2, 3, 1), mine))

    mine, outside, counters = (r.numpy() for r in tickets())
    np.testing.assert_array_equal(np.sort(mine.ravel()), np.arange(5, 605))
    assert not outside.any()
    same(counters, np.int32([[5, 5], [5, 605], [5, 5]]))


def test_tickets_in_local_memory(device: str) -> None:
    """Every group has its counter; the results live on after the barrier."""

    @gp.operator(outputs=gp.FieldType(150, (), "int32"))
    def places():
        _localThreads(32)
        counter, list_ = _local(_intVar()), _local(_intArray(32))
        with _if(_localColumn == 0):
            counter @= 0
        _syncThreadsLocal()
        place = _atomic_inc(_pointerTo(counter))
        list_[place] = 1
        _syncThreadsLocal()
        return place * 10000 + counter * 10 + list_[place]

    got = places().numpy()
    sizes = np.repeat([32, 32, 32, 32, 22], [32, 32, 32, 32, 22])
    np.testing.assert_array_equal(got % 10000, sizes * 10 + 1)
    for start in range(0, 150, 32):
        mine = np.sort(got[start : start + 32] // 10000)
        np.testing.assert_array_equal(mine, np.arange(len(mine)))


# --- what they are for ------------------------------------------------------------------------------------------------------


@gp.operator(outputs=gp.FieldType(256, (), "int32"))
def histogram(image):
    _globalThreads(image)
    _atomic_inc(_pointerTo(_out0, _convert_int(_readTensor(image))))


def test_histogram_of_a_photograph(device: str) -> None:
    image = skimage.data.camera()[::3, ::3].copy()
    expected = np.histogram(image, 256, (0, 256))[0].astype(np.int32)
    same(histogram(gp.ScalarField(image)), expected)
    brighter = np.minimum(image.astype(np.float32) * 1.5, 255).astype(np.uint8)
    same(histogram(np.minimum(gp.ScalarField(image) * np.float32(1.5), 255)), np.bincount(brighter.ravel(), minlength=256).astype("i"))


def test_histogram_in_local_memory(device: str) -> None:
    image = skimage.data.camera()[::3, ::3].copy()

    @gp.operator(outputs=gp.FieldType(256, (), "uint32"))
    def counted(f):
        _localThreads(16, 16)
        _globalThreads(rounded_171(f.field_shape))
        counts = _local(_uintArray(256))
        number = _localRow * _localColumns + _localColumn
        counts[number] = 0
        _syncThreadsLocal()
        with _if((_row < f.field_shape[0]) & (_column < f.field_shape[1])):
            _atomic_inc(_pointerTo(counts[_convert_int(_readTensor(f, _row, _column))]))
        _syncThreadsLocal()
        _atomic_add(_pointerTo(_out0, number), counts[number])

    same(counted(gp.ScalarField(image)), np.bincount(image.ravel(), minlength=256).astype(np.uint32))


def rounded_171(shape: Any) -> tuple[int, ...]:
    return tuple(-(-n // 16) * 16 for n in shape)


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

    found, last = compact(gp.ScalarField(a))
    kept = a[a % 7 == 0]
    same(last, np.int32(len(kept) - 1))
    got = found.numpy()
    np.testing.assert_array_equal(np.sort(got[: len(kept)]), np.sort(kept))
    assert (got[len(kept) :] == -1).all()


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
