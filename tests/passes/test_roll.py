"""Stencils whose threads walk over rows: NumPy's values at every size, border, dtype and memory, and what is not walked."""

from __future__ import annotations

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
from gpuop.engine import evaluate
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import layout_of
from gpuop.passes.schedules import methods as schedules
from gpuop.passes.schedules.gpu.roll import DEEP, ROLL
from gpuop.runtime import devices
from gpuop.runtime.reference.gpu_memory import GpuMemory
from tests.borders import CHECKED, PLACES
from tests.codegen.nvrtc import ptx_of
from tests.conftest import Widened

rng = np.random.default_rng(17)
CUDA = target_named("cuda")
DTYPES = ("uint8", "int16", "float16", "float32", "float64", "int64")
WIDENED = Widened.target
# one point, fields smaller than windows, lanes that divide rows and that do not
SHAPES = [(1, 1), (2, 3), (3, 16), (7, 33), (13, 12)]
FORMS = ["interpreted", *(d.name for d in gp.devices() if d.name.startswith("opencl"))][:2]


def reason(kernel: Kernel) -> str:
    """The reason against the walk, but for costs."""
    why = ROLL.refuse(kernel)
    return "" if why == DEEP or "times" in why else why


WALK = replace(ROLL, refuse=reason)


@contextmanager
def walking(form: str = "interpreted", method: object = WALK) -> Iterator[None]:
    """A device whose threads walk, however small the grid: an interpreter of lowered kernels, or a driver."""
    methods = mock.patch.object(schedules, "METHODS", (method,))
    if form == "interpreted":
        with mock.patch.dict(devices._open, reference=Widened()), gp.use_device("reference"), methods:
            yield
        return
    with gp.use_device(form) as backend, methods:
        changed = replace(backend.target, device="gpu", widening="unrolled", least_threads=1)
        limits = mock.patch.object(backend, "limits", replace(backend.limits, target=changed))
        with mock.patch.object(backend, "target", changed), limits:
            yield


def kernel_of(*results: gp.Field) -> Kernel:
    (step,) = plan(program([result.node for result in results])).launches
    return replace(step.kernel, target=WIDENED)


def at(x: np.ndarray, *away: int, border: str = "clamp", fill: float = 0) -> np.ndarray:
    """The values so far away along the first axes."""
    inside = np.ones(x.shape, bool)
    for axis, k in enumerate(away):
        n = x.shape[axis]
        results = [PLACES[border](i + k, n) for i in range(n)]
        x = np.take(x, [i or 0 for i in results], axis)
        shape = [-1 if a == axis else 1 for a in range(x.ndim)]
        inside &= np.array([i is not None for i in results]).reshape(shape)
    return np.where(inside, x, np.asarray(fill, x.dtype))


WINDOW = [(0, 0), (-1, -2), (-1, 1), (0, 3), (2, 0), (1, -1), (2, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rules", [*((word,) for word in CHECKED), (7, "wrap"), (2, 3, "clamp")], ids=str)
def test_borders(shape, rules):
    """Every rule, in corners too; several in one kernel; numbers outside."""
    x = rng.integers(-9, 10, shape).astype(np.int32)

    @gp.operator(outputs=lambda f: (f.type,) * len(rules))
    def ruled(f):
        for out, border in zip((_out0, _out1, _out2), rules, strict=False):
            taps = [
                _readTensor(f, _row + r, _column + c, border=border) * (5 * n + 1) for n, (r, c) in enumerate(WINDOW)
            ]
            _writeTensor(out, sum(taps[1:], taps[0]))

    results = ruled(gp.ScalarField(x))
    results = results if isinstance(results, tuple) else (results,)
    assert not ROLL.refuse(kernel_of(*results))
    with walking():
        for actual, rule in zip(results, rules, strict=True):
            border, fill = (rule, 0) if isinstance(rule, str) else ("zero", rule)
            want = sum(at(x, *away, border=border, fill=fill) * (5 * n + 1) for n, away in enumerate(WINDOW))
            np.testing.assert_array_equal(actual.numpy(), want)


@gp.operator
def weighed(f):
    return _readTensor(f, _row - 1, _column - 1) + _readTensor(f, _row + 1, _column + 2) * 2 + _readTensor(f) * 4


def weights(x):
    return at(x, -1, -1) + at(x, 1, 2) * x.dtype.type(2) + x * x.dtype.type(4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("columns", [48, 37])
def test_dtypes(form, columns):
    """Elements of every size; halves, bytes and doubles have as many columns as 16 bytes hold."""
    with walking(form):
        results = {}
        for dtype in ("uint8", "float16", "float64") if form != "interpreted" else DTYPES:
            x = rng.integers(0, 30, (7, columns)).astype(dtype)
            results[dtype] = x, weighed(gp.ScalarField(x))
            assert not ROLL.refuse(kernel_of(results[dtype][1]))
        gp.evaluate(*(result for _, result in results.values()))
        for x, result in results.values():
            np.testing.assert_array_equal(result.numpy(), weights(x))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 6, 8), (3, 17, 9), (18, 3, 12)], ids=str)
