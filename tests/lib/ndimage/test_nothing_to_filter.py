"""Filters that have nothing to do write `output=` as those that do something, and as SciPy: integers wrap around."""

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage

FILTERS = {
    "gaussian_filter": lambda m, a, o: m.gaussian_filter(a, 0, output=o),
    "gaussian_filter, no axes": lambda m, a, o: m.gaussian_filter(a, 2, axes=(), output=o),
    "uniform_filter": lambda m, a, o: m.uniform_filter(a, 1, output=o),
    "uniform_filter, no axes": lambda m, a, o: m.uniform_filter(a, 3, axes=(), output=o),
    "maximum_filter": lambda m, a, o: m.maximum_filter(a, 1, output=o),
    "maximum_filter, no axes": lambda m, a, o: m.maximum_filter(a, 3, axes=(), output=o),
    "maximum_filter1d": lambda m, a, o: m.maximum_filter1d(a, 1, output=o),
    "minimum_filter": lambda m, a, o: m.minimum_filter(a, (1, 1), output=o),
    "median_filter": lambda m, a, o: m.median_filter(a, 1, output=o),
    "rank_filter": lambda m, a, o: m.rank_filter(a, 0, 1, output=o),
    "percentile_filter": lambda m, a, o: m.percentile_filter(a, 50, 1, output=o),
    "correlate": lambda m, a, o: m.correlate(a, [[1]], output=o),
    "correlate1d": lambda m, a, o: m.correlate1d(a, [1], output=o),
    "grey_erosion": lambda m, a, o: m.grey_erosion(a, size=1, output=o),
    "grey_dilation": lambda m, a, o: m.grey_dilation(a, size=1, output=o),
    "grey_opening": lambda m, a, o: m.grey_opening(a, size=1, output=o),
    "grey_closing": lambda m, a, o: m.grey_closing(a, size=1, output=o),
    "gaussian_laplace": lambda m, a, o: m.gaussian_laplace(a, 2, axes=(), output=o),
    "laplace": lambda m, a, o: m.laplace(a, axes=(), output=o),
    "spline_filter1d": lambda m, a, o: m.spline_filter1d(a, 1, output=o),
    "zoom": lambda m, a, o: m.zoom(a, 1, order=1, output=o),
    "shift": lambda m, a, o: m.shift(a, 0, order=1, output=o),
}
INPUTS = {
    "int32": np.array([[-5, 300, 70000, -70000], [1, 2, 3, 4]], "i4"),
    "float64": np.array([[-5.7, 300.9, 70000.2, -1.2], [1.5, 2.5, 3.5, 0.5]]),
    "uint16": np.array([[5, 300, 65000, 40000], [1, 2, 3, 4]], "u2"),
    "bool": np.array([[1, 0, 1, 1], [0, 0, 1, 1]], bool),
    "empty": np.zeros((0, 4), "f4"),
}
DTYPES = ("uint8", "int8", "int16", "uint16", "uint32", "int64", "float32", "float64")


@pytest.mark.parametrize("value", INPUTS)
@pytest.mark.parametrize("name", FILTERS)
def test_output_is_written_as_scipy_does(name, value):
    call, array = FILTERS[name], INPUTS[value]
    if value == "empty" and name in ("shift", "minimum_filter"):
        pytest.skip("SciPy refuses it")
    for dtype in DTYPES:
        result, expected = call(ndimage, array, dtype), call(scipy.ndimage, array, dtype)
        assert result.dtype == expected.dtype == dtype
        np.testing.assert_array_equal(result, expected, err_msg=dtype)
        out = np.full(array.shape, 7, dtype)
        assert call(ndimage, array, out) is out
        np.testing.assert_array_equal(out, expected, err_msg=dtype)
        if name != "shift" and array.size:
            np.testing.assert_array_equal(call(ndimage, gp.ScalarField(array), dtype).numpy(), expected, err_msg=dtype)


@pytest.mark.parametrize("name", FILTERS)
def test_arrays_of_other_shapes_are_refused(name):
    for shape in ((4, 2), (2, 1), (8,)):
        with pytest.raises((ValueError, RuntimeError)):
            FILTERS[name](ndimage, INPUTS["int32"], np.zeros(shape, "f4"))
