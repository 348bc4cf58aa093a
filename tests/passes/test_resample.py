"""Vectors whose lanes read every other column, or each twice: NumPy's values, and how such vectors are loaded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate
from gpuop.codegen.opencl.lane_loads import picked
from gpuop.dsl import *
from gpuop.passes.schedules.cpu.resample import RESAMPLE
from gpuop.runtime import devices
from tests.borders import CHECKED, PLACES

from .test_vector_rows import TARGET, data, kernel_of, vectors

WIDE = 156  # columns that a result has at least


def taken(x: np.ndarray, rows: np.ndarray, columns: np.ndarray, border: str) -> np.ndarray:
    """The values at some rows and columns."""
    for axis, at in ((0, rows), (1, columns)):
        n = x.shape[axis]
        places = [PLACES[border](int(i), n) for i in at]
        outside = np.reshape([p is None for p in places], (-1, 1) if axis == 0 else (1, -1))
        x = np.where(outside, np.zeros((), x.dtype), np.take(x, [p or 0 for p in places], axis))
    return x


PLACED = {  # of a column: how it is written, and in NumPy
    "halves": (lambda c: 2 * c + 1, lambda c: 2 * c + 1),
    "quarters": (lambda c: 4 * c - 3, lambda c: 4 * c - 3),
    "thirds": (lambda c: 3 * c - 1, lambda c: 3 * c - 1),
    "doubled": (lambda c: c // 2 - 1 + 2 * (c % 2), lambda c: c // 2 - 1 + 2 * (c % 2)),
    "eight": (lambda c: (c & 7) + c // 8, lambda c: (c & 7) + c // 8),
    "pairs turned": (lambda c: c + 1 - 2 * (c % 2), lambda c: c + 1 - 2 * (c % 2)),
    "mirrored": (lambda c: 160 - c, lambda c: 160 - c),
    "kept inside": (lambda c: _min(_max(2 * c - 5, 0), 300), lambda c: np.clip(2 * c - 5, 0, 300)),
}


@pytest.mark.parametrize("name", PLACED)
def test_places_and_borders(device, name):
    written, meant = PLACED[name]
    shape, size = (5, WIDE + 5), (7, 319)
    x = data(size)

    @gp.operator(outputs=gp.FieldType(shape))
    def moved(f):
        c = written(_column)
        return sum(10**k * _readTensor(f, 2 * _row - 1, c + k, border=word) for k, word in enumerate(CHECKED))

    rows, columns = np.arange(shape[0]), meant(np.arange(shape[1]))
    want = sum(10**k * taken(x, 2 * rows - 1, columns + k, word) for k, word in enumerate(CHECKED))
    with vectors():
        if not devices.current().target.vector_length < 8:
            assert not RESAMPLE.refuse(resolved(moved(gp.Field(x))))
        np.testing.assert_array_equal(moved(gp.Field(x)).numpy(), want)


def resolved(result: gp.Field):
    return replace(kernel_of(result), target=devices.current().target)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float64", "int64"])
def test_dtypes(device, dtype):
    if dtype == "float64" and not devices.current().target.has_fp64:
        pytest.skip("no doubles")
    x = data((4, 2 * WIDE), dtype)

    @gp.operator(outputs=gp.FieldType((4, WIDE), (), dtype))
    def halved(f):
        return _readTensor(f, _row, 2 * _column) + _readTensor(f, _row, 2 * _column + 1)

    with vectors():
        np.testing.assert_array_equal(halved(gp.Field(x)).numpy(), x[:, ::2] + x[:, 1::2])


@pytest.mark.parametrize(("rows", "columns"), [(1, 128), (2, 129), (3, 143), (5, 144), (2, 161)])
def test_sizes(device, rows, columns):
    """Several outputs, loops, tensors, values of positions, and what is read at the own point beside it."""
    x, own = data((rows, 2 * columns + 1, 2)), data((rows, columns))

    @gp.operator(outputs=(gp.FieldType((rows, columns)), gp.FieldType((rows, columns))))
    def blocks(f, g):
        total = _var(0.0)
        with _for(3) as k:
            total += _readTensor(f, _row, 2 * _column + k, border="reflect").y
        return total * _readTensor(g), _where(_column % 2 == 0, total, _readTensor(g, _row, _column // 2))

    at, last = 2 * np.arange(columns)[:, None] + np.arange(3), 2 * columns
    total = x[:, np.where(at > last, 2 * last - at, at), 1].sum(-1)
    even, half = np.arange(columns) % 2 == 0, own[:, np.arange(columns) // 2]
    with vectors():
        first, second = (r.numpy() for r in blocks(gp.Field(x, 1), gp.Field(own)))
    np.testing.assert_array_equal(first, total * own)
    np.testing.assert_array_equal(second, np.where(even, total, half))


@pytest.mark.parametrize("shape", [(128, 160), (130, 129), (131, 144)])
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_rows_of_a_thread(device, rows, shape):
    """Rows that are read by several of a thread's, with a number in common, and columns that are not."""
    x, y = data((2 * shape[0], shape[1])), data((66, 80))

    @gp.operator(outputs=gp.FieldType(shape))
    def pairs(f, g):
        total = _var(sum(_readTensor(f, 2 * _row + k, _column, border="reflect") * (k + 3) for k in range(-2, 4)))
        with _for(2) as k:
            total += _readTensor(g, _row // 2 - 1 + 2 * (_row % 2) + k, _column // 2, border=7)
        return total + _readTensor(g, _min(_row, 3), _column - _column % 2)

    r, c = (np.arange(n) for n in shape)
    want = sum(taken(x, 2 * r + k, c, "reflect") * (k + 3) for k in range(-2, 4))
    for k in range(2):
        inside = (r // 2 - 1 + 2 * (r % 2) + k >= 0) & (r // 2 - 1 + 2 * (r % 2) + k < 66)
        near = taken(y, r // 2 - 1 + 2 * (r % 2) + k, c // 2, "clamp")
        want = want + np.where(inside[:, None], near, np.float32(7))
    with vectors(), gp.schedule("resample", rows=rows):
        actual = pairs(gp.Field(x), gp.Field(y)).numpy()
    np.testing.assert_array_equal(actual, want + taken(y, np.minimum(r, 3), c - c % 2, "clamp"))


def test_rows_are_shared():
    """Of the sixteen rows that four rows of a thread read, they have six in common."""

    @gp.operator(outputs=gp.FieldType((128, 256)))
    def halved(f):
        return sum(_readTensor(f, 2 * _row + k, _column) for k in (-1, 0, 1, 2))

    text = generate(kernel_of(halved(gp.Field(data((256, 256))))), replace(TARGET, simd_width=16)).text
    assert text.count("load_float16(&f[") == 10


def test_refusals():
    @gp.operator(outputs=gp.FieldType((4, WIDE)))
    def far(f):
        return _readTensor(f, _row, 16 * _column)

    @gp.operator(outputs=gp.FieldType((4, WIDE)))
    def looked_up(f):
        return _readTensor(f, _row, _convert_int(_readTensor(f, _row, 2 * _column)))

    @gp.operator(outputs=gp.FieldType((4, WIDE)))
    def squares(f):
        return _readTensor(f, _row, _column * _column)

    x = gp.Field(data((4, 400)))
    for operator in (far, looked_up, squares):
        assert RESAMPLE.refuse(kernel_of(operator(x))) == "it reads at places that do not follow the columns"


@gp.operator(outputs=gp.FieldType((64, 256)))
def shrunk(f):
    return _readTensor(f, 2 * _row, 2 * _column) + _readTensor(f, 2 * _row, 2 * _column + 1)


def test_text():
    """Threads that meet no border load two vectors for one of every other column, and nothing behind the last one."""
    kernel = kernel_of(shrunk(gp.Field(data((128, 512)))))
    text = generate(kernel, replace(TARGET, simd_width=16)).text
    assert "if (_thread == 0)" not in text and "min(max" not in text
    assert text.count(".s02468ace, ") == text.count(".s13579bdf)") == 8
    assert text.count(" + 15]).s13579bdf)") == 8


@pytest.mark.parametrize(
    "ahead",
    [(0, 2, 4, 6), (-1, 1, 0, 2, 1, 3, 2, 4), tuple(range(0, 48, 3)), (3,) * 4, tuple(range(7, -1, -1)), (0, 9)],
    ids=str,
)
def test_picked(ahead):
    """The text of a vector, with lists in the place of memory: the elements that were meant, and none beyond them."""
    read: list[int] = []

    def neighbours(count, first):
        read.extend(range(first, first + count))
        return f"V({list(range(first, first + count))})"

    class V(list):
        def __getattr__(self, name):
            return V(self[int(k, 16)] for k in name[1:])

    text = picked("V", ahead, neighbours)
    for n in (2, 4, 8, 16):
        text = text.replace(f"(V{n})", "joined")

    def joined(*parts):
        results = [e for part in parts for e in (part if isinstance(part, list) else [part])]
        return V(results * len(ahead) if len(results) == 1 else results)

    assert tuple(eval(text, {"V": V, "joined": joined})) == ahead
    assert min(read) == min(ahead) and max(read) == max(ahead)
