"""Slices of fields: NumPy's, over grid and tensor axes."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.conformance.compare import has_double
from tests.harness import fused, half_and_double, image, same_bits

GRIDS = [
    np.s_[:],
    np.s_[...],
    np.s_[1:],
    np.s_[::2],
    np.s_[2],
    np.s_[-1],
    np.s_[:-1],
    np.s_[::-1],
    np.s_[9:1:-3],
    np.s_[2:2],
    np.s_[()],
]
PLANES = [
    np.s_[1:3, ::2],
    np.s_[-2, 3],
    np.s_[:, -1],
    np.s_[..., 0],
    np.s_[0, ...],
    np.s_[::-2, 6:1:-2],
    np.s_[3:1, 2],
    np.s_[np.int64(2), 1:],
]
BOXES = [
    np.s_[0, 1, 2],
    np.s_[1, :, ::-1],
    np.s_[:, 2],
    np.s_[:, 1, 3],
    np.s_[..., 1:4],
    np.s_[::2, 1:, -3:],
    np.s_[1, ..., 2],
    np.s_[:, 4:],
]


def check(array: np.ndarray, order: int, indices: list, dtype: str | None = None) -> None:
    f = gp.Field(array, order, dtype)
    parts = [f[index] for index in indices]
    gp.evaluate(*parts)
    for index, part in zip(indices, parts, strict=True):
        same_bits(part.numpy(), np.array(array[index]), str(index))


def test_grids(device):
    check(image(5), 0, GRIDS)
    check(image(5, 7), 0, GRIDS + PLANES)
    check(image(3, 4, 6), 0, GRIDS + PLANES + BOXES)
    check(np.float32(3), 0, [np.s_[...], np.s_[()]])


@pytest.mark.parametrize("step", [2**31, -(2**31) - 1, 2**40, -(2**70), 3, -3, 4, -4])
def test_steps_beyond_the_extents(step):
    array = np.arange(12, dtype="i").reshape(4, 3)
    for index in (np.s_[::step], np.s_[1::step, ::step], np.s_[:, 2::step], np.s_[4:4:step]):
        np.testing.assert_array_equal(gp.ScalarField(array)[index].numpy(), array[index])
        if array[index].size:
            np.testing.assert_array_equal(gp.MatrixField(array[None])[0][index].numpy(), array[index])


def test_tensors(device):
    check(
        image(5, 7, 3),
        1,
        [np.s_[..., 1], np.s_[..., -1:], np.s_[..., ::-1], np.s_[1:3, :, :2], np.s_[2, ::2, 1], np.s_[:2]],
    )
    check(
        image(4, 3, 9),
        1,
        [np.s_[..., 4], np.s_[..., 1:8], np.s_[..., ::-2], np.s_[::-1, 1, :3], np.s_[1], np.s_[..., 1:2]],
    )
    check(image(6, 2, 2), 2, [np.s_[..., 0], np.s_[:, 1], np.s_[..., ::-1, :], np.s_[2, 1, 0], np.s_[1:4, :, 1:]])
    check(
        image(2, 3, 4, 5),
        2,
        [np.s_[..., 1:4:2, ::-1], np.s_[..., 2, :], np.s_[..., 2:, 3], np.s_[1, :, ::3, 1:3], np.s_[..., 0, 0]],
    )
    check(image(7), 1, [np.s_[3], np.s_[1:3], np.s_[::-1]])


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "float64", "complex64", "complex128", "unorm8"],
)
def test_dtypes(device, dtype):
    if dtype == "float64" and not has_double():
        pytest.skip("no double")
    array = (image(6, 5) * 200).astype("uint8" if dtype == "unorm8" else dtype)
    check(array, 0, [np.s_[1:, ::-2], np.s_[3]], dtype)


def test_nothing_to_do_costs_nothing():
    f = gp.VectorField(image(5, 7, 3))
    for index in (np.s_[...], np.s_[:], np.s_[:, :, :], np.s_[0:5], np.s_[::1, -7:, ...]):
        assert f[index] is f


def test_offsets_are_constants():
    text = gp.operator(lambda f: _readTensor(f) + 1).source(gp.ScalarField(image(5, 7))[1:, 2:], target="opencl")
    assert "a[(_row + 1) * a_rowStride + (_column + 2)]" in text, text


def test_tensor_slices_fuse(device):
    v, m = gp.VectorField(image(6, 9, 3)), gp.MatrixField(image(6, 9, 2, 2))
    fused(lambda: {"a": (2 * v)[..., 0] + (v * v)[..., ::-1][..., 1] - (m + 1)[..., 1, 0]}, kernels=1)


def test_differences_of_neighbours(device):
    x = image(8, 11)
    _, results = fused(lambda: {"dx": (f := gp.ScalarField(x))[:, 1:] - f[:, :-1], "dy": np.abs(f[1:] - f[:-1])})
    same_bits(results["dx"], np.diff(x, axis=1))
    same_bits(results["dy"], np.abs(np.diff(x, axis=0)))


def test_in_graphs_and_pipelines(device):
    x = image(6, 8)
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(x)
        low, high = half_and_double(state)
        state.next = np.where(state[0, 0] > 0.25, low, high)
        graph.probe(state[::2, -1], "part")
    graph.step(3)
    want = x.copy()
    for _ in range(3):
        want = want / 2 if want[0, 0] > 0.25 else want * 2
    same_bits(graph.read("part"), want[::2, -1].copy())
    same_bits(gp.pipeline(lambda a: gp.ScalarField(a)[1:-1, 1:-1] * 2)(x), x[1:-1, 1:-1] * 2)


def test_parameters(device):
    p = gp.Parameter([1.0, 2.0, 3.0])
    last = p[-1] * 2
    assert float(last) == 6
    p.set([4.0, 5.0, 6.0])
    assert float(last) == 12
