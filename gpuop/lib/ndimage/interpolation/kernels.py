"""Interpolation operators: coordinates are computed in a kernel, or read from tables."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.ir.borders import BORDERS
from gpuop.ir.dtype_names import COMPLEX_DTYPES, values_dtype
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.filter_arguments import check_real, computed_in, rank
from gpuop.lib.ndimage.interpolation.periodic_zoom import EvenBlocks, blocks_of
from gpuop.lib.ndimage.interpolation.spline_filters import (
    FREE,
    HOST,
    KERNEL,
    MODES,
    brought_inside,
    coefficients,
    first_knot,
    weights_at,
)
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.sort.radix_sort import single


@dataclass(frozen=True)
class Spline:
    """Interpolation settings.

    Attributes:
        order: order of the spline, 0 to 5.
        mode, cval, prefilter: as in `map_coordinates`.
    """

    order: int
    mode: str
    cval: Any
    prefilter: bool


@dataclass(frozen=True)
class Knots:
    """Knots along an axis: the points that a value is interpolated from.

    Attributes:
        at: their coordinates.
        weights: a weight for each.
        outside: for each knot whether it reads `cval` instead, or None.
        beyond: whether the value itself is `cval`, or None.
        border: border of the reads.
    """

    at: Sequence[Any]
    weights: Sequence[Any]
    outside: Sequence[Any] | None = None
    beyond: Any = None
    border: str = "unchecked"


def knots_at(at: Any, n: int, spline: Spline, dtype: str) -> Knots:
    """Return the knots around a coordinate, along an axis of n points."""
    placed = _brought_inside(at, n, spline.mode)
    beyond = None if spline.mode in FREE else k._not(placed > -1.0)
    order = spline.order
    first, x = first_knot(placed, order, KERNEL)
    low, high = _middles(n, spline)
    start = k._max(k._min(k._convert_int(first), high - order // 2), low - order // 2)
    taps = [start + tap for tap in range(order + 1)]
    outside = [k._or(tap < 0, tap >= n) for tap in taps] if spline.mode == "grid-constant" else None
    return Knots(taps, weights_at(x if order == 0 else k._convert(x, dtype), order), outside, beyond, _border(spline))


def _brought_inside(at: Any, n: int, mode: str) -> Any:
    """Map a coordinate into the field as SciPy does; GPU threads that are inside skip the divisions of periodic modes."""
    if mode == "constant" or mode in FREE or n < 2:
        return brought_inside(at, n, mode, KERNEL)
    placed = k._var(at)
    with k._codegenIf(single()):
        placed.assign(brought_inside(at, n, mode, KERNEL))
    with k._codegenElse(), k._if(k._not((at >= 0) & (at <= n - 1))):
        placed.assign(brought_inside(at, n, mode, KERNEL))
    return placed


def _middles(n: int, spline: Spline) -> tuple[int, int]:
    """Return the bounds of the middle knot: coordinates further away read the same points, or are `cval`."""
    if spline.mode in FREE:
        return -1 - spline.order, n + spline.order
    return (0, n - 1) if spline.mode in ("constant", "wrap") else (-1, n)


def _border(spline: Spline) -> str:
    """Return the border of reads: for two knots, one outside is clamped, or has weight 0."""
    return "clamp" if spline.order < 2 and spline.mode in ("constant", "wrap", "reflect") else MODES[spline.mode]


@dataclass(frozen=True)
class Table:
    """Knots of all coordinates along an axis of the result, computed on the host, so that kernels depend on none of them."""

    at: Field
    weights: Field
    outside: bool
    beyond: bool
    blocks: EvenBlocks | None = None

    def knots(self, place: Any) -> Knots:
        """Return the knots of one coordinate."""
        count = self.at.field_shape[0]
        taps = [k._readTensor(self.at, tap, place, border="unchecked") for tap in range(count)]
        weights = [k._readTensor(self.weights, tap, place, border="unchecked") for tap in range(count)]
        beyond = taps[0] < 0 if self.beyond else None
        if not (self.outside or self.beyond):
            return Knots(taps, weights)
        return Knots([k._max(tap, 0) for tap in taps], weights, [t < 0 for t in taps] if self.outside else None, beyond)


def table_of(at: np.ndarray[Any, Any], n: int, spline: Spline, dtype: str) -> Table:
    """Return the table of coordinates along an axis of n points."""
    placed = brought_inside(at, n, spline.mode, HOST)
    beyond = np.zeros(at.shape, bool) if spline.mode in FREE else ~(placed > -1)
    order = spline.order
    first, x = first_knot(np.where(beyond, 0, placed), order, HOST)
    taps = np.clip(first, -1 - order, n) + np.arange(order + 1)[:, None]
    weights = np.broadcast_to(np.array(weights_at(x, order)).reshape(order + 1, -1), taps.shape)
    border = MODES[spline.mode]
    outside = (taps < 0) | (taps >= n) if spline.mode == "grid-constant" else np.zeros(taps.shape, bool)
    source = np.where(outside | beyond, -1, BORDERS[border].numpy(taps.astype(np.int64), n))
    dtype = "float64" if dtype in ("int64", "uint64") else dtype
    return Table(
        Field(source.astype(np.int32), 0),
        Field(np.ascontiguousarray(weights, dtype), 0),
        bool(outside.any()),
        bool(beyond.any()),
        blocks_of(taps[0], n) if order == 1 and not (outside | beyond).any() else None,
    )


# --- values -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Between:
    """A field that is interpolated along some axes of its grid.

    Attributes:
        coefficients: the coefficients, or the field itself where these are its values.
        padding: number of points of padding along the axes.
        out: type of the result.
        computed: dtype of weights and sums.
    """

    coefficients: Field
    padding: int
    axes: Sequence[int]
    spline: Spline
    out: FieldType
    computed: str

    def at(self, name: str, knots_of: Callable[[Place], Sequence[Knots]], fields: Sequence[Field], key: Any) -> Field:
        """Return the field interpolated at knots along each of the axes.

        Args:
            knots_of: function from a point of the result to its knots.
            fields: fields that it reads.
            key: everything else that it depends on.
        """
        if not self.coefficients.field_shape.points:
            return filled(self.out, self.spline.cval)

        def value(point: Place, read: Reading) -> Any:
            knots = list(knots_of(point))
            total = self._total(knots, point, read)
            beyond = [k_.beyond for k_ in knots if k_.beyond is not None]
            if beyond:
                total = k._where(any_of(beyond), self._cval(read), total)
            return rounded(total, self.out)

        key = (self.spline, self.padding, tuple(self.axes), self.computed, self.out.dtype, key)
        return gathered(name, self.out, [self.coefficients, *fields], value, key, whole=True)

    def _cval(self, read: Reading) -> Any:
        if self.out.dtype in COMPLEX_DTYPES:
            return read.number(self.spline.cval, self.out)
        if self.computed in ("int64", "uint64"):
            ends = np.iinfo(self.computed)
            nearest = math.floor(abs(self.spline.cval) + 0.5) * (1 if self.spline.cval > 0 else -1)
            return k._convert(min(max(nearest, int(ends.min)), int(ends.max)), self.computed)
        return k._convert(self.spline.cval, self.computed)

    def _total(self, knots: list[Knots], point: Place, read: Reading) -> Any:
        """Return the weighted sum: up to order 1 in SciPy's order of additions, else axis by axis, which takes fewer products."""
        if self.spline.order > 1:
            return self._along(knots, [], point, read)
        terms = []
        for taps in itertools.product(*(range(len(axis.at)) for axis in knots)):
            weights = [axis.weights[tap] for axis, tap in zip(knots, taps, strict=True) if len(axis.at) > 1]
            terms.append(functools.reduce(operator.mul, weights, self._tap(knots, taps, point, read)))
        return functools.reduce(operator.add, terms)

    def _along(self, knots: list[Knots], taps: list[int], point: Place, read: Reading) -> Any:
        if len(taps) == len(knots):
            return self._tap(knots, taps, point, read)
        axis = knots[len(taps)]
        terms = [self._along(knots, [*taps, tap], point, read) * axis.weights[tap] for tap in range(len(axis.at))]
        return functools.reduce(operator.add, terms)

    def _tap(self, knots: list[Knots], taps: Sequence[int], point: Place, read: Reading) -> Any:
        """Read one combination of knots, one of each axis."""
        count = rank(self.coefficients)
        place, borders = [*point, *[0] * count][:count], ["unchecked"] * count
        for number, axis, tap in zip(self.axes, knots, taps, strict=True):
            place[number], borders[number] = axis.at[tap], axis.border
        value = k._convert(read.at(self.coefficients, place, tuple(borders)), self.computed)
        outside = [axis.outside[tap] for axis, tap in zip(knots, taps, strict=True) if axis.outside is not None]
        return k._where(any_of(outside), self._cval(read), value) if outside else value


