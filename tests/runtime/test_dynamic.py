"""Sizes that do not recompile: kernels of dynamic fields get the extents of their grids as arguments."""

from __future__ import annotations

import pickle
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.passes import coarsening_factor
from gpuop.passes.schedules import methods as schedules

rng = np.random.default_rng(17)
SIZES = [(37, 53), (2, 3), (90, 141), (0, 5), (129, 300), (16, 17)]
MODES = {"reflect": "reflect", "zero": "constant"}


def cross(border):
    @gp.operator
    def cross(f):
        up, right = _readTensor(f, _row - 2, _column, border=border), _readTensor(f, _row, _column + 1, border=border)
        return up * 3 + right - _readTensor(f) * (_columns - _column)

    return cross


def expected(x, border):
    padded = np.pad(x, ((2, 0), (0, 1)), MODES[border])
    return padded[:-2, :-1] * 3 + padded[2:, 1:] - x * (x.shape[1] - np.arange(x.shape[1], dtype=np.int32))


def test_stencils_of_all_sizes(device):
    ops = [cross(border) for border in MODES]
    stencils = gp.pipeline(lambda image: tuple(op(gp.ScalarField(image)) for op in ops), dynamic=True)
    for shape in SIZES:
        x = rng.integers(-100, 100, shape).astype(np.int32)
        for result, border in zip(stencils(x), MODES, strict=True):
            assert result.shape == shape and (not x.size or np.array_equal(result, expected(x, border)))


@gp.operator
def edges(f):
    return _readTensor(f, _layer - 1, _row, _column - 3) - _readTensor(f)


@gp.pipeline(dynamic=True)
def edges_of(volume):
    return edges(gp.ScalarField(volume))


def test_stencils_of_bytes_in_volumes(device):
    """Whose vectors are longer, and overlap at the ends of rows."""
    for shape in ((70, 69, 200), (66, 68, 131)):
        x = rng.integers(0, 100, shape).astype(np.uint8)
        padded = np.pad(x, ((1, 0), (0, 0), (3, 0)), "edge")
        assert np.array_equal(edges_of(x), padded[:-1, :, :-3] - x)


@gp.operator
def weighted(f, weights):
    total = _var(0.0)
    with _for(0, 3) as j:
        with _for(0, 3) as i:
            total += _readTensor(f, _row + j - 1, _column + i - 1) * _readTensor(weights, j, i)
    return total


@gp.pipeline(dynamic="image")
def filtered(image, weights):
    return weighted(gp.ScalarField(image), gp.ScalarField(weights)) * 2


def test_one_text_for_all_sizes():
    """Of the arguments that are named, whatever their extents have in common."""
    kernel = np.ones((3, 3), np.float32)
    small, wide, large = ((5, 7), (17, 5), (1000, 4)), ((40, 40), (999, 3000), (63, 4000)), ((404, 404), (999, 3000))
    for target in ("cuda", "opencl", "opencl:cpu"):
        one, other = (
            {filtered.source(np.zeros(shape, np.float32), kernel, target=target) for shape in shapes}
            for shapes in (small, large if target == "cuda" else wide)
        )
        assert len(one) == len(other) == 1 and (one == other) == (target == "opencl")  # others have vectors or tiles
        (text,) = other
        assert "f_rows = rows" in text and "weights_rows = 3," in text
    assert len({filtered.source(np.zeros((9, 9), np.float32), np.ones((n, n), np.float32)) for n in (3, 4)}) == 2
    column = filtered.source(np.zeros((1000, 1), np.float32), kernel, target="cuda")
    assert "(int)(blockIdx.y" in column and "rows" in column  # as so few are launched


def test_as_without_it(device):
    """Bit for bit: floats, bytes and halves, on grids of one to three axes, transposed, and every other row."""

    def chain(image):
        f = gp.ScalarField(image)
        return (np.sqrt(abs(f * f - 0.3)) / (f + 2)).T, f[::2], (f.astype("float16") * 300).astype("uint8")

    dynamic, static = gp.pipeline(chain, dynamic="image"), gp.pipeline(chain)
    for shape in ((19,), (3, 5, 9), (4, 50, 70)):
        x = rng.random(shape, np.float32)
        for result, expected in zip(dynamic(x), static(x), strict=True):
            assert np.array_equal(result, expected) and result.dtype == expected.dtype


@gp.operator
def rows_of(f):
    return _readTensor(f, _row, _column - 2, border="reflect") - _readTensor(f, _row, _column + 1, border="reflect")


@gp.operator
def columns_of(f):
    return _readTensor(f, _row + 3, _column, border="clamp") * 2 + _readTensor(f, _row - 1, _column + 1)


@gp.pipeline(dynamic=True)
def in_stages(image):
    return columns_of(rows_of(gp.ScalarField(image)))


def staged(x):
    wide = np.pad(x, ((0, 0), (2, 1)), "reflect")
    y = np.pad(wide[:, :-3] - wide[:, 3:], ((1, 3), (0, 1)), "edge")
    return y[4:, :-1] * 2 + y[:-4, 1:]


