"""Products, moments, masks, NaN left out, and functions of users': NumPy's values, on every device with the same bits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.conformance.compare import has_double, same
from tests.harness import fused, image, same_bits

SHAPES = [
    ((7, 40), 0),
    ((5, 6, 70), 0),
    ((4, 33, 3), 1),
    ((35, 3, 3), 2),
    ((300, 3), 0),
    ((), 0),
    ((17,), 1),
    ((9, 13), 1),
]
NAMES = ("prod", "std", "var", "count_nonzero", "nansum", "nanprod", "nanmean", "nanstd", "nanvar", "nanmin", "nanmax")
MASKED = ("sum", "prod", "mean", "std", "var", "min", "max", "any", "all", *NAMES[4:])
DTYPES = ("bool", "int8", "uint8", "int32", "uint64", "float16", "float32", "float64", "complex64", "complex128")
FLOATS = {"float64": "float32", "complex128": "complex64"}
rng = np.random.default_rng(11)


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Some of each: zeros, numbers whose products stay small, and NaN where there is one."""
    array = np.asarray(rng.choice([0.5, 1, 1, 1, 2] if dtype[0] in "fc" else [1, 1, 1, 2, 3], shape)).astype(dtype)
    flat = array.reshape(-1)
    if dtype.startswith("complex"):
        flat *= np.exp(1j * rng.random(flat.size)).astype(dtype)
    if dtype[0] in "fc":
        flat[rng.random(flat.size) < 0.1] = np.nan
    if shape:
        flat[0] = 0
    return array


def axes_of(shape: tuple[int, ...]) -> list[Any]:
    return [None, *range(len(shape)), *([(0, -1)] if len(shape) > 1 else [])]


def close(result: gp.Field, want: Any, dtype: str, what: str) -> None:
    """NumPy's values, with float32 where NumPy makes float64 of what is none."""
    actual, want = result.numpy(), np.asarray(want)
    kind = want.dtype.name if dtype in FLOATS else FLOATS.get(want.dtype.name, want.dtype.name)
    assert (actual.dtype.name, actual.shape) == (kind, want.shape), what
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, want, err_msg=what)
    else:
        rtol = 3e-3 if kind == "float16" else 1e-5
        np.testing.assert_allclose(actual, want, rtol=rtol, atol=rtol / 10, err_msg=what)


def takes(name: str, dtype: str) -> bool:
    return dtype[0] != "c" or not name.endswith(("min", "max"))


@pytest.mark.parametrize("dtype", ["bool", "uint8"])
def test_places_among_few_values_and_among_equal_ones(device, dtype):
    """Two loops of a thread, the second for what is beside a multiple of eight: NVIDIA's compilers mixed the bytes of both."""
    shapes = [((n,), 0) for n in (7, 11)] + [((11, 1), 0), ((16, 1, 1, 4), 2), ((3, 1, 9), 1)]
    for (shape, order), share in itertools.product(shapes, (0, 0.5, 1)):
        x = np.asarray(np.random.default_rng(len(shape)).random(shape) < share).astype(dtype)
        f = gp.Field(x, order)
        assert (int(f.argmax().numpy()), int(f.argmin().numpy())) == (x.argmax(), x.argmin()), (shape, share)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_function_of_every_dtype(device, dtype):
    if dtype in FLOATS and not has_double():
        pytest.skip("no double")
    cases = [(n, s, o, a) for n in NAMES if takes(n, dtype) for s, o in SHAPES for a in axes_of(s)]
    each = 47 if device == "reference" else 211
    for name, shape, order, axis in cases[DTYPES.index(dtype) :: each]:  # compilers are slow
        x, options = values(shape, dtype), {"keepdims": bool(rng.integers(2))}
        if name.endswith(("std", "var")):
            options["ddof"] = int(rng.integers(2))
        want = getattr(np, name)(x, axis=axis, **options)
        what = f"{name} of {shape} {dtype} over {axis}, {options}"
        close(getattr(np, name)(gp.Field(x, order), axis=axis, **options), want, dtype, what)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_masks(device, dtype):
    if dtype in FLOATS and not has_double():
        pytest.skip("no double")
    cases = [(n, s, o, a) for n in MASKED if takes(n, dtype) for s, o in SHAPES for a in axes_of(s)]
    each = 79 if device == "reference" else 307
    for name, shape, order, axis in cases[DTYPES.index(dtype) :: each]:
        x, mask = values(shape, dtype), np.asarray(rng.random(shape) < 0.6)
        chosen = gp.Field(mask, order)
        if order == 0 and len(shape) > 1:  # masks broadcast
            mask, chosen = mask[0], gp.ScalarField(mask[0])
        options = {"initial": True if dtype == "bool" else 2} if name.endswith(("min", "max")) else {}
        want = getattr(np, name)(x, axis=axis, where=mask, **options)
        what = f"{name} of {shape} {dtype} over {axis}, masked"
        close(getattr(np, name)(gp.Field(x, order), axis=axis, where=chosen, **options), want, dtype, what)


