"""Reductions of fields: NumPy's, over grid and tensor axes; pairwise sums, equal on every device."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.conformance.compare import has_double, same
from tests.harness import blur, fused, image, same_bits

NAMES = ("sum", "mean", "min", "max", "argmin", "argmax")
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "unorm8",
)  # fmt: skip
SHAPES = [  # an array's shape, its tensor order, and the axes to reduce
    ((7, 40), 0, (None, 0, 1, -1, (0, 1), ())),
    ((5, 6, 70), 0, (None, -1, 1, 0, (0, 2), (1, 2), (-3, 1))),
    ((4, 33, 3), 1, (None, 0, 1, -1, (0, 2), (0, 1))),
    ((35, 3, 3), 2, (None, 0, 1, 2, (1, 2), (0, -1))),
    ((9, 100), 1, (None, 0, 1)),
    ((3, 5, 2, 2), 2, (None, 2, (2, 3), (0, 1), (1, 3))),
    ((), 0, (None, ())),
    ((17,), 1, (None, 0)),
    ((300, 3), 0, (None, 0)),  # columns in chunks, the last of which is short
    ((2, 131, 2, 3), 1, (1, (0, 1))),
    ((4, 50), 1, (1,)),
]
ALL = [(shape, order, axis) for shape, order, axes in SHAPES for axis in axes]
rng = np.random.default_rng(3)


def whole_numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values that any order sums exactly, each of them several times."""
    low = -9 if np.dtype("u1" if dtype == "unorm8" else dtype).kind in "if" else 0
    return np.asarray(rng.integers(low, 10, shape)).astype("uint8" if dtype == "unorm8" else dtype)


def expected(name: str, array: np.ndarray, axis: Any, dtype: str) -> np.ndarray:
    """NumPy's result, with float32 where NumPy has float64 for integers; means are of exact sums."""
    values = array / np.float32(255) if dtype == "unorm8" else array
    if name == "mean" and dtype != "float64":
        total = np.sum(values, axis=axis, dtype="float64" if values.dtype.kind == "f" else None)
        count = array.size // max(total.size, 1)
        mean = total.astype("float32") / np.float32(count)
        return np.asarray(mean.astype("float16" if dtype == "float16" else "float32"))
    if name == "sum" and dtype == "float16":
        return np.asarray(values.astype("float32").sum(axis=axis).astype("float16"))
    if name == "sum" and dtype == "unorm8":  # NumPy adds columns one after another, in float32
        return np.asarray(values.sum(axis=axis, dtype="float64").astype("float32"))
    return np.asarray(getattr(values, name)(axis=axis))


def check(name: str, array: np.ndarray, order: int, axis: Any, dtype: str) -> None:
    field = gp.Field(array, order, "unorm8" if dtype == "unorm8" else None)
    result, want = getattr(field, name)(axis=axis).numpy(), expected(name, array, axis, dtype)
    what = f"{name} of {array.shape} {dtype} over {axis}"
    assert (result.dtype, result.shape) == (want.dtype, want.shape), what
    if dtype == "unorm8" and name in ("sum", "mean"):  # 255ths are no whole numbers
        np.testing.assert_allclose(result, want, rtol=1e-6, err_msg=what)
    else:
        np.testing.assert_array_equal(result, want, err_msg=what)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_function_of_every_dtype(device, dtype):
    if dtype == "float64" and not has_double():
        pytest.skip("no double")
    interpreted = device in ("reference", "lowered", "sm_90", "vectorized")
    each = 5 if (device, dtype) == ("reference", "float32") else (2 if interpreted else 4) * len(DTYPES)
    for n, (name, (shape, order, axis)) in enumerate(itertools.product(NAMES, ALL)):
        several = isinstance(axis, tuple) and name.startswith("arg")
        if not several and (n + DTYPES.index(dtype)) % each == 0:  # compilers are slow
            check(name, whole_numbers(shape, dtype), order, axis, dtype)


