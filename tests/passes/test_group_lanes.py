"""Work-groups as the lanes of a CPU's threads: NumPy's values, the bits of threads that wait, what is not run so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.codegen.generate import generate
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel
from gpuop.passes.schedules import methods as schedules
from gpuop.passes.schedules.cpu.work_item_vectors import WORK_ITEM_VECTORS
from gpuop.runtime import devices
from tests.conftest import Vectorized

rng = np.random.default_rng(17)
CPU = replace(Vectorized.target, device="cpu")
FORMS = ["cpu", *(d.name for d in gp.devices() if d.name.startswith("opencl"))]
NAMES = ("sum", "mean", "min", "max", "argmin", "argmax")
SHAPES = [(5, 300), (9, 64), (9000,), (3, 1025), (33,), (2, 3, 100)]
COMPILED = SHAPES[:2]  # compilers are slow


@contextmanager
def in_lanes(form: str) -> Iterator[None]:
    """A device that runs groups so: an interpreter of lowered kernels, or a driver."""
    methods = mock.patch.object(schedules, "METHODS", (WORK_ITEM_VECTORS,))
    if form == "cpu":
        backend = Vectorized()
        backend.target = CPU
        with mock.patch.dict(devices._open, reference=backend), gp.use_device("reference"), methods:
            yield
        return
    with gp.use_device(form), methods:
        yield


def first_of(result: gp.Field, target=CPU) -> Kernel:
    return replace(plan(program([result.node])).launches[0].kernel, target=target)


@pytest.mark.parametrize(
    ("form", "shape"), [(form, shape) for form in FORMS for shape in (SHAPES if form == "cpu" else COMPILED)], ids=str
)
def test_values(form, shape):
    """Whole numbers, which any order adds exactly; those of the next row would be less, or more."""
    x = rng.integers(-9, 10, shape).astype("f")
    x[1::2] += 100
    with in_lanes(form):
        for name in NAMES[SHAPES.index(shape) % 2 :: 2]:
            result = getattr(gp.ScalarField(x), name)(axis=-1)
            assert WORK_ITEM_VECTORS.refuse(first_of(result)) == ""
            want = getattr(x, name)(axis=-1) if name != "mean" else x.sum(axis=-1) / np.float32(x.shape[-1])
            np.testing.assert_array_equal(result.numpy(), want, err_msg=name)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float64", "int32", "int16", "uint8", "float16", "complex64"])
def test_dtypes(form, dtype):
    """Also rows whose ends are no whole vectors."""
    if dtype == "float64" and form != "cpu" and not has_double(form):
        pytest.skip("no double")
    x = rng.integers(0, 10, (7, 345)).astype(dtype)
    field = gp.ComplexField(x) if dtype == "complex64" else gp.ScalarField(x)
    with in_lanes(form):
        if dtype in ("float64", "float16", "complex64"):
            np.testing.assert_array_equal(field.sum(axis=1).numpy(), x.sum(axis=1))
        else:
            np.testing.assert_array_equal(field.argmax(axis=1).numpy(), x.argmax(axis=1))


def test_halves_of_a_slice(device):
    """Rows of them begin anywhere, which brings PoCL's compiler down where they are in vectors."""
    assert gp.ScalarField(np.arange(100).astype("float16"))[1:].max().numpy() == 99


def has_double(form: str) -> bool:
    with gp.use_device(form) as backend:
        return backend.target.has_fp64


@pytest.mark.parametrize("form", FORMS)
def test_bits(form):
    """Operators before it, several reductions in one kernel, parameters, positions, NaN and signed zeros."""
    x = rng.random((4, 301), np.float32)
    x[:, 3], x[:, 5], x[:, 70:] = np.nan, -0.0, x[:, 70:] - 0.5

    def bits() -> list[bytes]:
        with gp.ComputeGraph() as graph:
            f, s = gp.ScalarField(x), gp.Parameter(3.0)
            result = weighted(abs(f)) * s - f
            for name, field in (("sum", result.sum(axis=1)), ("max", result.max(axis=1)), ("place", f.argmin(axis=1))):
                graph.probe(field, name)
        graph.step()
        return [np.asarray(graph.read(name)).tobytes() for name in ("sum", "max", "place")]

    with in_lanes(form):
        actual = bits()
    with gp.use_device("reference" if form == "cpu" else form), mock.patch.object(config, "schedule", "plain"):
        assert actual == bits()


@gp.operator
def weighted(f):
    return _sqrt(_readTensor(f)) * (_row + _column * 2)


@gp.operator
def beside(f, *, border):
    return _readTensor(f, _row - 1, _column - 2, border=border) - _readTensor(f, _row, _column + 1, border=border)


