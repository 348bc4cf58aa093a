"""`resume=True` of a stream that is done: nothing is computed again, and all that it gives is right."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.errors import SemanticError

CHUNKS = (8, 40)


class Source:
    """An array that counts what windows read."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.reads = array, array.shape, array.dtype, 0

    def __getitem__(self, place):
        self.reads += place[-2] != slice(8, 24)  # of which it is known again
        return self.array[place]


@pytest.fixture(autouse=True)
def reference():
    with gp.use_device("reference"):
        yield


@pytest.fixture
def x():
    return np.random.default_rng(3).integers(0, 256, (33, 40)).astype(np.uint8)


@gp.pipeline
def halved(x):
    return gp.ScalarField(x) / 2


@gp.pipeline
def above(x):
    """Results that need none of the reductions."""
    f = gp.ScalarField(x)
    return f > 100, f.max(), np.count_nonzero(f > 100), f.sum(axis=0)


@gp.pipeline
def scaled(x):
    """Results that need a reduction."""
    f = gp.ScalarField(x)
    return f / f.max(), f.max()


def wanted(x):
    """The results of the three for an image, by NumPy."""
    return {
        halved: (x / np.float32(2),),
        above: (x > 100, x.max(), np.count_nonzero(x > 100), x.sum(0)),
        scaled: (x / np.float32(x.max()), x.max()),
    }


def check(result, expected):
    result = result if isinstance(result, tuple) else (result,)
    assert len(result) == len(expected)
    for one, other in zip(result, expected, strict=True):
        np.testing.assert_array_equal(one[...], other)


@pytest.mark.parametrize("function", [halved, above, scaled], ids=lambda each: each.name)
@pytest.mark.parametrize("out", ["y.npy", "y.tif", "y.h5", "y.h5:/of/one", "y.zarr", "y.zarr/of/one"])
def test_nothing_is_computed_again(tmp_path, x, function, out, capsys):
    package = {"t": "tifffile", "h": "h5py", "z": "zarr"}.get(out[2])
    if package:
        pytest.importorskip(package)
    if function is above and out == "y.tif":
        pytest.skip("no truth values in TIFF files")
    source, file = Source(x), tmp_path / out.partition("/")[0].partition(":")[0]

    def run():
        return gp.stream(function, source, (f"{tmp_path}/{out}",), chunks=CHUNKS, resume=True)

    check(run(), wanted(x)[function])
    reads, time = source.reads, os.stat(file).st_mtime_ns
    capsys.readouterr()
    for _ in range(2):
        check(run(), wanted(x)[function])
    assert source.reads == reads >= 5 and os.stat(file).st_mtime_ns == time
    assert capsys.readouterr().err.count(" were done before\n") == 2
    name = {"y.h5": "y.h5:data", "y.h5:/of/one": "y.h5:of:one", "y.zarr/of/one": "y.zarr:of:one"}.get(out, out)
    assert sorted(each.name for each in tmp_path.iterdir()) == [file.name, f"{name}.gpuop-stream"]


