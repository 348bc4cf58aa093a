"""Reads of one row at different kinds of places: along the thread's own columns, at one that all have in common, and anywhere."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

OUTSIDE = {"clamp": "edge", "wrap": "wrap", "symmetric": "symmetric", "zero": "constant"}


def at(f, row, column, border):
    """The values of NumPy at rows and columns."""
    far = 80
    padded = np.pad(f, far, mode=OUTSIDE[border])
    return padded[row + far, column + far]


@pytest.mark.parametrize("border", OUTSIDE)
@pytest.mark.parametrize("back", [0, 1, 3])
@pytest.mark.parametrize(
    ("shape", "dtype"), [((64, 64), "float32"), ((200, 264), "uint8"), ((201, 65), "int32"), ((70, 250), "float64")]
)
def test_a_column_that_all_threads_of_a_row_have_in_common(shape, dtype, back, border, device):
    @gp.operator
    def less_diagonal(f):
        own = _readTensor(f, _row, _column + 1, border=border)
        return own - _readTensor(f, _row, _row - back, border=border)

    f = np.random.default_rng(2).integers(0, 255, shape).astype(dtype)
    rows, columns = np.indices(shape)
    # far beyond the field "symmetric" and "wrap" go on, which NumPy's padding does as far as it is wide
    inside = np.abs(rows - back) < columns.max() + 60
    expected = at(f, rows, columns + 1, border) - at(f, rows, np.minimum(rows - back, columns.max() + 60), border)
    result = less_diagonal(gp.ScalarField(f)).numpy()
    np.testing.assert_array_equal(result[inside], expected.astype(dtype)[inside])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_a_place_that_is_computed_beside_neighbours(dtype, device):
    @gp.operator
    def aside(f, by):
        near = _readTensor(f, _row, _column - 1) + _readTensor(f, _row, _column + 1)
        return near + _readTensor(f, _row, _column + _readTensor(by) % 3)

    rng = np.random.default_rng(4)
    for shape in ((300, 256), (257, 261)):
        f, by = rng.integers(0, 60, shape).astype(dtype), rng.integers(0, 9, shape).astype("int32")
        rows, columns = np.indices(shape)
        expected = (
            at(f, rows, columns - 1, "clamp")
            + at(f, rows, columns + 1, "clamp")
            + at(f, rows, columns + by % 3, "clamp")
        )
        np.testing.assert_array_equal(aside(gp.ScalarField(f), gp.ScalarField(by)).numpy(), expected)
