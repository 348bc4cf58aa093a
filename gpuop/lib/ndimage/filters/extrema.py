"""Minimum and maximum filters of scipy.ndimage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields.field import Field
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.lib.ndimage.filter_arguments import (
    ImageEdge,
    advise,
    axes_of,
    axis_of,
    check_origin,
    each,
    edge,
    method_of,
    named,
    rank,
    result_dtype,
    spread,
    window_axes,
    windows,
)
from gpuop.lib.ndimage.filters.doubling_windows import METHODS, LineWindow
from gpuop.lib.ndimage.filters.neighbours import Around, combined, in_dtype, neighbourhood, numbers_at, offsets_at
from gpuop.lib.ndimage.scalar_arguments import whole

Operation = Callable[[Any, Any], Any]
OPERATIONS: dict[str, Operation] = {"minimum": lambda a, b: k._min(a, b), "maximum": lambda a, b: k._max(a, b)}


LINE = """the minimum of a window along an axis.

    Args:
        input, axis, output, mode, cval, origin: as in `correlate1d`; no complex numbers.
        size: number of points of the window, 1 or more.
        method: "direct" compares the values one by one, "nested" compares extremes of 3, 9, 27 … of them; results are the same. The
            default follows from the size.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong sizes, modes, axes, origins or methods; a ValueError and a RuntimeError.
        UnsupportedError: complex numbers; a TypeError.
    """
WINDOW = """the minimum of a window around each point.

    Args:
        input, output, cval: as in `minimum_filter1d`.
        size: the window's extent, or one for each axis; needed without `footprint`.
        footprint: an array of truth values, over the axes: the points of the window.
        mode, origin: as in `minimum_filter1d`: one for all axes, or a sequence of one for each (modes with `size` only).
        axes: axes of the window; by default all of the grid.
        method: as in `minimum_filter1d`; windows that are not boxes are direct.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong windows, modes, axes, origins or methods; a ValueError and a RuntimeError.
        UnsupportedError: complex numbers; a TypeError.
    """


def _filter1d(which: str, about: str) -> Callable[..., Any]:
    def function(
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
        number, at = axis_of(axis, rank(input)), edge(mode, cval, input)
        return line(which, input, whole(size, "size"), number, output, at, origin, method_of(method, METHODS))

    return named(function, f"{which}_filter1d", about)


def _filter(which: str, about: str) -> Callable[..., Any]:
    def function(
        input: Any,
        size: Any = None,
        footprint: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
        method: Any = None,
    ) -> Any:
        return extremum(which, input, size, footprint, None, output, mode, cval, origin, axes, method)

    return named(function, f"{which}_filter", about)


minimum_filter1d = _filter1d("minimum", LINE)
maximum_filter1d = _filter1d("maximum", "the maximum of a window along an axis, as `minimum_filter1d`.")
minimum_filter = _filter("minimum", WINDOW)
maximum_filter = _filter("maximum", "the maximum of a window around each point, as `minimum_filter`.")


def extremum(
    which: str,
    field: Field,
    size: Any,
    footprint: Any,
    structure: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
    method: Any = None,
) -> Field:
    """Return the extremes of windows; with a structure, of values minus (minimum) or plus (maximum) the structure's."""
    chosen, method = axes_of(axes, rank(field)), method_of(method, METHODS)
    window = footprint_of(size, footprint, len(chosen), structure)
    if structure is None and window.all():
        return _box(which, field, list(window.shape), chosen, output, mode, cval, origin, method)
    if method == "nested":
        raise ArgumentError("`method='nested'` takes windows that are boxes, without a structure")
    one_mode(mode)
    heights = np.zeros(window.shape) if structure is None else np.asarray(structure, np.float64)
    if heights.shape != window.shape:
        raise ArgumentError(f"structure array has incorrect shape {heights.shape}: the footprint's is {window.shape}")
    structure = structure if heights.any() else None  # a flat structure adds nothing
    taps = taps_of(field, window, window_axes(chosen, rank(field)), origin, heights)
    dtype, at = result_dtype(output, field), edge(mode, cval, field)
    sign, join = (-1.0 if which == "minimum" else 1.0), OPERATIONS[which]
    computed = compared_in(field, at) if structure is None else "float64" if field.dtype != "float32" else "float32"
    place = offsets_at([offset for offset, _ in taps])
    table = numbers_at([sign * height for _, height in taps], computed)

    def value_at(around: Around) -> Any:
        def term(n: Any) -> Any:
            value = around(place(n))
            return value if structure is None else value + table(n)

        return combined(len(taps), term, join)

    return neighbourhood(f"{which}_filter", field, value_at, at, computed, dtype, (tuple(taps), structure is None))


