"""Functions of scipy.ndimage of labelled regions: bounding boxes, points, and user functions of each."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.engine.interop import numpy_dtype
from gpuop.ir.axis_limit import check_axes
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.measure.host_results import as_array, is_lazy, measured, of_groups, parted, shape_of, values_of
from gpuop.lib.ndimage.measure.label_groups import NOWHERE, LabelGroups, LabelIndex, index_of, room_of
from gpuop.ops.elementwise.algebra import astype, where
from gpuop.ops.layout.gather import Place, Reading, apart, gathered, own_place
from gpuop.ops.layout.layouts import ravel, reshape
from gpuop.ops.layout.reorder import take
from gpuop.ops.reduce.bins import Bins, known_bins
from gpuop.ops.reduce.counting import counted
from gpuop.ops.sort.radix_sort import by_digits
from gpuop.ops.sort.sorts import argsort

MOST_COUNTED = 1 << 16  # greatest range of values from 0 on that are counted, however few points there are
Boxes = list[tuple[slice, ...] | None]


def find_objects(input: Any, max_label: int = 0) -> Boxes:
    """scipy.ndimage.find_objects: the bounding box of each label.

    Args:
        input: a Field of integers, which is evaluated, or an array.
        max_label: the greatest label that is looked for; 0: the greatest that there is.

    Returns:
        A list with a tuple of slices for each label from 1 on, or None for absent labels.

    Raises:
        UnsupportedError: the values are not integers; a TypeError.
        SemanticError: a Field without values yet, as in a pipeline.
    """
    array = _with_integers("find_objects", input)
    shape = shape_of(array)
    max_label = operator.index(max_label)
    if max_label < 1:
        max_label = int(values_of(measured(_greatest, array, None))) if 0 not in shape else 0
    if max_label < 1:
        return []
    ends = values_of(measured(_ends, array, None, room_of(max_label)))[:max_label]
    starts, stops = np.array(shape, np.int32) - ends[..., 0], ends[..., 1]
    along = [map(slice, starts[:, n].tolist(), stops[:, n].tolist()) for n in range(len(shape))]
    boxes = list(zip(*along, strict=True)) if along else [()] * max_label
    return [box if there else None for box, there in zip(boxes, (stops[:, 0] > 0).tolist(), strict=True)]


def value_indices(arr: Any, *, ignore_value: Any = None) -> dict[int, tuple[Any, ...]]:
    """scipy.ndimage.value_indices: the positions of each value.

    Args:
        arr: a Field of integers, which is evaluated, or an array.
        ignore_value: a value that is left out.

    Returns:
        A dict from each value, in ascending order, to the coordinates of its points in row-major order: an int64 array for each
        axis, of NumPy for a Field, else of the array's library. The arrays are views of one for all values.

    Raises:
        ArgumentError: the values are not integers; a ValueError.
        SemanticError: a Field without values yet, as in a pipeline.
    """
    try:
        array = _with_integers("value_indices", arr)
    except UnsupportedError as wrong:
        raise ArgumentError(f"Parameter 'arr' must be an integer array: {wrong}") from None
    shape = shape_of(array)
    if 0 in shape:
        return {}
    check_axes(FieldType(math.prod(shape)))  # all points are sorted in a row
    low, high = (int(values_of(end)) for end in measured(_least_and_greatest, array, None))
    many = not shape or low < 0 or high >= max(MOST_COUNTED, math.prod(shape))
    result = measured(_in_order, array, None, None if many else max(high.bit_length(), 1))
    result = services.above.evaluate(*result) if isinstance(array, Field) else result
    if many:
        values = values_of(result[-1])
        last = np.append(np.flatnonzero(values[1:] != values[:-1]), len(values) - 1)
        labels, ends = values[last], (last + 1).tolist()
    else:
        counts = values_of(measured(_counts, array, None, room_of(high + 1)))
        labels = np.flatnonzero(counts)
        ends = np.cumsum(counts[labels]).tolist()
    points = zip(*(parted(along, ends) for along in result[: len(shape)]), strict=True) if shape else [()]
    named = zip(map(int, labels), points, strict=True)
    return {value: places for value, places in named if ignore_value is None or value != ignore_value}


def _values_and_places(input: Any, labels: Any, chosen: LabelIndex) -> list[tuple[Any, Any]]:
    """Return for each label the values of its points, and their row-major indices."""
    (order, values, counts), _ = of_groups(_by_group, input, labels, chosen)
    if any(isinstance(array, Field) for array in (input, labels)):
        order, values = values_of(order), values_of(values)
    ends = np.cumsum(values_of(counts)).tolist()
    return list(zip(parted(values, ends), parted(order, ends), strict=True))[-chosen.count :]  # spare ones are first


def labeled_comprehension(
    input: Any,
    labels: Any,
    index: Any,
    func: Callable[..., Any],
    out_dtype: Any,
    default: Any,
    pass_positions: bool = False,
) -> Any:
    """scipy.ndimage.labeled_comprehension: a Python function of the values of each label.

    Args:
        input: a Field of scalars, which is evaluated, or an array.
        labels, index: as in `sum_labels`.
        func: gets a 1D array of values, in row-major order; a NumPy array for a Field.
        out_dtype: dtype of the results of an index.
        default: the result of absent labels.
        pass_positions: whether `func` also gets the points' row-major indices.

    Returns:
        The result of `func` without an index, else a number or an array of the index's shape.

    Raises:
        ArgumentError: an index without labels, or one that labels cannot have; a ValueError.
        SemanticError: a Field without values yet, as in a pipeline.
    """
    input, labels = _with_values(input), None if labels is None else _with_values(labels)
    chosen = _checked_index(index, labels)
    rows = _values_and_places(input, labels, chosen)
    if chosen.values is None:
        return func(*rows[0][: 1 + pass_positions])
    each = [func(*row[: 1 + pass_positions]) if len(row[0]) else default for row in rows]
    results = np.empty(len(chosen.places), out_dtype)
    for n, place in enumerate(chosen.places):
        results[n] = each[place]
    return results[0] if chosen.shape is None else results.reshape(chosen.shape)


def histogram(input: Any, min: Any, max: Any, bins: Any, labels: Any = None, index: Any = None) -> Any:
    """scipy.ndimage.histogram: counts of the values of each label in bins of equal width.

    Args:
        input, labels, index: as in `sum_labels`.
        min, max: the ends of the bins.
        bins: number of bins.

    Returns:
        int64 counts; for an array of numbers an object array of them; None for absent labels. For Fields an int64 Field with
        the bins along its last axis, 0 for absent labels.

    Raises:
        ArgumentError, UnsupportedError: as in `sum_labels`; ArgumentError also as in `labeled_comprehension`.
    """
    chosen = _checked_index(index, as_array(labels))
    if int(bins) < 1:
        raise ArgumentError(f"histogram: `bins` is 1 or more, not {bins}")
    counts, points = measured(_histogram, input, labels, chosen, (float(min), float(max), int(bins)))
    if is_lazy(input, labels) or chosen.values is None:
        return counts
    rows, there = counts.reshape(-1, counts.shape[-1]), values_of(points).reshape(-1).tolist()
    if chosen.shape is None:
        return counts if there[0] else None
    results = np.empty(chosen.shape, object)
    for n, at in enumerate(np.ndindex(chosen.shape)):
        results[at] = rows[n] if there[n] else None
    return results


# --- arguments --------------------------------------------------------------------------------------------------------


def _with_values(array: Any) -> Any:
    return services.above.keep(array) if isinstance(array, Field) else as_array(array)


def _with_integers(name: str, array: Any) -> Any:
    array = _with_values(array)
    dtype = array.type.array_dtype if isinstance(array, Field) else numpy_dtype(array)
    if dtype.kind not in "biu":
        raise UnsupportedError(f"{name} takes integers, not {dtype}")
    return array


def _checked_index(index: Any, labels: Any) -> LabelIndex:
    """Return `index=` as a constant; ArgumentError without labels, or for numbers that the dtype of the labels does not hold."""
    result = index_of(index)
    if result.values is None:
        return result
    if labels is None:
        raise ArgumentError("index without defined labels: give `labels=`")
    dtype = labels.type.array_dtype if isinstance(labels, Field) else numpy_dtype(labels)
    numbers = np.array(result.values)
    if np.any(numbers.astype(dtype).astype(numbers.dtype) != numbers):
        raise ArgumentError(
            f"Cannot convert index values from <{numbers.dtype}> to <{dtype}> (labels' type) without loss of precision"
        )
    return result


# --- on fields --------------------------------------------------------------------------------------------------------


def _greatest(input: Field, _: None) -> Field:
    return astype(input, "int64").max()


def _ends(input: Field, _: None, count: int) -> Field:
    """Return for each label and axis its first point's distance from the end, and its last point's end from the start.

    A point whose neighbour in a direction has the same label is no end in that direction.
    """
    labels = input if input.field_shape else reshape(input, (1,))
    shape = labels.field_shape
    out = FieldType((count, len(shape), 2), (), "int32")

    def body() -> None:
        k._globalThreads(shape)
        own, place = k._readTensor(labels), own_place(len(shape))
        number = k._convert(own, "int64")
        with k._if((number > 0) & (number <= count)):
            box = k._convert_int(number) - 1
            for axis, (at, n) in enumerate(zip(place, shape, strict=True)):
                for end, (step, far) in enumerate(((-1, n - at), (1, at + 1))):
                    beside = k._readTensor(labels, *place[:axis], at + step, *place[axis + 1 :], border=0)
                    with k._if((beside != own) & (far > k._readTensor(k._out0, box, axis, end, border="unchecked"))):
                        k._atomic_max(k._pointerTo(k._out0, box, axis, end), far)

    return library_call("find_objects", (out,), [labels], body, ())[0]


def _least_and_greatest(input: Field, _: None) -> tuple[Field, Field]:
    values = astype(input, "int64") if input.dtype != "uint64" else input
    return values.min(), values.max()


def _counts(input: Field, _: None, count: int) -> Field:
    return counted("counts", input, Bins(count, "own"))


def _in_order(input: Field, _: None, bits: int | None) -> tuple[Field, ...]:
    """Return the coordinates along each axis of the points in the order of their values.

    Args:
        bits: number of bits of all values, which are not negative; None if they are many, and the sorted values are returned too.
    """
    small = next((n for n in ("uint8", "uint16") if bits and bits <= np.iinfo(n).bits), input.dtype)
    values, shape = ravel(astype(input, small)), input.field_shape
    order = argsort(values) if bits is None else by_digits(reshape(values, (1, shape.points)), True, True, bits)
    whole = "int32" if shape.points < 2**31 else "int64"

    def body() -> None:
        for n, at in enumerate(apart(k._convert(k._readTensor(order), whole), shape)):
            k._writeTensor(getattr(k, f"_out{n}"), k._convert(at, "int64"))

    places = library_call("value_indices", (order.type,) * len(shape), [order], body, tuple(shape)) if shape else ()
    return tuple(places) if bits else (*places, take(values, order, 0, mode="clip"))


def _by_group(input: Field, labels: Field | None, index: LabelIndex) -> tuple[Field, Field, Field]:
    """Return the points' row-major indices and values in the order of their groups, and the number of points of each group."""
    groups = LabelGroups(input, labels, index)
    values, places = ravel(groups.values), ravel(groups.places)
    order = argsort(where(places < 0, groups.count, places))
    return order, take(values, order, 0, mode="clip"), counted("counts", groups.places, groups.bins)[: index.count]


def _histogram(
    input: Field, labels: Field | None, index: LabelIndex, line: tuple[float, float, int]
) -> tuple[Field, Field]:
    if input.dtype in COMPLEX_DTYPES:
        raise UnsupportedError("Complex type not supported: complex numbers have no order")
    groups = LabelGroups(astype(input, "uint8") if input.dtype == "bool" else input, labels, index)
    values, places = groups.values, groups.places
    bins = known_bins(np.linspace(line[0], line[1], line[2] + 1), values.type, False)

    def place(at: Place, read: Reading) -> Any:
        bin_, group = bins.place(read.at(values, at)), read.at(places, at)
        return k._where((bin_ >= 0) & (bin_ < bins.count) & (group >= 0), group * bins.count + bin_, NOWHERE)

    both = gathered("bin", places.type, [values, places, *bins.fields], place, bins.key)
    counts = counted("histogram", both, Bins(groups.count * bins.count, "own"))
    result = groups.chosen(reshape(counts, (groups.count, bins.count)))
    return result, groups.chosen(counted("counts", places, groups.bins))
