"""Other NumPy functions of axes and shapes, in terms of `layouts` and `join`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.dsl as dsl
from gpuop.base.errors import SemanticError
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.ir.dtype_names import DTypeName, dtype_name
from gpuop.ir.types import Shape
from gpuop.ops.elementwise.algebra import common_dtype
from gpuop.ops.layout.axes import Axis, a_field, axes_of, numbered, of_field, whole_number
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.layout.join import at_least, concatenate, split
from gpuop.ops.layout.layouts import moveaxis, ravel, reshaped, spread, swapaxes
from gpuop.ops.layout.slicing import sliced


def shape(a: Any) -> Shape:
    """numpy.shape."""
    return a_field("shape", a).shape


def ndim(a: Any) -> int:
    """numpy.ndim."""
    return a_field("ndim", a).ndim


def size(a: Any, axis: Any = None) -> int:
    """numpy.size."""
    field = a_field("size", a)
    return field.size if axis is None else field.shape[numbered(axis, *of_field(field))]


def copy(a: Any, order: Any = "K", subok: bool = False) -> Field:
    """numpy.copy: the field itself, whose values do not change."""
    return a_field("copy", a)


def result_type(*arrays_and_dtypes: Any) -> DTypeName:
    """numpy.result_type: the common dtype of host algebra."""
    operands = []
    for arg in arrays_and_dtypes:
        numeric = isinstance(arg, (Field, bool, int, float, complex, np.generic))
        operands.append(arg if numeric else Field(np.zeros((), dtype_name(arg))))
    return dtype_name(common_dtype(operands))


# --- axes -----------------------------------------------------------------------------------------------------------------


def matrix_transpose(x: Any, /) -> Field:
    """numpy.matrix_transpose."""
    field = a_field("matrix_transpose", x)
    if field.ndim < 2:
        raise SemanticError(f"matrix_transpose: a {field.type} field has no two axes")
    return swapaxes(field, -1, -2)


services.algebra["matrix_transpose"] = matrix_transpose


def with_tensor_order(field: Field, tensor_order: Any) -> Field:
    """Return the field with its last axes as tensor axes."""
    order, axes = whole_number(tensor_order, "a tensor_order"), axes_of(field.type)
    if not 0 <= order <= len(axes):
        raise SemanticError(
            f"a {field.type} field has {len(axes)} axes, so its tensor_order is 0 to {len(axes)}, not {order}"
        )
    split = len(axes) - order
    return reshaped("field", field, [Axis(axis.extent, n >= split, axis.name) for n, axis in enumerate(axes)])


services.algebra["with_tensor_order"] = with_tensor_order


def rollaxis(a: Any, axis: Any, start: Any = 0) -> Field:
    """numpy.rollaxis."""
    field = a_field("rollaxis", a)
    count, of = of_field(field)
    n, before = numbered(axis, count, of), whole_number(start, "`start` of rollaxis")
    if not -count <= before <= count:
        raise SemanticError(f"rollaxis: a start of {before} is not among the {count} axes of {of}")
    before += count if before < 0 else 0
    return moveaxis(field, n, before - 1 if n < before else before)


def _at_least(name: str, count: int, arys: Sequence[Any]) -> Any:
    fields = tuple(at_least(a_field(name, a), count) for a in arys)
    return fields[0] if len(fields) == 1 else fields


def atleast_1d(*arys: Any) -> Any:
    """numpy.atleast_1d."""
    return _at_least("atleast_1d", 1, arys)


def atleast_2d(*arys: Any) -> Any:
    """numpy.atleast_2d."""
    return _at_least("atleast_2d", 2, arys)


def atleast_3d(*arys: Any) -> Any:
    """numpy.atleast_3d."""
    return _at_least("atleast_3d", 3, arys)


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Field, ...]:
    """numpy.broadcast_arrays."""
    fields = [a_field("broadcast_arrays", a) for a in args]
    try:
        common = np.broadcast_shapes(*(f.shape for f in fields))
    except ValueError:
        listed = " and ".join(dict.fromkeys(str(f.type) for f in fields))
        raise SemanticError(f"broadcast_arrays: {listed} fields do not broadcast") from None
    return tuple(spread("broadcast_arrays", f, common) for f in fields)


# --- parts ----------------------------------------------------------------------------------------------------------------


def hsplit(ary: Any, indices_or_sections: Any) -> list[Field]:
    """numpy.hsplit."""
    return _split_along("hsplit", ary, indices_or_sections, 1, 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Field]:
    """numpy.vsplit."""
    return _split_along("vsplit", ary, indices_or_sections, 0, 2)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Field]:
    """numpy.dsplit."""
    return _split_along("dsplit", ary, indices_or_sections, 2, 3)


def _split_along(name: str, ary: Any, parts: Any, axis: int, least: int) -> list[Field]:
    field = a_field(name, ary)
    if field.ndim < least:
        raise SemanticError(f"{name} takes fields of {least} axes or more, not a {field.type} one")
    return split(field, parts, min(axis, field.ndim - 1))


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Field, ...]:
    """numpy.unstack."""
    field = a_field("unstack", x)
    if not field.ndim:
        raise SemanticError("unstack: a field of one number has no axis")
    n = numbered(axis, *of_field(field))
    return tuple(sliced(field, (*(slice(None),) * n, at)) for at in range(field.shape[n]))


def column_stack(tup: Any) -> Field:
    """numpy.column_stack: rows become columns."""
    fields = [a_field("column_stack", f) for f in tup]
    return concatenate([reshaped("column_stack", f, [Axis(f.size), Axis(1)]) if f.ndim < 2 else f for f in fields], 1)


def append(arr: Any, values: Any, axis: Any = None) -> Field:
    """numpy.append."""
    fields = [f if isinstance(f, Field) else Field(f) for f in (arr, values)]
    return concatenate([ravel(f) for f in fields] if axis is None else fields, 0 if axis is None else axis)


def delete(arr: Any, obj: Any, axis: Any = None) -> Field:
    """numpy.delete; the deleted indices are known at the call."""
    field = a_field("delete", arr)
    field, axis = (ravel(field), 0) if axis is None else (field, axis)
    n = numbered(axis, *of_field(field))
    if isinstance(obj, Field):
        raise SemanticError(
            "delete: indices are integers or a slice, not a Field, because they determine the shape of the result"
        )
    try:
        left = np.delete(np.arange(field.shape[n]), obj)
    except (IndexError, ValueError) as wrong:
        raise SemanticError(f"delete: {wrong}") from None
    return services.array_functions["take"]("take", (field, left, n), {})  # type: ignore[no-any-return]


# --- triangles ------------------------------------------------------------------------------------------------------------


def tril(m: Any, k: Any = 0) -> Field:
    """numpy.tril."""
    return _triangle("tril", m, k, lambda below: below >= 0)


def triu(m: Any, k: Any = 0) -> Field:
    """numpy.triu."""
    return _triangle("triu", m, k, lambda below: below <= 0)


def _triangle(name: str, m: Any, diagonal: Any, stays: Any) -> Field:
    """Return values by their distance from a diagonal; zeros elsewhere."""
    field, shift = a_field(name, m), whole_number(diagonal, "`k`, a number of a diagonal,")
    if not field.ndim:
        raise SemanticError(f"{name}: a {field.type} field has no axes")
    if field.ndim == 1:  # a row for each of its values, as in NumPy
        field = spread(name, field, (field.size, field.size))
    rows, columns = field.type.array_shape[-2:]
    shift = max(-rows, min(shift, columns))  # the offset may be of any size, and kernels have ints

    def value(at: Place, read: Reading) -> Any:
        own, chosen = read.at(field, at), stays(at[-2] - at[-1] + shift)
        if isinstance(chosen, bool):
            return own if chosen else own * 0
        return dsl._where(chosen, own, dsl._convert(0, own.type.dtype.name))

    return gathered(name, field.type, [field], value, (name, shift), not field.tensor_shape)
