"""Reductions of columns on CPUs, row by row: NumPy's values, the bits of threads of a column each, what is not done so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
from gpuop.passes.schedules.cpu import interchange
from gpuop.passes.schedules.cpu.interchange import INTERCHANGE
from gpuop.runtime import devices
from tests.conftest import Vectorized

rng = np.random.default_rng(17)
CPU = replace(Vectorized.target, device="cpu")
FORMS = ["cpu", *(d.name for d in gp.devices() if d.name.startswith("opencl"))]
NAMES = ("sum", "mean", "min", "max", "argmin", "argmax")
SHAPES = [(300, 40), (131, 17), (3, 70, 33), (70, 3, 33), (530, 40)]  # the last in two steps, of one kernel


@contextmanager
def interchanging(form: str) -> Iterator[None]:
    """A device that reduces so however small the grid: an interpreter of lowered kernels, or a driver."""
    methods = mock.patch.object(schedules, "METHODS", (INTERCHANGE,))
    small = mock.patch.multiple(interchange, THREADS=1, VECTORS=(2, 4))
    if form == "cpu":
        backend = Vectorized()
        backend.target = CPU
        with mock.patch.dict(devices._open, reference=backend), gp.use_device("reference"), methods, small:
            yield
        return
    with gp.use_device(form) as backend, methods, small:
        with mock.patch.object(backend, "target", replace(backend.target, least_threads=1)):
            yield


def first_of(result: gp.Field, target=CPU) -> Kernel:
    return replace(plan(program([result.node])).launches[0].kernel, target=target)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(form, shape):
    """Whole numbers, which any order adds exactly, along each axis but the last."""
    x = rng.integers(-9, 10, shape).astype("f")
    with interchanging(form):
        for n, name in enumerate(NAMES[SHAPES.index(shape) % 3 :: 3]):
            axis = n % (len(shape) - 1)
            result = getattr(gp.ScalarField(x), name)(axis=axis)
            assert x.shape[axis] == 3 or INTERCHANGE.refuse(first_of(result)) == ""
            want = getattr(x, name)(axis=axis) if name != "mean" else x.sum(axis=axis) / np.float32(x.shape[axis])
            np.testing.assert_array_equal(result.numpy(), want, err_msg=name)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float64", "int32", "int16", "float16", "complex64"])
def test_dtypes(form, dtype):
    if dtype == "float64" and form != "cpu" and "float64" not in dtypes_of(form):
        pytest.skip("no double")
    x = rng.integers(-9, 10, (90, 50)).astype(dtype)
    field = gp.ComplexField(x) if dtype == "complex64" else gp.ScalarField(x)
    with interchanging(form):
        np.testing.assert_array_equal(field.sum(axis=0).numpy(), x.sum(axis=0))
        if dtype != "complex64":
            np.testing.assert_array_equal(field.max(axis=0).numpy(), x.max(axis=0))


def dtypes_of(form: str) -> tuple[str, ...]:
    with gp.use_device(form) as backend:
        return ("float64",) if backend.target.has_fp64 else ()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(150, 45), (1, 400), (67, 9, 31), (530, 45)], ids=str)
def test_bits(form, shape):
    """Operators before it, several reductions in one kernel, parameters, positions, NaN and signed zeros."""
    x = rng.random(shape, np.float32)
    x[0, ..., 3], x[0, ..., 5] = np.nan, -0.0

    def build() -> tuple[gp.Field, ...]:
        f, s = gp.ScalarField(x), gp.Parameter(3.0)
        array = np.sqrt(f) * s - f
        return array.sum(axis=0), array.max(axis=0) - f.min(axis=0), (weighted(f) / 7).mean(axis=0), f.argmin(axis=0)

    def bits() -> list[bytes]:
        return [field.numpy().tobytes() for field in build()]

    with interchanging(form):
        result = bits()
    with gp.use_device("reference" if form == "cpu" else form), mock.patch.object(config, "schedule", "plain"):
        assert result == bits()


@gp.operator
def weighted(f):
    return _readTensor(f) * (_row + _column * 2 + _layer)


def test_what_it_is_for():
    """Large fields, in rows of vectors; kernels whose loops read rows."""
    f = gp.ScalarField(np.zeros((2048, 4096), np.float32))
    kernel = first_of(f.sum(axis=0))
    large = replace(CPU, least_threads=65536)
    assert INTERCHANGE.refuse(kernel) == "" and INTERCHANGE.refuse(replace(kernel, target=large)) == ""
    assert schedules.choice(replace(kernel, target=large))[0] is INTERCHANGE
    text = generate(kernel, replace(CPU, backend="opencl")).text
    assert text.index("< 8; t") < text.index("for (int vector_1") < text.index("for (int j")


def test_refusals():
    f = gp.ScalarField(np.zeros((2000, 512), np.float32))

    def reason(result: gp.Field, **changes: object) -> str:
        return INTERCHANGE.refuse(first_of(result, replace(CPU, **changes)))

    assert reason(f.sum(axis=0), widening="unrolled") == "the device has no vectors"
    assert reason(f * 2) == reason(f[:5].sum(axis=0)) == "it has no loops over rows"
    assert reason(f.sum(axis=1)) == "it does more than loops over rows"
    assert reason(f[:, :5].sum(axis=0)) == "its rows are too short for vectors"
    assert reason(f.astype("uint8").sum(axis=0)) == ""  # what is read are floats
    bytes_ = gp.ScalarField(np.zeros((2000, 512), np.uint8))
    assert reason(bytes_.sum(axis=0)) == "storing its partial results would cost more than reading again"
    assert reason(summed(f, border="clamp")) == "it reads beyond borders"
    assert reason(summed(f, border="unchecked")) == ""
    assert reason(gp.ScalarField(np.zeros((100, 200), np.float32)).sum(axis=0)) == "it is small"
    assert reason(gp.ScalarField(np.zeros((764, 1152), np.uint8)).sum(axis=0)) == ""  # whose steps read 64 rows a turn
    assert reason(summed(f, inner=65)) == "an iteration of its loops reads more than 64 rows"
    few = {"least_threads": 65536}  # as many values as a thread reads, it counts as several
    assert reason(gp.ScalarField(np.zeros((500, 500), np.float32)).sum(axis=0), **few) == ""
    assert reason(gp.ScalarField(np.zeros((200, 200), np.float32)).sum(axis=0), **few).startswith("its grid is small")


@gp.operator
def summed(f, *, border="unchecked", inner=8):
    total = _var(0.0)
    with _for(2000 // inner) as i:
        with _for(inner) as j:
            total += _readTensor(f, i * inner + j, _column, border=border)
    return total
