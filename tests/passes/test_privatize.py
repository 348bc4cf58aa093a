"""Scatters through private copies: NumPy's counts on every grid, and what has to stay a scatter."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel, Pin
from gpuop.passes.schedules import methods as schedules
from gpuop.passes.schedules.common import privatize
from gpuop.passes.schedules.common.privatize import PRIVATIZE
from gpuop.passes.schedules.common.strips import own_lanes
from gpuop.runtime import devices
from tests.as_gpus import AS_A_GPU
from tests.as_gpus import used as using
from tests.borders import CHECKED, PLACES
from tests.codegen.nvrtc import ptx_of
from tests.conftest import Vectorized, Widened

rng = np.random.default_rng(17)
TARGETS = {"cpu": replace(Vectorized.target, device="cpu"), "gpu": replace(Widened.target, device="gpu")}
DRIVERS = [d.name for d in gp.devices() if d.name.startswith("opencl")]
FORMS = [
    ("gpu", "interpreted"),
    *(("cpu", where) for where in ("interpreted", *DRIVERS)),
    *(("gpu", where) for where in DRIVERS[:1]),
]
SHAPES = [(1,), (3,), (17,), (1000,), (1, 1), (2, 3), (3, 16), (33, 7), (13, 64), (5, 300), (2, 3, 5), (3, 17, 31)]


def used(form: str) -> mock._patch:
    """Copies however small the grid, and more points for a thread than there are."""
    small = {"WORTH": 0, "LEAST": 1, "STRIPS": (3, 1), "POINTS": (5, 1)}
    return mock.patch.multiple(privatize, **small)


@contextmanager
def privately(form: str, where: str = "interpreted") -> Iterator[None]:
    methods = mock.patch.object(schedules, "METHODS", (PRIVATIZE,))
    if where == "interpreted":
        backend = (Vectorized if form == "cpu" else Widened)()
        with mock.patch.object(backend, "target", TARGETS[form]), mock.patch.dict(devices._open, reference=backend):
            with gp.use_device("reference"), methods, used(form):
                yield
        return
    with using(f"{where}{AS_A_GPU}" if form == "gpu" else where) as backend, methods, used(form):
        with mock.patch.object(backend, "target", replace(backend.target, least_threads=1)):
            yield


def kernel_of(*results: gp.Field) -> Kernel:
    (step,) = plan(program([result.node for result in results])).launches
    return step.kernel


def refusal(form: str, *results: gp.Field) -> str:
    with used(form):
        return PRIVATIZE.refuse(replace(kernel_of(*results), target=TARGETS[form]))


def histogram(bins: int, dtype: str = "int32", default: int = 0) -> gp.Operator:
    @gp.operator(outputs=gp.FieldType(bins, dtype=dtype), default=default)
    def histogram(levels):
        _globalThreads(levels)
        _atomic_inc(_pointerTo(_out0, _convert_int(_readTensor(levels))))

    return histogram


@pytest.mark.parametrize(("form", "where"), FORMS)
def test_histograms(form, where):
    """On grids of every kind; bins outside are dropped, and the output keeps what it held."""
    with privately(form, where):
        for shape in SHAPES if where == "interpreted" else [(1000,), (13, 64), (3, 17, 31)]:
            x = rng.integers(-3, 25, shape).astype(np.int32)
            counts = histogram(19, default=7)(gp.Field(x))
            assert not refusal(form, counts)
            expected = 7 + np.bincount(x[(x >= 0) & (x < 19)], minlength=19)
            np.testing.assert_array_equal(counts.numpy(), expected, str(shape))


OPERATIONS = {
    "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize(
    ("form", "where", "dtype"), [*((*form, "int32") for form in FORMS), ("cpu", "interpreted", "uint32")]
)
def test_operations(form, where, dtype):
    """All that may take turns, wrapping, beside outputs at own points and on one of several outputs each."""
    info, n = np.iinfo(dtype), 700
    x = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    x[5:40] = [info.min, info.max, 0, 1, info.max - 1] * 7
    at = rng.integers(0, 5, n).astype(np.uint8)

    @gp.operator(
        outputs=(*[gp.FieldType(5, dtype=dtype)] * 7, gp.FieldType(n, dtype=dtype)), default=(*[100] * 7, None)
    )
    def all_of(f, places):
        _globalThreads(f)
        value, place = _readTensor(f), _readTensor(places)
        for out, op in zip((_out0, _out1, _out2, _out3, _out4, _out5, _out6), OPERATIONS, strict=True):
            globals()[f"_atomic_{op}"](_pointerTo(out, place), value)
        _writeTensor(_out7, value ^ 1)

    expected = []
    for function in OPERATIONS.values():
        result = np.full(5, 100, dtype)
        function.at(result, at, x)
        expected.append(result)
    with privately(form, where):
        results = all_of(gp.Field(x), gp.Field(at))
        assert not refusal(form, *results)
        gp.evaluate(*results)
        for result, want, name in zip(results, [*expected, x ^ x.dtype.type(1)], [*OPERATIONS, "own"], strict=True):
            np.testing.assert_array_equal(result.numpy(), want, name)


def counted(border: str) -> gp.Operator:
    """Values of a stencil, and their sums under two of their remainders."""

    @gp.operator(outputs=lambda f: (gp.FieldType((4, 3), 2, "int32"), gp.FieldType(f.field_shape, dtype="int32")))
    def counted(f):
        _globalThreads(f)
        value = _readTensor(f, _row - 1, _column + 2, border=border) + 3 * _readTensor(f) + _row
        _atomic_inc(_pointerTo(_out0, 0, 3, 0))  # beyond a row of bins, not the first one of the next
        with _if(value % 5 != 0):
            with _for(2) as k:
                _atomic_add(_pointerTo(_out0, value % 5, value % 4, k), value + k)
        _writeTensor(_out1, value)

    return counted


@pytest.mark.parametrize(("form", "where"), FORMS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (13, 7), (6, 40)], ids=str)
def test_of_stencils(form, where, shape):
    """Through each border, in one kernel with the image that is counted; bins are points of rows, with tensors."""
    x = rng.integers(0, 40, shape).astype(np.uint8)
    rules = CHECKED if where == "interpreted" else CHECKED[:2]

    row = np.indices(shape)[0]
    with privately(form, where):
        for border in rules:
            results = counted(border)(gp.ScalarField(x))
            up = [PLACES[border](i - 1, shape[0]) for i in range(shape[0])]
            right = [PLACES[border](i + 2, shape[1]) for i in range(shape[1])]
            there = x[np.array([i or 0 for i in up])][:, np.array([i or 0 for i in right])].astype(np.int32)
            there *= np.array([i is not None for i in up])[:, None] & np.array([i is not None for i in right])
            value = there + 3 * x.astype(np.int32) + row
            expected = np.zeros((6, 4, 2), np.int32)
            for k in range(2):
                np.add.at(expected, (value % 5, value % 4, np.full_like(value, k)), np.where(value % 5, value + k, 0))
            assert not refusal(form, *results)
            gp.evaluate(*results)
            np.testing.assert_array_equal(results[1].numpy(), value, border)
            np.testing.assert_array_equal(results[0].numpy(), expected[:4, :3], border)


@pytest.mark.parametrize(("form", "where"), FORMS)
@pytest.mark.parametrize("shape", [(4, 4), (5, 7), (30, 30), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("placed", [False, True])
def test_bins_are_a_grid_like_that_of_what_is_counted(form, where, shape, placed):
    """Threads may count points along one axis, where none writes at places; places of bins have all axes."""
    x = rng.integers(0, math.prod(shape), shape).astype(np.int32)

    @gp.operator(outputs=lambda f: (f.type, f.type), default=(0, -1))
    def counted(f):
        value, at = _readTensor(f), []
        rest = value
        for n in reversed(shape):
            at.insert(0, rest % n)
            rest = rest / n
        _atomic_add(_pointerTo(_out0, *at), value)
        if placed:
            _writeTensor(_out1, value, *at)
        else:
            _writeTensor(_out1, value ^ 1)

    places = np.unravel_index(x, shape)
    sums, own = np.zeros_like(x), np.full_like(x, -1)
    np.add.at(sums, places, x)
    own[places] = x
    with privately(form, where):
        results = counted(gp.Field(x))
        assert not refusal(form, *results)
        gp.evaluate(*results)
        np.testing.assert_array_equal(results[0].numpy(), sums)
        np.testing.assert_array_equal(results[1].numpy(), own if placed else x ^ 1)


@pytest.mark.parametrize(
    ("shape", "where"),
    [
        *((shape, "interpreted") for shape in [(400,), (1003,), (3, 40), (5, 117), (2, 3, 70)]),
        *((shape, where) for shape in [(1003,), (5, 117)] for where in DRIVERS),
    ],
    ids=str,
)
def test_in_vectors(where, shape):
    """Places and values are found in vectors: of neighbours, under conditions, twice for a point; the rest one by one."""
    x = rng.standard_normal(shape).astype(np.float32) * 9
    around = len(shape) > 1  # a strip of a part of a row has no neighbours

    @gp.operator(outputs=lambda f: (gp.FieldType(11, dtype="int32"), gp.FieldType(6, dtype="uint32"), f.type))
    def found(f):
        _globalThreads(f)
        value = _readTensor(f)
        if around:
            value = value - _readTensor(f, *(_layer, _row, _column - 1)[3 - len(shape) :])
        _atomic_inc(_pointerTo(_out0, _convert_int(value)))
        with _if(value > 2):
            _atomic_add(_pointerTo(_out0, _convert_int(value * 0.25)), _convert_int(value))
        with _else():
            _atomic_max(_pointerTo(_out1, _convert_int(-value) & 7), _convert_uint(-value * 100))
        _writeTensor(_out2, value * 2)

    value = x - np.concatenate([x[..., :1], x[..., :-1]], -1) if around else x
    counts, most = np.zeros(11, np.int32), np.zeros(8, np.uint32)
    for at, by, chosen in ((value, np.ones_like(value), True), (value * np.float32(0.25), value, value > 2)):
        inside = (np.trunc(at) >= 0) & (np.trunc(at) < 11) & chosen
        np.add.at(counts, at[inside].astype(int), by[inside].astype(np.int32))
    small = ~(value > 2)
    np.maximum.at(
        most, (-value[small]).astype(int) & 7, np.maximum(-value[small] * np.float32(100), 0).astype(np.uint32)
    )
    with privately("cpu", where):
        results = found(gp.Field(x))
        kernel = kernel_of(*results)
        assert PRIVATIZE.candidates(replace(kernel, target=TARGETS["cpu"]))[0]["lanes"] == 8
        gp.evaluate(*results)
        for result, want in zip(results, (counts, most[:6], value * 2), strict=True):
            np.testing.assert_array_equal(result.numpy(), want)


@pytest.mark.parametrize("form", TARGETS)
def test_histograms_of_channels(form):
    """A thread for each channel of each point."""
    x = rng.integers(0, 9, (21, 10, 6)).astype(np.uint8)

    @gp.operator(outputs=gp.FieldType(9, 6, "uint32"))
    def channels(f):
        _globalThreads(f)
        with _forEachTensorElement((6,)):
            _atomic_inc(_pointerTo(_out0, _readTensorElement(f, _tensorElement), _tensorElement))

    with privately(form):
        result = channels(gp.VectorField(x))
        assert not refusal(form, result)
        expected = np.stack([np.bincount(x[..., k].ravel(), minlength=9) for k in range(6)], -1)
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("where", ["interpreted", *DRIVERS])
def test_vectors_of_threads(where):
    """A kernel that only a compiler makes vectors of keeps its threads on CPUs, and a work-group has a copy."""
    x = rng.integers(1, 400, (30, 70)).astype(np.int32)

    @gp.operator(outputs=gp.FieldType(30, dtype="int32"))
    def steps(f):
        _globalThreads(f)
        value, count = _var(_readTensor(f)), _var(0)
        with _while(value > 1):
            value @= value // 2 + (value & 1)
            count += 1
        _atomic_inc(_pointerTo(_out0, count))

    with privately("cpu", where):
        result = steps(gp.ScalarField(x))
        kernel = replace(kernel_of(result), target=TARGETS["cpu"])
        assert set(PRIVATIZE.candidates(kernel)[0]) == {"points"}
        np.testing.assert_array_equal(
            result.numpy(), np.bincount(np.ceil(np.log2(x)).astype(int).ravel(), minlength=30)
        )


@pytest.mark.parametrize("where", DRIVERS)
@pytest.mark.parametrize(("dtype", "gathered"), [("float32", True), ("float16", False)])
def test_tables(where, dtype, gathered):
    """Lanes look places up wherever they lie, but in halves, of which no device loads vectors so."""
    x, table = rng.integers(0, 200, (40, 640)), rng.integers(0, 30, 300).astype(dtype)

    @gp.operator(outputs=gp.FieldType(30, dtype="int32"))
    def looked_up(f, table):
        _globalThreads(f)
        _atomic_inc(_pointerTo(_out0, _convert_int(_readTensor(table, _readTensor(f) * 2 - 9))))

    with gp.use_device(where), gp.schedule("privatize", strips=4):
        with gp.ComputeGraph() as graph:
            graph.probe(looked_up(gp.ScalarField(x.astype("i4")), gp.ScalarField(table)), "counts")
        graph.reset()
        want = np.bincount(table[np.clip(x * 2 - 9, 0, 299)].astype(int).ravel(), minlength=30)
        np.testing.assert_array_equal(graph.read("counts"), want)
        assert ("gather_float16" in graph.source()) == gathered


@pytest.mark.parametrize("where", DRIVERS)
def test_pinned(where):
    """With any parameters, on any grid."""
    x = rng.integers(0, 9, (7, 33)).astype(np.float32)
    for value in ({}, {"strips": 4}, {"copies": 3}, {"copies": 1, "lanes": 8}):
        with gp.use_device(where), gp.schedule("privatize", **value):
            counts = histogram(8)(gp.ScalarField(x))
            pinned = Pin("privatize", tuple(value.items()))
            chosen = schedules.choice(replace(kernel_of(counts), target=TARGETS["cpu"], pin=pinned))
            assert chosen is not None and value.items() <= chosen[1].items()
            np.testing.assert_array_equal(
                counts.numpy(), np.bincount(x.astype(int).ravel(), minlength=9)[:8], str(value)
            )


def test_large_outputs_have_one_copy_of_a_thread():
    f = gp.ScalarField(rng.integers(0, 9000, (1024, 2048)).astype(np.int32))
    counts = {n: replace(kernel_of(histogram(n)(f)), target=TARGETS["cpu"]) for n in (4096, 4097, 9000)}
    assert [PRIVATIZE.candidates(kernel)[0]["copies"] for kernel in counts.values()] == [4, 1, 1]
    with privately("cpu"):
        small = gp.ScalarField(f.numpy()[:20, :100])
        np.testing.assert_array_equal(
            histogram(9000)(small).numpy(), np.bincount(small.numpy().ravel(), minlength=9000)
        )


def test_text_on_gpus():
    """A copy in local memory, and few updates of the output, which NVIDIA's compiler takes."""
    levels = gp.ScalarField(np.zeros((1024, 1024), np.uint8))
    text = generate(kernel_of(histogram(256)(levels)), target_named("cuda")).text
    assert re.search(r"__shared__ [^;]*int out0_shared\[256\];", text)
    assert "atomicAdd(&out0_shared[" in text and text.count("atomicAdd(&out0[") == 1
    assert "atom.shared" in ptx_of(text, "compute_90") or "red.shared" in ptx_of(text, "compute_90")


