"""Functions of complex numbers against NumPy's in double, on and off the axes, where their cuts are."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.ops.elementwise.complex_functions import TABLE

AXIS = np.array([0.0, -0.0, 1, -1, 0.5, -2.5, 3, 1e-3, 20, -30, 1e-7])
RNG = np.random.default_rng(0)
POINTS = np.concatenate(
    [(AXIS[:, None] + 1j * AXIS).ravel(), RNG.normal(0, 2, 199) + 1j * RNG.normal(0, 2, 199)]
).astype("c8")
# poles, and parts that are ordinary numbers beside ones that overflow or nearly vanish
EDGES = np.array([
    1e-30 + 1j, 1 - 1e-30j, -1 + 1e-42j, 100 + 1e-30j, 1e-30 - 100j, -150 + 1e-44j, 89 - 1j, 2 - 89j, 0j, 1e-25 - 0j, 1e30 + 1e30j,
    3e38 - 3e38j, -1e30 + 1e25j, -1e25 - 1e-24j, 1e-30 + 1e-44j, 1e-44 - 1e-44j, 1.0001 + 1j, -0.5 + 0.5j,
], "c8")  # fmt: skip
NAMES = [*TABLE, "square", "reciprocal", "sqrt", "exp"]


def test_near_numpys(device):
    array = np.concatenate([POINTS, EDGES])
    fields = {name: getattr(np, name)(gp.ComplexField(array)) for name in NAMES}

    @gp.operator(outputs=gp.FieldType(array.shape))
    def tie():  # one kernel of them all, as compiling takes longer than all else
        total = _floatVar()
        for field in fields.values():
            total += _readTensor(field).x
        return total

    gp.evaluate(*fields.values(), tie())
    with np.errstate(all="ignore"):
        for name, field in fields.items():
            result, want = field.numpy(), getattr(np, name)(array.astype("c16"))
            if name != "log1p":  # NumPy's loses small real parts
                _compare_parts(name, result[len(POINTS) :], want[len(POINTS) :])
            result, want = result[: len(POINTS)], want[: len(POINTS)]
            finite = np.isfinite(want)
            error = np.abs(result - want)[finite] / np.maximum(np.abs(want[finite]), 1e-30)
            assert result.dtype == np.complex64 and error.max() < 1e-6, f"{name} of {POINTS[finite][error.argmax()]}"


def _compare_parts(name, result, want):
    """Each by itself, rounded to single precision, where it is a number and where it is infinite for its size alone."""
    for mine, theirs in ((result.real, want.real), (result.imag, want.imag)):
        finite = np.isfinite(want)
        np.testing.assert_allclose(mine[finite], theirs[finite].astype("f"), rtol=1e-6, atol=1e-38, err_msg=name)
        assert np.array_equal(np.signbit(mine[finite]), np.signbit(theirs[finite])), name


def test_rounded():
    with gp.use_device("reference"):
        z = POINTS[-50:]
        assert np.array_equal(np.round(gp.ComplexField(z)).numpy(), np.round(z))
        assert np.allclose(np.round(gp.ComplexField(z), 1).numpy(), np.round(z, 1))


@pytest.mark.parametrize("name", [name for name in TABLE if name not in ("expm1", "log1p", "log2", "log10", "rint")])
def test_ends_of_the_plane(name):
    """Whatever NumPy knows there is known, but for the sign of what is infinite beside NaN."""
    ends = np.array([-np.inf, -1e20, -1, -0.0, 0.0, 0.5, 2, 1e20, np.inf, np.nan], "f")
    points = np.empty((10, 10), "complex64")
    points.real, points.imag = ends[:, None], ends
    with gp.use_device("reference"), np.errstate(all="ignore"):
        result, want = getattr(np, name)(gp.ComplexField(points)).numpy(), getattr(np, name)(points)
    for mine, theirs in ((result.real, want.real), (result.imag, want.imag)):
        finite = ~np.isnan(theirs) & (np.isfinite(theirs) | ~np.isnan(want))
        np.testing.assert_allclose(mine[finite], theirs[finite], rtol=1e-6, atol=1e-20)
