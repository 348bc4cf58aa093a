"""Files that are no arrays: a stream never overwrites them."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import ndimage as filters

import gpuop as gp
from gpuop import ndimage
from gpuop.dsl import *
from gpuop.scaleout.stream import stream as stream_file

ONE_MORE = gp.pipeline(lambda a: gp.ScalarField(a) + 1)


def test_results_spare_what_is_no_array(tmp_path):
    """Groups with something in them, other datasets, folders and files of other kinds stay; arrays are made anew."""
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    source = np.arange(6, dtype="float32")
    group = zarr.open_group(str(tmp_path / "group.zarr"), mode="w")
    group.create_array("kept", shape=(4,), dtype="f4")
    (tmp_path / "folder.zarr" / "sub").mkdir(parents=True)
    (tmp_path / "file.zarr").write_text("notes")
    (tmp_path / "notes.h5").write_text("notes")
    with h5py.File(tmp_path / "several.h5", "w") as file:
        file["kept"], file["group/kept"] = source, source
    for name, reason in (
        ("group.zarr", r"is no array and has 'kept': give an array in it, as `.*group.zarr/data`"),
        ("folder.zarr", "has 'sub'"),
        ("file.zarr", "has 'file.zarr'"),
        ("notes.h5", "is there and no HDF5 file"),
        ("several.h5", "has 'group', 'kept': name the array to write"),
        ("several.h5:/group", "is a group with 'kept'"),
    ):
        with pytest.raises(gp.SemanticError, match=reason):
            gp.stream(ONE_MORE, source, str(tmp_path / name), progress=False)
    for _ in range(2):
        gp.stream(ONE_MORE, source, str(tmp_path / "group.zarr/made"), progress=False)
        gp.stream(ONE_MORE, source, str(tmp_path / "several.h5:/made"), progress=False)
        gp.stream(ONE_MORE, source, str(tmp_path / "alone.zarr"), progress=False)
        gp.stream(ONE_MORE, source, str(tmp_path / "alone.h5"), progress=False)
    assert sorted(group.array_keys()) == ["kept", "made"] and os.listdir(tmp_path / "folder.zarr") == ["sub"]
    with h5py.File(tmp_path / "several.h5") as file:
        np.testing.assert_array_equal(file["made"], source + 1)
        assert sorted(file) == ["group", "kept", "made"] and "kept" in file["group"]
    assert (tmp_path / "file.zarr").read_text() == (tmp_path / "notes.h5").read_text() == "notes"


LABELS = np.arange(420).reshape(12, 5, 7) % 9


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda v: ndimage.label(gp.ScalarField(v) > 4)[0], "label` .* takes the whole field: label slabs.*volume.py.*`batch=1`"),
        (lambda v: ndimage.sum_labels(gp.ScalarField(v), gp.ScalarField(v), [1, 2]), "sum_labels` .*takes.*`_atomic_add`"),
        (lambda v: ndimage.center_of_mass(gp.ScalarField(v), gp.ScalarField(v), [1]), "center_of_mass` .*takes.*`_atomic_add`"),
        (lambda v: np.bincount(gp.ScalarField(v).ravel(), minlength=256), r"ravel` .*`np.histogram\(f, n, \(0, n\)\)`"),
        (lambda v: ndimage.distance_transform_edt(gp.ScalarField(v)), "distance_transform_edt` .*makes of a field in windows"),
        (lambda v: np.median(gp.ScalarField(v)), "median` .*makes of a field in windows one of another grid"),
        (lambda v: gp.ScalarField(v).reshape(7, 5, 12), "reshape` .*makes of a field in windows one of another grid, 7×5×12"),
    ],
)  # fmt: skip
def test_reasons_name_what_the_line_calls(function, message):
    """And not the operators that this is made of."""
    line = rf"none of its axes can be cut: operator `(?=\w+` \(.*test_spared.py:\d+\)){message}"
    with pytest.raises(gp.SemanticError, match=line):
        gp.stream(function, LABELS.astype("uint8"), chunks=(3, 3, 3), progress=False)


def test_what_cannot_be_cut_is_refused(monkeypatch):
    """By the chunks that are asked for, and where it takes more memory than there is."""
    labels = gp.pipeline(lambda volume: ndimage.label(gp.ScalarField(volume) > 0.5)[0])
    volume = np.random.default_rng(0).random((6, 5, 7), np.float32)
    with pytest.raises(
        gp.SemanticError, match=r"`chunks=` \(3, 5, 7\) cuts the grid \(6, 5, 7\), and none of its axes can be cut"
    ):
        gp.stream(labels, volume, chunks=(3, 5, 7), progress=False)
    with pytest.raises(gp.SemanticError, match=r"0 results are of the grid.*none of its axes can be cut: operator"):
        gp.stream(labels, volume, "labels.npy", progress=False)
    np.testing.assert_array_equal(gp.stream(labels, volume, chunks=(6, 5, 7), progress=False), labels(volume))
    monkeypatch.setattr(stream_file, "memory", lambda: 1000)
    with pytest.raises(gp.SemanticError, match=r"takes \d+ bytes where there are 1000, and none of its axes"):
        gp.stream(labels, volume, progress=False)


def one_more_in_groups(v):
    """Work-groups are as large as the grid."""

    @gp.operator
    def more(f):
        _localThreads(8, 8, whole_groups=True)
        t = _tile(f, 8, 8)
        return t[_localRow, _localColumn] + 1

    return more(gp.ScalarField(v))


@pytest.mark.parametrize(
    ("function", "right"),
    [
        (lambda v: ndimage.gaussian_filter(gp.ScalarField(v), 100), lambda v: filters.gaussian_filter(v, 100)),
        (lambda v: ndimage.uniform_filter(gp.ScalarField(v), 31), lambda v: filters.uniform_filter(v, 31)),
        (one_more_in_groups, lambda v: v + 1),
    ],
)
def test_windows_that_would_all_be_the_whole_are_one(monkeypatch, function, right):
    """And are refused where the whole takes more memory than there is."""
    values = np.random.default_rng(0).random((6, 5), np.float32)
    result = gp.stream(function, values, chunks=(3, 2), progress=False)
    np.testing.assert_allclose(result, right(values), rtol=1e-5)
    monkeypatch.setattr(stream_file, "memory", lambda: 100)
    with pytest.raises(gp.SemanticError, match=r"takes \d+ bytes where there are 100, and none of its axes can be cut"):
        gp.stream(function, values, chunks=(3, 2), progress=False)
