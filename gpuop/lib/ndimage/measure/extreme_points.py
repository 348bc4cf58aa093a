"""Extremes of labelled regions, and their positions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields.derivative_rules import with_rule
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.dtype_names import COMPLEX_DTYPES, HALVES
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.measure.host_results import is_lazy, measured
from gpuop.lib.ndimage.measure.label_groups import LabelGroups, LabelIndex, index_of
from gpuop.lib.ndimage.measure.statistics import as_tuples
from gpuop.ops.elementwise.algebra import apply, astype, where
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.layout.join import stack
from gpuop.ops.layout.layouts import ravel, reshape
from gpuop.ops.layout.reorder import take
from gpuop.ops.reduce.bins import Bins
from gpuop.ops.reduce.counting import weighed
from gpuop.ops.sort.keys import key_of, unsigned, value_of


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
    ranks, present = _extremes(groups, which)
    return groups.chosen(_values_of(groups, ranks, which), 0, present)


def _places(input: Field, labels: Field | None, index: LabelIndex, which: str) -> Field:
    groups = _groups(input, labels, index)
    ranks, present = _extremes(groups, which)
    return _coordinates(groups, _positions(groups, ranks, which), present)


def _extrema(input: Field, labels: Field | None, index: LabelIndex) -> tuple[Field, ...]:
    groups = _groups(input, labels, index)
    ends = {which: _extremes(groups, which) for which in ("minimum", "maximum")}
    values = [groups.chosen(_values_of(groups, r, which), 0, p) for which, (r, p) in ends.items()]
    return *values, *(_coordinates(groups, _positions(groups, r, which), p) for which, (r, p) in ends.items())


def _groups(input: Field, labels: Field | None, index: LabelIndex) -> LabelGroups:
    if input.dtype in COMPLEX_DTYPES:
        raise UnsupportedError("Complex type not supported: complex numbers have no order")
    if not input.field_shape.points:
        raise ArgumentError(f"a field without points ({input.type}) has no least and no greatest value")
    return LabelGroups(input, labels, index)


def _coordinates(groups: LabelGroups, number: Field, present: Field) -> Field:
    """Return the coordinates of each group's point; 0 for absent groups."""
    number = where(present, number, 0)
    along: list[Field] = []
    for n in reversed(groups.shape):
        along.insert(0, number % n)
        number = number // n
    return groups.chosen(stack(along, 1) if along else reshape(number, (groups.count, 1))[:, :0])


def _extremes(groups: LabelGroups, which: str) -> tuple[Field, Field]:
    """Return each group's extreme as an order-preserving key ("minimum": inverted), and whether the group has points.

    Threads read an extreme before they update it, because most values do not change it.
    """
    values, places = ravel(groups.values), ravel(groups.places)
    outs = (FieldType(groups.count, (), unsigned(values.type)), FieldType(groups.count, (), "bool"))

    def body() -> None:
        k._globalThreads(values.field_shape)
        group = k._readTensor(places)
        with k._if(group >= 0):
            rank = _rank(k._readTensor(values), values.type, which)
            with k._if((rank > k._readTensor(k._out0, group, border="unchecked")) | (rank == 0)):
                k._atomic_max(k._pointerTo(k._out0, group), rank)
                k._writeTensor(k._out1, True, group)

    ranks, present = library_call(which, outs, [values, places], body, which)
    return ranks, present


def _values_of(groups: LabelGroups, ranks: Field, which: str) -> Field:
    """Return the values of the keys of `_extremes`."""
    kind = groups.values.type

    def value(at: Place, read: Reading) -> Any:
        rank = read.at(ranks, at)
        return value_of(~rank if which == "minimum" else rank, kind)

    result = gathered(which, kind.replace(field_shape=ranks.field_shape), [ranks], value, (kind.dtype, which))
    return with_rule(result, which, [groups.values, groups.places], None, partial(_pushed, groups.bins))


def _pushed(bins: Bins, inputs: Sequence[Field], result: Field, tangents: Sequence[Field | None]) -> Field | None:
    """The mean tangent of the points that have the extreme of their group."""
    (values, places), tangent = inputs, tangents[0]
    if tangent is None:
        return None
    wins = apply("equal", values, take(result, places, 0, mode="clip"))
    shares = (where(wins, tangent, 0), astype(wins, tangent.dtype))
    total, count = (weighed("sum_labels", places, each, bins, "float64", runs=True) for each in shares)
    return astype(apply("divide", total, count), result.dtype)


def _positions(groups: LabelGroups, ranks: Field, which: str) -> Field:
    """Return the row-major index of the first point of each group that has its extreme value: int64."""
    values, places = ravel(groups.values), ravel(groups.places)
    points = values.field_shape[0]
    out = FieldType(groups.count, (), "int32" if points < 2**31 else "int64")

    def body() -> None:
        k._globalThreads(values.field_shape)
        group = k._readTensor(places)
        with k._if(group >= 0):
            rank = _rank(k._readTensor(values), values.type, which)
            with k._if(rank == k._readTensor(ranks, group, border="unchecked")):
                behind = points - k._convert(k._column, str(out.dtype))
                with k._if(behind > k._readTensor(k._out0, group, border="unchecked")):
                    k._atomic_max(k._pointerTo(k._out0, group), behind)

    behind = library_call(f"{which}_position", (out,), [values, places, ranks], body, which)[0]
    return astype(points - behind, "int64")


def _rank(value: Any, kind: FieldType, which: str) -> Any:
    key = key_of(k._convert_float(value) if kind.dtype in HALVES else value, kind)
    return ~key if which == "minimum" else key
