"""Transposes through tiles: NumPy's values at every size, dtype and order of axes, and what is not transposed so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import permutations
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import layout_of
from gpuop.ir.nodes import For
from gpuop.ir.visit import walk
from gpuop.passes.schedules import methods as schedules
from gpuop.passes.schedules.common.transpose import TRANSPOSE
from gpuop.runtime import devices
from tests.as_gpus import AS_A_GPU, used
from tests.codegen.nvrtc import ptx_of
from tests.conftest import Vectorized, Widened

rng = np.random.default_rng(17)
CUDA = target_named("cuda")
DTYPES = ("uint8", "int16", "float16", "float32", "float64", "int64", "bool")
CPU = replace(Vectorized.target, device="cpu")
GPU = replace(Widened.target, device="gpu")
BEST = [d.name for d in gp.devices() if d.name.startswith("opencl")]
FORMS = ["gpu", "cpu", *(f"{name} as a gpu" for name in BEST[:1]), *BEST[:1]]
SHAPES = [(16, 16), (33, 35), (64, 48), (17, 128), (130, 131)]  # with pieces of tiles, and rows of any alignment


@contextmanager
def tiling(form: str) -> Iterator[None]:
    """A device that transposes through tiles, however small the grid: an interpreter of lowered kernels, or a driver."""
    methods = mock.patch.object(schedules, "METHODS", (TRANSPOSE,))
    if form in ("gpu", "cpu"):
        backend = Widened() if form == "gpu" else Vectorized()
        backend.target = GPU if form == "gpu" else CPU
        with mock.patch.dict(devices._open, reference=backend), gp.use_device("reference"), methods:
            yield
        return
    with used(form) as backend, methods:
        with mock.patch.object(backend, "target", replace(backend.target, least_threads=1)):
            yield


def kernel_of(*results: gp.Field, target=GPU) -> Kernel:
    (step,) = plan(program([result.node for result in results])).launches
    return replace(step.kernel, target=target)


@gp.operator(outputs=lambda f: f.type.replace(field_shape=f.type.field_shape[::-1]))
def transposed(f):
    return _readTensor(f, _column, _row)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sizes(form, shape):
    """Alone, and between pointwise operators."""
    x = rng.random(shape, np.float32)
    with tiling(form):
        f = gp.ScalarField(x)
        alone, between = transposed(f), transposed(f * 3 + 1) * 2 - gp.ScalarField(x.T.copy())
        assert not TRANSPOSE.refuse(kernel_of(alone)) and not TRANSPOSE.refuse(kernel_of(between))
        gp.evaluate(alone, between)
        np.testing.assert_array_equal(alone.numpy(), x.T)
        np.testing.assert_array_equal(between.numpy(), (x * 3 + 1).T * 2 - x.T)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [SHAPES[1], SHAPES[2], SHAPES[4]], ids=str)
def test_from_the_ends_of_axes(form, shape):
    """Turns by a quarter, and what mirrors both axes; together with a plain transpose of another field."""
    x, y = rng.random(shape, np.float32), rng.random(shape, np.float32)
    with tiling(form):
        f, g = gp.ScalarField(x), gp.ScalarField(y)
        turned = [np.rot90(f + 1), np.rot90(f, 3) - g.T, np.flip(f.T)]
        for result, want in zip(turned, (np.rot90(x + 1), np.rot90(x, 3) - y.T, np.flip(x.T)), strict=True):
            assert not TRANSPOSE.refuse(kernel_of(result))
            np.testing.assert_array_equal(result.numpy(), want)


def test_small_elements_from_the_ends_of_axes():
    x = rng.integers(0, 256, (70, 131)).astype(np.uint8)
    planes = rng.random((20, 3, 40), np.float32)
    with tiling("gpu"):
        np.testing.assert_array_equal(np.rot90(gp.ScalarField(x)).numpy(), np.rot90(x))
        turned = np.rot90(gp.ScalarField(planes), axes=(0, 2))
        assert not TRANSPOSE.refuse(kernel_of(turned))
        np.testing.assert_array_equal(turned.numpy(), np.rot90(planes, axes=(0, 2)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 100), (15, 31)], ids=str)
def test_what_is_smaller_than_a_tile(form, shape):
    x = rng.random(shape, np.float32)
    with tiling(form):
        result = transposed(gp.ScalarField(x))
        assert TRANSPOSE.refuse(kernel_of(result)) == "it is small"
        np.testing.assert_array_equal(result.numpy(), x.T)


@pytest.mark.parametrize("form", [*FORMS, *BEST[1:]])
@pytest.mark.parametrize("columns", [64, 70])
def test_dtypes(form, columns):
    """Elements of every size, alone and together with wider and narrower ones."""

    @gp.operator(outputs=lambda f, g: (gp.FieldType(g.type.field_shape, dtype="float64"), g.type))
    def mixed(f, g):
        _writeTensor(_out0, _convert_double(_readTensor(f, _column, _row)) + _convert_double(_readTensor(g)))
        _writeTensor(_out1, _readTensor(g))

    small = rng.integers(0, 9, (columns, 66)).astype(np.uint8)
    with tiling(form):
        several = {"gpu": DTYPES, FORMS[-1]: DTYPES[:5], "cpu": DTYPES[1:3]}.get(form, DTYPES[::4])
        for dtype in several if columns == 64 else several[:1]:
            x = rng.integers(0, 2 if dtype == "bool" else 100, (66, columns)).astype(dtype)
            result = transposed(gp.ScalarField(x))
            assert not TRANSPOSE.refuse(kernel_of(result))
            np.testing.assert_array_equal(result.numpy(), x.T)
            if dtype in ("int16", "float64"):
                both = mixed(gp.ScalarField(x), gp.ScalarField(small))
                assert not TRANSPOSE.refuse(kernel_of(*both))
                gp.evaluate(*both)
                np.testing.assert_array_equal(both[0].numpy(), x.T + small.astype("d"))
                np.testing.assert_array_equal(both[1].numpy(), small)


@pytest.mark.parametrize("form", ["gpu", *FORMS[2:3]])
@pytest.mark.parametrize("shape", [(67, 130), (70, 41), (131, 64)], ids=str)
def test_words(form, shape):
    """Small elements of rows that begin anywhere: rows and words that are partly outside, pinned tiles, and what has to stay."""
    with tiling(form):
        for dtype, lanes in (("uint8", 4), ("float16", 2), ("int16", 2))[: 3 if form == "gpu" else 1]:
            x = rng.integers(0, 100, shape).astype(dtype)
            f = gp.ScalarField(x)
            whole, beside = transposed(f + 3) * 2, transposed(f) + gp.ScalarField(x.T.copy())
            kernels = kernel_of(whole), kernel_of(beside)
            assert [TRANSPOSE.candidates(kernel)[0]["lanes"] for kernel in kernels] == [lanes, 1]
            gp.evaluate(whole, beside)
            np.testing.assert_array_equal(whole.numpy(), (x.T + x.dtype.type(3)) * x.dtype.type(2))
            np.testing.assert_array_equal(beside.numpy(), x.T + x.T)
            with gp.schedule("transpose", align=2 * lanes):
                np.testing.assert_array_equal((transposed(f) * 3).numpy(), x.T * x.dtype.type(3))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
@pytest.mark.parametrize(
    "value", [{"align": 1}, {"align": 2}, {"rows": 1, "columns": 1}, {"lanes": 2, "align": 1}, {"lanes": 1}]
)
def test_whatever_is_pinned_is_aligned(dtype, value):
    """Accesses of several elements begin where memory is aligned for them, whoever wants tiles; so do those of a thread alone."""
    for shape in (67, 130), (131, 64), (17, 131):
        x = rng.integers(0, 100, shape).astype(dtype)
        with gp.use_device("reference:sm_90"), gp.schedule("transpose", **value):
            np.testing.assert_array_equal((transposed(gp.ScalarField(x)) * 3).numpy(), x.T * x.dtype.type(3))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_three_dimensions(form, order):
    """Any order of axes of which the last one moves."""
    x = rng.integers(0, 99, (18, 33, 20)).astype(np.float32)
    shape = tuple(x.shape[axis] for axis in order)

    @gp.operator(outputs=lambda f: f.type.replace(field_shape=shape))
    def permuted(f):
        at = (_layer, _row, _column)
        return _readTensor(f, *(at[order.index(axis)] for axis in range(3))) + _layer * 10000

    with tiling(form):
        result = permuted(gp.Field(x))
        reason = TRANSPOSE.refuse(kernel_of(result))
        assert reason == ("it reads nothing transposed" if order[-1] == 2 else "")
        layers = np.arange(shape[0], dtype="f")[:, None, None] * 10000
        np.testing.assert_array_equal(result.numpy(), x.transpose(order) + layers)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [64, 37])
def test_bodies(form, n):
    """Colours, complex numbers, both orders of a field, neighbours, positions, a table, a loop and a condition."""
    x, colour = rng.integers(0, 9, (n, n)).astype("f"), rng.integers(0, 9, (n, n, 3)).astype("f")
    z = (x + 1j * colour[..., 0]).astype(np.complex64)

    @gp.operator(outputs=lambda f, c, s: (f.type, c.type))
    def body(f, c, s):
        table = _constantArray(np.array([3, 5, 7], "f"))
        total = _var(_readTensor(f) - _readTensor(f, _column, _row) * 2)
        with _for(3) as k:
            total += table[k] * _readTensor(s)
        with _if(_row > _column):
            total += _readTensor(f, _row - 1, _column, border="zero")
        _writeTensor(_out0, total + _columns)
        _writeTensor(_out1, _readTensor(c, _column, _row) * 2 + _readTensor(c))

    with tiling(form):
        first, second = body(gp.ScalarField(x), gp.VectorField(colour), gp.Parameter(2.0))
        turned = transposed(gp.ScalarField(z))
        assert not TRANSPOSE.refuse(kernel_of(first, second)) and not TRANSPOSE.refuse(kernel_of(turned))
        gp.evaluate(first, second, turned)
        above = np.tril(np.pad(x, ((1, 0), (0, 0)))[:-1], -1)
        np.testing.assert_array_equal(first.numpy(), x - x.T * 2 + 30 + above + n)
        np.testing.assert_array_equal(second.numpy(), colour.transpose(1, 0, 2) * 2 + colour)
        np.testing.assert_array_equal(turned.numpy(), z.T)


@pytest.mark.parametrize("form", ["cpu", *BEST])
@pytest.mark.parametrize("shape", [(48, 64), (37, 53)], ids=str)
def test_vectors(form, shape):
    """Points are computed in vectors on CPUs, by their positions and conditions too; not where there are tables."""

    @gp.operator
    def body(g, f, s):
        total = _var(_sqrt(_readTensor(f, _column, _row)) + _readTensor(g) * s)
        with _if(_column > 2 * _row):
            total -= _column * 0.125
        return total

    @gp.operator
    def indexed(g, f):
        table = _constantArray(np.array([3, 5, 7], "f"))
        return _readTensor(f, _column, _row) * table[_convert_int(_readTensor(g)) % 3]

    x, y = rng.integers(0, 9, shape).astype("f"), rng.integers(0, 9, shape[::-1]).astype("f")
    rows, columns = np.indices(y.shape)
    with tiling(form):
        values = gp.ScalarField(y), gp.ScalarField(x)
        first, second = body(*values, gp.Parameter(2.0)), indexed(*values)
        assert [_lanes(TRANSPOSE.apply(*_ready(result))) for result in (first, second)] == [True, False]
        gp.evaluate(first)  # alone: with the other one it would have the table
        want = np.sqrt(x.T) + y * 2 - np.where(columns > 2 * rows, columns / 8, 0).astype("f")
        np.testing.assert_array_equal(first.numpy(), want.astype("f"))
        np.testing.assert_array_equal(second.numpy(), x.T * np.array([3, 5, 7], "f")[y.astype(int) % 3])


def _ready(result: gp.Field) -> tuple[Kernel, object]:
    kernel = kernel_of(result, target=CPU)
    return kernel, TRANSPOSE.candidates(kernel)[0]


def _lanes(kernel: Kernel) -> bool:
    return any(isinstance(stmt, For) and stmt.lanes for stmt in walk(kernel.body))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(34, 48), (35, 37)], ids=str)
def test_big_tensors(form, shape):
    """A thread for each element of a tensor."""
    x = rng.random((*shape, 40), np.float32)

    @gp.operator(outputs=lambda f: f.type.replace(field_shape=f.type.field_shape[::-1]))
    def big(f):
        with _forEachTensorElement(f.type.planes):
            _writeTensorElement(_out0, _readTensorElement(f, _column, _row, _tensorElement) * 2)

    with tiling(form):
        result = big(gp.VectorField(x))
        assert not TRANSPOSE.refuse(kernel_of(result))
        np.testing.assert_array_equal(result.numpy(), x.transpose(1, 0, 2) * 2)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [128, 37])
def test_states(form, n):
    """One that is updated in place stands in tiles that do not overlap, or in none."""
    x = rng.integers(0, 9, (n, n)).astype(np.float32)
    with tiling(form), gp.ComputeGraph() as graph:
        total, other = gp.ScalarField(np.zeros_like(x)), gp.ScalarField(x)
        total.next, other.next = total + transposed(other), other * 2
        graph.probe(total, "total")
    with tiling(form):
        graph.reset()
        want, now = np.zeros_like(x), x
        for _ in range(3):
            np.testing.assert_array_equal(graph.read("total"), want)
            want, now = want + now.T, now * 2
            graph.step()
        (kernel,) = (launch.kernel for launch in graph.plan.launches if "transposed" in launch.kernel.name)
        in_place = bool(kernel.shared_memory)
        assert TRANSPOSE.refuse(replace(kernel, target=GPU)) == ("it is small" if in_place and n == 37 else "")
        assert in_place or form.endswith(AS_A_GPU)


def test_refusals():
    f = gp.ScalarField(np.zeros((64, 64), np.float32))

    def reason(body, *arguments, **options):
        return TRANSPOSE.refuse(kernel_of(gp.operator(name="one", **options)(body)(*(arguments or (f,)))))

    nothing = "it reads nothing transposed"
    assert reason(lambda f: _readTensor(f, _column, _row)) == ""
    assert reason(lambda f: _readTensor(f) * 2) == nothing
    assert reason(lambda f: _readTensor(f, _column + 1, _row, border="wrap")) == nothing
    assert reason(lambda f: _readTensor(f, _columns - 1 - _column, _row)) == nothing
    assert reason(lambda f: _readTensor(f, _row, _row)) == nothing
    assert reason(lambda f: _readTensor(f, 1, 2), outputs=gp.FieldType(())) == nothing
    assert reason(lambda f: _readTensor(f, _column, _row), outputs=gp.FieldType((64, 60))) == nothing
    assert reason(lambda f: _readTensor(f, _column, _row) + _localColumn) == "it uses indices of its work-groups"
    scattered = gp.operator(name="one", outputs=f.type)(
        lambda f: _writeTensor(_out0, _readTensor(f, _column, _row), _row, _columns - 1 - _column)
    )
    assert TRANSPOSE.refuse(kernel_of(scattered(f))) == "it writes points that are not the thread's own"
    kernel = kernel_of(transposed(f))
    assert TRANSPOSE.refuse(replace(kernel, target=CUDA)) == "it is small"
    strided = layout_of(f.type, (128, 1))
    elsewhere = replace(kernel, layouts=((kernel.inputs[0], strided),))
    assert TRANSPOSE.refuse(elsewhere) == "an array of the user is not aligned"


@pytest.mark.parametrize("shape", [(2048, 4096), (2047, 4095)], ids=str)
@pytest.mark.parametrize(("dtype", "wide"), [("float32", "v4.f32"), ("uint8", "v4.u32"), ("float64", "v2.f64")])
def test_what_cuda_is_given(dtype, wide, shape):
    """16 bytes at a time where rows allow that, a tile in local memory, and nothing in a thread's own memory."""
    kernel = replace(kernel_of(transposed(gp.ScalarField(np.zeros(shape, dtype)))), target=CUDA)
    assert not TRANSPOSE.refuse(kernel)
    ptx = ptx_of(generate(kernel, CUDA).text, "compute_90")
    assert ".local" not in ptx and "st.shared" in ptx and "bar.sync" in ptx
    assert (f".{wide}" in ptx) == (shape == (2048, 4096))


