"""NumPy functions that permute or repeat the points of a field along its axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import BoundsError, SemanticError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import ScalarField
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.ir.axis_limit import most_points
from gpuop.ops.data_dependent_shapes import integers, on_device
from gpuop.ops.layout.axes import Axis, a_field, axes_of, numbered, of_field, several, type_of, whole_number
from gpuop.ops.layout.gather import Place, Reading, apart, flat, gathered
from gpuop.ops.layout.join import parts_of
from gpuop.ops.layout.layouts import ravel, reshape, reshaped, swapaxes
from gpuop.ops.layout.slicing import sliced


@dataclass(frozen=True)
class AlongAxis:
    """The places along an axis that the points of a result are read from.

    Attributes:
        count: the extent of the result.
        place: maps a coordinate of the result to one of the field, for grid axes.
        numbers: the same for all coordinates of a tensor axis, in NumPy.
    """

    count: int
    place: Callable[[Any], Any]
    numbers: Callable[[Numbers], Numbers]

    def tensor_place(self, at: Any, extent: int) -> Any:
        """Return the coordinate on a tensor axis: an integer, or a lookup in a table."""
        table = self.numbers(np.arange(extent, dtype=np.int32))
        return int(table[at]) if isinstance(at, int) else k._constantArray(table.astype(np.int32))[at]


def along(
    name: str,
    field: Field,
    axes: Mapping[int, AlongAxis],
    key: Any,
    border: Any = "unchecked",
    tables: Sequence[Field] = (),
) -> Field:
    """Return a field that is read elsewhere along some axes; the others are read at own coordinates."""
    own, grid = axes_of(field.type), len(field.field_shape)
    out = type_of(
        name, [Axis(axes[n].count, at.tensor, at.name) if n in axes else at for n, at in enumerate(own)], field.dtype
    )

    def value(at: Place, read: Reading) -> Any:
        place = list(at)
        for n, axis in axes.items():
            place[n] = axis.tensor_place(at[n], own[n].extent) if n >= grid else axis.place(at[n])
        return read.at(field, place, border)

    return gathered(name, out, [field, *tables], value, key, all(n < grid for n in axes))


# --- turned -----------------------------------------------------------------------------------------------------------


def flip(m: Any, axis: Any = None) -> Field:
    """numpy.flip."""
    return _flipped(a_field("flip", m), axis)


def _flipped(field: Field, axis: Any) -> Field:
    count, of = of_field(field)
    turned = range(count) if axis is None else several(axis, count, of)
    return sliced(field, tuple(slice(None, None, -1 if n in turned else 1) for n in range(count)))


def flipud(m: Any) -> Field:
    """numpy.flipud."""
    return _flipped(a_field("flipud", m), 0)


def fliplr(m: Any) -> Field:
    """numpy.fliplr."""
    return _flipped(a_field("fliplr", m), 1)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Field:
    """numpy.rot90."""
    field = a_field("rot90", m)
    turns = whole_number(k, "`k`, a number of quarter turns,") % 4
    plane = several(axes, *of_field(field))
    if len(plane) != 2:
        raise SemanticError(f"rot90: a plane has two axes, not {len(plane)}")
    if turns == 2:
        return _flipped(field, tuple(plane))
    if turns == 0:
        return field
    return _flipped(swapaxes(field, *plane), plane[0] if turns == 1 else plane[1])


# --- repeated -----------------------------------------------------------------------------------------------------------


def repeat(a: Any, repeats: Any, axis: Any = None) -> Field:
    """numpy.repeat; the counts are known at the call."""
    field = a_field("repeat", a)
    if axis is None:
        field, axis = ravel(field), 0
    n = numbered(axis, *of_field(field))
    extent = field.type.array_shape[n]
    counts = _counts(repeats)
    if counts.size == 1:
        times = int(counts[0])
        each = AlongAxis(extent * times, lambda at: at / times, lambda numbers: np.repeat(numbers, times))
        return field if times == 1 else along("repeat", field, {n: each}, (n, times))
    if counts.size != extent:
        raise SemanticError(
            f"repeat: {counts.size} counts for axis {n}, which has {extent} points: give as many, or one"
        )
    return _points_at("repeat", field, n, np.repeat(np.arange(extent), counts))


def _counts(repeats: Any) -> Numbers:
    if isinstance(repeats, Field):
        raise SemanticError(
            "repeat: counts are an integer or a list, not a Field, because they determine the shape of the result"
        )
    counts = np.atleast_1d(np.asarray(repeats))
    if not counts.size:
        return counts.astype(int)
    if counts.dtype.kind not in "iu" or counts.ndim > 1 or (counts.size and counts.min() < 0):
        raise SemanticError(f"repeat: counts are integers of 0 or more, not {repeats!r}")
    return counts


def tile(A: Any, reps: Any) -> Field:
    """numpy.tile."""
    field = a_field("tile", A)
    counts = [whole_number(n, "a number of tiles") for n in (reps if isinstance(reps, (tuple, list)) else (reps,))]
    if min(counts, default=1) < 0:
        raise SemanticError(f"tile: numbers of tiles are 0 or more, not {reps!r}")
    axes = axes_of(field.type)
    field = reshaped("tile", field, [*[Axis(1)] * (len(counts) - len(axes)), *axes])
    shape = field.type.array_shape
    counts = [1] * (len(shape) - len(counts)) + counts

    def tiled(extent: int, times: int) -> AlongAxis:
        return AlongAxis(extent * times, lambda at: at % extent, lambda numbers: np.tile(numbers, times))

    rows = {n: tiled(shape[n], times) for n, times in enumerate(counts) if times != 1}
    return along("tile", field, rows, tuple(counts)) if rows else field


# --- chosen -----------------------------------------------------------------------------------------------------------


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Field:
    """numpy.take; indices in a Field are looked up on the device; with `mode="raise"` they are evaluated first."""
    field = a_field("take", a)
    if out is not None or mode not in ("raise", "clip", "wrap"):
        raise SemanticError('take: `mode` is "raise", "clip" or "wrap", and there is no `out`')
    if axis is None and is_too_long(field):
        return _take_flat_indices(field, indices, mode)
    if axis is None:
        field, axis = ravel(field), 0
    n = numbered(axis, *of_field(field))
    if isinstance(indices, Field):
        return _looked_up(field, indices, n, mode)
    return _take_known(field, n, _numbers(indices), mode)


def _numbers(indices: Any) -> Numbers:
    numbers = np.asarray(indices)
    if numbers.dtype.kind not in "iu" and numbers.size:
        raise SemanticError(f"take: indices are integers, not {numbers.dtype.name}; `np.where(mask, a, b)` takes masks")
    return numbers


def _take_flat_indices(field: Field, indices: Any, mode: str) -> Field:
    """Return values by flat index, from more values than an axis may have."""
    extent = field.type.array_shape.points
    if not isinstance(indices, Field):
        return take_flat(field, _inside(_numbers(indices), 0, extent, mode))
    _check_indices(indices)
    if mode == "raise" and indices.field_shape.points:
        indices, mode = _within(indices, 0, extent), "wrap"
    wide = indices if indices.dtype == "uint64" else indices.astype("int64")
    return take_flat(field, np.clip(wide, 0, extent - 1) if mode == "clip" else wide % extent)


def _inside(indices: Numbers, axis: int, extent: int, mode: str) -> Numbers:
    """Return known indices as indices from the start; BoundsError if one is outside and the mode is "raise"."""
    outside = (indices < -extent) | (indices >= extent)
    if mode == "raise" and outside.any():
        raise BoundsError(f"take: index {indices[outside][0]} is out of bounds for axis {axis} with size {extent}")
    wide = indices if indices.dtype == np.uint64 else indices.astype(np.int64)
    return np.clip(wide, 0, extent - 1) if mode == "clip" else wide % max(extent, 1)


def _take_known(field: Field, axis: int, indices: Numbers, mode: str) -> Field:
    extent = field.type.array_shape[axis]
    if not extent and indices.size:
        raise SemanticError(f"take: axis {axis} of a {field.type} field is empty")
    inside = _inside(indices, axis, extent, mode)
    return _axis_split(_points_at("take", field, axis, inside.ravel().astype(np.int64)), axis, indices.shape)


def _points_at(name: str, field: Field, axis: int, numbers: Numbers) -> Field:
    """Return the points with these indices along an axis."""
    if axis >= len(field.field_shape):
        chosen = tuple(numbers.tolist())
        row = AlongAxis(len(chosen), lambda at: at, lambda all_of_them: all_of_them[numbers])
        return along(name, field, {axis: row}, (axis, chosen))
    if (even := _slice_of(numbers)) is not None:
        return sliced(field, (*[slice(None)] * axis, even))
    few = field.type.array_shape[axis] <= 1 << 16  # the range of the indices lets kernels compute offsets in ints
    return _by_table(name, field, axis, ScalarField(numbers.astype(np.uint16 if few else np.int32)), "unchecked")


def _slice_of(numbers: Numbers) -> slice | None:
    """Return the slice with these indices, if they are equally spaced."""
    steps = np.diff(numbers)
    if not steps.size or steps[0] == 0 or (steps != steps[0]).any():
        return None
    first, step = int(numbers[0]), int(steps[0])
    stop = first + step * len(numbers)
    return slice(first, None if stop < 0 else stop, step)


def _by_table(name: str, field: Field, axis: int, table: Field, border: str) -> Field:
    row = AlongAxis(
        table.field_shape.points, lambda at: k._readTensor(table, at, border="unchecked"), lambda numbers: numbers
    )
    return along(name, field, {axis: row}, (axis, border), border, [table])


def _looked_up(field: Field, indices: Field, axis: int, mode: str) -> Field:
    """Return the points with the indices in a field of scalars."""
    _check_indices(indices)
    if axis >= len(field.field_shape):
        raise SemanticError(
            f"take: axis {axis} of a {field.type} field is a tensor axis: its indices are Python integers"
        )
    extent = field.type.array_shape[axis]
    if not extent and indices.field_shape.points:
        raise SemanticError(f"take: axis {axis} of a {field.type} field is empty")
    if mode == "raise" and indices.field_shape.points:
        indices, mode = _within(indices, axis, extent), "wrap"
    if mode == "wrap" and extent and indices.dtype in ("uint32", "int64", "uint64"):  # coordinates are int
        indices = (indices % extent).astype("int32")
    result = _by_table("take", field, axis, reshape(indices, -1), "clamp" if mode == "clip" else "wrap")
    return _axis_split(result, axis, indices.field_shape)


def _check_indices(indices: Field) -> None:
    if np.dtype(indices.type.array_dtype).kind not in "iu" or indices.dtype == "unorm8" or indices.tensor_shape:
        raise SemanticError(f"take: indices are integers, not a {indices.type} field")


def _within(indices: Field, axis: int, extent: int) -> Field:
    """Return indices after a bounds check.

    Raises:
        BoundsError: one is outside.
        SemanticError: they have no values yet.
    """
    indices = on_device(
        "take", 'say `mode="clip"` or `mode="wrap"`', indices, "whether a Field's indices are within bounds"
    )
    for result in integers(indices.min(), indices.max()):
        if not -extent <= result < extent:
            raise BoundsError(f"take: index {result} is out of bounds for axis {axis} with size {extent}")
    return indices


def _axis_split(field: Field, axis: int, shape: Sequence[int]) -> Field:
    """Split an axis into several, or remove it."""
    axes = axes_of(field.type)
    axes[axis : axis + 1] = [Axis(n, axes[axis].tensor, axes[axis].name) for n in shape]
    return reshaped("take", field, axes)


# --- long rows --------------------------------------------------------------------------------------------------------
# Functions of all values in row-major order, for fields with more values than an axis may have: indices are longs.


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


# --- numpy.roll: cyclic shifts along axes -----------------------------------------------------------------------------


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
