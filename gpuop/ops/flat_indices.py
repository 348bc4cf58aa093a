"""Functions of all values in row-major order, for fields with more values than an axis may have: indices are longs."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import ScalarField
from gpuop.ir.axis_limit import most_points
from gpuop.ops.layout.axes import Axis, type_of
from gpuop.ops.layout.gather import Place, Reading, apart, flat, gathered


def is_too_long(field: Field) -> bool:
    """Return whether a field has more values than an axis may have, so that no grid of one dimension holds them."""
    return field.type.array_shape.points > most_points()


def rolled_in_a_row(field: Field, shift: int) -> Field:
    """Return the field with each value moved by some places in row-major order, cyclically."""
    shape, count = field.type.array_shape, field.type.array_shape.points
    cut = shift % count

    def value(at: Place, read: Reading) -> Any:
        number = k._convert_long(flat(at, shape))
        return read.at(field, apart(k._where(number < cut, number + (count - cut), number - cut), shape))

    return gathered("roll", field.type, [field], value, ("flat", cut)) if cut else field


def take_flat(field: Field, numbers: Field | np.ndarray[Any, Any]) -> Field:
    """Return the values at flat indices, which are inside; a field of scalars with the axes of the indices."""
    places = numbers if isinstance(numbers, Field) else ScalarField(numbers.astype(np.int64))
    shape = field.type.array_shape

    def value(at: Place, read: Reading) -> Any:
        number = k._convert_long(k._readTensor(places, *at[: len(places.field_shape)], border="unchecked"))
        return read.at(field, apart(number, shape))

    out = type_of("take", [Axis(n) for n in places.field_shape], field.dtype)
    return gathered("take", out, [field, places], value, "flat")