def test_stages(device):
    """In strips that are as wide as one another, of blocks that overlap; few rows are two kernels."""
    for shape in ((66, 67), (99, 1030), (40, 90), (130, 600)):
        x = rng.integers(-100, 100, shape).astype(np.int32)
        assert np.array_equal(in_stages(x), staged(x))


def test_stages_are_compiled_for_any_size():
    if gp.devices()[0].name == "reference":
        pytest.skip("no device compiles")
    texts = {in_stages.source(np.zeros(shape, np.int32)) for shape in ((99, 1030), (70, 80), (2000, 3000))}
    wide = gp.devices()[0].name.startswith(
        "cuda"
    )  # rows that are a multiple of four points long have a text of their own
    assert len(texts) <= 1 + wide
    text = in_stages.explain(np.ones((99, 1030), np.int32))
    assert text.startswith("1 kernel for 2 operators") and "compiled for any size" in text


def test_stages_are_never_computed_wherever_they_are_read():
    """Stages computed at each read take as many steps as there are ways to them, also in the search for a range of extents."""
    if gp.devices()[0].name == "reference":
        pytest.skip("no device compiles")
    longer = gp.pipeline(lambda image: columns_of(rows_of(gp.ScalarField(image)) + 1), dynamic=True)
    with mock.patch.object(schedules, "without_intermediates", side_effect=AssertionError):
        text = longer.explain(np.ones((70, 80), np.int16))
    assert text.startswith("1 kernel for 3 operators") and "compiled for any size" in text


@gp.operator
def slopes(f):
    return _readTensor(f, _row + 1, _column, border="symmetric") - _readTensor(f)


@gp.operator
def below(f):
    return _readTensor(f, 2 * _row - _row + 3, _column, border="symmetric")  # at no constant distance, so no stage


def test_what_is_computed_again_where_it_is_read(device):
    """Through a border, which is no number of the kernel's."""
    moved, texts = gp.pipeline(lambda image: below(slopes(gp.ScalarField(image))), dynamic=True), set()
    for shape in ((20, 30), (81, 70)):
        x = rng.integers(-100, 100, shape).astype(np.int32)
        slope = np.diff(np.pad(x, ((0, 1), (0, 0)), "symmetric"), axis=0)
        assert np.array_equal(moved(x), np.pad(slope, ((0, 3), (0, 0)), "symmetric")[3:])
        texts.add(moved.source(x, target="cuda"))
    assert len(texts) == 1 and texts.pop().count("__global__") == 1


def test_large_outputs_of_cpus(device):
    """Large outputs are written past the caches, by a text of their own; vectors at the end begin anywhere."""
    halves = gp.pipeline(lambda image: abs(gp.ScalarField(image)) / 2 + 1, dynamic=True)
    with mock.patch.object(coarsening_factor, "STREAMED", 1 << 10):
        for shape in ((3, 5), (37, 53), (2, 400)):
            x = rng.integers(-100, 100, shape).astype(np.float32)
            assert np.array_equal(halves(x), abs(x) / 2 + 1)


def test_last_points_of_threads(device):
    """The last points are fewer than others, or none; of bytes, and of tensors, whose other planes begin anywhere."""

    def several(numbers, pairs):
        f, g = gp.ScalarField(numbers), gp.VectorField(pairs)
        return abs(f) + 1, (f * f).astype("uint8"), g * 2

    points = gp.pipeline(several, dynamic=True)
    for n in (40, 41, 66, 19, 5):
        x, y = rng.integers(-9, 9, (1, n)).astype(np.float32), rng.integers(-9, 9, (1, n, 2)).astype(np.float32)
        for result, expected in zip(points(x, y), (abs(x) + 1, (x * x).astype(np.uint8), y * 2), strict=True):
            assert np.array_equal(result, expected)


def test_accesses_of_gpus_are_wide():
    """Whatever the extents are, if threads do not know where their points are."""
    chain = gp.pipeline(lambda image: abs(gp.ScalarField(image) * 2) + 1, dynamic=True)
    (text,) = {chain.source(np.empty(shape, np.float32), target="cuda") for shape in ((37, 53), (20,), (4, 64, 5))}
    assert "columns/4 threads" in text and "neighbours<float, 4>::load" in text


def test_states_in_place(device):
    """A vector at the end must not update twice what it shares with another one."""
    for n in (19, 35):
        x = rng.integers(-100, 100, (n, n)).astype(np.float32)
        with gp.ComputeGraph() as graph:
            state = gp.ScalarField(x)
            state.next = twice(state) + 1
            graph.probe(state, "state")
        graph.step(2)
        assert np.array_equal(graph.read("state"), (x * 2 + 1) * 2 + 1)


@gp.operator(dynamic=True)
def twice(f):
    return _readTensor(f) * 2


@gp.operator(dynamic="f")
def doubled(f, g):
    return _readTensor(f) * 2 + _readTensor(g, _column)


