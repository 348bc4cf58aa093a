"""Reductions and scans of complex fields with any function of two values, by whole fields: part of an axis with another.

Reduction kernels have one number for each thread, and a complex number is two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gpuop.dsl.fields.field import Field
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.layout.axes import axes_of, type_of
from gpuop.ops.layout.join import concatenate
from gpuop.ops.layout.layouts import reshaped

Operation = Callable[[Field, Field], Field]  # combines two fields, point by point


def halved(name: str, field: Field, axes: Sequence[int], operation: Operation, neutral: complex) -> Field:
    """Reduce the values along axes: one half of each axis with the other, until one point is left."""
    left = [at for n, at in enumerate(axes_of(field.type)) if n not in axes]
    if not math.prod(field.shape[n] for n in axes):
        return filled(type_of(name, left, field.dtype), neutral)
    for n in axes:
        before, last = (slice(None),) * n, None
        while (extent := field.shape[n]) > 1:
            half = extent // 2
            if extent % 2:
                end = field[(*before, slice(extent - 1, None))]
                last = end if last is None else operation(end, last)
            field = operation(field[(*before, slice(half))], field[(*before, slice(half, 2 * half))])
        field = field if last is None else operation(field, last)
    return reshaped(name, field, left)


def doubled(field: Field, axis: int, operation: Operation, neutral: complex, inclusive: bool = True) -> Field:
    """Scan the values along an axis: with those one place before, two, four, and so on."""
    before, extent, step = (slice(None),) * axis, field.shape[axis], 1

    def first(count: int) -> Field:
        return field[(*before, slice(count))]

    while step < extent:
        both = operation(first(extent - step), field[(*before, slice(step, None))])
        field, step = concatenate([first(step), both], axis), 2 * step
    if inclusive:
        return field
    kind = axes_of(field.type)
    kind[axis] = type(kind[axis])(1, kind[axis].tensor)
    return concatenate([filled(type_of("scan", kind, field.dtype), neutral), first(extent - 1)], axis)
