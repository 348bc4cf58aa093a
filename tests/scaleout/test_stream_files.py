"""Lists of files as sources of `gp.stream`: what `np.stack` makes of them, and never more than one of them open."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

import gpuop as gp
from gpuop.base.errors import SemanticError
from gpuop.scaleout.stream import stacked_files
from gpuop.scaleout.stream.stacked_files import StackedFiles


@gp.pipeline
def smoothed(x):
    f = gp.ndimage.uniform_filter(gp.ScalarField(x), 3)
    return f, f.max()


@pytest.fixture(autouse=True)
def reference():
    with gp.use_device("reference"):
        yield


@pytest.fixture
def images():
    return np.random.default_rng(5).random((5, 9, 7), np.float32)


def files(folder, images, ending):
    """A file for each image; of its own kind."""
    if ending != ".npy":
        module = pytest.importorskip(
            {".tif": "tifffile", "zlib.tif": "tifffile", ".h5:/a/b": "h5py", ".zarr": "zarr"}[ending]
        )
    paths = [f"{folder}/{n}{ending}" for n in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        if ending == ".npy":
            np.save(path, image)
        elif ending == ".zarr":
            module.create_array(path, data=image)
        elif ending == ".h5:/a/b":
            module.File(path.partition(":")[0], "w")["a/b"] = image
        else:
            module.imwrite(path, image, compression="zlib" if "zlib" in ending else None)
    return paths


def expected(images):
    return np.stack([ndimage.uniform_filter(each, 3, mode="reflect") for each in images])


@pytest.mark.parametrize("ending", [".npy", ".tif", "zlib.tif", ".h5:/a/b", ".zarr"])
@pytest.mark.parametrize("chunks", ["auto", (4, 7)], ids=str)
def test_images_of_a_batch(tmp_path, images, ending, chunks):
    """Halos do not go from one to the other; the result is one array."""
    paths = files(tmp_path, images, ending)
    result, most = gp.stream(smoothed, paths, (tmp_path / "y.npy",), batch=1, chunks=chunks, progress=False)
    np.testing.assert_allclose(result, expected(images), rtol=1e-5)
    np.testing.assert_allclose(most, expected(images).max((1, 2)), rtol=1e-6)


def test_layers_of_a_volume(tmp_path, images):
    """Without `batch=` the list's axis is the grid's first one; beside other arguments, and by paths of pathlib."""
    scaled = gp.pipeline(lambda x, y: gp.ndimage.uniform_filter(gp.ScalarField(x), 3) * gp.ScalarField(y))
    paths = [*map(Path, files(tmp_path, images, ".npy"))]
    result = gp.stream(scaled, (paths, images), chunks=(2, 4, 7), progress=False)
    np.testing.assert_allclose(result, ndimage.uniform_filter(images, 3) * images, rtol=1e-5)
    np.save(tmp_path / "two.npy", images[:2])
    result = gp.stream(smoothed, [tmp_path / "two.npy"] * 2, batch=2, progress=False)[0]
    np.testing.assert_allclose(result, [expected(images[:2])] * 2, rtol=1e-5)


def test_parts_of_a_list_are_those_of_a_stack(tmp_path, images, monkeypatch):
    """Of relative paths too, from wherever they are read."""
    monkeypatch.chdir(tmp_path)
    stacked = StackedFiles([os.path.basename(path) for path in files(tmp_path, images, ".npy")])
    monkeypatch.chdir("/")
    assert (stacked.shape, stacked.dtype, stacked.chunks) == (images.shape, images.dtype, None)
    for place in (
        ...,
        2,
        (1, slice(2, 5)),
        (slice(1, 4), slice(None), slice(3, 5)),
        (slice(2, 3), ...),
        (slice(4, 1, -2), 3),
    ):
        part = stacked[place]
        np.testing.assert_array_equal(part, images[place])
        assert not np.shares_memory(part, np.empty(0)) and part.flags.c_contiguous
    pytest.importorskip("tifffile")
    assert StackedFiles(files(tmp_path, images, "zlib.tif")).chunks == (1, 9, 7)


def test_one_file_is_open_at_a_time(tmp_path, images, monkeypatch):
    """And read only where a window has some of it."""
    pytest.importorskip("h5py")
    paths, opened, most = files(tmp_path, images, ".h5:/a/b"), [], []

    def noted(path):
        opened.append(path)
        result = opener(path)
        most.append(sum(os.path.realpath(f"/proc/self/fd/{n}").endswith(".h5") for n in os.listdir("/proc/self/fd")))
        return result

    opener = stacked_files.opened
    monkeypatch.setattr(stacked_files, "opened", noted)
    gp.stream(smoothed, paths, batch=1, chunks=(9, 7), progress=False)
    assert opened == [*paths, *paths] and max(most) == 1


def test_what_is_no_list_of_alike_files(tmp_path, images):
    paths = files(tmp_path, images, ".npy")
    np.save(tmp_path / "short.npy", images[0, 1:])
    np.save(tmp_path / "int.npy", images[0].astype("i4"))
    (tmp_path / "damaged.npy").write_bytes(b"")
    for source, message in (
        ([], "`source=` is an empty list; give the path of a file for each image"),
        ([*paths, images[0]], "a list as a source has paths of files, not an ndarray; arrays, .* are a tuple"),
        ([*paths, tmp_path / "short.npy"], r"/short\.npy has 8×7 float32, and the first file of the list 9×7 float32"),
        ([*paths, tmp_path / "int.npy"], r"/int\.npy has 9×7 int32, and the first file of the list 9×7 float32"),
        ([*paths, tmp_path / "damaged.npy"], r"/damaged\.npy cannot be read"),
        ([*paths, tmp_path / "notes.txt"], r"/notes\.txt: files are \.npy"),
        (
            map(str, paths),
            r"a source is an array, its path, or a list of paths, not a map; write `list\(…\)` around it",
        ),
    ):
        with pytest.raises(SemanticError, match=message):
            gp.stream(smoothed, source, batch=1, progress=False)
    with pytest.raises(FileNotFoundError, match=r"none\.npy"):
        gp.stream(smoothed, [*paths, tmp_path / "none.npy"], batch=1, progress=False)
    with pytest.raises(SemanticError, match=r"`out=` \(.*/3\.npy\) overlaps `x`"):
        gp.stream(smoothed, paths, (paths[3],), batch=1, progress=False)


def test_folders_and_patterns_become_lists(tmp_path, images):
    """The message says what to write."""
    files(tmp_path, images, ".npy")
    (tmp_path / "empty").mkdir()
    for source, what, listed in (
        (tmp_path, "a folder", rf'sorted\(Path\("{tmp_path}"\).glob\("\*\.npy"\)\)'),
        (str(tmp_path / "empty"), "a folder", rf'sorted\(Path\("{tmp_path}/empty"\).glob\("\*\.tif"\)\)'),
        (f"{tmp_path}/*.npy", "a pattern of names", rf'sorted\(Path\("{tmp_path}"\).glob\("\*\.npy"\)\)'),
        ("t*.tif", "a pattern of names", r'sorted\(Path\("\."\).glob\("t\*\.tif"\)\)'),
    ):
        with pytest.raises(SemanticError, match=rf" is {what}, and a source is .* or a list of paths: `{listed}`"):
            gp.stream(smoothed, source, batch=1, progress=False)
    result = gp.stream(smoothed, sorted(tmp_path.glob("*.npy")), batch=1, progress=False)
    np.testing.assert_allclose(result[0], expected(images), rtol=1e-5)


def test_each_file_tells_a_stream_from_others(tmp_path, images, monkeypatch):
    """Also one that is not read any more; files are found wherever it goes on from."""
    paths, out = files(tmp_path, images, ".npy"), tmp_path / "y.npy"

    def run(names=paths):
        return gp.stream(smoothed, names, (out,), batch=1, progress=False, resume=True)

    run()
    monkeypatch.chdir(tmp_path)
    np.testing.assert_allclose(run([os.path.basename(path) for path in paths])[0], expected(images), rtol=1e-5)
    with pytest.raises(SemanticError, match="these differ: the values of `x`; delete the result"):
        run([*paths[:3], paths[4], paths[3]])
    np.save(paths[1], images[1])
    with pytest.raises(
        SemanticError, match=r"these differ: a file of `x` \(.*4.npy, written .* then, .*1.npy, written .* now\)"
    ):
        run()
    with pytest.raises(SemanticError, match=r"these differ: `x` \(5×9×7 float32 then, 4×9×7 float32 now\)"):
        run(paths[:4])
