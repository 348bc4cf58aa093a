"""Pipelines on Dask's arrays: whatever the chunks, what is put together of blocks has the bits of one call."""

from __future__ import annotations

import pickle
from time import sleep

import numpy as np
import pytest
from scipy import ndimage

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine.jit.window_call import PipelineWindow
from gpuop.runtime.reference.device import Reference
from tests.fuzz.windowed import WindowedProgram

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
gd = pytest.importorskip("gpuop.dask")
piece_of = pytest.importorskip("gpuop.scaleout.dask.block_program").piece_of
rng = np.random.default_rng(17)


@pytest.fixture(autouse=True)
def at_once():
    with dask.config.set(scheduler="synchronous"), gp.use_device("reference"):
        yield


def chunked(array, *chunks):
    return da.from_array(array, chunks=chunks)


class Store:
    """A store that has slices and says what it reads at once."""

    def __init__(self, array, chunks=None):
        self.array, self.chunks, self.read = array, chunks, []
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __getitem__(self, place):
        result = self.array[place].copy()
        if result.size:  # Dask looks at no points
            self.read.append(tuple((s.start, s.stop) for s in place))
        return result


def stored(array, *chunks):
    return da.from_array(Store(array), chunks=chunks)


def computed(array, *chunks):
    return chunked(array, *chunks) + array.dtype.type(0)


def equal(blocks, whole):
    assert blocks.dtype == whole.dtype and blocks.shape == whole.shape
    result = blocks.compute()
    np.testing.assert_array_equal(result, whole)
    assert all(n for axis in blocks.chunks for n in axis)


def pairs(border):
    """Two stencils, one after the other, that know where they are."""

    @gp.operator
    def step(f):
        around = _readTensor(f, _row - 1, _column + 2, border=border) - 0.5 * _readTensor(
            f, _row + 1, _column, border=border
        )
        return around + _row * 0.25

    return gp.pipeline(lambda image: step(step(gp.ScalarField(image))))


@gp.operator
def mean(f):
    around = (-1, 0, 1)
    return sum(_readTensor(f, _row + a, _column + b) for a in around for b in around) / 9


@gp.pipeline
def smoothed(image, times=2):
    field = gp.ScalarField(image)
    for _ in range(times):
        field = mean(field)
    return field


@pytest.mark.parametrize("chunks", [((1, 1, 4, 5), (3, 6)), (1, 4), (11, 2), (4, 9)], ids=str)
@pytest.mark.parametrize("border", ["clamp", "wrap", "reflect", "symmetric", 0.25])
@pytest.mark.parametrize("value", [chunked, stored, computed])
def test_borders_and_chunks(value, border, chunks):
    image, program = rng.random((11, 9), np.float32), pairs(border)
    equal(gd.map_blocks(program, value(image, *chunks)), program(image))


def test_blocks_read_their_windows():
    image = rng.random((90, 64), np.float32)
    store = Store(image)
    lazy = da.from_array(store, chunks=(30, 64), lock=True)
    blocks = gd.map_blocks(smoothed, lazy)
    assert not store.read
    assert "\n3 tasks compute, which read windows of `image` themselves\n" in gd.explain(smoothed, lazy)
    equal(blocks, smoothed(image))
    assert sorted(store.read) == [((0, 34), (0, 64)), ((28, 62), (0, 64)), ((56, 90), (0, 64))]
    shared = da.stack([blocks, lazy]).compute()  # chunks are there for others
    np.testing.assert_array_equal(shared, [smoothed(image), image])


@pytest.mark.parametrize("chunks", [(30, 64), (7, 64), "unknown"], ids=str)
def test_what_a_store_would_read_again_is_read_in_chunks(chunks):
    image = rng.random((90, 64), np.float32)
    store = Store(image, chunks)
    equal(gd.map_blocks(smoothed, da.from_array(store, chunks=(30, 64))), smoothed(image))
    windows = [((0, 34), (0, 64)), ((28, 62), (0, 64)), ((56, 90), (0, 64))]
    assert (sorted(store.read) == windows) == (chunks == (7, 64))


def test_windows_of_images_and_of_colours_are_read():
    movie = rng.random((3, 2, 60, 9, 3), np.float32)

    @gp.pipeline
    def blurred(image, other):
        return mean(gp.VectorField(image) + gp.VectorField(other))

    lazy, store = chunked(movie, 2, 1, 30, 9, 3), Store(movie[::-1])
    other = da.from_array(store, chunks=(3, 2, 60, 9, 1))
    assert "windows of `image`, `other`" in gd.explain(blurred, lazy, other, batch=2)
    whole = [[blurred(a, b) for a, b in zip(*each, strict=True)] for each in zip(movie, movie[::-1], strict=True)]
    equal(gd.map_blocks(blurred, lazy, other, batch=2), np.array(whole))
    assert ((2, 3), (1, 2), (29, 60), (0, 9), (0, 3)) in store.read


