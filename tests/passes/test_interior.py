"""Warps that meet no border run code of their own: what they and those at the edges compute fits together."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.ir.nodes import Comment
from gpuop.ir.visit import walk as statements
from gpuop.passes.schedules.gpu.roll import ROLL

from .test_roll import at, kernel_of
from .test_roll_stages import LOWER, UPPER, staged, stencil, stenciled, walked

NEAR = [(-1, 0), (1, 1), (0, -1)]
UP = [(-1, 1), (0, 0)]
FAR = [(-1, 0), (1, 1), (0, -6)]


def is_split(kernel, walk: dict[str, int]) -> bool:
    result = statements(ROLL.apply(kernel, ROLL.legalize(kernel, walk)).body)
    return any(isinstance(stmt, Comment) and stmt.text == "interior" for stmt in result)


@pytest.mark.parametrize(
    ("border", "shape", "walk", "windows"),
    [
        ("reflect", (61, 48), (4, 8, 2), (NEAR, UPPER, LOWER)),
        ("symmetric", (43, 30), (2, 6, 2), (UPPER, NEAR, LOWER)),
        ("zero", (58, 37), (4, 8, 1), (NEAR, NEAR, UPPER)),
        ("zero", (40, 25), (1, 1, 1), (UP, UP, UP)),  # as few rows as stages begin before
        ("reflect", (61, 38), (4, 8, 2), (NEAR, UPPER, NEAR)),
        ("symmetric", (70, 133), (8, 16, 1), (UP, NEAR, UP)),  # outputs that are stored in halves
        (7, (51, 32), (2, 8, 2), (NEAR, NEAR, NEAR)),  # six rows at a time, up to the last one
    ],
    ids=str,
)
def test_stages(border, shape, walk, windows):
    """Aligned rows and others; rows of threads that end outside; a stage that knows where it is."""
    x = np.random.default_rng(3).integers(-9, 10, shape).astype(np.float32)
    other = "reflect" if border == "clamp" else "clamp"
    first, second, third = zip((border, other, border), windows, (False, True, False), strict=True)
    kernel = staged(stencil(*third)(stencil(*second)(stencil(*first)(gp.ScalarField(x)))))
    values = dict(zip(("columns", "rows", "turn"), walk, strict=True), width=2)
    assert is_split(kernel, values)
    want = stenciled(stenciled(stenciled(x, *first), *second), *third)
    np.testing.assert_array_equal(walked(kernel, x, **values), want)


@gp.operator
def near(f):
    taps = [_readTensor(f, _row + r, _column + c, border="wrap") * (n + 1) for n, (r, c) in enumerate(FAR)]
    return sum(taps) + _row + 2 * _column


@pytest.mark.parametrize(
    ("shape", "dtype", "columns", "width"), [((40, 203), "float16", 8, 4), ((41, 46), "float32", 4, 1)], ids=str
)
def test_single_stencils(shape, dtype, columns, width):
    """Of halves, and of rows that are not aligned."""
    x = np.random.default_rng(3).integers(0, 10, shape).astype(dtype)
    kernel = kernel_of(near(gp.ScalarField(x)))
    options = {"columns": columns, "rows": 8, "turn": 1, "width": width}
    assert is_split(kernel, options)
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    want = sum(at(x, *away, border="wrap").astype(int) * (n + 1) for n, away in enumerate(FAR)) + rows + 2 * columns
    np.testing.assert_array_equal(walked(kernel, x, **options), want)


def test_layers():
    x = np.random.default_rng(3).integers(0, 10, (19, 5, 160)).astype(np.float16)

    @gp.operator
    def around(f):
        layers = [_readTensor(f, _layer + k, _row - k, _column + k, border="zero") * 1 for k in (-1, 0, 1)]
        return sum(layers)

    kernel = kernel_of(around(gp.ScalarField(x)))
    options = {"columns": 8, "rows": 4, "turn": 2, "width": 2}
    assert is_split(kernel, options)
    want = sum(at(x, k, -k, k, border="zero").astype(int) for k in (-1, 0, 1))
    np.testing.assert_array_equal(walked(kernel, x, **options), want)


def test_edges_alone():
    """A kernel whose warps all meet a border has one way."""
    kernel = staged(stencil("clamp", UPPER)(stencil("clamp", LOWER)(gp.ScalarField(np.zeros((40, 40), "f")))))
    assert not is_split(kernel, {"columns": 4, "rows": 8, "turn": 2, "width": 128})
    assert not is_split(kernel, {"columns": 4, "rows": 20, "turn": 2, "width": 2})
    assert is_split(kernel, {"columns": 4, "rows": 8, "turn": 2, "width": 2})
