"""Spline filters of scipy.ndimage: the coefficients that images are interpolated from.

SciPy runs a recursive filter forth and back along each line. Here each coefficient is the equivalent weighted sum of its
neighbours, truncated: one kernel filters rows and columns, reads the field once, and no thread waits for another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.dsl.fields.field import Field
from gpuop.lib.ndimage.array_arguments import of_arrays
from gpuop.lib.ndimage.filter_arguments import ImageEdge, axis_of, computed_in, rank, result_dtype
from gpuop.lib.ndimage.filters.correlation import along
from gpuop.lib.ndimage.filters.neighbours import in_dtype
from gpuop.lib.ndimage.interpolation.spline_weights import FREE, PADDING, check_mode, check_order, filter_weights
from gpuop.ops.layout.padding import pad

EDGES = {"nearest": "symmetric", "reflect": "symmetric", "grid-wrap": "wrap"}  # all other modes: "reflect"


@of_arrays()
def spline_filter1d(input: Any, order: int = 3, axis: Any = -1, output: Any = np.float64, mode: str = "mirror") -> Any:
    """scipy.ndimage.spline_filter1d: the coefficients of a spline through the points of each line along an axis.

    Args:
        input: a Field, or an array.
        order: order of the spline, 0 to 5; coefficients of the orders 0 and 1 are the values.
        axis: axis of the grid.
        output: a dtype, float64 by default, or an array; None is the dtype of `input`.
        mode: mirror, reflect, grid-mirror or grid-wrap; nearest acts as reflect, and all others as mirror, as in SciPy.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong orders, modes or axes; a ValueError and a RuntimeError.
    """
    return _filtered(input, check_order(order), [axis_of(axis, rank(input))] if order > 1 else [], output, mode)


@of_arrays()
def spline_filter(input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror") -> Any:
    """scipy.ndimage.spline_filter: `spline_filter1d` along all axes of the grid, for the orders 2 to 5."""
    return _filtered(input, check_order(order, 2), range(rank(input)), output, mode)


def _filtered(field: Field, order: int, axes: Sequence[int], output: Any, mode: Any) -> Field:
    dtype, at = result_dtype(output, field), ImageEdge(EDGES.get(check_mode(mode), "reflect"))
    made = field
    for axis in axes:
        if field.field_shape[axis] > 1:
            made = along(made, filter_weights(order, computed_in(made, dtype)), axis, dtype, at, name="spline_filter1d")
    return in_dtype(made, dtype)


def coefficients(
    field: Field, order: int, mode: str, cval: Any, prefilter: bool, axes: Sequence[int], dtype: str
) -> tuple[Field, int]:
    """Return the coefficients that a field is interpolated from along some axes, and their padding in points.

    Args:
        dtype: dtype of coefficients, float32 or float64.
    """
    if order < 2 or not prefilter:
        return field, 0
    padding = PADDING if mode in FREE else 0
    if padding:
        widths = [(padding * (axis in axes),) * 2 for axis in range(len(field.type.array_shape))]
        fill = {} if mode == "nearest" else {"constant_values": _as_held(cval, field)}
        field = pad(field, widths, "edge" if mode == "nearest" else "constant", **fill)
    return _filtered(field, order, axes, "complex64" if field.dtype == "complex64" else dtype, mode), padding


def _as_held(cval: Any, field: Field) -> Any:
    """Return a number as the field's dtype represents it, for NumPy's padding."""
    return np.asarray(cval).astype(field.type.array_dtype).item()
