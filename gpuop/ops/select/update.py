"""Fields with an updated part."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import gpuop.dsl as k
from gpuop.base.errors import SemanticError
from gpuop.base.misspelt import hinted
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import host_array
from gpuop.dsl.recorder.fill_values import fill_of, numeric
from gpuop.ops.layout.axes import a_field
from gpuop.ops.layout.gather import OWN, Place, Reading, gathered
from gpuop.ops.layout.slicing import Cut, FieldIndex, index_of


@hinted
def updated(field: Any, index: Any, values: Any) -> Field:
    """A field with other values at the places that an index names, as `array[index] = values` would have them.

    Args:
        field: a Field, which stays as it is.
        index: as of `field[index]`: integers, slices and `...`, as `np.s_[2:5, ::2]` writes them.
        values: a number, or a Field or array that broadcasts to what `field[index]` has, converted as `.astype` does.

    Returns:
        A lazy Field of the same type. A graph's state that is updated by it stays where it is in memory.

    Raises:
        SemanticError: an index that `field[index]` refuses, a number that the dtype does not hold, or values of another shape.
    """
    target = a_field("updated", field)
    result = index_of(target, index)
    kind = target.type
    source = None if numeric(values) else _beside(target, result, values)
    if source is None:
        fill_of(kind, values, "values")
    if 0 in (cut.count for cut in result.cuts):
        return target
    whole = result.whole(kind) and (source is None or source.tensor_shape == kind.tensor_shape)
    key = (result, None if source is not None else (type(values).__name__, repr(values)))

    def new(at: Place, read: Reading) -> Any:
        if source is None:
            return read.number(values, kind)
        there, shape = result.among(at), source.field_shape if whole else source.type.array_shape
        aligned = [*[0] * len(shape), *there][len(there) :]
        return read.at(source, [0 if n == 1 else c for c, n in zip(aligned, shape, strict=True)])

    value = _either(target, result, new)
    return gathered("updated", kind, [target] if source is None else [target, source], value, key, whole)


def _either(target: Field, index: FieldIndex, new: Callable[[Place, Reading], Any]) -> Callable[[Place, Reading], Any]:
    """Return the new value where the index selects the place, elsewhere the field's value."""

    def value(at: Place, read: Reading) -> Any:
        axes = zip(index.cuts, at, target.type.array_shape, strict=False)
        tests = [test for axis in axes for test in _tests(*axis)]
        if any(test is False for test in tests):
            return read.at(target, at)
        unknown = [test for test in tests if test is not True]
        if not unknown:
            return new(at, read)
        result = k._var(read.at(target, at))
        with k._if(functools.reduce(operator.and_, unknown)):
            result.assign(new(at, read))
        return result

    return value


def _beside(target: Field, index: FieldIndex, values: Any) -> Field:
    """Return the values as a field of the target's dtype that broadcasts to the part."""
    if not isinstance(values, Field):
        array = host_array(values, target.dtype)
        values = Field(array, max(0, array.ndim - max(len(OWN), len(target.field_shape))))
    part = tuple(axis.extent for axis in index.axes(target.type))
    shape = tuple(values.type.array_shape)
    within = shape[max(0, len(shape) - len(part)) :]
    surplus = shape[: len(shape) - len(within)]
    if any(n not in (1, m) for n, m in zip(within, part[len(part) - len(within) :], strict=True)) or surplus.count(
        1
    ) < len(surplus):
        raise SemanticError(f"updated: values of shape {shape} do not broadcast to {part}, the shape of this part")
    source: Field = values.astype(target.dtype)
    return source


def _tests(cut: Cut, at: Any, extent: int) -> list[Any]:
    """Return conditions for the coordinates in a slice: values of the kernel, or bools."""
    if cut.count is None:
        return [at == cut.start]
    if cut == Cut(0, 1, extent):
        return []
    if cut.step == 1:
        ends = [at >= cut.start] if cut.start else []
        return [*ends, at < cut.start + cut.count] if cut.start + cut.count < extent else ends
    away = cut.away(at)
    return [away >= 0, away < cut.count * abs(cut.step), away % abs(cut.step) == 0]