def test_chunks_that_lie_elsewhere_are_pieces():
    image = rng.random((40, 6), np.float32)
    lazy = da.Array({("turned", k, 0): image[20 * (1 - k) :][:20] for k in range(2)}, "turned", ((20, 20), (6,)), "f")
    equal(gd.map_blocks(smoothed, lazy), smoothed(np.roll(image, 20, axis=0)))


def test_the_values_are_those_of_scipy():
    image = rng.random((40, 30), np.float32)
    expected = ndimage.uniform_filter(ndimage.uniform_filter(image, 3, mode="nearest"), 3, mode="nearest")
    np.testing.assert_allclose(gd.map_blocks(smoothed, chunked(image, 7, 30)).compute(), expected, rtol=1e-6)


@pytest.mark.parametrize("seed", [1, 3, 6, 9])
def test_random_programs(seed):
    result = WindowedProgram(seed)
    whole = result.footprint.whole
    chunks = [tuple(b - a for a, b in axis) for axis in result.cuts(list(whole))]
    if len(whole) < len(result.grid):
        blocks = gd.map_blocks(result.pipeline, chunked(result.array, *chunks), result.weights)
        equal(blocks, result.pipeline(result.array, result.weights))


def test_all_windows_have_the_same_kernels(monkeypatch):
    compiled = []
    compile_one = Reference.compile
    monkeypatch.setattr(Reference, "compile", lambda self, kernel: compiled.append(kernel) or compile_one(self, kernel))
    image = rng.random((61, 58), np.float32)
    equal(gd.map_blocks(smoothed, chunked(image, 20, 20)), smoothed(image))
    assert len(compiled) == 2  # of windows, and of the whole


def test_images_are_computed_each_by_itself():
    movie = rng.random((3, 2, 8, 9), np.float32)
    whole = np.array([[smoothed(image) for image in channels] for channels in movie])
    equal(gd.map_blocks(smoothed, chunked(movie, 2, 1, 3, 9), batch=2), whole)
    moved = np.moveaxis(movie, (2, 3), (0, 2))  # (Y, T, X, C)
    equal(gd.map_blocks(smoothed, chunked(moved, 3, 2, 4, 1), axes=(0, 2)), np.moveaxis(whole, (2, 3), (0, 2)))

    @gp.pipeline
    def normalised(image):  # a reduction of each image, of which none is cut
        field = gp.ScalarField(image)
        return field - field.min(), field.sum(axis=1), field.max()

    result = gd.map_blocks(normalised, chunked(movie, 2, 2, 3, 9), batch=2)
    for blocks, each in zip(result, zip(*(map(normalised, movie.reshape(6, 8, 9))), strict=True), strict=True):
        equal(blocks, np.array(each).reshape(3, 2, *each[0].shape))


def test_colours_tables_and_values_of_other_arrays():
    photo, table = rng.random((9, 8, 3), np.float32), rng.random(3, np.float32)

    @gp.pipeline
    def graded(photo, table, mask, low, gain=1):
        field = gp.VectorField(photo) * gp.VectorField(table) - gp.ScalarField(low)
        return field * gain, gp.ScalarField(mask) * 2

    mask = rng.integers(0, 9, (9, 8), np.uint8)
    lazy = chunked(photo, 4, 3, 2)
    blocks = gd.map_blocks(graded, lazy, table, mask, lazy.min(), gain=gp.Parameter(3.0))
    for each, whole in zip(blocks, graded(photo, table, mask, photo.min(), gain=3.0), strict=True):
        equal(each, whole)
    assert gd.map_blocks(graded, lazy, table, mask, low=lazy.min())[0].chunks == ((4, 4, 1), (3, 3, 2), (3,))


