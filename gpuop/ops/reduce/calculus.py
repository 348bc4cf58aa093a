"""NumPy derivatives, integrals and means along axes, and interpolation in rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.ir.dtype_names import COMPLEX_DTYPES, FLOATS
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise.algebra import apply, astype, common_dtype, narrowed, where, widened
from gpuop.ops.elementwise.precise_dtypes import LONG_INTEGERS, floating
from gpuop.ops.layout.axes import Axis, a_field, axes_of, numbered, of_field, several, type_of
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.layout.join import concatenate, diff
from gpuop.ops.layout.layouts import ravel, reshaped
from gpuop.ops.layout.reorder import take
from gpuop.ops.reduce.functions import called as reduction
from gpuop.ops.scan.scans import cumprod, cumsum
from gpuop.ops.sort.search import count_passing

# --- derivatives ----------------------------------------------------------------------------------------------------------


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """numpy.gradient: a field along one axis, else a tuple of them."""
    field = a_field("gradient", f)
    field = astype(field, "float32") if field.dtype in ("bool", "unorm8") else field
    count, of = of_field(field)
    axes = list(range(count)) if axis is None else several(axis, count, of)
    if edge_order not in (1, 2):
        raise SemanticError(f"gradient: `edge_order` is 1 or 2, not {edge_order!r}")
    if len(varargs) not in (0, 1, len(axes)):
        raise SemanticError(f"gradient: {len(varargs)} spacings for {len(axes)} axes: give as many, or one")
    spacings = [*varargs] * len(axes) if len(varargs) == 1 else [*varargs] or [1.0] * len(axes)
    grids = tuple(_slope(field, n, each, int(edge_order)) for n, each in zip(axes, spacings, strict=True))
    return grids[0] if len(grids) == 1 else grids


def _slope(field: Field, axis: int, spacing: Any, order: int) -> Field:
    """Return differences of neighbours, one-sided at the ends, from two points or three."""
    extent = field.shape[axis]
    if extent <= order:
        raise SemanticError(f"gradient: axis {axis} of a {field.type} field has fewer than {order + 1} points")
    steps = _steps(field, axis, spacing)
    in_grid = axis < len(field.field_shape)  # otherwise the tensor axes become grid axes meanwhile
    flat = field if in_grid else reshaped("gradient", field, [Axis(at.extent) for at in axes_of(field.type)])
    result = _even(flat, axis, float(steps[0]), order) if np.ptp(steps) == 0 else _uneven(flat, axis, steps, order)
    return reshaped("gradient", result, axes_of(field.type))


def _steps(field: Field, axis: int, spacing: Any) -> Numbers:
    """Return the distances of neighbours."""
    extent = field.shape[axis]
    places = None if isinstance(spacing, Field) else np.asarray(spacing, float)
    if places is None or places.shape not in ((), (extent,)):
        raise SemanticError(f"gradient: the places along axis {axis} are an array of {extent} numbers, or one distance")
    return np.diff(places) if places.ndim else np.full(extent - 1, float(places))


def _even(flat: Field, axis: int, step: float, order: int) -> Field:
    extent, ends = flat.shape[axis], (-1.5 / step, 2 / step, -0.5 / step)

    def value(at: Place, read: Reading, dtype: str) -> Any:
        def there(n: Any) -> Any:
            return _as(dtype, read.at(flat, [*at[:axis], n, *at[axis + 1 :]], "clamp"))

        own = at[axis]
        edge = (own == 0) | (own == extent - 1)
        if order == 1:
            return (there(own + 1) - there(own - 1)) / k._where(edge, step, 2 * step)
        slope = k._var((there(own + 1) - there(own - 1)) / (2 * step))
        with k._if(edge):
            turn, inward = k._where(own == 0, 1.0, -1.0), k._where(own == 0, 1, -1)
            points = [there(own + inward * n) * weight for n, weight in enumerate(ends)]
            slope.assign((points[0] + points[1] + points[2]) * turn)
        return slope

    return _sloped(flat, [flat], value, (axis, order, step))


def _as(dtype: str, value: Any) -> Any:
    """Return a value in a dtype; complex numbers are read as pairs of parts."""
    return value if dtype in COMPLEX_DTYPES else k._convert(value, dtype)


def _sloped(flat: Field, fields: Sequence[Field], value: Callable[[Place, Reading, str], Any], key: Any) -> Field:
    out = flat.type.replace(dtype=floating(flat.dtype))
    return gathered("gradient", out, fields, value, key, True, steps_of=flat.dtype)


def _uneven(flat: Field, axis: int, steps: Numbers, order: int) -> Field:
    """Return sums of three points around each place (at the ends the first or last three), with weights for each place."""
    extent = flat.shape[axis]
    accumulator = "float64" if flat.dtype == "float64" else "float32"
    table = Field(_weights(steps, order).astype(accumulator), 0)

    def value(at: Place, read: Reading, dtype: str) -> Any:
        first = k._max(0, k._min(at[axis] - 1, extent - 3))
        points = [_as(dtype, read.at(flat, [*at[:axis], first + n, *at[axis + 1 :]])) for n in range(3)]
        weights = [k._readTensor(table, at[axis], n, border="unchecked") for n in range(3)]
        if (
            flat.dtype not in FLOATS
        ):  # weights add up to 0: the common part of the points cancels before anything is rounded
            return (points[0] - points[1]) * weights[0] + (points[2] - points[1]) * weights[2]
        return points[0] * weights[0] + points[1] * weights[1] + points[2] * weights[2]

    return _sloped(flat, [flat, table], value, axis)


def _weights(steps: Numbers, order: int) -> Numbers:
    table = np.zeros((steps.size + 1, 3))
    before, behind = steps[:-1], steps[1:]
    both = before + behind
    table[1:-1] = np.stack(
        [-behind / (before * both), (behind - before) / (before * behind), before / (behind * both)], 1
    )
    if order == 1:
        table[0], table[-1] = (-1 / steps[0], 1 / steps[0], 0), (0, -1 / steps[-1], 1 / steps[-1])
        return table
    for end, (a, b), turn in ((0, steps[:2], 1), (-1, steps[:-3:-1], -1)):
        weights = np.array([-(2 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b))])
        table[end] = (turn * weights)[::turn]
    return table


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Field:
    """numpy.ediff1d."""
    field = ravel(a_field("ediff1d", ary))
    field = astype(field, "int32") if field.dtype == "bool" else field
    ends = [None if e is None else ravel(e) if isinstance(e, Field) else Field(np.ravel(e)) for e in (to_begin, to_end)]
    parts = [part for part in (ends[0], diff(field), ends[1]) if part is not None]
    return concatenate(parts, dtype=field.dtype)


def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * math.pi) -> Field:
    """numpy.unwrap."""
    original = a_field("unwrap", p)
    field = widened(original)
    n = numbered(axis, *of_field(field))
    before: tuple[Any, ...] = (slice(None),) * n
    if field.shape[n] < 2:
        return narrowed(field, original)
    steps, half = diff(field, axis=n), period / 2
    wrapped = apply("subtract", apply("remainder", apply("add", steps, half), period), half)
    up = apply("logical_and", apply("equal", wrapped, -half), apply("greater", steps, 0))
    wrapped = where(up, half, wrapped)
    limit = half if discont is None else max(discont, half)
    change = where(apply("less", apply("absolute", steps), limit), 0.0, apply("subtract", wrapped, steps))
    first = field[(*before, slice(0, 1))]
    unwrapped = concatenate([first, apply("add", field[(*before, slice(1, None))], cumsum(change, n))], n)
    return narrowed(unwrapped, original)


# --- integrals and means --------------------------------------------------------------------------------------------------


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Field:
    """numpy.trapezoid."""
    original = a_field("trapezoid", y)
    field = widened(original)
    n = numbered(axis, *of_field(field))
    before: tuple[Any, ...] = (slice(None),) * n
    means = apply("add", field[(*before, slice(1, None))], field[(*before, slice(None, -1))])
    if x is not None:
        places = x if isinstance(x, Field) else Field(np.asarray(x, str(field.dtype)))
        dx = diff(places) if places.ndim > 1 else _along(diff(places), field, n)
    return narrowed(reduction("sum", apply("divide", apply("multiply", means, dx), 2.0), n), original)


def _along(row: Field, field: Field, axis: int) -> Field:
    """Return a row as one along an axis of a field."""
    axes = [Axis(1, at.tensor) for at in axes_of(field.type)]
    axes[axis] = Axis(row.size, axes[axis].tensor)
    if not axes[axis].tensor:
        axes = [at for at in axes if not at.tensor]
    return reshaped("trapezoid", row, axes)


def _cumulative(
    name: str, scan: Callable[..., Field], first: int, x: Any, axis: Any, dtype: Any, out: Any, include_initial: Any
) -> Field:
    field = a_field(name, x)
    if out is not None or (axis is None and field.ndim != 1):
        raise SemanticError(
            f"{name}: a field of one dimension, or an `axis`, and no `out`: a Field's values do not change"
        )
    n = numbered(0 if axis is None else axis, *of_field(field))
    result = scan(field if dtype is None else astype(field, dtype), n)
    result = result if dtype is None else astype(result, dtype)
    if not include_initial:
        return result
    axes = axes_of(result.type)
    axes[n] = Axis(1, axes[n].tensor, axes[n].name)
    return concatenate([filled(type_of(name, axes, result.dtype), first), result], n)


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: Any = False
) -> Field:
    """numpy.cumulative_sum."""
    return _cumulative("cumulative_sum", cumsum, 0, x, axis, dtype, out, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: Any = False
) -> Field:
    """numpy.cumulative_prod."""
    return _cumulative("cumulative_prod", cumprod, 1, x, axis, dtype, out, include_initial)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Field:
    """numpy.ptp."""
    field = a_field("ptp", a)
    if out is not None:
        raise SemanticError("ptp: there is no `out`, a Field's values do not change")
    greatest, least = (reduction(name, field, axis, keepdims=bool(keepdims)) for name in ("max", "min"))
    return apply("subtract", greatest, least)


def average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False) -> Any:
    """numpy.average; with `returned=True` the sums of weights too."""
    field = a_field("average", a)
    keep = bool(keepdims)
    if weights is None:
        mean = reduction("mean", field, axis, keepdims=keep)
        count = field.size // max(mean.size, 1)
        return (mean, filled(mean.type, count)) if returned else mean
    factors = weights if isinstance(weights, Field) else Field(np.asarray(weights, widened(field).type.array_dtype))
    if factors.shape != field.shape:
        if axis is None or isinstance(axis, tuple) or factors.ndim != 1:
            raise SemanticError("average: weights have the shape of the field, or are a row, along one `axis`")
        factors = apply(
            "multiply", _along(factors, field, numbered(axis, *of_field(field))), apply("equal", field, field)
        )
    result = filled(
        field.type.replace(dtype=common_dtype([field, weights if isinstance(weights, Field) else 1.0, 1.0])), 0
    )
    total = reduction("sum", widened(factors), axis, keepdims=keep)
    weighted = reduction("sum", apply("multiply", widened(field), factors), axis, keepdims=keep)
    mean = narrowed(apply("divide", weighted, total), result)
    return (mean, astype(total, mean.dtype)) if returned else mean


# --- interpolation --------------------------------------------------------------------------------------------------------


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Field:
    """numpy.interp, in the fields' floating dtype; what is no Field is a row of numbers beside them."""
    fields = [f for f in (x, xp, fp) if isinstance(f, Field)]
    dtype = common_dtype([*fields, 1.0])
    if any(np.iscomplexobj(row) for row in (x, xp, fp) if not isinstance(row, Field)):
        raise SemanticError("interp does not take complex numbers beside fields; interpolate `.real` and `.imag`")
    if dtype in COMPLEX_DTYPES:
        raise SemanticError(f"interp does not take {dtype} fields; interpolate `.real` and `.imag`")
    places = x if isinstance(x, Field) else Field(_beside(x, dtype))
    if period is not None:
        if not period:
            raise SemanticError("interp: `period` is not 0")
        places, xp, fp, left, right = _periodic(places, xp, fp, float(period))
    rows = [row if isinstance(row, Field) else Field(_beside(row, dtype)) for row in (xp, fp)]
    if any(row.ndim != 1 or row.tensor_shape for row in rows) or rows[0].size != rows[1].size or not rows[0].size:
        raise SemanticError("interp: `xp` and `fp` are rows of as many numbers, at least one")
    return _interpolated(places, rows[0], rows[1], left, right, dtype)


