"""ndimage.label under both checkers: its trees, which threads join in any order, are no race, and races of others still are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.dsl import *

SHAPES = [(40, 70), (9, 12, 40)]
STRUCTURES = [(shape, near) for shape in SHAPES for near in range(1, len(shape) + 1)]
CHECKERS = [("reference:sm_90", False), ("reference", True)]


@pytest.mark.parametrize(("name", "checked"), CHECKERS)
@pytest.mark.parametrize(("shape", "near"), STRUCTURES)
def test_trees_are_no_race(shape: tuple[int, ...], near: int, name: str, checked: bool) -> None:
    mask = np.random.default_rng(0).random(shape) < 0.45
    structure = scipy.ndimage.generate_binary_structure(len(shape), near)
    expected, count = scipy.ndimage.label(mask, structure)
    with gp.use_device(name, checked=checked):
        result, many = ndimage.label(gp.ScalarField(mask), structure)
        np.testing.assert_array_equal(result.numpy(), expected)
        assert int(many) == count


@gp.operator(inout="f")
def joined(f: Any) -> None:
    """As trees are joined, of the user's."""
    below = _max(_column - 1, 0)
    was = _atomic_cmpxchg(_pointerTo(f, below), 0, 1)
    _writeTensor(f, was + 2, _min(_column + 1, _columns - 1))


@pytest.mark.parametrize(("name", "checked"), CHECKERS)
def test_races_of_operators_are_told(name: str, checked: bool) -> None:
    with (
        gp.use_device(name, checked=checked),
        pytest.raises(gp.GpuopError, match=r"in no certain order|no barrier stands"),
    ):
        joined(ndimage.label(gp.ScalarField(np.eye(8, dtype="int32")))[0].ravel()).numpy()
