"""Filters of scipy.ndimage by user functions: generic_filter and generic_filter1d."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.lib.stride_tricks import sliding_window_view

from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.operators.host_operator import HostOperator
from gpuop.engine.jit.array_arguments import takes_arrays
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.lib.ndimage.filter_arguments import (
    ImageEdge,
    axis_of,
    check_origin,
    each,
    edge,
    rank,
    result_dtype,
    spread,
    window_axes,
    with_more,
)
from gpuop.lib.ndimage.filters.extrema import footprint_of, taps_of
from gpuop.lib.ndimage.filters.neighbours import MOST, Around, neighbourhood, steps_along
from gpuop.lib.ndimage.filters.window_values import of_values, window_values
from gpuop.lib.ndimage.scalar_arguments import whole

PADS = {
    "symmetric": "symmetric",
    "reflect": "reflect",
    "clamp": "edge",
    "wrap": "wrap",
    "constant": "constant",
}  # modes of np.pad
CHOOSING = (np.max, np.min, max, min)  # functions that return one of the values
AT_ONCE = 16  # lines that fit in a cache


def generic_filter(
    input: Any,
    function: Callable[..., Any],
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """scipy.ndimage.generic_filter: a user function of the values of a window.

    Args:
        input, size, footprint, output, mode, cval, origin, axes: as in `minimum_filter`.
        function: gets a 1D array of the window's values in double precision, and the extra arguments; returns a number. It is
            recorded once if possible: sums, means, products with weights, slices, extremes and medians, by NumPy functions or
            methods, and all of `gpuop.dsl` on elements. Functions that branch on values or call other libraries, and windows of
            more than 128 points, are called for each point on the host, as in SciPy.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong windows, modes, axes or origins; a ValueError and a RuntimeError.
        UnsupportedError: complex numbers; a TypeError.
    """
    called = with_more(function, extra_arguments, extra_keywords)
    return _filtered(input, called, size, footprint, output, mode, cval, origin, axes)


def _given_in(field: Field, function: Any, at: ImageEdge) -> str:
    """Return the dtype of a window's values: double, as in SciPy; int64 and uint64 for functions that only select a value."""
    window = at.border != "constant" or field.type.element.holds(at.cval)
    return str(field.dtype) if function in CHOOSING and field.dtype in ("int64", "uint64") and window else "float64"


