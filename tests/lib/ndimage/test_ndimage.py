"""gpuop.ndimage beside scipy.ndimage: values, dtypes, modes, origins, windows, wrong arguments, and what fuses."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage

from .__main__ import run

IMAGE = np.random.default_rng(3).random((9, 14)) * 200
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 1]], bool)
DOTS = np.random.default_rng(4).random((11, 13)) > 0.6
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("correlate1d", {"weights": [1, 2.5, -1, 3], "axis": 0, "origin": 1, "mode": "mirror"}),
    ("convolve1d", {"weights": [1, 2.5, -1, 3], "origin": -1, "mode": "constant", "cval": 2.5}),
    ("correlate", {"weights": [[1, 0.5], [2, -1], [0, 3]], "mode": "wrap", "origin": (1, 0)}),
    ("convolve", {"weights": [[1, 0.5], [2, -1], [0, 3]], "mode": "nearest"}),
    ("correlate1d", {"weights": [1, 2j, -1 + 1j], "axis": 0}),
    ("convolve", {"weights": [[1, 2j], [1j, 0]], "mode": "constant"}),
    ("gaussian_filter1d", {"sigma": 1.3, "order": 1}),
    ("gaussian_filter", {"sigma": (1.5, 0.7), "mode": ("reflect", "wrap"), "order": (0, 2)}),
    ("gaussian_filter", {"sigma": 20, "truncate": 7, "axes": 1}),
    ("uniform_filter", {"size": (3, 4), "origin": (0, 1)}),
    ("uniform_filter1d", {"size": 300, "mode": "mirror"}),
    ("sobel", {"axis": 0, "mode": ("constant", "nearest")}),
    ("prewitt", {"mode": "wrap"}),
    ("laplace", {"mode": "grid-mirror"}),
    ("gaussian_laplace", {"sigma": 1.1}),
    ("gaussian_gradient_magnitude", {"sigma": 1.1}),
    ("minimum_filter", {"size": 4, "mode": "mirror"}),
    ("maximum_filter", {"footprint": CROSS, "origin": (0, -1)}),
    ("maximum_filter1d", {"size": 200, "mode": "constant", "cval": 3.5}),
    ("median_filter", {"size": (3, 2)}),
    ("rank_filter", {"rank": -3, "footprint": CROSS}),
    ("percentile_filter", {"percentile": 30, "size": 3, "mode": "constant", "cval": 90}),
    ("grey_erosion", {"structure": [[-1, -2.5], [0, -4]]}),
    ("grey_dilation", {"structure": np.ones((2, 3)), "footprint": [[1, 0, 1], [1, 1, 1]]}),
    ("grey_opening", {"footprint": CROSS}),
    ("grey_closing", {"size": 2, "mode": "wrap"}),
    ("morphological_gradient", {"size": 3}),
    ("morphological_laplace", {"size": (3, 2)}),
    ("white_tophat", {"footprint": CROSS}),
    ("black_tophat", {"size": 3}),
]
BINARY: list[tuple[str, dict[str, Any]]] = [
    ("binary_erosion", {"structure": CROSS, "border_value": 1}),
    ("binary_dilation", {"structure": CROSS, "iterations": 2, "mask": np.roll(DOTS, 3, 1), "origin": (1, 0)}),
    ("binary_erosion", {"iterations": 0}),
    ("binary_opening", {"structure": np.ones((2, 2))}),
    ("binary_closing", {"iterations": 2}),
    ("binary_hit_or_miss", {"structure1": CROSS, "origin1": 1}),
    ("binary_propagation", {"mask": np.roll(DOTS, 1, 0) | DOTS}),
    ("binary_fill_holes", {}),
]


def names(calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [f"{n}-{name}" for n, (name, _) in enumerate(calls)]


def close(result: Any, expected: Any) -> None:
    """Equal for integers and float64, which are computed as SciPy does; near for float32, whose sums are float32's."""
    assert result.dtype == expected.dtype
    exact = expected.dtype in (np.float64, np.complex128, np.bool_) or expected.dtype.kind in "iu"
    np.testing.assert_allclose(result, expected, rtol=1e-13 if exact else 3e-5, atol=1e-9 if exact else 2e-3)


@pytest.mark.parametrize(("name", "options"), CALLS, ids=names(CALLS))
def test_as_scipy(name, options):
    of_complex = np.iscomplexobj(options.get("weights", 0))
    dtypes = ("float32", "float64", "complex128", "int32") if of_complex else ("float32", "float64", "uint8", "int16")
    with gp.use_device("reference"):
        for dtype in dtypes:
            close(
                getattr(ndimage, name)(IMAGE.astype(dtype), **options),
                getattr(scipy.ndimage, name)(IMAGE.astype(dtype), **options),
            )


