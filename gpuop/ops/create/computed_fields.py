"""Fields of one number, or of one tensor, computed at their readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.base.misspelt import hinted
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import Parameter
from gpuop.dsl.fields.from_arrays import host_array
from gpuop.dsl.recorder.fill_values import fill_of
from gpuop.ir.build import number
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import FieldType
from gpuop.ops.layout.axes import a_field
from gpuop.ops.layout.gather import gathered
from gpuop.ops.layout.layouts import spread


@hinted
def zeros(shape: Any, dtype: Any = None) -> Field:
    """A field of zeros, made on the device where it is used.

    Args:
        shape: of the grid: an int or a tuple, or a FieldType.
        dtype: NumPy's, or its name; by default float32, or the FieldType's.

    Returns:
        A lazy Field: what reads it computes with the number, and memory is written only where it is a result.

    Raises:
        SemanticError: a shape or a dtype that fields cannot have.
    """
    return filled(_declared(shape, dtype, "float32"), 0)


@hinted
def ones(shape: Any, dtype: Any = None) -> Field:
    """A field of ones, as `gp.zeros`.

    Args:
        shape, dtype: as of `gp.zeros`.

    Returns:
        A lazy Field.

    Raises:
        SemanticError: a shape or a dtype that fields cannot have.
    """
    return filled(_declared(shape, dtype, "float32"), 1)


@hinted
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Field:
    """A field of one number, or of one tensor, as `gp.zeros`.

    Args:
        shape: as of `gp.zeros`.
        fill_value: a number; or an array-like of the tensor's shape, of which there is one at each point; or a Parameter of either,
            which the field follows.
        dtype: by default that of the value, int32 or float32 of Python's numbers, or the FieldType's.

    Returns:
        A lazy Field.

    Raises:
        SemanticError: a shape or a dtype that fields cannot have, or a number that the dtype does not hold.
    """
    if isinstance(fill_value, Parameter):
        return _of_tensor(fill_value, fill_value.type.array_shape, _declared(shape, dtype, fill_value.dtype))
    if isinstance(fill_value, Field):
        raise SemanticError(
            "full: the value is a number, an array or a Parameter, not a Field; `np.broadcast_to(f, shape)` spreads one"
        )
    if (dtype is not None or isinstance(shape, FieldType)) and number(fill_value) is not None:
        return filled(_declared(shape, dtype, None), fill_value)
    declared = shape.dtype if dtype is None and isinstance(shape, FieldType) else dtype
    value = host_array(fill_value, declared)
    kind = _declared(shape, dtype, value.dtype)
    if not value.ndim:
        return filled(kind, value[()] if isinstance(fill_value, (np.generic, np.ndarray)) else fill_value)
    return _of_tensor(Field(value, value.ndim), value.shape, kind)


def _of_tensor(value: Field, shape: Sequence[int], kind: FieldType) -> Field:
    """Return a field that has a tensor at each point."""
    kind = kind if kind.tensor_shape else kind.replace(tensor_shape=shape)
    if tuple(shape) != tuple(kind.tensor_shape):
        raise SemanticError(
            f"full: a value of shape {tuple(shape)} does not fill tensors of shape {tuple(kind.tensor_shape)}"
        )
    return spread("full", value.astype(kind.dtype), kind.array_shape)


def _declared(shape: Any, dtype: Any, otherwise: Any) -> FieldType:
    if isinstance(shape, FieldType):
        return shape if dtype is None else shape.replace(dtype=dtype)
    return FieldType(shape, (), otherwise if dtype is None else dtype)


def filled(kind: FieldType, value: Any) -> Field:
    """Return a field of one number; SemanticError if the dtype cannot represent it."""
    fill_of(kind, value, "fill_value")
    exact = number(value)
    constant = complex(value) if exact is None else exact
    key = (type(constant).__name__, repr(constant))
    return gathered(
        "full", kind, [], lambda _, read: read.number(constant, kind), key, kind.dtype not in COMPLEX_DTYPES
    )


def empty_like(prototype: Any, dtype: Any = None) -> Field:
    """numpy.empty_like: zeros."""
    return filled(_like("empty_like", prototype, dtype), 0)


def zeros_like(a: Any, dtype: Any = None) -> Field:
    """numpy.zeros_like."""
    return filled(_like("zeros_like", a, dtype), 0)


def ones_like(a: Any, dtype: Any = None) -> Field:
    """numpy.ones_like."""
    return filled(_like("ones_like", a, dtype), 1)


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> Field:
    """numpy.full_like."""
    kind = _like("full_like", a, dtype)
    return full(kind, fill_value, kind.dtype)


def _like(name: str, a: Any, dtype: Any) -> FieldType:
    kind = a_field(name, a).type
    return kind if dtype is None else kind.replace(dtype=dtype)
