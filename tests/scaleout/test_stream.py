"""`gp.stream`: window by window, from files to files; killed, gone on with, and nothing is computed twice."""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

import gpuop as gp
from gpuop.base.errors import SemanticError
from gpuop.dsl import *
from gpuop.fusion.windows.footprint import Footprint
from gpuop.fusion.windows.gather import window_of
from gpuop.scaleout.stream.chunking import Chunking, choose_chunks
from gpuop.scaleout.stream.stores import written


@gp.operator
def mean(f):
    around = (-1, 0, 1)
    return sum(_readTensor(f, _row + a, _column + b) for a in around for b in around) / 9


@gp.pipeline
def program(x):
    return mean(mean(gp.ScalarField(x) / 255.0))


@gp.pipeline
def scaled(x):
    f = mean(gp.ScalarField(x) / 255.0)
    return f - f.max(), np.count_nonzero(f > 0.5)


@gp.pipeline
def counted(x):
    f = mean(gp.ScalarField(x) / 255.0)
    return f > 0.5, np.count_nonzero(f > 0.5), f.max() - gp.ScalarField(x).min()


MIDDLE = (slice(8, 24), slice(12, 28))  # by which it is known again


class Source:
    """An array that notes what windows read of it, and fails after so many reads."""

    def __init__(self, array, most=1000, failing=None):
        self.array, self.most, self.failing = array, most, failing
        self.shape, self.dtype, self.reads = array.shape, array.dtype, []

    def __getitem__(self, place):
        if place != MIDDLE:
            if len(self.reads) == self.most:
                self.failing()
            self.reads.append((place[0].start, place[1].start))
        return self.array[place]


@pytest.fixture
def x():
    return np.random.default_rng(3).integers(0, 256, (33, 40)).astype(np.uint8)


@pytest.fixture
def reference():
    with gp.use_device("reference"):
        yield


@pytest.mark.parametrize("ending", [".npy", ".tif"])
def test_files_in_files_out(reference, tmp_path, x, ending):
    if ending == ".tif":
        pytest.importorskip("tifffile")
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / f"y{ending}"
    result, bright = gp.stream(scaled, tmp_path / "x.npy", (out,), chunks=(8, 16), progress=False)
    maps = re.findall(rf" {re.escape(str(out))}\n.*?\nRss: +(\d+) kB", Path("/proc/self/smaps").read_text(), re.DOTALL)
    assert maps == ["0"], "no page stays in this process"
    expected = ndimage.uniform_filter(x / 255.0, 3, mode="nearest")
    np.testing.assert_allclose(result, expected - expected.max(), atol=1e-6)
    assert isinstance(result, np.memmap) and bright == (expected > 0.5).sum()
    np.testing.assert_array_equal(result, scaled(x)[0])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.npy", out.name]


def test_on_devices_in_memory_and_in_batches(device, x, capsys):
    np.testing.assert_array_equal(gp.stream(program, x, chunks=(16, 40)), program(x))
    message = capsys.readouterr().err.splitlines()
    assert message[0] == "program: 3 chunks of 16×40 of a grid 33×40, halo 2+2, 2+2, 72.7% of points recomputed"
    assert message[-1].startswith("program: 3 of 3 windows in")
    images = np.stack([x, x[::-1]])
    result = gp.stream(program, images, batch=1, progress=False)
    np.testing.assert_array_equal(result[1], program(np.ascontiguousarray(x[::-1])))