@pytest.mark.parametrize("form", FORMS)
def test_stencils(form):
    """Borders whose places are neighbours within limits: whole numbers, added exactly."""
    x = rng.integers(-9, 10, (6, 70)).astype("f")
    x[:, [0, -1]] = np.arange(40, 52).reshape(6, 2)
    with in_lanes(form):
        for border, mode in (("clamp", {"mode": "edge"}), (5, {"constant_values": 5})):
            result = beside(gp.ScalarField(x), border=border).sum(axis=1)
            assert WORK_ITEM_VECTORS.refuse(first_of(result)) == ""
            padded = np.pad(x, ((1, 0), (2, 1)), **mode)
            want = (padded[:-1, :70] - padded[1:, 3:]).sum(axis=1)
            np.testing.assert_array_equal(result.numpy(), want, err_msg=str(border))
    assert WORK_ITEM_VECTORS.refuse(first_of(beside(gp.ScalarField(x), border="wrap").sum(axis=1))) != ""


LIMITED = {
    "_max(_min(c + 1, 20), 3)": lambda c: np.maximum(np.minimum(c + 1, 20), 3),
    "_min(_max(c - 5, 2), 9)": lambda c: np.minimum(np.maximum(c - 5, 2), 9),
    "_max(_min(c, 5), 9)": lambda c: np.maximum(np.minimum(c, 5), 9),
    "_min(_max(_min(c, 25), 4) + 2, 22)": lambda c: np.minimum(np.maximum(np.minimum(c, 25), 4) + 2, 22),
}


@pytest.mark.parametrize("form", FORMS)
def test_limited_places(form):
    """Limits in any order, also such as cross; the places are values too."""
    x = rng.random((5, 32)).astype("f")
    for text, place in LIMITED.items() if form == "cpu" else [*LIMITED.items()][-1:]:

        def read(f, text=text):
            at = eval(text, globals(), {"c": _localColumn})
            return _readTensor(f, _row, at, border="unchecked") + at

        with in_lanes(form):
            result = differences(read=read)(gp.ScalarField(x))
            assert WORK_ITEM_VECTORS.refuse(first_of(result)) == "", text
            at = place(np.arange(32))
            np.testing.assert_array_equal(result.numpy(), passed_on(x[:, at] + at.astype("f")), err_msg=text)


