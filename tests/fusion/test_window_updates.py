"""Atomic updates in windows: the same operation combines the parts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.errors import SemanticError
from gpuop.dsl import *
from gpuop.runtime.devices import current
from tests.harness import image

from .test_windows import blurred, parts, taken

COUNT = gp.FieldType(7, (), "int32")


OUTPUTS = COUNT, gp.FieldType((), 2), gp.FieldType(()), gp.FieldType(5, (), "uint32")


@gp.operator(outputs=OUTPUTS, default=(3, -2.5, 1, 1))
def counted(f):
    _globalThreads(f)
    x = _readTensor(f)
    _atomic_inc(_pointerTo(_out0, _convert_int(x * 9) - 1))
    _atomic_max(_pointerTo(_out1, 0), x)
    _atomic_max(_pointerTo(_out1, 1), x + _convert_float(_row * _columns + _column))
    _atomic_min(_pointerTo(_out2), x)
    _atomic_xor(_pointerTo(_out3, _column % 5), _as_uint(x))


@gp.operator(outputs=(gp.FieldType((10, 11)), gp.FieldType((10, 11), (), "int64")))
def doubled(f):
    """Its first output is written, the second one updated at other points of the same grid."""
    x = _readTensor(f, _row, _column - 1)
    _writeTensor(_out0, x * 2)
    _atomic_sub(_pointerTo(_out1, _convert_int(x * 4), _row), _convert_long(_column) * 2**33)


@gp.pipeline
def program(x):
    field = blurred(gp.ScalarField(x))
    counts, most, least, bits = counted(field)
    twice, sums = doubled(field + most[0] - least)
    return blurred(twice) + sums, counts, most, least, bits, sums


def expected(x):
    """By NumPy, of the blurred values."""
    bins, shift = (x * 9).astype(int) - 1, x + x.max() - x.min()
    counts = np.full(7, 3) + np.bincount(bins[(bins >= 0) & (bins < 7)], minlength=7)
    bits = [np.bitwise_xor.reduce(x[:, k::5].view(np.uint32), axis=None) ^ 1 for k in range(5)]
    most = np.array([x.max(), (x + np.arange(110, dtype="f").reshape(10, 11)).max()])
    left = np.concatenate([shift[:, :1], shift[:, :-1]], axis=1)
    sums = np.zeros((10, 11), np.int64)
    rows, columns = np.indices(x.shape)
    np.subtract.at(sums, ((left * 4).astype(int), rows), columns * 2**33)
    return counts, most, x.min(), bits, sums


def in_stages(pipeline, x, windows):
    """The points of windows, and what all of them make together; parts are pickled, and joined in another order."""
    needed, totals = pipeline.footprint(x), ()
    values = [(ends, np.ascontiguousarray(taken(x, needed.window(*ends)))) for ends in windows]
    for stage in range(len(needed.stages)):
        results = [pipeline.window(x.shape, *ends, stage=stage, known=totals)(part) for ends, part in values]
        totals += needed.known(pickle.loads(pickle.dumps(results[::-1])))
    return [(ends, pipeline.window(x.shape, *ends, known=totals)(part)) for ends, part in values]


def test_updates_are_stages(device):
    x = image(10, 11)
    whole = program(x)
    for result, total in zip(whole[1:], expected(gp.pipeline(lambda x: blurred(gp.ScalarField(x)))(x)), strict=True):
        np.testing.assert_array_equal(result, total)
    for (start, stop), results in in_stages(
        program, x, parts(x.shape, 5, 11) if device != "reference" else parts(x.shape, 2, 3)
    ):
        np.testing.assert_array_equal(results[0], whole[0][tuple(map(slice, start, stop))])
        for result, one in zip(results[1:], whole[1:], strict=True):
            np.testing.assert_array_equal(result, one)
    stages = program.footprint(x).stages
    assert [len(stage) for stage in stages] == [4, 1] and "`out3`, by `_atomic_xor`" in "".join(stages[0])


def test_updates_in_streams_and_on_dask(tmp_path):
    da, gd = pytest.importorskip("dask.array"), pytest.importorskip("gpuop.dask")
    x = image(10, 11)
    with gp.use_device("reference"):
        whole = program(x)
        streamed = gp.stream(program, x, (tmp_path / "y.npy",), chunks=(5, 11), progress=False)
        blocks = [each.compute(scheduler="synchronous") for each in gd.map_blocks(program, da.from_array(x, (4, 11)))]
    for result in (streamed, blocks):
        for one, another in zip(result, whole, strict=True):
            np.testing.assert_array_equal(one, another)


class Failing:
    """An array that can be read so many times."""

    def __init__(self, array, most):
        self.array, self.shape, self.dtype, self.most, self.reads = array, array.shape, array.dtype, most, 0

    def __getitem__(self, place):
        self.reads += 1
        if self.reads > self.most:
            raise OSError("the disk is gone")
        return self.array[place]


def test_streams_go_on_with_what_was_counted(tmp_path):
    x, out = image(12, 8), tmp_path / "y.npy"
    program = gp.pipeline(lambda x: gp.ScalarField(x) * np.histogram(gp.ScalarField(x), 3, (0, 1))[0].max())
    with gp.use_device("reference"):
        with pytest.raises(OSError, match="the disk"):
            gp.stream(program, Failing(x, 6), out, chunks=(3, 8), progress=False)
        source = Failing(x, 100)
        result = gp.stream(program, source, out, chunks=(3, 8), progress=False, resume=True)
    assert source.reads <= 5  # one to know what parts are like, and what was not written
    np.testing.assert_array_equal(result, x * np.float32(np.histogram(x, 3, (0, 1))[0].max()))


def test_extremes_of_floats_are_those_of_the_whole():
    """NaN is no number, and -0 comes before 0, in whatever window they are."""

    @gp.operator(outputs=(gp.FieldType(()), gp.FieldType(())), default=(np.nan, np.nan))
    def ends(f):
        _globalThreads(f)
        _atomic_min(_pointerTo(_out0), _readTensor(f))
        _atomic_max(_pointerTo(_out1), _readTensor(f))

    pipeline = gp.pipeline(lambda x: ends(gp.ScalarField(x)))
    with gp.use_device("reference"):
        for values in ([0, -0.0, np.nan, 0], [np.nan] * 4, [np.nan, np.nan, 5, -0.0]):
            x, bits = np.array(values, "f"), np.uint32
            for _, result in in_stages(pipeline, x, parts((4,), 2)):
                assert [a.view(bits) for a in result] == [a.view(bits) for a in map(np.asarray, pipeline(x))]


def one(body, **options):
    """A pipeline of an operator that updates a row."""
    return gp.pipeline(lambda x: gp.operator(outputs=COUNT, **options)(body)(gp.ScalarField(x)))


def test_updates_whose_order_matters_are_refused():
    x = image(6, 8)

    def numbered(f):
        _globalThreads(f)
        _atomic_max(_pointerTo(_out0, 1), _atomic_add(_pointerTo(_out0, 0), _convert_int(_readTensor(f))))

    def left(f):
        _globalThreads(f)
        _atomic_sub(_pointerTo(_out0, 1), _atomic_sub(_pointerTo(_out0, 0), _convert_int(_readTensor(f))))

    def left_of_ones(f):
        _globalThreads(f)
        _atomic_sub(_pointerTo(_out0, 1), _atomic_dec(_pointerTo(_out0, _convert_int(_readTensor(f)))))

    def exchanged(f):
        _globalThreads(f)
        _atomic_xchg(_pointerTo(_out0, _column), _convert_int(_readTensor(f)))

    def several(f):
        _globalThreads(f)
        _atomic_max(_pointerTo(_out0, _column), _convert_int(_readTensor(f)))
        _atomic_inc(_pointerTo(_out0, _row))

    def seen(f):
        _globalThreads(f)
        _atomic_inc(_pointerTo(_out0, _convert_int(_readTensor(f))))
        _atomic_inc(_pointerTo(_out0, _readTensor(_out0, 0)))

    for body, reason in (
        (numbered, "uses what `out0` holds while other threads update it"),
        (left, "uses what `out0` holds while other threads update it"),
        (left_of_ones, "uses what `out0` holds while other threads update it"),
        (exchanged, "updates `out0` by `_atomic_xchg`, whose order matters"),
        (several, "updates `out0` by add and max, whose order matters: give each of them an output of its own"),
        (seen, "uses what `out0` holds"),
    ):
        with pytest.raises(SemanticError, match=rf"must be whole.*operator `{body.__name__}` \(.*:\d+\) {reason}"):
            one(body).window(x.shape, (0, 0), (3, 8))(x[:3])


def test_updates_in_turns_are_refused():
    turns = gp.pipeline(lambda x: gp.iterate(lambda u: u + counted(u)[1].max(), gp.ScalarField(x), times=2))
    reason = turns.footprint(image(9, 11)).whole[0]
    assert "`counted`" in reason and "updates a field that all windows make together" in reason


def test_one_compilation_serves_all_windows_of_one_shape(monkeypatch):
    compiled = []
    backend = type(current())
    make = backend.compile_all
    monkeypatch.setattr(backend, "compile_all", lambda self, kernels: compiled.extend(kernels) or make(self, kernels))
    pipeline, x = gp.pipeline(lambda x: np.histogram(gp.ScalarField(x), 5, (0, 1))[0] + 0), image(31, 13)
    ((_, whole), *_) = in_stages(pipeline, x, [((row, 0), (row + 1, 13)) for row in range(31)])
    assert len(compiled) <= 2  # what counts, and what follows
    np.testing.assert_array_equal(whole, np.histogram(x, 5, (0, 1))[0])


@gp.operator(outputs=gp.FieldType(9, (), "int32"))
def tally(f):
    _globalThreads(f)
    _atomic_inc(_pointerTo(_out0, _convert_int(_readTensor(f))))


def test_counts_that_are_as_many_as_points():
    """Reductions of them are whole in each window, though of the extents of the grid; operators on them are not."""

    @gp.pipeline
    def program(x):
        counts = tally(gp.ScalarField(x))
        return gp.ScalarField(x) + counts.max(), counts.sum(), (counts * 2).max(), tally(counts)

    x = np.array([1, 1, 1, 2, 8, 0, 0, 5, 5], np.float32)
    counts = np.bincount(x.astype(int), minlength=9)
    with gp.use_device("reference"):
        result = gp.stream(program, x, chunks=(2,), progress=False)
    for array, whole in zip(result, (x + 3, 9, 6, np.bincount(counts, minlength=9)), strict=True):
        np.testing.assert_array_equal(array, whole)
