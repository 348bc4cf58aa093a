"""Bins of values: the search for a value's bin, by the properties of the edges.

A bin is the half-open interval from its edge to the next; the last bin includes its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.dtype_names import HALVES, joined_dtype, values_dtype
from gpuop.ir.types import FieldType
from gpuop.ops.elementwise.algebra import astype
from gpuop.ops.select.thresholds import greatest, least
from gpuop.ops.sort.search import count_passing

GUESSED = 1 << 18  # most bins of equal widths: a quotient in float32 finds the right bin, or the one before
LESS = 1 - 2.0**-20  # a factor of bins per unit: more than a rounding error of float32, and a quarter of a bin at most
FAR = {16: 2.0**8, 32: 2.0**60, 64: 2.0**500}  # by bits: this or its inverse brings the distance of ends into range
SCALED = 5  # numbers that `_scaled` computes
NOWHERE = -1  # no bin: updates there have no effect


@dataclass(frozen=True)
class Bins:
    """The bins, and the method by which a thread finds the bin of a value.

    Attributes:
        count: the number of bins.
        how: "own": values are the numbers of their bins; "table": a bin for each byte; for bins of equal widths "line": a product
            is exact, "edges": a product, corrected by both edges of its bin, "scaled": the same if the distance of the ends may
            overflow, and "guess": a product, corrected by the next edge from memory; "search": a binary search; "none": no value
            of the dtype is in a bin.
        fields: the fields that are read: the table; or the least and the greatest value of all bins, the bins per unit with the
            width of a bin or the distance from the first edge to the least value, and the edges; for "scaled" see `_scaled`.
        used: the number of bins that values of the dtype reach.
    """

    count: int
    how: str
    fields: tuple[Field, ...] = ()
    used: int = 0

    @property
    def key(self) -> tuple[Any, ...]:
        return self.count, self.how, self.used

    def place(self, value: Any) -> Any:
        """The number of a recorded value's bin, or a number of no bin."""
        if self.how == "own":
            return k._convert_int(value)
        if self.how == "table":
            return _at(self.fields[0], k._convert_int(value) + (128 if value.type.kind == "i" else 0))
        ends, *others = self.fields
        value = k._convert(value, str(ends.dtype))
        inside = (value >= _at(ends, 0)) & (value <= _at(ends, 1))
        if self.how == "search":
            return k._where(inside, count_passing(self.used - 1, lambda n: _at(others[0], n + 1) <= value), NOWHERE)
        near = self._near(value, *others[:1])
        if self.how in ("edges", "scaled"):
            near = near + k._where(self._behind(value, near), 1, 0) - k._where(value < self._edge(near), 1, 0)
        if self.how == "guess":
            near = near + k._where((near < self.used - 1) & (value >= _at(others[1], near + 1)), 1, 0)
        return k._where(inside, near, NOWHERE)

    def _near(self, value: Any, line: Field) -> Any:
        """The bin by the distance of the value from the least one, or its neighbour."""
        least = _at(self.fields[0], 0)
        if value.type.kind != "f":  # unsigned differences are exact for all signs
            whole = {16: k._convert_int, 32: k._as_uint, 64: k._as_ulong}[value.type.dtype.bits]
            value, least = whole(value), whole(least)
        scale = _at(line, 2) if self.how == "scaled" else None
        away = k._convert(value - least if scale is None else value * scale - least * scale, str(line.dtype))
        if self.how == "guess":
            away = away + _at(line, 1)
        return k._convert_int(k._fmin(k._fmax(away * _at(line, 0), 0.0), float(self.used - 1)))

    def _edge(self, n: Any) -> Any:
        """The edge, as numpy.linspace computes it."""
        ends, line = self.fields[:2]
        away, first = k._convert(n, str(line.dtype)) * _at(line, 1), _at(ends, 0)
        return (away + first * _at(line, 3)) * _at(line, 4) if self.how == "scaled" else away + first

    def _behind(self, value: Any, near: Any) -> Any:
        return (near < self.used - 1) & (value >= self._edge(near + 1))


def _at(field: Field, n: Any) -> Any:
    return k._readTensor(field, n)


# --- edges on the host ------------------------------------------------------------------------------------------------


