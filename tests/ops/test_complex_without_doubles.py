"""complex128 on devices without double: what pairs of floats have is computed, all else is refused in a sentence."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.without_doubles import NAMES, without_doubles

pytestmark = pytest.mark.skipif(not NAMES, reason="there is no OpenCL device")
rng = np.random.default_rng(12)
Z = rng.normal(size=(5, 7)) + 1j * rng.normal(size=(5, 7))
W = rng.normal(size=(5, 7)) - 1j * rng.random((5, 7))
COMPUTED = {
    "as it is": lambda a, b: a * 1,
    "product": lambda a, b: a * b,
    "of a real field": lambda a, b: a.real * 1j,
    "quotient": lambda a, b: a / b,
    "sum": lambda a, b: np.sum(a + b, axis=0),
    "running sum": lambda a, b: np.cumsum(a, axis=1),
    "equal": lambda a, b: a + b == b + a,
    "narrowed": lambda a, b: a.astype("complex64"),
}


@pytest.fixture(params=NAMES)
def single(request):
    with without_doubles(request.param):
        yield


@pytest.mark.parametrize("name", COMPUTED)
def test_by_pairs_of_floats(single, name):
    """Within the bits of a pair, 48."""
    result, want = COMPUTED[name](gp.Field(Z), gp.Field(W)).numpy(), COMPUTED[name](Z, W)
    assert result.dtype == want.dtype
    within = 1e-6 if want.dtype == "complex64" else 2.0**-43
    np.testing.assert_allclose(result, want, rtol=0, atol=within * np.abs(want).max())


@pytest.mark.parametrize(("function", "name"), [(np.exp, "_exp"), (np.abs, "_hypot"), (np.log, "_hypot")])
def test_other_functions_are_refused(single, function, name):
    with pytest.raises(gp.DeviceError, match=f"computes `{name}` of double, which .* lacks .*use float32"):
        function(gp.Field(Z)).numpy()