def _periodic(x: Field, xp: Any, fp: Any, period: float) -> tuple[Any, ...]:
    """Return the values of one period in order, and one more at each end."""
    if isinstance(xp, Field):
        raise SemanticError("interp: with `period=` the places `xp` are numbers, not a Field")
    places = np.asarray(xp, float) % abs(period)
    order = np.argsort(places)
    order = np.concatenate([order[-1:], order, order[:1]])
    places = places[order]
    places[0] -= abs(period)
    places[-1] += abs(period)
    values = take(fp, order) if isinstance(fp, Field) else np.asarray(fp)[order]
    return apply("remainder", x, abs(period)), places, values, None, None


def _beside(row: Any, dtype: str) -> Numbers:
    """Return numbers in the dtype of fields; integers stay as they are if it does not represent them."""
    array = np.asarray(row)
    return array if array.dtype.name in LONG_INTEGERS else np.asarray(row, dtype)


def _interpolated(x: Field, xp: Field, fp: Field, left: Any, right: Any, dtype: str) -> Field:
    """Interpolate on the line through the two values around each place."""
    count = xp.size

    def value(at: Place, read: Reading, steps: str) -> Any:
        def as_dtype(value: Any) -> Any:
            return k._convert(value, steps)

        own = as_dtype(read.at(x, at))
        n = count_passing(count, lambda place: as_dtype(k._readTensor(xp, place, border="unchecked")) <= own)
        low = k._max(0, k._min(n - 1, count - 2))
        x0, x1 = (as_dtype(k._readTensor(xp, low + i)) for i in range(2))
        y0, y1 = (as_dtype(k._readTensor(fp, low + i)) for i in range(2))
        slope = (y1 - y0) / (x1 - x0)
        on_line = slope * (own - x0) + y0
        on_line = k._where(on_line == on_line, on_line, slope * (own - x1) + y1)  # as NumPy beside infinities
        on_line = k._where((on_line != on_line) & ((own == x0) | (y0 == y1)), y0, on_line)
        first, last, end = (as_dtype(k._readTensor(row, n)) for row, n in ((fp, 0), (fp, count - 1), (xp, count - 1)))
        before, behind = (
            own_end if number is None else as_dtype(number) for own_end, number in ((first, left), (last, right))
        )
        inside = k._where(own == end, last, on_line)
        outside = k._where(n == 0, before, k._where(own > end, behind, inside))
        return k._where(own != own, first if count == 1 else own, outside)

    fields = [x, xp, fp]
    long = next((f.dtype for f in fields if f.dtype in LONG_INTEGERS), dtype)
    steps_of = "float64" if dtype == "float64" else long
    return gathered("interp", x.type.replace(dtype=dtype), fields, value, (left, right, dtype), steps_of=steps_of)
