"""Vectors that load elements from anywhere, where compilers make no vectors of threads: NumPy's values, and the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.passes.schedules.cpu.vector_rows import VECTOR_ROWS
from gpuop.runtime import devices
from tests.borders import CHECKED, away
from tests.conftest import Vectorized

rng = np.random.default_rng(29)
TARGET = replace(Vectorized.target, backend="opencl", widening="functions")


@contextmanager
def gathering() -> Iterator[None]:
    """The device in use puts neighbours in vectors as PoCL does, however small the grid."""
    backend = devices.current()
    if backend.target.vector_length == 1:
        pytest.skip("it has no vectors")
    with mock.patch.object(backend, "target", replace(backend.target, least_threads=1, widening="functions")):
        yield


def looking_up(border):
    @gp.operator
    def looked_up(rows, columns, table):
        return _readTensor(table, _readTensor(rows), _readTensor(columns), border=border)

    return looked_up


def places(shape, low, high):
    return rng.integers(low, high, shape).astype(np.int32)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "float32", "int64"])
def test_dtypes(device, dtype):
    table, rows, columns = rng.integers(0, 99, (30, 40)).astype(dtype), places((7, 50), 0, 30), places((7, 50), 0, 40)
    with gathering():
        result = looking_up("clamp")(*map(gp.Field, (rows, columns, table))).numpy()
    np.testing.assert_array_equal(result, table[rows, columns])


@pytest.mark.parametrize("border", CHECKED)
def test_borders(device, border):
    table, rows, columns = places((30, 40), 0, 99), places((3, 37), -9, 39), places((3, 37), -9, 49)
    want = [away(table, r, c, border=border)[0, 0] for r, c in zip(rows.flat, columns.flat, strict=True)]
    with gathering():
        result = looking_up(border)(*map(gp.Field, (rows, columns, table))).numpy()
    np.testing.assert_array_equal(result, np.reshape(want, rows.shape))


def test_elements_and_conditions(device):
    """Elements that values choose, of neighbours and of the own point; places that only some lanes ask for."""
    f, which = rng.random((9, 33, 4), np.float32), places((9, 33), 0, 4)

    @gp.operator
    def chosen(f, which):
        k = _readTensor(which)
        total = _var(_readTensorElement(f, _row, _column + 1, k) - _readTensorElement(f, _row, _column, 3 - k))
        with _if(k > 1):
            total += _readTensorElement(f, 8 - _row, _column * k, 0)
        return total + _readTensorElement(f, _row, _min(_column + 2, 9), k)

    r, c = np.indices(which.shape)
    total = f[r, np.minimum(c + 1, 32), which] - f[r, c, 3 - which]
    want = np.where(which > 1, total + f[8 - r, np.minimum(c * which, 32), 0], total)
    want += f[r, np.minimum(c + 2, 9), which]
    with gathering():
        np.testing.assert_array_equal(chosen(gp.VectorField(f), gp.Field(which)).numpy(), want)


def test_places_of_bytes(device):
    """Vectors of bytes have more lanes, but not where their places are integers of 32 bits."""
    table = rng.integers(0, 99, (70, 50)).astype(np.uint8)

    @gp.operator(outputs=lambda f: f.type.replace(field_shape=(50, 70)))
    def turned(f):
        return _readTensor(f, _column, _row) + _readTensor(f, 3, _column - 1)

    want = table.T + table[3, np.clip(np.arange(70) - 1, 0, 49)]
    with gathering():
        np.testing.assert_array_equal(turned(gp.Field(table)).numpy(), want)


def mirrored_twice(x):
    """Places that follow from lanes and are mirrored, of a stage that is computed where it is read."""

    @gp.operator
    def left(f):
        return _readTensor(f, _row, _column - 1)

    @gp.operator
    def mirrored(f):
        return _readTensor(f, _row // 2, _column - 1, border="reflect")

    return mirrored(left(gp.Field(x)))


@pytest.mark.parametrize("columns", [33, 128])
def test_mirrored_places(device, columns):
    x = rng.random((40, columns), np.float32)
    want = away(away(x, 0, -1), 0, -1, border="reflect")[np.arange(40) // 2]
    with gathering():
        np.testing.assert_array_equal(mirrored_twice(x).numpy(), want)


def test_text_of_mirrored_places():
    """`abs` gives unsigned integers, which a cast to `int` makes no vector of."""
    (step,) = plan(program([mirrored_twice(np.ones((40, 128), "f")).node])).launches
    assert "as_int8(abs(" in generate(step.kernel, TARGET).text


def test_text():
    at = gp.Field(places((8, 64), 0, 9))
    for border, reason in (("clamp", ""), ("unchecked", "not constant offsets")):
        (step,) = plan(program([looking_up(border)(at, at, gp.Field(np.ones((30, 40), "f"))).node])).launches
        kernel = replace(step.kernel, target=TARGET)
        assert reason in VECTOR_ROWS.refuse(kernel)
        assert "not constant offsets" in VECTOR_ROWS.refuse(replace(kernel, target=replace(TARGET, widening="vector")))
        assert ("gather_float8(table," in generate(kernel, TARGET).text) == (not reason)


@pytest.mark.parametrize(
    ("place", "of", "alone"),
    [
        (lambda value, k: _convert_int(value), lambda value: value, True),
        (lambda value, k: k, lambda value: value, False),
        (lambda value, k: _convert_int(value), _sin, False),
    ],
    ids=["scatters", "counts", "calls"],
)
def test_threads_that_scatter_in_their_own_arrays_are_no_lanes(place, of, alone):
    """Intel's compiler would store element by element; but functions of lanes are worth that."""

    @gp.operator
    def counted(image):
        counts = _floatArray(4)
        with _for(4) as k:
            value = of(_readTensor(image, _row, _column + k))
            counts[_min(_max(place(value, k), 0), 3)] += value
        return counts[1] - counts[2]

    result = counted(gp.ScalarField(np.zeros((64, 64), np.float32)))
    kernel = plan(program([result.node])).launches[0].kernel
    texts = [generate(kernel, target_named(name)).text for name in ("opencl:cpu", "opencl")]
    assert ["intel_reqd_sub_group_size(1)" in text for text in texts] == [alone, False]