@pytest.mark.parametrize("function", [above, scaled], ids=lambda each: each.name)
@pytest.mark.parametrize("chunks", [CHUNKS, (33, 40)], ids=["windows", "calls"])
def test_values_of_images(tmp_path, x, function, chunks):
    """Each image has its own; of one that is damaged the others stay."""
    images = np.stack([x, x // 2, 255 - x])
    source = Source(images)
    expected = [np.stack(each) for each in zip(*(wanted(image)[function] for image in images), strict=True)]

    def run():
        out = (tmp_path / "y.npy",)
        return gp.stream(function, source, out, batch=1, chunks=chunks, progress=False, resume=True)

    check(run(), expected)
    reads = source.reads
    check(run(), expected)
    assert source.reads == reads
    np.load(tmp_path / "y.npy", mmap_mode="r+")[1, 5] = 0
    check(run(), expected)
    assert reads < source.reads <= reads + 2  # the chunk, and one by which it is known what parts are like
    check(run(), expected)


@pytest.mark.parametrize("out", ["y.npy", "y.h5", "y.zarr"])
def test_results_that_were_changed_or_removed(tmp_path, x, out):
    """Results that were written over are computed again, and missing ones are all made anew, also of another stream."""
    module = pytest.importorskip({"y.npy": "numpy", "y.h5": "h5py", "y.zarr": "zarr"}[out])
    source, path = Source(x), tmp_path / out

    def run(function=halved):
        return gp.stream(function, source, (path,), chunks=CHUNKS, progress=False, resume=True)

    check(run(), wanted(x)[halved])
    if out == "y.npy":
        np.load(path, mmap_mode="r+")[20] = 7
    elif out == "y.h5":
        with module.File(path, "r+") as file:
            file["data"][20] = 7
    else:
        module.open_array(path, mode="r+")[20] = 7
    reads = source.reads
    check(run(), wanted(x)[halved])
    assert source.reads == reads + 1
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    check(run(above), wanted(x)[above])


def test_damaged_notes_are_none(tmp_path, x):
    out = str(tmp_path / "y.npy")
    gp.stream(halved, x, out, chunks=CHUNKS, progress=False, resume=True)
    (notes,) = tmp_path.glob("*.gpuop-stream")
    first, *lines = notes.read_bytes().split(b"\n")
    np.load(out, mmap_mode="r+")[:] = -1
    lines[1] = lines[1].replace(b"[", b"]", 1)
    notes.write_bytes(b"\n".join([first, *lines]))
    gp.stream(halved, x, out, chunks=CHUNKS, progress=False, resume=True)
    np.testing.assert_array_equal(np.load(out), np.float32(x) / 2)


def test_other_streams_are_told_from_one_that_is_done(tmp_path, x):
    """As from one that is not: nothing is computed, and the result stays. Without `resume=` it is made anew, and nothing kept."""
    file, out, left = tmp_path / "x.npy", tmp_path / "y.npy", tmp_path / "y.npy.gpuop-stream"
    np.save(file, x)

    def run(function=halved, chunks=CHUNKS, resume=True):
        return gp.stream(function, file, out, chunks=chunks, progress=False, resume=resume)

    run()
    with pytest.raises(SemanticError, match="of another stream, as these differ: the program; delete the result"):
        run(lambda x: gp.ScalarField(x) / 3)
    with pytest.raises(SemanticError, match=r"differ: `chunks=` \(8×40 then, 16×40 now\)"):
        run(chunks=(16, 40))
    os.utime(file, (0, 0))
    with pytest.raises(SemanticError, match="differ: a file of `x` "):
        run()
    check(np.load(out), wanted(x)[halved])
    assert left.exists()
    np.testing.assert_array_equal(run(lambda x: gp.ScalarField(x) + 3, resume=False), x + 3)
    assert not left.exists()
    check(run(), wanted(x)[halved])  # which is not known to be done


def test_what_differs_is_told_by_its_name(tmp_path, x):
    """Constants then and now, files when they were written, arrays by their variables; what is deleted begins anew."""
    file, out, flat = tmp_path / "x.npy", tmp_path / "y.npy", np.ones(40)
    table = gp.ScalarField(np.arange(40, dtype="f"))
    np.save(file, x)

    def scaled(x, *, by=1.0):
        return gp.ScalarField(x) * by + gp.ScalarField(flat).sum() + table.sum()

    def run(**constants):
        return gp.stream(scaled, file, out, chunks=CHUNKS, progress=False, resume=True, **constants)

    def refused(what, **constants):
        with pytest.raises(
            SemanticError, match=f"these differ: {what}; delete the result, or this file, and `resume=True`"
        ):
            run(**constants)

    run(by=2.0)
    refused(r"`by=` \(2.0 then, 1.5 now\)", by=1.5)
    flat[3] = 2
    refused("the captured array `flat`", by=2.0)
    flat[3], table = 1, gp.ScalarField(np.ones(40, dtype="f"))
    refused("the captured array `table`", by=2.0)
    table = gp.ScalarField(np.arange(40, dtype="f"))
    os.utime(file, (0, 10**9))
    when = r"\d+-\d\d-\d\d \d\d:\d\d:\d\d"
    refused(rf"a file of `x` \({file}, written {when}.* then, {file}, written {when} now\)", by=2.0)
    out.unlink()
    np.testing.assert_allclose(run(by=2.0), x * 2.0 + 40 + 780, rtol=1e-5)


@pytest.mark.parametrize("package", ["h5py", "zarr"])
def test_arrays_of_one_file_are_done_each_by_itself(tmp_path, x, package):
    """And a stream that reads one goes on after one that has made it, however often."""
    pytest.importorskip(package)
    path = f"{tmp_path}/y.h5:" if package == "h5py" else f"{tmp_path}/y.zarr"
    source, reads, first = Source(x), [], f"{tmp_path}/y.h5" if package == "h5py" else f"{path}/data"
    for _ in range(3):
        check(gp.stream(above, source, (first,), chunks=CHUNKS, progress=False, resume=True), wanted(x)[above])
        result = gp.stream(halved, source, f"{path}/in/b", chunks=CHUNKS, progress=False, resume=True)
        check(result, wanted(x)[halved])
        del result
        reads.append(source.reads)
        again = gp.stream(halved, f"{path}/in/b", tmp_path / "z.npy", chunks=CHUNKS, progress=False, resume=True)
        check(again, (x / np.float32(4),))
    assert len({*reads}) == 1


def test_several_results(tmp_path, x):
    """Are done together; one in another file is another stream's."""
    source, names = Source(x), [tmp_path / name for name in ("a.npy", "b.npy", "c.npy")]

    def run(*outs):
        two = gp.pipeline(lambda x: (gp.ScalarField(x) + 1, gp.ScalarField(x) > 9))
        return gp.stream(two, source, outs, chunks=CHUNKS, progress=False, resume=True)

    for _ in range(2):
        check(run(*names[:2]), (x + 1, x > 9))
    assert source.reads == 5
    np.save(names[2], x > 9)
    with pytest.raises(SemanticError, match=r"these differ: `out=` \(.*a\.npy .*b\.npy then, .*a\.npy .*c\.npy now\)"):
        run(names[0], names[2])
    np.save(names[1], x > 100)
    check(run(*names[:2]), (x + 1, x > 9))