OF_COMPLEX = ("correlate", "convolve", "gaussian", "uniform", "sobel", "prewitt", "laplace")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(("name", "options"), [c for c in CALLS if c[0].startswith(OF_COMPLEX) and "magn" not in c[0]])
def test_complex_images(name, options, dtype):
    image = (IMAGE + 1j * IMAGE[::-1]).astype(dtype)
    with gp.use_device("reference"):
        for output in (None, "complex128")[
            : 1 if np.iscomplexobj(options.get("weights", 0)) and dtype == "complex64" else 2
        ]:
            found = getattr(ndimage, name)(image, output=output, **options)
            close(found, getattr(scipy.ndimage, name)(image, output=output and np.complex128, **options))


@pytest.mark.parametrize("name", ["correlate", "convolve1d", "gaussian_filter", "uniform_filter", "sobel", "laplace",
    "minimum_filter", "rank_filter", "grey_erosion", "generic_filter", "generic_filter1d"])  # fmt: skip
def test_no_complex_value_stands_outside_of_a_real_image(name):
    window = {"correlate": ([[1, 1j]],), "convolve1d": ([1, 2j],), "sobel": (), "laplace": (), "rank_filter": (1, 3)}
    args = {"generic_filter": (np.mean, 3), "generic_filter1d": (lambda *_: None, 3)}.get(name, window.get(name, (3,)))
    for module in (scipy.ndimage, ndimage):
        with pytest.raises((TypeError, ValueError), match="real"), gp.use_device("reference"):
            getattr(module, name)(IMAGE, *args, mode="constant", cval=1j)


def test_every_call_says_that_the_result_is_complex():
    with gp.use_device("reference"):
        for output, kind in (("float32", "complex64"), ("float64", "complex128"), ("float32", "complex64")) * 2:
            for module in (scipy.ndimage, ndimage):
                with pytest.warns(UserWarning, match="promoting specified output dtype to complex"):
                    result = module.correlate1d(IMAGE.astype("f"), [1, 1j], output=np.dtype(output).type)
                assert result.dtype == kind


@pytest.mark.parametrize(("name", "options"), BINARY, ids=names(BINARY))
def test_truth_values(name, options):
    with gp.use_device("reference"):
        for image in (DOTS, DOTS * 2.5):
            close(getattr(ndimage, name)(image, **options), getattr(scipy.ndimage, name)(image, **options))


@pytest.mark.parametrize("shape", [(7,), (4, 5, 6), (3, 2, 4, 3), (1, 1), ()])
def test_numbers_of_axes(shape):
    volume = np.random.default_rng(5).random(shape).astype("f")
    with gp.use_device("reference"):
        close(ndimage.gaussian_filter(volume, 1.2), scipy.ndimage.gaussian_filter(volume, 1.2))
        close(ndimage.maximum_filter(volume, 3), scipy.ndimage.maximum_filter(volume, 3))
        if shape:
            close(ndimage.sobel(volume, -1), scipy.ndimage.sobel(volume, -1))


def test_on_devices(device):
    edges = ndimage.sobel(ndimage.gaussian_filter(gp.ScalarField(IMAGE.astype("f")), 1.4), 0)
    smooth = scipy.ndimage.gaussian_filter(IMAGE.astype("f"), 1.4)
    close(edges.numpy(), scipy.ndimage.sobel(smooth, 0))
    close(ndimage.median_filter(IMAGE.astype("uint8"), 3), scipy.ndimage.median_filter(IMAGE.astype("uint8"), 3))
    close(ndimage.binary_fill_holes(DOTS), scipy.ndimage.binary_fill_holes(DOTS))


def test_elements_of_tensors_are_filtered_by_themselves():
    image = np.random.default_rng(6).random((6, 7, 3)).astype("f")
    with gp.use_device("reference"):
        result = ndimage.gaussian_filter(gp.VectorField(image), 1.0).numpy()
        close(result, scipy.ndimage.gaussian_filter(image, 1.0, axes=(0, 1)))
        close(ndimage.gaussian_filter(image, 1.0), scipy.ndimage.gaussian_filter(image, 1.0))  # of arrays all axes


def test_filters_fuse_with_operators():
    best = gp.devices()[0].name
    if best == "reference":
        pytest.skip("no driver for which schedules are chosen")
    with gp.use_device(best):
        blurred = gp.pipeline(lambda a: ndimage.gaussian_filter(gp.ScalarField(a) * 2, 1.0) * 0.5)
        assert "1 kernel for 4 operators" in blurred.explain(np.zeros((1024, 1024), "f"))


