"""Gaussian and uniform filters of scipy.ndimage: axis by axis."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError, described
from gpuop.dsl.fields.field import Field
from gpuop.lib.ndimage.array_arguments import of_arrays
from gpuop.lib.ndimage.filter_arguments import (
    ImageEdge,
    axes_of,
    axis_of,
    check_origin,
    computed_in,
    each,
    edge,
    method_of,
    rank,
    result_dtype,
    windows,
)
from gpuop.lib.ndimage.filters.correlation import along
from gpuop.lib.ndimage.filters.doubling_windows import METHODS, LineWindow
from gpuop.lib.ndimage.filters.neighbours import in_dtype
from gpuop.lib.ndimage.filters.recursive_gaussian import recursive
from gpuop.lib.ndimage.scalar_arguments import numbers_of, real, whole

NONE = 1e-15  # standard deviations up to this filter nothing
OF_GAUSSIANS = ("direct", "recursive")
SHORT = ("int8", "uint8", "int16", "uint16")


@of_arrays()
def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: Any = -1,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.gaussian_filter1d: correlation along one axis with a Gaussian, or a derivative of one.

    Args:
        input, axis, output, mode, cval: as in `correlate1d`.
        sigma: the standard deviation, in points.
        order: order of the derivative.
        truncate, radius: half-width of the window, in standard deviations or points.
        method: "direct", the default, adds the values of the window, as in SciPy. "recursive" takes the same time for any
            standard deviation; it is for order 0 only, and its weights are those of an untruncated Gaussian, within 1e-5 of the
            middle one.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong modes, axes, orders, radii or methods; a ValueError and a RuntimeError.
    """
    number, method = axis_of(axis, rank(input)), method_of(method, OF_GAUSSIANS)
    return _blurred(input, sigma, number, order, output, edge(mode, cval), truncate, radius, method)


