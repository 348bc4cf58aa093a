"""Integer zeros cost nothing in kernels: sums that start from Python's 0, and weights that are 0. Floating zeros are IEEE's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.ir.nodes import Apply, Read
from gpuop.ir.visit import expressions
from tests.harness import same_bits

from .compare import all_same, compute
from .samples import available

rng = np.random.default_rng(23)
SOBEL = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5], np.float32)


def taps(image: Any, weights: Any) -> Any:
    """Weights other than 0 times what is there, added from left to right, row by row."""
    padded = np.pad(image, [(1, 1), (1, 1)] + [(0, 0)] * (image.ndim - 2), mode="edge")
    rows, columns = image.shape[:2]
    terms = [
        np.float32(weights[i][j]) * padded[i : i + rows, j : j + columns]
        for i in range(3)
        for j in range(3)
        if weights[i][j] != 0
    ]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def window(weights: Any) -> gp.operator:
    @gp.operator
    def filtered(f):
        around = [(i, j) for i in range(3) for j in range(3)]
        return sum(weights[i][j] * _readTensor(f, _row + i - 1, _column + j - 1) for i, j in around)

    return filtered


def operations(field: gp.Field) -> tuple[int, int]:
    """The reads of the kernel behind a field, and its operations."""
    results = list(expressions(field.node.call.kernel.body))
    return sum(isinstance(e, Read) for e in results), sum(isinstance(e, Apply) for e in results)


@pytest.mark.parametrize("weights", [SOBEL, np.array(SOBEL)], ids=["lists", "NumPy's integers"])
@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
def test_taps_of_weight_0_are_not_read(device: str, weights: Any, shape: tuple[int, ...]) -> None:
    a = rng.standard_normal(shape).astype(np.float32)
    result = window(weights)(gp.Field(a, len(shape) - 2))
    assert operations(result) == (6, 6 + 5)
    same_bits(result.numpy(), taps(a, SOBEL))


def test_one_consequence_is_the_sign_of_a_sum_of_negative_zeros(device: str) -> None:
    def body(f):
        x = _readTensor(f)
        return sum(x for _ in range(2)), sum([x, x], 0.0), x + 0, x - 0, 0 - x, 0.0 + x

    a = np.array([-0.0, 0.0, 1.0], np.float32)
    none = np.array([0.0, 0.0, 2.0], np.float32)
    expected = (a + a, none, a, a, np.array([0.0, 0.0, -1.0], np.float32), np.array([0.0, 0.0, 1.0], np.float32))
    for actual, want in zip(compute(body, gp.Field(a)), expected, strict=True):
        same_bits(actual, want)


def test_0_times_anything_is_0_and_floating_zeros_are_not_meant(device: str) -> None:
    def body(f):
        x = _readTensor(f)
        return 0 * x, x * np.int64(0), x + 0 * x, 0 * x + 0 * x, 0.0 * x, False * x

    with np.errstate(invalid="ignore"):
        real = np.float32(0.0) * SPECIAL
    nothing = np.zeros(6, np.float32)
    all_same(gp.operator(body)(gp.Field(SPECIAL)), (nothing, nothing, SPECIAL, nothing, real, real))


def test_types_are_those_of_the_operation(device: str) -> None:
    truth, byte = np.arange(6) % 2 == 0, np.arange(6, dtype=np.uint8)
    real = rng.standard_normal((6, 2)).astype(np.float32)

    def body(t, b, v):
        t, b, v = _readTensor(t), _readTensor(b), _readTensor(v)
        return 0 + t, t * 0, 0 + b, 0 * b, v + 0, 0 * v, 0 * b + v, 0 * v.x + b, 0 * v.x + v, _sum(0, v, 0 * v)

    zeros, wide = np.zeros(6, np.int32), byte.astype(np.float32)
    expected = (truth.astype(np.int32), zeros, byte, zeros.astype(np.uint8), real, 0 * real, real, wide, real, real)
    all_same(gp.operator(body)(gp.Field(truth), gp.Field(byte), gp.VectorField(real)), expected)


def test_the_value_of_a_variable_plus_0_is_what_it_was_then(device: str) -> None:
    def body(f):
        x = _var(_readTensor(f))
        before = x + 0
        x += 1
        x += 0 * x
        with _for(2):
            x += 0
        return before, x

    a = rng.standard_normal(5).astype(np.float32)
    all_same(gp.operator(body)(gp.Field(a)), (a, a + 1))


def test_a_field_whose_values_only_meet_zeros_is_no_input() -> None:
    @gp.operator
    def one_of(f, g):
        return 1.5 * _readTensor(f) + 0 * _readTensor(g, _row, _column + 1)

    with gp.ComputeGraph() as graph:
        f, g = gp.ScalarField(np.ones((3, 4), "f")), gp.ScalarField(np.ones((3, 4), "f"))
        graph.probe(one_of(f, g * 2), "out")
    assert graph.kernel_count == 1 and "multiply" not in graph.explain() and "f → out" in graph.explain()


def test_host_algebra_means_what_numpy_means(device: str) -> None:
    f = gp.Field(SPECIAL)
    with np.errstate(invalid="ignore"):
        for actual, want in ((0 + f, 0 + SPECIAL), (f * 0, SPECIAL * 0), (sum([f, f]), sum([SPECIAL, SPECIAL]))):
            np.testing.assert_array_equal(actual.numpy(), want)  # of NaNs there are many
            number = want == want
            np.testing.assert_array_equal(np.signbit(actual.numpy())[number], np.signbit(want)[number])


def same_signs(results: Any, expected: Any) -> None:
    """Equal values, and equal signs of zeros."""
    all_same(results, expected)
    for k, (actual, want) in enumerate(zip(results, expected, strict=True)):
        signs = np.signbit(actual.numpy()) != np.signbit(want)
        assert not np.any(signs & ~np.isnan(want)), f"output {k}"


def kept(x: Any, y: Any) -> tuple[Any, ...]:
    """Expressions that the algebra of real numbers would shorten: NaN, infinities and negative zeros make them something else."""
    return (
        0.0 * x,
        x * 0.0,
        -0.0 * x,
        y + 0.0 * x,
        x * 0.0 + y,
        y - x * 0.0,
        x - x,
        x / x,
        0.0 / x,
        x + y - y,
        x * y / y,
        x + 0.0,
        0.0 + x,
        x - 0.0,
        0.0 - x,
        -0.0 + x,
        x - -0.0,
        -0.0 - x,
        x - x + y,
        x / x * y,
        (x - y) + (y - x),
        x * 1.0 - 1.0 * x,
        x * 2.0 / 2.0,
        x / 2.0 * 2.0,
        -(x - y),
        (x - x) * (y - y),
        x * y - y * x,
    )


def in_loops(x: Any, y: Any) -> tuple[Any, ...]:
    """The same behind variables that begin with zeros, and in branches."""
    total, product, last = _var(0.0 * x), _var(y), _var(x)
    with _for(3):
        total += 0.0 * y
        product *= x / x
        with _if(y > 0):
            last -= y - y
    return total, product, last


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_keep_every_operation(device: str, dtype: str) -> None:
    if dtype not in available():
        pytest.skip(f"{device} has no {dtype}")
    some = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -2.25, np.finfo(dtype).max], dtype)
    a, b = (np.tile(v.ravel(), 4)[:251].reshape(1, -1).repeat(3, 0) for v in np.meshgrid(some, some))

    f, g = gp.ScalarField(a), gp.ScalarField(b)
    with np.errstate(all="ignore"):
        across, back = kept(a, b), kept(b, a)
        loops = 0 * a + 0 * b + 0 * b + 0 * b, b * (a / a) * (a / a) * (a / a), np.where(b > 0, a - (b - b), a)
    same_signs(gp.operator(lambda f, g: in_loops(_readTensor(f), _readTensor(g)))(f, g), loops)
    same_signs(kept(f, g), across)
    pair = {"float16": _half2, "float32": _float2, "float64": _double2}[dtype]
    for k in (0, 9, 18):  # an operator has few outputs

        def scalars(f, g):
            return kept(_readTensor(f), _readTensor(g))[k : k + 9]  # noqa: B023

        def vectors(f, g):
            x, y = _readTensor(f), _readTensor(g)
            return kept(pair(x, y), pair(y, x))[k : k + 9]  # noqa: B023

        ends = [np.stack(v, -1) for v in zip(across[k : k + 9], back[k : k + 9], strict=True)]
        same_signs(gp.operator(scalars)(f, g), across[k : k + 9])
        same_signs(gp.operator(vectors)(f, g), ends)