def known_bins(edges: Numbers, kind: FieldType, uniform: bool) -> Bins:
    """The bins of a dtype between edges on the host, which are rounded to that dtype."""
    dtype = np.dtype(kind.array_dtype)
    count, starts, end = edges.size - 1, least(edges[:-1], dtype), greatest(edges[-1], dtype)
    if not starts.size or not end.size:
        return Bins(count, "none")
    if dtype.itemsize == 1:
        return _of_bytes(count, starts, end[0], dtype)
    ends = Field(np.array([starts[0], end[0]], dtype))
    if not uniform or count > GUESSED:
        return Bins(count, "search", (ends, Field(starts)), starts.size)
    return _uniform(count, edges, starts, ends)


def _of_bytes(count: int, starts: Numbers, end: Any, dtype: np.dtype[Any]) -> Bins:
    """A table with a bin for each value."""
    every = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    table = np.where(every <= end, np.searchsorted(starts, every.astype(dtype), "right") - 1, NOWHERE)
    if np.array_equal(table, every):
        return Bins(count, "own")
    return Bins(count, "table", (Field(table.astype(np.int32)),))


def _uniform(count: int, edges: Numbers, starts: Numbers, ends: Field) -> Bins:
    """Bins of equal widths, by an exact product if there is one: a product is exact if it is so on both sides of each edge."""
    precise = _precise(starts.dtype)
    first, width = float(edges[0]), float(edges[-1]) - float(edges[0])
    with np.errstate(over="ignore"):
        units, across = np.asarray([count / width, width], precise)
    moderate = np.isfinite(across) and np.finfo(precise).tiny <= units < np.inf
    if not moderate:  # too wide or narrow for a product
        return Bins(count, "search", (ends, Field(starts)), starts.size)
    for factor in (units, np.nextafter(units, units.dtype.type(np.inf)), np.nextafter(units, units.dtype.type(0))):
        if _is_right(starts, factor):
            return Bins(count, "line", (ends, Field(np.array([factor, 0], precise))), starts.size)
    step = starts.dtype.type(width) / count if starts.dtype.kind == "f" else 0
    if step and np.array_equal(np.arange(count, dtype=starts.dtype) * step + starts[0], starts):
        return Bins(count, "edges", (ends, Field(np.array([units, step], precise))), count)
    line = Field(np.array([count / width * LESS, float(starts[0]) - first], precise))
    return Bins(count, "guess", (ends, line, Field(starts)), starts.size)


def _is_right(starts: Numbers, units: Any) -> bool:
    """Return whether the product is exact at the least value of each bin and at the value before; it is monotonic."""
    whole = starts.dtype.kind != "f"
    before = starts[1:] - 1 if whole else np.nextafter(starts[1:], starts.dtype.type(-np.inf))
    with np.errstate(over="ignore", invalid="ignore"):
        result, less = (np.trunc((n - starts[0]).astype(units.dtype) * units) for n in (starts, before))
    numbers = np.arange(starts.size)
    return np.array_equal(result, numbers) and bool(np.all(less < numbers[1:]))


def _precise(dtype: np.dtype[Any]) -> str:
    return "float64" if dtype == np.float64 else "float32"


# --- edges on the device ----------------------------------------------------------------------------------------------


def bins_among(edges: Field, kind: FieldType) -> Bins:
    """The bins between the edges in a field, compared in the common dtype of edges and values."""
    count = edges.field_shape.points - 1
    edges = astype(edges, joined_dtype(edges.dtype, kind.dtype))
    return Bins(count, "search", (edges[::count], edges), count)


def equal_bins(low: Field, high: Field, count: int, kind: FieldType) -> tuple[Field, Bins]:
    """Edges between two numbers, as of numpy.linspace, and the bins of a dtype; equal numbers are moved apart by 1."""
    dtype = np.dtype(kind.array_dtype)
    common = values_dtype(joined_dtype(low.dtype, high.dtype, kind.dtype))
    precise = common.name if common.kind == "f" else "float64"
    computed = precise if dtype.kind == "f" else _wide(dtype)
    line = SCALED if dtype.kind == "f" else 2, (), _precise(np.dtype(computed))
    types = [FieldType(*of) for of in ((count + 1, (), precise), (2, (), computed), line)]
    types += [FieldType(count + 1, (), computed)] * (dtype.kind != "f")

    def body() -> None:
        _write_edges(low, high, count, types)

    edges, *others = library_call("edges", tuple(types), [low, high], body, (), whole=True)
    if dtype.kind != "f" and count <= GUESSED:
        return edges, Bins(count, "guess", tuple(others), count)
    if computed in HALVES or count > GUESSED:
        return edges, bins_among(others[-1] if dtype.kind != "f" else edges, kind)
    return edges, Bins(count, "scaled", tuple(others), count)


