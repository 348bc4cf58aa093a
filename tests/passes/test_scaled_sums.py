"""Weighted sums of integers in integers, where doubles are slow or missing: SciPy's bits, or its integers within 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop import ndimage
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.ir import nodes as ir
from gpuop.ir.types import DOUBLE
from gpuop.ir.visit import blocks, values, walk_expr
from gpuop.passes.pipeline import pass_by_pass
from tests.without_doubles import NAMES, without_doubles

scipy = pytest.importorskip("scipy.ndimage")

SHAPE = 37, 67
SHORT = ("uint8", "int8", "uint16", "int16")
SLOW = "reference:sm_75"  # a GPU whose doubles take 32 times as long as floats
UNEVEN = np.array([[0.3, -1.7, 0.2], [2.1, 4.4, 0], [1.9, -2.3, 1]]) / 8
QUARTERS = np.array([[0.25, 0.5], [0.75, -0.5]])  # many sums are integers
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{f"gaussian {s}": lambda m, a, s=s: m.gaussian_filter(a, s) for s in (0.5, 1, 2.5, 7)},
    "gaussian, nothing outside": lambda m, a: m.gaussian_filter(a, 1.5, mode="constant", cval=3),
    "derivative": lambda m, a: m.gaussian_filter1d(a, 2.0, order=1),
    "second derivative": lambda m, a: m.gaussian_filter1d(a, 1.2, 0, order=2, output="int32"),
    "correlate": lambda m, a: m.correlate(a, UNEVEN),
    "quarters": lambda m, a: m.correlate(a, QUARTERS, output="int16"),
    "quarters to bytes": lambda m, a: m.convolve(a, QUARTERS, output="uint8"),
    "negative quarters": lambda m, a: m.correlate(a, -QUARTERS, output="int64"),
    "great weights": lambda m, a: m.correlate1d(a, [100.5, -37.25, 1e-3], output="int64"),
    "small weights": lambda m, a: m.correlate1d(a, [1e-4, 3e-5, 1e-9]),
    "many weights": lambda m, a: m.correlate(a, np.random.default_rng(2).random((9, 11)) / 40),
    "mean in another dtype": lambda m, a: m.uniform_filter(a, 3, output="int32"),
}


def pictures(dtype: str) -> dict[str, np.ndarray[Any, Any]]:
    """Random values, equal ones of every byte, of two, steps, and the ends of a dtype."""
    ends, rng = np.iinfo(dtype), np.random.default_rng(3)
    values = np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE)
    return {
        "random": rng.integers(ends.min, ends.max, SHAPE, dtype=dtype, endpoint=True),
        "rows": (values // SHAPE[1] * 7).astype(dtype),
        "ramp": values.astype(dtype),
        "equal": np.full(SHAPE, 100, dtype),
        "greatest": np.full(SHAPE, ends.max, dtype),
        "least": np.full(SHAPE, ends.min, dtype),
        "mask": np.where(rng.random(SHAPE) < 0.1, ends.max, 0).astype(dtype),
        "blocks": np.kron(rng.integers(ends.min, ends.max, (2, 3), dtype=dtype), np.ones((19, 23), dtype))[:37, :67],
    }


@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_slow_doubles_have_the_bits_of_scipy(name: str, dtype: str) -> None:
    for kind, picture in pictures(dtype).items():
        expected = FUNCTIONS[name](scipy, picture)
        with gp.use_device(SLOW):
            result = FUNCTIONS[name](ndimage, picture)
        assert result.dtype == expected.dtype and np.array_equal(result, expected), kind


@pytest.mark.skipif(not NAMES, reason="there is no OpenCL device")
@pytest.mark.parametrize("plan_for", ["device", "gpu"])
@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_are_within_one_without_doubles(name: str, dtype: str, plan_for: str) -> None:
    for kind, picture in pictures(dtype).items():
        expected = FUNCTIONS[name](scipy, picture).astype(np.int64)
        with without_doubles(NAMES[0], plan_for):
            result = FUNCTIONS[name](ndimage, picture).astype(np.int64)
        off = np.abs(result - expected)
        bits = 8 * FUNCTIONS[name](scipy, picture).dtype.itemsize
        off = np.minimum(off, 2**bits - off) if bits < 64 else off  # results wrap around
        looked_up = (dtype, plan_for) == ("uint8", "gpu")
        axes = 2 if name.startswith("gaussian") and not looked_up else 1
        assert off.max() <= axes, f"{kind}: within 1 along each axis"
        assert kind != "random" or np.count_nonzero(off) <= off.size / 200, "few sums are nearly integers"


@pytest.mark.parametrize("value", [0, 1, 77, 100, 254, 255])
@pytest.mark.parametrize("sigma", [0.5, 2.5, 7])  # with 2.5, sums of doubles are less than most of these integers
def test_equal_bytes(value: int, sigma: float) -> None:
    picture = np.full((9, 40), value, np.uint8)
    with gp.use_device(SLOW):
        result = ndimage.gaussian_filter(picture, sigma)
    assert np.array_equal(result, scipy.gaussian_filter(picture, sigma))
    if NAMES:
        with without_doubles(NAMES[0], "gpu"):  # GPUs have no vectors, whose lanes would look up anything
            assert np.array_equal(ndimage.gaussian_filter(picture, sigma), result)


# --- texts ------------------------------------------------------------------------------------------------------------


def field(dtype: str) -> Any:
    return gp.ScalarField(np.ones(SHAPE, dtype))


def doubles(block: ir.Block) -> set[bool]:
    """Places of operations on doubles: True is a block that is for integers that may be wrong."""
    result = set()
    within = any(isinstance(stmt, ir.Assign) and stmt.var.hint == "whole" for stmt in block)
    for stmt in block:
        computed = (expr for value in values(stmt) for expr in walk_expr(value))
        if any(isinstance(expr, ir.Apply) and expr.type.dtype is DOUBLE for expr in computed):
            result.add(within)
        for inner in blocks(stmt):
            result |= doubles(inner)
    return result


def lowered(result: Any, target: str) -> ir.Block:
    after = pass_by_pass(result.node.call.kernel, target_named(target))
    return next(each.kernel.body for each in after if each.name == "scaled_sums")


@pytest.mark.parametrize("target", ["cuda:sm_75", "cuda:sm_86", "cuda:sm_89", "cuda:sm_120"])
@pytest.mark.parametrize("dtype", SHORT)
def test_doubles_are_in_branches_where_they_are_slow(dtype: str, target: str) -> None:
    assert doubles(lowered(ndimage.correlate1d(field(dtype), [0.2, 0.5, 0.1]), target)) == {True}


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90", "cuda:sm_100", "opencl:cpu"])
def test_fast_doubles_are_computed(target: str) -> None:
    assert doubles(lowered(ndimage.correlate1d(field("uint8"), [0.2, 0.5, 0.1]), target)) == {False}


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_sums_of_long_integers_and_floats_stay(dtype: str) -> None:
    result = ndimage.correlate1d(field(dtype), [0.2, 0.5, 0.1], output="int32")
    assert doubles(lowered(result, "cuda:sm_86")) == {False}


def test_sums_that_are_needed_as_doubles_stay() -> None:
    @gp.operator
    def both(a):
        total = _convert_double(_readTensor(a)) * 0.3
        return _convert_int(total), total

    whole, _ = both(field("uint8"))
    assert doubles(lowered(whole, "cuda:sm_86")) == {False}


def test_variables_that_change_are_no_leaves() -> None:
    @gp.operator
    def turned(a):
        value = _var(_convert_int(_readTensor(a)))
        total = _convert_double(value) * 0.3 + 0.5
        value @= value + 7
        return _convert_int(total) + value

    array = np.arange(200, dtype=np.uint8).reshape(10, 20)
    with gp.use_device(SLOW):
        result = turned(gp.ScalarField(array)).numpy()
    assert np.array_equal(result, (array * 0.3 + 0.5).astype(np.int32) + array + 7)


@pytest.mark.parametrize("weight", [0.1, 0.7, 1 / 3, 1.1, 2.3, 0.011])
@pytest.mark.parametrize("less", [128.0, 0.0, -7.0, 0.3])
def test_a_product_and_a_constant(weight: float, less: float) -> None:
    """Of one byte, so that each sum is one of equal bytes; some are integers but for rounding, below 0 and above."""

    @gp.operator
    def scaled(a):
        return _convert_int((_convert_double(_readTensor(a)) - less) * weight)

    @gp.operator
    def moved(a):
        return _convert_int(_convert_double(_readTensor(a)) * weight - less)

    array = np.arange(256, dtype=np.uint8).reshape(8, 32)
    for operator, expected in ((scaled, (array - less) * weight), (moved, array * weight - less)):
        with gp.use_device(SLOW):
            result = operator(gp.ScalarField(array)).numpy()
        assert np.array_equal(result, expected.astype(np.int32))
        assert doubles(lowered(operator(gp.ScalarField(array)), "cuda:sm_86")) == {True}


def test_explain_says_what_computes_the_sums() -> None:
    def told() -> str:
        return gp.pipeline(lambda x: ndimage.correlate1d(gp.ScalarField(x), [0.2, 0.5, 0.1])).explain(array)

    array = np.ones(SHAPE, np.uint8)
    with gp.use_device(SLOW):
        slow = told()
    with gp.use_device("reference:sm_90"):
        assert "weighted sums are integers" not in told()
    assert "weighted sums are integers, and doubles only where these may round otherwise, as double is slow" in slow
    if NAMES:
        with without_doubles(NAMES[0]):
            assert (
                "weighted sums are integers, weights multiples of 2⁻ⁿ, as the device has no double: within 1" in told()
            )
