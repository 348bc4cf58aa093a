"""Values looked up among others in order, and by indices along an axis, with NumPy's values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import pytest

import gpuop as gp
from tests.conformance.compare import same
from tests.harness import image

rng = np.random.default_rng(19)
ROWS = ([0, 1, 2.5, 7], [-1000, 0.1, 3, 1e40], [0, 1, 1, 2], [0.1], [-np.inf, 0, np.inf, np.nan], [])
DTYPES = ("float32", "int8", "uint16", "int64", "float64", "float16", "uint64", "bool")


@pytest.fixture(autouse=True)
def cheap(request: pytest.FixtureRequest) -> Iterator[None]:
    """On the reference, which compiles nothing, where no device is asked for."""
    with gp.use_device("reference") if "device" not in request.fixturenames else nullcontext():
        yield


def values(dtype: str) -> np.ndarray:
    """Numbers of the rows and between them, zeros of both signs, infinities and NaN."""
    x = rng.choice([-3, 0, 1, 2, 3, 7, 100] if dtype[0] in "if" else [0, 1, 2, 3, 7, 100], (3, 13)).astype(dtype)
    return (
        np.where(rng.random(x.shape) < 0.4, rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.1], x.shape), x).astype(dtype)
        if dtype[0] == "f"
        else x
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_as_numpy(dtype):
    x = values(dtype)
    f = gp.ScalarField(x)
    for n, row in enumerate(ROWS):
        side = ("left", "right")[n % 2]
        same(np.searchsorted(row, f, side), np.searchsorted(np.asarray(row, float), x, side))
        if not np.isnan(row).any():
            same(np.digitize(f, row, right=n < 2), np.digitize(x, row, right=n < 2))
    same(np.digitize(f, [3, 2, 0.5]), np.digitize(x, [3, 2, 0.5]))


@pytest.mark.parametrize("side", ["left", "right"])
def test_among_values_of_a_field(device, side):
    row, x = np.sort(np.append(image(20), [np.nan, np.inf]).astype("f")), image(4, 9)
    x[0, :3] = row[3], np.nan, np.inf
    same(gp.ScalarField(row).searchsorted(gp.ScalarField(x), side), np.searchsorted(row, x, side))
    if device == "reference":
        f = gp.ScalarField(row)
        same(np.searchsorted(f, 0.5, side), np.asarray(np.searchsorted(row, np.float32(0.5), side)))
        same(f.searchsorted([0, 1], side), np.searchsorted(row, [0, 1], side))
        same(np.digitize(x, f[:20], side == "left"), np.digitize(x, row[:20], side == "left"))
        integers = np.arange(9, dtype="i8") * 2**40
        same(
            np.searchsorted(gp.ScalarField(integers), gp.ScalarField(x * 2**42), side),
            np.searchsorted(integers, x * 2**42, side),
        )
        mixed = rng.permutation(row)
        order = np.argsort(mixed)
        g = gp.ScalarField(mixed)
        for sorter in (order, gp.ScalarField(order)):
            same(np.searchsorted(g, gp.ScalarField(x), side, sorter), np.searchsorted(row, x, side))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_along_an_axis(device, order):
    x = image(3, 5, 4)
    f = gp.Field(x, order)
    places = np.argsort(x, axis=1)
    if device != "reference":
        same(np.take_along_axis(f, gp.Field(places, order), 1), np.take_along_axis(x, places, 1))
        return
    for axis in (0, 1, -1):
        places = np.argsort(x, axis=axis)
        same(np.take_along_axis(f, places, axis), np.take_along_axis(x, places, axis))
        same(np.take_along_axis(f, np.argsort(f, axis), axis), np.sort(x, axis))
    few = np.array([[[1], [-2]]])
    same(np.take_along_axis(f, few, 1), np.take_along_axis(x, few, 1))
    same(np.take_along_axis(f, np.array([1, -7, 59]), None), np.take_along_axis(x, np.array([1, -7, 59]), None))
    outside = gp.ScalarField(np.array([-99, 99]))
    same(np.take_along_axis(f, outside, None), x.reshape(-1)[[0, -1]])


def test_indices_of_complex_numbers_and_masks():
    z = (image(3, 4) + 1j * image(3, 4)).astype("c8")
    for x in (z, z.real > 0.5):
        at = rng.integers(-4, 4, (3, 2))
        same(np.take_along_axis(gp.VectorField(x), at, 1), np.take_along_axis(x, at, 1))
