"""Operators fuse alike whatever the size of their tensors, and however a body comes by the elements that it writes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.harness import fused, image, same_bits

ROWS, COLUMNS = 6, 10
SIZES = [1, 3, 4, 5, 7, 9]


def each(f, element):
    """Write an element of the output after another, by Python."""
    for n in range(f.type.planes):
        _writeTensorElement(_out0, element(n), n)


def same(f, *more):
    return f.type


@gp.operator(outputs=same)
def flipped(f):
    c = COLUMNS - 1 - _column
    with _forEachTensorElement(f.tensor_shape):
        _writeTensorElement(_out0, _readTensorElement(f, _row, c, _tensorElement))


@gp.operator(outputs=same)
def flipped_by_python(f):
    each(f, lambda n: _readTensorElement(f, _row, COLUMNS - 1 - _column, n))


@gp.operator(outputs=lambda f: f.type.replace(field_shape=(ROWS // 2, COLUMNS // 2)))
def downsampled(f):
    r, c = 2 * _row, 2 * _column + 1
    with _forEachTensorElement(f.tensor_shape):
        _writeTensorElement(_out0, _readTensorElement(f, r, c, _tensorElement))


@gp.operator(outputs=lambda f: f.type.replace(field_shape=(2 * ROWS, 2 * COLUMNS)))
def upsampled(f):
    each(f, lambda n: _readTensorElement(f, _row / 2, _column / 2, n))


@gp.operator(outputs=same)
def warped(f):
    """A position, computed in a loop, and two points around it."""
    shift = _var(0)
    with _for(3) as k:
        shift += _readTensorElement(f, (_row + k) % ROWS, 0, 0) > 0.5
    with _forEachTensorElement(f.tensor_shape):
        near = _readTensorElement(f, _row, _column + shift, _tensorElement)
        _writeTensorElement(_out0, (near + _readTensorElement(f, _row, _column + shift + 1, _tensorElement)) / 2)


@gp.operator(outputs=same)
def sorted_and_scaled(f):
    """Elements of other forms, of private memory, and a value that changes after it was written."""
    values = [_readTensorElement(f, n) for n in range(f.type.planes)]
    total = _var(values[0])
    kept = _floatArray(len(values))
    for n, value in enumerate(values):
        kept[n] = value * 2 if n % 2 else value + total
    for n in range(len(values)):
        _writeTensorElement(_out0, total if n == 0 else kept[len(values) - 1 - n], n)
        total @= total + 1


@gp.operator(outputs=lambda f: (f.type, f.type))
def ranged(f):
    """Two outputs, one by each of two loops."""
    least = _var(_readTensorElement(f, 0))
    with _for(1, f.type.planes) as k:
        least @= _min(least, _readTensorElement(f, k))
    with _forEachTensorElement(f.tensor_shape):
        _writeTensorElement(_out0, _readTensorElement(f) - least)
    with _forEachTensorElement(f.tensor_shape):
        x = _var(_readTensorElement(f))
        x += least
        _writeTensorElement(_out1, x)


def shifts(x):
    return (x[(np.arange(ROWS)[:, None] + np.arange(3)) % ROWS, 0, 0] > 0.5).sum(1)


def warp(x):
    columns = np.minimum(np.arange(COLUMNS) + shifts(x)[:, None], COLUMNS - 1)
    rows = np.arange(ROWS)[:, None]
    return (x[rows, columns] + x[rows, np.minimum(np.arange(COLUMNS) + shifts(x)[:, None] + 1, COLUMNS - 1)]) / 2


def sort_and_scale(x):
    array = np.where(np.arange(x.shape[-1]) % 2, x * 2, x + x[..., :1])[..., ::-1].copy()
    array[..., 0] = x[..., 0]
    return array


PROGRAMS = {
    "flipped": (flipped, lambda x: x[:, ::-1]),
    "flipped by Python": (flipped_by_python, lambda x: x[:, ::-1]),
    "downsampled": (downsampled, lambda x: x[::2, 1::2]),
    "upsampled": (upsampled, lambda x: x.repeat(2, 0).repeat(2, 1)),
    "warped": (warped, warp),
    "sorted and scaled": (sorted_and_scaled, sort_and_scale),
    "ranged": (lambda f: ranged(f)[0] * ranged(f)[1], lambda x: (x - x.min(-1, keepdims=True)) * (x + x.min(-1, keepdims=True))),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_one_kernel_whatever_the_size(device, program):
    operator, meaning = PROGRAMS[program]
    for size in SIZES if device in ("reference", "lowered") else SIZES[-2:]:
        x = image(ROWS, COLUMNS, size)
        graph, results = fused(lambda x=x: {"out": operator(gp.VectorField(x) * 2) + 1}, kernels=1)
        same_bits(results["out"], np.ascontiguousarray(meaning(x * 2) + 1, "f"))
        assert graph.explain().startswith("1 kernel for")


@pytest.mark.parametrize("size", [2, 3])
def test_inverses(device, size):
    """Matrices of Python's numbers: each element is an expression of its own of all."""

    @gp.operator(outputs=same)
    def inverse(f):
        m = [[_readTensorElement(f, size * r + c) for c in range(size)] for r in range(size)]
        if size == 2:
            (a, b), (c, d) = m
            made = [d, -b, -c, a]
            det = a * d - b * c
        else:
            made = [
                m[(c + 1) % 3][(r + 1) % 3] * m[(c + 2) % 3][(r + 2) % 3]
                - m[(c + 1) % 3][(r + 2) % 3] * m[(c + 2) % 3][(r + 1) % 3]
                for r in range(3)
                for c in range(3)
            ]
            det = m[0][0] * made[0] + m[0][1] * made[3] + m[0][2] * made[6]
        each(f, lambda n: made[n] / det)

    x = image(ROWS, COLUMNS, size, size) + 2 * np.eye(size, dtype="f")
    graph, results = fused(lambda: {"out": inverse(gp.MatrixField(x) * 2) + 1}, kernels=1)
    np.testing.assert_allclose(results["out"], np.linalg.inv(x * 2) + 1, rtol=1e-4)
    assert re.search(
        "on 6×10 (threads|points)", graph.explain()
    )  # none for each element; points, where a schedule has them