def _computed_in(field: Field, spline: Spline, dtype: str) -> str:
    """Return the dtype of values: for nearest neighbours, which only move values, the field's where float64 is not exact."""
    moved = spline.order == 0 and field.dtype in ("int64", "uint64") and values_dtype(dtype).kind in "iub"
    return field.dtype if moved and math.isfinite(spline.cval) else computed_in(field, dtype)


def any_of(tests: Sequence[Any]) -> Any:
    """Return whether any of the conditions is true."""
    return tests[0] if len(tests) == 1 else k._or(list(tests))


def between(field: Field, spline: Spline, axes: Sequence[int], shape: Sequence[int], dtype: str) -> Between:
    """Return a field's coefficients along some axes, for a result of this shape and dtype."""
    check_real(spline.cval, field)
    computed = _computed_in(field, spline, dtype)
    source, padding = coefficients(field, spline.order, spline.mode, spline.cval, spline.prefilter, axes, computed)
    return Between(source, padding, axes, spline, field.type.replace(field_shape=tuple(shape), dtype=dtype), computed)


def rounded(value: Any, out: FieldType) -> Any:
    """Convert a value to a dtype: integers are rounded to nearest, halves away from 0, and saturate."""
    kind = out.element.kind
    if kind in "iu" and value.type.kind in "iu":
        return k._convert(value, out.dtype)
    if kind == "b":
        return k._convert(value, "int64") != 0
    if kind == "u":
        return k._convert(k._where(value > 0, value + 0.5, 0.0), out.dtype)
    return k._convert(k._where(value > 0, value + 0.5, value - 0.5), out.dtype) if kind == "i" else value