def test_results_in_arrays():
    into = np.zeros(IMAGE.shape, "int32")
    with gp.use_device("reference"):
        assert ndimage.uniform_filter(IMAGE, 3, output=into) is into
        assert np.array_equal(into, scipy.ndimage.uniform_filter(IMAGE, 3, output="int32"))
        assert ndimage.sobel(gp.ScalarField(IMAGE), output="float64").dtype == "float64"
        with pytest.raises(TypeError, match="of a Field `output=` is a dtype"):
            ndimage.sobel(gp.ScalarField(IMAGE), output=into)


def test_sums_of_truth_values():
    with gp.use_device("reference"):
        close(ndimage.laplace(DOTS), scipy.ndimage.laplace(DOTS))
        close(ndimage.gaussian_laplace(DOTS, 1.0), scipy.ndimage.gaussian_laplace(DOTS, 1.0))
        for output in (None, "uint8", "int8", "int32", "float32"):
            for mode, cval in (("reflect", 0), ("constant", 1), ("constant", 0.5), ("wrap", 0)):
                options = {"output": output and np.dtype(output).type, "mode": mode, "cval": cval}
                weights = CROSS * np.array([[1], [-2], [3]])
                close(ndimage.correlate(DOTS, weights, **options), scipy.ndimage.correlate(DOTS, weights, **options))


def test_windows_of_integers(device):
    image = (IMAGE * 1000).astype("int32")
    close(ndimage.rank_filter(image, 20, (6, 6)), scipy.ndimage.rank_filter(image, 20, (6, 6)))


def test_windows_of_many_points():
    image = IMAGE.astype("uint8")
    with gp.use_device("reference"):
        close(ndimage.median_filter(image, (7, 10)), scipy.ndimage.median_filter(image, (7, 10)))


@pytest.mark.parametrize("axes", [(1, 0), (0, 1)])
@pytest.mark.parametrize("name", ["correlate", "maximum_filter", "percentile_filter", "generic_filter"])
def test_windows_of_all_axes_are_in_the_order_of_the_grid(name, axes):
    """As by SciPy, whatever the order of `axes`: no window is turned, no origin changes its axis."""
    a, window = np.arange(42.0).reshape(6, 7) ** 2 % 11, np.arange(15).reshape(3, 5) % 4
    options = {"weights": window} if name == "correlate" else {"footprint": window > 0}
    options |= {"percentile": 30} if name.startswith("percentile") else {}
    options |= {"function": np.max} if name.startswith("generic") else {}
    expected = getattr(scipy.ndimage, name)(a, **options, origin=(1, -2), axes=axes)
    np.testing.assert_array_equal(getattr(ndimage, name)(a, **options, origin=(1, -2), axes=axes), expected)


