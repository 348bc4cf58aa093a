"""Fields as NumPy arrays: their storage, and arrays in that memory for libraries that compute on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.base.trace import HostSpan
from gpuop.ir.bfloat16 import BFLOAT16, bits_of, values_of
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.layout import planar, strides_of
from gpuop.ir.types import FieldType

Array = NDArray[Any]
STORED_OTHERWISE = frozenset({*COMPLEX_DTYPES, "bool", BFLOAT16})  # dtypes whose elements lie as those of another one


def array_in(kind: FieldType, memory: Array, writeable: bool) -> Array:
    """Return the array of a field, which is not complex, in contiguous memory with its planes."""
    dtype = kind.array_dtype
    strides = [step * dtype.itemsize for step in strides_of(kind, planar(kind))]
    array: Array = np.ndarray(tuple(kind.array_shape), dtype, memory.data if memory.size else None, 0, strides)
    array.flags.writeable = writeable
    return array


def stored(kind: FieldType, array: Array) -> Array:
    """Return a contiguous array as it is stored: a complex number is its two parts, a bool is a byte."""
    if kind.dtype not in STORED_OTHERWISE:
        return array
    flat = np.ascontiguousarray(array).reshape(-1)
    return bits_of(flat) if kind.dtype == BFLOAT16 else flat.view(kind.storage.name)


def planes_of(kind: FieldType, array: Array) -> Array:
    """Return an array of `array_shape` as planes (tensor elements × points), contiguous."""
    with HostSpan("convert"):
        flat = stored(kind, np.ascontiguousarray(array)).reshape(kind.field_shape.points, kind.planes)
        return np.ascontiguousarray(flat.T)


def array_of(kind: FieldType, planes: Array) -> Array:
    """Return planes as an array of `array_shape` in the field's dtype: the inverse of `planes_of`."""
    if len(planes) == 1 and kind.dtype not in STORED_OTHERWISE:  # nothing is converted
        return planes.reshape(kind.array_shape)
    with HostSpan("convert"):
        flat = _beside_one_another(planes.reshape(kind.planes, kind.field_shape.points))
    if kind.dtype in STORED_OTHERWISE:
        flat = values_of(flat) if kind.dtype == BFLOAT16 else flat.view(kind.array_dtype)
    return flat.reshape(tuple(kind.array_shape))


def _beside_one_another(planes: Array) -> Array:
    """Return each point's elements next to one another. NumPy's transpose would alternate between the planes."""
    if len(planes) == 1:
        return np.ascontiguousarray(planes.T)
    flat = np.empty(planes.shape[::-1], planes.dtype)
    for number, plane in enumerate(planes):
        flat[:, number] = plane
    return flat