@takes_arrays()
def _filtered(
    input: Any, function: Any, size: Any, footprint: Any, output: Any, mode: Any, cval: Any, origin: Any, axes: Any
) -> Field:
    field = _real(input)
    chosen = window_axes(axes, rank(field))
    mask = footprint_of(size, footprint, len(chosen))
    taps = [offset for offset, _ in taps_of(field, mask, chosen, origin, np.zeros(mask.shape))]
    dtype, at = result_dtype(output, field), edge(mode, cval, field)

    def value_at(around: Around) -> Any:
        return function(window_values([around(offset) for offset in taps]))

    if len(taps) <= MOST:
        with contextlib.suppress(Exception):  # a function that cannot be recorded is called
            return neighbourhood("generic_filter", field, value_at, at, _given_in(field, function, at), dtype, object())
    window = spread(mask, chosen, rank(field), "footprint")
    origins = dict(zip(chosen, each(origin, len(chosen), "origin"), strict=True))
    before = [n // 2 + origins.get(a, 0) for a, n in enumerate(window.shape)]

    def filtered(array: Numbers) -> Numbers:
        views = sliding_window_view(padded(array.astype(np.float64), before, window.shape, at), window.shape)
        return np.array([function(views[p][window]) for p in np.ndindex(array.shape)], np.float64).reshape(array.shape)

    return _on_host("generic_filter", field, filtered, dtype)


def generic_filter1d(
    input: Any,
    function: Callable[..., Any],
    filter_size: Any,
    axis: Any = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: Any = None,
) -> Any:
    """scipy.ndimage.generic_filter1d: a user function of each line along an axis.

    Args:
        input, axis, output, mode, cval, origin: as in `correlate1d`.
        function: gets a line in double precision, extended at both ends, an array that it writes the result to, and the extra
            arguments. It is recorded once if possible: slices, arithmetic, elementwise NumPy functions, and `np.convolve` with few
            weights, written to the whole result. Others are called for each line on the host, as in SciPy.
        filter_size: window size; an extended line is longer than its result by one less than this.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong sizes, modes, axes or origins; a ValueError and a RuntimeError.
        UnsupportedError: complex numbers; a TypeError.
    """
    called = with_more(function, extra_arguments, extra_keywords)
    return _by_lines(input, called, filter_size, axis, output, mode, cval, origin)


@takes_arrays()
def _by_lines(
    input: Any, function: Any, filter_size: Any, axis: Any, output: Any, mode: Any, cval: Any, origin: Any
) -> Field:
    field, number = _real(input), axis_of(axis, rank(input))
    size, at = whole(filter_size, "filter_size"), edge(mode, cval, field)
    if size < 1:
        raise ArgumentError(f"invalid filter size {size}: it is 1 or more")
    check_origin(origin, size)

    count, before, dtype = field.field_shape[number], size // 2 + origin, result_dtype(output, field)

    def value_at(around: Around) -> Any:
        result = ResultLine(count)
        function(LineValues(count + size - 1, lambda n: around(steps_along(number, rank(field), before)(n))), result)
        return result.at(0)

    with contextlib.suppress(Exception):  # a function that cannot be recorded is called
        return neighbourhood("generic_filter1d", field, value_at, at, "float64", dtype, object())

    def on_host(array: Numbers) -> Numbers:
        lines = np.moveaxis(array, number, -1)
        results = _lines_filtered(lines.reshape(-1, lines.shape[-1]), function, size, before, at, _host_dtype(dtype))
        return np.moveaxis(results.reshape(lines.shape), -1, number)

    return _on_host("generic_filter1d", field, on_host, dtype)


def _lines_filtered(lines: Numbers, function: Any, size: int, before: int, at: ImageEdge, result_dtype: str) -> Numbers:
    """Apply a function to each line; lines are batched in buffers that are reused."""
    count, filtered = lines.shape[1], np.empty(lines.shape, result_dtype)
    middle = slice(before, before + count)
    input_lines, buffer = np.full((AT_ONCE, count + size - 1), at.cval), np.empty((AT_ONCE, count))
    places = padded(np.arange(count), [before], [size], at)
    for first in range(0, len(lines), AT_ONCE):
        some = lines[first : first + AT_ONCE]
        wide, values = input_lines[: len(some)], buffer[: len(some)]
        wide[:, middle] = some
        for end in (slice(0, before), slice(before + count, None)):
            wide[:, end] = at.cval if at.border == "constant" else some[:, places[end]]
        values[:] = 0
        for line, result in zip(wide, values, strict=True):
            function(line, result)
        with np.errstate(over="ignore"):
            filtered[first : first + AT_ONCE] = values
    return filtered


def _host_dtype(dtype: str) -> str:
    """Return the dtype of host results that are converted to `dtype`."""
    return dtype if dtype in ("float32", "float64") else "float64"


def _real(field: Field) -> Field:
    if field.dtype in COMPLEX_DTYPES:
        raise UnsupportedError("Complex type not supported: the function is of real numbers")
    return field


def padded(array: Numbers, before: Sequence[int], window: Sequence[int], at: ImageEdge) -> Numbers:
    """Pad an array by what windows read outside of it."""
    widths = [(low, n - 1 - low) for low, n in zip(before, window, strict=True)]
    more = {"constant_values": at.cval} if at.border == "constant" else {}
    return np.pad(array, widths, PADS[at.border], **more)  # type: ignore[call-overload,no-any-return]


def _on_host(name: str, field: Field, filtered: Callable[[Numbers], Numbers], dtype: str) -> Field:
    """Return a filter of arrays as a host operator with double results; it is applied to each element of tensors by itself."""
    if not field.field_shape.points:
        return field.astype(dtype)
    grid, result_dtype = rank(field), _host_dtype(dtype)

    def run(array: Numbers) -> Numbers:
        result = np.empty(array.shape) if array.ndim > grid else filtered(array)
        for element in np.ndindex(array.shape[grid:]) if array.ndim > grid else ():
            result[(..., *element)] = filtered(array[(..., *element)])
        with np.errstate(over="ignore"):
            return result.astype(result_dtype, copy=False)

    run.__name__ = name
    source = field.astype("float64") if field.dtype == "unorm8" else field
    result = HostOperator(run, source, outputs=field.type.replace(dtype=result_dtype))
    if result_dtype == dtype:
        return result  # type: ignore[no-any-return]
    return neighbourhood(name, result, lambda around: around((0,) * grid), ImageEdge("clamp"), "float64", dtype, dtype)


# --- symbolic values of a line, for recording -------------------------------------------------------------------------
# Elements at an offset from each point, as functions treat all points alike.


Steps = Callable[[int], Any]


class LineValues(NDArrayOperatorsMixin):
    """A symbolic line, or a part of one: ufuncs act on elements, and slices shift them.

    Other uses raise an error, and then the function is called with arrays.

    Args:
        count: number of values.
        at: function from an offset to the value at that offset from the result's place.
    """

    def __init__(self, count: int, at: Steps) -> None:
        self.shape, self.at = (count,), at

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: Any) -> LineValues:
        first, stop, step = _range(part, len(self))
        if step != 1:
            raise TypeError("a part of a recorded line has its values one after the other")
        at = self.at
        return LineValues(max(stop - first, 0), lambda steps: at(steps + first))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        (into,) = options.pop("out", (None,))
        if method != "__call__" or options:
            return NotImplemented
        result = _elementwise(lambda *values: of_values(ufunc, values), inputs)
        if into is None:
            return result
        into[...] = result
        return into

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function is np.copyto and not options:
            into, result = args
            into[...] = result
            return None
        if function in (np.convolve, np.correlate) and (args[2:] or tuple(options.values())) == ("valid",):
            return _weighted(args[0], np.asarray(args[1], np.float64)[:: -1 if function is np.convolve else 1])
        return NotImplemented