@pytest.mark.parametrize(
    ("shape", "dtype", "align", "lanes"),
    [
        ((515, 640), "float32", 8, 1),
        ((515, 643), "float64", 4, 1),
        ((515, 643), "int16", 16, 2),
        ((515, 643), "uint8", 32, 4),
    ],
    ids=str,
)
def test_writes_are_aligned(shape, dtype, align, lanes):
    """Rows may begin anywhere; rows of tiles begin at multiples of 32 bytes in memory; small elements are moved in words."""
    f = gp.ScalarField(np.zeros(shape, dtype))
    kernel = kernel_of(transposed(f))
    parameters = TRANSPOSE.candidates(kernel)[0]
    assert (parameters["lanes"], parameters["align"]) == (lanes, align)
    text = generate(replace(kernel, target=replace(CUDA, least_threads=1)), replace(CUDA, least_threads=1)).text
    assert align - 1 in {int(n, 0) for n in re.findall(r"& (0x[0-9a-f]+|\d+)", text)}
    assert ("::load" in text) == ("::store" in text) == (lanes > 1)
    (rows, columns) = kernel.domain.shape
    size, filled = parameters["size"], np.zeros(columns, int)
    for row in (0, 1, rows - 1):  # as the text has it: every point once, pieces of whole sectors
        for left in range(0, columns + align - 1, size):
            first = left - ((row * columns + left) & (align - 1))
            assert (row * columns + first) % align == 0
            filled[max(first, 0) : max(first + size, 0)] += 1
        assert (filled == 1).all()
        filled[:] = 0
    even = kernel_of(
        transposed(gp.ScalarField(np.zeros((512, 515), dtype)))
    )  # rows that are written are aligned anyway
    assert TRANSPOSE.candidates(even)[0]["align"] == lanes


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16", "float64"])
def test_threads_read_other_banks(dtype):
    """Of the 32 that run in step, at most two need different words of one bank at a time; of doubles half of them count."""
    kernel = replace(kernel_of(transposed(gp.ScalarField(np.zeros((4096, 4096), dtype)))), target=CUDA)
    parameters = TRANSPOSE.candidates(kernel)[0]
    tile = next(stmt.array for stmt in TRANSPOSE.apply(kernel, parameters).body if hasattr(stmt, "array"))
    size, pitch = np.dtype(dtype).itemsize, tile.shape[1]
    threads = np.arange(16 if size == 8 else 32)
    row, piece = threads // parameters["columns"], threads % parameters["columns"]
    lanes, word = parameters["lanes"], max(4 // size, 1)
    for lane in range(lanes):
        filled = row * pitch + piece * lanes + lane + row // lanes * word
        read = (piece * lanes + lane) * pitch + row + piece * word
        for at in (filled, read):
            words = np.unique(at * size // max(size, 4))
            assert np.bincount(words % (16 if size == 8 else 32)).max() <= 2


@gp.operator(outputs=gp.FieldType(()))
def last_of(field):
    return _readTensor(field, field.field_shape[0] - 1)


@pytest.mark.parametrize("form", FORMS)
def test_a_single_thread_has_no_axes_to_turn(form):
    with tiling(form):
        assert last_of(gp.ScalarField(np.arange(5, dtype="f"))).numpy() == 4
