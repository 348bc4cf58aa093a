"""Stencils of halves whose rows have lengths that vectors do not divide: PoCL's kernels for them have crashed."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *


@gp.operator
def pairs(f):
    return _readTensor(f, _row, _column - 1, border="reflect") + _readTensor(f, _row + 1, _column, border="wrap")


@gp.operator
def slopes(f):
    return _readTensor(f, _row, _column + 1, border="zero") - _readTensor(f, _row - 1, _column, border="clamp")


def expected_pairs(x):
    return np.pad(x, ((0, 0), (1, 0)), "reflect")[:, :-1] + np.roll(x, -1, 0)


def expected_slopes(x):
    return np.pad(x, ((0, 0), (0, 1)))[:, 1:] - np.pad(x, ((1, 0), (0, 0)), "edge")[:-1]


@pytest.mark.parametrize("shape", [(64, 130), (300, 257)])
def test_chains(device, shape):
    x = np.float16(np.random.default_rng(0).integers(-64, 64, shape) / 8)
    first = pairs(gp.ScalarField(x))
    np.testing.assert_array_equal(first.numpy(), expected_pairs(x))
    np.testing.assert_array_equal(slopes(pairs(gp.ScalarField(x))).numpy(), expected_slopes(expected_pairs(x)))