@pytest.mark.parametrize("chunks", [(4, 9), (2, 4)], ids=str)
def test_reductions_are_trees_of_blocks(chunks):
    image = rng.integers(0, 90, (11, 9)).astype(np.float32)  # whose sums are exact

    @gp.pipeline
    def stretched(image):
        field = gp.ScalarField(image)
        low, high = field.min(), field.max()
        bright = mean(field) > mean(field).sum() / 99
        return (field - low) / (high - low), field.sum(axis=1), field.argmax(), bright

    for blocks, whole in zip(gd.map_blocks(stretched, chunked(image, *chunks)), stretched(image), strict=True):
        equal(blocks, whole)
    low, high = image.min(), image.max()
    np.testing.assert_array_equal(gd.map_blocks(stretched, chunked(image, *chunks))[0], (image - low) / (high - low))
    greatest = gp.pipeline(lambda x: gp.ScalarField(x).max())
    movie = np.stack([image, image * 2, -image])
    equal(gd.map_blocks(greatest, chunked(image, *chunks)), image.max())
    equal(gd.map_blocks(greatest, chunked(movie, 2, *chunks), batch=1), movie.max(axis=(1, 2)))


def test_statistics_are_computed_with_results_that_need_none():
    image = rng.random((11, 9), np.float32)

    @gp.pipeline
    def counted(image):
        field = mean(gp.ScalarField(image))
        return field > 0.5, np.count_nonzero(field > 0.5), field, gp.ScalarField(image).argmax()

    result = gd.map_blocks(counted, chunked(image, 4, 9))
    around = ndimage.uniform_filter(image, 3, mode="nearest")
    for blocks, whole in zip(
        result, (around > 0.5, np.count_nonzero(around > 0.5), around, image.argmax()), strict=True
    ):
        np.testing.assert_allclose(blocks, whole, rtol=1e-6)
    equal(result[2], counted(image)[2])
    movie = np.stack([image, image * 2, 1 - image])
    bright, count, *_ = gd.map_blocks(counted, chunked(movie, 2, 4, 9), batch=1)
    many = np.array([ndimage.uniform_filter(each, 3, mode="nearest") > 0.5 for each in movie])
    equal(bright, many)
    equal(count, many.sum(axis=(1, 2)))


def test_axes_that_stay_whole():
    flipped = gp.pipeline(lambda x: gp.ScalarField(x)[::-1] * 1)
    image = rng.random((8, 9), np.float32)

    @gp.operator
    def mirrored(f):
        return _readTensor(f, _row, _columns - 1 - _column) + _readTensor(f, _row - 1, _column)

    turned = gp.pipeline(lambda x: mirrored(gp.ScalarField(x)))
    lazy = chunked(image, 3, 4)
    blocks = gd.map_blocks(turned, lazy)
    assert blocks.chunks == ((3, 3, 2), (9,))
    equal(blocks, turned(image))
    with pytest.raises(gp.SemanticError, match=r"axis 1 must be in one chunk, which `rechunk=True` does: .*mirrored"):
        gd.map_blocks(turned, lazy, rechunk=False)
    equal(gd.map_blocks(flipped, chunked(image, 8, 9)), image[::-1])  # one chunk is one call


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda a: gd.map_blocks(lambda x: gp.ScalarField(x).T, a), r"no axis can be cut: operator `T` \("),
        (lambda a: gd.map_blocks(smoothed, a, batch=3), "`batch=` is how many leading axes count images, from 0 to 2, not 3"),
        (lambda a: gd.map_blocks(smoothed, a, batch=2), "all axes of `image` count images, .*: leave the pipeline at least one"),
        (lambda a: gd.map_blocks(smoothed, a, axes=()), "all axes of `image` count images"),
        (lambda a: gd.map_blocks(smoothed, a[:0]), r"`image` has no points: its extents are \(0, 4\); call the pipeline"),
        (lambda a: gd.map_blocks(smoothed, a[a[:, 0] > 2]), r"`image` has chunks of unknown extents; .*_sizes\(\)`"),
        (lambda a: gd.map_blocks(smoothed, a, axes=(0, 0)), "`axes=` are different axes of the first array"),
        (lambda a: gd.map_blocks(smoothed, a, axes="y"), "numbers below 2; not 'y'"),
        (lambda a: gd.map_blocks(smoothed, a, axes=(0, 1), batch=1), "leave out `batch=`"),
        (lambda a: gd.map_blocks(smoothed, a, 3), "argument `times` of map_blocks is an int; arrays come first"),
        (lambda a: gd.map_blocks(smoothed, a, a, a), "pipeline `smoothed` takes 2 arguments, not 3"),
        (lambda a: gd.map_blocks(smoothed), "wants arrays, at least one"),
    ],
)  # fmt: skip
def test_messages(call, sentence):
    with pytest.raises(gp.SemanticError, match=sentence):
        call(chunked(np.ones((4, 4), "f"), 2, 2))


def test_names_are_stable():
    lazy = chunked(np.ones((4, 4), "f"), 2, 2)
    first = gd.map_blocks(smoothed, lazy)
    assert gd.map_blocks(smoothed, lazy).name == first.name
    others = gd.map_blocks(smoothed, lazy, times=3), gd.map_blocks(smoothed, lazy.rechunk(4))
    assert len({first.name, gd.map_blocks(smoothed, lazy, device="reference").name, *(b.name for b in others)}) == 4


