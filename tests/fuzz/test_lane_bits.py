"""Functions give the same bits in vectors, whatever their neighbours are, and in kernels that have none."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop import dsl
from gpuop.dsl import *
from gpuop.dsl.builtins.functions import table
from gpuop.ir.ops import OPS
from gpuop.runtime.devices import current
from tests.conformance.compare import has_double

BOUNDED = [e.name for e in table() if e.name[1:] in OPS and OPS[e.name[1:]].ulp > 0]
N = 8192  # not too few for vectors
rng = np.random.default_rng(17)


def arguments(dtype: str) -> np.ndarray:
    """Numbers of every size next to one another."""
    parts = [rng.random(N // 4) * 2 - 1, rng.random(N // 4) * 400 - 200, np.exp(rng.random(N // 2) * 80 - 40)]
    return rng.permutation(np.concatenate(parts)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neighbours_do_not_matter(device, dtype):
    if dtype == "float64" and (not has_double() or current().target.widening == "functions"):
        pytest.skip("there are no vectors of doubles")
    x, y = arguments(dtype), arguments(dtype)
    turned = rng.permutation(N)  # a kernel that reads points which are not its own has no lanes
    for first in range(0, len(BOUNDED), 6):
        names = BOUNDED[first : first + 6]

        def values(a, b, names=names):
            second = _convert_int(_clamp(b, -9, 9))
            return tuple(
                getattr(dsl, name)(*(a, second if name in ("_pown", "_rootn") else b)[: OPS[name[1:]].arity])
                for name in names
            )

        own = gp.operator(lambda f, g: values(_readTensor(f), _readTensor(g)), name="own")
        other = gp.operator(
            lambda f, g, t: values(_readTensor(f, _readTensor(t)), _readTensor(g, _readTensor(t))), name="other"
        )
        straight = own(gp.Field(x), gp.Field(y))
        gathered = other(gp.Field(x), gp.Field(y), gp.Field(turned.astype(np.int32)))
        gp.evaluate(*straight)  # apart, or they would be one kernel, without lanes
        gp.evaluate(*gathered)
        for name, a, b in zip(names, straight, gathered, strict=True):
            np.testing.assert_array_equal(a.numpy()[turned], b.numpy(), err_msg=name)


def test_widths_do_not_matter(device):
    """Rows of few points have no vectors."""
    inverse_root = gp.operator(lambda f: _rsqrt(_readTensor(f)))
    x = np.exp(rng.random((64, 64), np.float32) * 40 - 20)
    wide, narrow = (inverse_root(gp.ScalarField(a)).numpy() for a in (x, x[:, :3]))
    np.testing.assert_array_equal(wide[:, :3], narrow)
    np.testing.assert_allclose(wide, 1 / np.sqrt(x.astype(float)), rtol=3e-7)
