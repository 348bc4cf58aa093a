"""Second derivatives of reads at places that data decide on: sums in integers have the derivatives of sums of numbers."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.gradients.differences import slope

Field = gp.ScalarField
PLACES = np.array([0, 0, 3, 2], np.int32)


def random(*shape: int):
    return np.random.default_rng(sum(shape) + 5).random(shape) + 0.3


def check(loss, gradients, *args):
    """Compare the Hessian times a direction, in both modes, with differences of NumPy's gradients.

    Args:
        gradients: those of the loss by each argument, a tuple, as a function of arrays.
    """
    fields, numbers = [Field(arg) for arg in args], tuple(range(len(args)))
    directions = [random(*arg.shape) - 0.7 for arg in args]
    along = [Field(direction) for direction in directions]

    def steepness(*values):
        pairs = zip(gp.grad(loss, numbers)(*values), along, strict=True)
        return sum((gradient * direction).sum() for gradient, direction in pairs)

    forward = gp.hvp(loss, fields, along)
    forward = forward if isinstance(forward, tuple) else (forward,)
    backward = gp.grad(steepness, numbers)(*fields)
    for n, results in enumerate(zip(forward, backward, strict=True)):
        expected = slope(gradients, args, directions, n)
        for result in results:
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6, atol=1e-7)


@gp.operator
def looked_up(table, places):
    return _readTensor(table, _readTensor(places)) ** 3


@gp.operator
def folded(table):
    return _readTensor(table, _column % 3) ** 3


def cubes(places):
    """The gradient of the sum of cubes of a table at places."""

    def gradient(table):
        result = np.zeros_like(table)
        np.add.at(result, places, 3 * table[places] ** 2)
        return (result,)

    return gradient


@pytest.mark.parametrize(
    ("function", "places"),
    [
        (lambda f: looked_up(f, Field(PLACES)), PLACES),
        (folded, np.arange(4) % 3),
        (lambda f: np.take(f, PLACES) ** 3, PLACES),
        (lambda f: gp.ndimage.map_coordinates(f, np.array([[0.0, 3.0]]), order=1) ** 3, np.array([0, 3])),
    ],
)
def test_gathers(device, function, places):
    check(lambda f: function(f).sum(), cubes(places), random(4))


@gp.operator
def sampled(table, at):
    return _sampleTensor(table, _readTensor(at)) ** 2


def test_sample_between_points(device):
    """The terms by the table, by coordinates, and those between them."""

    def gradients(table, at):
        low = at.astype(int)
        share, steep = at - low, table[low + 1] - table[low]
        sample = table[low] + share * steep
        by_table = np.zeros_like(table)
        np.add.at(by_table, low, 2 * sample * (1 - share))
        np.add.at(by_table, low + 1, 2 * sample * share)
        return by_table, 2 * sample * steep

    check(lambda f, c: sampled(f, c).sum(), gradients, random(4), np.array([0.25, 0.5, 2.75, 1.5]))


@gp.operator
def conditional(x, table):
    total, value = _var(_convert_double(0)), _readTensor(x)
    with _if(value > 0.7):
        read = _readTensor(table, _convert_int(value * 5), border="wrap")
        total @= total + read * read * value * value
    return total


def test_read_in_a_branch(device):
    def gradients(x, table):
        places, on = (x * 5).astype(int) % len(table), x > 0.7
        by_table = np.zeros_like(table)
        np.add.at(by_table, places, np.where(on, 2 * table[places] * x * x, 0.0))
        return np.where(on, 2 * table[places] ** 2 * x, 0.0), by_table

    check(lambda x, f: conditional(x, f).sum(), gradients, random(9), random(4))


@gp.operator
def lengths(vectors, places):
    vector = _readTensor(vectors, _readTensor(places))
    return _dot(vector, vector) * vector.x


@pytest.mark.parametrize("n", [2, 3])
def test_vectors(device, n):
    v, direction = random(4, n), random(4, n) - 0.7
    primal, tangent = gp.VectorField(v), gp.VectorField(direction)
    curved = gp.hvp(lambda f: lengths(f, Field(PLACES)).sum(), (primal,), (tangent,))
    expected = 2 * v[:, :1] * direction + 2 * direction[:, :1] * v  # of |v|² v₀
    expected[:, 0] += 2 * (v * direction).sum(1)
    expected *= np.bincount(PLACES, minlength=4)[:, None]
    np.testing.assert_allclose(curved.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex128])
def test_dtypes(dtype):
    table, ones = random(4).astype(dtype), np.ones(4, dtype)
    curved = gp.hvp(lambda f: (abs(np.take(f, PLACES)) ** 2).sum(), (Field(table),), (Field(ones),))
    assert curved.dtype == np.dtype(dtype).name
    np.testing.assert_allclose(curved.numpy(), 2 * np.bincount(PLACES, minlength=4), rtol=2e-3)


def test_third_derivative():
    table, ones = random(4), Field(np.ones(4))

    def first(f):
        return (gp.grad(lambda f: (np.take(f, PLACES) ** 4).sum())(f) * ones).sum()

    expected = 24 * table * np.bincount(PLACES, minlength=4)
    np.testing.assert_allclose(gp.hvp(first, (Field(table),), (ones,)).numpy(), expected, rtol=1e-12)
    third = gp.pipeline(lambda f: gp.grad(lambda f: (gp.grad(first)(f) * ones).sum())(Field(f)))
    np.testing.assert_allclose(third(table), expected, rtol=1e-12)


@gp.operator
def repeated(places, counts, table):
    total = _var(_convert_double(0))
    with _for(_readTensor(counts)) as n:
        total @= total + _readTensor(table, _readTensor(places, n % 4)) ** 3
    return total


@gp.operator
def often(places, counts, table):
    total = _var(_convert_double(0))
    with _for(1000) as n:
        with _for(3):
            total @= total + _readTensor(table, _readTensor(places, n % 4)) ** 3
    return total


@pytest.mark.parametrize(("function", "count"), [(repeated, 1000), (often, 3000)])
def test_loops_that_add_to_one_place(device, function, count):
    """All iterations of all threads have room in one sum."""
    table, zeros, counts = random(4), Field(np.zeros(4, np.int32)), Field(np.full(4, 1000, np.int32))
    gradient = gp.grad(lambda f: function(zeros, counts, f).sum())(Field(table)).numpy()
    np.testing.assert_allclose(gradient, [4 * count * 3 * table[0] ** 2, 0, 0, 0], rtol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float64, 1e250), (np.float64, 1e-250), (np.float32, 1e36), (np.float32, 1e-32)]
)
def test_sizes_of_shares(device, dtype, size):
    _, pull = gp.vjp(lambda f: np.take(f, PLACES), Field(random(4).astype(dtype)))
    (result,) = pull(Field(np.full(4, size, dtype)))
    np.testing.assert_allclose(result.numpy(), size * np.bincount(PLACES, minlength=4), rtol=1e-5)
