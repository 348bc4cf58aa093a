"""What is no array is not written over by a stream's results."""

from __future__ import annotations

import os

import numpy as np
import pytest

import gpuop as gp

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
