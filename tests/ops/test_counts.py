"""Histograms, counts of integers and of distinct values: NumPy's, on every device with the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ops.reduce.bins import known_bins
from gpuop.ops.sort import sets
from tests.codegen.nvrtc import ptx_of
from tests.conformance.compare import all_same, has_double, same
from tests.harness import fused, image, same_bits
from tests.nightly import left_to_nightly

rng = np.random.default_rng(17)
DTYPES = ("float32", "uint8", "int8", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float64", "bool")
# bins and a range: one that starts at 0 and one that does not, halves of integers, more bins than values, and edges
CASES = [
    (10, None), (7, (-20, 50)), (256, (0, 256)), (256, (0, 255)), (33, (0.1, 0.9)), (900, (5, 300)), (1, (3, 3)),
    ([0, 1, 1, 2.5, 60], None), ([-1e40, 0.1, 3, 300], None), ([200, 400], None), ([-300, -200], None),
]  # fmt: skip


@pytest.fixture(autouse=True)
def cheap(request: pytest.FixtureRequest) -> Iterator[None]:
    """On the reference, which compiles nothing, where no device is asked for."""
    with gp.use_device("reference") if "device" not in request.fixturenames else nullcontext():
        yield


def values(dtype: str, *shape: int) -> np.ndarray:
    if dtype[0] == "f":
        return rng.normal(0, 30, shape).astype(dtype)
    return rng.integers(-100 if dtype[0] == "i" else 0, 2 if dtype == "bool" else 100, shape).astype(dtype)


def no_numbers(x: np.ndarray) -> np.ndarray:
    """With values that no bin has, and some that may be edges."""
    x = x.copy()
    if x.dtype.kind == "f":
        x.reshape(-1)[:9] = [np.nan, np.inf, -np.inf, 0.25, 0, -0.0, 50, -20, 300]
    return x


@pytest.mark.filterwarnings("ignore")  # NumPy's: of bools, and of edges that no float32 holds
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_as_numpy(dtype):
    x = values(dtype, 9, 11)
    for bins, ends in CASES:
        arrays = x if (bins, ends) == CASES[0] else no_numbers(x)
        all_same(np.histogram(gp.ScalarField(arrays), bins, ends), np.histogram(arrays, bins, ends))


@pytest.mark.parametrize(
    ("dtype", "bins", "ends", "how"),
    [
        ("float32", 256, (0, 1), "line"), ("float64", 10, (0.1, 0.7), "edges"), ("float32", 77, (0.1, 0.7), "guess"),
        ("int32", 1000, (0, 1000), "line"), ("uint16", 900, (5, 300), "guess"), ("uint8", 256, (0, 255), "own"),
        ("int8", 3, (-9, 9), "table"),
    ],
)  # fmt: skip
def test_both_sides_of_all_edges(device, dtype, bins, ends, how):
    """Values at edges and right before them are in the bins that NumPy has them in, whatever finds these."""
    if dtype == "float64" and not has_double():
        pytest.skip("no double")
    if device != "reference" and dtype not in ("float32", "float64", "int8"):
        left_to_nightly("compilers are slow; the reference runs them all")
    edges = np.histogram_bin_edges(np.empty(0, dtype), bins, ends)
    assert known_bins(edges, gp.FieldType(1, (), dtype), True).how == how
    if dtype[0] == "f":
        x = np.stack([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    else:
        lowest, highest = (np.iinfo(dtype).min, np.iinfo(dtype).max)
        x = np.clip(np.stack([np.ceil(edges), np.ceil(edges) - 1]), lowest, highest).astype(dtype)
    same(np.histogram(gp.ScalarField(x), bins, ends)[0], np.histogram(x, bins, ends)[0])


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_ranges_of_the_values(device, dtype):
    """Edges between the least and the greatest value, which the device finds."""
    if dtype == "int32" and not has_double():
        pytest.skip("no double")
    x = values(dtype, 40, 30)
    all_same(np.histogram(gp.ScalarField(x), 13), np.histogram(x, 13))
    if device == "reference":
        few = gp.ScalarField(np.full(5, 7, dtype))
        all_same(np.histogram(few), np.histogram(few.numpy()))
        f = gp.ScalarField(x)
        all_same(np.histogram(f, 5, (0, f.max())), np.histogram(x, 5, (0, x.max())))


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_that_no_double_is(dtype):
    """The first edge may be above the least value, and the last one below the greatest."""
    ends = np.iinfo(dtype)
    for seed in range(4):
        array = np.random.default_rng(seed).integers(ends.min // 2, ends.max // 2, 50, dtype)
        with gp.use_device("reference"):
            assert int(np.histogram(gp.ScalarField(array), 10)[0].numpy().sum()) == 50


def test_edges_between_neighbouring_floats():
    """Of float64 ends NumPy's edges are float64, also where the values have fewer digits than there are bins."""
    x = np.float32([-10000, np.nextafter(np.float32(-10000), np.float32(0))])
    ends = np.float64(-10000.0008), np.float64(-9999.9973)
    all_same(np.histogram(gp.ScalarField(x), 256, ends), np.histogram(x, 256, ends))


