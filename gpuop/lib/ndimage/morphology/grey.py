"""Grey-value morphology of scipy.ndimage: erosion, dilation, and their combinations."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.lib.ndimage.array_arguments import of_arrays
from gpuop.lib.ndimage.filter_arguments import as_output, axes_of, each, rank
from gpuop.lib.ndimage.filters.extrema import extremum, footprint_of


@of_arrays()
def grey_erosion(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.grey_erosion: the minimum of a window around each point, less the structure's values.

    Args:
        input, size, footprint, output, mode, cval, origin, axes, method: as in `minimum_filter`.
        structure: numbers over the axes that are subtracted from the values; by default zeros over the window.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong windows, modes, axes or origins; a ValueError and a RuntimeError.
        UnsupportedError: complex numbers; a TypeError.
    """
    return _eroded(input, GreyWindow(size, footprint, structure, mode, cval, origin, axes, method), output)


@of_arrays()
def grey_dilation(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.grey_dilation: the maximum of a reflected window, plus the structure's values; as `grey_erosion`."""
    return _dilated(input, GreyWindow(size, footprint, structure, mode, cval, origin, axes, method), output)


@of_arrays()
def grey_opening(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.grey_opening: the dilation of the erosion; as `grey_erosion`."""
    window = GreyWindow(size, footprint, structure, mode, cval, origin, axes, method)
    return _dilated(_eroded(input, window), window, output)


@of_arrays()
def grey_closing(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.grey_closing: the erosion of the dilation; as `grey_erosion`."""
    window = GreyWindow(size, footprint, structure, mode, cval, origin, axes, method)
    return _eroded(_dilated(input, window), window, output)


@of_arrays()
def morphological_gradient(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.morphological_gradient: the dilation less the erosion; as `grey_erosion`."""
    window = GreyWindow(size, footprint, structure, mode, cval, origin, axes, method)
    return as_output(_dilated(input, window) - _eroded(input, window), output)


@of_arrays()
def morphological_laplace(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.morphological_laplace: the dilation plus the erosion, less twice the field; as `grey_erosion`."""
    window = GreyWindow(size, footprint, structure, mode, cval, origin, axes, method)
    return as_output(_dilated(input, window) + _eroded(input, window) - input - input, output)


@of_arrays()
def white_tophat(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.white_tophat: the field less its opening; as `grey_erosion`."""
    window = GreyWindow(size, footprint, structure, mode, cval, origin, axes, method)
    return _less(input, _dilated(_eroded(input, window), window, output), output)


@of_arrays()
def black_tophat(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.black_tophat: the closing less the field; as `grey_erosion`."""
    window = GreyWindow(size, footprint, structure, mode, cval, origin, axes, method)
    return _less(_eroded(_dilated(input, window), window, output), input, output)


class GreyWindow:
    """Window and border that grey-value operators share."""

    def __init__(
        self,
        size: Any,
        footprint: Any,
        structure: Any,
        mode: Any,
        cval: Any,
        origin: Any,
        axes: Any,
        method: Any = None,
    ) -> None:
        if size is None and footprint is None and structure is None:
            raise ArgumentError("size, footprint, or structure must be specified")
        self.size, self.footprint, self.structure = size, footprint, structure
        self.mode, self.cval, self.origin, self.axes, self.method = mode, cval, origin, axes, method

    def turned(self, field: Field) -> GreyWindow:
        """Return the window reflected along each axis."""
        axes = axes_of(self.axes, rank(field))
        sizes = footprint_of(self.size, self.footprint, len(axes), self.structure).shape
        shifts = each(self.origin, len(axes), "origin")
        origin = [-shift - (n % 2 == 0) for shift, n in zip(shifts, sizes, strict=False)]
        footprint, structure = (None if a is None else np.flip(np.asarray(a)) for a in (self.footprint, self.structure))
        return GreyWindow(self.size, footprint, structure, self.mode, self.cval, origin, self.axes, self.method)

    def extremum(self, which: str, field: Field, output: Any) -> Field:
        size = None if self.footprint is not None else self.size
        return extremum(
            which,
            field,
            size,
            self.footprint,
            self.structure,
            output,
            self.mode,
            self.cval,
            self.origin,
            self.axes,
            self.method,
        )


def _eroded(field: Field, window: GreyWindow, output: Any = None) -> Field:
    return window.extremum("minimum", field, output)


def _dilated(field: Field, window: GreyWindow, output: Any = None) -> Field:
    return window.turned(field).extremum("maximum", field, output)


def _less(a: Field, b: Field, output: Any) -> Field:
    return as_output(a ^ b if a.dtype == b.dtype == "bool" else a - b, output)
