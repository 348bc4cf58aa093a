"""NumPy functions that change a field's axes: each place of the result is one place of the field."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError, SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.ops.layout.axes import Axis, Whose, a_field, axes_of, numbered, of_field, several, type_of, whole_number
from gpuop.ops.layout.gather import Place, Reading, apart, flat, gathered


def transpose(a: Any, axes: Any = None) -> Field:
    """numpy.transpose; a tensor axis that moves before a grid axis becomes a grid axis."""
    field = a_field("transpose", a)
    count, of = of_field(field)
    order = list(range(count))[::-1] if axes is None else several(axes, count, of)
    if len(order) != count:
        raise SemanticError(f"transpose: {len(order)} axes for {of}, which has {count} axes: give each of them once")
    return permuted("transpose", field, order)


def permuted(name: str, field: Field, order: Sequence[int]) -> Field:
    """Return the field with its axes in this order."""
    if list(order) == list(range(len(order))):
        return field
    grid, sizes = len(field.field_shape), axes_of(field.type)
    whole = list(order[grid:]) == list(range(grid, len(order)))

    def value(at: Place, read: Reading) -> Any:
        place = dict(zip(order, at, strict=False))
        return read.at(field, [place[axis] for axis in range(len(at))])

    out = type_of(name, [sizes[axis] for axis in order], field.dtype)
    return gathered(name, out, [field], value, tuple(order), whole)


def swapaxes(a: Any, axis1: int, axis2: int) -> Field:
    """numpy.swapaxes."""
    field = a_field("swapaxes", a)
    count, of = of_field(field)
    order = list(range(count))
    one, two = numbered(axis1, count, of), numbered(axis2, count, of)
    order[one], order[two] = order[two], order[one]
    return permuted("transpose", field, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Field:
    """numpy.moveaxis."""
    field = a_field("moveaxis", a)
    count, of = of_field(field)
    sources, targets = several(source, count, of), several(destination, count, of)
    if len(sources) != len(targets):
        raise SemanticError(f"moveaxis: {len(sources)} sources and {len(targets)} destinations: give as many of both")
    order = [axis for axis in range(count) if axis not in sources]
    for there, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(there, axis)
    return permuted("transpose", field, order)


# --- shapes -----------------------------------------------------------------------------------------------------------


def reshape(a: Any, shape: Any, order: str = "C") -> Field:
    """numpy.reshape, in row-major order; tensors stay tensors if the last axes of the shape are just theirs."""
    field = a_field("reshape", a)
    if order != "C":
        raise SemanticError(
            f'reshape: fields are in row-major order, `order="C"`, not {order!r}; transpose before and after'
        )
    sizes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    extents = _completed(field, [whole_number(n, "an extent") for n in sizes])
    first = _split(field, extents)
    names = _staying(axes_of(field.type), extents)
    return reshaped("reshape", field, [Axis(n, axis >= first, names[axis]) for axis, n in enumerate(extents)])


def _staying(old: Sequence[Axis], extents: Sequence[int]) -> list[str]:
    """Return the names of leading and trailing axes that a new shape leaves unchanged."""
    names, alike = [""] * len(extents), min(len(old), len(extents))
    before = next((n for n in range(alike) if old[n].extent != extents[n]), alike)
    behind = next((n for n in range(alike - before) if old[-1 - n].extent != extents[-1 - n]), alike - before)
    for n in (*range(before), *range(-behind, 0)):
        names[n] = old[n].name
    return names


def ravel(a: Any, order: str = "C") -> Field:
    """numpy.ravel: all values in a grid of one dimension."""
    return reshape(a_field("ravel", a), -1, order)


def _completed(field: Field, shape: list[int]) -> list[int]:
    """Return the shape, with -1 replaced."""
    count, points = field.type.array_shape.points, math.prod(n for n in shape if n != -1)
    unknown = shape.count(-1)
    if unknown == 1 and points and count % points == 0:
        shape = [count // points if n == -1 else n for n in shape]
    if -1 in shape or min(shape, default=0) < 0 or math.prod(shape) != count:
        raise ArgumentError(f"reshape: the {count} values of a {field.type} field do not fill the shape {tuple(shape)}")
    return shape


def _split(field: Field, shape: Sequence[int]) -> int:
    """Return the number of grid axes in a new shape: all, unless the last axes hold exactly a tensor."""
    tensor = field.tensor_shape
    if not tensor or tuple(shape[len(shape) - len(tensor) :]) == tuple(tensor):
        return len(shape) - len(tensor)
    for count in range(min(3, len(shape) + 1)):
        if math.prod(shape[len(shape) - count :]) == tensor.points:
            return len(shape) - count
    return len(shape)


def reshaped(name: str, field: Field, axes: Sequence[Axis]) -> Field:
    """Return the same values in row-major order, in these axes."""
    old = axes_of(field.type)
    if list(axes) == old:
        return field
    out = type_of(name, axes, field.dtype)
    whole = out.tensor_shape == field.tensor_shape and out.field_shape.points == field.field_shape.points

    def value(at: Place, read: Reading) -> Any:
        before = field.field_shape if whole else field.type.array_shape
        return read.at(field, regrouped(at, out.field_shape if whole else out.array_shape, before, is_open))

    is_open = field.node.dynamic
    return gathered(name, out, [field], value, (tuple(axes), is_open), whole)


def regrouped(at: Place, shape: Sequence[int], before: Sequence[int], bounded: bool = False) -> list[Any]:
    """Return the place in a shape that has the same flat index as a place in another shape, `bounded` as `apart` has it.

    Groups of axes with equal products are converted separately: most coordinates stay unchanged.
    """
    if 0 in shape:
        return [0] * len(before)
    place, i, j = list[Any](), 0, 0
    while i < len(shape) or j < len(before):
        first, start = i, j
        left, right = 1, 1
        while i == first or j == start or left != right:
            if (left <= right and i < len(shape)) or j == len(before):
                left, i = left * (shape[i] if i < len(shape) else 1), i + 1
            else:
                right, j = right * before[j], j + 1
            if i >= len(shape) and j >= len(before):
                break
        place += apart(flat(at[first:i], shape[first:i]), before[start:j], bounded)
    return place


def expand_dims(a: Any, axis: Any) -> Field:
    """numpy.expand_dims: new axes of extent 1, in the grid unless they come after a tensor axis."""
    field = a_field("expand_dims", a)
    axes = axes_of(field.type)
    count = len(axes) + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    new = several(axis, count, Whose(f"the result of expand_dims of a {field.type} field"))
    for n in sorted(new):
        axes.insert(n, Axis(1, any(before.tensor for before in axes[:n])))
    return reshaped("expand_dims", field, axes)


def squeeze(a: Any, axis: Any = None) -> Field:
    """numpy.squeeze."""
    field = a_field("squeeze", a)
    axes = axes_of(field.type)
    gone = [n for n, at in enumerate(axes) if at.extent == 1] if axis is None else several(axis, *of_field(field))
    for n in gone:
        if axes[n].extent != 1:
            raise ArgumentError(f"squeeze: axis {n} of a {field.type} field has extent {axes[n].extent}, not 1")
    return reshaped("squeeze", field, [at for n, at in enumerate(axes) if n not in gone])


# --- broadcasting -----------------------------------------------------------------------------------------------------


def broadcast_to(array: Any, shape: Any) -> Field:
    """numpy.broadcast_to: axes of extent 1 repeat, new ones come first."""
    field = a_field("broadcast_to", array)
    sizes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    return spread("broadcast_to", field, [whole_number(n, "an extent") for n in sizes])


def spread(name: str, field: Field, shape: Sequence[int]) -> Field:
    """Return the field broadcast to this shape."""
    axes = axes_of(field.type)
    new = len(shape) - len(axes)
    if (
        new < 0
        or any(axis.extent not in (1, n) for axis, n in zip(axes, shape[new:], strict=True))
        or min(shape, default=0) < 0
    ):
        raise ArgumentError(
            f"{name}: a {field.type} field has axes {tuple(field.type.array_shape)}, which do not broadcast to {tuple(shape)}: "
            "counted from the last, each is 1 or equal"
        )
    if not new and tuple(shape) == tuple(field.type.array_shape):
        return field
    tensors = [axis.tensor for axis in axes]
    names = ("",) * new + tuple(axis.name for axis in axes)
    out = type_of(name, [Axis(n, new <= a and tensors[a - new], names[a]) for a, n in enumerate(shape)], field.dtype)
    extents = [axis.extent for axis in axes]

    def value(at: Place, read: Reading) -> Any:
        return read.at(field, [0 if extents[a] == 1 else c for a, c in enumerate(at[new:])])

    return gathered("broadcast", out, [field], value, (new, *shape), out.tensor_shape == field.tensor_shape)


def grids_spread(name: str, operands: Sequence[Any]) -> list[Any]:
    """Return operands on one grid: other extents broadcast as in NumPy; numbers and 0D fields stay."""
    grids = list(dict.fromkeys(o.field_shape for o in operands if isinstance(o, Field) and o.field_shape))
    if len(grids) < 2:
        return list(operands)
    try:
        grid = np.broadcast_shapes(*grids)
    except ValueError:
        listed = " and ".join("×".join(map(str, shape)) for shape in grids)
        raise ArgumentError(
            f"{name}: the grids differ, {listed}; counted from the last axis, their extents must be equal, or one side 1"
            + "; `f[:, np.newaxis]` makes an axis of extent 1" * (len({len(shape) for shape in grids}) > 1)
        ) from None
    return [
        spread(name, o, (*grid, *o.tensor_shape)) if isinstance(o, Field) and o.field_shape else o for o in operands
    ]