def test_text_of_cuda_compiles():
    f = gp.ScalarField(image(1024, 1024))
    results = [np.histogram(f, 77, (0.1, 0.7), weights=f)[0], np.histogram(f, 77)[0]]
    kernels = [launch.kernel for launch in plan(program([r.node for r in results])).launches]
    counting = [kernel for kernel in kernels if "histogram" in kernel.name]
    assert len(counting) == 2
    for kernel in counting:
        assert "gpuop_" in ptx_of(generate(kernel, target_named("cuda")).text, "compute_90")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("row", [[1, np.inf, 2], [np.nan, 1, 2], [-np.inf, np.inf, 0], [-np.inf]])
def test_values_that_are_not_finite(dtype, row):
    """NumPy raises an error. So does gpuop for values in memory; of others nothing counts, and checked execution reports."""
    x = np.array(row, dtype)
    with pytest.raises(ValueError, match="not finite"):
        np.histogram(x, 4)
    for field in (gp.ScalarField(x), gp.evaluate(gp.ScalarField(x) * 2)):
        with pytest.raises(
            ValueError, match=r"the range of the values, .* is not finite; give finite ends by `range=`"
        ):
            np.histogram(field, 4)
        same(np.histogram(field, 4, (0, 4))[0], np.histogram(field.numpy(), 4, (0, 4))[0])
    assert not np.histogram(gp.ScalarField(x) * 2, 4)[0].numpy().any()
    with (
        gp.use_device("reference", checked=True),
        pytest.raises(gp.SemanticError, match="the range of a histogram is finite"),
    ):
        np.histogram(gp.ScalarField(x) * 2, 4)[0].numpy()


@pytest.mark.parametrize(
    ("dtype", "row"),
    [
        *((dtype, [x, y]) for dtype in ("float16", "float32", "float64") for x, y in ((1, 1), (-1, -1), (1000, 1000))),
        *((dtype, [1e4] * 3) for dtype in ("float16", "float32")),
        *(("float32", [x, x]) for x in (1e10, -1e30)),
        *((dtype, [2**60, 2**60 + step]) for dtype in ("int64", "uint64") for step in (0, 1, 2**12)),
        ("int32", [2**31 - 2, 2**31 - 1]),
    ],
)
@pytest.mark.parametrize("count", [1, 10, 3000])
@pytest.mark.parametrize("neighbours", [False, True])
def test_ranges_too_narrow_for_finite_bins(dtype, row, count, neighbours):
    """Of values in memory, and of a given range, the error is a ValueError where NumPy raises one."""
    x = np.array(row, dtype)
    if neighbours and x.dtype.kind == "f":
        x[-1] = np.nextafter(x[-1], np.array(np.inf, dtype))
    for args in ((count,), (count, (float(x.min()), float(x.max())))):
        try:
            _, edges = np.histogram(x, *args)
        except ValueError:
            text = (
                rf"too many bins for the range: {dtype if x.dtype.kind == 'f' else 'float64'} has .* for {count} bins"
            )
            if len(args) == 2 and x.dtype.kind != "f":
                text = "too many bins for the range"
            with pytest.raises(ValueError, match=text):
                np.histogram(gp.ScalarField(x), *args)
        else:
            np.testing.assert_allclose(np.histogram(gp.ScalarField(x), *args)[1].numpy(), edges, 1e-3)


