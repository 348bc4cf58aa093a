"""Schedules of GPUs on grids from one point to less than a window, a tile or a warp, under every border, behind every view."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp

from .forced import FORCED, compared
from .mutations import MUTATIONS


@pytest.mark.daily
@pytest.mark.parametrize("name", FORCED)
def test_small_grids(name: str) -> None:
    count = compared(name)
    assert count or FORCED[name].method is None, "no kernel has the schedule"


@pytest.mark.daily
@pytest.mark.parametrize("name", MUTATIONS)
def test_mistakes_by_one_are_found(name: str) -> None:
    assert MUTATIONS[name].findings() == {"run", *(["proof"] if MUTATIONS[name].proof else [])}


@pytest.mark.parametrize("shape", [(1, 4), (8, 8), (33, 47), (70,)])
def test_labels_leave_what_nobody_reads(shape):
    """Trees of runs have a place for each point, of which only those where a run begins are written."""
    mask = np.random.default_rng(3).random(shape) > 0.6
    for device in ("reference:sm_90", "reference:gpu"):
        with gp.use_device(device):
            labels, count = gp.ndimage.label(gp.ScalarField(mask))
            want, many = scipy.ndimage.label(mask)
            np.testing.assert_array_equal(labels.numpy(), want)
            assert int(count) == many
            filled = gp.ndimage.binary_fill_holes(gp.ScalarField(mask)).numpy()
            np.testing.assert_array_equal(filled, scipy.ndimage.binary_fill_holes(mask))