@pytest.mark.parametrize("form", TARGETS)
@pytest.mark.parametrize(
    ("dtype", "bins", "tested"), [("uint8", 256, False), ("uint8", 255, True), ("int8", 256, True)]
)
def test_bytes_are_places_without_a_test(form, dtype, bins, tested):
    x = np.arange(-300, 300).astype(dtype)
    with privately(form):
        counts = histogram(bins)(gp.Field(x))
        text = generate(kernel_of(counts), replace(target_named("opencl"), device=form, least_threads=1)).text
        assert (f"< {bins}u" in text) == tested
        expected = np.bincount(x[x >= 0].astype(int), minlength=bins)[:bins]
        np.testing.assert_array_equal(counts.numpy(), expected)


def refused(form: str, body: object, outputs: object, *fields: gp.Field, default: object = 0) -> str:
    results = gp.operator(outputs=outputs, default=default)(body)(*fields)
    return PRIVATIZE.refuse(
        replace(kernel_of(*([results] if isinstance(results, gp.Field) else results)), target=TARGETS[form])
    )


@pytest.mark.parametrize("form", TARGETS)
def test_what_stays_a_scatter(form):
    f = gp.ScalarField(rng.integers(0, 9, (512, 512)).astype(np.int32))
    counts = gp.FieldType(9, dtype="int32")

    def body(update):
        def scatter(f):
            _globalThreads(f)
            update(_pointerTo(_out0, _readTensor(f)), _readTensor(f))

        return scatter

    def numbered(f):
        _globalThreads(f)
        place = _atomic_inc(_pointerTo(_out0, 0))
        _writeTensor(_out1, place, _row, _column)

    def both(f):
        _globalThreads(f)
        _atomic_add(_pointerTo(_out0, _readTensor(f)), 1)
        _atomic_max(_pointerTo(_out0, 0), 1)

    def with_groups(f):
        _globalThreads(f)
        _atomic_add(_pointerTo(_out0, _localColumn & 7), 1)

    order = "it has no updates of an output that may be reordered"
    assert refused(form, body(lambda p, x: _atomic_add(p, x)), counts, f) == ""
    assert refused(form, body(lambda p, x: _atomic_xchg(p, x)), counts, f) == order
    assert refused(form, body(lambda p, x: _atomic_add(p, _convert_float(x))), gp.FieldType(9), f) == order
    assert refused(form, numbered, (counts, gp.FieldType(f.field_shape, dtype="int32")), f) == order
    assert refused(form, both, counts, f) == order
    assert refused(form, with_groups, counts, f) == "it uses indices of its work-groups"
    most = TARGETS[form].local_memory_bytes // 2 if form == "gpu" else 1 << 18
    large = refused(form, body(lambda p, x: _atomic_add(p, x)), gp.FieldType(1 << 17, dtype="int32"), f)
    assert large == f"copies of what it updates take 524288 bytes, over {most}"
    few = gp.ScalarField(np.zeros((20, 20), np.int32))
    with mock.patch.dict(TARGETS, gpu=replace(TARGETS["gpu"], least_threads=1 << 16)):
        result = refused(form, body(lambda p, x: _atomic_add(p, x)), counts, few)
    assert result == "its 400 points are few beside what it updates"


