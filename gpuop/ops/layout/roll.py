"""numpy.roll: cyclic shifts along axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.ops.flat_indices import is_too_long, rolled_in_a_row
from gpuop.ops.layout.axes import a_field, axes_of, numbered, of_field, whole_number
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.layout.join import parts_of
from gpuop.ops.layout.layouts import ravel, reshaped
from gpuop.ops.layout.reorder import AlongAxis, along

NEAR = 64  # points: for shorter shifts few vectors of a row cross its end


def roll(a: Any, shift: Any, axis: Any = None) -> Field:
    """numpy.roll."""
    field = a_field("roll", a)
    if axis is None:
        if is_too_long(field):
            return rolled_in_a_row(field, sum(_shifts(shift)))
        flat = ravel(field)
        rolled = _rolled(flat, {0: sum(_shifts(shift))})
        return field if rolled is flat else reshaped("reshape", rolled, axes_of(field.type))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = _shifts(shift)
    if 1 not in (len(axes), len(shifts)) and len(axes) != len(shifts):
        raise SemanticError(f"roll: {len(shifts)} shifts along {len(axes)} axes: give as many of both, or one")
    total: dict[int, int] = {}
    for n in range(max(len(axes), len(shifts))):
        at = numbered(axes[n % len(axes)], *of_field(field))
        total[at] = total.get(at, 0) + shifts[n % len(shifts)]
    return _rolled(field, total)


def _shifts(shift: Any) -> list[int]:
    return [whole_number(s, "a shift") for s in (shift if isinstance(shift, (tuple, list)) else (shift,))]


def _rolled(field: Field, shifts: Mapping[int, int]) -> Field:
    """Roll in the shorter direction, so that the points read are near."""
    shape, steps = field.type.array_shape, dict[int, int]()
    for axis, shift in shifts.items():
        step = shift % max(shape[axis], 1)
        if step:
            steps[axis] = step if step <= shape[axis] // 2 else step - shape[axis]
    if not steps:
        return field

    def moved(axis: int, step: int) -> AlongAxis:
        return AlongAxis(shape[axis], lambda at: at - step, lambda numbers: np.roll(numbers, step))

    rows = {axis: moved(axis, step) for axis, step in steps.items()}
    if abs(steps.get(len(field.field_shape) - 1, 0)) > NEAR:
        return _halves_exchanged(field, rows, steps)
    return along("roll", field, rows, tuple(steps.items()), border="wrap")


def _halves_exchanged(field: Field, rows: Mapping[int, AlongAxis], steps: Mapping[int, int]) -> Field:
    """Roll along the last axis and others: a row is two parts, so that few vectors are assembled from elements."""
    grid, shape = len(field.field_shape), field.type.array_shape
    cuts = {n: step % shape[n] for n, step in steps.items()}

    def value(at: Place, read: Reading) -> Any:
        place = list(at)
        for n in range(len(at)):
            if n >= grid and n in rows:
                place[n] = rows[n].tensor_place(at[n], shape[n])
            elif n in cuts and n != grid - 1:
                place[n] = at[n] + k._where(at[n] < cuts[n], shape[n] - cuts[n], -cuts[n])

        def there(part: int) -> Any:
            place[grid - 1] = at[grid - 1] + (-cuts[grid - 1] if part else shape[grid - 1] - cuts[grid - 1])
            return read.at(field, place)

        return parts_of(at[grid - 1], (cuts[grid - 1], shape[grid - 1]), there, field, read)

    return gathered("roll", field.type, [field], value, tuple(steps.items()), all(n < grid for n in rows))
