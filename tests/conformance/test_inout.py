"""Operators that update fields: what they read is what they wrote, and the caller's fields stay. Expected values are NumPy's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(43)


def numbers(*shape: int, dtype: Any = "float32") -> Any:
    return rng.integers(-99, 100, shape).astype(dtype)


@gp.operator(inout="a")
def mul2(a):
    """KernelAbstractions' first kernel."""
    _writeTensor(a, 2 * _readTensor(a))


@pytest.mark.parametrize("shape", [(7, 5), (3, 4, 5), (), (0, 4)], ids=str)
def test_any_grid(device: str, shape: tuple[int, ...]) -> None:
    a = numbers(*shape)
    field = gp.ScalarField(a)
    same(mul2(field), a * 2)
    same(field, a)
    same(mul2(mul2(field) + 1), a * 4 + 2)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bool", "complex64", "complex128"])
def test_types(device: str, dtype: str) -> None:
    a = numbers(9, dtype=dtype)
    field = gp.ComplexField(a, dtype=dtype) if dtype.startswith("complex") else gp.ScalarField(a, dtype=dtype)

    @gp.operator(inout="a")
    def negated(a):
        x = _readTensor(a)
        _writeTensor(a, ~x if dtype == "bool" else -x)

    same(negated(field), ~a if dtype == "bool" else -a)


def test_what_is_read_is_what_was_written(device: str) -> None:
    """On some paths only, in loops, and with the storage's rounding; what an earlier value named stays."""
    a, bytes_ = numbers(40), rng.integers(0, 256, 40).astype(np.uint8)

    @gp.operator(inout="a")
    def collatz(a):
        first = _readTensor(a)
        with _if(first > 0):
            with _for(3):
                _writeTensor(a, _readTensor(a) * 3 + 1)
            with _if(_column <= 20):
                _writeTensor(a, _readTensor(a) - first)

    three = ((a * 3 + 1) * 3 + 1) * 3 + 1
    same(collatz(gp.ScalarField(a)), np.where(a > 0, np.where(np.arange(40) > 20, three, three - a), a))

    @gp.operator(inout="a")
    def rounded(a):
        _writeTensor(a, _readTensor(a) / 2)
        _writeTensor(a, _readTensor(a) * 2)

    half = np.rint(bytes_ / np.float32(255) / 2 * 255)
    same(rounded(gp.ScalarField(bytes_, dtype="unorm8")), np.minimum(half * 2, 255).astype(np.uint8))


def test_several_and_their_elements(device: str) -> None:
    a, b = numbers(6, 7, 2), numbers(6, 7)

    @gp.operator(inout=("b", "a"))
    def mixed(a, b, scale):
        kept = _readTensorElement(a, 1)
        _writeTensorElement(a, _readTensor(b) * scale, 1)
        _writeTensor(b, kept + _readTensorElement(a, 1))

    results = mixed(gp.VectorField(a), gp.ScalarField(b), 3)
    all_same(results, [a[..., 1] + b * 3, np.stack([a[..., 0], b * 3], -1)])


def test_threads_of_elements_and_tail_threads(device: str) -> None:
    big, line = numbers(5, 6), numbers(21)

    @gp.operator(inout="a")
    def counted(a):
        _globalThreads(a, a.tensor_shape)
        _writeTensorElement(a, _readTensorElement(a) * 10)
        _writeTensorElement(a, _readTensorElement(a, _tensorElement) + _tensorElement, _tensorElement)

    same(counted(gp.VectorField(big)), big * 10 + np.arange(6, dtype="f"))

    @gp.operator(inout="a")
    def mirrored(a):
        _localThreads(8, whole_groups=True)
        tile = _local(_floatArray(8))
        tile[_localColumn] = _readTensor(a)
        _syncThreadsLocal()
        _writeTensor(a, tile[7 - _localColumn])

    expected = np.pad(line, (0, 3), "edge").reshape(3, 8)[:, ::-1].ravel()[:21]
    same(mirrored(gp.ScalarField(line)), expected)


def test_the_same_field_again(device: str) -> None:
    """The values before the kernel, at other points too; in a graph the state is no longer overwritten then."""
    a = numbers(30)

    @gp.operator(inout="a")
    def differences(a, before):
        _writeTensor(a, _readTensor(a) + 1)
        _writeTensor(a, _readTensor(a) - _readTensor(before, _column - 1, border="zero"))

    field = gp.ScalarField(a)
    same(differences(field, field), a + 1 - np.append(np.float32(0), a[:-1]))


def test_in_graphs_pipelines_and_iterations(device: str) -> None:
    """A state is updated in its own memory, and so is the array of a pipeline that is its result's too."""
    a = numbers(8, 9)
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(a)
        state.next = mul2(state)
        graph.probe(state, "out")
    graph.step(3)
    same(graph.read("out"), a * 8)
    assert "in place" in graph.explain()

    @gp.pipeline
    def doubled(x):
        return mul2(gp.ScalarField(x))

    array = a.copy()
    doubled(array, out=array)
    same(array, a * 2)
    same(gp.iterate(mul2, gp.ScalarField(a), times=4), a * 16)


def test_neighbours_fuse() -> None:
    a = numbers(8, 9)
    with gp.use_device("reference"), gp.ComputeGraph() as fused:
        fused.probe(mul2(gp.ScalarField(a) - 1) * 3, "out")
    assert fused.kernel_count == 1
    same(fused.read("out"), (a - 1) * 6)


def test_copies_and_pickles() -> None:
    a = numbers(4)
    for operator in (copy.deepcopy(mul2), pickle.loads(pickle.dumps(mul2))):
        same(operator(gp.ScalarField(a)), a * 2)
