"""Sums, means, variances, medians and centres of mass of labelled regions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuop.base.errors import UnsupportedError
from gpuop.dsl.fields.field import Field
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.lib.ndimage.measure.host_results import is_lazy, measured, values_of
from gpuop.lib.ndimage.measure.label_groups import LabelGroups, LabelIndex, index_of
from gpuop.ops.create.evenly_spaced import arange
from gpuop.ops.elementwise.algebra import apply, astype, clip, where
from gpuop.ops.layout.join import stack
from gpuop.ops.layout.layouts import ravel, reshape
from gpuop.ops.layout.reorder import take
from gpuop.ops.reduce.counting import counted, weighed
from gpuop.ops.reduce.functions import called
from gpuop.ops.sort.sorts import argsort


def sum_labels(input: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.sum_labels: the sum of the values of each label.

    Args:
        input: a Field of scalars, or an array.
        labels: labels of the input's shape, or one that broadcasts with it; equal labels are measured together; None: all points.
        index: labels to measure: a number or an array of numbers; None: all positive labels, together.

    Returns:
        A number, or a float64 array of the index's shape; for Fields a lazy 0D Field, or one of that shape. With an array of
        numbers as `index`, values are added in float64, in order within chunks, so bits are equal on all devices; else as by
        `f.sum()`. 0 for absent labels.

    Raises:
        ArgumentError: shapes of input and labels do not broadcast; a ValueError.
        UnsupportedError: an index that is not numeric, or complex values of several labels; a TypeError.
    """
    return measured(_sum, input, labels, index_of(index))


def sum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.sum: `sum_labels`."""
    return sum_labels(input, labels, index)


def mean(input: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.mean: the mean of each label, as `sum_labels`; float64, NaN for absent labels."""
    return measured(_mean, input, labels, index_of(index))


def variance(input: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.variance: the variance of each label, as `mean`."""
    return measured(_variance, input, labels, index_of(index))


def standard_deviation(input: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.standard_deviation: the standard deviation of each label, as `mean`."""
    return measured(_deviation, input, labels, index_of(index))


def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.center_of_mass: the mean position of each label's points, weighted by their values, as `sum_labels`.

    Returns:
        A tuple of numbers, for an array of numbers a list of tuples (for one of several axes tuples of arrays, as SciPy's); for
        Fields a float64 Field with the coordinates along its last axis: `y, x = place[0], place[1]`, or `y, x = place.numpy()`.
    """
    lazy, result = is_lazy(input, labels), measured(_center, input, labels, index_of(index))
    if lazy or (centers := values_of(result)).ndim < 3:
        return as_tuples(result, lazy)
    return [tuple(row) for row in centers.transpose(*reversed(range(centers.ndim - 1)), -1)]


def median(input: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.median: the median of each label, as `sum_labels`; float64 for integers, NaN for absent labels."""
    return measured(_median, input, labels, index_of(index))


# --- on fields --------------------------------------------------------------------------------------------------------


def _sum(input: Field, labels: Field | None, index: LabelIndex) -> Field:
    groups = LabelGroups(input, labels, index)
    if groups.single:
        return _total(groups, groups.values)
    return groups.chosen(_sums(groups, groups.values))


def _total(groups: LabelGroups, values: Field) -> Field:
    mask = groups.mask
    return values.sum() if mask is None else called("sum", values, where=mask)


def _sums(groups: LabelGroups, values: Field) -> Field:
    """Return the sum of each group along an axis of groups, also for a single group."""
    if groups.single:
        return reshape(_total(groups, values), (1,))
    if values.dtype in COMPLEX_DTYPES:
        raise UnsupportedError("sums of several labels take real numbers: give `np.real(f)` and `np.imag(f)`")
    return weighed("sum_labels", groups.places, values, groups.bins, "float64", runs=True)


def _counts(groups: LabelGroups) -> Field:
    """Return the number of points of each group: float64."""
    if groups.labels is None:
        return Field(np.array([groups.values.field_shape.points], np.float64))
    if groups.single:
        return reshape(astype(called("count_nonzero", groups.mask), "float64"), (1,))
    return astype(counted("counts", groups.places, groups.bins), "float64")


def _mean(input: Field, labels: Field | None, index: LabelIndex) -> Field:
    groups = LabelGroups(input, labels, index)
    return groups.chosen(_means(groups), np.nan)


def _means(groups: LabelGroups) -> Field:
    return astype(_sums(groups, groups.values), "float64") / _counts(groups)


def _variance(input: Field, labels: Field | None, index: LabelIndex) -> Field:
    groups = LabelGroups(input, labels, index)
    means, values = _means(groups), astype(groups.values, "float64")
    away = values - (means[0] if groups.single else take(means, groups.places, 0, mode="clip"))
    return groups.chosen(_sums(groups, away * away) / _counts(groups), np.nan)


def _deviation(input: Field, labels: Field | None, index: LabelIndex) -> Field:
    return apply("sqrt", _variance(input, labels, index))


def _center(input: Field, labels: Field | None, index: LabelIndex) -> Field:
    groups = LabelGroups(input, labels, index)
    values, shape = astype(groups.values, "float64"), groups.shape
    weight = _sums(groups, values)
    result = []
    for axis, n in enumerate(shape):
        along = reshape(arange(n, dtype="float64"), [n if a == axis else 1 for a in range(len(shape))])
        result.append(_sums(groups, values * along) / weight)
    return groups.chosen(stack(result, 1) if result else reshape(weight, (groups.count, 1))[:, :0])


def _median(input: Field, labels: Field | None, index: LabelIndex) -> Field:
    """Return the medians: points are sorted by value, and then by group, so that groups are contiguous."""
    groups = LabelGroups(input, labels, index)
    values = ravel(astype(groups.values, "uint8") if groups.values.dtype == "bool" else groups.values)
    if not values.field_shape.points:
        return groups.chosen(Field(np.full(groups.count, np.nan)))
    behind = groups.count
    places = where(groups.places < 0, behind, groups.places) if groups.labels is not None else None
    order = argsort(values)
    if places is not None:
        small = astype(ravel(places), "uint8" if behind < 256 else "uint16" if behind < 65536 else "int32")
        order = take(order, argsort(take(small, order, 0, mode="clip")), 0, mode="clip")
    count = astype(_counts(groups), "int64")
    before = count.cumsum() - count
    last = values.field_shape.points - 1
    low, high = (
        take(values, take(order, clip(before + (count - 1 + up) // 2, 0, last), 0, mode="clip"), 0, mode="clip")
        for up in (0, 1)
    )
    if values.type.element.kind != "f":
        low, high = astype(low, "float64"), astype(high, "float64")
    return groups.chosen((low + high) / 2, np.nan, count > 0)


def as_tuples(result: Any, lazy: bool) -> Any:
    """Return positions as in SciPy: a tuple, or a list of tuples, of host numbers."""
    if lazy:
        return result
    places = values_of(result)
    if places.ndim == 1:
        return tuple(places)
    return [tuple(row) for row in places.reshape(math.prod(places.shape[:-1]), places.shape[-1])]
