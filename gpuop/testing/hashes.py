"""Digests of fields, and noise: both are hashes, computed on the device, with the same bits on all devices.

The hash is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): a counter that
grows by GAMMA, and three rounds that mix its bits.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError, described
from gpuop.base.misspelt import hinted
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import Parameter
from gpuop.dsl.operators.decorator import operator
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import FieldType, is_integer

GAMMA, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
NAN = 0x7FF8000000000000
WORD = 2**64 - 1


def _mixed(z: Any) -> Any:
    """The hash of 64 bits, in kernels."""
    z = (z ^ (z >> 30)) * FIRST
    z = (z ^ (z >> 27)) * SECOND
    return z ^ (z >> 31)


def _mixed_here(z: int) -> int:
    """The hash of a Python integer, on the host."""
    z = (z ^ (z >> 30)) * FIRST & WORD
    z = (z ^ (z >> 27)) * SECOND & WORD
    return z ^ (z >> 31)


def _place(elements: int, element: Any) -> Any:
    """The number of an element in row-major order of the array, from 1, as an ulong."""
    return k._convert_ulong(k._index()) * elements + k._convert_ulong(element) + 1


# --- digests ----------------------------------------------------------------------------------------------------------


def _bits(value: Any, dtype: str) -> Any:
    """The bits of a number, widened to 64; all NaNs have the same bits."""
    if dtype in ("float16", "float32", "float64", "unorm8"):
        real = value if dtype == "float64" else k._convert_float(value)
        bits = k._as_ulong(real) if dtype == "float64" else k._convert_ulong(k._as_uint(real))
        return k._where(real == real, bits, NAN)
    return value if dtype == "uint64" else k._as_ulong(k._convert_long(value))


@operator(outputs=lambda field, *_: field.type.replace(dtype="uint64"))
def _hashes(field, seed, parts, part):  # type: ignore[no-untyped-def]
    """The hash of each element and its place; the field is part number `part` of `parts` (real and imaginary parts)."""
    with k._forEachTensorElement(field.tensor_shape):
        element = k._tensorElement
        place = _place(field.type.tensor_points, element) * parts + part
        bits = _bits(k._readTensorElement(field, element), field.dtype)
        k._writeTensorElement(k._out0, _mixed(bits ^ _mixed(place * GAMMA + k._readTensor(seed))), element)


@hinted
def digest(field: Any) -> str:
    """A digest of the values of a field, computed on the device: tests store it instead of an expected array.

    It depends on the dtype, the shape of the array and each bit of its values; all NaNs are equal, and 0.0 differs from -0.0.
    All devices give the same digest of the same values. Digests of close values are unrelated.

    Args:
        field: a Field, or an argument of `gp.ScalarField`.

    Returns:
        16 hexadecimal digits, the same in later versions.

    Raises:
        SemanticError: no Field, and no array that becomes one.
    """
    values = field if isinstance(field, Field) else Field(field, max(np.ndim(field) - 3, 0))
    name = f"{values.dtype} {tuple(values.type.array_shape)}"
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    reals = [values.real, values.imag] if values.dtype in COMPLEX_DTYPES else [values]
    of_parts = [_hashes(part, Parameter(np.uint64(seed)), len(reals), n) for n, part in enumerate(reals)]
    total = sum(int(hashes.sum().numpy()) for hashes in of_parts)
    return f"{_mixed_here((total + seed) & WORD):016x}"


# --- noise ------------------------------------------------------------------------------------------------------------


def _uniform(h: Any, dtype: str) -> Any:
    """Convert 64 random bits to a number of a type."""
    match dtype:
        case "float64" | "complex128":
            return k._convert_double(h >> 11) * 2.0**-53
        case "float32" | "complex64":
            return k._convert_float(h >> 40) * 2.0**-24
        case "float16":
            return k._convert_float(h >> 53) * 2.0**-11
        case "unorm8":
            return k._convert_float(h >> 56) / 255
        case "bool":
            return (h >> 63) != 0
    bits = 8 * np.dtype(dtype).itemsize
    name = {8: "char", 16: "short", 32: "int", 64: "long"}[bits]
    unsigned = k._convert(h >> (64 - bits), f"uint{bits}")
    return unsigned if dtype.startswith("u") else getattr(k, f"_as_{name}")(unsigned)


@operator(outputs=lambda kind, *_: kind)
def _noise(kind, state):  # type: ignore[no-untyped-def]
    parts = kind.planes
    with k._forEachTensorElement(parts):
        h = _mixed(_place(parts, k._tensorElement) * GAMMA + k._readTensor(state))
        k._writeTensorElement(k._out0, _uniform(h, str(kind.dtype)), k._tensorElement)


@hinted
def noise(shape: Any, dtype: Any = None, seed: int = 0) -> Field:
    """A field of noise, computed on the device: each element is a hash of its place and the seed, with the same bits everywhere.

    Another seed needs no new compilation. The values are the sequence of SplitMix64.

    Args:
        shape: the shape of the grid, an int or a tuple; or a FieldType.
        dtype: by default float32, or that of the FieldType. Floats, and both parts of complex numbers, are uniform in [0, 1);
            integers are uniform over all values of their type, bools too.
        seed: an integer.

    Returns:
        A lazy Field.

    Raises:
        SemanticError: a shape or a dtype that fields cannot have, or a seed that is no integer.
    """
    kind = shape if isinstance(shape, FieldType) else FieldType(shape)
    if not is_integer(seed):
        raise SemanticError(f"the seed of noise is an integer, not {described(seed)}")
    state = Parameter(np.uint64(_mixed_here((int(seed) & WORD) ^ GAMMA)))
    result: Field = _noise(kind if dtype is None else kind.replace(dtype=dtype), state)
    return result