def footprint_of(size: Any, footprint: Any, count: int, structure: Any = None) -> np.ndarray[Any, Any]:
    """Return the points of a window over `count` axes, as truth values.

    Raises:
        ArgumentError: there is no window, or it has no point.
    """
    if footprint is None and structure is not None:
        return np.ones(np.shape(structure), bool)
    if footprint is None:
        if size is None:
            raise ArgumentError("no footprint provided: give `size=` or `footprint=`")
        sizes = windows(size, count)
        if min(sizes, default=1) < 0 or (count and 0 in sizes):
            raise ArgumentError(f"incorrect filter size {size}: it is 1 or more")
        return np.ones(sizes, bool)
    if size is not None:
        advise("ignoring size because footprint is set")
    window = np.asarray(footprint, bool)
    if not window.any():
        raise ArgumentError("All-zero footprint is not supported: a window has a point or more")
    return window


def one_mode(mode: Any) -> None:
    """Refuse a sequence of modes."""
    if not isinstance(mode, str) and np.iterable(mode):
        raise ArgumentError("A sequence of modes is not supported for non-separable footprints: give one")


def taps_of(
    field: Field, window: np.ndarray[Any, Any], axes: tuple[int, ...], origin: Any, heights: np.ndarray[Any, Any]
) -> list[tuple[tuple[int, ...], float]]:
    """Return the offsets of a window's points, each with its height, in row-major order."""
    count = rank(field)
    whole, tall = spread(window, axes, count, "footprint"), spread(heights, axes, count, "structure")
    shifts = dict(zip(axes, each(origin, len(axes), "origin"), strict=True))
    for a, shift in shifts.items():
        check_origin(shift, whole.shape[a])
    return [
        (
            tuple(int(i) - n // 2 - shifts.get(a, 0) for a, (i, n) in enumerate(zip(at, whole.shape, strict=True))),
            float(tall[tuple(at)]),
        )
        for at in np.argwhere(whole)
    ]


def _box(
    which: str,
    field: Field,
    sizes: list[int],
    axes: tuple[int, ...],
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    method: Any,
) -> Field:
    count, dtype = len(axes), result_dtype(output, field)
    sizes = each(sizes, count, "footprint.shape")
    result = field
    for axis, n, outside, shift in zip(
        axes, sizes, each(mode, count, "mode"), each(origin, count, "origin"), strict=True
    ):
        if n > 1:
            result = line(which, result, n, axis, dtype, edge(outside, cval, field), shift, method)
    return in_dtype(result, dtype)


def line(
    which: str, field: Field, size: int, axis: int, output: Any, at: ImageEdge, origin: int, method: Any = None
) -> Field:
    """Return the extremes along an axis."""
    if size < 1:
        raise ArgumentError(f"incorrect filter size {size}: it is 1 or more")
    check_origin(origin, size)
    computed, dtype = compared_in(field, at), result_dtype(output, field)
    window = LineWindow(
        name=f"{which}_filter1d",
        axis=axis,
        size=size,
        origin=origin,
        at=at,
        operation=OPERATIONS[which],
        repeats=True,
        computed=computed,
        partial=lambda count: computed,
        last=lambda value: value,
    )
    return window.nested(field, dtype) if window.is_nested(method) else window.direct(field, dtype)


def compared_in(field: Field, at: ImageEdge) -> str:
    """Return the dtype of comparisons: the field's, or float64 where it cannot represent `cval`."""
    if field.dtype in COMPLEX_DTYPES:
        raise UnsupportedError("Complex type not supported: complex numbers have no order")
    if field.dtype == "bool":
        return "int32" if at.cval in (0, 1) else "float64"
    return field.dtype if at.border != "constant" or field.type.element.holds(at.cval) else "float64"
