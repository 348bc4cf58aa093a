"""Functions of complex numbers against those of NumPy in long double, on and off the axes, where their cuts are."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.ops.elementwise.complex_functions import TABLE
from tests.conformance.compare import has_double

AXIS = np.array([0.0, -0.0, 1, -1, 0.5, -2.5, 3, 1e-3, 20, -30, 1e-7])
RNG = np.random.default_rng(0)
POINTS = np.concatenate([(AXIS[:, None] + 1j * AXIS).ravel(), RNG.normal(0, 2, 199) + 1j * RNG.normal(0, 2, 199)])
# poles, and parts that are ordinary numbers beside ones that overflow or nearly vanish
EDGES = {"complex64": np.array([
    1e-30 + 1j, 1 - 1e-30j, -1 + 1e-42j, 100 + 1e-30j, 1e-30 - 100j, -150 + 1e-44j, 89 - 1j, 2 - 89j, 0j, 1e-25 - 0j, 1e30 + 1e30j,
    3e38 - 3e38j, -1e30 + 1e25j, -1e25 - 1e-24j, 1e-30 + 1e-44j, 1e-44 - 1e-44j, 1.0001 + 1j, -0.5 + 0.5j,
], "c8"), "complex128": np.array([
    1e-200 + 1j, 1 - 1e-200j, -1 + 1e-320j, 100 + 1e-200j, 1e-200 - 100j, -1305 + 1e-322j, -900 + 1e-100j, 710 - 1j, 2 - 710j, 0j,
    1e-180 - 0j, 1e250 + 1e250j, 1.7e308 - 1.7e308j, -1e250 + 1e200j, -1e200 - 1e-190j, 1e-200 + 1e-322j, 1e-322 - 1e-322j,
    1.0001 + 1j, -0.5 + 0.5j, 12 + 1e-9j, 19 - 2j,
], "c16")}  # fmt: skip
WITHIN = {"complex64": 1e-6, "complex128": 4e-15}
NAMES = [*TABLE, "square", "reciprocal", "sqrt", "exp"]


@pytest.mark.parametrize("dtype", EDGES)
def test_near_numpys(device, dtype):
    if dtype == "complex128" and not has_double():
        pytest.skip("no double")
    array = np.concatenate([POINTS.astype(dtype), EDGES[dtype]])
    fields = {name: getattr(np, name)(gp.Field(array)) for name in NAMES}

    @gp.operator(outputs=gp.FieldType(array.shape, (), array.real.dtype))
    def tie():  # one kernel of them all, as compiling takes longer than all else
        total = _doubleVar() if dtype == "complex128" else _floatVar()
        for field in fields.values():
            total += _readTensor(field).x
        return total

    gp.evaluate(*fields.values(), tie())
    with np.errstate(all="ignore"):
        for name, field in fields.items():
            result, want = field.numpy(), getattr(np, name)(array.astype("clongdouble"))
            if name == "log1p":  # NumPy's loses small real parts
                want = _log1p(array.astype("clongdouble"))
            else:
                _compare_parts(name, result[len(POINTS) :], want[len(POINTS) :], dtype)
            result, want = result[: len(POINTS)], want[: len(POINTS)]
            finite = np.isfinite(want)
            error = np.abs(result - want)[finite] / np.maximum(np.abs(want[finite]), 1e-30)
            assert result.dtype == dtype and error.max() < WITHIN[dtype], f"{name} of {POINTS[finite][error.argmax()]}"


def _log1p(z):
    x, y = z.real, z.imag
    near = np.abs(z) < 0.5
    return np.where(near, np.log1p(x * (2 + x) + y * y) / 2, np.log(np.abs(1 + z))) + 1j * np.arctan2(y, 1 + x)


def _compare_parts(name, result, want, dtype):
    """Each by itself, rounded to single precision, where it is a number and where it is infinite for its size alone."""
    for mine, theirs in ((result.real, want.real), (result.imag, want.imag)):
        finite = np.isfinite(want)
        tiny = np.finfo(dtype).tiny
        np.testing.assert_allclose(mine[finite], theirs[finite].astype(mine.dtype), WITHIN[dtype], tiny, err_msg=name)
        assert np.array_equal(np.signbit(mine[finite]), np.signbit(theirs[finite])), name


def test_rounded():
    with gp.use_device("reference"):
        z = POINTS[-50:].astype("c8")
        assert np.array_equal(np.round(gp.ComplexField(z)).numpy(), np.round(z))
        assert np.allclose(np.round(gp.ComplexField(z), 1).numpy(), np.round(z, 1))


@pytest.mark.parametrize("name", [name for name in TABLE if name not in ("expm1", "log1p", "log2", "log10", "rint")])
@pytest.mark.parametrize("dtype", EDGES)
def test_ends_of_the_plane(name, dtype):
    """Whatever NumPy knows there is known, but for the sign of what is infinite beside NaN."""
    ends = np.array([-np.inf, -1e20, -1, -0.0, 0.0, 0.5, 2, 1e20, np.inf, np.nan], "f")
    points = np.empty((10, 10), dtype)
    points.real, points.imag = ends[:, None], ends
    with gp.use_device("reference"), np.errstate(all="ignore"):
        result, want = getattr(np, name)(gp.Field(points)).numpy(), getattr(np, name)(points)
    for mine, theirs in ((result.real, want.real), (result.imag, want.imag)):
        finite = ~np.isnan(theirs) & (np.isfinite(theirs) | ~np.isnan(want))
        np.testing.assert_allclose(mine[finite], theirs[finite], rtol=WITHIN[dtype], atol=1e-20)