def test_shapes():
    for shape, order in (((), 0), ((0, 3), 0), ((4, 5, 2), 1), ((3, 2, 2), 2), ((2, 1, 7), 2), ((2, 1, 3, 2, 4), 0)):
        x = image(*shape)
        f = gp.Field(x, order)
        all_same(np.histogram(f, 3, (0, 1)), np.histogram(x, 3, (0, 1)))
        actual, want = np.histogram(f, 3, (0, 1), weights=f)[0], np.histogram(x, 3, (0, 1), weights=x)[0]
        np.testing.assert_allclose(actual.numpy(), want, rtol=1e-6)


def test_edges_that_are_a_field(device):
    x, edges = no_numbers(values("float32", 5, 9)), np.array([-30, 0, 0, 7.5, 50], "f")
    all_same(np.histogram(gp.ScalarField(x), gp.ScalarField(edges)), np.histogram(x, edges))


@pytest.mark.filterwarnings("ignore")
def test_density():
    x = values("int8", 60)
    all_same(np.histogram(gp.ScalarField(x), 7, density=True), np.histogram(x, 7, density=True))
    w = rng.random(60)
    actual = np.histogram(gp.ScalarField(x), 7, (-50, 50), weights=gp.ScalarField(w), density=True)[0]
    np.testing.assert_allclose(actual.numpy(), np.histogram(x, 7, (-50, 50), weights=w, density=True)[0], rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "float16", "bool"])
def test_weights_keep_their_dtype(dtype):
    x, w = image(50), rng.integers(0, 5, 50).astype(dtype)
    same(
        np.histogram(gp.ScalarField(x), 4, (0, 1), weights=gp.ScalarField(w))[0],
        np.histogram(x, 4, (0, 1), weights=w)[0],
    )


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int32", "uint64", "int64"])
def test_sums_of_integers_wrap_around(dtype):
    """Exactly; NumPy adds doubles, which are converted, so that of few bits alone the last ones are what it gives."""
    ends = np.iinfo(dtype)
    x, w = image(50), rng.integers(ends.min, ends.max, 50, dtype, True)
    wrapped = [sum(w[np.floor(x * 4) == n].tolist()) for n in range(4)]
    want = np.array([(n - ends.min) % 2**ends.bits + ends.min for n in wrapped], dtype)
    if ends.bits < 32:
        np.testing.assert_array_equal(want, np.histogram(x, 4, (0, 1), weights=w)[0])
    same(np.histogram(gp.ScalarField(x), 4, (0, 1), weights=gp.ScalarField(w))[0], want)


@pytest.mark.parametrize("count", [40, 3000])
def test_sums_of_weights_have_equal_bits(device, count):
    """Few sums, which a thread keeps, and many; over several chunks, of sizes that no turn of a loop divides."""
    if not has_double():
        pytest.skip("no double")
    x, w = (
        rng.integers(0, count, (1003 if count == 40 else 5) * 7).astype("i4"),
        image((1003 if count == 40 else 5) * 7),
    )
    x[0] = count - 1
    actual = np.bincount(gp.ScalarField(x), gp.ScalarField(w)).numpy()
    np.testing.assert_allclose(actual, np.bincount(x, w), rtol=1e-13)
    with gp.use_device("reference"):
        same_bits(actual, np.bincount(gp.ScalarField(x), gp.ScalarField(w)).numpy())


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool", "uint32"])
def test_counts_of_integers(dtype):
    x = rng.integers(0, 2 if dtype == "bool" else 90, 300).astype(dtype)
    f = gp.ScalarField(x)
    for least in (0, 7, 300):
        same(np.bincount(f, minlength=least), np.bincount(x, minlength=least))
    same(np.bincount(f[:0], minlength=3), np.bincount(x[:0], minlength=3))


