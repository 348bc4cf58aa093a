"""bfloat16 in NumPy, which has no such dtype: its values are float32, and its memory the upper 16 bits of these."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

BFLOAT16 = "bfloat16"
BITS = np.dtype(np.uint16)
CODED = np.dtype([(BFLOAT16, BITS)])  # of arrays of bits, whatever library they come from
NAN = 0x7FC0
GREATEST = float(np.uint32(0x7F7F0000).view(np.float32))


def is_bfloat16(dtype: Any) -> bool:
    """Return whether a dtype or a scalar type is bfloat16: of ml_dtypes, as JAX has it, of PyTorch, or of arrays of bits."""
    if isinstance(dtype, np.dtype):
        return dtype == CODED or dtype.name == BFLOAT16
    return getattr(dtype, "__name__", "") == BFLOAT16 or str(dtype) == "torch.bfloat16"


def coded(array: Any) -> NDArray[Any]:
    """An array of bfloat16 of NumPy, JAX or PyTorch on the host as one of bits, in the same memory."""
    if not isinstance(array, np.ndarray) and type(array).__module__ == "torch":  # PyTorch gives NumPy no bfloat16
        array = array.view(sys.modules["torch"].int16).numpy()
    return np.asarray(array).view(CODED)


def as_array(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers as an array of bits, where that is the dtype; else the array itself."""
    return bits_of(values).view(CODED) if dtype == CODED else values


def fill(array: NDArray[Any], values: Any) -> NDArray[Any]:
    """Set the numbers of an array, which may be one of bits."""
    if array.dtype == CODED:
        array.view(BITS)[...] = bits_of(values)
    else:
        array[...] = values
    return array


def bits_of(values: Any) -> NDArray[np.uint16]:
    """The bits of the nearest bfloat16 of each number, by way of float32; ties go to even, and NaN is one NaN."""
    array = np.asarray(values)
    if is_bfloat16(array.dtype):
        return array.view(BITS)
    with np.errstate(over="ignore"):
        wide = np.asarray(array, np.float32)
    bits = wide.view(np.uint32)
    near = bits + (bits >> np.uint32(16) & np.uint32(1)) + np.uint32(0x7FFF)
    return np.where(np.isnan(wide), np.uint32(NAN), near >> np.uint32(16)).astype(BITS)


def values_of(bits: NDArray[Any]) -> NDArray[np.float32]:
    """The numbers of bits, or of an array of bfloat16, as float32."""
    codes = np.asarray(bits).view(BITS) if is_bfloat16(bits.dtype) else np.asarray(bits, BITS)
    return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)


def rounded(values: Any) -> NDArray[np.float32]:
    """The nearest bfloat16 of each number, as float32."""
    return values_of(bits_of(values))
