"""Extremes of labelled regions, and their positions."""

from __future__ import annotations

from typing import Any

from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields.field import Field
from gpuop.lib.ndimage.measure.host_results import is_lazy, measured
from gpuop.lib.ndimage.measure.label_groups import (
    LabelGroups,
    LabelIndex,
    extremes,
    index_of,
    positions,
    unravelled,
    values_of,
)
from gpuop.lib.ndimage.measure.statistics import as_tuples
from gpuop.ops.elementwise.algebra import where
from gpuop.ops.layout.join import stack
from gpuop.ops.layout.layouts import reshape


def minimum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.minimum: the minimum of each label, of the input's dtype; NaN comes last; 0 for absent labels.

    Args:
        input, labels, index: as in `sum_labels`.

    Returns:
        As `sum_labels`.

    Raises:
        ArgumentError, UnsupportedError: as in `sum_labels`; also if there are no points, a ValueError.
    """
    return measured(_values, input, labels, index_of(index), "minimum")


def maximum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.maximum: the maximum of each label, as `minimum`; NaN is greater than numbers."""
    return measured(_values, input, labels, index_of(index), "maximum")


def minimum_position(input: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.minimum_position: the position of each label's minimum, the first of equal ones.

    Returns:
        A tuple of numbers, for an array of numbers a list of tuples; for Fields an int64 Field with the coordinates along its last
        axis.
    """
    return as_tuples(measured(_places, input, labels, index_of(index), "minimum"), is_lazy(input, labels))


def maximum_position(input: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.maximum_position: the position of each label's maximum, as `minimum_position`."""
    return as_tuples(measured(_places, input, labels, index_of(index), "maximum"), is_lazy(input, labels))


def extrema(input: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.extrema: `minimum`, `maximum`, `minimum_position` and `maximum_position` as a tuple."""
    lazy = is_lazy(input, labels)
    low, high, *places = measured(_extrema, input, labels, index_of(index))
    return low, high, *(as_tuples(place, lazy) for place in places)


def _values(input: Field, labels: Field | None, index: LabelIndex, which: str) -> Field:
    groups = _groups(input, labels, index)
    ranks, present = extremes(groups, which)
    return groups.chosen(values_of(ranks, groups.values.type, which), 0, present)


def _places(input: Field, labels: Field | None, index: LabelIndex, which: str) -> Field:
    groups = _groups(input, labels, index)
    ranks, present = extremes(groups, which)
    return _coordinates(groups, positions(groups, ranks, which), present)


def _extrema(input: Field, labels: Field | None, index: LabelIndex) -> tuple[Field, ...]:
    groups = _groups(input, labels, index)
    found = {which: extremes(groups, which) for which in ("minimum", "maximum")}
    values = [groups.chosen(values_of(r, groups.values.type, which), 0, p) for which, (r, p) in found.items()]
    return *values, *(_coordinates(groups, positions(groups, r, which), p) for which, (r, p) in found.items())


def _groups(input: Field, labels: Field | None, index: LabelIndex) -> LabelGroups:
    if input.dtype == "complex64":
        raise UnsupportedError("Complex type not supported: complex numbers have no order")
    if not input.field_shape.points:
        raise ArgumentError(f"of no points ({input.type}) none is the least or the greatest one")
    return LabelGroups(input, labels, index)


def _coordinates(groups: LabelGroups, number: Field, present: Field) -> Field:
    """Return the coordinates of each group's point; 0 for absent groups."""
    number = where(present, number, 0)
    along = unravelled(number, groups.shape)
    made = stack(along, 1) if along else reshape(number, (groups.count, 1))[:, :0]
    return groups.chosen(made)
