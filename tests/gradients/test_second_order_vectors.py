"""Gradients of gradients of functions of vectors and matrices at an offset, against products with Hessians in NumPy.

A gradient chooses whole vectors by one condition; the gradient of that takes their components apart.
"""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

BORDERS = ["clamp", "zero", "wrap", "symmetric", "reflect"]


@gp.operator
def product(f, offset, border):
    v = _readTensor(f, offset=(offset,), border=border)
    return v.x * v.y


@gp.operator
def scaled(f, offset, border):
    v = _readTensor(f, offset=(offset,), border=border)
    return v.x * v


@gp.operator
def square(f, offset, border):
    v = _readTensor(f, offset=(offset,), border=border)
    return _dot(v, v)


@gp.operator
def crossed(f, offset, border):
    """Reads at two offsets, of which one has another component of the other."""
    v, w = _readTensor(f, offset=(offset,), border=border), _readTensor(f)
    return v.x * w.y * v.y


@gp.operator
def chosen(f, offset, border):
    """Components are chosen each by its own condition, of a number that all share."""
    v = _readTensor(f, offset=(offset,), border=border)
    return _dot(_where(v > 1, v * v.x * v.y, v * v), v)


@gp.operator
def dot(a, b):
    return _dot(_readTensor(a), _readTensor(b))


def places(n: int, offset: int, border: str):
    """The point that each thread reads, and whether it is one of the field."""
    at = np.arange(n) + offset
    inside = (at >= 0) & (at < n)
    if border == "wrap":
        return at % n, np.ones(n, bool)
    if border == "symmetric":
        return np.minimum(at % (2 * n), (-1 - at) % (2 * n)), np.ones(n, bool)
    if border == "reflect":
        return np.minimum(at % (2 * n - 2), -at % (2 * n - 2)), np.ones(n, bool)
    return np.clip(at, 0, n - 1), inside if border == "zero" else np.ones(n, bool)


def read(f, offset, border):
    at, exists = places(len(f), offset, border)
    return f[at] * exists[:, None]


def of_chosen(v):
    return (np.where(v > 1, v * v[:, :1] * v[:, 1:2], v * v) * v).sum()


FUNCTIONS = {
    "product": (product, lambda f, v: (v[:, 0] * v[:, 1]).sum()),
    "square": (square, lambda f, v: (v * v).sum()),
    "crossed": (crossed, lambda f, v: (v[:, 0] * f[:, 1] * v[:, 1]).sum()),
    "chosen": (chosen, lambda f, v: of_chosen(v)),
}


def hessian_times(function, f, d):
    """Central differences of the function along d and each element; second differences of polynomials of small degree."""
    h, result = 1e-3, np.zeros(f.shape)
    for place in np.ndindex(f.shape):
        e = np.zeros(f.shape)
        e[place] = h
        corners = [s * t * function(f + s * e + t * h * d) for s in (1, -1) for t in (1, -1)]
        result[place] = sum(corners) / (4 * h * h)
    return result


def compare(loss, function, lanes: int, kind=gp.VectorField, shape=None) -> None:
    rng = np.random.default_rng(lanes)
    f, d = rng.random((4, lanes)) * 2 + 0.03, rng.integers(-2, 3, (4, lanes)).astype(float)
    parts = shape or (lanes,)

    def slope(x):
        return dot(gp.grad(loss)(x), kind(d.reshape(4, *parts))).sum()

    result = gp.grad(slope)(kind(f.reshape(4, *parts))).numpy().reshape(4, lanes)
    np.testing.assert_allclose(result, hessian_times(function, f, d), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lanes", [2, 3, 4])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_of_vectors(name, lanes):
    own, array = FUNCTIONS[name]
    compare(lambda f: own(f, 1, "clamp").sum(), lambda a: array(a, read(a, 1, "clamp")), lanes)


@pytest.mark.parametrize("offset", [-2, 1])
@pytest.mark.parametrize("border", BORDERS)
def test_borders_and_offsets(border, offset):
    compare(
        lambda f: crossed(f, offset, border).sum(),
        lambda a: (read(a, offset, border)[:, 0] * a[:, 1] * read(a, offset, border)[:, 1]).sum(),
        2,
    )


@pytest.mark.parametrize("lanes", [2, 3, 4])
def test_vectors_of_vectors(lanes):
    w = np.arange(4.0 * lanes).reshape(4, lanes) - 3

    def array(a):
        v = read(a, -1, "clamp")
        return (v[:, :1] * v * w).sum()

    compare(lambda f: dot(scaled(f, -1, "clamp"), gp.VectorField(w)).sum(), array, lanes)


def test_nests_of_reads():
    """A read of a result that itself read at an offset."""

    def array(a):
        v = read(a, 1, "clamp")
        v = read(v[:, :1] * v, -2, "zero")
        return (v[:, 0] * v[:, 1]).sum()

    compare(lambda f: product(scaled(f, 1, "clamp"), -2, "zero").sum(), array, 3)


@gp.operator
def rooted(f):
    v = _readTensor(f)
    return _dot(_where(v > 1, _sqrt(v.x - 1) + v * 0, v), v * 0 + 1)


def test_a_number_that_components_share_by_their_own_conditions():
    """The number has the slope of the components that take it; where none does, an infinite slope is no NaN."""
    f = np.array([[2, 0.5, 3], [1, 0.2, 0.3], [1, 0.5, 1], [5, 2, 0.25]])
    taken = f > 1
    expected = np.where(taken, 0.0, 1.0)
    for row in np.flatnonzero(taken.any(1)):
        expected[row, 0] += taken[row].sum() * 0.5 / np.sqrt(f[row, 0] - 1)
    np.testing.assert_allclose(gp.grad(lambda x: rooted(x).sum())(gp.VectorField(f)).numpy(), expected, rtol=1e-12)


@gp.operator
def matrix(f, offset):
    m = _readTensor(f, offset=(offset,))
    return m[1] * m[2] - m[0] * m[3]


@gp.operator
def matrix_dot(a, b):
    m, n = _readTensor(a), _readTensor(b)
    return _dot(m, n)


def test_matrices():
    """The slopes of a determinant at an offset."""
    rng = np.random.default_rng(5)
    f, d = rng.random((3, 2, 2)), rng.random((3, 2, 2))

    def slope(x):
        return matrix_dot(gp.grad(lambda y: matrix(y, 1).sum())(x), gp.Field(d, 2)).sum()

    expected = np.zeros((3, 2, 2))
    for at in (1, 2, 2):
        expected[at] += [[-d[at, 1, 1], d[at, 1, 0]], [d[at, 0, 1], -d[at, 0, 0]]]
    np.testing.assert_allclose(gp.grad(slope)(gp.Field(f, 2)).numpy(), expected, rtol=1e-12)
