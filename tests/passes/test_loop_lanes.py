"""Loops of threads that are alone, in vectors: NumPy's values, whatever turns have of one another; what is run turn by turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Pin
from gpuop.ir.nodes import For
from gpuop.ir.visit import walk
from gpuop.passes.loop_vectorization import loop_lanes
from gpuop.passes.pipeline import unscheduled
from gpuop.runtime import devices
from tests.conftest import Vectorized

rng = np.random.default_rng(71)
CPU = replace(Vectorized.target, device="cpu")
FORMS = ["cpu", *(d.name for d in gp.devices() if d.name.startswith("opencl"))]
ROWS, COLUMNS, FAR = 3, 77, 40  # of which the last vector has a part


@contextmanager
def in_lanes(form: str) -> Iterator[None]:
    """A device that runs loops so: an interpreter of lowered kernels, or a driver."""
    if form != "cpu":
        with gp.use_device(form):
            yield
        return
    backend = Vectorized()
    backend.target = CPU
    with mock.patch.dict(devices._open, reference=backend), gp.use_device("reference"):
        yield


def in_vectors(result: gp.Field, pin: Pin | None = None) -> bool:
    kernel = replace(unscheduled(plan(program([result.node])).launches[0].kernel, CPU), pin=pin)
    return any(isinstance(stmt, For) and stmt.lanes for stmt in walk(loop_lanes(kernel).body))


def of_rows(dtype: str, body):
    """An operator that gives a thread each row of a field, in an array of its own with FAR more elements on both sides."""

    @gp.operator(outputs=gp.FieldType((ROWS, COLUMNS), dtype=dtype))
    def rows(f):
        _globalThreads(ROWS)
        _localThreads(1)
        line = {"int16": _shortArray, "float32": _floatArray, "uint8": _ucharArray}[dtype](COLUMNS + 2 * FAR)
        with _for(COLUMNS) as c:
            line[c + FAR] = _readTensor(f, _column, c, border="unchecked")
        body(line, lambda value: _convert(value, dtype))
        with _for(COLUMNS) as c:
            _writeTensor(_out0, line[c + FAR], _column, c)

    return rows


def each(line, value, first=0, count=COLUMNS):
    with _for(count) as c:
        line[first + c + FAR] = value(c + FAR, c)


CARRIED = {  # how far away a turn reads what other turns store
    "far behind": (lambda line, to: each(line, lambda at, c: to(line[at] + line[at - FAR])), -FAR),
    "near behind": (lambda line, to: each(line, lambda at, c: to(line[at] + line[at - 1])), -1),
    "ahead": (lambda line, to: each(line, lambda at, c: to(line[at] + line[at + 3])), 3),
    "own": (lambda line, to: each(line, lambda at, c: to(line[at] + line[at])), 0),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_turns_have_of_one_another(form):
    x = rng.integers(0, 50, (ROWS, COLUMNS)).astype("int16")
    for name in CARRIED if form == "cpu" else ("far behind", "near behind"):
        body, away = CARRIED[name]
        want = np.zeros((ROWS, COLUMNS + 2 * FAR), np.int16)
        want[:, FAR:-FAR] = x
        for c in range(FAR, COLUMNS + FAR):
            want[:, c] += want[:, c + away]
        with in_lanes(form):
            np.testing.assert_array_equal(of_rows("int16", body)(gp.Field(x)).numpy(), want[:, FAR:-FAR], err_msg=name)


@pytest.mark.parametrize("form", FORMS)
def test_places_and_numbers_of_turns(form):
    """A beginning that all turns have in common, tests of the turn's number, and what is left at the end of rows."""
    x = rng.random((ROWS, COLUMNS)).astype("f")

    def body(line, to):
        with _for(2) as n:
            begin = n * 32
            with _for(32) as c:
                other = line[begin + c + FAR] * 2.0
                line[begin + c + FAR] = _where((c > 3) & (c < 30), other, to(c + n))

    want = x.copy()
    c = np.arange(32)
    for n in range(2):
        part = want[:, 32 * n : 32 * n + 32]
        part[:] = np.where((c > 3) & (c < 30), part * 2, np.float32(c + n))
    with in_lanes(form):
        np.testing.assert_array_equal(of_rows("float32", body)(gp.Field(x)).numpy(), want)


@pytest.mark.parametrize("form", FORMS)
def test_lanes_that_a_table_names(form):
    """The reads lie ahead by constants, from a beginning that all turns have in common."""
    x = rng.random((ROWS, COLUMNS)).astype("f")
    ahead = np.array([0, 0, 1, 2, 2, 3, 3, 9, 10, 10, 11, 13, 12, 14, 25, 26][: 8 if form == "cpu" else 16])
    count = len(ahead)  # a vector

    @gp.operator(outputs=gp.FieldType((ROWS, 2 * count), dtype="float32"))
    def picked(f):
        _globalThreads(ROWS)
        _localThreads(1)
        line, places = _floatArray(COLUMNS), _constantArray(ahead.astype(np.int32))
        with _for(COLUMNS) as c:
            line[c] = _readTensor(f, _column, c, border="unchecked")
        with _for(2) as n:
            begin = 20 * n
            with _for(count) as c:
                at = places[c] + begin
                _writeTensor(_out0, line[at] + line[at + 1], _column, count * n + c)

    want = np.concatenate([x[:, ahead + 20 * n] + x[:, ahead + 20 * n + 1] for n in range(2)], axis=1)
    with in_lanes(form):
        np.testing.assert_array_equal(picked(gp.Field(x)).numpy(), want)


def test_what_is_run_turn_by_turn():
    x = gp.Field(np.zeros((ROWS, COLUMNS), np.uint8))

    @gp.operator(outputs=gp.FieldType((ROWS, COLUMNS), dtype="uint8"))
    def turned(f):
        _globalThreads(ROWS)
        _localThreads(1)
        with _for(COLUMNS) as c:
            _writeTensor(_out0, _readTensor(f, _column, COLUMNS - 1 - c, border="unchecked"), _column, c)

    @gp.operator(outputs=gp.FieldType(ROWS, dtype="int32"))
    def added(f):
        _globalThreads(ROWS)
        _localThreads(1)
        total = _var(0)
        with _for(COLUMNS) as c:
            total @= total + _convert_int(_readTensor(f, _column, c, border="unchecked"))
        _writeTensor(_out0, total, _column)

    assert in_vectors(of_rows("uint8", lambda line, to: None)(x))
    assert not in_vectors(turned(x)) and not in_vectors(added(x))
    assert not in_vectors(of_rows("uint8", lambda line, to: None)(x), Pin("plain"))