def test_counts_without_looking():
    """The range of a dtype bounds the values, so nothing is evaluated, in pipelines too."""
    x = rng.integers(0, 256, 300).astype("u1")
    piped = gp.pipeline(lambda a: np.bincount(gp.ScalarField(a), minlength=256))
    same(piped(x), np.bincount(x, minlength=256))


def test_computed_where_it_is_counted(device):
    x = image(6, 50)

    def build() -> dict[str, Any]:
        return {"counts": np.histogram(gp.ScalarField(x) * 2 + 1, 8, (1, 3))[0]}

    _, results = fused(build, kernels=2)  # the other makes them int64
    same_bits(results["counts"], np.histogram(x * 2 + 1, 8, (1, 3))[0])
    if device == "reference":
        piped = gp.pipeline(lambda a: np.histogram(gp.ScalarField(a), 5)[0].cumsum())
        same(piped(x), np.histogram(x, 5)[0].cumsum())


# --- distinct values --------------------------------------------------------------------------------------------------

ASKED: tuple[dict[str, bool], ...] = (
    {}, {"return_counts": True}, {"return_index": True}, {"return_counts": True, "equal_nan": False},
    {"return_index": True, "return_inverse": True, "return_counts": True}, {"return_inverse": True, "return_counts": True},
)  # fmt: skip


@pytest.mark.parametrize("few", [0, sets.FEW])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int32", "bool", "float16", "int64"])
def test_distinct_values(dtype, few, monkeypatch):
    monkeypatch.setattr(sets, "FEW", few)
    x = rng.integers(0, 2 if dtype == "bool" else 9, (6, 5)).astype(dtype)
    if dtype[0] == "f":
        x[2, 1:4] = np.nan
    for n, options in enumerate(ASKED):
        f = gp.VectorField(x) if n == 1 else gp.ScalarField(x)
        actual, want = np.unique(f, **options), np.unique(x, **options)
        all_same(actual if options else (actual,), want if isinstance(want, tuple) else (want,))
    none = np.zeros((0, 3), dtype)
    all_same(np.unique(gp.ScalarField(none), True, True, True), np.unique(none, True, True, True))


def test_distinct_values_on_devices(device, monkeypatch):
    monkeypatch.setattr(sets, "FEW", 0)
    x = rng.integers(0, 9, 30).astype("u1")
    all_same(np.unique(gp.ScalarField(x), return_counts=True), np.unique(x, return_counts=True))
    far = np.concatenate([rng.integers(-2, 3, 9000), [2**31 - 5]]).astype("i4")  # more than a chunk has
    all_same((np.unique(gp.ScalarField(far)),), (np.unique(far),))


@pytest.mark.parametrize(
    "ends", [("int8", -128, 127), ("int32", -(2**31), 7 - 2**31), ("uint64", 2**64 - 40, 2**64 - 1)]
)
def test_distinct_integers_at_the_ends(ends, monkeypatch):
    monkeypatch.setattr(sets, "FEW", 0)
    dtype, low, high = ends
    x = rng.integers(low, high, (40, 2), dtype, endpoint=True)
    x[0] = low, high
    with gp.use_device("reference"):
        for options in ASKED[1:]:
            all_same(np.unique(gp.ScalarField(x), **options), np.unique(x, **options))


@pytest.mark.parametrize("few", [0, sets.FEW])
def test_distinct_values_of_one_point(few, monkeypatch):
    monkeypatch.setattr(sets, "FEW", few)
    with gp.use_device("reference"):
        for shape in ((1, 3), (1, 1, 3)):
            values, inverse = np.unique(gp.VectorField(np.float32([2, 1, 2]).reshape(shape)), return_inverse=True)
            assert values.numpy().tolist() == [1, 2]
            assert inverse.numpy().ravel().tolist() == [1, 0, 1]
