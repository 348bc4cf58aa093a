"""Numbers as arguments of kernels: the bits of numbers in the text, and nothing new to plan or compile from the third value on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.base.config import config
from gpuop.engine import evaluate
from gpuop.engine.number_arguments import NumberArguments

rng = np.random.default_rng(3)
IMAGE = rng.random((37, 53), np.float32)
BYTES = rng.integers(0, 256, (37, 53), np.uint8)
FIELD, FIELD_OF_BYTES = gp.ScalarField(IMAGE), gp.ScalarField(BYTES)
VALUES = (1.0, 1.25, 1.5, 1.75)


@pytest.fixture(autouse=True)
def _arguments(monkeypatch):
    """As users have it; the suite has all numbers in the text."""
    monkeypatch.setattr(config, "specialize", "auto")


def weights(v: float, *shape: int) -> np.ndarray:
    return np.random.default_rng(int(1000 * v)).random(shape)


@gp.pipeline
def scaled(image, a, b):
    return gp.ScalarField(image) * a + b


@gp.pipeline
def cut(image, t):
    f = gp.ScalarField(image)
    return np.where(f > t, f, -1.0)


@gp.pipeline
def sharpened(image, sigma, amount):
    f = gp.ScalarField(image)
    return f + (f - ndimage.gaussian_filter(f, sigma)) * amount


@gp.pipeline
def of_colours(image, a, b):
    f = gp.Field(image, 1)
    return f * (a, b, 0.5)


FUNCTIONS: dict[str, Callable[[float], Any]] = {
    "gaussian_filter": lambda v: ndimage.gaussian_filter(IMAGE, 2 + 0.05 * v),
    "gaussian_filter cval": lambda v: ndimage.gaussian_filter(IMAGE, 1.5, mode="constant", cval=v),
    "gaussian_filter of bytes": lambda v: ndimage.gaussian_filter(BYTES, 1 + 0.05 * v),
    "gaussian_filter order": lambda v: ndimage.gaussian_filter(IMAGE, 1 + 0.05 * v, order=(0, 1)),
    "gaussian_laplace": lambda v: ndimage.gaussian_laplace(IMAGE, 1 + 0.05 * v),
    "gaussian_gradient_magnitude": lambda v: ndimage.gaussian_gradient_magnitude(IMAGE, 1 + 0.05 * v),
    "correlate": lambda v: ndimage.correlate(IMAGE, weights(v, 3, 4)),
    "correlate of bytes": lambda v: ndimage.correlate(BYTES, np.rint(9 * weights(v, 3, 3)) + 1),
    "convolve cval": lambda v: ndimage.convolve(IMAGE, weights(v, 5, 5), mode="constant", cval=v),
    "correlate with many weights": lambda v: ndimage.correlate(IMAGE, weights(v, 9, 9)),
    "correlate with a table": lambda v: ndimage.correlate(IMAGE, weights(v, 12, 13)),
    "convolve1d with a table": lambda v: ndimage.convolve1d(IMAGE, weights(v, 151), mode="nearest"),
    "convolve1d": lambda v: ndimage.convolve1d(IMAGE, weights(v, 6)),
    "uniform_filter cval": lambda v: ndimage.uniform_filter(BYTES, 3, mode="constant", cval=int(100 * v)),
    "maximum_filter cval": lambda v: ndimage.maximum_filter(BYTES, 3, mode="constant", cval=int(100 * v)),
    "grey_dilation": lambda v: ndimage.grey_dilation(IMAGE, structure=weights(v, 3, 3)),
    "laplace cval": lambda v: ndimage.laplace(IMAGE, mode="constant", cval=v),
    "rotate cval": lambda v: ndimage.rotate(IMAGE, 20.0, reshape=False, order=1, cval=v),
    "shift cval": lambda v: ndimage.shift(IMAGE, 1.5, order=1, cval=v),
    "distance_transform_edt": lambda v: ndimage.distance_transform_edt(IMAGE > 0.5, sampling=(v, 1.0)),
    "a field": lambda v: (FIELD * v + 2 * v).numpy(),
    "a field of bytes": lambda v: np.where(int(100 * v) < FIELD_OF_BYTES, FIELD_OF_BYTES, 7).numpy(),
    "a filter of a field": lambda v: ndimage.gaussian_filter(FIELD, 1 + 0.05 * v).numpy(),
    "a reduction of a field": lambda v: (abs(FIELD - v).max() * FIELD).numpy(),
    "np.clip of a field": lambda v: np.clip(FIELD, v / 9, v / 3).numpy(),
    "a pipeline": lambda v: scaled(IMAGE, v, 2 * v),
    "a pipeline of bytes": lambda v: cut(BYTES, int(100 * v)),
    "a pipeline with a filter": lambda v: sharpened(IMAGE, 1 + 0.05 * v, v),
    "a pipeline of vectors": lambda v: of_colours(np.stack([IMAGE] * 3, -1), v, 2 * v),
}


@contextmanager
def as_text() -> Iterator[None]:
    """All numbers are in the text of kernels."""
    gp.release()
    with mock.patch.object(NumberArguments, "of", lambda self, what: what):
        yield
    gp.release()


@contextmanager
def planned() -> Iterator[list[Any]]:
    """The plans that are made and compiled."""
    plans: list[Any] = []
    made = evaluate.Prepared
    with mock.patch.object(evaluate, "Prepared", lambda *args: plans.append(args) or made(*args)):
        yield plans


def same(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_are_those_of_numbers_in_the_text(device, name):
    function = FUNCTIONS[name]
    with as_text():
        expected = [function(v) for v in VALUES]
    with planned() as plans:
        results = [function(v) for v in VALUES[:2]]
        before = len(plans)
        results += [function(v) for v in VALUES[2:]]
        assert len(plans) == before, "a third value makes a plan"
    assert all(map(same, results, expected))


@pytest.mark.parametrize(("size", "dtype"), [(3, "uint8"), (3, "int16"), (9, "uint16")])
def test_other_ranks_of_a_window_plan_nothing(device, size, dtype):
    """Integers, whose order NaN does not spoil; the second rank has a kernel for all."""
    gp.release()
    image = (IMAGE * 200).astype(dtype)
    ranks = (1, 2, 5, -2, size * size // 2, size * size - 3, 1)
    for n, rank in enumerate(ranks):
        with planned() as plans:
            result = ndimage.rank_filter(image, rank, size=size, mode="constant", cval=1)
        assert np.array_equal(result, scipy.ndimage.rank_filter(image, rank, size=size, mode="constant", cval=1))
        assert len(plans) == 0 or n < 2 or rank == size * size // 2
    share = ndimage.percentile_filter(image, 30, size=size)
    assert np.array_equal(share, scipy.ndimage.percentile_filter(image, 30, size=size))


@pytest.mark.parametrize("method", ["linear", "nearest", "hazen"])
def test_other_percentiles_of_a_field_plan_nothing(device, method):
    """From the third one of a form on: weights above and below a half are summed otherwise, as in NumPy."""
    gp.release()
    image = IMAGE[:9, :11].astype(np.float32)
    f = gp.ScalarField(image)
    for n, share in enumerate((12, 33.3, 25.25, 71, 66.6, 5, 48.9, 80.1)):
        with planned() as plans:
            rows = np.percentile(f, share, axis=1, method=method).numpy()
        np.testing.assert_allclose(rows, np.percentile(image, share, axis=1, method=method), rtol=1e-6)
        assert len(plans) == 0 or n < 5


def test_full_follows_a_parameter(device):
    for value, dtype in ((2.5, None), (np.array([1, -2, 7], np.int32), None), (-0.0, "float64"), (3, "uint8")):
        p = gp.Parameter(value)
        field = gp.full((4, 6), p, dtype)
        for factor in (1, 2):
            expected = np.broadcast_to(np.asarray(value) * factor, (4, 6, *np.shape(value))).astype(
                field.type.array_dtype
            )
            p.set(np.asarray(value) * factor)
            assert field.numpy().tobytes() == expected.tobytes() and field.dtype == (dtype or p.dtype)
        like = np.full_like(gp.zeros((2, 3), p.dtype), p)
        assert np.array_equal(like.numpy(), np.full((2, 3, *np.shape(value)), np.asarray(value) * 2))


EDGES = (
    1.5,
    2,
    np.float32(0.1),
    np.float64(0.1),
    True,
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    -3,
    1e30,
    1e-42,
    2.0**-149,
)


@pytest.mark.parametrize("a", EDGES, ids=repr)
def test_numbers_of_every_kind(device, a):
    @gp.pipeline
    def product(image, a):
        return gp.ScalarField(image) * a

    for first in (0.75, 0.5, 0.375):
        product(IMAGE, first)
    with np.errstate(all="ignore"):
        expected = IMAGE * np.float32(a)
    assert np.array_equal(product(IMAGE, a), expected, equal_nan=True)
    assert np.array_equal(np.signbit(product(IMAGE, a)), np.signbit(expected)) or math.isnan(a)


def test_a_branch_on_a_number_is_another_program(device):
    @gp.pipeline
    def chosen(image, a):
        f = gp.ScalarField(image)
        return f * a if a > 1 else f - a

    for a in (0.5, 2.0, 0.25, 3.0, 0.125, 4.0):
        expected = IMAGE * np.float32(a) if a > 1 else IMAGE - np.float32(a)
        assert np.array_equal(chosen(IMAGE, a), expected)


def test_numbers_that_are_places_stay_in_the_text(device):
    @gp.pipeline
    def shifted(image, steps):
        return np.roll(gp.ScalarField(image), steps, axis=1)

    for steps in (1, 2, 5, -3, 7):
        assert np.array_equal(shifted(IMAGE, steps), np.roll(IMAGE, steps, axis=1))


def test_other_sizes_and_other_numbers_together(device):
    @gp.pipeline
    def smooth(image, sigma, amount):
        f = gp.ScalarField(image)
        return ndimage.gaussian_filter(f, sigma) * amount

    def results() -> list[Any]:
        draw = np.random.default_rng(1)
        return [
            smooth(
                IMAGE[: draw.integers(9, 37), : draw.integers(9, 53)].copy(), 1 + 0.01 * draw.random(), draw.random()
            )
            for _ in range(8)
        ]

    with as_text():
        expected = results()
    assert all(map(same, results(), expected))


def test_explain_counts_numbers_that_are_arguments(monkeypatch):
    @gp.pipeline
    def chain(image, a, t):
        f = gp.ScalarField(image) * a
        return np.where(f > t, f, 0.5)

    with gp.use_device("reference"):
        for a in (1.5, 2.5):
            chain(IMAGE, a, a / 4)
        assert "are arguments" not in chain.explain(IMAGE, 1.5, 1.5 / 4)
        lines = chain.explain(IMAGE, 2.5, 2.5 / 4).splitlines()
        assert lines[-1] == "numbers that are arguments, as other calls had others: 1 of `multiply`, 1 of `greater`"
        monkeypatch.setattr(config, "specialize", "1")
        assert "are arguments" not in chain.explain(IMAGE, 3.5, 3.5 / 4)


def test_of_a_value_that_repeats_the_text_is_used_again(device):
    @gp.pipeline
    def product(image, a):
        return gp.ScalarField(image) * a

    for a in (1.5, 2.5, 3.5):
        product(IMAGE, a)
    assert "1.5" in product.source(IMAGE, 1.5)
    assert "3.5" not in product.source(IMAGE, 3.5)
    assert "numbers" in product.source(IMAGE, 3.5)


STEPS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda f, a: f + a,
    lambda f, a: a - f,
    lambda f, a: f * a,
    lambda f, a: f / a,
    lambda f, a: np.where(f > a, f, a),
    lambda f, a: np.where(f == a, a, f),
    lambda f, a: np.clip(f, a, 2 * a),
    lambda f, a: np.minimum(f, a),
    lambda f, a: np.maximum(a, f),
    lambda f, a: abs(f - a),
    lambda f, a: np.sqrt(abs(f)) * a,
    lambda f, a: f - a * np.roll(f, 1, axis=0),
    lambda f, a: np.copysign(f, a),
    lambda f, a: f + a * f.mean(),
)
ODD = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-42, 3e4, 0.1, 1 / 3, 7.0)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16", "int32", "float16"])
@pytest.mark.parametrize("number", range(6))
def test_random_chains(device, number, dtype):
    """Numbers of all kinds, beside the same in the text."""
    draw = np.random.default_rng(number)
    steps = [STEPS[n] for n in draw.integers(0, len(STEPS), 4)]
    image = (IMAGE * 100).astype(dtype)

    @gp.pipeline
    def chain(image, numbers):
        f = gp.Field(image, 0, dtype)
        for step, value in zip(steps, numbers, strict=True):
            f = step(f, value)
        return f

    def value() -> float | int:
        return (
            int(draw.integers(1, 60))
            if number % 2
            else float(draw.choice(ODD) if draw.random() < 0.3 else draw.random())
        )

    calls = [tuple(value() for _ in steps) for _ in range(4)]  # from the third on nothing is compiled
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with as_text():
            expected = [chain(image, numbers) for numbers in calls]
        results = [chain(image, numbers) for numbers in calls]
    for a, b in zip(results, expected, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        assert np.array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0])) or a.dtype.kind != "f"


def test_windows_take_numbers_that_are_arguments(device):
    @gp.pipeline
    def smooth(image, sigma, amount):
        return ndimage.gaussian_filter(gp.ScalarField(image), sigma) * amount

    whole = IMAGE.shape
    for sigma in (1.0, 1.02, 1.04):
        expected = smooth(IMAGE, sigma, sigma)
        around = smooth.footprint(IMAGE, sigma, sigma).window((9, 11), (25, 40))
        part = IMAGE[tuple(slice(*ends) for ends in around)].copy()
        assert same(smooth.window(whole, (9, 11), (25, 40))(part, sigma, sigma), expected[9:25, 11:40].copy())