def test_what_is_kept_broadcasts(device):
    x = image(12, 40)
    f = gp.ScalarField(x)
    for axis in (0, 1, None):
        want = x - x.max(axis=axis, keepdims=True)
        same_bits((f - f.max(axis=axis, keepdims=True)).numpy(), want)
        same(f.argmax(axis=axis, keepdims=True), x.argmax(axis=axis, keepdims=True))
    v = gp.VectorField(x.reshape(12, 10, 4))
    assert v.sum(axis=2, keepdims=True).type == gp.FieldType((12, 10), 1)
    assert v.sum(axis=(0, 1), keepdims=True).type == gp.FieldType((1, 1), 4)


def test_initial(device):
    x = rng.integers(-9, 10, (6, 40)).astype("i4")
    f = gp.ScalarField(x)
    for name, initial in (("sum", 7), ("prod", 2), ("min", -3), ("max", 30)):
        same(getattr(f, name)(axis=1, initial=initial), getattr(x, name)(axis=1, initial=initial))
    for name, initial in (("sum", 7), ("prod", 2), ("min", -3), ("max", 30)):
        empty = np.zeros((0, 3), "i4")
        actual = getattr(gp.ScalarField(empty), name)(axis=0, initial=initial)
        same(actual, getattr(empty, name)(axis=0, initial=initial))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_nothing(device):
    x = np.zeros((0, 5), "f")
    f = gp.ScalarField(x)
    for name, axis in itertools.product(
        ("prod", "var", "std", "nansum", "nanprod", "nanmean", "count_nonzero"), (None, 0, 1)
    ):
        same(getattr(np, name)(f, axis=axis), np.asarray(getattr(np, name)(x, axis=axis)), name)
    with pytest.raises(gp.SemanticError, match="there is no value to choose"):
        np.nanmin(f)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["argmin", "argmax", "nanargmin", "nanargmax"])
def test_places_in_empty_rows(name, dtype):
    x = np.zeros((2, 0), dtype)
    with pytest.raises(ValueError, match="empty"):
        getattr(np, name)(x, axis=-1)
    with pytest.raises(gp.SemanticError, match="there is no value to choose along axis -1, which is empty"):
        getattr(np, name)(gp.ScalarField(x), axis=-1)


def test_large_means_lose_no_digits_of_variances(device):
    x = (4096 + image(30, 70)).astype("f")
    np.testing.assert_allclose(gp.ScalarField(x).var(axis=1).numpy(), x.astype("f8").var(axis=1), rtol=1e-4)


def test_products_wrap_as_integers_do(device):
    x = rng.integers(-(2**31), 2**31, (40, 70)).astype("i4")
    same(gp.ScalarField(x).prod(axis=0), x.prod(axis=0))
    same(gp.ScalarField(x).prod(), np.asarray(x.prod()))


# --- functions of users' ----------------------------------------------------------------------------------------------


def _farthest(x: np.ndarray, axis: Any) -> np.ndarray:
    """The value of the largest magnitude."""
    low, high = x.min(axis), x.max(axis)
    return np.asarray(np.where(-low > high, low, high))


