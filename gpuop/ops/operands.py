"""The operands of host algebra: what stands beside a Field, and on which grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.kinds_of_field import Parameter
from gpuop.dsl.recorder.value import NUMBERS
from gpuop.errors import SemanticError
from gpuop.ops.layouts import grids_spread
from gpuop.ops.refused import told

Operand = Any  # a Field or a number


def beside(name: str, operands: Sequence[Operand]) -> tuple[Operand, ...]:
    """The operands, on one grid; arrays, lists and tuples are Fields where they have the shape of one, or of its tensors."""
    fields = [o for o in operands if isinstance(o, Field)]
    given = [_as_operand(o, fields) if isinstance(o, (np.ndarray, list, tuple)) else o for o in operands]
    _check(name, given)
    return tuple(grids_spread(name, given))


def _as_operand(value: Operand, fields: Sequence[Field]) -> Operand:
    """An array of the shape of a field's tensors is one for every point, one of a field's shape a Field."""
    shape = _shape(value)
    if shape in {tuple(f.tensor_shape) for f in fields} - {()}:
        return _unnamed(Parameter(value))
    alike = next((f for f in fields if f.field_shape and tuple(f.type.array_shape) == shape), None)
    return value if alike is None else _unnamed(Field(value, len(alike.tensor_shape)))


def _shape(value: Operand) -> tuple[int, ...] | None:
    try:
        return np.shape(value)
    except ValueError:  # lists of several lengths
        return None


def _unnamed(field: Field) -> Field:
    field.name = ""  # it is no variable of the user's
    return field


def _check(name: str, operands: Sequence[Operand]) -> None:
    """Refuse what is neither a field nor a number."""
    for o in operands:
        numeric = isinstance(o, (complex, *NUMBERS, np.complexfloating)) or (isinstance(o, np.ndarray) and o.ndim == 0)
        if numeric or isinstance(o, Field):
            continue
        tensors = {f.tensor_shape for f in operands if isinstance(f, Field)} - {()}
        raise SemanticError(f"{name} of a Field and {told(o, tensors)}")
