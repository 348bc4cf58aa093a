"""Stages whose work-groups compute tiles: NumPy's values at every size, border and dtype, and what is not tiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.engine import evaluate
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import layout_of
from gpuop.passes.schedules import methods as schedules
from gpuop.passes.schedules.gpu import tile
from gpuop.passes.schedules.gpu.tile import TILE
from gpuop.runtime import devices
from tests.borders import CHECKED
from tests.codegen.nvrtc import ptx_of
from tests.conftest import Widened

from .test_roll import at

CUDA = target_named("cuda")
DRIVERS = [d.name for d in gp.devices() if d.name.startswith("opencl")]
SMALL = {"rows": 8, "columns": 8, "tall": 8, "lanes": 4}


@contextmanager
def tiling(form: str = "interpreted", **parameters: int) -> Iterator[None]:
    """A device whose groups compute tiles, whatever it costs: small ones, so that small fields have groups in the interior."""
    method = replace(TILE, candidates=lambda kernel: ({**SMALL, **parameters},))
    methods, cost = mock.patch.object(schedules, "METHODS", (method,)), mock.patch.object(tile, "STORED", 1e9)
    opened = mock.patch.dict(devices._open, reference=Widened()) if form == "interpreted" else mock.patch.dict({})
    with opened, gp.use_device("reference" if form == "interpreted" else form) as backend, methods, cost:
        target = replace(backend.target, device="gpu", widening="unrolled", least_threads=1)
        limits = replace(backend.limits, target=target)
        with mock.patch.object(backend, "target", target), mock.patch.object(backend, "limits", limits):
            yield


def kernels_of(*results: gp.Field) -> list[Kernel]:
    steps = plan(program([result.node for result in results]), limits=Limits(target=CUDA)).launches
    return [replace(step.kernel, target=CUDA) for step in steps if isinstance(step.kernel, Kernel)]


@gp.operator
def taps(f, offsets, border):
    """A weighted sum of what lies at some offsets."""
    read = [_readTensor(f, _row + r, _column + c, border=border) * (n + 1) for n, (r, c) in enumerate(offsets)]
    return sum(read[1:], read[0])


def summed(x, offsets, border):
    border, fill = (border, 0) if isinstance(border, str) else ("zero", border)
    return sum(at(x, *away, border=border, fill=fill) * x.dtype.type(n + 1) for n, away in enumerate(offsets))


DOWN = [(r, 0) for r in range(-3, 3)]
ACROSS = [(0, c) for c in range(-2, 5)]
AROUND = [(-1, 2), (0, 0), (2, -1), (1, 1)]
# one point, fields smaller than windows, columns that are accessed several at a time and one by one
SHAPES = [((1, 1), DOWN, ACROSS), ((3, 5), AROUND, DOWN), ((17, 30), ACROSS, DOWN), ((33, 44), DOWN, AROUND)]


@pytest.mark.parametrize(("shape", "first", "second"), SHAPES, ids=lambda each: str(each)[:8])
@pytest.mark.parametrize("border", [*CHECKED, 7], ids=str)
def test_borders(shape, first, second, border):
    """A stage read through a border is what stands at the bordered point, in chains of any order of windows."""
    x = np.random.default_rng(3).integers(-9, 10, shape).astype(np.int32)
    third = [(0, -1), (1, 0), (0, 2)]
    with tiling():
        result = taps(taps(taps(gp.ScalarField(x), first, border), second, border), third, border)
        (kernel,) = kernels_of(result)
        assert len(kernel.intermediates) == 2 and not TILE.refuse(kernel)
        want = summed(summed(summed(x, first, border), second, border), third, border)
        np.testing.assert_array_equal(result.numpy(), want)


@pytest.mark.parametrize("border", [*CHECKED, 7], ids=str)
@pytest.mark.parametrize("shape", [(26, 32), (17, 13)], ids=str)
def test_borders_of_copies(shape, border):
    """An input that is copied to local memory, as its window is large: what stands outside may lie at the other end of the grid."""
    x = np.random.default_rng(4).integers(-9, 10, shape).astype(np.int32)
    with tiling():
        large = taps(gp.ScalarField(x), [(-1, 1), (3, -3)], border)
        np.testing.assert_array_equal(large.numpy(), summed(x, [(-1, 1), (3, -3)], border))
        twice = taps(large, ACROSS, border)
        np.testing.assert_array_equal(twice.numpy(), summed(summed(x, [(-1, 1), (3, -3)], border), ACROSS, border))


VIEWS = {
    "part": lambda f: f[1:],
    "inner part": lambda f: f[2:, 1:],
    "columns": lambda f: f[:, 3:],
    "reversed": lambda f: f[::-1],
    "strided": lambda f: f[:, ::2],
    "one row, far": lambda f: f[::-100],
    "one row": lambda f: f[2:3],
    "one point": lambda f: f[-1:, -1:],
    "transposed": lambda f: f.T,
    "square, transposed": lambda f: f[: min(f.shape), : min(f.shape)].T,
    "rolled": lambda f: np.roll(f, (2, -3), (0, 1)),
}


@pytest.mark.parametrize("form", ["interpreted", *DRIVERS[:1]])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("border", ["wrap", "clamp", 7], ids=str)
def test_what_reads_elsewhere(form, border, view):
    """A stage that is a part of a field, or a field in another order, knows where it is: beyond the grid nothing goes on."""
    for shape in (6, 5), (26, 19), (17, 36):
        x = np.random.default_rng(6).integers(-9, 10, shape).astype(np.int32)
        with tiling(form):
            f = VIEWS[view](gp.ScalarField(x))
            once, twice = taps(f, ACROSS, border), taps(taps(f, AROUND, border), DOWN, border)
            gp.evaluate(once, twice)
        want = VIEWS[view](x)
        np.testing.assert_array_equal(once.numpy(), summed(want, ACROSS, border))
        np.testing.assert_array_equal(twice.numpy(), summed(summed(want, AROUND, border), DOWN, border))


@pytest.mark.parametrize(("form", "shape"), [("interpreted", (40, 48)), *((d, (37, 45)) for d in DRIVERS)], ids=str)
def test_drivers(form, shape):
    """Groups at edges are partly outside, and all their threads wait at every barrier."""
    x = np.random.default_rng(5).random(shape, np.float32)
    with tiling(form):
        f = gp.ScalarField(x)
        smooth = taps(taps(f, DOWN, "reflect"), ACROSS, "reflect")
        result, scaled = taps(smooth, AROUND, 3) - f, smooth * 2
        actual = result.numpy(), scaled.numpy()
    want = summed(summed(x, DOWN, "reflect"), ACROSS, "reflect")
    np.testing.assert_array_equal(actual[0], summed(want, AROUND, 3) - x)
    np.testing.assert_array_equal(actual[1], want * np.float32(2))


@pytest.mark.parametrize("form", ["interpreted", *DRIVERS[:1]])
def test_whole_lines(form):
    """Strips in a tile whose rows are lines of memory come before those beside it."""
    x = np.random.default_rng(8).random((40, 128), np.float32)
    with tiling(form, columns=32):
        actual = taps(taps(gp.ScalarField(x), DOWN, "clamp"), ACROSS, "reflect").numpy()
    np.testing.assert_array_equal(actual, summed(summed(x, DOWN, "clamp"), ACROSS, "reflect"))


@pytest.mark.parametrize("form", ["interpreted", *DRIVERS[:1]])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float64", "int64"])
def test_dtypes(form, dtype):
    x = np.random.default_rng(7).integers(0, 9, (19, 24)).astype(dtype)
    offsets = [(0, -2), (0, 0), (0, 1)]
    with tiling(form):
        actual = taps(taps(gp.ScalarField(x), [(-1, 0), (2, 0)], "clamp"), offsets, "symmetric").numpy()
    want = summed(summed(x, [(-1, 0), (2, 0)], "clamp"), offsets, "symmetric")
    assert actual.dtype == want.dtype
    np.testing.assert_array_equal(actual, want)


@gp.operator
def slanted(f):
    """Values that depend on positions, on conditions and on loops, and that neighbours read."""
    total = _var(_convert_float(_row) - _convert_float(_column) / 3)
    with _for(-1, 2) as r, _for(-2, 3) as c:
        total @= total + _readTensor(f, _row + r, _column + c, border="reflect") * _convert_float(c + 3)
    with _if(_column % 3 == 0):
        total @= total / 7
    return total


@pytest.mark.parametrize("shape", [(21, 19), (24, 32), (3, 2)], ids=str)
def test_positions_conditions_and_loops(shape):
    x = np.random.default_rng(9).random(shape, np.float32)
    row, column = np.indices(shape, np.float32)
    want = row - column / np.float32(3)
    for r in range(-1, 2):
        for c in range(-2, 3):
            want = want + at(x, r, c, border="reflect") * np.float32(c + 3)
    want = np.where(column % 3 == 0, want / np.float32(7), want)
    with tiling():
        result = taps(slanted(gp.ScalarField(x)), AROUND, "symmetric")
        assert all(not TILE.refuse(kernel) for kernel in kernels_of(result))
        np.testing.assert_array_equal(result.numpy(), summed(want, AROUND, "symmetric"))


@gp.operator
def from_a_table(f):
    """The reads of a loop, weighted by a table."""
    weights, total = _constantArray([1.0, 2.0, 4.0]), _var(0.0)
    with _for(3) as k:
        total @= total + weights[k] * _readTensor(f, _row + k, _column)
    return total


def test_tables():
    x = np.random.default_rng(10).random((21, 19), np.float32)
    want = sum((at(x, k, 0, border="clamp") * np.float32(2**k) for k in range(1, 3)), at(x, 0, 0, border="clamp"))
    with tiling():
        result = from_a_table(gp.ScalarField(x))
        assert all(not TILE.refuse(kernel) for kernel in kernels_of(result))
        np.testing.assert_array_equal(result.numpy(), want)


def test_grids_of_one_and_three_axes():
    line = np.random.default_rng(1).random(45, np.float32)
    layers = np.random.default_rng(1).random((3, 11, 18), np.float32)

    @gp.operator
    def beside(f):
        return _readTensor(f, _column - 2, border="reflect") + _readTensor(f, _column + 1, border="reflect") * 2

    @gp.operator
    def in_layers(f):
        return _readTensor(f, _layer - 1, _row, _column + 1) + _readTensor(f, _layer, _row + 1, _column) * 2

    @gp.operator
    def in_one(f):
        return _readTensor(f, _layer, _row - 2, _column + 1) + _readTensor(f, _layer, _row, _column - 2) * 2

    def summed_line(x):
        return at(x, -2, border="reflect") + at(x, 1, border="reflect") * np.float32(2)

    with tiling():
        result = beside(beside(gp.ScalarField(line)))
        assert len(kernels_of(result)) == 1
        np.testing.assert_array_equal(result.numpy(), summed_line(summed_line(line)))
        result = in_one(in_layers(gp.ScalarField(layers)))
        assert len(kernels_of(result)) == 1
        want = at(layers, -1, 0, 1) + at(layers, 0, 1, 0) * np.float32(2)
        np.testing.assert_array_equal(result.numpy(), at(want, 0, -2, 1) + at(want, 0, 0, -2) * np.float32(2))


def test_tensors():
    """Each component of colours is computed by groups of its own, unless one depends on others."""
    x = np.random.default_rng(2).random((18, 20, 3), np.float32)

    @gp.operator
    def turned(f):
        return _readTensor(f).yzx * 2

    def each(offsets, of):
        return np.stack([summed(of[..., k], offsets, "clamp") for k in range(3)], -1)

    with tiling():
        f = gp.VectorField(x)
        result = f - taps(taps(f, DOWN, "clamp"), ACROSS, "clamp")
        (kernel,) = kernels_of(result)
        assert schedules.schedule(kernel).domain.elements == 3
        np.testing.assert_array_equal(result.numpy(), x - each(ACROSS, each(DOWN, x)))
        result = taps(turned(taps(f, DOWN, "clamp")), ACROSS, "clamp")
        assert schedules.schedule(kernels_of(result)[0]).domain.elements == 1
        np.testing.assert_array_equal(result.numpy(), each(ACROSS, each(DOWN, x)[..., [1, 2, 0]] * np.float32(2)))


def test_what_is_not_tiled():
    f = gp.ScalarField(np.ones((1024, 1024), np.float32))

    @gp.operator
    def moving(f):
        return _readTensor(f, _row, _column + _column // 2) + _readTensor(f, _row, _column // 2)

    def refused(result, **changes):
        (kernel,) = kernels_of(result)
        return TILE.refuse(replace(kernel, target=replace(CUDA, **changes)))

    stages = taps(taps(f, DOWN, "clamp"), ACROSS, "clamp")
    assert refused(stages) == ""
    assert refused(stages, widening="vector") == "only GPUs have local memory of their own"
    assert refused(stages, local_memory_bytes=256) == "a tile of its stages does not fit in local memory"
    assert refused(f * 2) == "its threads share no values or reads"
    large = [(r, c) for r in range(-3, 4) for c in range(-3, 4)]
    assert len(kernels_of(moving(taps(f, large, "clamp")))) == 2
    assert len(kernels_of(taps(taps(f, DOWN, "clamp"), ACROSS, "wrap"))) == 2
    assert len(kernels_of(taps(taps(taps(f, DOWN, "wrap"), ACROSS, "wrap"), DOWN, "clamp"))) == 2


@pytest.mark.parametrize(
    "pinned",
    [
        {"rows": 5, "columns": 6, "tall": 3, "lanes": 8},
        {"rows": 1, "columns": 1, "tall": 1, "lanes": 1},
        {"rows": 24, "columns": 4096, "tall": 64, "lanes": 3},
    ],
    ids=str,
)
def test_pinned_parameters_are_taken_to_what_will_do(pinned):
    x = np.random.default_rng(4).random((31, 26), np.float32)
    with tiling(**pinned):
        actual = taps(taps(gp.ScalarField(x), AROUND, "reflect"), ACROSS, "reflect").numpy()
    np.testing.assert_array_equal(actual, summed(summed(x, AROUND, "reflect"), ACROSS, "reflect"))


@pytest.mark.parametrize("form", ["interpreted", *DRIVERS[:1]])
def test_arrays_of_users(form):
    """Their rows begin anywhere, so inputs are read, and results written, one by one."""
    memory = np.random.default_rng(6).integers(0, 100, (40, 40)).astype(np.float32)
    array = memory[1:34:2, 3:-5]
    with tiling(form):
        backend = devices.current()
        field = gp.Field(np.ascontiguousarray(array))
        what = program([taps(taps(field, ACROSS, "reflect"), DOWN, "symmetric").node])
        ((leaf, _),) = what.leaves.items()
        buffer = backend.upload(gp.FieldType(memory.size - 43), memory.reshape(-1)[43:].reshape(1, -1))
        values = evaluate.prepare(
            what, backend, None, layouts={leaf: layout_of(gp.FieldType(array.shape), (80, 1))}
        ).run({leaf: buffer})
        (output,) = what.results
        actual = backend.download(what.types[output], values[output]).reshape(array.shape)
    np.testing.assert_array_equal(actual, summed(summed(array, ACROSS, "reflect"), DOWN, "symmetric"))


def test_neighbours_are_accessed_at_once_in_cuda():
    f = gp.ScalarField(np.ones((1024, 1024), np.float32))
    (kernel,) = kernels_of(
        taps(taps(f, [(r, 0) for r in range(-9, 10)], "clamp"), [(0, c) for c in range(-9, 10)], "clamp")
    )
    text = generate(kernel, CUDA).text
    assert (
        "if (interior) {" in text and text.count("__syncthreads()") == 2
    )  # the first one before what lies outside is put right
    ptx = ptx_of(text, "compute_90")
    assert "ld.shared.v4.f32" in ptx and "st.global.v4.f32" in ptx
    assert ".local" not in ptx  # windows are in registers


@gp.operator(outputs=lambda f, last: f.type.replace(tensor_shape=()))
def chosen(f, last):
    """An element whose number a thread computes, of a vector beside."""
    _writeTensor(_out0, _readTensorElement(f, _row, _column + 1, _min(_row, last)))


@pytest.mark.parametrize("elements", [2, 3, 4])
def test_elements_at_computed_places(elements):
    x = np.random.default_rng(5).random((5, 7, elements), np.float32)
    with tiling():
        actual = chosen(gp.VectorField(x) * 2 + 1, elements - 1).numpy()
    moved = np.concatenate([x[:, 1:], x[:, -1:]], 1) * np.float32(2) + 1
    np.testing.assert_array_equal(actual, moved[np.arange(5), :, np.minimum(np.arange(5), elements - 1)])
