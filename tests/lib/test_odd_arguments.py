"""Rare arguments of NumPy's and SciPy's functions: nothing at all, masks of NumPy's, nested quantiles, arrays of others' dtypes."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage

ROW = np.arange(6.0).reshape(2, 3)


def test_dtypes_of_what_has_none_of_numpys() -> None:
    picture = pytest.importorskip("PIL.Image").fromarray(np.arange(24, dtype=np.uint8).reshape(2, 4, 3))
    assert gp.VectorField(picture).dtype == "uint8"

    class Interface:  # an array by this attribute alone
        __array_interface__ = np.arange(3, dtype=np.int16).__array_interface__

    options: dict[str, tuple[Any, str]] = {
        "memoryview": (memoryview(np.arange(3.0)), "float64"),
        "bytearray": (bytearray(b"abc"), "uint8"),
        "array": (array.array("d", [1, 2]), "float64"),
        "array of bytes": (array.array("b", [1, 2]), "int8"),
        "list of arrays": ([np.arange(3, dtype=np.uint8)] * 2, "uint8"),
        "nested list of numbers": ([[np.float64(1), np.float64(2)]], "float64"),
        "numbers of Python's": ([[1, 2], [3, 4]], "int32"),
        "floats of Python's": ((1.0, 2.0), "float32"),
    }
    for name, (value, dtype) in options.items():
        field = gp.ScalarField(value)
        assert field.dtype == dtype, name
        assert np.array_equal(field.numpy(), np.asarray(value)), name
    values = np.arange(3, dtype=np.int16)
    Interface.__array_interface__ = values.__array_interface__
    assert gp.ScalarField(Interface()).dtype == "int16"


def test_nothing() -> None:
    with gp.use_device("reference"):
        none, weights = gp.ScalarField(np.zeros(0, np.int32)), gp.ScalarField(np.zeros(0))
        assert np.bincount(none, weights=weights).numpy().shape == (0,)
        assert np.array_equal(np.bincount(none, weights=weights, minlength=3).numpy(), np.zeros(3))
        assert np.isnan(ndimage.median(np.zeros(0)))
        assert np.isnan(ndimage.median(np.zeros(0), np.zeros(0, int), [1, 2])).all()


@pytest.mark.parametrize("name", ["minimum", "maximum", "minimum_position", "maximum_position", "extrema"])
@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_nothing_has_no_extreme(name: str, shape: tuple[int, ...]) -> None:
    """As of SciPy, with labels and without."""
    for labels in ((), (np.zeros(shape, int), 1), (np.zeros(shape, int), [1, 2])):
        with pytest.raises(ValueError, match="zero-size array"):
            getattr(scipy.ndimage, name)(np.zeros(shape), *labels)
        with pytest.raises(
            gp.ArgumentError, match=r"a field without points \(0.* float64\) has no least and no greatest value"
        ):
            getattr(ndimage, name)(np.zeros(shape), *labels)


def test_bools_count_in_arithmetic(device: str) -> None:
    """As int32, also where NumPy raises; what NumPy gives as bools stays so."""
    a, b = np.array([True, False, True, True]), np.array([True, True, False, True])
    f, g = gp.ScalarField(a), gp.ScalarField(b)
    x, y = a.astype(np.int32), b.astype(np.int32)
    pairs = {
        "-": (-f, -x), "f - g": (f - g, x - y), "f + g": (f + g, x + y), "sign": (np.sign(f), np.sign(x)),
        "ptp": (np.ptp(f), np.ptp(x)), "ediff1d": (np.ediff1d(f), np.ediff1d(x)), "~": (~f, ~a), "^": (f ^ g, a ^ b),
        "diff": (np.diff(f), np.diff(a)), "max": (f.max(), a.max()),
    }  # fmt: skip
    for name, (result, expected) in pairs.items():
        assert result.dtype == str(expected.dtype), name
        assert np.array_equal(result.numpy(), expected), name


def test_numbers_that_are_none_or_far(device: str) -> None:
    for angle in (np.nan, np.inf):
        with pytest.raises(gp.ArgumentError, match="`angle` is a finite number of degrees, not"):
            ndimage.rotate(np.eye(3), angle)
    result = ndimage.distance_transform_edt(np.eye(3), sampling=1e300)
    assert np.array_equal(result > 0, np.eye(3) > 0)
    with pytest.raises(gp.ArgumentError, match="`bins` is 1 or more, not 0"):
        ndimage.histogram(ROW, 0, 1, 0)


def test_masks_of_numpys_and_numbers(device: str) -> None:
    field, mask = gp.ScalarField(ROW), ROW % 2 == 0
    assert field.sum(where=mask).numpy() == ROW.sum(where=mask)
    assert np.array_equal(field.mean(axis=0, where=[[True], [True]]).numpy(), ROW.mean(axis=0))
    assert field.max(where=mask[0], initial=0).numpy() == ROW.max(where=mask[0], initial=0)
    assert field.sum(where=1).numpy() == ROW.sum() and field.sum(where=0).numpy() == 0


def test_nested_quantiles_and_reductions_of_one_number(device: str) -> None:
    field, shares = gp.ScalarField(ROW), [[0.2], [0.5]]
    np.testing.assert_allclose(np.quantile(field, shares).numpy(), np.quantile(ROW, shares))
    np.testing.assert_allclose(np.quantile(field, shares, axis=1).numpy(), np.quantile(ROW, shares, axis=1))
    total = field.sum()
    for axis in (0, -1):
        assert (
            total.sum(axis=axis).numpy() == total.max(axis=axis).numpy() == np.std(total + 15, axis=axis).numpy() + 15
        )
        assert total.argmax(axis=axis).numpy() == 0
    with pytest.raises(gp.GpuopError, match="axis 1 is out of bounds"):
        total.sum(axis=1)


def test_divmod(device: str) -> None:
    for pair, expected in (
        (divmod(gp.ScalarField(ROW), 3), divmod(ROW, 3)),
        (divmod(7, gp.ScalarField(ROW + 1)), divmod(7, ROW + 1)),
    ):
        for result, right in zip(pair, expected, strict=True):
            assert np.array_equal(result.numpy(), right)


def test_ranges_wider_than_the_greatest_number(device: str) -> None:
    values = np.float16([-32000, 0, 33600])
    counts, edges = np.histogram(gp.ScalarField(values))
    expected = np.histogram(values.astype(np.float32))
    assert np.array_equal(counts.numpy(), expected[0])
    np.testing.assert_allclose(edges.numpy().astype(float), expected[1], rtol=1e-3)
    for dtype, end in (("float32", 3e38), ("float64", 1.7e308)):
        result = gp.linspace(-end, end, 5, dtype=dtype).numpy()
        np.testing.assert_allclose(result / end, [-1, -0.5, 0, 0.5, 1], rtol=1e-6)


def test_dtypes_of_arguments_convert_as_astype_does(device: str) -> None:
    values = np.int32([200, 100, -3, 300])
    field, bounded = gp.ScalarField(values), np.clip(values, 0, 255)
    total = np.add.reduce(field, dtype="uint8")
    assert total.dtype == "uint8" and int(total) == min(int(bounded.sum()), 255)
    joined = np.concatenate([field, field[:1]], dtype="uint8")
    np.testing.assert_array_equal(joined.numpy(), np.append(bounded, bounded[:1]).astype("uint8"))
