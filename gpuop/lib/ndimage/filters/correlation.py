"""Correlation and convolution of scipy.ndimage, over windows and along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.lib.ndimage.array_arguments import of_arrays
from gpuop.lib.ndimage.filter_arguments import (
    SMALL,
    ImageEdge,
    axis_of,
    check_origin,
    each,
    edge,
    method_of,
    rank,
    result_dtype,
    spread,
    summed_in,
    window_axes,
)
from gpuop.lib.ndimage.filters.fft_correlation import by_fft, by_size, check_exact, has_transform
from gpuop.lib.ndimage.filters.neighbours import Around, combined, neighbourhood, numbers_at, steps_along
from gpuop.lib.ndimage.filters.weighted_windows import EPSILON, WORTH, added, factors_of, one_by_one
from gpuop.lib.ndimage.scalar_arguments import numbers_of, whole

METHODS_OF_LINES = ("direct", "fft")
METHODS = ("direct", "separable", "fft")


@of_arrays()
def correlate1d(
    input: Any,
    weights: Any,
    axis: Any = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
    *,
    method: Any = None,
) -> Any:
    """scipy.ndimage.correlate1d: weighted sums of the values around each point, along one axis.

    Args:
        input: a Field, or an array.
        weights: one number or more; kernels are compiled for them. Complex weights are conjugated, and give complex results.
        axis: axis of the grid.
        output: a dtype, or an array; by default the dtype of `input`.
        mode: reflect, mirror, nearest, wrap or constant, as in SciPy; also grid-mirror, grid-wrap, grid-constant.
        cval: value outside, for mode constant.
        origin: shift of the window towards the axis' end.
        method: "direct", the default, or "fft", as in `correlate`.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong modes, axes, weights, origins or methods; a ValueError and a RuntimeError.
    """
    numbers, number = weights_of(weights), axis_of(axis, rank(input))
    return _along_line("correlate1d", input, numbers, number, output, edge(mode, cval), origin, method)


@of_arrays()
def convolve1d(
    input: Any,
    weights: Any,
    axis: Any = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
    *,
    method: Any = None,
) -> Any:
    """scipy.ndimage.convolve1d: `correlate1d` with reversed weights."""
    turned, number = weights_of(weights)[::-1].conj(), axis_of(axis, rank(input))
    shift = -whole(origin, "origin") - (len(turned) % 2 == 0)
    return _along_line("convolve1d", input, turned, number, output, edge(mode, cval), shift, method)


@of_arrays()
def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.correlate: weighted sums of the values around each point, over as many axes as are filtered.

    Args:
        input, output, mode, cval: as in `correlate1d`.
        weights: an array of numbers; complex ones are conjugated, and give complex results.
        origin: shift of the window towards the end of each axis: an integer, or one for each.
        axes: axes of the weights; by default all.
        method: "direct" adds the values of the window one by one. "separable" filters axis by axis, for weights that are an outer
            product; it is the default for 49 weights or more, for integer results only if the factors are integers. Sums of
            integers are the same then, those of floats differ in the last places. "fft" multiplies spectra, in a time that hardly
            depends on the number of weights. Its errors are relative to the largest sums: 5e-7 of the greatest value times the sum
            of the weights' magnitudes in float32, 1e-15 in float64; if a value is an infinity or NaN, all sums are NaN. Integer
            results are exact, or refused: the field and the weights must be integers and not too large. It is the default for many
            weights of arrays on CPUs, if results are such integers; a warning says where it would take a tenth of the time.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong modes, axes, weights, origins or methods; a ValueError and a RuntimeError.
    """
    return _windowed("correlate", input, weights, output, edge(mode, cval), origin, axes, method, turned=False)


