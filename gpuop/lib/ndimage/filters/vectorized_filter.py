"""scipy.ndimage.vectorized_filter: filters by user functions that reduce axes of arrays."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from gpuop.base.errors import ArgumentError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.operators.host_operator import HostOperator
from gpuop.engine.jit.array_arguments import takes_arrays
from gpuop.lib.ndimage.filter_arguments import ImageEdge, axes_of, check_origin, each, edge, rank, windows
from gpuop.lib.ndimage.filters.generic_filters import padded
from gpuop.lib.ndimage.filters.neighbours import MOST, Around, neighbourhood
from gpuop.lib.ndimage.filters.window_values import window_values
from gpuop.lib.ndimage.scalar_arguments import whole

# Functions that give the same for integers if these are converted to the result's dtype first.
REDUCTIONS = (np.mean, np.sum, np.prod, np.max, np.min, np.ptp, np.median, np.std, np.var)


@takes_arrays()
def vectorized_filter(
    input: Any,
    function: Callable[..., Any],
    *,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = None,
    origin: Any = None,
    axes: Any = None,
    batch_memory: int = 2**30,
) -> Any:
    """scipy.ndimage.vectorized_filter: a user function that reduces the axes of a window.

    Args:
        input, size, footprint, axes: as in `minimum_filter`; a size or a footprint.
        function: gets an array whose last axes are the window's, and `axis=`, their indices. It is recorded if possible, as in
            `generic_filter`, for integers NumPy reductions only; else it gets all windows at once on the host.
        output: a dtype, or an array; by default the dtype that the function returns for the input's.
        mode: as in `correlate1d`, or "valid", for windows that lie inside; grid-mirror is mirror here, as in SciPy.
        cval: value outside, for mode constant alone.
        origin: an integer, or one for each axis.
        batch_memory: an argument of SciPy, in bytes; results do not depend on it.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong windows, modes, axes or origins; a ValueError and a RuntimeError.
    """
    _check(function, mode, cval, origin)
    window = _window(input, function, size, footprint, origin, axes)
    at = edge({"valid": "nearest", "grid-mirror": "mirror"}.get(mode, mode), 0.0 if cval is None else cval, input)
    if input.field_shape.points and batch_memory < window.least_memory(input):
        raise ArgumentError("`batch_memory` is insufficient for minimum chunk size.")
    result = window.filtered(input, at, output) if input.field_shape.points else input
    return result[window.inside(input)] if mode == "valid" and result is not input else result


def _check(function: Any, mode: Any, cval: Any, origin: Any) -> None:
    if not callable(function):
        raise ArgumentError("`function` must be a callable.")
    if cval is not None and mode != "constant":
        raise ArgumentError("Use of `cval` is compatible only with `mode='constant'`.")
    if mode == "valid" and origin is not None and np.any(origin):
        raise ArgumentError("`mode='valid'` is incompatible with use of `origin`.")


def _window(field: Field, function: Any, size: Any, footprint: Any, origin: Any, axes: Any) -> ReducedWindow:
    if (size is None) == (footprint is None):
        raise ArgumentError("Either `size` or `footprint` must be provided, and not both.")
    chosen = axes_of(axes, rank(field))
    window = np.ones(windows(size, len(chosen)) if footprint is None else (), bool)
    window = window if footprint is None else np.asarray(footprint, bool)
    if window.ndim != len(chosen):
        raise ArgumentError("`axes` must be compatible with the dimensionality of the window, which has as many")
    if not window.size:
        raise ArgumentError("All elements of `size` must be positive integers.")
    origins = [whole(o, "origin") for o in each(0 if origin is None else origin, len(chosen), "origin")]
    for shift, n in zip(origins, window.shape, strict=True):
        check_origin(shift, n)
    return ReducedWindow(function, window, chosen, tuple(origins), footprint is not None)


@dataclass(frozen=True)
class ReducedWindow:
    """A user function of a window.

    Attributes:
        mask: mask of the window's points, over the axes in their order.
        flat: whether the function gets the points along one axis.
    """

    function: Callable[..., Any]
    mask: Numbers
    axes: Sequence[int]
    origins: Sequence[int]
    flat: bool

    def least_memory(self, field: Field) -> int:
        """Return the bytes of the windows of one index of the first axis."""
        others = [n for a, n in enumerate(field.field_shape) if a not in self.axes]
        counts = (*others, *(field.field_shape[a] for a in self.axes))
        return math.prod(counts[1:]) * self.mask.size * field.type.array_dtype.itemsize

    def inside(self, field: Field) -> tuple[slice, ...]:
        """Return the slices of points whose windows lie inside."""
        cuts = [slice(None)] * rank(field)
        for axis, n in zip(self.axes, self.mask.shape, strict=True):
            cuts[axis] = slice(n // 2, field.field_shape[axis] - (n - 1) // 2)
        return tuple(cuts)

    def filtered(self, field: Field, at: ImageEdge, output: Any) -> Field:
        values = field.type.array_dtype
        result_dtype = np.asarray(self._of(np.ones((1, *self.mask.shape), values))).dtype.name
        dtype = field.type.replace(dtype=result_dtype if output is None else output).dtype

        def recorded(around: Around) -> Any:
            values_around = window_values([around(offset) for offset in self._offsets(rank(field))])
            window = values_around if self.flat else values_around.reshape(self.mask.shape)
            reduced = self.function(window, axis=-1 if self.flat else tuple(range(-self.mask.ndim, 0)))
            return reduced.item() if isinstance(reduced, np.ndarray) else reduced

        exact = result_dtype == field.dtype if field.dtype in ("float32", "float64") else self.function in REDUCTIONS
        if exact and self.mask.sum() <= MOST and (at.border != "constant" or field.type.element.holds(at.cval)):
            with contextlib.suppress(Exception):  # a function that cannot be recorded is called
                return neighbourhood("vectorized_filter", field, recorded, at, result_dtype, dtype, object())
        return self._on_host(field, at, result_dtype).astype(dtype)

    def _of(self, views: Numbers) -> Any:
        if self.flat:
            return self.function(views[..., self.mask], axis=-1)
        return self.function(views, axis=tuple(range(-self.mask.ndim, 0)))

    def _offsets(self, count: int) -> list[tuple[int, ...]]:
        result = []
        for place in np.argwhere(self.mask):
            offset = [0] * count
            for i, axis, n, shift in zip(place, self.axes, self.mask.shape, self.origins, strict=True):
                offset[axis] = int(i) - n // 2 - shift
            result.append(tuple(offset))
        return result

    def _on_host(self, field: Field, at: ImageEdge, dtype: str) -> Field:
        before, extents = [0] * rank(field), [1] * rank(field)
        for axis, n, shift in zip(self.axes, self.mask.shape, self.origins, strict=True):
            before[axis], extents[axis] = n // 2 + shift, n
        tensor = len(field.tensor_shape)

        def vectorized_filter(array: Numbers) -> Numbers:
            wide = padded(array, [*before, *[0] * tensor], [*extents, *[1] * tensor], at)
            return np.asarray(self._of(sliding_window_view(wide, self.mask.shape, self.axes)))  # type: ignore[call-overload]

        result: Field = HostOperator(vectorized_filter, field, outputs=field.type.replace(dtype=dtype))
        return result
