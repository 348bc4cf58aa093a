"""Operators that update fields anywhere: permutations, butterflies, swaps, and groups that wait. Expected values are NumPy's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.engine.bundles.bundle import save_bundle
from gpuop.ir.values import Leaf
from tests.runtime.planted import checked

from .compare import all_same, same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(53)


def numbers(*shape: int, dtype: Any = "float32") -> Any:
    return rng.integers(0, 100, shape).astype(dtype)


@gp.operator(inout="a")
def bits_reversed(a, bits):
    """The first step of an FFT in place: of two places that change, one thread writes both."""
    other = _var(0)
    for k in range(bits):
        other |= ((_column >> k) & 1) << (bits - 1 - k)
    with _if(_column < other):
        mine, its = _var(_readTensor(a)), _var(_readTensor(a, other))
        _writeTensor(a, its)
        _writeTensor(a, mine, other)


@gp.operator(inout="a")
def butterflies(a, half):
    """One of the other steps (Cooley and Tukey, 1965)."""
    _globalThreads(a.field_shape[0] // 2)
    k = _column % half
    at = 2 * (_column - k) + k
    low, high = _var(_readTensor(a, at)), _var(_readTensor(a, at + half))
    c, s = _cos(-np.pi / half * k), _sin(-np.pi / half * k)
    turned = _float2(c * high.x - s * high.y, c * high.y + s * high.x)
    _writeTensor(a, low + turned, at)
    _writeTensor(a, low - turned, at + half)


def fft(a: gp.Field) -> gp.Field:
    bits = a.field_shape[0].bit_length() - 1
    a = bits_reversed(a, bits)
    for k in range(bits):
        a = butterflies(a, 1 << k)
    return a


@gp.operator(inout="a")
def mirrored(a):
    with _if(_column < _columns / 2):
        mine, its = _var(_readTensor(a)), _var(_readTensor(a, _row, _columns - 1 - _column))
        _writeTensor(a, its)
        _writeTensor(a, mine, _row, _columns - 1 - _column)


def reversed_order(bits: int) -> Any:
    return [int(f"{n:0{bits}b}"[::-1], 2) for n in range(1 << bits)]


@pytest.mark.parametrize("dtype", ["uint8", "float16", "complex64", "complex128"])
def test_permutations_of_any_type(device: str, dtype: str) -> None:
    a = numbers(16, dtype=dtype)
    field = gp.ComplexField(a, dtype=dtype) if dtype.startswith("complex") else gp.ScalarField(a)
    same(bits_reversed(field, 4), a[reversed_order(4)])
    same(field, a)


def test_a_fourier_transform_in_place(device: str) -> None:
    a = rng.random(16, np.float32) + 1j * rng.random(16, np.float32)
    result = fft(gp.ComplexField(a.astype(np.complex64)))
    np.testing.assert_allclose(result.numpy(), np.fft.fft(a), atol=1e-4)


@pytest.mark.parametrize("shape", [(3, 7), (5, 1), (0, 4)], ids=str)
def test_swaps(device: str, shape: tuple[int, int]) -> None:
    """Of fields that others make, and that others take."""
    a = numbers(*shape)
    same(mirrored(gp.ScalarField(a) + 1) * 2, (a[:, ::-1] + 1) * 2)
    vectors = numbers(*shape, 3)
    same(mirrored(gp.VectorField(vectors)), vectors[:, ::-1])


def test_more_dimensions_and_large_tensors(device: str) -> None:
    a, big = numbers(2, 3, 4, 5), numbers(4, 6)

    @gp.operator(inout="a")
    def layers_swapped(a):
        _globalThreads(3, 4, 5)
        mine, its = (_var(_readTensor(a, n, _layer, _row, _column)) for n in (0, 1))
        _writeTensor(a, its, 0, _layer, _row, _column)
        _writeTensor(a, mine, 1, _layer, _row, _column)

    same(layers_swapped(gp.ScalarField(a)), a[::-1])

    @gp.operator(inout="a")
    def elements_turned(a):
        with _for(3) as e:
            mine, its = _var(_readTensorElement(a, _column, e)), _var(_readTensorElement(a, _column, 5 - e))
            _writeTensorElement(a, its, _column, e)
            _writeTensorElement(a, mine, _column, 5 - e)

    same(elements_turned(gp.VectorField(big)), big[:, ::-1])


@pytest.mark.parametrize("border", ["clamp", "wrap", "reflect", "symmetric", 7])
def test_borders(device: str, border: Any) -> None:
    """The first row takes what the second one, which stays, holds beside it."""
    a = numbers(2, 9)

    @gp.operator(inout="a")
    def summed(a):
        _globalThreads(9)
        left, right = (_readTensor(a, 1, _column + d, border=border) for d in (-3, 3))
        _writeTensor(a, left + right, 0, _column)

    @gp.operator(inout="a")
    def from_below(a):
        with _if(_row == 0):
            _writeTensor(a, _readTensor(a, offset=(1, -3), border=border))

    mode = {"clamp": "edge", 7: "constant"}.get(border, border)
    padded = np.pad(a[1], 3, mode, **({"constant_values": 7} if border == 7 else {}))
    same(summed(gp.ScalarField(a)), np.stack([padded[:9] + padded[6:], a[1]]))
    same(from_below(gp.ScalarField(a)), np.stack([padded[:9], a[1]]))


def test_groups_that_wait_and_several_arguments(device: str) -> None:
    """After a barrier a thread reads what its work-group has written; one argument is updated at own points only."""
    a, b = numbers(24), numbers(24)

    @gp.operator(inout=("a", "b"))
    def sorted_by_pairs(a, b):
        _localThreads(8)
        for step in range(8):
            with _if((_localColumn % 2 == step % 2) & (_localColumn < 7)):
                low, high = _var(_readTensor(a)), _var(_readTensor(a, _column + 1))
                _writeTensor(a, _min(low, high))
                _writeTensor(a, _max(low, high), _column + 1)
            _syncThreadsGlobal()
        _writeTensor(b, _readTensor(b) + _readTensor(a))

    expected = np.sort(a.reshape(3, 8), axis=1).ravel()
    all_same(sorted_by_pairs(gp.ScalarField(a), gp.ScalarField(b)), [expected, b + expected])
    with checked():
        same(sorted_by_pairs(gp.ScalarField(a), gp.ScalarField(b))[0], expected)


def test_atomic_updates_go_on(device: str) -> None:
    counts, values = numbers(5, dtype="int32"), rng.integers(0, 5, (4, 30)).astype(np.int32)

    @gp.operator(inout="counts")
    def counted(counts, values):
        _globalThreads(values)
        _atomic_inc(_pointerTo(counts, _readTensor(values)))

    same(
        counted(gp.ScalarField(counts), gp.ScalarField(values)),
        counts + np.bincount(values.ravel(), minlength=5).astype(np.int32),
    )


def test_in_graphs_pipelines_and_iterations(device: str) -> None:
    """A state is permuted in its own memory; so is what was computed for it. The array of a pipeline may be its result's."""
    a = numbers(6, 9)
    with gp.ComputeGraph() as graph:
        state, other = gp.ScalarField(a), gp.ScalarField(a)
        state.next = mirrored(state)
        other.next = mirrored(mirrored(other * 2)) + 1
        graph.probe(state, "state")
        graph.probe(other, "other")
    graph.step(3)
    same(graph.read("state"), a[:, ::-1])
    same(graph.read("other"), a * 8 + 7)
    assert "in place, when the next step begins: state.next" in graph.explain()

    @gp.pipeline
    def turned(x):
        return mirrored(gp.ScalarField(x))

    array = a.copy()
    turned(array, out=array)
    same(array, a[:, ::-1])
    same(turned(a[::2, ::-1]), a[::2])
    same(gp.iterate(mirrored, gp.ScalarField(a), times=3), a[:, ::-1])
    same(gp.submit(mirrored(gp.ScalarField(a))).result(), a[:, ::-1])


