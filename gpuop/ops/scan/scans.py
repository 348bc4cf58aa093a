"""Scans of fields: NumPy's, and those with a user function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described
from gpuop.base.misspelt import hinted
from gpuop.dsl.fields.field import Field
from gpuop.ir.dtype_names import COMPLEX_DTYPES, FLOATS
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise.algebra import apply, where
from gpuop.ops.layout.axes import a_field, numbered, of_field
from gpuop.ops.layout.layouts import ravel
from gpuop.ops.reduce.complex_reductions import Operation, doubled
from gpuop.ops.reduce.derivatives import with_scan_rule
from gpuop.ops.reduce.reducers import Reducer, reducer_of
from gpuop.ops.reduce.user_function import of_pairs, reducer_by
from gpuop.ops.scan.kernels import along_grid, along_tensor


@hinted
def scan(
    function: Callable[[Any, Any], Any], field: Field, identity: Any, axis: int | None = None, *, inclusive: bool = True
) -> Field:
    """Scan by a function: its result for the values up to each along an axis: `gp.scan(lambda a, b: _max(a, b), f, -np.inf)`.

    Values are combined in their order, so the function need not be commutative; which are combined first depends on the shape
    only, so results are equal on every device and in every run. It should be associative, but for rounding.

    Args:
        function: of two recorded scalars, as of `gp.reduce`.
        field: of any dtype. Complex ones are scanned by whole fields, in as many as doublings make the extent.
        identity: the number that the function leaves any value as it is with.
        axis: an axis of `array_shape`, or None for all values in row-major order, which gives a grid of one dimension.
        inclusive: whether a value counts for its own place; else the first one is the identity.

    Returns:
        A lazy Field of the field's dtype, float32 of unorm8.

    Raises:
        SemanticError: a function that gives no number of the field's dtype or reads a field, an identity that the dtype does
            not hold, or an axis that is none.
    """
    if not isinstance(inclusive, bool):
        raise SemanticError(f"gp.scan: `inclusive=` is True or False, not {described(inclusive)}")
    if getattr(field, "dtype", "") in COMPLEX_DTYPES:  # arrays raise an error later
        return _of_pairs(of_pairs("scan", function, field, identity), field, axis, identity, inclusive)
    return _scanned(reducer_by("scan", function, field, identity), field, axis, inclusive)


def _of_pairs(operation: Operation, field: Field, axis: Any, neutral: complex, inclusive: bool = True) -> Field:
    """Scan complex numbers."""
    if axis is None:
        field, axis = ravel(field), 0
    return doubled(field, numbered(axis, *of_field(field)), operation, neutral, inclusive) if field.size else field


def _scanned(reducer: Reducer, field: Field, axis: Any, inclusive: bool = True) -> Field:
    if axis is None:
        field, axis = ravel(field), 0
    number, grid = numbered(axis, *of_field(field)), len(field.field_shape)
    if not field.field_shape.points:
        return filled(field.type.replace(dtype=reducer.result), 0)
    if number < grid:
        return along_grid(reducer, field, number, inclusive)
    return along_tensor(reducer, field, number - grid, inclusive)


def _accumulated(name: str, of: str, a: Any, axis: Any) -> Field:
    field = a_field(name, a)
    if field.dtype in COMPLEX_DTYPES and of == "prod":
        return _of_pairs(partial(apply, "multiply"), field, axis, 1)
    if axis is None:
        field, axis = ravel(field), 0
    result = _scanned(reducer_of(of, field.type, 1), field, axis)
    if np.dtype(field.type.array_dtype).kind not in "fc" or result.dtype != field.dtype:
        return result
    number = numbered(axis, *of_field(field))
    return with_scan_rule(of, result, field, number, partial(cumsum, axis=number))


def _numbers(field: Any, otherwise: int) -> Any:
    """Return a field with a number in place of NaN."""
    if not isinstance(field, Field) or field.dtype not in FLOATS:
        return field
    return where(apply("isnan", field), otherwise, field)


def cumsum(a: Any, axis: Any = None) -> Field:
    """numpy.cumsum."""
    return _accumulated("cumsum", "sum", a, axis)


def cumprod(a: Any, axis: Any = None) -> Field:
    """numpy.cumprod."""
    return _accumulated("cumprod", "prod", a, axis)


def nancumsum(a: Any, axis: Any = None) -> Field:
    """numpy.nancumsum."""
    return _accumulated("nancumsum", "sum", _numbers(a, 0), axis)


def nancumprod(a: Any, axis: Any = None) -> Field:
    """numpy.nancumprod."""
    return _accumulated("nancumprod", "prod", _numbers(a, 1), axis)