def test_graphs_are_sent_to_others():
    cloudpickle = pytest.importorskip("cloudpickle")
    gain = gp.Parameter(2.0)
    image = rng.random((6, 5), np.float32)
    program = gp.pipeline(lambda x: mean(gp.ScalarField(x)) * gain)
    blocks = gd.map_blocks(program, chunked(image, 2, 3))
    equal(pickle.loads(cloudpickle.dumps(blocks)), program(image))


def test_the_device_of_workers(monkeypatch):
    used = []
    monkeypatch.setattr(Reference, "once", lambda *args, once=Reference.once: used.append(1) or once(*args))
    image = np.ones((4, 4), "f")
    blocks = gd.map_blocks(smoothed, chunked(image, 2, 4), device="reference")
    with gp.use_device(gp.devices()[0].name):
        equal(blocks, image)
    assert used


def test_windows_are_computed_one_at_a_time(monkeypatch):
    """On a CPU, whatever the number of threads that read and write others."""
    running, most, call = [], [], PipelineWindow.__call__

    def noted(window, *args, **named):
        running.append(window)
        most.append(len(running))
        sleep(0.02)
        result = call(window, *args, **named)
        running.remove(window)
        return result

    monkeypatch.setattr(PipelineWindow, "__call__", noted)
    image = rng.random((40, 6), np.float32)
    blocks = gd.map_blocks(smoothed, chunked(image, 5, 6), device="reference")
    np.testing.assert_array_equal(blocks.compute(scheduler="threads", num_workers=4), smoothed(image))
    assert most == [1] * 8


def test_small_pieces_do_not_hold_chunks():
    chunk = rng.random((20, 6), np.float32)
    window = slice(18, 20), slice(0, 6)
    assert not np.shares_memory(piece_of(chunk, window), chunk)
    np.testing.assert_array_equal(piece_of(chunk, window), chunk[18:])
    assert np.shares_memory(piece_of(chunk, (slice(2, 20), slice(0, 6))), chunk)


def test_what_it_explains():
    text = gd.explain(smoothed, computed(np.ones((40, 60), "f"), 10, 30))
    assert text.splitlines() == [
        "grid 40×60",
        "  axis 0: 2 before, 2 after",
        "  axis 1: 2 before, 2 after",
        "4×2 blocks, computed of windows of 14×32 points, all alike: compiled once",
        "1.49 points are computed for each that is wanted",
        "8 tasks compute, 32 cut pieces of chunks",
        "a task has 0.0 MiB of arguments and results, at most",
    ]


def test_it_explains_how_often_reductions_are_compiled():
    """Once for blocks of one size, wherever what is wanted lies in their windows."""
    total = gp.pipeline(lambda x: smoothed(x).sum())
    assert "25.00 points are computed for each that is wanted; larger chunks need fewer" in gd.explain(
        total, computed(np.ones((40, 60), "f"), 1, 1)
    )
    once = "4×3 blocks, computed of windows of 14×24 points, all alike: compiled once\n"
    assert once in gd.explain(total, computed(np.ones((40, 60), "f"), 10, 20))
    several = "4×3 blocks, computed of windows of 14×24 points, all alike: compiled once; what is reduced is compiled for each of 4"
    assert several in gd.explain(total, computed(np.ones((39, 59), "f"), 10, 20))


def test_xarray():
    xarray = pytest.importorskip("xarray")
    image = rng.random((3, 8, 9), np.float32)
    coords = {"y": np.arange(8) * 0.5, "x": np.arange(9), "t": [10, 20, 30], "area": (("y", "x"), np.ones((8, 9)))}
    field = xarray.DataArray(image, coords, ("t", "y", "x"), "heat", {"unit": "K"})
    whole = np.array([smoothed(each) for each in image])
    for lazy in (field.chunk(t=2, y=3), field):
        result = lazy.gpuop.map(smoothed, axes=("y", "x"))
        assert type(result.data) is type(lazy.data) and result.attrs == {"unit": "K"}
        xarray.testing.assert_identical(result.compute(), field.copy(data=whole))
    totals = gd.map_blocks(lambda x: gp.ScalarField(x).sum(axis=1), field.chunk(t=1), batch=1)
    assert totals.dims == ("t", "dim_1") and set(totals.coords) == {"t"}
    np.testing.assert_allclose(totals, image.sum(axis=2), rtol=1e-6)