def test_three_dimensions(form, shape):
    """The thread walks along layers or rows, whichever saves more; lines beside it are read in each layer."""
    x = rng.integers(-9, 10, shape).astype(np.float32)

    @gp.operator
    def heat(f):
        around = [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1), (1, 1, 1)]
        taps = [
            _readTensor(f, _layer + a, _row + b, _column + c, border="reflect") * (n + 2)
            for n, (a, b, c) in enumerate(around)
        ]
        return sum(taps, _readTensor(f)) + 100 * _layer + 10 * _row + _column

    layer, row, column = np.indices(shape)
    around = [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1), (1, 1, 1)]
    want = x + sum(at(x, *away, border="reflect") * np.float32(n + 2) for n, away in enumerate(around))
    with walking(form):
        result = heat(gp.Field(x))
        assert not ROLL.refuse(kernel_of(result))
        np.testing.assert_array_equal(result.numpy(), want + (100 * layer + 10 * row + column).astype("f"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(6, 16), (17, 21)], ids=str)
def test_several_fields(form, shape):
    """Inputs with windows of their own, planes of colour, a number for all, a table, positions, a loop and a condition."""
    a, colour = rng.integers(-9, 10, shape).astype(np.float32), rng.integers(0, 9, (*shape, 3)).astype(np.float32)

    @gp.operator(outputs=lambda f, c, s: (f.type, c.type, gp.FieldType(f.type.field_shape, dtype="uint8")))
    def mixed(f, c, s):
        table = _constantArray(np.arange(shape[0], dtype=np.float32))
        up, right = _readTensor(f, _row - 3, _column), _readTensor(c, _row + 1, _column + 1, border="zero")
        steps, total = _intArray(2), _var(0.0)
        with _for(3) as i:
            steps[i & 1] = steps[i & 1] + i
            total += _readTensor(f, _row, _column + 5) * i
        with _if(up > 0):
            total += _readTensor(s) + steps[0] + table[_row]
        _writeTensor(_out0, total)
        _writeTensor(_out1, right.zxy + up)
        _writeTensor(_out2, _convert_uchar(_column % 7 + _rows))

    up, right = at(a, -3, 0), at(colour, 1, 1, border="zero")
    row, column = np.indices(shape)
    total = at(a, 0, 5) * np.float32(3) + np.where(up > 0, np.float32(2.5 + 2) + row.astype(np.float32), np.float32(0))
    with walking(form):
        results = mixed(gp.Field(a), gp.Field(colour, 1), gp.ScalarField(np.float32(2.5)))
        assert not ROLL.refuse(kernel_of(*results))
        for actual, want in zip(
            results, (total, right[..., [2, 0, 1]] + up[..., None], column % 7 + shape[0]), strict=True
        ):
            np.testing.assert_array_equal(actual.numpy(), want)


def test_big_tensors():
    """A thread for each element."""
    x = rng.integers(-9, 10, (9, 24, 5)).astype(np.float32)

    @gp.operator(outputs=lambda f: f.type)
    def beside(f):
        with _forEachTensorElement(f.tensor_shape):
            left, below = (_readTensorElement(f, _row + r, _column + c, _tensorElement) for r, c in ((0, -1), (1, 0)))
            _writeTensorElement(_out0, left * 2 + below, _tensorElement)

    result = beside(gp.Field(x, 1))
    assert not ROLL.refuse(kernel_of(result))
    with walking():
        np.testing.assert_array_equal(result.numpy(), at(x, 0, -1) * np.float32(2) + at(x, 1, 0))


@pytest.mark.parametrize("columns", [8, 7])
def test_parameters(columns):
    """Any way to walk gives the same: several strips, several rows at a time, groups with tail threads."""
    x = rng.random((70, columns), np.float32)
    for lanes, rows, turn in ((4, 8, 1), (1, 16, 4), (2, 128, 8), (8, 7, 3), (4, 24, 4), (8, 16, 2)):
        walk = {"columns": lanes, "rows": rows, "turn": turn, "width": 64}
        with walking(method=replace(ROLL, candidates=lambda kernel, walk=walk: (walk,))):
            np.testing.assert_array_equal(weighed(gp.ScalarField(x)).numpy(), weights(x))


