"""Cotangents of fields that are read at places that data decide on: sums in integers, in any order the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.gradients.differences import check


def random(*shape: int):
    return np.random.default_rng(sum(shape) + 5).random(shape) + 0.3


@gp.operator
def looked_up(x, table):
    value = _readTensor(x) * 4.0
    low = _floor(value)
    n = _convert_int(low)
    return _readTensor(table, n) * (1 - value + low) + _readTensor(table, n + 1, border="zero") * (value - low)


def looked_up_array(x, table):
    low = np.floor(x * 4).astype(int)
    share = x * 4 - low
    padded = np.append(table, 0.0)
    return padded[np.minimum(low, len(table) - 1)] * (1 - share) + padded[np.minimum(low + 1, len(table))] * share


def test_table_between_its_points(device):
    """By the table it is a scatter, by the place a slope."""
    check(looked_up, looked_up_array, random(9) * 0.9, random(5))


@gp.operator
def at_one_place(x, table):
    return _readTensor(table, _convert_int(_readTensor(x))) * 1.99


@pytest.mark.daily
@pytest.mark.parametrize("threads", [1, 2, 127, 128])
def test_all_shares_at_one_place_fit(threads):
    """As large as the greatest ones, each: their sum has no more bits than the integers that they are added in."""
    x, table = gp.ScalarField(np.zeros(threads)), gp.ScalarField(np.ones(3))
    with gp.use_device("reference"):
        result = gp.grad(lambda t: at_one_place(x, t).sum())(table).numpy()
    np.testing.assert_allclose(result, [threads * 1.99, 0, 0], rtol=1e-12)


@gp.operator
def conditional(x, table):
    total, value = _var(_convert_double(0)), _readTensor(x)
    with _if(value > 0.7):
        read = _readTensor(table, _convert_int(value * 5), border="wrap")
        total @= total + read * read * value
    return total


def test_read_in_a_branch(device):
    def expected(x, table):
        read = table[(x * 5).astype(int) % len(table)]
        return np.where(x > 0.7, read * read * x, 0.0)

    check(conditional, expected, random(9), random(4))


@gp.operator
def warped(image, across, down):
    return _sampleTensor(image, offset=(_readTensor(down), _readTensor(across)))


def warped_array(image, across, down):
    rows, columns = np.indices(image.shape)
    y, x = np.clip(rows + down, 0, image.shape[0] - 1), np.clip(columns + across, 0, image.shape[1] - 1)
    r, c = np.minimum(y.astype(int), image.shape[0] - 2), np.minimum(x.astype(int), image.shape[1] - 2)
    s, t = y - r, x - c
    upper, lower = (image[k, c] * (1 - t) + image[k, c + 1] * t for k in (r, r + 1))
    return upper * (1 - s) + lower * s


def test_warp(device):
    check(warped, warped_array, random(5, 6), random(5, 6) * 0.7, random(5, 6) * 0.7)


def test_registration_from_displacement_zero(device):
    """At whole coordinates the slope is that to the next point; at the clamped end it is 0."""
    image, zeros, ones = random(5, 6), gp.ScalarField(np.zeros((5, 6))), gp.ScalarField(np.ones((5, 6)))
    _, pull = gp.vjp(warped, gp.ScalarField(image), zeros, zeros)
    _, across, down = (field.numpy() for field in pull(ones))
    np.testing.assert_allclose(across[:, :-1], image[:, 1:] - image[:, :-1], atol=1e-15)
    np.testing.assert_allclose(down[:-1], image[1:] - image[:-1], atol=1e-15)
    assert not across[:, -1].any() and not down[-1].any()


@pytest.mark.parametrize(
    "function",
    [
        lambda u: np.take(u, np.array([0, 2, 2, 1]), axis=0),
        lambda u: np.tile(u, (2, 2)),
        lambda u: (u * u).reshape(2, 6),
        lambda u: (u * u).ravel()[::2],
    ],
)
def test_layouts(device, function):
    check(function, function, random(3, 4))


def test_more_axes_than_kernels_have(device):
    check(lambda u: u * u[::-1], lambda u: u * u[::-1], random(2, 3, 2, 2))


def test_the_same_bits_on_all_devices():
    table, places = random(7).astype(np.float32), (np.arange(1000) * 7919 % 13).astype(np.float32) / 12
    results = set()
    for name in ("opencl:0", "opencl:1", "reference", "reference:sm_90"):
        with gp.use_device(name):
            _, pull = gp.vjp(lambda t: looked_up(gp.ScalarField(places), t), gp.ScalarField(table))
            results.add(pull(gp.ScalarField(places))[0].numpy().tobytes())
    assert len(results) == 1


def test_share_that_is_no_number():
    """It does not vanish in the integers: all sums are NaN."""
    _, pull = gp.vjp(lambda t: looked_up(gp.ScalarField(random(4)), t), gp.ScalarField(random(5)))
    assert np.isnan(pull(gp.ScalarField(np.array([1.0, np.nan, 1.0, 1.0])))[0].numpy()).all()
    assert np.isnan(pull(gp.ScalarField(np.array([1.0, np.inf, 1.0, 1.0])))[0].numpy()).all()
    assert not pull(gp.ScalarField(np.zeros(4)))[0].numpy().any()
