"""NumPy functions that sort values, and order statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError, described
from gpuop.dsl.fields.derivative_rules import with_rule
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.value import NUMBERS
from gpuop.ir.dtype_names import COMPLEX_DTYPES, HALVES, REALS
from gpuop.ir.types import FieldType
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise.algebra import apply, astype, narrowed, where, widened
from gpuop.ops.layout.axes import Axis, a_field, axes_of, numbered, of_field
from gpuop.ops.layout.gather import Place, Reading, apart, flat, gathered
from gpuop.ops.layout.join import stack
from gpuop.ops.layout.layouts import ravel, reshaped
from gpuop.ops.layout.slicing import sliced
from gpuop.ops.reduce.functions import with_unit_axes
from gpuop.ops.reduce.reductions import axes_reduced
from gpuop.ops.select.take import take_along_axis
from gpuop.ops.sort.radix_sort import PLACES, by_digits
from gpuop.ops.sort.row_sorts import LONGEST, by_rows
from gpuop.ops.symbolic_numbers import passed
from gpuop.ops.symbolic_numbers import read as read_numbers

KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")
# A place among n values: n q + first + q (1 - first - last) - 1 (R. Hyndman, Y. Fan, American Statistician 50, 1996)
CONTINUOUS = {
    "linear": (1.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0), "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8), "interpolated_inverted_cdf": (0.0, 1.0),
}  # fmt: skip
NEAR = ("lower", "higher", "midpoint", "nearest")  # places beside (n - 1) q
STEPS = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation")  # places beside n q - 1
METHODS = (*CONTINUOUS, *NEAR, *STEPS)
VALUES = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")  # methods that select one of the values
WHOLE = ("weibull", "interpolated_inverted_cdf", "averaged_inverted_cdf")  # int64 for integers and a list of 0 and 1
HOST = SimpleNamespace(floor=math.floor, ceil=math.ceil, rint=round, where=lambda test, yes, no: yes if test else no)
KERNEL = SimpleNamespace(floor=k._floor, ceil=k._ceil, rint=k._rint, where=k._where)


# --- rows -------------------------------------------------------------------------------------------------------------


def _others(kind: FieldType, axes: Sequence[int]) -> list[int]:
    return [n for n in range(len(kind.array_shape)) if n not in axes]


def _rows(field: Field, axes: Sequence[int]) -> Field:
    """Return the values of each place on the other axes as a row, in row-major order."""
    shape, others = field.type.array_shape, _others(field.type, axes)
    rows, count = math.prod(shape[n] for n in others), math.prod(shape[n] for n in axes)
    if [*others, *axes] == list(range(len(shape))) and not field.tensor_shape:
        return reshaped("sort", field, [Axis(rows), Axis(count)])
    out = FieldType((rows, count), (), field.dtype)

    def value(at: Place, read: Reading) -> Any:
        place: list[Any] = [0] * len(shape)
        for coordinate, named in zip(at, (others, axes), strict=True):
            for n, own in zip(named, apart(coordinate, [shape[n] for n in named]), strict=True):
                place[n] = own
        return read.at(field, place)

    return gathered("sort", out, [field], value, tuple(axes))


def _unrows(rows: Field, kind: FieldType, axis: int) -> Field:
    """Return rows as values along an axis of a type."""
    out, others = kind.replace(dtype=rows.dtype), _others(kind, [axis])
    if axis == len(kind.array_shape) - 1 and not kind.tensor_shape:
        return rows if rows.type == out else reshaped("sort", rows, axes_of(kind))

    def value(at: Place, read: Reading) -> Any:
        return read.at(rows, [flat([at[n] for n in others], [kind.array_shape[n] for n in others]), at[axis]])

    return gathered("sort", out, [rows], value, axis)


def _sorted(rows: Field, places: bool = False, flat: bool = False) -> Field:
    """Return the sorted values of each row, or their old places; equal values stay in order.

    Args:
        flat: whether a single row may be a grid of one dimension, if that saves a copy.
    """
    result = by_rows(rows, places) if rows.field_shape[1] <= LONGEST else by_digits(rows, places, flat)
    if places or np.dtype(rows.type.array_dtype).kind != "f":
        return result
    return with_rule(result, "sort", [rows], _sort_pulled, _sort_pushed)


def _sort_pushed(inputs: Sequence[Field], result: Field, tangents: Sequence[Field | None]) -> Field | None:
    """The tangents in the order of the values, the first of equal ones first."""
    (tangent,) = tangents
    if tangent is None:
        return None
    places = _sorted(inputs[0], places=True)
    return reshaped("sort", _taken(tangent, places, _sorted(places, places=True)), axes_of(result.type))


def _sort_pulled(inputs: Sequence[Field], result: Field, cotangent: Field) -> list[Field]:
    """The cotangents in the places of the values."""
    places = _sorted(inputs[0], places=True)
    return [_taken(reshaped("sort", cotangent, axes_of(inputs[0].type)), _sorted(places, places=True), places)]


def _taken(rows: Field, order: Field, inverse: Field) -> Field:
    """Rows in another order, whose derivative is a read in the inverse one."""

    def pulled(inputs: Sequence[Field], result: Field, cotangent: Field) -> list[Field]:
        return [_taken(cotangent, inverse, order)]

    def pushed(inputs: Sequence[Field], result: Field, tangents: Sequence[Field | None]) -> Field | None:
        return None if tangents[0] is None else _taken(tangents[0], order, inverse)

    return with_rule(take_along_axis(rows, order, 1), "take_along_axis", [rows], pulled, pushed)


def _ordered(name: str, a: Any) -> tuple[Field, Field]:
    """Return the field, and its values in a dtype that can be sorted."""
    field = a_field(name, a)
    if field.dtype in COMPLEX_DTYPES:
        raise SemanticError(f"{name} does not take {field.dtype} fields: complex numbers have no order")
    return field, astype(field, "float32") if field.dtype in (*HALVES, "unorm8") else field


# --- sorts ------------------------------------------------------------------------------------------------------------


def sort(a: Any, axis: Any = -1, kind: Any = None) -> Field:
    """numpy.sort."""
    return _in_order("sort", a, axis, kind, False)


def argsort(a: Any, axis: Any = -1, kind: Any = None) -> Field:
    """numpy.argsort."""
    return _in_order("argsort", a, axis, kind, True)


def _in_order(name: str, a: Any, axis: Any, kind: Any, places: bool) -> Field:
    if kind not in KINDS:
        raise SemanticError(f"{name}: a kind is one of {', '.join(map(repr, KINDS[1:]))}, not {kind!r}; all are stable")
    if a_field(name, a).dtype in COMPLEX_DTYPES:
        return _complex_in_order(ravel(a) if axis is None else a, -1 if axis is None else axis, places)
    field, values = _ordered(name, a)
    if axis is None:
        field, values, axis = ravel(field), ravel(values), 0
    number = numbered(axis, *of_field(field))
    dtype = PLACES if places else field.dtype
    if not field.field_shape.points:
        return filled(field.type.replace(dtype=dtype), 0)
    result = _sorted(_rows(values, [number]), places, len(field.type.array_shape) == 1)
    return astype(_unrows(result, field.type, number), dtype)


def _complex_in_order(field: Field, axis: Any, places: bool) -> Field:
    """Return sorted complex numbers, or their old places, in the order of NumPy: by real parts, then by imaginary ones.

    Numbers with a NaN come last, those whose real part it is behind the others. The sorts by each key are stable.
    """
    real, imaginary = apply("real", field), apply("imag", field)
    unknown = astype(apply("isnan", imaginary), "uint8") + 2 * astype(apply("isnan", real), "uint8")
    order = argsort(imaginary, axis)
    for key in (real, unknown):
        order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis), axis)
    return order if places else take_along_axis(field, order, axis)


# --- places in the order ----------------------------------------------------------------------------------------------


def median(a: Any, axis: Any = None, keepdims: bool = False) -> Field:
    """numpy.median."""
    return _statistics("median", a, axis, keepdims, [_middle])[0]


def nanmedian(a: Any, axis: Any = None, keepdims: bool = False) -> Field:
    """numpy.nanmedian."""
    return _statistics("nanmedian", a, axis, keepdims, [_middle_number])[0]


def quantile(a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Field:
    """numpy.quantile."""
    return _quantiles("quantile", a, q, 1.0, axis, method, keepdims)


def percentile(a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Field:
    """numpy.percentile."""
    return _quantiles("percentile", a, q, 100.0, axis, method, keepdims)


def nanquantile(a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Field:
    """numpy.nanquantile."""
    return _quantiles("nanquantile", a, q, 1.0, axis, method, keepdims, True)


def nanpercentile(a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Field:
    """numpy.nanpercentile."""
    return _quantiles("nanpercentile", a, q, 100.0, axis, method, keepdims, True)


def _statistics(
    name: str, a: Any, axis: Any, keepdims: bool, chosen: Sequence[Callable[[Field], Field]], of_values: bool = False
) -> list[Field]:
    """Return order statistics from rows of sorted values; each function selects one value (`of_values`), or interpolates."""
    field, values = _ordered(name, a)
    axes = axes_reduced(name, field.type, axis)
    count = math.prod(field.type.array_shape[n] for n in axes)
    if not count or not field.field_shape.points:
        raise SemanticError(f"{name} of a {field.type} field: there is no value to choose")
    rows = _sorted(_rows(values, axes))
    if not of_values:
        rows = widened(rows)
    own_axes = axes_of(field.type)

    def result(statistic: Field) -> Field:
        statistic = reshaped(name, statistic, [own_axes[n] for n in _others(field.type, axes)])
        statistic = (
            astype(statistic, field.dtype)
            if field.dtype in HALVES
            else statistic
            if of_values
            else narrowed(statistic, field)
        )
        return with_unit_axes(name, statistic, field, axis) if keepdims else statistic

    return [result(choice(rows)) for choice in chosen]


def _at(rows: Field, place: int) -> Field:
    return sliced(rows, (slice(None), place))


def _at_number(rows: Field, place: int) -> Field:
    """Return the value at a place that the kernel gets as an argument, so other places need no other kernel."""
    numbers, last = passed(place), rows.field_shape[1] - 1

    def value(at: Place, read: Reading) -> Any:
        return read.at(rows, [*at, *read_numbers(numbers, [(0, last)])], "unchecked")

    out = rows.type.replace(field_shape=rows.field_shape[:1])
    return gathered("take", out, [rows, *numbers], value, "a place that is an argument", True)


def _unless_nan(rows: Field, result: Field) -> Field:
    """Return NaN for rows with a NaN: it is the last value then."""
    if np.dtype(rows.type.array_dtype).kind != "f":
        return result
    last = _at(rows, -1)
    return where(apply("isnan", last), last, result)


def _middle(rows: Field) -> Field:
    count = rows.field_shape[1]
    low, high = _at(rows, (count - 1) // 2), _at(rows, count // 2)
    return _unless_nan(rows, low if count % 2 else apply("multiply", apply("add", low, high), 0.5))


def _middle_number(rows: Field) -> Field:
    """Return the median of the values before NaN; NaN if there are none."""
    numbers = astype(apply("logical_not", apply("isnan", rows)).sum(axis=1), "int32")

    def value(at: Place, read: Reading) -> Any:
        count = read.at(numbers, at)
        low, high = (read.at(rows, [*at, place], "clamp") for place in ((count - 1) / 2, count / 2))
        return low * 0.5 + high * 0.5

    return gathered("nanmedian", numbers.type.replace(dtype=rows.dtype), [rows, numbers], value, "middle", True)


def _quantiles(
    name: str, a: Any, q: Any, whole: float, axis: Any, method: str, keepdims: bool, numbers: bool = False
) -> Field:
    if method not in METHODS:
        raise SemanticError(f"{name}: a method is one of {', '.join(map(repr, METHODS))}, not {method!r}")
    several = not isinstance(q, NUMBERS)
    shares = np.asarray(q if several and not isinstance(q, Field) else [q], object)
    fractions = shares.ravel()
    if not fractions.size or not all(isinstance(n, NUMBERS) and 0 <= n <= whole for n in fractions):
        text = repr(q) if isinstance(q, (*NUMBERS, list, tuple)) else described(q)
        raise SemanticError(f"{name}: `q` is a number from 0 to {whole:g}, or a list of them, not {text}")
    dtype = None
    if name.endswith("quantile") and all(isinstance(n, (int, np.integer)) for n in fractions):
        method, dtype = _method_of_ends(method, a, several)

    def chosen(share: float) -> Callable[[Field], Field]:
        if numbers and isinstance(a, Field) and a.dtype in REALS:
            return lambda rows: _between_numbers(rows, share, method)
        return lambda rows: _between(rows, share, method)

    result = _statistics(name, a, axis, keepdims, [chosen(float(n) / whole) for n in fractions], method in VALUES)
    result = [field if dtype is None else astype(field, dtype) for field in result]
    if not several:
        return result[0]
    stacked = stack(result, 0)
    return stacked if shares.ndim < 2 else stacked.reshape((*shares.shape, *stacked.shape[1:]))


def _method_of_ends(method: str, a: Any, several: bool) -> tuple[str, str | None]:
    """Return the method for shares 0 and 1 as integers, which select a value, and the dtype of results if it is another."""
    integers = isinstance(a, Field) and np.dtype(a.type.array_dtype).kind in "iu" and a.dtype != "uint64"
    if method in WHOLE and integers and several:
        return "lower", "int64"
    return ("lower" if method == "linear" else method), None


def _place(count: Any, share: float, method: str, m: SimpleNamespace) -> tuple[Any, Any]:
    """Return the place of a quantile among `count` values, which may be outside them, and the weight of the value behind it.

    Args:
        m: functions of numbers, or of recorded values.
    """
    if method in CONTINUOUS:
        first, last = CONTINUOUS[method]
        at = count * share + first + share * (1 - first - last) - 1
    elif method in NEAR:
        at = (count - 1) * share
        low, high = m.floor(at), m.ceil(at)
        at = {"lower": low, "higher": high, "midpoint": 0.5 * (low + high), "nearest": m.rint(at)}[method]
    else:
        at = count * share - 1 - (0.5 if method == "closest_observation" else 0)
        low = m.floor(at)
        if method == "averaged_inverted_cdf":
            return at, m.where(at == low, 0.5, 1.0)
        stays = (at == low) & (low - 2 * m.floor(low * 0.5) == 1) if method == "closest_observation" else at == low
        at = m.where(stays, low, low + 1)
    return at, at - m.floor(at)


def _between(rows: Field, share: float, method: str) -> Field:
    """Interpolate between places; NaN beside a different infinity, as in NumPy, which multiplies it by 0."""
    last = rows.field_shape[1] - 1
    place, part = _place(last + 1, share, method, HOST)
    low = min(max(math.floor(place), 0), last)
    part, one = part if 0 <= place < last else 0.0, _at_number(rows, low)
    if method in VALUES or (not part and np.dtype(rows.type.array_dtype).kind != "f"):
        return _unless_nan(rows, one)
    two = _at_number(rows, min(low + 1, last) if place >= 0 else 0)
    apart_by = apply("subtract", two, one)
    near = apply("subtract", two, apply("multiply", apart_by, 1 - part))
    return _unless_nan(rows, near if part >= 0.5 else apply("add", one, apply("multiply", apart_by, part)))


def _between_numbers(rows: Field, share: float, method: str) -> Field:
    """Return a quantile of the values before NaN; NaN if there are none."""
    numbers = astype(apply("logical_not", apply("isnan", rows)).sum(axis=1), "float64")

    def value(at: Place, read: Reading) -> Any:
        count = read.at(numbers, at)
        place, part = _place(count, share, method, KERNEL)
        low, next_one = (k._fmax(0.0, k._fmin(n, count - 1)) for n in (k._floor(place), k._floor(place) + 1))
        part = k._convert(part if method == "averaged_inverted_cdf" else k._fmax(place - low, 0.0), str(rows.dtype))
        one, two = (read.at(rows, [*at, k._convert_int(n)], "clamp") for n in (low, next_one))
        apart_by = two - one  # as in `_between`
        near = k._where(part < 0.5, one + apart_by * part, two - apart_by * (1 - part))
        return one if method in VALUES else near

    out = numbers.type.replace(dtype=rows.dtype)
    return gathered("nanquantile", out, [rows, numbers], value, (share, method), True)
