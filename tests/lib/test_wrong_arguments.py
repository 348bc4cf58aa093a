"""Arguments of a wrong kind: gpuop's error is one of SciPy's type, and says which argument it is and what it is to be."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage

import gpuop as gp

IMAGE = np.arange(48, dtype="f").reshape(6, 8)
ONES = np.ones((3, 3))
INTEGER, NUMBER, NUMBERS = "is an integer, not", "is a number, not", "is a number, or numbers in rows of one length"
FILTERS = [
    (lambda m, x: m.correlate(x, ONES, mode="constant", cval="a"), f"`cval` {NUMBER} a str"),
    (lambda m, x: m.uniform_filter(x, 3, cval=None), f"`cval` {NUMBER} None"),
    (lambda m, x: m.shift(x, 1, cval="a"), f"`cval` {NUMBER} a str"),
    (lambda m, x: m.correlate(x, [["a"] * 3] * 3), f"`weights` {NUMBERS}"),
    (lambda m, x: m.correlate1d(x, ["a", "b"]), f"`weights` {NUMBERS}"),
    (lambda m, x: m.correlate(x, [[1, 2], [3]]), f"`weights` {NUMBERS}"),
    (lambda m, x: m.correlate(x, ONES, mode=3), "`mode` is one of reflect, "),
    (lambda m, x: m.correlate(x, ONES, origin="a"), f"`origin` {INTEGER} 'a'"),
    (lambda m, x: m.convolve1d(x, [1, 2, 3], origin=0.5), f"`origin` {INTEGER} 0.5"),
    (lambda m, x: m.correlate1d(x, [1, 2, 3], axis="x"), f"`axis` {INTEGER} 'x'"),
    (lambda m, x: m.gaussian_filter(x, "a"), f"`sigma` {NUMBER} 'a'"),
    (lambda m, x: m.gaussian_filter(x, [1, None]), f"`sigma` {NUMBER} None"),
    (lambda m, x: m.gaussian_filter1d(x, "a"), f"`sigma` {NUMBERS}"),
    (lambda m, x: m.gaussian_filter(x, "1.5"), f"`sigma` {NUMBER} '1.5'"),
    (lambda m, x: m.gaussian_filter(x, ["1", 2]), f"`sigma` {NUMBER} '1'"),
    (lambda m, x: m.gaussian_filter1d(x, "1.5"), f"`sigma` {NUMBER} '1.5'"),
    (lambda m, x: m.gaussian_filter1d(x, (1.5,)), f"`sigma` {NUMBER} a tuple"),
    (lambda m, x: m.gaussian_filter1d(x, None), f"`sigma` {NUMBER} None"),
    (lambda m, x: m.gaussian_laplace(x, "1.5"), f"`sigma` {NUMBER} '1.5'"),
    (lambda m, x: m.gaussian_filter(x, 1, truncate="4"), f"`truncate` {NUMBER} '4'"),
    (lambda m, x: m.zoom(x, "2"), f"`zoom` {NUMBER} '2'"),
    (lambda m, x: m.rotate(x, "30"), f"`angle` {NUMBER} '30'"),
    (lambda m, x: m.gaussian_filter(x, 1, order=1.5), f"`order` {INTEGER} 1.5"),
    (lambda m, x: m.gaussian_filter(x, 1, truncate="a"), f"`truncate` {NUMBER} 'a'"),
    (lambda m, x: m.gaussian_filter(x, 1, axes="x"), "axes must be an integer, iterable of integers, or None; 'x'"),
    (lambda m, x: m.uniform_filter1d(x, 2.5), f"`size` {INTEGER} 2.5"),
    (lambda m, x: m.median_filter(x, 2.5), f"`size` {INTEGER} 2.5"),
    (lambda m, x: m.maximum_filter1d(x, 2.5), f"`size` {INTEGER} 2.5"),
    (lambda m, x: m.maximum_filter(x, "a"), f"`size` {INTEGER} 'a'"),
    (lambda m, x: m.rank_filter(x, "a", 3), f"`rank` {INTEGER} 'a'"),
    (lambda m, x: m.percentile_filter(x, "a", 3), f"`percentile` {NUMBER} 'a'"),
    (lambda m, x: m.generic_filter(x, 3, 3), "the function is a callable, not an int"),
    (lambda m, x: m.geometric_transform(x, 3), "the function is a callable, not an int"),
    (lambda m, x: m.zoom(x, "a"), f"`zoom` {NUMBER} 'a'"),
    (lambda m, x: m.zoom(x, -1), "zoom: a factor is 0 or more, not -1"),
    (lambda m, x: m.rotate(x, "a"), f"`angle` {NUMBER} 'a'"),
    (lambda m, x: m.shift(x, "a"), f"`shift` {NUMBER} 'a'"),
    (lambda m, x: m.affine_transform(x, "a"), f"`matrix` {NUMBERS}"),
    (lambda m, x: m.fourier_shift(x, ["a", 1]), f"`shift` {NUMBERS}"),
    (lambda m, x: m.distance_transform_edt(x, "a"), f"`sampling` {NUMBERS}"),
]
LENGTHS = [
    (lambda m, x: m.fft(x, n=-1), "fft: invalid number of data points (-1) specified"),
    (lambda m, x: m.rfft(x, -1), "rfft: invalid number of data points (-1) specified"),
    (lambda m, x: m.dct(x, n=-1), "dct: invalid number of data points (-1) specified"),
    (lambda m, x: m.fft(x, n=0), "fft: invalid number of data points (0) specified"),
    (lambda m, x: m.fft(x, n=2.5), f"`n` {INTEGER} 2.5"),
    (lambda m, x: m.fft2(x, s=[0, 3]), "fft: invalid number of data points (0) specified"),
    (lambda m, x: m.fft2(x, s=[-1]), "when given, axes and shape arguments have to be of the same length"),
    (lambda m, x: m.fftn(x, s=[-2]), "fft: invalid number of data points (-2) specified"),
]
CASES = [(gp.ndimage, scipy.ndimage, *case) for case in FILTERS] + [(gp.fft, scipy.fft, *case) for case in LENGTHS]


@pytest.mark.parametrize("of", [np.asarray, gp.ScalarField])
@pytest.mark.parametrize(("ours", "scipys", "call", "message"), CASES)
def test_errors_are_scipys(of, ours, scipys, call, message):
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whichever SciPy raises
        call(scipys, IMAGE)
    with gp.use_device("reference"), pytest.raises(gp.SemanticError) as caught:
        call(ours, of(IMAGE))
    assert isinstance(caught.value, expected.type)
    assert message in str(caught.value)


def test_a_length_of_minus_1_among_several_is_the_axis_own():
    """As in SciPy, whose -1 stands for the extent of the array."""
    with gp.use_device("reference"):
        result = gp.fft.fftn(gp.ScalarField(IMAGE), s=[-1, 4]).numpy()
    np.testing.assert_allclose(result, scipy.fft.fftn(IMAGE, s=[-1, 4]), rtol=1e-5, atol=1e-4)


def test_dtypes_of_results_that_there_are_not():
    for call in (
        lambda: gp.ndimage.median_filter(IMAGE, 3, output="foo"),
        lambda: gp.ndimage.zoom(IMAGE, 2, output="foo"),
    ):
        with pytest.raises(TypeError, match="`output` is a dtype or an array, not 'foo'"):
            call()


@pytest.mark.parametrize("of", [np.asarray, gp.ScalarField])
@pytest.mark.parametrize("name", ["generic_laplace", "generic_gradient_magnitude"])
def test_functions_of_derivatives_that_compute_with_arrays(of, name):
    function = getattr(gp.ndimage, name)
    for derivative, own in ((scipy.ndimage.sobel, "sobel"), (scipy.ndimage.gaussian_filter1d, "gaussian_filter1d")):
        sentence = f"scipy's {own} computes with NumPy arrays: give one of gpuop, as `gp.ndimage.{own}`"
        with pytest.raises(gp.SemanticError, match=sentence):
            function(of(IMAGE), derivative)
    with pytest.raises(gp.SemanticError, match=r"returns a Field, as `gp.ndimage.sobel`, not None"):
        function(of(IMAGE), lambda *_: None)
    with gp.use_device("reference"):
        actual = np.asarray(function(of(IMAGE), gp.ndimage.sobel))
    np.testing.assert_allclose(actual, getattr(scipy.ndimage, name)(IMAGE, scipy.ndimage.sobel), rtol=1e-6, atol=1e-5)
