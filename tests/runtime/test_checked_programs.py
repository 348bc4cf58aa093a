"""Checked execution of whole programs: fused, in compute graphs, and correct ones, of which nothing is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.errors.wrong import check_line

from .planted import check_right, checked

rng = np.random.default_rng(3)
IMAGE = gp.ScalarField(rng.random((37, 45), np.float32))
COUNTS = gp.ScalarField(np.int32([3, 0, 2, 5]))


def fused(wrong: int) -> Any:
    @gp.operator
    def half(n):
        _assert(_readTensor(n) < (3 if wrong == 0 else 9), "small")  # first
        return _readTensor(n) / 2

    @gp.operator
    def share(n):
        count = _readTensor(n)
        return 60 / (count + (0 if wrong == 1 else 1))  # second

    return share(half(COUNTS))


@pytest.mark.parametrize(("wrong", "mark", "message"), [
    (0, "# first", "an assertion does not hold: small; the first thread seen is column 0"),
    (1, "# second", "an integer is divided by 0 in thread (column 1)"),
])  # fmt: skip
def test_the_line_of_a_fused_operator(wrong: int, mark: str, message: str) -> None:
    with gp.ComputeGraph() as graph:
        graph.probe(fused(wrong))
    assert graph.kernel_count == 1
    with checked(), pytest.raises(gp.SemanticError) as caught:
        fused(wrong).numpy()
    assert caught.value.message.startswith(message)
    check_line(caught.value, fused, mark)


def counting() -> Any:
    """A graph that counts down, and divides."""
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(np.int32([2, 3]))

        @gp.operator
        def left(f):
            return 60 / _readTensor(f)  # here

        state.next = state - 1
        graph.probe(left(state), "left")
    return graph


def test_steps() -> None:
    graph = counting()
    with checked():
        graph.step()
        assert graph.read("left").tolist() == [60, 30]
        with pytest.raises(gp.SemanticError, match=r"divided by 0 in thread \(column 0\)") as caught:
            graph.step()
        check_line(caught.value, counting)
        graph.reset()
        assert graph.read("left").tolist() == [30, 20]


# --- correct programs -------------------------------------------------------------------------------------------------------


def identity(right: bool) -> Any:
    @gp.operator
    def tiled(f):
        tile = _local(_floatArray(_localRows, _localColumns))
        tile[_localRow, _localColumn] = _readTensor(f)
        _syncThreadsLocal()
        return tile[_localRow, _localColumn]

    return tiled(IMAGE)


def product(right: bool) -> Any:
    """Threads load for one another, so the grid is rounded up to whole groups."""

    @gp.operator(outputs=gp.FieldType((37, 37)))
    def times_transposed(f):
        _globalThreads((40, 40))
        _localThreads(8, 8)
        a, b, total = _local(_floatArray(8, 8)), _local(_floatArray(8, 8)), _floatVar()
        with _for(0, 45, 8) as k:
            a[_localRow, _localColumn] = _readTensor(f, _row, k + _localColumn, border="zero")
            b[_localColumn, _localRow] = _readTensor(f, _groupColumn * 8 + _localRow, k + _localColumn, border="zero")
            _syncThreadsLocal()
            with _for(8) as i:
                total += a[_localRow, i] * b[i, _localColumn]
            _syncThreadsLocal()
        _writeTensor(_out0, total, _row, _column)

    return times_transposed(IMAGE)


def histogram(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType(8, (), "int32"))
    def counts(f):
        _globalThreads((40, 48))
        _localThreads(8, 8)
        bins = _local(_intArray(8))
        with _if(_localRow == 0):
            bins[_localColumn] = 0
        _syncThreadsLocal()
        with _if((_row < 37) & (_column < 45)):
            _atomic_inc(_pointerTo(bins[_convert_int(_readTensor(f, _row, _column) * 8)]))
        _syncThreadsLocal()
        with _if(_localRow == 0):
            _atomic_add(_pointerTo(_out0, _localColumn), bins[_localColumn])

    return counts(IMAGE)


def sums(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType(5))
    def by_groups(f):
        _globalThreads(40)
        _localThreads(8)
        part, stride = _local(_floatArray(8)), _var(4)
        part[_localColumn] = _readTensor(f, 0, _column)
        _syncThreadsLocal()
        with _while(stride > 0):
            with _if(_localColumn < stride):
                part[_localColumn] += part[_localColumn + stride]
            _syncThreadsLocal()
            stride @= stride / 2
        with _if(_localColumn == 0):
            _writeTensor(_out0, part[0], _groupColumn)

    return by_groups(IMAGE)


def vectors(right: bool) -> Any:
    """Components of a vector in local memory are elements of their own: one is read while another is written."""

    @gp.operator
    def parts(f):
        _localThreads(4, 4)
        pair = _local(_float2Var())
        with _if((_localRow == 0) & (_localColumn == 0)):
            pair.x = 1
        _syncThreadsLocal()
        x = _var(pair.x)
        with _if((_localRow == 1) & (_localColumn == 0)):
            pair.y = x
        _syncThreadsLocal()
        return pair.x + pair.y

    return parts(gp.ScalarField(np.ones((8, 12), "f")))


def volume(right: bool) -> Any:
    @gp.operator(outputs=gp.FieldType((3, 7, 9), 5))
    def turned(f):
        _globalThreads((3, 7, 9), 5)
        x = _readTensorElement(f, _layer, _row, _column, _tensorElement)
        _writeTensorElement(_out0, x, 2 - _layer, 6 - _row, _column, 4 - _tensorElement)

    return turned(gp.VectorField(np.arange(945, dtype="f").reshape(3, 7, 9, 5)))


@pytest.mark.parametrize("program", [identity, product, histogram, sums, vectors, volume])
def test_correct(program: Any) -> None:
    check_right(program)
