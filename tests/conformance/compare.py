"""Comparing results with expected values, which never come from gpuop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gpuop as gp
from gpuop.runtime.devices import current

Array = NDArray[Any]


def same(result: Any, expected: Any, what: str = "") -> None:
    """Equal values (NaN equals NaN), the expected shape, and its dtype where an array is expected."""
    actual = result.numpy() if isinstance(result, gp.Field) else np.asarray(result)
    want = np.asarray(expected)
    assert actual.shape == want.shape, f"{what}: shape {actual.shape}, not {want.shape}"
    if isinstance(expected, (np.ndarray, np.generic)):
        assert actual.dtype == want.dtype, f"{what}: dtype {actual.dtype}, not {want.dtype}"
    np.testing.assert_array_equal(actual, want, err_msg=what)


def all_same(results: Sequence[gp.Field], expected: Sequence[Any], names: Sequence[str] | None = None) -> None:
    """`same` for the outputs of one operator, evaluated together."""
    gp.evaluate(*results)
    assert len(results) == len(expected)
    for k, (result, want) in enumerate(zip(results, expected, strict=True)):
        same(result, want, names[k] if names else f"output {k}")


def compute(body: Callable[..., Any], *fields: gp.Field, outputs: Any = None) -> Any:
    """The arrays of an operator's outputs, evaluated together."""
    results = gp.operator(body) if outputs is None else gp.operator(outputs=outputs)(body)
    result = results(*fields)
    return result.numpy() if isinstance(result, gp.Field) else [r.numpy() for r in gp.evaluate(*result)]


def has_denormals(kind: str) -> bool:
    """Return whether the device in use computes with denormals of "single" or "double"."""
    device = getattr(current(), "device", None)
    return device is None or bool(getattr(device, f"{kind}_fp_config") & 1)  # CL_FP_DENORM


def has_double() -> bool:
    return "double" in getattr(current(), "features", {"double"})
