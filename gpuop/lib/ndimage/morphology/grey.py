"""Grey-value morphology of scipy.ndimage: erosion, dilation, and their combinations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.lib.ndimage.filter_arguments import as_output, axes_of, each, named, rank
from gpuop.lib.ndimage.filters.extrema import extremum, footprint_of


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


# --- the functions ----------------------------------------------------------------------------------------------------

Run = Callable[[Field, GreyWindow, Any], Field]
EROSION = """the minimum of a window around each point, less the structure's values.

    Args:
        input, size, footprint, output, mode, cval, origin, axes, method: as in `minimum_filter`.
        structure: numbers over the axes that are subtracted from the values; by default zeros over the window.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong windows, modes, axes or origins; a ValueError and a RuntimeError.
        UnsupportedError: complex numbers; a TypeError.
    """


def _grey(name: str, about: str, run: Run) -> Callable[..., Any]:
    """Return a function with the arguments of grey-value morphology."""

    def function(
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
        return run(input, GreyWindow(size, footprint, structure, mode, cval, origin, axes, method), output)

    return named(function, name, about)


grey_erosion = _grey("grey_erosion", EROSION, _eroded)
grey_dilation = _grey(
    "grey_dilation", "the maximum of a reflected window, plus the structure's values; as `grey_erosion`.", _dilated
)
grey_opening = _grey(
    "grey_opening",
    "the dilation of the erosion; as `grey_erosion`.",
    lambda field, window, output: _dilated(_eroded(field, window), window, output),
)
grey_closing = _grey(
    "grey_closing",
    "the erosion of the dilation; as `grey_erosion`.",
    lambda field, window, output: _eroded(_dilated(field, window), window, output),
)
morphological_gradient = _grey(
    "morphological_gradient",
    "the dilation less the erosion; as `grey_erosion`.",
    lambda field, window, output: as_output(_dilated(field, window) - _eroded(field, window), output),
)
morphological_laplace = _grey(
    "morphological_laplace",
    "the dilation plus the erosion, less twice the field; as `grey_erosion`.",
    lambda field, window, output: as_output(_dilated(field, window) + _eroded(field, window) - field - field, output),
)
white_tophat = _grey(
    "white_tophat",
    "the field less its opening; as `grey_erosion`.",
    lambda field, window, output: _less(field, _dilated(_eroded(field, window), window, output), output),
)
black_tophat = _grey(
    "black_tophat",
    "the closing less the field; as `grey_erosion`.",
    lambda field, window, output: _less(_eroded(_dilated(field, window), window, output), field, output),
)
