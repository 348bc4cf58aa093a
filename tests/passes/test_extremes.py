"""Chains of minima and maxima that GPUs compute by other instructions have the bits of what was written, of all numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.report.workload import workload
from gpuop.ir.ops import OPS
from gpuop.passes.schedules import methods as schedules
from gpuop.runtime import devices
from tests.codegen.nvrtc import ptx_of
from tests.conftest import Widened

from .test_roll import WALK, at, kernel_of

SHAPE = (21, 28)
AROUND = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1)]
NANS = np.array([0x7FC00123, 0xFFC01234, 0x7F800001], np.uint32).view(np.float32)
KINDS = {
    "numbers": (-2.5, -1, 1e-45, 0.5, 3, np.inf, -np.inf),
    "zeros": (0.0, 0.0, 0.0, 0.0, 1, -1),
    "zeros of both signs": (0.0, -0.0, 0.0, -0.0, 1e-45, -1e-45),
    "all": (0.0, -0.0, 1, -1, np.inf, -np.inf, *NANS),
}


def of_gpus(name: str) -> Callable:
    """The instruction: of zeros of both signs the minimum is the negative one, the maximum the positive one."""
    numpy, zero = (np.minimum, -0.0) if name == "min" else (np.maximum, 0.0)

    def extreme(a, b):
        if np.result_type(a, b).kind != "f":
            return numpy(a, b)
        mixed = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
        return np.where(mixed, np.float32(zero), numpy(a, b))

    return extreme


def extremes(low: Callable, high: Callable, values: list) -> tuple:
    """The median of nine by exchanges, and the range of five of them."""
    v, ends = list(values), (values[1], values[3], values[5], values[7])
    least = most = values[4]
    for value in ends:
        least, most = low(least, value), high(value, most)
    for a, b in [
        (0, 1),
        (3, 4),
        (6, 7),
        (1, 2),
        (4, 5),
        (7, 8),
        (0, 1),
        (3, 4),
        (6, 7),
        (0, 3),
        (3, 6),
        (1, 4),
        (4, 7),
    ]:
        v[a], v[b] = low(v[a], v[b]), high(v[a], v[b])
    v[4], v[2] = low(v[4], v[7]), low(v[2], v[5])
    v[2] = low(v[2], v[8])
    v[2], v[4] = low(v[4], v[2]), high(v[4], v[2])
    return low(high(v[6], v[2]), v[4]), most, least


def around(f) -> list:
    return [_readTensor(f, _row + r, _column + c) for r, c in AROUND]


@gp.operator
def ranked(f):
    return extremes(_min, _max, around(f))


def pictures(kind: str) -> NDArray:
    rng = np.random.default_rng(5)
    x = rng.random(SHAPE, np.float32) + 1
    chosen = rng.random(SHAPE) < 0.6
    chosen[:, 20:] &= rng.random((SHAPE[0], 8)) < 0.1
    x[chosen] = rng.choice(np.array(KINDS[kind], np.float32), chosen.sum())
    return x


@pytest.mark.parametrize("kind", KINDS)
def test_bits(kind):
    x = pictures(kind)
    nine = [at(x, r, c) for r, c in AROUND]
    want = extremes(lambda a, b: np.where(b < a, b, a), lambda a, b: np.where(a < b, b, a), nine)
    rows = {name: replace(OPS[name], numpy=of_gpus(name)) for name in ("min", "max")}
    methods = mock.patch.object(schedules, "METHODS", (WALK,))
    as_gpus = mock.patch.dict(devices._open, reference=Widened())
    with mock.patch.dict(OPS, rows), as_gpus, gp.use_device("reference"), methods:
        for result, values in zip(ranked(gp.ScalarField(x)), want, strict=True):
            np.testing.assert_array_equal(result.numpy().view(np.int32), values.view(np.int32))


def of(body: Callable, dtype: str = "float32", target: str = "cuda", what: Callable = generate) -> Any:
    kernel = kernel_of(gp.operator(body)(gp.ScalarField(np.zeros((64, 64), dtype))))
    with mock.patch.object(schedules, "METHODS", (WALK,)):
        return what(kernel, replace(target_named(target), least_threads=1))


def text(*args: Any) -> str:
    return of(*args).text


def median(f):
    return extremes(_min, _max, around(f))[0]


def test_where_it_is_done():
    """Kernels with many minima and maxima of floats, and not of zero, which their results then often are."""

    def dilated(f):
        return _max(*around(f)[:8])

    def positive(f):
        return sum(_max(value, 0) for value in around(f))

    quick = text(median)
    assert "nan_min" in quick and "// as written" in quick
    for body, *more in ((median, "float64"), (median, "int32"), (median, "float32", "sm_75"), (dilated,), (positive,)):
        assert "nan_" not in text(body, *more)


def test_predictions():
    """Work under the condition that a result is zero or NaN does not count."""
    quick, plain = (of(median, target=target, what=workload).lanes["operation"] for target in ("sm_90", "sm_75"))
    assert 0.3 * plain < quick < 0.8 * plain


def test_instructions():
    result = ptx_of(text(median), "compute_90")
    assert "min.NaN.f32" in result and "max.NaN.f32" in result
