"""Numbers that Python computes from extents: sizes share kernels that get them as arguments; bits are those of own kernels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.base.config import config
from gpuop.dsl import *
from gpuop.engine.jit import sizes
from gpuop.runtime.devices import current

rng = np.random.default_rng(29)
SHAPES = [(70, 90), (81, 67), (66, 131), (97, 97), (129, 140), (75, 160)]
LARGE = [(240, 320), (211, 283), (197, 263), (307, 223)]


@pytest.fixture(autouse=True)
def auto(monkeypatch):
    """As users have it, but for jobs behind the calls."""
    monkeypatch.setattr(config, "specialize", "auto")
    monkeypatch.setattr(sizes, "later", lambda job: None)


@gp.operator
def relative(f):
    rows, columns = f.field_shape
    return _readTensor(f) + (_row * (1.0 / rows) + (_column - (columns - 1) / 2))


def wanted_relative(x):
    rows, columns = x.shape
    row, column = np.arange(rows, dtype=np.int32)[:, None], np.arange(columns, dtype=np.int32)
    scaled = row.astype(np.float32) * np.float32(1 / rows)
    return x + (scaled + (column.astype(np.float32) - np.float32((columns - 1) / 2)))


@gp.operator
def turned(f):
    rows, columns = f.field_shape
    n = columns * rows - 1 - (_row * columns + _column)
    return _readTensor(f, n / columns, n % columns)


def quadrants(image):
    f = gp.ScalarField(image)
    rows, columns = f.field_shape
    return f[rows // 2 :, : columns // 2].reshape(-1), f.reshape(-1)[:: columns + 3]


def wanted_quadrants(x):
    rows, columns = x.shape
    return x[rows // 2 :, : columns // 2].reshape(-1), x.reshape(-1)[:: columns + 3]


def strides_of_integers(image):
    """Integers of several types, loops of so many iterations, and thresholds."""
    f = gp.ScalarField(image)

    @gp.operator
    def counted(f):
        rows, columns = f.field_shape
        total = _var(0)
        with _for(rows // 8) as n:
            total += _where(_readTensor(f, n * 8, _column) > columns, 1, 0)
        return total + _convert_int(_convert_long(rows * columns) % 997)

    return counted(f)


def wanted_strides(x):
    rows, columns = x.shape
    count = (x[: rows // 8 * 8 : 8] > columns).sum(axis=0) + rows * columns % 997
    return np.broadcast_to(count.astype(np.int32), x.shape)


PIPELINES = {
    "floats": (lambda image: relative(gp.ScalarField(image)), wanted_relative),
    "places": (lambda image: turned(gp.ScalarField(image)), lambda x: x[::-1, ::-1]),
    "views": (quadrants, wanted_quadrants),
    "integers": (strides_of_integers, wanted_strides),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_with_numbers_of_extents(device, name):
    function, wanted = PIPELINES[name]
    pipeline = gp.pipeline(function)
    for shape in (*SHAPES, (3, 200), (1, 7), (4, 4)):
        x = rng.integers(0, 300, shape).astype(np.float32)
        results, expected = pipeline(x), wanted(x)
        for result, each in zip(*((r if isinstance(r, tuple) else (r,)) for r in (results, expected)), strict=True):
            assert result.dtype == each.dtype and np.array_equal(result, each), shape


@pytest.mark.parametrize("name", PIPELINES)
def test_the_third_size_builds_nothing(built, name):
    function, _ = PIPELINES[name]
    pipeline = gp.pipeline(function)
    for shape in SHAPES[:2]:
        pipeline(np.ones(shape, np.float32))
    known = len(built)
    for shape in (SHAPES[2], *SHAPES[4:]):  # a square has a kernel of its own, as its extents are equal
        pipeline(np.ones(shape, np.float32))
    assert len(built) == known
    assert pipeline.explain(np.ones(SHAPES[-1], np.float32)).endswith("compiled for all sizes of `image`")


@gp.operator
def parted(f):
    rows, columns = f.field_shape
    return _readTensor(f) + (_row % (rows // 8)) * (_column % (columns // 3))


@gp.operator
def halved(f):
    return _where(_column < f.field_shape[0] // 2, _readTensor(f), 0)


def wanted_parts(x):
    rows, columns = x.shape
    row, column = np.arange(rows)[:, None] % (rows // 8), np.arange(columns) % (columns // 3)
    return x + (row * column).astype(np.float32)


@pytest.mark.daily
@pytest.mark.parametrize(
    ("operator", "wanted", "shapes"),
    [
        # an eighth of the rows of the third size is a third of its columns
        (parted, wanted_parts, ((70, 90), (81, 67), (104, 39), (66, 131))),
        # half of the rows of the first size and of the last one are as many as their columns
        (halved, lambda x: np.where(np.arange(x.shape[1]) < x.shape[0] // 2, x, 0), ((180, 90), (120, 70), (66, 131), (200, 100))),
    ],
    ids=["two numbers", "a number and an extent"],
)  # fmt: skip
def test_what_is_equal_in_some_sizes_only_shares_kernels(built, operator, wanted, shapes):
    pipeline, counts = gp.pipeline(lambda image: operator(gp.ScalarField(image))), []
    for shape in shapes:
        x = rng.integers(0, 300, shape).astype(np.float32)
        np.testing.assert_array_equal(pipeline(x), wanted(x))
        counts.append(len(built))
    assert counts[1:] == [counts[1]] * 3


def of(name, dtype, *arguments, **options):
    return lambda x: getattr(ndimage, name)((x * 3).astype(dtype), *arguments, **options)


def of_parts(name):
    return lambda x: getattr(ndimage, name)(x, (x * 9).astype(np.int32), index=(1, 2, 3))


FUNCTIONS = {
    "label": lambda x: ndimage.label(x > 0.6),
    "label, diagonals": lambda x: ndimage.label(x > 0.6, np.ones((3, 3))),
    "find_objects": lambda x: np.array(
        [(r.start, r.stop, c.start, c.stop) for r, c in ndimage.find_objects((x * 9).astype(int))]
    ),
    "rotate": of("rotate", np.float32, 15),
    "affine_transform": of("affine_transform", np.float32, ((0.98, -0.17), (0.17, 0.98)), order=1),
    "map_coordinates": lambda x: ndimage.map_coordinates(x, np.indices(x.shape, np.float32) * np.float32(0.9), order=1),
    "distance_transform_edt": lambda x: ndimage.distance_transform_edt(x > 0.1),
    "distance_transform_cdt": lambda x: ndimage.distance_transform_cdt(x > 0.1),
    "binary_fill_holes": lambda x: ndimage.binary_fill_holes(x > 0.4),
    "binary_propagation": lambda x: ndimage.binary_propagation(x > 0.9, mask=x > 0.4),
    "sum_labels": of_parts("sum_labels"),
    "mean": of_parts("mean"),
    "variance": of_parts("variance"),
    "extrema": of_parts("extrema"),
    "maximum_position": of_parts("maximum_position"),
    "center_of_mass": of_parts("center_of_mass"),
}


def parts_of(result):
    return [np.asarray(part) for part in result] if isinstance(result, (tuple, list)) else [np.asarray(result)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_bits_of_kernels_of_each_size(device, name, monkeypatch):
    function = FUNCTIONS[name]
    images = [rng.random(shape, np.float32) for shape in (*SHAPES[:4], (3, 5), LARGE[0], LARGE[1])]
    gp.release()  # traces are of this test
    results = [parts_of(function(x)) for x in images]
    monkeypatch.setattr(config, "specialize", "1")
    gp.release()
    for x, parts in zip(images, results, strict=True):
        for part, wanted in zip(parts, parts_of(function(x)), strict=True):
            assert part.dtype == wanted.dtype and part.tobytes() == wanted.tobytes(), x.shape


def test_labels_are_those_of_scipy(device):
    for shape in (*SHAPES[:3], *LARGE[:3], (1, 40), (40, 1), (5, 64), (64, 2)):
        mask = rng.random(shape) > 0.5
        wanted, count = scipy.ndimage.label(mask)
        result, own = ndimage.label(mask)
        assert own == count and np.array_equal(result, wanted), shape


@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {"distance_transform_cdt"}))
def test_later_sizes_share_kernels(built, name):
    """The second size has kernels for all; sizes of another kind, as with two chunks of a scan, add some, once."""
    function = FUNCTIONS[name]
    gp.release()
    for shape in LARGE[:2]:
        function(rng.random(shape, np.float32))
    known = len(built)
    for shape in ((197, 263), (205, 275), (199, 281)):
        function(rng.random(shape, np.float32))
    assert len(built) == known


def test_devices_in_turns():
    """Arguments are those of a target: each device has its own."""
    names = [d.name for d in gp.devices() if d.name.startswith(("opencl", "cuda", "reference"))][:3]
    for shape in SHAPES[:2] * 2:
        mask = rng.random(shape) > 0.5
        for name in names:
            with gp.use_device(name):
                assert np.array_equal(ndimage.label(mask)[0], scipy.ndimage.label(mask)[0]), (name, shape)


def test_scans_of_some_chunks(built):
    """Rows of two chunks and more share kernels: whether products of integers wrap does not depend on their number."""
    pipeline = gp.pipeline(lambda x: np.cumsum(gp.ScalarField(x), axis=-1))
    counts = []
    for n in (9000, 7000, 5000, 5300, 23000, 11008, 17001):
        x = rng.integers(0, 50, n).astype(np.int32)
        assert np.array_equal(pipeline(x), np.cumsum(x))
        counts.append(len(built))
    assert len({*counts[2:]}) == 1
    x = rng.integers(0, 50, 4500).astype(np.int32)
    assert np.array_equal(pipeline(x), np.cumsum(x))
    assert pipeline.explain(x).endswith("compiled for all sizes of `x`")


@gp.operator
def cut(f):
    """Numbers of small images are within 700, those of large ones are not."""
    _, columns = f.field_shape
    return _readTensor(f, _row, _min(700, columns - 1 - _column))


def test_bounds_of_integers_that_differ_in_small_and_large_images(device, built):
    pipeline = gp.pipeline(lambda image: cut(gp.ScalarField(image)))
    counts = []
    for shape in (*SHAPES[:4], (5, 900), (81, 1203)):
        x = rng.random(shape, np.float32)
        place = np.minimum(700, shape[1] - 1 - np.arange(shape[1]))
        assert np.array_equal(pipeline(x), x[:, place]), shape
        counts.append(len(built))
    assert counts[2] == counts[1] and counts[-1] == counts[-2]
    assert pipeline.explain(x).endswith("compiled for all sizes of `image`")


def blurred_and_sum(image):
    """The Gaussian's schedule needs rows; the sum has kernels for all sizes."""
    f = gp.ScalarField(image)
    return ndimage.gaussian_filter(f, 2.0), np.sum(f)