def test_complex(device):
    x = (image(9, 40) + 1j * image(9, 40)).astype("complex64")
    for axis in (None, 0, 1):
        for name in ("sum", "mean"):
            actual, want = getattr(gp.ComplexField(x), name)(axis=axis).numpy(), getattr(x, name)(axis=axis)
            assert (actual.dtype, actual.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(actual, want, rtol=1e-5)


def test_not_a_number_and_infinity(device):
    x = image(6, 70)
    x[2, 5] = x[2, 66] = x[4, 0] = np.nan
    x[1, 3], x[3, 60] = np.inf, -np.inf
    f = gp.ScalarField(x)
    for name, axis in itertools.product(("min", "max", "argmin", "argmax"), (None, 0, 1)):
        same(getattr(f, name)(axis=axis), np.asarray(getattr(x, name)(axis=axis)), f"{name} {axis}")
    assert math.isnan(float(f.sum())) and np.isinf(f.sum(axis=1).numpy()[[1, 3]]).all()
    y = np.full((5, 40), -0.0, np.float32)
    same_bits(gp.ScalarField(y).sum(axis=1).numpy(), y[:, 0].copy())
    for name in ("min", "max"):
        same(getattr(gp.ScalarField(np.full((3, 50), np.nan, "f4")), name)(axis=1), np.full(3, np.nan, "f4"))


def test_extremes_of_integers(device):
    for dtype in ("int64", "uint64", "int32"):
        info = np.iinfo(dtype)
        x = np.array([[info.max, 0, info.min, 5] * 20], dtype)
        for name in ("min", "max", "argmin", "argmax"):
            same(getattr(gp.ScalarField(x), name)(), np.asarray(getattr(x, name)()))
    same(gp.ScalarField(np.full(1000, 200, "u1")).sum(), np.asarray(np.uint64(200_000)))
    same(gp.ScalarField(np.full(50, 2**31 - 1, "i4")).sum(), np.asarray(np.int64(50 * (2**31 - 1))))


@pytest.mark.parametrize(("shape", "dtype"), [((257, 300), "int32"), ((300, 64), "uint32"), ((512, 128), "int64")])
def test_extremes_of_long_columns_of_integers(device, shape, dtype):
    x = np.random.default_rng(0).integers(0, 1000, shape).astype(dtype)
    with gp.ComputeGraph() as graph:
        graph.probe(gp.ScalarField(x).max(axis=0), "greatest")
        graph.probe(gp.ScalarField(x).min(axis=0), "least")
    assert (graph.read("greatest") == x.max(axis=0)).all() and (graph.read("least") == x.min(axis=0)).all()


def test_first_of_equals(device):
    for shape in ((1,), (100,), (9000,), (300, 70), (20, 30, 40)):
        x = np.zeros(shape, np.float32)
        assert int(gp.ScalarField(x).argmax()) == 0
        for place in sorted(rng.integers(0, x.size, 3))[::-1]:
            x.flat[place] = 1
            assert int(gp.ScalarField(x).argmax()) == place == x.argmax()


def test_pairwise_sums_are_exact_where_running_ones_are_not(device):
    """8192 * 4097 fits a float, but many of its partial sums do not."""
    x = np.full(8192, 4097, np.float32)
    for shape in ((8192,), (64, 128), (2, 4096), (8192, 1), (1, 8192), (16, 16, 32)):
        assert float(gp.ScalarField(x.reshape(shape)).sum()) == 8192 * 4097
    assert (gp.ScalarField(x.reshape(4096, 2)).sum(axis=0).numpy() == 4096 * 4097).all()
    assert float(gp.VectorField(x.reshape(16, 512)).sum(axis=-1)[3]) == 512 * 4097


@pytest.mark.parametrize("shape", [(5_000_003,), (2237, 2239)], ids=str)
def test_millions(device, shape):
    x = rng.random(shape, np.float32) - np.float32(0.25)
    f = gp.ScalarField(x)
    total, mean, where = gp.evaluate(f.sum(), f.mean(), f.argmax())
    exact = math.fsum(x.ravel().tolist())
    bound = math.log2(x.size) * np.finfo("f4").eps * float(np.abs(x, dtype="f8").sum())
    assert abs(float(total) - exact) <= bound / 4
    assert abs(float(mean) * x.size - exact) <= bound
    assert int(where) == x.argmax()


def test_equal_bits_on_every_device_and_in_every_run(device):
    arrays = [image(9001), image(131, 257) - 0.5, image(12, 34, 56), image(70_000)]
    fields = [gp.ScalarField(a) for a in arrays] + [gp.VectorField(image(45, 67, 3))]

    def reductions() -> list[np.ndarray]:
        axes = {0: (None,), 1: (None,), 2: (None, 0, 1), 3: (None, 1)}
        results = [f.sum(axis=a) + f.mean(axis=a) for f in fields for a in axes[len(f.type.array_shape)]]
        return [f.numpy() for f in results]

    once, twice = reductions(), reductions()
    with gp.use_device("reference"):
        fields = [gp.Field(f.numpy(), len(f.tensor_shape)) for f in fields]
        want = reductions()
    for a, b, c in zip(once, twice, want, strict=True):
        same_bits(a, b)
        same_bits(a, c)


def test_empty(device):
    for shape in ((0,), (0, 5), (3, 0), (2, 0, 5)):
        x = np.zeros(shape, np.float32)
        f = gp.ScalarField(x)
        for axis in (None, *range(x.ndim)):
            same(f.sum(axis=axis), np.asarray(x.sum(axis=axis)))
            count = x.size if axis is None else shape[axis]
            same(f.mean(axis=axis), np.full(f.sum(axis=axis).field_shape, np.nan, "f4"))
            for name in ("min", "max", "argmin", "argmax"):
                if count:
                    same(getattr(f, name)(axis=axis), np.asarray(getattr(x, name)(axis=axis)))
                    continue
                with pytest.raises(gp.SemanticError, match=f"{name} of a .* field: there is no value to choose along"):
                    getattr(f, name)(axis=axis)
    same(gp.VectorField(np.zeros((0, 3), "i4")).sum(axis=0), np.zeros(3, "i8"))
    same(gp.VectorField(np.zeros((0, 9), "i4")).sum(axis=0), np.zeros(9, "i8"))
    same(gp.VectorField(np.zeros((0, 3), "f4")).max(axis=1), np.zeros(0, "f4"))


LONG = ((16384, 16384), (512, 512, 512), (100_000_007,), (16384, 3))


@pytest.mark.parametrize(
    ("name", "shape", "order", "axis"),
    [
        *(("sum", shape, 0, axis) for shape in LONG for axis in (None, *range(len(shape)))),
        *(("argmax", shape, 0, axis) for shape, axis in ((LONG[0], 0), (LONG[0], None), (LONG[1], 1))),
        ("mean", (1000, 1000, 3), 1, 0), ("min", (4, 64), 2, 1), ("sum", (2, 16384, 3), 1, 1),
    ],
)  # fmt: skip
def test_texts_are_short(name, shape, order, axis):
    """Whatever is reduced: to compile a text takes as long as it is."""
    grid = len(shape) - order
    with gp.ComputeGraph() as graph:
        field = gp.Sensor(gp.FieldType(shape[:grid], shape[grid:]), lambda: None)
        graph.probe(getattr(field, name)(axis=axis), name)
    kernels = graph.source("opencl").split("__kernel")
    assert max(text.count("\n") for text in kernels) <= (660 if name == "argmax" else 160)


def test_numpy_functions(device):
    x = image(9, 12)
    f = gp.ScalarField(x)
    same(np.max(f, axis=1), np.max(x, axis=1))
    same(np.amin(f), np.asarray(np.amin(x)))
    same(np.argmax(f, 0), np.argmax(x, 0))
    same(np.argmin(f), np.asarray(np.argmin(x)))
    np.testing.assert_allclose(np.sum(f, axis=(0, 1)).numpy(), x.sum(), rtol=1e-6)
    np.testing.assert_allclose(np.mean(f, 1).numpy(), x.mean(1), rtol=1e-6)


# --- in graphs --------------------------------------------------------------------------------------------------------


def test_tensor_reductions_fuse(device):
    v = gp.VectorField(image(20, 30, 3))
    graph, results = fused(lambda: {"grey": (2 * v).mean(axis=-1) * 3, "best": (v * v).argmax(axis=-1)}, kernels=1)
    x = v.numpy()
    same_bits(results["best"], (x * x).argmax(axis=-1))
    assert "left apart" not in graph.explain()


def test_results_feed_later_operators(device):
    x = image(40, 50)

    def build() -> dict[str, gp.Field]:
        f = gp.ScalarField(x)
        low, high = f.min(), f.max()
        return {"stretched": (f - low) / (high - low), "centred": f - f.mean(axis=0).mean()}

    _, results = fused(build)
    same_bits(results["stretched"], (x - x.min()) / (x.max() - x.min()))
    np.testing.assert_allclose(results["centred"], x - x.mean(), atol=1e-6)


def test_reduction_of_an_expression(device):
    x = image(33, 65)
    f = gp.ScalarField(x)
    _, results = fused(lambda: {"energy": (blur(f) * 2).sum(), "rows": (f + 1).max(axis=1)})
    same_bits(results["rows"], (x + 1).max(axis=1))


def test_states_and_pipelines(device):
    x = image(30, 40)
    with gp.ComputeGraph() as graph:
        f = gp.ScalarField(x)
        f.next = f / f.max()
        graph.probe(f.max(), "peak")
    graph.step(2)
    assert float(graph.read("peak")) == 1
    same_bits(gp.pipeline(lambda a: gp.ScalarField(a).max(axis=0))(x), x.max(axis=0))


def test_one_chosen_thread_may_write_what_is_0d(device):
    @gp.operator(outputs=gp.FieldType((), dtype="int32"))
    def corner(f):
        _globalThreads(f)
        with _if((_row == 2) & (_column == 3)):
            _writeTensor(_out0, _readTensor(f))

    x = np.arange(20, dtype="i4").reshape(4, 5)
    assert int(corner(gp.ScalarField(x))) == x[2, 3]


@pytest.mark.parametrize("shape", [(6, 5), (3, 0), (0, 4), (2, 300)])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex64", "complex128"])
def test_any_and_all(dtype, shape):
    """As NumPy's, of nothing too; NaN is true."""
    a = rng.integers(0, 2, shape).astype(dtype)
    if a.size:
        a[0], a[:, -1] = 1, 0
    if dtype == "float32" and a.size:
        a[1, 0] = np.nan
    f = gp.ScalarField(a)
    cases = [(name, axis) for name in ("any", "all") for axis in (None, 0, -1)]
    result = gp.evaluate(*(getattr(f, name)(axis=axis) for name, axis in cases))
    for (name, axis), actual in zip(cases, result, strict=True):
        same(actual, np.asarray(getattr(a, name)(axis=axis)), f"{name} {axis}")
    same(np.any(f, axis=1), np.any(a, axis=1))


def test_until_all_are_equal(device):
    """The fixed point of a flood, which everyone writes so."""
    start = np.zeros(12, "int32")
    start[3], start[7] = 5, 9
    flood = gp.operator(lambda f: _max(_readTensor(f, _column - 1), _readTensor(f), _readTensor(f, _column + 1)))
    before = gp.ScalarField(start)
    last, _ = gp.iterate(
        lambda f, old: (flood(f), f), (before, before - 1), until=lambda f, old: (f == old).all(), times=99
    )
    same(last, np.full(12, 9, "int32"))