@of_arrays()
def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.gaussian_filter: `gaussian_filter1d` along several axes.

    Args:
        input, output, cval, truncate, method: as in `gaussian_filter1d`.
        sigma, order, mode, radius: as in `gaussian_filter1d`: one for all axes, or a sequence of one for each.
        axes: axes that are filtered; by default all of the grid.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong modes, axes, orders, radii or methods; a ValueError and a RuntimeError.
    """
    method = method_of(method, OF_GAUSSIANS)
    chosen = axes_of(axes, rank(input))
    rows = zip(
        chosen,
        *(each(given, len(chosen), name) for name, given in (("sigma", sigma), ("order", order), ("mode", mode))),
        each(radius, len(chosen), "radius"),
        strict=True,
    )
    field, dtype = input, result_dtype(output, input)
    for axis, deviation, derivative, outside, reach in rows:
        if real(deviation, "sigma") > NONE:
            field = _blurred(field, deviation, axis, derivative, dtype, edge(outside, cval), truncate, reach, method)
    return in_dtype(field, dtype)


def _blurred(
    field: Field,
    sigma: Any,
    axis: int,
    order: int,
    output: Any,
    at: ImageEdge,
    truncate: float,
    radius: Any,
    method: Any,
) -> Field:
    numbers_of(sigma, "sigma")  # non-numbers are a ValueError, as in SciPy
    deviation, order = real(sigma, "sigma"), whole(order, "order")
    if method == "recursive":
        if order or not deviation > NONE:
            raise ArgumentError("`method='recursive'` is of the order 0 and standard deviations above 0")
        return recursive(field, deviation, axis, result_dtype(output, field), at)
    reach = int(real(truncate, "truncate") * deviation + 0.5) if radius is None else radius
    try:
        reach = operator.index(reach)
    except TypeError:
        raise ArgumentError(f"Radius must be a nonnegative integer, not {described(reach)}") from None
    if reach < 0:
        raise ArgumentError(f"Radius must be a nonnegative integer, not {reach}")
    return along(field, gaussian_weights(deviation, order, reach)[::-1], axis, output, at)


def gaussian_weights(sigma: float, order: int, radius: int) -> list[float]:
    """Return normalized samples of a Gaussian, times the polynomial of its derivative.

    The derivative of q(x)·g(x) is (q'(x) - x/σ²·q(x))·g(x), applied `order` times to q = 1.
    """
    if order < 0:
        raise ArgumentError(f"order must be non-negative, and is {order}")
    x = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 / (sigma * sigma) * x**2)
    weights = weights / weights.sum()
    factor = np.polynomial.Polynomial([1.0])
    for _ in range(order):
        factor = factor.deriv() - factor * np.polynomial.Polynomial([0.0, 1.0 / (sigma * sigma)])
    return [float(w) for w in weights * factor(x)] if order else [float(w) for w in weights]


@of_arrays()
def uniform_filter1d(
    input: Any,
    size: Any,
    axis: Any = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
    *,
    method: Any = None,
) -> Any:
    """scipy.ndimage.uniform_filter1d: the mean of a window along an axis.

    Args:
        input, axis, output, mode, cval, origin: as in `correlate1d`.
        size: number of points of the window, 1 or more.
        method: "direct" adds the values one by one, "nested" adds sums of 3, 9, 27 … of them; the default follows from the size.
            Integers are exact either way; floats differ in the last places, and nested sums are the more exact ones.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong sizes, modes, axes, origins or methods; a ValueError and a RuntimeError.
    """
    number, at = axis_of(axis, rank(input)), edge(mode, cval)
    return _mean(input, whole(size, "size"), number, output, at, origin, method_of(method, METHODS))


@of_arrays()
def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.uniform_filter: `uniform_filter1d` along several axes.

    Args:
        input, output, cval, method: as in `uniform_filter1d`.
        size, mode, origin: as in `uniform_filter1d`: one for all axes, or a sequence of one for each.
        axes: axes that are filtered; by default all of the grid.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong sizes, modes, axes, origins or methods; a ValueError and a RuntimeError.
    """
    method = method_of(method, METHODS)
    chosen = axes_of(axes, rank(input))
    count = len(chosen)
    sizes, modes, origins = windows(size, count), each(mode, count, "mode"), each(origin, count, "origin")
    field, dtype = input, result_dtype(output, input)
    for axis, n, outside, shift in zip(chosen, sizes, modes, origins, strict=True):
        if n > 1:
            field = _mean(field, n, axis, dtype, edge(outside, cval), shift, method)
    return in_dtype(field, dtype)


def _mean(field: Field, size: int, axis: int, output: Any, at: ImageEdge, origin: int, method: Any) -> Field:
    if size < 1:
        raise ArgumentError(f"incorrect filter size {size}: it is 1 or more")
    check_origin(origin, size)
    dtype = result_dtype(output, field)
    computed = _summed_in(field, size, at, dtype)
    window = LineWindow(
        name="uniform_filter1d",
        axis=axis,
        size=size,
        origin=origin,
        at=at,
        operation=operator.add,
        repeats=False,
        computed=computed,
        held=lambda count: _held(field, count) if computed == "int32" else computed,
        last=lambda total: total / size,
    )
    return window.nested(field, dtype) if window.is_nested(method) else window.direct(field, dtype)


def _summed_in(field: Field, size: int, at: ImageEdge, dtype: str) -> str:
    """Return the dtype of sums of a window: for short integers with means of the same dtype, one that holds the sums."""
    short = field.dtype in SHORT and dtype == field.dtype and size < 1 << 15
    held = at.border != "constant" or field.type.element.holds(at.cval)
    return "int32" if short and held else computed_in(field, dtype)


def _held(field: Field, count: int) -> str:
    """Return the dtype of sums of `count` values."""
    limits = np.iinfo(field.dtype)
    return np.min_scalar_type((int(limits.min) or int(limits.max)) * count).name
