"""The geometric functions."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import has_double

rng = np.random.default_rng(23)
DTYPES = ("float32", "float16", "float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_geometry(device: str, dtype: str) -> None:
    if dtype == "float64" and not has_double():
        pytest.skip("no double")
    close = {
        "rtol": 1e-14 if dtype == "float64" else 3e-6 if dtype == "float32" else 4e-3,
        "atol": 1e-30 if dtype != "float16" else 1e-2,
    }
    for lanes in (1, 2, 3, 4) if dtype == "float32" else (3,):
        p, q = rng.standard_normal((2, 20, lanes)).astype(dtype)
        p[0] = 0
        arrays = (p[:, 0], q[:, 0]) if lanes == 1 else (p, q)

        def body(f, g, lanes=lanes):
            a, b = _readTensor(f), _readTensor(g)
            scalars = _vector(_dot(a, b), _length(a), _distance(a, b), _fast_length(b))
            return scalars, _fast_distance(a, b), _normalize(a), _fast_normalize(b), _cross(a, b) if lanes > 2 else a

        got = [
            r.numpy().astype(np.float64)
            for r in gp.operator(body)(*(gp.Field(np.ascontiguousarray(a), lanes > 1) for a in arrays))
        ]
        p, q = p.astype(np.float64), q.astype(np.float64)
        size, other, away = (np.linalg.norm(v, axis=1) for v in (p, q, p - q))
        np.testing.assert_allclose(
            got[0], np.stack([(p * q).sum(1), size, away, other], -1), close["rtol"], max(close["atol"], close["rtol"])
        )
        np.testing.assert_allclose(got[1], away, **close)
        np.testing.assert_allclose(got[2].reshape(p.shape), p / np.where(size == 0, 1, size)[:, None], **close)
        np.testing.assert_allclose(got[3].reshape(q.shape), q / other[:, None], **close)
        if lanes > 2:
            cross = np.zeros_like(p)
            cross[:, :3] = np.cross(p[:, :3], q[:, :3])
            np.testing.assert_allclose(got[4], cross, close["rtol"], max(close["atol"], 8 * close["rtol"]))