def test_what_elements_share_is_computed_once(device):
    @gp.operator(outputs=same)
    def costly(f):
        x = _readTensor(total)
        for _ in range(20):
            x = _sqrt(x * 3 + 1)
        with _forEachTensorElement(f.tensor_shape):
            _writeTensorElement(_out0, _readTensorElement(f) * x)

    x, t = image(ROWS, COLUMNS, 7), image(ROWS, COLUMNS)
    total = gp.ScalarField(t)
    graph, results = fused(lambda: {"out": costly(gp.VectorField(x) * 2) + 1}, kernels=1)
    factor = t
    for _ in range(20):
        factor = np.sqrt(factor * np.float32(3) + np.float32(1))
    same_bits(results["out"], x * 2 * factor[..., None] + 1)
    text = graph.source("opencl")
    assert text.count("sqrt") == 20 and text.index("sqrt") < text.index("for (int tensorElement"), text


def test_alone_a_body_is_what_was_written():
    """Without others on elements there is nothing to gain."""
    for operator in (flipped, warped, sorted_and_scaled):
        text = operator.source(gp.FieldType((ROWS, COLUMNS), 7), target="opencl")
        assert "// _tensorElement" not in text and "get_global_id(2)" not in text


@gp.operator(outputs=same)
def carried(f):
    """Turns that need one another."""
    total = _var(0.0)
    with _forEachTensorElement(f.tensor_shape):
        total += _readTensorElement(f)
        _writeTensorElement(_out0, total)


@gp.operator(outputs=same, default=0.5)
def partly(f):
    for n in range(f.type.planes - 1):
        _writeTensorElement(_out0, _readTensorElement(f, n), n)


@gp.operator(outputs=same)
def overwritten(f):
    """The last of two writes wins, the one by a loop or the other one."""
    with _forEachTensorElement(f.tensor_shape):
        _writeTensorElement(_out0, _readTensorElement(f))
    _writeTensorElement(_out0, _readTensorElement(f, 1), 0)


@gp.operator(outputs=same)
def twice_written(f):
    each(f, lambda n: _readTensorElement(f, n))
    _writeTensorElement(_out0, _readTensorElement(f, 1), 0)


@gp.operator(outputs=same)
def left_behind(f):
    """The values of the last turn are written too."""
    last = _var(0.0)
    with _forEachTensorElement(f.tensor_shape):
        last @= _readTensorElement(f)
    with _forEachTensorElement(f.tensor_shape):
        _writeTensorElement(_out0, _readTensorElement(f) + last)


@pytest.mark.parametrize("size", [3, 7])
def test_bodies_that_one_thread_must_do(device, size):
    x = image(ROWS, COLUMNS, size)
    y = x * 2
    second = np.concatenate([y[..., 1:2], y[..., 1:]], -1)
    expected = {
        carried: np.cumsum(y, -1, "f"), partly: np.concatenate([y[..., :-1], np.full_like(y[..., :1], 0.5)], -1),
        overwritten: second, twice_written: second, left_behind: y + y[..., -1:],
    }  # fmt: skip
    for operator, want in expected.items():
        _, results = fused(lambda o=operator: {"out": o(gp.VectorField(x) * 2) + 1})
        same_bits(results["out"], want + 1)