@pytest.mark.parametrize("chunks", [(33, 40), (9, 40)], ids=["calls", "windows"])
def test_images_of_a_batch_are_reduced_each_by_itself(reference, x, chunks, capsys):
    images = np.stack([x, x // 2, x[::-1] // 3]).reshape(3, 1, 33, 40)
    over = images / 255.0
    results = [ndimage.uniform_filter(each[0], 3, mode="nearest") for each in over]
    result, bright = gp.stream(scaled, images, batch=2, chunks=chunks)
    np.testing.assert_allclose(result, [[each - each.max()] for each in results], atol=1e-6)
    np.testing.assert_array_equal(bright, [[np.count_nonzero(each > 0.5)] for each in results])
    passes, each = (1, 1) if chunks == (33, 40) else (2, 4)
    message = capsys.readouterr().err
    assert f" {3 * passes * each} of {3 * passes * each} windows" in message and ("2 passes" in message) == (
        passes == 2
    )


def test_images_of_which_only_values_are_wanted(reference, x, capsys):
    images = np.stack([x, x // 2])

    @gp.pipeline
    def told(image, weights):
        count = gp.ndimage.label(gp.ScalarField(image) > 200)[1]
        return count, gp.ScalarField(image).max(axis=1), gp.ScalarField(weights) * 2

    count, most, double = gp.stream(told, (images, np.arange(3.0, dtype="f")), batch=1)
    np.testing.assert_array_equal(count, [ndimage.label(each > 200)[1] for each in images])
    np.testing.assert_array_equal(most, images.max(axis=2))
    np.testing.assert_array_equal(double, [[0, 2, 4]] * 2)
    assert "2 of 2 windows" in capsys.readouterr().err


@pytest.mark.parametrize("function", [scaled, counted])
def test_reductions_of_images_go_on(reference, tmp_path, x, function):
    """A stream that was killed as it wrote results, of which those of an image are there, and one is damaged then."""
    images, out = np.stack([x, 255 - x, x // 2]), tmp_path / "y.npy"
    (whole, bright, *_), paused = gp.stream(function, images, batch=1, chunks=(20, 40), progress=False), iter(range(3))

    def pause(*args):
        next(paused)
        return written(*args)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gpuop.scaleout.stream.stream.written", pause)
        with pytest.raises(StopIteration):
            gp.stream(function, images, (out,), batch=1, chunks=(20, 40), progress=False)
    np.load(out, mmap_mode="r+")[0, 5] = 0
    result = gp.stream(function, images, (out,), batch=1, chunks=(20, 40), progress=False, resume=True)
    np.testing.assert_array_equal(result[0], whole)
    np.testing.assert_array_equal(result[1], bright)
    assert len(set(bright)) == 3


@pytest.mark.parametrize("on", [*dict.fromkeys(("reference", gp.devices()[0].name))])
def test_statistics_are_computed_with_results_that_need_none(on, x, capsys):
    with gp.use_device(on):
        result = gp.stream(counted, x, chunks=(33, 20))
    f = ndimage.uniform_filter(x / 255.0, 3, mode="nearest")
    for array, whole in zip(result, (f > 0.5, np.count_nonzero(f > 0.5), f.max() - x.min()), strict=True):
        np.testing.assert_allclose(array, whole, rtol=1e-5)
    message = capsys.readouterr().err
    assert "passes" not in message and "2 of 2 windows" in message
    assert counted.footprint(x).at_once and not scaled.footprint(x).at_once


@pytest.mark.parametrize("function", [program, scaled])
def test_nothing_is_lost_or_computed_twice(reference, tmp_path, x, function):
    out, reads = tmp_path / "y.npy", []

    def fail():
        raise OSError("the disk is gone")

    several, result = function is scaled, None
    for most in (4, 9 if function is scaled else 3, 1000):
        source = Source(x, most, fail)
        with suppress(OSError):
            result = gp.stream(function, source, (out,), chunks=(8, 20), progress=False, resume=True)
        reads += source.reads
    result, whole = (result[0], function(x)[0]) if several else (result, function(x))
    np.testing.assert_array_equal(result, whole)
    # of a stage that was done one chunk is read again, to know what parts are like
    assert len(reads) == (10 * 2 + 1 if several else 10)


KILLED = """
import os, signal, sys, numpy as np, gpuop as gp
from gpuop.dsl import *

@gp.operator
def mean(f):
    around = (-1, 0, 1)
    return sum(_readTensor(f, _row + a, _column + b) for a in around for b in around) / 9

class Source:
    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
    def __getitem__(self, place):
        if place[0].stop > 26:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.array[place]

with gp.use_device("reference"):
    program = lambda x: mean(mean(gp.ScalarField(x) / 255.0))
    gp.stream(program, Source(np.load(sys.argv[1])), sys.argv[2], chunks=(4, 40), progress=False)
"""


def test_a_process_that_was_killed(reference, tmp_path, x):
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "y.npy"
    ended = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "x.npy", out], check=False)
    assert ended.returncode == -signal.SIGKILL
    journal = tmp_path / "y.npy.gpuop-stream"
    done = [json.loads(line)[1] for line in journal.read_text().splitlines()[1:]]
    with open(journal, "a") as file:
        file.write("[0, [8, ")  # what a kill leaves of a line
    source = Source(x)
    result = gp.stream(program, source, out, chunks=(4, 40), progress=False, resume=True)
    np.testing.assert_array_equal(result, program(x))
    assert len(source.reads) == 9 - len(done)


def test_what_is_left_of_other_streams(reference, tmp_path, x):
    out, journal = tmp_path / "y.npy", tmp_path / "y.npy.gpuop-stream"
    with pytest.raises(ZeroDivisionError):
        gp.stream(program, Source(x, 6, lambda: 1 / 0), out, chunks=(8, 20), progress=False)
    with pytest.raises(SemanticError, match=r"these differ: `chunks=` \(8×20 then, 8×40 now\); delete the result"):
        gp.stream(program, Source(x), out, chunks=(8, 40), progress=False, resume=True)
    with open(journal, "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(SemanticError, match="another process streams to this file"):
            gp.stream(program, x, out, chunks=(8, 40), progress=False)
    np.testing.assert_array_equal(gp.stream(program, x, out, chunks=(8, 40), progress=False), program(x))
    journal.write_bytes(b"no lines\n\n")
    with pytest.raises(SemanticError, match="these differ: what it begins with"):
        gp.stream(program, x, out, progress=False, resume=True)


def test_only_the_same_stream_goes_on(reference, tmp_path, x, capsys, monkeypatch):
    """Differences have names in the message, and so has the work that is done."""
    out, file, gain, other = tmp_path / "y.npy", tmp_path / "x.npy", gp.Parameter(2.0), x.copy()
    other[16, 20] ^= 1
    table = gp.ScalarField(np.arange(40, dtype="f"))

    def run(source=x, table=table, resume=True):
        scaled = gp.pipeline(lambda x: gp.ScalarField(x) * gain + table.sum())
        return gp.stream(scaled, source, out, chunks=(8, 20), resume=resume)

    def refused(what, *args):
        with pytest.raises(SemanticError, match=f"these differ: {what}; delete the result"):
            run(*args)

    def left(source):
        """The files of a stream that stops after some windows."""
        reads = iter(range(4))
        with monkeypatch.context() as patched:
            patched.setattr("gpuop.scaleout.stream.stream.window_of", lambda *a: (next(reads), window_of(*a))[1])
            with pytest.raises(StopIteration):
                run(source, resume=False)

    left(x)
    table = gp.ScalarField(np.arange(40, 0, -1, dtype="f"))
    refused("the captured array `table`", x, table)
    refused("the values of `x`", other)
    gain.set(5.0)
    refused(r"Parameter `gain` \(2.0 then, 5.0 now\)")
    gain.set(2.0)
    capsys.readouterr()
    expected = x * np.float32(2) + np.arange(40, dtype="f").sum()
    np.testing.assert_array_equal(run(), expected)
    message = capsys.readouterr().err.splitlines()
    assert (
        message[1].endswith(": 4 of 10 windows were done before") and "10 windows, 4 of them before, in" in message[-1]
    )

    np.save(file, x)
    left(file)
    np.save(file, x)  # written again
    refused("a file of `x` .*", file)
    left(Source(x))
    refused("the values of `x`", Source(other))
    out.unlink()
    np.testing.assert_array_equal(run(Source(x)), expected)


@pytest.mark.parametrize("ending", [".npy", ".tif"])
def test_results_that_were_changed_since(reference, tmp_path, x, ending):
    """Results that are not as they were written are computed again, and only they."""
    if ending == ".tif":
        pytest.importorskip("tifffile")
    out, other = tmp_path / f"y{ending}", tmp_path / "z.npy"
    two = gp.pipeline(lambda x: (gp.ScalarField(x) * 2, gp.ScalarField(x) + 1))
    for change, counts in (
        (lambda: os.truncate(out, out.stat().st_size - 600), (3, 4)),
        (lambda: np.save(other, np.zeros_like(x)), (0,)),
        (lambda: gp.stream(lambda x: gp.ScalarField(x) - 1, x, other, progress=False), (0,)),
    ):
        with pytest.raises(ZeroDivisionError):
            gp.stream(two, Source(x, 8, lambda: 1 / 0), (out, other), chunks=(4, 40), progress=False)
        change()
        source = Source(x)
        result = gp.stream(two, source, (out, other), chunks=(4, 40), progress=False, resume=True)
        np.testing.assert_array_equal(result, [x * 2, x + 1])
        assert 9 - len(source.reads) in counts


def test_progress_counts_windows_once(reference, tmp_path, x, capsys):
    """A stage that is done is looked at again, for what its parts are like."""
    for most in (7, 1000):
        with suppress(ZeroDivisionError):
            gp.stream(scaled, Source(x, most, lambda: 1 / 0), (tmp_path / "y.npy",), chunks=(8, 40), resume=True)
    assert "10 of 10 windows, 7 of them before, in" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("chunks", ["auto", (8, 40)], ids=str)
def test_a_histogram_that_is_larger_than_the_image(reference, x, chunks):
    """The grid is the image's: the counts can be cut nowhere."""

    @gp.operator(outputs=gp.FieldType((5000,), dtype="int32"))
    def counts(f):
        _globalThreads(f)
        _atomic_inc(_pointerTo(_out0, _convert_int(_readTensor(f))))

    program = gp.pipeline(lambda x: (counts(gp.ScalarField(x)), gp.ScalarField(x) * np.float32(2)))
    result, twice = gp.stream(program, x, chunks=chunks, progress=False)
    np.testing.assert_array_equal(result, np.bincount(x.ravel(), minlength=5000))
    np.testing.assert_array_equal(twice, x * np.float32(2))


def test_no_result_is_written_over_a_source(reference, tmp_path, x):
    file, link, hard = (tmp_path / name for name in ("x.npy", "link.npy", "hard.npy"))
    both, parts, floats = np.zeros((34, 40), "f"), np.zeros((33, 40, 2), "f"), x.astype("f")
    both[:33], parts[..., 0] = x, x
    np.save(file, floats)
    link.symlink_to(file)
    hard.hardlink_to(file)
    mapped = np.lib.format.open_memmap(file)
    for source, out in (
        (both[:33], both[:33]),
        (both[:33], both[1:]),
        (file, file),
        (file, link),
        (file, hard),
        (np.load(file, mmap_mode="r")[:, ::-1], file),
        (np.asarray(mapped), mapped),
        (link, mapped),
    ):
        with pytest.raises(SemanticError, match=r"`out=`.* overlaps `x`, .*stream to another"):
            gp.stream(program, source, out, progress=False)
    np.testing.assert_array_equal(np.load(file), floats)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["hard.npy", "link.npy", "x.npy"]
    np.testing.assert_array_equal(gp.stream(program, parts[..., 0], parts[..., 1], progress=False), program(floats))
    two = gp.pipeline(lambda x: (gp.ScalarField(x) + 1, gp.ScalarField(x) + 2))
    with pytest.raises(SemanticError, match="two results of `out=` lie in the same place"):
        gp.stream(two, floats, (both[:33], both[1:]), progress=False)


@pytest.mark.parametrize("package", ["h5py", "zarr"])
def test_arrays_of_one_file(reference, tmp_path, x, package):
    """One may be made of another, but not in its place."""
    module, path = pytest.importorskip(package), str(tmp_path / ("x.h5" if package == "h5py" else "x.zarr"))
    group = module.File(path, "w") if package == "h5py" else module.open_group(path, mode="w")
    a = group.create_dataset("a", data=x) if package == "h5py" else group.create_array("a", data=x)
    b = (
        group.create_dataset("b", x.shape, "f")
        if package == "h5py"
        else group.create_array("b", shape=x.shape, dtype="f")
    )
    with pytest.raises(SemanticError, match="overlaps `x`"):
        gp.stream(program, b, group["b"], progress=False)
    np.testing.assert_array_equal(gp.stream(program, a, b, chunks=(8, 40), progress=False)[...], program(x))
    name = ":/" if package == "h5py" else "/"
    if package == "h5py":
        group.close()
    with pytest.raises(SemanticError, match="overlaps `x`"):
        gp.stream(program, f"{path}{name}a", path, progress=False)
    np.testing.assert_array_equal(gp.stream(program, x, f"{path}{name}b", progress=False)[...], program(x))
    np.testing.assert_array_equal(gp.stream(program, f"{path}{name}a", progress=False), program(x))
    two = gp.pipeline(lambda x: (gp.ScalarField(x), gp.ScalarField(x) > 99))
    outs = [f"{tmp_path}/{k}{Path(path).suffix}{name}new" for k in range(2)]
    with pytest.raises(ZeroDivisionError):
        gp.stream(two, Source(x, 7, lambda: 1 / 0), outs, chunks=(4, 40), progress=False)
    source = Source(x)
    result = gp.stream(two, source, outs, chunks=(4, 40), progress=False, resume=True)
    np.testing.assert_array_equal([each[...] for each in result], [x, x > 99])
    left = [each.name for each in tmp_path.glob("*.gpuop-stream")]
    assert len(source.reads) < 9 and left == [f"0{Path(path).suffix}:new.gpuop-stream"]


def test_files_that_cannot_be_read(reference, tmp_path, x):
    file = tmp_path / "x.npy"
    with pytest.raises(FileNotFoundError, match=r"x\.npy"):
        gp.stream(program, file)
    np.save(file, x)
    whole = file.read_bytes()
    for left in (b"", b"xx", b"some other format", whole[:-1]):
        file.write_bytes(left)
        with pytest.raises(SemanticError, match=r"x\.npy cannot be read: "):
            gp.stream(program, file)
    for function in (program, lambda x: gp.ScalarField(x).sum()):
        with pytest.raises(SemanticError, match="a grid of 0×5 has none"):
            gp.stream(function, np.zeros((0, 5), "f"))


def test_one_stream_at_a_time(reference, tmp_path, x):
    """Another one of this process is known by what it writes, and one of another process by a locked file."""
    file, link, hard, memory = (
        tmp_path / "y.npy",
        tmp_path / "link.npy",
        tmp_path / "hard.npy",
        np.zeros((2, 33, 40), "u1"),
    )
    np.save(file, memory[0])
    link.symlink_to(file)
    hard.hardlink_to(file)
    one, two = (gp.pipeline(lambda x, n=n: tuple(gp.ScalarField(x) + k for k in range(n))) for n in (1, 2))
    for first, second in ((file, link), (file, hard), (memory[0], memory[0, ::-1]), (link, file)):
        source = Source(x, 3, lambda second=second: gp.stream(two, x, (tmp_path / "z.npy", second), progress=False))
        with pytest.raises(SemanticError, match=r"another stream writes where `out=`.*: wait until it is done"):
            gp.stream(one, source, (first,), chunks=(8, 40), progress=False)
    np.testing.assert_array_equal(gp.stream(one, x, (memory[1],), progress=False)[0], x)
    with open(f"{file}.gpuop-stream", "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        for second in (file, link):
            with pytest.raises(SemanticError, match="another process streams to this file"):
                gp.stream(two, x, (tmp_path / "z.npy", second), progress=False)
    assert not list(tmp_path.glob("z.npy*"))
    np.testing.assert_array_equal(gp.stream(two, x, (tmp_path / "z.npy", link), progress=False)[1], x + 1)
    assert not list(tmp_path.glob("*.gpuop-stream"))


def test_results_that_tiff_cannot_have(reference, tmp_path, x):
    pytest.importorskip("tifffile")
    for function, source, message in (
        (lambda x: gp.ScalarField(x) > 0.5, x, r'eight bools in a byte.*give the result as `.astype\("uint8"\)`'),
        (lambda x: gp.ScalarField(x) * 2, x[0], r"two axes, but the result has one; stream to \.npy"),
    ):
        with pytest.raises(SemanticError, match=message):
            gp.stream(function, source, tmp_path / "y.tif", progress=False)
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments(reference, tmp_path, x):
    locked = np.zeros_like(x, "f")
    locked.flags.writeable = False
    for arguments, message in (
        ({"source": "x.raw"}, r"files are \.npy, \.tif, \.zarr .*, or \.h5"),
        (
            {"source": ([1, 2],)},
            "a list as a source has paths of files, not an int; arrays, one for each argument, are a tuple",
        ),
        ({"source": 1}, r"a source is an array, its path, or a list of paths, not an int\n"),
        ({"source": x, "out": np.zeros((3, 3), "f")}, r"`out=` is \(3, 3\) float32, and the result \(33, 40\) float32"),
        ({"source": x, "chunks": (4,)}, '`chunks=` is "auto" or an extent for each axis'),
        ({"source": x, "resume": True}, "`resume=` needs a file for the results"),
        ({"source": x, "batch": -1}, "`batch=` is how many leading axes count images, from 0 to 1, not -1"),
        ({"source": x, "batch": 2}, "from 0 to 1, not 2: the pipeline gets the others"),
        ({"source": np.float32(3)}, "a 0-D array has no axes; call the pipeline itself"),
        ({"source": ()}, "`source=` has no arrays; give one for each argument"),
        (
            {"source": (x,) * 9, "batch": 1},
            "`source=` has 9 arrays, one for each argument, .* takes .; images in files of their own .* the list of their paths",
        ),
        ({"source": x, "chunks": None}, '`chunks=` is "auto" or .* not None'),
        ({"source": x, "out": locked}, "`out=` is a read-only array; give one that can be written"),
        ({"source": x, "out": (None, None)}, "`out=` has 2 arrays, and 1 results are of the grid"),
    ):
        with pytest.raises(SemanticError, match=message):
            gp.stream(program, **arguments, progress=False)


def test_arguments_that_nobody_takes(reference, tmp_path, x, capsys):
    with pytest.raises(
        SemanticError, match=r"neither gp\.stream nor pipeline `program` takes `memory=`; `chunks=` says how"
    ):
        gp.stream(program, x, memory=1e9)
    blurred = gp.pipeline(lambda x, sigma=1.0: gp.ScalarField(x) * sigma)
    for wrong, near in (("sgima", "sigma"), ("chunk", "chunks"), ("resum", "resume")):
        with pytest.raises(SemanticError, match=rf"takes `{wrong}=`\. Did you mean '{near}'\?(?!; `chunks=`)"):
            gp.stream(blurred, x, **{wrong: 2})
    with pytest.raises(FileNotFoundError, match=r"there is no such folder: .*none'"):
        gp.stream(program, x, tmp_path / "none" / "y.npy")
    capsys.readouterr()
    gp.stream(scaled, x, chunks=(16, 40))
    assert "63.6% of points recomputed, 2 passes that each compute what they need\n" in capsys.readouterr().err
    apart = x[:, ::3]  # values that do not lie together are compared too
    result = gp.stream(program, apart, tmp_path / "y.npy", chunks=(8, 1), progress=False)
    np.testing.assert_array_equal(result, program(np.ascontiguousarray(apart)))


def test_memory_of_windows_is_used_again(device):
    """Windows that are read ahead leave results as they are, and results that are arguments too."""
    image = np.random.default_rng(7).random((40, 30), np.float32)[:, ::2]
    same = gp.pipeline(lambda x: (gp.ScalarField(x), mean(gp.ScalarField(x))))
    once, around = gp.stream(same, image, chunks=(2, 15), progress=False)
    np.testing.assert_array_equal(once, image)
    np.testing.assert_allclose(around, ndimage.uniform_filter(image, 3, mode="nearest"), rtol=1e-5)


def test_chunks_of_one_shape_and_as_large_as_memory_allows():
    for n, c, halo, periodic in (
        (20, 6, (2, 1), ()),
        (20, 1, (0, 3), ()),
        (23, 7, (5, 0), (0,)),
        (9, 4, (3, 3), ()),
        (5, 9, (1, 1), ()),
    ):
        cut = Chunking(Footprint((n,), (halo,), {}, periodic, ()), (c,))
        points = [cut.points(place) for place in cut.places()]
        assert points[0][0] == (0,) and points[-1][1] == (n,) and all(a[1] == b[0] for a, b in pairwise(points))
        shapes = set()
        for place, ((start,), (stop,)) in zip(cut.places(), points, strict=True):
            (first,), (last,) = cut.computed(place)
            assert 0 <= first <= start < stop <= last <= n
            ((begin, end),) = cut.needed.window((first,), (last,))
            shapes.add(end - begin)
        assert len(shapes) == 1 or c + sum(halo) >= n
    needed = Footprint((1000, 1000, 1000), ((2, 2), (2, 2), (2, 2)), {}, (), ())
    assert choose_chunks(needed, 8, (1, 1, 1), 1 << 40, 1 << 40).chunk == (1000, 1000, 1000)
    some = choose_chunks(needed, 8, (64, 64, 64), 1 << 26, 1 << 26)
    assert all(c % 64 == 0 or c == 1000 for c in some.chunk) and some.recomputed < 0.2
    windows = [some.needed.window(*some.computed(place)) for place in some.places()]
    assert sum(math.prod(b - a for a, b in window) for window in windows) == round((1 + some.recomputed) * 1000**3)
    flat = choose_chunks(Footprint((20_000, 30_000), ((2, 2), (2, 2)), {}, (), ()), 12, (1, 1), 1 << 26, 1 << 28)
    assert flat.chunk[1] == 30_000 and flat.recomputed < 0.05  # rows as they lie in files
    assert (
        choose_chunks(Footprint((1000, 1000), ((0, 0), (2, 2)), {1: "all"}, (), ()), 4, (1, 1), 1 << 20, 1 << 20).chunk[
            1
        ]
        == 1000
    )
    wide = Footprint((300, 400, 400), ((7, 7),) * 3, {}, (), ())
    near, more = (choose_chunks(wide, 14, (1, 1, 1), 1 << 26, most) for most in (1 << 26, 1 << 28))
    assert more.recomputed < 0.31 < 0.6 < near.recomputed
