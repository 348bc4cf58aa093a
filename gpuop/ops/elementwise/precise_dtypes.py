"""The dtypes of intermediate steps, where the result's dtype would lose digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpuop.dsl as k
from gpuop.ir.dtype_names import FLOATS, wide_float

LONG_INTEGERS = ("int32", "uint32", "int64", "uint64")  # float32 does not represent all their values


def floating(dtype: Any) -> str:
    """Return the dtype of floating results: float32 for all integers."""
    return str(dtype) if dtype in FLOATS else "float32"


def record_steps(dtype: Any, record: Callable[[str], None]) -> None:
    """Record steps from values of a dtype, in a dtype for these steps.

    For long integers this is double, if the device has it, and else float32; for float16 and bfloat16 it is float32, so that
    results are rounded once.
    """
    if dtype not in LONG_INTEGERS:
        record(wide_float(floating(dtype)))
        return
    with k._codegenIf(k._target.has_fp64):
        record("float64")
    with k._codegenElse():
        record("float32")