def _write_edges(low: Field, high: Field, count: int, types: Sequence[FieldType]) -> None:
    """Write the edges, the ends, the line, and for integers the least values of bins."""
    precise, dtype, wide = (str(kind.dtype) for kind in types[:3])
    same = k._readTensor(low) == k._readTensor(high)
    first, last = (k._convert(k._readTensor(f), precise) for f in (low, high))
    if first.type.kind == "f":
        k._assert(k._isfinite(first) & k._isfinite(last), "the range of a histogram is finite")
    first, last = k._where(same, first - 0.5, first), k._where(same, last + 0.5, last)
    edge = k._where(k._column == count, last, _inner(first, last, count))
    k._writeTensor(k._out0, edge)
    if dtype == precise:
        ends, line = (edge, last), _scaled(first, last, count)
    else:
        ends = _whole_ends(low, high, first, last, dtype)
        line = [count / k._convert(last - first, wide) * LESS, k._ceil(first) - first]
        k._writeTensor(k._out3, k._where(k._column == count, ends[1], k._ceil(edge)))
    k._writeTensor(k._out1, k._where(k._column == 0, *ends), k._column)
    with k._if(k._column == 0):
        for n, number in enumerate(line):
            k._writeTensor(k._out2, k._convert(number, wide), n)


def _inner(first: Any, last: Any, count: int) -> Any:
    """The thread's edge between two ends, as of numpy.linspace, also if the distance of the ends overflows."""
    dtype = first.type.dtype.name
    if dtype == "float16":
        far = k._convert_half(_evenly(k._convert_float(first), k._convert_float(last), count))
    else:
        far = _evenly(first * 0.5, last * 0.5, count) * 2.0
    return k._where(k._isfinite(last - first), _evenly(first, last, count), far)


def _evenly(first: Any, last: Any, count: int) -> Any:
    delta, number = last - first, k._convert(k._column, first.type.dtype.name)
    step = delta / count
    return k._where(step == 0, number / count * delta, number * step) + first


def _scaled(first: Any, last: Any, count: int) -> list[Any]:
    """The numbers of "scaled" bins, for ends whose distance, or its inverse, may be out of the dtype's range.

    These are the bins per unit of values times the third number; the width of a bin times the fourth number; the third and the
    fourth number, which are powers of two; and the inverse of the fourth.
    """
    dtype = first.type.dtype
    one, large, small = (k._convert(n, dtype.name) for n in (1.0, FAR[dtype.bits], 1 / FAR[dtype.bits]))
    half, whole = last * 0.5 - first * 0.5, k._isfinite(last - first)
    near = k._where(half > large, small, k._where(half < small, large, one))
    shrink, grow = k._where(whole, one, 0.5), k._where(whole, one, 2.0)
    return [count / (last * near - first * near), (last * shrink - first * shrink) / count, near, shrink, grow]


def _whole_ends(low: Field, high: Field, first: Any, last: Any, dtype: str) -> tuple[Any, Any]:
    """The least and the greatest integer of all bins, also if rounding of the edges to floats excludes them."""
    inside = k._convert(k._ceil(first), dtype), k._convert(k._floor(last), dtype)
    if low.type.element.kind == "f" or high.type.element.kind == "f":
        return inside
    least, most = (k._convert(k._readTensor(f), dtype) for f in (low, high))
    return k._min(inside[0], least), k._max(inside[1], most)


def _wide(dtype: np.dtype[Any]) -> str:
    """An integer dtype that holds the neighbours of the least and the greatest integer, if there is one."""
    if dtype.itemsize < 4:
        return "int32"
    return "uint64" if dtype == np.uint64 else "int64"