@pytest.mark.parametrize(("form", "where"), FORMS[:1])
@pytest.mark.parametrize("columns", [64, 50])
def test_neighbours_are_read_at_once(form, where, columns):
    """16 bytes of each channel where rows are aligned for that, beside outputs at own points; never what others read. Where
    threads do not know where they are, the grid is one row."""

    @gp.operator(
        outputs=lambda f: (gp.FieldType((3, 256), dtype="int32"), gp.FieldType(f.type.field_shape, dtype="int32"))
    )
    def channels(levels):
        _globalThreads(levels)
        colour = _readTensor(levels)
        for k, level in enumerate((colour.x, colour.y, colour.z)):
            _atomic_inc(_pointerTo(_out0, k, level))
        _writeTensor(_out1, _convert_int(colour.y) + _column)

    @gp.operator(outputs=gp.FieldType(256, dtype="int32"))
    def beside(levels):
        _globalThreads(levels)
        _atomic_inc(_pointerTo(_out0, _readTensor(levels, _row, _column + 1, border="wrap")))

    x = rng.integers(0, 256, (9, columns, 3)).astype(np.uint8)
    counts, greens = channels(gp.VectorField(x))
    other = beside(gp.ScalarField(x[..., 0].copy()))
    target = replace(target_named("cuda"), least_threads=1)
    ptx = ptx_of(generate(replace(kernel_of(counts, greens), target=target), target).text, "compute_90")
    assert ("ld.global.nc.v4.u32" in ptx or "ld.global.v4.u32" in ptx) == (columns == 64) and ".local" not in ptx
    assert own_lanes(replace(kernel_of(other), target=target)) == 1
    placeless = histogram(256)(gp.ScalarField(x[..., 0].copy()))
    text = generate(replace(kernel_of(placeless), target=target), target).text
    assert "neighbours<unsigned char, 16>::load" in text and (f"{9 * columns // 16 * 16}]" in text) == (columns == 50)
    with privately(form, where):
        gp.evaluate(counts, greens, other, placeless)
        expected = [np.bincount(x[..., k].ravel(), minlength=256) for k in range(3)]
        np.testing.assert_array_equal(counts.numpy(), expected)
        np.testing.assert_array_equal(greens.numpy(), x[..., 1].astype(int) + np.arange(columns))
        np.testing.assert_array_equal(other.numpy(), expected[0])
        np.testing.assert_array_equal(placeless.numpy(), expected[0])


def test_only_the_last_groups_test_every_point():
    """On grids of any size: a load behind a test waits for it."""
    target = replace(target_named("cuda"), least_threads=1)

    @gp.operator(outputs=gp.FieldType(256, dtype="int32"))
    def of_even_columns(levels):
        _globalThreads(levels)
        _atomic_add(_pointerTo(_out0, _readTensor(levels)), ~_column & 1)

    counts = of_even_columns(gp.ScalarField(np.zeros((4095, 511), np.uint8)))
    body = generate(replace(kernel_of(counts), target=target), target).text.split("__syncthreads();")[1]
    column, row, loop, update = (body.index(text) for text in ("_thread < 511", "+ 127 < 4095", "for (", "atomicAdd"))
    assert column < row < loop < update and "if" not in body[loop:update]
    assert re.search(r"else \{\s*for .*\{\s*const int row_1 = .*;\s*if \(row_1 < 4095\)", body)