class ResultLine(LineValues):
    """The line that a function writes its result to."""

    def __init__(self, count: int) -> None:
        super().__init__(count, lambda steps: 0.0)

    def __getitem__(self, part: Any) -> LineValues:
        self._check(part)
        return self

    def __setitem__(self, part: Any, result: Any) -> None:
        self._check(part)
        self.at = _elementwise(lambda value, _: value, (result, self)).at

    def _check(self, part: Any) -> None:
        if _range(part, len(self)) != (0, len(self), 1):
            raise TypeError("a recorded result is written as a whole")


def _range(part: Any, count: int) -> tuple[int, int, int]:
    if part is Ellipsis:
        return 0, count, 1
    if not isinstance(part, slice):
        raise TypeError("a recorded line has no values that are asked for by number")
    return part.indices(count)


def _elementwise(function: Callable[..., Any], args: tuple[Any, ...]) -> LineValues:
    """Apply a function to the elements of lines of one length, and to numbers."""
    lengths = {len(line) for line in args if isinstance(line, LineValues)}
    others = [number for number in args if not isinstance(number, LineValues)]
    if len(lengths) != 1 or any(np.ndim(number) for number in others):
        raise TypeError("recorded lines are computed with beside those of one length, and numbers")
    steps = [line.at if isinstance(line, LineValues) else _same(line) for line in args]
    return LineValues(lengths.pop(), lambda n: function(*(at(n) for at in steps)))


def _same(number: Any) -> Steps:
    return lambda steps: number


def _weighted(line: Any, weights: np.ndarray[Any, Any]) -> LineValues:
    """Return the weighted sums of neighbouring values."""
    if not isinstance(line, LineValues) or weights.ndim != 1 or not 0 < len(weights) <= min(MOST, len(line)):
        raise TypeError("a recorded line is weighted by a few numbers")
    numbers, count = weights.tolist(), len(line) - len(weights) + 1
    return LineValues(count, lambda n: sum(line.at(n + m) * w for m, w in enumerate(numbers)))
