"""Norms of vectors and matrices (numpy.linalg), as reductions."""

from __future__ import annotations

import math
from typing import Any

from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.engine.jit.array_arguments import as_field, takes_arrays
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ops.elementwise.algebra import apply, astype, length_of
from gpuop.ops.layout.axes import of_field, several


@takes_arrays("x")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """numpy.linalg.norm: of vectors along an axis, of matrices in two axes, or of all values.

    Args:
        x: a field, an array or a list.
        ord: for vectors a number, inf or -inf; for matrices "fro", 1, -1, inf or -inf; None is 2, for matrices "fro".
        axis: one axis or two; by default all axes, of which `ord` allows one or two.
        keepdims: whether the axes stay, with extent 1.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: an unknown order; a ValueError.
        SemanticError: an unknown axis.
    """
    field = as_field(x)
    if field.type.element.kind in "biu":
        field = astype(field, "float32")
    count = field.ndim
    axes = list(range(count)) if axis is None else several(axis, *of_field(field))
    if ord is None or (len(axes) == 2 and ord == "fro") or (len(axes) == 1 and ord == 2):
        return _root_of_squares(field, axes, keepdims)
    if len(axes) == 1:
        return _of_vectors(apply("absolute", field), ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ArgumentError(f"norm: Improper number of dimensions to norm: {len(axes)}")
    return _of_matrices(apply("absolute", field), ord, axes, keepdims)


def _root_of_squares(field: Field, axes: list[int], keepdims: bool) -> Field:
    size = apply("absolute", field) if field.dtype in COMPLEX_DTYPES else field
    if not axes:
        return apply("absolute", size)
    return length_of(apply("multiply", size, size).sum(axis=tuple(axes), keepdims=keepdims))


def _of_vectors(size: Field, order: Any, axis: int, keepdims: bool) -> Field:
    if isinstance(order, str):
        raise ArgumentError(f"norm: Invalid norm order {order!r} for vectors")
    if math.isinf(order):
        return size.max(axis=axis, keepdims=keepdims) if order > 0 else size.min(axis=axis, keepdims=keepdims)
    if order == 0:
        return astype(apply("not_equal", size, 0), size.dtype).sum(axis=axis, keepdims=keepdims)
    if order == 1:
        return size.sum(axis=axis, keepdims=keepdims)
    return apply("power", apply("power", size, order).sum(axis=axis, keepdims=keepdims), 1 / order)


def _of_matrices(size: Field, order: Any, axes: list[int], keepdims: bool) -> Field:
    rows, columns = axes
    if order not in (1, -1, math.inf, -math.inf):
        raise ArgumentError(
            f"norm: Invalid norm order {order!r} for matrices; 2, -2 and 'nuc' follow from the singular values, "
            "`np.linalg.svdvals(x)`"
        )
    summed, other = (rows, columns) if abs(order) == 1 else (columns, rows)
    sums = size.sum(axis=summed, keepdims=True)
    result = sums.max(axis=other, keepdims=True) if order > 0 else sums.min(axis=other, keepdims=True)
    return result if keepdims else result.sum(axis=(rows, columns))