def test_bundles(device: str, tmp_path: Path) -> None:
    if not device.startswith("opencl"):
        pytest.skip("it is OpenCL's")
    a, field = numbers(4, 6), gp.Field.of(Leaf(gp.FieldType((4, 6))))
    results = mirrored(mirrored(field)) * 2 + mirrored(field)
    save_bundle(tmp_path / "b", "both", {"f": field}, results, [target_named("opencl")])
    same(gp.load_bundle(tmp_path / "b")(a), a * 2 + a[:, ::-1])


def test_what_no_order_is_certain_of() -> None:
    @gp.operator(inout="a")
    def between_groups(a):
        _localThreads(4)
        x = _var(_readTensor(a, _columns - 1 - _column))
        _syncThreadsGlobal()
        _writeTensor(a, x)

    @gp.operator(inout="a")
    def one_place(a):
        _writeTensor(a, _column, _column / 2)

    a = gp.ScalarField(numbers(12))
    with checked():
        with pytest.raises(gp.SemanticError, match=r"reads it in .* in no certain order.*different work-groups"):
            between_groups(a).numpy()
        with pytest.raises(
            gp.SemanticError, match="writes it with another value in the same line, in no certain order"
        ):
            one_place(a).numpy()
        same(mirrored(gp.ScalarField(np.float32([[1, 2, 3]]))), np.float32([[3, 2, 1]]))