def test_operators(device):
    row = rng.random(8, np.float32)
    for shape in ((3, 8), (21, 40)):
        x = rng.random(shape, np.float32)
        actual = doubled(gp.ScalarField(x), gp.ScalarField(row)).numpy()
        assert np.array_equal(actual, x * 2 + row[np.minimum(np.arange(shape[1]), 7)])


@gp.operator
def relative(f):
    return _readTensor(f) + _row * (1.0 / f.field_shape[0])


@gp.operator
def neighbours(f):
    _localThreads(64, whole_groups=True)
    kept = _local(_floatArray(_localColumns))
    kept[_localColumn] = _readTensor(f)
    _syncThreadsLocal()
    _writeTensor(_out0, kept[_localColumn ^ 1] + _readTensor(f))


@gp.pipeline(dynamic=True)
def mixed(image):
    f = gp.ScalarField(image)
    return relative(f), f.sum(axis=1), f.min()


def test_what_is_a_constant_has_its_own_text(device):
    assert mixed(np.full((3, 4), 7, np.float32))[2] == 7  # one thread
    for rows in (8, 64):
        result, sums, least = mixed(np.ones((rows, 20), np.float32))
        assert least == 1
        ramp = 1 + np.arange(rows, dtype=np.float32) * np.float32(1 / rows)
        assert np.array_equal(result, np.repeat(ramp[:, None], 20, axis=1))
        assert np.array_equal(sums, np.full(rows, 20, np.float32))


def test_explain_tells_how_each_is_compiled():
    text = mixed.explain(np.ones((80, 90), np.float32)) if gp.devices()[0].name != "reference" else None
    if text is None:
        pytest.skip("no device compiles")
    lines = [line.strip() for line in text.splitlines() if "compiled for" in line]
    line = relative.function.__code__.co_firstlineno + 2
    assert any(each.startswith("compiled for any size") and f"test_dynamic.py:{line}" in each for each in lines)
    assert "compiled for any size: its extents are arguments" in lines
    pairs = gp.pipeline(lambda image: neighbours(gp.ScalarField(image)), dynamic=True)
    assert "compiled for each size: its tail threads run too" in pairs.explain(np.ones((80, 90), np.float32))


@pytest.mark.parametrize(("axis", "shapes"), [(0, [(20, 37), (31, 19)]), (1, [(37, 300), (53, 271)])])
def test_reductions(device, axis, shapes):
    """By threads and by groups; sums of such numbers are exact in any order."""

    def several(image):
        f = gp.ScalarField(image)
        return f.mean(axis), f.argmin(axis)

    reductions = gp.pipeline(several, dynamic=True)
    for shape in shapes:
        x = rng.integers(-50, 50, shape).astype(np.float32)
        mean, place = reductions(x)
        assert np.array_equal(place, x.argmin(axis)) and np.array_equal(mean, x.sum(axis) / np.float32(shape[axis]))


def test_reductions_add_as_without_it():
    """In the same order: of several steps, of volumes, and by functions of users'."""

    def several(volume):
        f = gp.ScalarField(volume) * 1.1
        return f.sum(), f.sum(axis=1), gp.reduce(lambda a, b: a + b, f, 0.0, axis=2), f.var(axis=0), f.sum(axis=(1, 2))

    dynamic, static = gp.pipeline(several, dynamic=True), gp.pipeline(several)
    with gp.use_device("reference"):
        for shape in ((5, 40, 70), (1, 2, 9000)):
            x = rng.random(shape, np.float32)
            for result, expected in zip(dynamic(x), static(x), strict=True):
                assert np.array_equal(result, expected)


def test_reductions_have_one_text():
    """For as many threads a row, and as many steps."""
    rows = gp.pipeline(lambda image: gp.ScalarField(image).mean(axis=1), dynamic=True)
    columns = gp.pipeline(lambda image: gp.ScalarField(image).argmax(axis=0), dynamic=True)
    long, high = [(800, 900), (900, 701)], [(700, 400), (800, 500)]
    for target, pipeline, shapes in (("cuda", rows, long), ("cuda", columns, high), ("opencl:cpu", rows, long)):
        assert len({pipeline.source(np.empty(shape, np.float32), target=target) for shape in shapes}) == 1


@pytest.mark.parametrize(
    ("make", "dynamic", "message"),
    [
        (
            gp.pipeline,
            "picture",
            "pipeline `<lambda>` has no argument `picture`, which is to be dynamic; it has `image`",
        ),
        (gp.operator, ("image", "f"), "operator `<lambda>` has no argument `f`"),
        (gp.operator, 3, "`dynamic=` of operator `<lambda>` is True, or names of arguments, not"),
    ],
)
def test_wrong_names(make, dynamic, message):
    with pytest.raises(gp.SemanticError) as error:
        make(dynamic=dynamic)(lambda image: image)
    assert message in str(error.value) and "test_dynamic.py" in str(error.value)


def test_other_processes_get_it():
    assert pickle.loads(pickle.dumps(filtered)).dynamic == ("image",)
