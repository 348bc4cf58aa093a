"""Cumulative sums and products, and scans by functions of users': NumPy's values, on every device with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.conformance.compare import same
from tests.harness import fused, image, same_bits
from tests.nightly import left_to_nightly

rng = np.random.default_rng(12)
# a shape, the order of its tensors, an axis: rows and columns in one chunk and in several, odd ones, tensors
CASES = [
    ((5,), 0, 0), ((4099,), 0, 0), ((9, 2), 0, 0), ((131, 3), 0, 0), ((3, 700), 0, -1), ((2, 3, 40), 0, None),
    ((33, 3), 1, 1), ((40, 3), 1, 0), ((3, 2, 2), 2, 1), ((2, 9), 1, -1), ((), 0, None), ((0, 4), 0, 1), ((1, 1), 0, 0),
]  # fmt: skip
DTYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "complex64", "complex128")


@pytest.mark.parametrize("n", range(len(CASES)))
def test_each_as_numpy(device, n):
    if device != "reference" and n > 3:
        left_to_nightly("compilers are slow; the reference runs them all")
    shape, order, axis = CASES[n]
    names = (("cumsum", DTYPES[n % 7]), ("cumprod", DTYPES[(n + 3) % 6]), ("nancumsum", "float32"))
    for name, dtype in names if device == "reference" else names[n % 3 :][:1]:
        x = np.asarray(rng.choice([0, 1, 1, 1, 2], shape) if name == "cumsum" else rng.choice([1, -1], shape)).astype(
            dtype
        )
        if name == "nancumsum" and x.size:
            x.reshape(-1)[x.size // 2] = np.nan
        want = getattr(np, name)(x, axis=axis)
        same(
            getattr(np, name)(gp.Field(x, order), axis=axis),
            want.astype("f4").astype("f2") if dtype == "float16" else want,
        )


def test_long_rows(device):
    """Chunks of chunks: 300,000 values, whose sums are integers."""
    x = rng.integers(-9, 10, 300_000 if device != "reference" else 70_000).astype("f")
    same(gp.ScalarField(x).cumsum(), np.cumsum(x))
    same(gp.scan(lambda a, b: a + b, gp.ScalarField(x), 0, inclusive=False), np.cumsum(x) - x)


def test_errors_are_small(device):
    x = image(40_000)
    np.testing.assert_allclose(gp.ScalarField(x).cumsum().numpy(), np.cumsum(x, dtype="f8"), rtol=1e-6)


LAST = (lambda a, b: _where(b != 0, b, a), 0)  # the last that is not 0: no commutative function


def _filled(x: np.ndarray) -> np.ndarray:
    """The last value along rows that is not 0."""
    at = np.maximum.accumulate(np.where(x != 0, np.arange(x.shape[1]), 0), axis=1)
    return np.take_along_axis(x, at, 1)


@pytest.mark.parametrize("inclusive", [True, False])
def test_functions_in_order(device, inclusive):
    for shape in ((3, 5000), (70, 33), (2, 20)) if device == "reference" else ((3, 2100),):
        x = np.where(rng.random(shape) < 0.05, rng.integers(1, 99, shape), 0).astype("u1")
        for axis, value in ((1, gp.ScalarField(x)), (0, gp.ScalarField(np.ascontiguousarray(x.T)))):
            want = _filled(x)
            if not inclusive:
                want = np.hstack([np.zeros_like(want[:, :1]), want[:, :-1]])
            same(
                gp.scan(*LAST[:1], value, LAST[1], axis, inclusive=inclusive),
                want if axis else np.ascontiguousarray(want.T),
            )
    tensors = rng.integers(0, 9, (4, 3)).astype("i4")
    actual = gp.scan(lambda a, b: _max(a, b), gp.VectorField(tensors), -1, 1, inclusive=inclusive)
    want = np.maximum.accumulate(tensors, axis=1)
    same(actual, want if inclusive else np.hstack([np.full((4, 1), -1, "i4"), want[:, :-1]]))


def test_equal_bits_on_every_device(device):
    x, v = image(5000) - np.float32(0.5), image(200, 5, 3)
    g = gp.VectorField(v)

    def made() -> list[np.ndarray]:
        scanned = gp.scan(lambda a, b: a + b - a * b, gp.ScalarField(x), 0.0)
        return [r.numpy() for r in (scanned, g.cumsum(0), g.cumprod(2))]

    actual = made()
    with gp.use_device("reference"):
        want = made()
    for a, b in zip(actual, want, strict=True):
        same_bits(a, b)


def test_in_graphs_and_pipelines(device):
    """Operators before a scan are computed in its kernel."""
    x = rng.integers(0, 9, (6, 300)).astype("f")

    def build() -> dict[str, Any]:
        return {"rows": (gp.ScalarField(x) * 2).cumsum(axis=1)}

    _, results = fused(build, kernels=1)
    same_bits(results["rows"], (x * 2).cumsum(axis=1))
    piped = gp.pipeline(lambda a: np.cumprod(gp.ScalarField(a) - 1, axis=0))
    same_bits(piped(x), np.cumprod(x - 1, axis=0))
    turned = gp.iterate(lambda u: u.cumsum(axis=1), gp.ScalarField(x), times=2)
    same(turned, x.cumsum(axis=1).cumsum(axis=1))


OF_ANY_LENGTH = {
    "along": lambda f: np.cumsum(f, axis=1),
    "everywhere": np.cumsum,
    "signs": lambda f: np.cumprod(np.where(f > 0, 1, -1), axis=1),
}


@pytest.mark.parametrize("count", [2048, 2077, 2292, 2565, 3114, 3785, 8191])
@pytest.mark.parametrize("name", OF_ANY_LENGTH)
def test_rows_of_changing_lengths(device, name, count):
    """Chunks of any multiple of four values, in kernels of any size."""
    x = rng.integers(-9, 9, (2, count)).astype(np.int32)
    scanned = gp.pipeline(dynamic=True)(lambda a: OF_ANY_LENGTH[name](gp.ScalarField(a)))
    np.testing.assert_array_equal(scanned(x), OF_ANY_LENGTH[name](x))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_by_functions(dtype) -> None:
    """Reduced and scanned, of grids and of tensors: products, and steps `x → a x + b`, which do not commute."""
    parts = rng.normal(size=(2, 5, 7, 3)).astype("float32")
    z = (parts[0] + 1j * parts[1]).astype(dtype)
    f, line = gp.VectorField(z), gp.ScalarField(z[0, :, 0])

    def product(a, b):
        return _complexMul(a, b)

    def one_step_more(a, b):
        return _vector(a.x * b.x, a.y * b.x + b.y)

    chosen, steps, at = np.where(z.real > 0, z, 1), [], (1.0, 0.0)
    for x in z[0, :, 0]:
        at = at[0] * x.real, at[1] * x.real + x.imag
        steps.append(at[0] + 1j * at[1])
    with gp.use_device("reference"):
        for result, want in (
            (gp.reduce(product, f, 1), z.prod()),
            (gp.reduce(product, f, 1j - 1j + 1, axis=(0, 2), keepdims=True), z.prod((0, 2), keepdims=True)),
            (gp.reduce(product, f, 1, axis=-1, where=f.real > 0), chosen.prod(-1)),
            (gp.reduce(product, f[:0], 2j, axis=0), np.full((7, 3), 2j)),
            (gp.reduce(lambda a, b: a.x + b.x, f, 0, axis=1), z.real.sum(1) + 0j),
            (gp.scan(product, f, 1, axis=2), z.cumprod(2)),
            (gp.scan(product, f, 1), z.ravel().cumprod()),
            (gp.scan(product, f, 1, axis=0, inclusive=False), np.concatenate([np.ones((1, 7, 3)), z.cumprod(0)[:-1]])),
            (gp.scan(one_step_more, line, 1), np.array(steps)),
            (np.cumprod(f, axis=1), z.cumprod(1)),
        ):
            actual = result.numpy()
            assert actual.shape == want.shape and actual.dtype == dtype
            np.testing.assert_allclose(actual, want, 1e-4, 1e-6)