def test_small_images_have_the_values_of_others(device):
    pipeline = gp.pipeline(blurred_and_sum)
    for shape in ((90, 200), (75, 160), (3, 170), (97, 131)):
        x = rng.random(shape, np.float32)
        blurred, total = pipeline(x)
        assert np.allclose(blurred, scipy.ndimage.gaussian_filter(x, 2.0), atol=1e-5), shape
        assert np.isclose(total, x.sum(), rtol=1e-5), shape


def test_a_kernel_without_a_range_is_compiled_beside_those_that_are_shared(built):
    """On CPUs, whose schedule of the Gaussian has several rows at a time."""
    if not current().name.startswith("opencl"):
        pytest.skip("for CPUs")
    pipeline = gp.pipeline(blurred_and_sum)
    for shape in ((90, 200), (75, 160), (3, 170)):
        pipeline(np.ones(shape, np.float32))
    alone = gp.pipeline(lambda image: ndimage.gaussian_filter(gp.ScalarField(image), 2.0))
    for shape in ((90, 200), (75, 160), (3, 170)):
        alone(np.ones(shape, np.float32))
    told = alone.explain(np.ones((3, 170), np.float32))
    assert told.endswith("compiled for this size: of `correlate1d`, an extent is 3, not within 17 to 46340")
    assert "traced again" not in told  # a refused trace is no change of what is captured
    assert "predicted" not in pipeline.explain(
        np.ones((75, 160), np.float32)
    )  # no time of kernels for all sizes is known
    about = pipeline.explain(np.ones((3, 170), np.float32)).splitlines()[-1]
    assert about.startswith(
        "compiled for all sizes of `image`, `correlate1d` for this size: an extent is 3, not within 17"
    )


def test_functions_that_count_on_an_extent():
    """Arrays that no call has may be of no use to a function: here there is a third plane."""

    @gp.pipeline
    def weighted(row, planes):
        return (gp.Field(planes)[2] * gp.Field(row)).sum(axis=-1)

    for n in (5, 25, 40, 31):
        row, planes = np.arange(n, dtype=np.float64), rng.integers(0, 9, (3, n, n)).astype(np.float64)
        with gp.use_device("reference"):
            np.testing.assert_array_equal(weighted(row, planes), (planes[2] * row).sum(axis=-1))