@of_arrays()
def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.convolve: `correlate` with weights reversed along every axis."""
    return _windowed("convolve", input, weights, output, edge(mode, cval), origin, axes, method, turned=True)


def weights_of(weights: Any) -> Numbers:
    """Return the weights of an axis."""
    numbers = numbers_of(weights, "weights")
    if numbers.ndim != 1 or not numbers.size:
        raise ArgumentError(
            f"no filter weights given: they are one number or more in a row, not of shape {numbers.shape}"
        )
    return numbers


def by_parts(field: Field, weights: Numbers, output: Any, filtered: Callable[[Field, Numbers, str], Field]) -> Field:
    """Filter with real weights, or with the real and the imaginary parts of complex ones, which are conjugated."""
    if weights.dtype.kind != "c":
        return filtered(field, weights.astype(np.float64), result_dtype(output, field))
    if field.dtype not in (*SMALL, "complex64"):
        raise UnsupportedError(
            f"complex weights of a field of {field.dtype}: its result has no dtype, as none is complex128"
        )
    kind = result_dtype(output, field, real=False)
    both = field if field.dtype == kind else field.astype(kind)
    made: Any = filtered(both, weights.real.astype(np.float64), kind)
    return made - 1j * filtered(both, weights.imag.astype(np.float64), kind)  # type: ignore[no-any-return]


def _along_line(
    name: str, field: Field, weights: Numbers, axis: int, output: Any, at: ImageEdge, origin: int, method: Any
) -> Field:
    check_origin(origin, len(weights), "weights")
    transformed = method_of(method, METHODS_OF_LINES) == "fft"
    shifts = [len(weights) // 2 + origin if a == axis else 0 for a in range(rank(field))]

    def filtered(part: Field, own: Numbers, dtype: str) -> Field:
        if not transformed:
            return along(part, own, axis, dtype, at, origin, name)
        return _summed(name, part, spread(own, (axis,), rank(field), "weights"), shifts, at, dtype, method)

    return by_parts(field, weights, output, filtered)


def along(
    field: Field,
    weights: Sequence[float] | Numbers,
    axis: int,
    output: Any,
    at: ImageEdge,
    origin: int = 0,
    name: str = "correlate1d",
) -> Field:
    """Return the sums along an axis in SciPy's order of additions: pairs of equal weights first."""
    check_origin(origin, len(weights), "weights")
    weights = tuple(float(w) for w in weights)
    dtype, half = result_dtype(output, field), len(weights) // 2

    at_step = steps_along(axis, rank(field), origin)
    computed = summed_in(field, dtype, np.array(weights), at)
    sign = _symmetry(weights)
    weights = tuple(map(int, weights)) if computed == "int64" else weights
    table = numbers_at(weights, computed)

    def total(around: Around) -> Any:
        if sign:

            def pair(n: Any) -> Any:
                low, high = around(at_step(n - half)), around(at_step(half - n))
                return (low + high if sign > 0 else low - high) * table(n)

            return combined(half, pair, _add, around(at_step(0)) * weights[half])
        last = len(weights) - 1
        start = around(at_step(last - half)) * weights[last]
        return combined(last, lambda n: around(at_step(n - half)) * table(n), _add, start)

    return neighbourhood(name, field, total, at, computed, dtype, (weights, axis, origin))


def _symmetry(weights: Sequence[float]) -> int:
    """Return 1 for symmetric weights, -1 for antisymmetric ones, else 0."""
    if len(weights) % 2 == 0:
        return 0
    half = len(weights) // 2
    sides = [(weights[half - n], weights[half + n]) for n in range(1, half + 1)]
    if all(abs(a - b) <= EPSILON for a, b in sides):
        return 1
    return -1 if all(abs(a + b) <= EPSILON for a, b in sides) else 0


def _add(total: Any, term: Any) -> Any:
    return total + term


def _windowed(
    name: str, field: Field, weights: Any, output: Any, at: ImageEdge, origin: Any, axes: Any, method: Any, turned: bool
) -> Field:
    method = method_of(method, METHODS)
    numbers, chosen = numbers_of(weights, "weights"), window_axes(axes, rank(field))
    window = spread(numbers, chosen, rank(field), "weights")
    origins = dict(zip(chosen, each(origin, len(chosen), "origin"), strict=True))
    if turned:
        window = np.flip(window).conj()
        origins = {a: -whole(o, "origin") - (window.shape[a] % 2 == 0) for a, o in origins.items()}
    for a, o in origins.items():
        check_origin(o, window.shape[a], "weights")
    if not window.size:
        return field
    shifts = [n // 2 + origins.get(a, 0) for a, n in enumerate(window.shape)]

    def filtered(part: Field, own: Numbers, dtype: str) -> Field:
        return _summed(name, part, own, shifts, at, dtype, method)

    return by_parts(field, window, output, filtered)


def _summed(
    name: str, field: Field, window: Numbers, shifts: Sequence[int], at: ImageEdge, dtype: str, method: Any
) -> Field:
    """Return the sums of a window with real weights."""
    told = name, field, window, shifts, at, dtype
    if method == "fft" and has_transform(field, window):
        check_exact(field, window, at, dtype)
        return by_fft(*told, "`method='fft'` asks for it")
    whole = dtype not in ("float16", "float32", "float64", "complex64")
    wanted = method == "separable" or (method is None and window.size >= WORTH)
    parts = factors_of(window, whole and method is None) if wanted else None
    if parts is not None:
        return one_by_one(field, parts, shifts, at, dtype, along)
    if method == "separable" and window.any() and sum(n > 1 for n in window.shape) > 1:
        raise ArgumentError("`method='separable'` is of weights that are products of weights along each axis")
    return by_size(*told) if method is None and has_transform(field, window) else added(*told)