@pytest.mark.parametrize("weights", [[[3.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
def test_separable_weights_of_one_line(weights):
    a = np.arange(12.0).reshape(3, 4)
    result = ndimage.correlate(a, weights, method="separable")
    np.testing.assert_array_equal(result, scipy.ndimage.correlate(a, weights))


def test_signatures():
    """All that SciPy's functions take is taken, by the same names, in the same order."""
    for name in ndimage.__all__:
        ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (ndimage, scipy.ndimage))
        variable = [n for n, p in theirs.items() if p.kind is p.VAR_KEYWORD]
        assert list(ours)[: len(theirs) - len(variable)] == [n for n in theirs if n not in variable], name
        assert all(variable or ours[n].default == p.default for n, p in theirs.items()), name


@pytest.mark.parametrize("output", [">f4", np.dtype(">f8"), "<f4"])
def test_results_of_either_byte_order(output: Any) -> None:
    a = np.random.default_rng(3).random((5, 6), np.float32)
    for _ in range(2):  # the second call is a known one
        mine, theirs = ndimage.uniform_filter(a, 3, output=output), scipy.ndimage.uniform_filter(a, 3, output=output)
        assert mine.dtype.str == theirs.dtype.str
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    if output != "<f4":
        with pytest.raises(
            gp.UnsupportedError, match="has the other byte order, which no field has; give `output='float"
        ):
            ndimage.uniform_filter(gp.ScalarField(a), 3, output=output)
        with pytest.raises(gp.UnsupportedError, match="label: a result of '>i4' has the other byte order"):
            ndimage.label(a > 0.5, output=">i4")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda a: ndimage.sobel(a, mode="clamp"),
            "not 'clamp'; that is a border of kernels, called 'nearest' here",
        ),
        (
            lambda a: gp.ndimage.watershed(a),
            "gpuop.ndimage has no `watershed`; `scipy.ndimage.watershed`",
        ),
        (lambda a: ndimage.sobel(a, axis=2), "axis 2 is out of range: the field has 2 axes"),
        (lambda a: ndimage.correlate1d(a, []), "no filter weights given"),
        (lambda a: ndimage.correlate1d(a, [1, 2], origin=1), "Invalid origin 1: of 2 weights it lies in -1 … 0"),
        (
            lambda a: ndimage.gaussian_filter(a, (1, 2, 3)),
            "`sigma`: sequence argument must have length equal to input rank",
        ),
        (lambda a: ndimage.gaussian_filter(a, 1, axes=(0, 0)), "axes must be unique"),
        (lambda a: ndimage.median_filter(a), "no footprint provided"),
        (lambda a: ndimage.rank_filter(a, 9, size=3), "rank 9 is not within filter footprint size 9"),
        (lambda a: ndimage.maximum_filter(a, footprint=[[0, 0]]), "All-zero footprint is not supported"),
        (
            lambda a: ndimage.uniform_filter(a, 3, method="fast"),
            "`method` is one of 'direct', 'nested', or None for what suits the window, not 'fast'",
        ),
        (
            lambda a: ndimage.gaussian_filter(a, 2, order=(0, 1), method="recursive"),
            "`method='recursive'` takes `order=0` and a standard deviation above 0",
        ),
        (
            lambda a: ndimage.convolve(a, [[1, 2], [3, 4]], method="separable"),
            "`method='separable'` takes weights that are a product of one row of weights for each axis",
        ),
        (
            lambda a: ndimage.median_filter(a, 9, method="network"),
            "`method='network'` takes windows of up to 64 points of float64, and this one has 81",
        ),
        (
            lambda a: ndimage.grey_erosion(a, structure=[[1]], method="nested"),
            "`method='nested'` takes windows that are boxes, without a structure",
        ),
        (lambda a: ndimage.binary_erosion(a, structure=[1]), "structure and input must have same dimensionality"),
    ],
)
def test_messages(call, message):
    with gp.use_device("reference"), pytest.raises(gp.SemanticError, match=message) as caught:
        call(IMAGE)
    assert isinstance(caught.value, (ValueError, RuntimeError, TypeError, AttributeError))
    assert "test_ndimage.py" in str(caught.value)


@pytest.mark.timeout(300)  # SciPy's tests are collected in another process
def test_some_of_scipys_own_tests():
    """A sample of them; `python -m tests.lib.ndimage` runs all."""
    few = "test_grey_erosion0 or test_grey_dilation0 or test_black_tophat0 and not 03"
    passed, failed, text = run("-k", few, files=("test_morphology",))
    assert (failed, passed > 5) == (0, True), text[-2000:]


@pytest.mark.parametrize("name", ["maximum_filter", "binary_erosion", "grey_dilation"])
def test_large_footprints(name):
    """Of more numbers than constants have, and two of them."""
    where = np.random.default_rng(3).random((65, 64)) > 0.5
    image = np.random.default_rng(4).random((70, 75), np.float32)
    options = {"grey_dilation": {"footprint": where, "structure": where * 0.5}, "binary_erosion": {"structure": where}}
    values = options.get(name, {"footprint": where})
    with gp.use_device("reference"):
        result = getattr(ndimage, name)(image, **values)
    np.testing.assert_allclose(result, getattr(scipy.ndimage, name)(image, **values), rtol=1e-6)


@pytest.mark.parametrize(
    "as_given", [np.ndarray.tolist, lambda w: w.astype(object), lambda w: np.ma.masked_array(w, w > 0)]
)
def test_many_weights_as_lists_and_objects(as_given):
    weights = np.random.default_rng(5).integers(-3, 4, (65, 64))
    image = np.random.default_rng(6).integers(0, 255, (30, 35)).astype("u1")
    with gp.use_device("reference"):
        result = ndimage.convolve(image, as_given(weights), output="i4", method="fft")
    np.testing.assert_array_equal(result, scipy.ndimage.convolve(image, weights, output="i4"))


@pytest.mark.parametrize("columns", [33, 64, 130, 173, 310])
def test_bit_words_of_rows_of_any_length(device, columns):
    """The last word of a row has fewer points, or as many; longer rows have been miscompiled, and ended a compiler."""
    mask = np.random.default_rng(columns).random((19, columns)) > 0.6
    seeds = mask & (np.arange(columns) % 7 == 0)
    assert np.array_equal(ndimage.binary_fill_holes(mask), scipy.ndimage.binary_fill_holes(mask))
    assert np.array_equal(
        ndimage.binary_propagation(seeds, mask=mask), scipy.ndimage.binary_propagation(seeds, mask=mask)
    )
    assert np.array_equal(ndimage.label(mask)[0], scipy.ndimage.label(mask)[0])
