"""What has the order of values as an integer without a sign: NaN comes last, zeros of both signs are one."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.ir.types import FieldType


def unsigned(kind: FieldType) -> str:
    """The dtype of keys."""
    return "uint64" if np.dtype(kind.array_dtype).itemsize == 8 else "uint32"


def key_of(value: Any, kind: FieldType) -> Any:
    """The key of a value of a type."""
    dtype = np.dtype(kind.array_dtype)
    if dtype.kind == "f":
        as_int, as_bits, bits = (k._as_long, k._as_ulong, 64) if dtype.itemsize == 8 else (k._as_int, k._as_uint, 32)
        found = as_int(value + 0.0)  # which makes 0 of -0
        top = k._convert(1 << (bits - 1), unsigned(kind))
        ordered = as_bits(found) ^ (as_bits(found >> (bits - 1)) | top)
        return k._where(value != value, ~k._convert(0, unsigned(kind)), ordered)
    if dtype.itemsize == 8:
        found = k._as_ulong(value)
        return found ^ k._convert(1 << 63, "uint64") if dtype.kind == "i" else found
    if dtype.itemsize == 4:
        found = k._as_uint(value)
        return found ^ k._convert(1 << 31, "uint32") if dtype.kind == "i" else found
    return k._convert_uint(k._convert_int(value) + (1 << (8 * dtype.itemsize - 1) if dtype.kind == "i" else 0))


def value_of(key: Any, kind: FieldType) -> Any:
    """The value of a type that a key is of."""
    dtype = np.dtype(kind.array_dtype)
    if dtype.kind == "f":
        as_int, as_float, bits = (k._as_long, k._as_double, 64) if dtype.itemsize == 8 else (k._as_int, k._as_float, 32)
        found = as_int(key)
        top = as_int(k._convert(1 << (bits - 1), unsigned(kind)))
        return k._convert(as_float(k._where(found < 0, found ^ top, ~found)), kind.dtype)
    if dtype.itemsize == 8:
        return k._as_long(key ^ k._convert(1 << 63, "uint64")) if dtype.kind == "i" else key
    if dtype.itemsize == 4:
        return k._as_int(key ^ k._convert(1 << 31, "uint32")) if dtype.kind == "i" else key
    small = k._as_int(key) - (1 << (8 * dtype.itemsize - 1) if dtype.kind == "i" else 0)
    return small != 0 if dtype.kind == "b" else k._convert(small, kind.dtype)


def digits_of(kind: FieldType, most: int) -> tuple[int, int]:
    """The bits of each digit of a type's keys, so many at most, and how many digits there are."""
    size = 8 * np.dtype(kind.array_dtype).itemsize
    count = -(-size // most)
    return -(-size // count), count


def digit_of(key: Any, kind: FieldType, bits: int, shift: Any) -> Any:
    """An int: so many bits of a key from one on."""
    digit = (key >> k._convert(shift, unsigned(kind))) & ((1 << bits) - 1)
    return k._as_int(k._convert_uint(digit) if unsigned(kind) == "uint64" else digit)
