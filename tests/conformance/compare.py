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
    got = result.numpy() if isinstance(result, gp.Field) else np.asarray(result)
    want = np.asarray(expected)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, not {want.shape}"
    if isinstance(expected, (np.ndarray, np.generic)):
        assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, not {want.dtype}"
    np.testing.assert_array_equal(got, want, err_msg=what)


def all_same(results: Sequence[gp.Field], expected: Sequence[Any], names: Sequence[str] | None = None) -> None:
    """`same` for the outputs of one operator, evaluated together."""
    gp.evaluate(*results)
    assert len(results) == len(expected)
    for k, (result, want) in enumerate(zip(results, expected, strict=True)):
        same(result, want, names[k] if names else f"output {k}")


def compute(body: Callable[..., Any], *fields: gp.Field, outputs: Any = None) -> Any:
    """The arrays of an operator's outputs."""
    results = gp.operator(body) if outputs is None else gp.operator(outputs=outputs)(body)
    made = results(*fields)
    return made.numpy() if isinstance(made, gp.Field) else [r.numpy() for r in made]


def ulps(got: Array, exact: Array, flush: bool = False) -> Array:
    """The distance to the exact values in units of the result type's last place; infinity where NaN or ∞ differ.

    Args:
        exact: of a wider type, or rounded.
        flush: denormal results may be zero.
    """
    info = np.finfo(got.dtype)
    wide = np.longdouble
    with np.errstate(all="ignore"):
        rounded, got_wide, exact_wide = exact.astype(got.dtype), got.astype(wide), exact.astype(wide)
        unit = np.spacing(np.maximum(np.abs(rounded), info.tiny)).astype(wide)
        error = np.abs(got_wide - exact_wide) / unit
        just_above = (
            np.isfinite(exact)
            & (np.abs(exact_wide) > wide(info.max) * (1 - 32 * wide(info.eps)))
            & (np.sign(got) == np.sign(exact))
        )
    overflow, nan = np.isinf(rounded) | np.isinf(got), np.isnan(rounded) | np.isnan(got)
    error = np.where(overflow, np.where((got == rounded) | just_above, 0, np.inf), error)
    error = np.where(nan, np.where(np.isnan(rounded) & np.isnan(got), 0, np.inf), error)
    return np.where(flush & (got == 0) & (np.abs(exact) <= info.tiny), 0, error)


def has_denormals(kind: str) -> bool:
    """Whether the device in use computes with denormals of "single" or "double"."""
    device = getattr(current(), "device", None)
    return device is None or bool(getattr(device, f"{kind}_fp_config") & 1)  # CL_FP_DENORM


def has_double() -> bool:
    return "double" in getattr(current(), "features", {"double"})
