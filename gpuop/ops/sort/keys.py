"""Sort keys: unsigned integers in the order of the values; NaN comes last, zeros of both signs are equal."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.ir.types import FieldType


def unsigned(kind: FieldType) -> str:
    """Return the dtype of keys."""
    return "uint64" if np.dtype(kind.array_dtype).itemsize == 8 else "uint32"


def key_of(value: Any, kind: FieldType, zeros: bool = False) -> Any:
    """Return the key of a value; with `zeros` that of -0 is less than that of 0."""
    dtype = np.dtype(kind.array_dtype)
    if dtype.kind == "f":
        as_int, as_bits, bits = (k._as_long, k._as_ulong, 64) if dtype.itemsize == 8 else (k._as_int, k._as_uint, 32)
        bits_of_value = as_int(value if zeros else value + 0.0)  # turns -0 into 0
        top = k._convert(1 << (bits - 1), unsigned(kind))
        ordered = as_bits(bits_of_value) ^ (as_bits(bits_of_value >> (bits - 1)) | top)
        return k._where(value != value, ~k._convert(0, unsigned(kind)), ordered)
    if dtype.itemsize == 8:
        bits_of_value = k._as_ulong(value)
        return bits_of_value ^ k._convert(1 << 63, "uint64") if dtype.kind == "i" else bits_of_value
    if dtype.itemsize == 4:
        bits_of_value = k._as_uint(value)
        return bits_of_value ^ k._convert(1 << 31, "uint32") if dtype.kind == "i" else bits_of_value
    return k._convert_uint(k._convert_int(value) + (1 << (8 * dtype.itemsize - 1) if dtype.kind == "i" else 0))


def last_key(kind: FieldType) -> Any:
    return k._convert(2**64 - 1 if unsigned(kind) == "uint64" else 2**32 - 1, unsigned(kind))


def value_of(key: Any, kind: FieldType) -> Any:
    """Return the value of a key that distinguishes the zeros."""
    dtype = np.dtype(kind.array_dtype)
    bits = 64 if dtype.itemsize == 8 else 32
    top = k._convert(1 << (bits - 1), unsigned(kind))
    if dtype.kind == "f":
        value = (k._as_double if bits == 64 else k._as_float)(key ^ k._where((key & top) == 0, last_key(kind), top))
    elif dtype.itemsize < 4:
        value = k._convert_int(key) - (1 << (8 * dtype.itemsize - 1) if dtype.kind == "i" else 0)
    else:
        value = key if dtype.kind == "u" else (k._as_long if bits == 64 else k._as_int)(key ^ top)
    return value != 0 if dtype.kind == "b" else k._convert(value, kind.dtype)


def digits_of(kind: FieldType, most: int, used: int | None = None) -> tuple[int, int]:
    """Return the bits of each digit, at most so many, and the number of digits, for all bits of a type's keys or those used."""
    size = used or 8 * np.dtype(kind.array_dtype).itemsize
    count = -(-size // most)
    return -(-size // count), count


def digit_of(key: Any, kind: FieldType, bits: int, shift: Any) -> Any:
    """Return a digit of a key, an int: so many bits from a bit on."""
    digit = (key >> k._convert(shift, unsigned(kind))) & ((1 << bits) - 1)
    return k._as_int(k._convert_uint(digit) if unsigned(kind) == "uint64" else digit)
