"""Connected-component labelling of scipy.ndimage."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.engine.jit.array_arguments import DTypeOfArray
from gpuop.engine.jit.constant_arguments import frozen
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.lib.ndimage.bit_masks import links_of
from gpuop.lib.ndimage.measure.host_results import as_array, is_lazy, measured, shape_of, wanted_dtype
from gpuop.lib.ndimage.measure.union_find import forest, numbered
from gpuop.lib.ndimage.morphology.binary import generate_binary_structure
from gpuop.ops.elementwise.algebra import astype


def label(input: Any, structure: Any = None, output: Any = None) -> Any:
    """scipy.ndimage.label: the connected components of a mask, numbered from 1 on in the order of their first points.

    Args:
        input: a Field of scalars, or an array; points that are not 0 are in the mask.
        structure: truth values, 3 along each axis and symmetric about the middle: the neighbours that are connected. By default
            those along the axes.
        output: a dtype, int32 by default; or an array of the input's library that the numbers go into.

    Returns:
        The numbers, 0 outside of the mask, and the number of components: an array and an int, or a Field and a 0D Field. With an
        array as `output`, the number of components.

    Raises:
        ArgumentError: a wrong structure or output, or more labels than the dtype of an array has numbers; a ValueError and a
            RuntimeError.
        UnsupportedError: complex numbers; a TypeError.
    """
    input, lazy = as_array(input), is_lazy(input)
    dtype = wanted_dtype("label", output, shape_of(input), lazy)
    result, count = measured(_label, input, None, frozen(structure), None if lazy or dtype is None else str(dtype))
    if lazy:
        return result if dtype is None else astype(result, dtype), count
    count = int(count)
    if dtype is not None and np.dtype(dtype).kind in "iu" and count > np.iinfo(dtype).max:
        raise ArgumentError(f"insufficient bit-depth in requested output type: {count} labels do not fit {dtype}")
    if isinstance(dtype, DTypeOfArray):
        output[...] = result
        return count
    return np.asarray(result) if isinstance(result, np.generic) else result, count


def _label(input: Field, _: None, structure: Any, dtype: str | None) -> tuple[Field, Field]:
    shape = tuple(input.field_shape)
    neighbours = connected(input, structure)
    if not input.field_shape.points:
        return astype(input, dtype or "int32"), astype(input, "int32").sum()
    if not shape:
        result = astype(input != 0, "int32")
        return astype(result, dtype or "int32"), result
    links = links_of(shape, neighbours)
    numbers, count = numbered(forest(input, links))
    return astype(numbers, dtype or "int32"), count


def connected(input: Field, structure: Any) -> Numbers:
    """Return the structure of connected neighbours.

    Raises:
        ArgumentError: it has not 3 along each axis, or is not symmetric about its middle.
        UnsupportedError: the field has complex numbers, or tensors.
    """
    if input.dtype in COMPLEX_DTYPES:
        raise UnsupportedError("label: Complex type not supported: complex numbers are neither true nor false")
    if input.tensor_shape:
        raise UnsupportedError(
            "label: labels are for fields of scalars: take an element of the tensors, as in `f[..., 0]`"
        )
    neighbours = structure_of("label", input, structure)
    if not np.array_equal(neighbours, np.flip(neighbours)):
        raise ArgumentError(
            "label: structuring element is not symmetric: two neighbours are connected in both directions"
        )
    return neighbours


def structure_of(name: str, input: Field, structure: Any) -> Numbers:
    """Return a structure of 3 along each axis of a field, for the function `name`; by default the neighbours along the axes.

    Raises:
        ArgumentError: it has another shape.
    """
    count = len(input.field_shape)
    neighbours = generate_binary_structure(count, 1) if structure is None else np.asarray(structure, bool)
    if neighbours.ndim != count:
        raise ArgumentError(f"{name}: structure and input must have equal rank, not {neighbours.ndim} and {count}")
    if any(n != 3 for n in neighbours.shape):
        raise ArgumentError(f"{name}: structure dimensions must be equal to 3, not {neighbours.shape}")
    return neighbours
