"""The operands of host algebra, their common grid, and messages for what it does not take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import Parameter
from gpuop.dsl.fields.from_arrays import NUMERIC, Placeholder, is_dtyped, numbers, numbers_outside
from gpuop.dsl.recorder.value import NUMBERS
from gpuop.ops.layout.layouts import grids_spread

Operand = Any  # a Field or a number


def beside(name: str, operands: Sequence[Operand]) -> tuple[Operand, ...]:
    """Return the operands on one grid; arrays, lists and tuples with the shape of a field or of its tensors become Fields."""
    fields = [o for o in operands if isinstance(o, Field)]
    sides = [_as_operand(o, fields) if isinstance(o, (np.ndarray, list, tuple)) else o for o in operands]
    _check(name, sides)
    return tuple(grids_spread(name, sides))


def _as_operand(value: Operand, fields: Sequence[Field]) -> Operand:
    """Return an array of a tensor's shape as one for every point, and one that broadcasts to a field's shape as a Field."""
    shape = _shape(value)
    if shape in {tuple(f.tensor_shape) for f in fields} - {()}:
        dtype = wide_dtype(value, fields)
        return _unnamed(Parameter(value if dtype is None else np.asarray(value, dtype)))
    for f in fields:
        if f.field_shape and shape and (tuple(f.type.array_shape) == shape or _stretches(value, shape, f)):
            grid = len(shape) - len(f.tensor_shape)
            dtype = wide_dtype(value, fields)
            if shape[grid:] == tuple(f.tensor_shape):
                return _unnamed(Field(value, len(f.tensor_shape), dtype))
            return _unnamed(Field(np.reshape(value, shape[:grid]), 0))
    return value


def wide_dtype(value: Operand, fields: Sequence[Field]) -> str | None:
    """Return the dtype that a list of numbers has beside fields of 64 bits; None: its own."""
    if is_dtyped(value):
        return None
    array, dtypes = numbers(value), {str(f.dtype) for f in fields}
    if array.dtype.kind in "fc":
        return {"f": "float64", "c": "complex128"}[array.dtype.kind] if dtypes & {"float64", "complex128"} else None
    fits = "int64" in dtypes and array.dtype.kind in "iuO" and not numbers_outside(array, "int64").size
    return "int64" if fits else None


def _stretches(value: Operand, shape: tuple[int, ...], field: Field) -> bool:
    """Return whether an array has a number, or a tensor, for points of a field, by broadcasting rules."""
    whole, grid = tuple(field.type.array_shape), len(shape) - len(field.tensor_shape)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in NUMERIC or grid < 1 or len(shape) > len(whole):
        return False
    alike = all(n in (1, of) for n, of in zip(shape[::-1], whole[::-1], strict=False))
    return alike and (shape[grid:] == tuple(field.tensor_shape) or set(shape[grid:]) == {1})


def _shape(value: Operand) -> tuple[int, ...] | None:
    try:
        return np.shape(value)
    except ValueError:  # lists of several lengths
        return None


def _unnamed(field: Field) -> Field:
    field.name = ""  # it is no variable of the user
    return field


def _is_number(value: Operand) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in NUMERIC


def _check(name: str, operands: Sequence[Operand]) -> None:
    """Refuse operands that are neither fields nor numbers."""
    for o in operands:
        numeric = isinstance(o, (complex, *NUMBERS, np.complexfloating)) or _is_number(o)
        if numeric or isinstance(o, Field):
            continue
        raise SemanticError(
            f"{name} of a Field and {operand_description(o, [f for f in operands if isinstance(f, Field)])}"
        )


# --- messages for operands that host algebra does not take ------------------------------------------------------------


def operand_description(operand: Any, fields: Sequence[Field]) -> str:
    """Return a description of an operand beside fields, with the remedy."""
    advice = "wrap it in a Field (`gp.ScalarField(a)`)"
    if isinstance(operand, Placeholder):
        return f"an array argument of the pipeline: {advice}"
    kind = "an array" if isinstance(operand, np.ndarray) else described(operand)
    try:
        array = numbers(operand)
    except SemanticError:
        return f"{kind}: beside a Field are Fields and numbers"
    for tensor in {f.tensor_shape for f in fields} - {()}:
        if array.ndim == len(tensor):
            has, wants = ("×".join(map(str, shape)) for shape in (array.shape, tensor))
            return f"{kind} of {has} numbers: the Field's tensors have {wants}; give as many, or {advice}"
    every = "in a `gp.Parameter` if every point takes all of it"
    for f in fields:
        whole = tuple(f.type.array_shape)
        if not _stretch(array.shape, whole) and array.shape != tuple(f.field_shape):
            has, wants = ("×".join(map(str, shape)) for shape in (array.shape, whole))
            return (
                f"{kind} of shape {has}: the Field has {wants}, and counted from the last axis extents must be equal, or one "
                f"side 1; wrap it {every}"
            )
    return f"{kind}: {advice}, or {every}"


def _stretch(*shapes: tuple[int, ...]) -> bool:
    """Return whether arrays of these shapes broadcast to one."""
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def refuse_negative(exponent: Any) -> None:
    """Refuse integer powers that NumPy refuses, if the exponents are known."""
    least = np.min(exponent)
    if least < 0:
        raise SemanticError(
            f"power: integers to negative integer powers are not allowed; a float exponent, as {float(least)}, gives float32"
        )
