"""Outputs that are read again: a thread's own values, and those of its work-group after `_syncThreadsGlobal()`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.runtime.planted import checked

from .compare import all_same, same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(47)


@gp.operator(outputs=lambda f: (f.type, f.type))
def mirrored(f):
    """The second output has each work-group's values of the first one in reverse; the last group may have fewer threads."""
    _localThreads(8)
    _writeTensor(_out0, _readTensor(f) / 2 if f.dtype == "float32" else _readTensor(f))
    _syncThreadsGlobal()
    here = _columns - _groupColumn * 8
    _writeTensor(_out1, _readTensor(_out0, _groupColumn * 8 + _min(here, 8) - 1 - _localColumn))


def in_reverse(a: Any) -> Any:
    return np.concatenate([a[k : k + 8][::-1] for k in range(0, len(a), 8)])


@pytest.mark.parametrize("dtype", ["float32", "uint8", "float16", "bool", "int64", "complex64", "complex128", "unorm8"])
def test_types(device: str, dtype: str) -> None:
    stored = {"unorm8": "uint8"}.get(dtype, dtype)
    a = rng.integers(0, 100, 21).astype(stored)
    field = gp.ComplexField(a, dtype=dtype) if dtype.startswith("complex") else gp.ScalarField(a, dtype=dtype)
    first = a / np.float32(2) if dtype == "float32" else a
    all_same(mirrored(field), [first, in_reverse(first)])


def test_tensors_and_their_elements(device: str) -> None:
    pairs, big = rng.random((13, 2), np.float32), rng.random((3, 5, 7), np.float32)
    same(mirrored(gp.VectorField(pairs))[1], in_reverse(pairs / 2))

    @gp.operator(outputs=lambda f: f.type)
    def twice(f):
        with _forEachTensorElement(f.tensor_shape):
            _writeTensorElement(_out0, _readTensorElement(f) + 1)
        with _forEachTensorElement(f.tensor_shape):
            _writeTensorElement(_out0, _readTensorElement(_out0, _row, _column, _tensorElement) * 2)

    same(twice(gp.VectorField(big)), (big + 1) * 2)


@pytest.mark.parametrize("n", [16, 37])
def test_sums_in_global_memory(device: str, n: int) -> None:
    """Running sums of work-groups by doubled distances: what is read is written again, a barrier apart."""
    a = rng.integers(-50, 50, n).astype(np.int32)

    @gp.operator(outputs=lambda f: f.type)
    def running(f):
        _localThreads(16)
        _writeTensor(_out0, _readTensor(f))
        for distance in (1, 2, 4, 8):
            _syncThreadsGlobal()
            before = _where(
                _localColumn >= distance, _readTensor(_out0, _max(_column - distance, _groupColumn * 16)), 0
            )
            _syncThreadsGlobal()
            _writeTensor(_out0, _readTensor(_out0) + before)

    expected = np.concatenate([np.cumsum(a[k : k + 16], dtype=np.int32) for k in range(0, n, 16)])
    same(running(gp.ScalarField(a)), expected)
    with checked():
        same(running(gp.ScalarField(a)), expected)


def test_places_that_nobody_writes_hold_the_default(device: str) -> None:
    @gp.operator(outputs=gp.FieldType(12), default=7)
    def odd(f):
        _localThreads(4)
        with _if(_column % 2 == 1):
            _writeTensor(_out0, _readTensor(f))
        _syncThreadsGlobal()
        around = _readTensor(_out0, _column ^ 1)
        _syncThreadsGlobal()
        _writeTensor(_out0, around + _readTensor(_out0))

    a = np.arange(12, dtype="f")
    pairs = np.repeat(a[1::2] + 7, 2)
    same(odd(gp.ScalarField(a)), pairs)


def test_in_a_graph(device: str) -> None:
    """Operators before it are fused; operators behind it read memory."""
    a = rng.integers(0, 100, 40).astype(np.float32)
    with gp.ComputeGraph() as graph:
        graph.probe(mirrored(gp.ScalarField(a) + 4)[1] * 2, "out")
    same(graph.read("out"), in_reverse(a + 4))


@pytest.mark.parametrize(("sync", "right"), [(_syncThreadsGlobal, True), (_syncThreadsLocal, False), (None, False)])
def test_a_missing_barrier_is_found(sync: Any, right: bool) -> None:
    @gp.operator(outputs=gp.FieldType(16))
    def swapped(f):
        _localThreads(8)
        _writeTensor(_out0, _readTensor(f))
        if sync is not None:
            sync()
        other = _readTensor(_out0, _column ^ 1)
        _syncThreadsGlobal()
        _writeTensor(_out0, other)

    a = np.arange(16, dtype="f")
    with checked():
        if right:
            same(swapped(gp.ScalarField(a)), a.reshape(8, 2)[:, ::-1].ravel())
            return
        with pytest.raises(gp.SemanticError, match=r"reads the output at .* writes it in .* in no certain order"):
            swapped(gp.ScalarField(a)).numpy()
