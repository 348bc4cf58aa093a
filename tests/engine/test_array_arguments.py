"""Functions of fields that take arrays, by one decorator: arrays, numbers and lists give arrays, a field among them a field."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from tests.harness import same_bits

A = np.random.default_rng(0).random((6, 7))


def test_numbers_and_lists_are_arrays(device):
    for one, two in ((2, 3), (2.0, 3.0), (2, 3.0), ([1, 2, 3], [4, 5, 6]), (A, 2), (np.int64(2), A)):
        result = gp.linalg.dot(one, two)
        assert type(result) is np.ndarray
        np.testing.assert_allclose(result, np.dot(one, two), rtol=1e-6)
    assert type(gp.ndimage.gaussian_filter(5, 1)) is np.ndarray


def test_a_field_beside_arrays_gives_a_field(device):
    mask = A > 0.3
    result = gp.ndimage.binary_erosion(A > 0.1, mask=gp.Field(mask))
    assert isinstance(result, gp.Field)
    same_bits(result.numpy(), scipy.ndimage.binary_erosion(A > 0.1, mask=mask))
    places = np.mgrid[:6, :7] * 0.7
    expected = scipy.ndimage.map_coordinates(A, places, order=1)
    for image, coordinates in ((A, [gp.Field(p) for p in places]), (A, gp.Field(places)), (gp.Field(A), places)):
        lazy = gp.ndimage.map_coordinates(image, coordinates, order=1)
        assert isinstance(lazy, gp.Field)
        np.testing.assert_allclose(lazy.numpy(), expected, rtol=1e-12)
    assert isinstance(gp.linalg.matmul(A, gp.Field(A.T)), gp.Field)


def test_probabilities_are_arrays_or_fields(device):
    key, p = gp.random.key(3), np.array([0.1, 0.0, 0.3, 0.6])
    values = np.array([10.0, 20.0, 30.0, 40.0])
    places = gp.random.choice(key, 4, (50,), p=p).numpy()
    assert set(places) == {0, 2, 3}
    for _ in range(2):
        same_bits(gp.random.choice(key, values, (50,), p=p), values[places])
        same_bits(gp.random.choice(key, values, (50,), p=[*p]), values[places])
    same_bits(gp.random.choice(key, values, (50,), p=gp.Field(p)).numpy(), values[places])
    other = p[::-1].copy()
    same_bits(gp.random.choice(key, values, (50,), p=other), values[gp.random.choice(key, 4, (50,), p=other).numpy()])


def test_none_where_it_is_no_default():
    for call in (lambda: gp.linalg.matmul(A, None), lambda: gp.ndimage.gaussian_filter(None, 1)):
        with pytest.raises(gp.SemanticError, match="fields are made of numbers, not of Python objects"):
            call()


@pytest.mark.parametrize("name", ["ndimage.gaussian_filter", "ndimage.binary_erosion", "linalg.solve", "fft.dct"])
def test_signatures_are_those_of_the_functions(name):
    room, function = name.split(".")
    called = getattr(getattr(gp, room), function)
    parameters = inspect.signature(called).parameters
    assert not {"args", "kwargs"} & {*parameters}
    assert called.__name__ == function and called.__doc__
    with pytest.raises(
        TypeError, match=f"{function}: .*[uU]nexpected keyword argument 'nothing'|{function}: .*'nothing'"
    ):
        called(A, nothing=1)
