"""Gaussian and uniform filters of scipy.ndimage: axis by axis."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, described
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.engine.jit.array_arguments import takes_arrays
from gpuop.ir.dtype_names import wide_float
from gpuop.ir.types import Shape
from gpuop.lib.ndimage.filter_arguments import (
    ImageEdge,
    axes_of,
    axis_of,
    between_steps,
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
from gpuop.lib.ndimage.filters.neighbours import in_dtype, read_around, steps_along, stored
from gpuop.lib.ndimage.scalar_arguments import numbers_of, real, whole
from gpuop.ops.layout.gather import Reading, own_place
from gpuop.ops.layout.layouts import swapaxes
from gpuop.ops.reduce.kernels import planes_of

NONE = 1e-15  # standard deviations up to this filter nothing
OF_GAUSSIANS = ("direct", "recursive")
SHORT = ("int8", "uint8", "int16", "uint16")


@takes_arrays()
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
    return _blurred(input, sigma, number, order, output, edge(mode, cval, input), truncate, radius, method)


@takes_arrays()
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
        *(each(arg, len(chosen), name) for name, arg in (("sigma", sigma), ("order", order), ("mode", mode))),
        each(radius, len(chosen), "radius"),
        strict=True,
    )
    field, dtype = input, result_dtype(output, input)
    for axis, deviation, derivative, outside, reach in rows:
        if real(deviation, "sigma") > NONE:
            at = edge(outside, cval, field)
            field = _blurred(field, deviation, axis, derivative, wide_float(dtype), at, truncate, reach, method)
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
            raise ArgumentError("`method='recursive'` takes `order=0` and a standard deviation above 0")
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
    if not order:
        return [float(w) for w in weights]
    factor = np.polynomial.Polynomial([1.0])
    for _ in range(order):
        factor = factor.deriv() - factor * np.polynomial.Polynomial([0.0, 1.0 / (sigma * sigma)])
    return [float(w) for w in weights * factor(x)]


@takes_arrays()
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
    number, at = axis_of(axis, rank(input)), edge(mode, cval, input)
    return _mean(input, whole(size, "size"), number, output, at, origin, method_of(method, METHODS))


@takes_arrays()
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
            field = _mean(field, n, axis, wide_float(dtype), edge(outside, cval, field), shift, method)
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
        partial=lambda count: _sum_dtype(field, count) if computed == "int32" else between_steps(field, computed),
        last=lambda total: total / size,
    )
    return window.nested(field, dtype) if window.is_nested(method) else window.direct(field, dtype)


def _summed_in(field: Field, size: int, at: ImageEdge, dtype: str) -> str:
    """Return the dtype of sums of a window: for short integers with means of the same dtype, one that holds the sums."""
    short = field.dtype in SHORT and dtype == field.dtype and size < 1 << 15
    fits = at.border != "constant" or field.type.element.holds(at.cval)
    return "int32" if short and fits else computed_in(field, dtype)


def _sum_dtype(field: Field, count: int) -> str:
    """Return the dtype of sums of `count` values."""
    limits = np.iinfo(field.dtype)
    return np.min_scalar_type((int(limits.min) or int(limits.max)) * count).name


# --- recursive Gaussians, whose time does not depend on the standard deviation ----------------------------------------
# One side of a Gaussian is nearly a sum of three decaying oscillations (R. Deriche, Recursively implementing the Gaussian and its
# derivatives, INRIA 1893, 1993). A sum with such weights follows from that at the point before by a complex product. The
# coefficients are a least-squares fit, within 9e-6 of the Gaussian's maximum at every distance.
#
# Lines are filtered in parallel chunks, each of which begins with the points before it. The chunks follow from the shape and the
# standard deviation alone, so results are equal on every device.


# exp(-x² / 2) is nearly the real part of the sum of FACTORS · exp(-RATES · x), for x of 0 and more
FACTORS = 2 * np.array([1.57730723 - 3.65657778j, -1.15658019 + 0.4600377j, 0.07926875 + 0.02195737j])
RATES = np.array([2.18275819 - 0.52660543j, 2.15165845 - 1.61612893j, 2.07928222 - 2.85671957j])
REACH = 6  # standard deviations beyond which weights are negligible
CHUNK = 256  # least number of points of a chunk; wide Gaussians have longer chunks
ABOVE = 2.0**-10  # added to sums that become integers, because rounding may have brought them below one


def recursive(field: Field, sigma: float, axis: int, dtype: str, at: ImageEdge) -> Field:
    """Return the sums along an axis with the weights of a Gaussian."""
    last = rank(field) - 1
    if axis == last > 0:  # neighbouring threads are on neighbouring lines
        return swapaxes(recursive(swapaxes(field, last - 1, last), sigma, last - 1, dtype, at), last - 1, last)
    lines = _Lines(field, sigma, axis, dtype, at)
    key = (sigma, axis, at)
    return library_call("gaussian_filter1d_recursive", (lines.out,), [field], lines.body, key, whole=True)[0]


class _Lines:
    """Lines along an axis; a thread filters one chunk of a line."""

    def __init__(self, field: Field, sigma: float, axis: int, dtype: str, at: ImageEdge) -> None:
        self.field, self.axis, self.at = field, axis, at
        self.out, self.computed = field.type.replace(dtype=dtype), computed_in(field, dtype)
        self.reach, self.extent = math.ceil(REACH * sigma), field.field_shape[axis]
        self.chunk = min(max(CHUNK, 4 * self.reach), self.extent)
        self.poles: Any = np.exp(-RATES / sigma)
        after = sum((FACTORS * self.poles**n).real.sum() for n in range(1, self.reach + 1))
        self.factors = FACTORS / (FACTORS.real.sum() + 2 * after)  # all weights add up to 1

    def body(self) -> None:
        grid = list(self.field.field_shape)
        grid[self.axis] = -(-self.extent // self.chunk)
        k._globalThreads(Shape(grid), planes_of(self.out))
        self.own = list(own_place(len(grid)))
        self.own[self.axis] = self.own[self.axis] * self.chunk
        sums_before = (k._floatArray if self.computed == "float32" else k._doubleArray)(self.chunk)
        sums = _Recursion(self.poles, self.computed)
        with k._for(self.reach) as n:
            sums.add(self._value(n - self.reach))
        with k._for(self.chunk) as n:
            sums.add(self._value(n))
            sums_before[n] = sums.total(self.factors)
        sums = _Recursion(self.poles, self.computed)  # sums of the points behind
        with k._for(self.reach) as n:
            sums.add(self._value(self.chunk + self.reach - 1 - n))
        with k._for(self.chunk) as n:
            at = self.chunk - 1 - n
            self._write(at, sums_before[at] + sums.total(self.factors * self.poles))
            sums.add(self._value(at))

    def _value(self, n: Any) -> Any:
        """Return the value at a point of the chunk, or beyond."""
        step, read = steps_along(self.axis, len(self.own), 0)(n), Reading(True, k._tensorElement)
        return k._convert(read_around(self.field, self.own, step, read, self.at), self.computed)

    def _write(self, n: Any, total: Any) -> None:
        if self.out.element.kind in "iu":
            total = total + ABOVE
        place = [p + n if a == self.axis else p for a, p in enumerate(self.own)]
        with k._if(place[self.axis] < self.extent):
            k._writeTensorElement(k._out0, stored(total, self.out), *place, k._tensorElement)


class _Recursion:
    """Weighted sums of the points before, a complex number for each pole."""

    def __init__(self, poles: Sequence[complex], computed: str) -> None:
        self.poles = poles
        self.sums = [tuple(k._var(k._convert(0, computed)) for _ in range(2)) for _ in poles]

    def add(self, value: Any) -> None:
        for pole, (re, im) in zip(self.poles, self.sums, strict=True):
            a, b = float(pole.real), float(pole.imag)
            new = re * a - im * b + value
            im.assign(re * b + im * a)
            re.assign(new)

    def total(self, factors: Sequence[complex]) -> Any:
        """Return the real part of the sums times factors."""
        terms = [
            real * float(f.real) - imaginary * float(f.imag)
            for f, (real, imaginary) in zip(factors, self.sums, strict=True)
        ]
        return terms[0] + terms[1] + terms[2]
