"""Reductions and scans with any function of two values, by whole fields: part of an axis with another.

Reduction kernels have one number for each thread, and a complex number, or a value with its tangent, is two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gpuop.dsl.fields.field import Field
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.layout.axes import axes_of, type_of
from gpuop.ops.layout.join import concatenate
from gpuop.ops.layout.layouts import reshaped

Operation = Callable[[Field, Field], Field]  # combines two fields, point by point
Fields = tuple[Field, ...]  # of one shape
Joint = Callable[[Fields, Fields], Fields]  # the same of several


def halved(name: str, field: Field, axes: Sequence[int], operation: Operation, neutral: complex) -> Field:
    """Reduce the values along axes: one half of each axis with the other, until one point is left."""
    if not math.prod(field.shape[n] for n in axes):
        left = [at for n, at in enumerate(axes_of(field.type)) if n not in axes]
        return filled(type_of(name, left, field.dtype), neutral)
    return halved_together(name, (field,), axes, lambda a, b: (operation(a[0], b[0]),))[0]


def halved_together(name: str, fields: Fields, axes: Sequence[int], operation: Joint) -> Fields:
    """The same of several fields at once, of axes that are not empty."""
    left = [at for n, at in enumerate(axes_of(fields[0].type)) if n not in axes]
    for n in axes:
        before, last = (slice(None),) * n, None
        while (extent := fields[0].shape[n]) > 1:
            half = extent // 2
            if extent % 2:
                end = _cut(fields, (*before, slice(extent - 1, None)))
                last = end if last is None else operation(end, last)
            fields = operation(_cut(fields, (*before, slice(half))), _cut(fields, (*before, slice(half, 2 * half))))
        fields = fields if last is None else operation(fields, last)
    return tuple(reshaped(name, field, left) for field in fields)


def doubled(field: Field, axis: int, operation: Operation, neutral: complex, inclusive: bool = True) -> Field:
    """Scan the values along an axis: with those one place before, two, four, and so on."""
    (field,) = doubled_together((field,), axis, lambda a, b: (operation(a[0], b[0]),))
    if inclusive:
        return field
    kind = axes_of(field.type)
    kind[axis] = type(kind[axis])(1, kind[axis].tensor)
    first = field[(*((slice(None),) * axis), slice(field.shape[axis] - 1))]
    return concatenate([filled(type_of("scan", kind, field.dtype), neutral), first], axis)


def doubled_together(fields: Fields, axis: int, operation: Joint) -> Fields:
    """The same of several fields at once."""
    before, extent, step = (slice(None),) * axis, fields[0].shape[axis], 1
    while step < extent:
        both = operation(_cut(fields, (*before, slice(extent - step))), _cut(fields, (*before, slice(step, None))))
        first = _cut(fields, (*before, slice(step)))
        fields = tuple(concatenate([a, b], axis) for a, b in zip(first, both, strict=True))
        step *= 2
    return fields


def _cut(fields: Fields, index: Any) -> Fields:
    return tuple(field[index] for field in fields)