STRIDED = [(80, None), (80, 0), (80, 1), (80, 3), (43, 0), (43, 2)]


@pytest.mark.parametrize(
    ("form", "stride", "behind"),
    [(form, *where) for form in FORMS for where in STRIDED if form == "interpreted" or not where[1]],
)
@pytest.mark.parametrize("columns", [32, 30])
def test_arrays_of_users(form, columns, stride, behind):
    """Rows that begin anywhere are read in whole accesses where it is known how they are aligned; the interpreter looks."""
    memory = rng.integers(0, 100, 12 * stride + columns).astype(np.float32)
    array = np.lib.stride_tricks.as_strided(memory, (13, columns), (4 * stride, 4))
    with walking(form), mock.patch.object(GpuMemory, "wide", autospec=True, side_effect=GpuMemory.wide) as wide:
        backend = devices.current()
        what = program([weighed(gp.Field(np.ascontiguousarray(array))).node])
        ((leaf, _),) = what.leaves.items()
        buffer = backend.upload(gp.FieldType(memory.size), memory.reshape(1, -1))
        layout = replace(layout_of(gp.FieldType(array.shape), (stride, 1)), behind=behind)
        values = evaluate.prepare(what, backend, None, layouts={leaf: layout}).run({leaf: buffer})
        (output,) = what.results
        actual = backend.download(what.types[output], values[output]).reshape(array.shape)
    np.testing.assert_array_equal(actual, weights(array))
    if form == "interpreted":
        assert any(call.args[1].loads for call in wide.call_args_list) == (behind is not None)


@pytest.mark.parametrize("columns", [16, 9])
def test_states(columns):
    """One that is updated in place is read at the own point only, beside neighbours of another field."""
    x = rng.integers(0, 9, (10, columns)).astype(np.float32)
    with walking():
        with gp.ComputeGraph() as graph:
            total, heat = gp.ScalarField(np.zeros_like(x)), gp.ScalarField(x)
            total.next, heat.next = total + weighed(heat), weighed(heat) / 8
            graph.probe(total, "total")
        graph.reset()
        want = np.zeros_like(x)
        for _ in range(3):
            np.testing.assert_array_equal(graph.read("total"), want)
            want, x = want + weights(x), weights(x) / np.float32(8)
            graph.step()


def test_refusals():
    f = gp.ScalarField(np.zeros((64, 64), np.float32))

    def why(body, *arguments):
        return ROLL.refuse(kernel_of(gp.operator(name="one")(body)(*(arguments or (f,)))))

    assert why(lambda f: _readTensor(f) * 2) == "it reads no neighbours"
    assert why(lambda f: _readTensor(f, _column, _row)) == "it reads at computed coordinates"
    assert why(lambda f: _readTensor(f) + _readTensor(f, _row + 60, _column + 40)) == "its windows take 2501 registers"
    assert why(lambda f: _readTensor(f, _column + 1), gp.ScalarField(np.zeros(64, "f"))) == "its grid has no rows"
    small = gp.ScalarField(np.zeros((32, 32), np.float32))
    shrunk = gp.operator(outputs=gp.FieldType((32, 32)), name="one")(
        lambda f, g: _writeTensor(_out0, _readTensor(f) + _readTensor(g, _row, _column + 1))
    )
    assert ROLL.refuse(kernel_of(shrunk(small, f))) == "it reads fields of another grid"
    few = replace(kernel_of(weighed(f)), target=CUDA)
    assert ROLL.refuse(few) == "walking would leave too few threads"
    assert ROLL.refuse(replace(few, target=target_named("opencl"))) == "only GPUs have the registers for rows"


@pytest.mark.parametrize(
    ("dtype", "wide", "columns"),
    [("float32", "v4.f32", 4096), ("float32", "v4.f32", 4093), ("uint8", "v4.u32", 4096), ("float64", "v2.f64", 4096)],
)
def test_windows_are_in_registers(dtype, wide, columns):
    """Of CUDA: what a thread reads is read at once, and no array is left in memory."""
    x = gp.ScalarField(np.zeros((4096, columns), dtype))
    kernel = replace(kernel_of(weighed(x)), target=CUDA)
    assert not ROLL.refuse(kernel)
    ptx = ptx_of(generate(kernel, CUDA).text, "compute_90")
    assert ".local" not in ptx
    matches = re.findall(r"\b(ld|st)\.global(?:\.nc)?\.(v\d\.\w\d+)", ptx)
    assert ("ld", wide) in matches and ("st", wide) in matches