FUNCTIONS = [
    ("largest by magnitude", lambda a, b: _maxmag(a, b), _farthest, 0.0),
    ("least", lambda a, b: _fmin(a, b), lambda x, axis: x.min(axis), float("inf")),
]


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case[0])
def test_functions_of_floats(device, case):
    _, function, want, identity = case
    for shape, axis in (((6, 90), 1), ((257, 3), 0), ((3, 5, 8), 1), ((9001,), None)):
        x = image(*shape) - np.float32(0.5)
        same(gp.reduce(function, gp.ScalarField(x), identity, axis), np.asarray(want(x, axis)))
    x = image(5, 7, 3) - np.float32(0.5)
    same(gp.reduce(function, gp.VectorField(x), identity, (0, 2), keepdims=True).numpy().ravel(), want(x, (0, 2)))
    same(gp.reduce(function, gp.Field(x[:0], 0), identity, 0), np.full((7, 3), identity, "f"))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "uint64"])
def test_functions_of_integers(device, dtype):
    x = rng.integers(0, 2 if dtype == "bool" else 100, (45, 70)).astype(dtype)
    mask = rng.random(70) < 0.5
    for axis in (None, 0):
        actual = gp.reduce(lambda a, b: a ^ b, gp.ScalarField(x), dtype == "bool" and False, axis)
        same(actual, np.asarray(np.bitwise_xor.reduce(x, axis=axis)))
        actual = gp.reduce(
            lambda a, b: a | b, gp.ScalarField(x), np.dtype(dtype).type(0), axis, where=gp.ScalarField(mask)
        )
        same(actual, np.asarray(np.bitwise_or.reduce(x, axis=axis, where=mask)))


def test_a_function_is_what_it_records():
    """Functions of one name that record other things are others, and so are identities."""
    x = image(40) + np.float32(1)
    f = gp.ScalarField(x)
    for chosen, identity, want in ((_max, 0.0, x.max()), (_min, 9.0, x.min())):
        assert float(gp.reduce(lambda a, b, chosen=chosen: chosen(a, b), f, identity)) == want
    assert float(gp.reduce(lambda a, b: _max(a, b), f, 5.0)) == 5
    assert float(gp.reduce(lambda a, b: _max(a, b), f, 0.0)) == x.max()


def test_equal_bits_on_every_device(device):
    x, v = image(131, 257) - np.float32(0.5), image(45, 67, 3)

    def made() -> list[np.ndarray]:
        f, g = gp.ScalarField(x), gp.VectorField(v)
        results = [f.var(), f.prod(axis=1), np.nanmean(f, axis=0), f.mean(axis=1, where=f > 0)]
        results += [g.std(axis=0), gp.reduce(lambda a, b: a + b - a * b, g, 0.0, (0, 1))]
        return [r.numpy() for r in results]

    actual = made()
    with gp.use_device("reference"):
        want = made()
    for a, b in zip(actual, want, strict=True):
        same_bits(a, b)


def test_they_fuse(device):
    """Masks, squares and conditions are no fields of their own; the mean is one kernel, the variance another."""
    x = image(70, 50)
    f = gp.ScalarField(x)

    def build() -> dict[str, gp.Field]:
        return {
            "rows": (f * 2).std(axis=1),
            "masked": np.sum(f * 3, axis=1, where=f > 0.5),
            "count": np.count_nonzero(f > 0.25),
        }

    graph, results = fused(build)
    np.testing.assert_allclose(results["rows"], (x * 2).std(axis=1), rtol=1e-5)
    np.testing.assert_allclose(results["masked"], np.sum(x * 3, axis=1, where=x > 0.5), rtol=1e-5)
    assert results["count"] == np.count_nonzero(x > 0.25)
    assert graph.kernel_count <= 5, graph.explain()


def test_in_pipelines_and_iterations(device):
    x = image(30, 40)
    spread = gp.pipeline(
        lambda a: np.nanmax(gp.ScalarField(a), axis=0) - gp.reduce(lambda p, q: _min(p, q), gp.ScalarField(a), 1.0, 0)
    )
    same_bits(spread(x), x.max(axis=0) - x.min(axis=0))
    same_bits(spread(x + 1), (x + 1).max(axis=0) - np.float32(1))
    scaled = gp.iterate(lambda u: u / u.prod(axis=1, keepdims=True), gp.ScalarField(np.full((3, 2), 2.0, "f")), times=3)
    same(scaled, _iterated(np.full((3, 2), 2.0, "f"), 3))


def _iterated(u: np.ndarray, times: int) -> np.ndarray:
    for _ in range(times):
        u = u / u.prod(axis=1, keepdims=True)
    return u
