"""Values of every type: its corners and some between."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compare import has_double

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES = ("bool", *INTEGERS, "float16", "float32", "float64")
OPENCL = ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double")
NAMES = dict(zip(DTYPES, OPENCL, strict=True))


def available(dtypes: tuple[str, ...] = DTYPES) -> tuple[str, ...]:
    return tuple(d for d in dtypes if d != "float64" or has_double())


def samples(dtype: str) -> Any:
    """Values of a type: its corners and some between."""
    if dtype == "bool":
        return np.array([False, True, True, False] * 6)
    if dtype.startswith("float"):
        top = np.finfo(dtype).max
        some = [
            0,
            -0.0,
            1,
            -1,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            126.5,
            127.5,
            255.5,
            -128.5,
            300,
            4e4,
            -7e4,
            2**31,
            -(2**31),
            2**63,
            2**64,
        ]
        with np.errstate(over="ignore"):
            return np.array([*some, np.nan, np.inf, -np.inf, top], np.float64).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    corners = [low, low + 1, low + 2, 0, 1, 2, 3, 7, 8, 31, 100, high // 3, high // 2, high - 1, high]
    corners += [high - 63] if low == 0 else [-1, -2, -7, -8, -100, low // 2]
    return np.resize(np.array(corners, dtype), 24)
