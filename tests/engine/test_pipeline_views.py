"""Pipelines of views of NumPy's arrays: used where they lie if their rows do, else copied; NumPy's values always."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import _column, _readTensor, _row
from gpuop.runtime.devices import current

rng = np.random.default_rng(18)
NORESERVE = 0x4000  # of Linux


@gp.operator
def turned(f):
    return _readTensor(f, _column, _row)


COMPUTED = {
    "stencil": (
        lambda f: gp.operator(lambda g: _readTensor(g, _row, _column + 1) - _readTensor(g, _row - 1, _column))(f),
        lambda a: np.pad(a, ((0, 0), (0, 1)), "edge")[:, 1:] - np.pad(a, ((1, 0), (0, 0)), "edge")[:-1],
    ),
    "reduction": (lambda f: f.max(axis=0), lambda a: a.max(axis=0)),
    "sum": (lambda f: f.sum(), lambda a: a.sum()),
    "turned": (turned, lambda a: a.T),
}
STRIDED = {
    "offset": np.s_[1:-2, 3:-1],
    "rows": np.s_[1::2],
    "columns": np.s_[:, ::2],
    "backwards": np.s_[::-1, 2:],
    "mirrored": np.s_[2:, ::-1],
    "one column": np.s_[:, 5:6],
    "one row": np.s_[7:8, 1:],
    "none": np.s_[:, 3:3],
}


@pytest.mark.parametrize("view", STRIDED)
def test_strided_views_of_many_elements(device, view):
    values = rng.integers(0, 100, (259, 270)).astype(np.float32)[STRIDED[view]]
    double = gp.pipeline(lambda a: gp.ScalarField(a) * 2)
    for array in (values, np.broadcast_to(values[:1], values.shape)):  # read-only, as one row is there for all
        np.testing.assert_array_equal(double(array), array * 2)


@pytest.mark.parametrize("what", COMPUTED)
def test_schedules_for_rows_that_lie_apart(device, what):
    """Vectors begin anywhere, and what lies between rows is not the array's."""
    compute, expected = COMPUTED[what]
    array = rng.integers(0, 100, (259, 270)).astype(np.float32)[1:258, 3:260]
    np.testing.assert_array_equal(gp.pipeline(lambda a: compute(gp.ScalarField(a)))(array), expected(array))


def test_crops_of_images_and_volumes(device):
    image, volume = rng.integers(0, 255, (120, 230, 3), np.uint8), rng.random((20, 40, 50), np.float32)
    inverted = gp.pipeline(lambda a: ~gp.VectorField(a))
    for crop in (image[5:110, 7:220], image[5:110, ::-1], image[..., ::-1]):
        np.testing.assert_array_equal(inverted(crop), ~crop)
    planes = np.moveaxis(np.ascontiguousarray(np.moveaxis(image, -1, 0)), 0, -1)
    np.testing.assert_array_equal(inverted(planes[3:, 5:]), ~planes[3:, 5:])
    plane = gp.pipeline(lambda a: ~gp.ScalarField(a))
    np.testing.assert_array_equal(plane(image[..., 0]), ~image[..., 0])
    double = gp.pipeline(lambda a: gp.ScalarField(a) * 2)
    for crop in (volume[1:-1, 2:-3, 5:], volume[::2, ::3, 1:-1]):
        np.testing.assert_array_equal(double(crop), crop * 2)


def test_elements_at_odd_places(device):
    """Of records, and of buffers where elements are not aligned."""
    double = gp.pipeline(lambda a: gp.ScalarField(a) * 2)
    records = np.zeros((150, 160), np.dtype([("flag", "u1"), ("value", "f4")]))
    records["value"] = rng.random((150, 160))
    odd = np.frombuffer(bytearray(4 * 30000 + 1), np.float32, 30000, 1).reshape(150, 200)
    odd[...] = rng.random((150, 200))
    for array in (records["value"], odd, odd[1:, 3:]):
        np.testing.assert_array_equal(double(array), array * 2)


def test_views_that_reach_further_than_a_buffer(device):
    """Few rows of more memory than devices have, of which only what is written is there."""
    memory = mmap.mmap(-1, 1 << 36, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
    array = np.frombuffer(memory, np.uint8).reshape(1 << 24, 1 << 12)[:: 1 << 17, 1:1001]
    array[...] = rng.integers(0, 100, array.shape)
    np.testing.assert_array_equal(gp.pipeline(lambda a: gp.ScalarField(a) * 2)(array), array * 2)


@pytest.mark.parametrize("mode", ["r", "c", "r+"])
def test_files_that_are_mapped(device, mode, tmp_path):
    """Elements begin where the file has them, and end where it ends; what is only read does not change."""
    path, values = tmp_path / "values", rng.random(3 + 150 * 200).astype(np.float32)
    values.tofile(path)
    mapped = np.memmap(path, np.float32, mode, 12, (150, 200))
    double = gp.pipeline(lambda a: gp.ScalarField(a) * 2)
    for array in (mapped, mapped[1:, 3:], mapped[::2], mapped[::-1]):
        np.testing.assert_array_equal(double(array), np.array(array) * 2)
    if mode == "r+":
        double(mapped[:, 2:100].copy(), out=mapped[:, 102:])
        values[3:].reshape(150, 200)[:, 102:200] = 2 * values[3:].reshape(150, 200)[:, 2:100]
        mapped.flush()
    np.testing.assert_array_equal(np.fromfile(path, np.float32), values)


def test_results_beside_and_over_arguments(device):
    """Views of one array, which share elements or only memory."""

    @gp.pipeline
    def across(image):
        return gp.operator(lambda f: _readTensor(f, _row, _column + 1) - _readTensor(f, _row, _column - 1))(
            gp.ScalarField(image)
        )

    for out in (np.s_[1:-1, 3:-5], np.s_[:-2, 2:-6], np.s_[2:, 8:]):
        base = rng.integers(0, 100, (202, 310)).astype(np.float32)
        array, want = base[1:-1, 3:-5], base.copy()
        edges = np.pad(array, ((0, 0), (1, 1)), "edge")
        want[out] = edges[:, 2:] - edges[:, :-2]
        across(array, out=base[out])
        np.testing.assert_array_equal(base, want)


def test_views_of_many_strides_are_compiled_for_some(device, monkeypatch):
    """Views of further strides are copied, and computed by kernels that are there already."""
    backend, compiled = current(), []
    compile_ = type(backend).compile
    monkeypatch.setattr(type(backend), "compile", lambda self, kernel: compiled.append(1) or compile_(self, kernel))
    double = gp.pipeline(lambda a: gp.ScalarField(a) * 2)
    for width in range(171, 187):
        base = rng.random((130, width), np.float32)
        for array in (base[1:, 1:171], base[:-1, :170]):
            np.testing.assert_array_equal(double(array), array * 2)
    assert len(compiled) <= 10