def differences(width=32, *, read=None, wait=True, rows=8):
    """An operator of a user's: threads of a row pass values on, and the first one writes what a few of them found."""

    @gp.operator(outputs=lambda f: f.type.replace(field_shape=f.field_shape[:1]))
    def found(f):
        _globalThreads(f.field_shape[0], width)
        _localThreads(rows, width)
        passed = _local(_floatArray(_localRows, width))
        own = _var(_readTensor(f, _row, _localColumn) if read is None else read(f))
        passed[_localRow, _localColumn] = own
        if wait:
            _syncThreadsLocal()
        with _if(_localColumn < width // 2):
            other = passed[_localRow, _localColumn + width // 2]
            with _if(other > own):
                own @= other * 2
            passed[_localRow, _localColumn] = own
        if wait:
            _syncThreadsLocal()
        with _if(_localColumn == 0):
            _writeTensor(_out0, passed[_localRow, width // 2 - 1] - own, _row)

    return found


@pytest.mark.parametrize("form", FORMS)
def test_operators_of_users(form):
    """Conditions that differ between lanes, variables that are kept, a row of groups that is not whole."""
    x = rng.random((13, 32)).astype("f")
    with in_lanes(form):
        result = differences()(gp.ScalarField(x))
        assert WORK_ITEM_VECTORS.refuse(first_of(result)) == ""
        np.testing.assert_array_equal(result.numpy(), passed_on(x))


def passed_on(x: np.ndarray) -> np.ndarray:
    """The values that `differences` is to give."""
    own = np.where(x[:, 16:] > x[:, :16], 2 * x[:, 16:], x[:, :16])
    return own[:, 15] - own[:, 0]


@gp.operator(outputs=lambda a, b, **_: a.type.replace(field_shape=(a.field_shape[0], b.field_shape[1])))
def product(a, b, *, width=16, rows=2, place=lambda column: column, wanted=None):
    """Without barriers: the threads of a row have the same of one matrix and neighbours of the other, in arrays of their own."""
    tall, wide = a.field_shape[0], b.field_shape[1]
    _localThreads(4, width, groups=(-(-tall // (4 * rows)), wide // (2 * width)))
    sums, top = _floatArray(rows, 2), (_groupRow * 4 + _localRow) * rows
    columns = [_groupColumn * (2 * width) + place(_localColumn) + j * width for j in range(2)]
    with _for(a.field_shape[1]) as k:
        for i in range(rows):
            for j, column in enumerate(columns):
                sums[i, j] += _readTensor(a, top + i, k) * _readTensor(b, k, column)
    for i in range(rows):
        for j, column in enumerate(columns):
            total = sums[i, j]
            with nullcontext() if wanted is None else _if(wanted(column)):
                _writeTensor(_out0, total, top + i, column)


@pytest.mark.parametrize("form", FORMS)
def test_products(form):
    """Whole numbers, exactly; a vector for a row of threads, and two."""
    a, b = rng.integers(-9, 10, (24, 5)).astype("f"), rng.integers(-9, 10, (5, 64)).astype("f")
    with in_lanes(form):
        for width in (16, 32) if form == "cpu" else (32,):
            result = product(gp.ScalarField(a), gp.ScalarField(b), width=width)
            assert WORK_ITEM_VECTORS.refuse(first_of(result)) == ""
            np.testing.assert_array_equal(result.numpy(), a @ b)


def test_what_products_are_for():
    """Sums stay in registers: each has a place that is known, and so many vectors take turns as a row has."""
    result = product(gp.ScalarField(np.zeros((64, 40), "f")), gp.ScalarField(np.zeros((40, 256), "f")), width=32)
    kernel = first_of(result, replace(CPU, simd_width=8, widening="functions"))
    method, parameters = schedules.choice(kernel)
    assert method is WORK_ITEM_VECTORS and parameters == {"vectors": 2}
    text = generate(kernel, replace(kernel.target, backend="opencl")).text
    assert "float sums[2][2][32]" in text and "_private_float16(&sums[1][1][16])" in text


def test_products_that_are_not():
    """Lanes that may write outside, or not at all, or anywhere; arrays that no registers hold."""
    a, b = gp.ScalarField(np.zeros((24, 5), "f")), gp.ScalarField(np.zeros((5, 256), "f"))

    def reason(a=a, **options: object) -> str:
        return WORK_ITEM_VECTORS.refuse(first_of(product(a, b, **options)))

    elsewhere = "its threads write at places that are not neighbours, or may be outside"
    assert reason() == ""
    assert reason(gp.ScalarField(np.zeros((23, 5), "f"))) == elsewhere
    assert reason(place=lambda column: column + 1) == elsewhere
    assert reason(place=lambda column: column * 2 % 16) == elsewhere
    assert reason(wanted=lambda column: column < 70) == "its threads write side by side, in turns or under conditions"
    assert reason(width=128) == "its body is large"


def test_what_it_is_for():
    """A thread has a row of a group: fewer threads, no barriers, whole vectors but for the end of a row."""
    kernel = first_of(gp.ScalarField(np.zeros((300, 301), np.float32)).sum(axis=1), replace(CPU, simd_width=8))
    assert schedules.choice(kernel)[0] is WORK_ITEM_VECTORS
    text = generate(kernel, replace(kernel.target, backend="opencl")).text
    assert "300x1 threads" in text and "barrier" not in text and "__local" not in text
    assert (
        text.count("= load_float16(") + text.count("+ load_float16(") == 2 and text.count("load_first_float16(&") == 2
    )


def test_heights():
    """Rows of a work-group: more where there are many, but not where threads can tell."""

    def height(result: gp.Field) -> int:
        kernel = first_of(result)
        return WORK_ITEM_VECTORS.apply(kernel, {"vectors": 1}).work_group[1]

    few, many = (gp.ScalarField(np.zeros((rows, 512), np.float32)) for rows in (512, 8192))
    assert (height(few.sum(axis=1)), height(many.sum(axis=1))) == (8, 64)
    assert height(product(many, gp.ScalarField(np.zeros((512, 64), "f")))) == 4


def test_refusals():
    f = gp.ScalarField(np.zeros((200, 512), np.float32))

    def reason(result: gp.Field, **changes: object) -> str:
        return WORK_ITEM_VECTORS.refuse(first_of(result, replace(CPU, **changes)))

    assert reason(f.sum(axis=1), widening="unrolled") == "the device has no vectors"
    assert reason(f.sum(axis=0)) == "its threads are not joined by work-groups of their own"
    doubles = gp.ScalarField(np.zeros((200, 512)), dtype="float64")
    assert reason(doubles.sum(axis=1), widening="functions") == "it computes with doubles"
    assert reason(differences(wait=False)(f)) == "its threads neither wait for one another nor have loops"
    assert reason(differences(4)(f)) == "rows of its work-groups are not vectors"
    assert reason(differences(24)(f)) == "its threads are not whole vectors"
    turned = differences(read=lambda f: _readTensor(f, _localColumn, _row))
    assert reason(turned(f)) == "its threads read at places that are not neighbours"
    assert reason(differences(read=lambda f: _convert_float(_localRow))(f)) == "threads know their row in a work-group"
    assert reason(differences(read=lambda f: _convert_float(_groupRow))(f)) == "it uses indices of its work-groups"
