"""Spline filters of scipy.ndimage: the coefficients that images are interpolated from.

SciPy runs a recursive filter forth and back along each line. Here each coefficient is the equivalent weighted sum of its
neighbours, truncated: one kernel filters rows and columns, reads the field once, and no thread waits for another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.engine.jit.array_arguments import takes_arrays
from gpuop.lib.ndimage.filter_arguments import ImageEdge, axis_of, between_steps, computed_in, rank, result_dtype
from gpuop.lib.ndimage.filters.correlation import along
from gpuop.lib.ndimage.filters.neighbours import in_dtype
from gpuop.ops.layout.padding import pad

EDGES = {"nearest": "symmetric", "reflect": "symmetric", "grid-wrap": "wrap"}  # all other modes: "reflect"


@takes_arrays()
def spline_filter1d(input: Any, order: int = 3, axis: Any = -1, output: Any = np.float64, mode: str = "mirror") -> Any:
    """scipy.ndimage.spline_filter1d: the coefficients of a spline through the points of each line along an axis.

    Args:
        input: a Field, or an array.
        order: order of the spline, 0 to 5; coefficients of the orders 0 and 1 are the values.
        axis: axis of the grid.
        output: a dtype, float64 by default, or an array; None is the dtype of `input`.
        mode: mirror, reflect, grid-mirror or grid-wrap; nearest acts as reflect, and all others as mirror, as in SciPy.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong orders, modes or axes; a ValueError and a RuntimeError.
    """
    return _filtered(input, check_order(order), [axis_of(axis, rank(input))] if order > 1 else [], output, mode)


@takes_arrays()
def spline_filter(input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror") -> Any:
    """scipy.ndimage.spline_filter: `spline_filter1d` along all axes of the grid, for the orders 2 to 5."""
    return _filtered(input, check_order(order, 2), range(rank(input)), output, mode)


def _filtered(field: Field, order: int, axes: Sequence[int], output: Any, mode: Any) -> Field:
    dtype, at = result_dtype(output, field), ImageEdge(EDGES.get(check_mode(mode), "reflect"))
    result = field
    for axis in axes:
        if field.field_shape[axis] > 1:
            result = along(
                result, filter_weights(order, computed_in(result, dtype)), axis, dtype, at, name="spline_filter1d"
            )
    return in_dtype(result, dtype)


def coefficients(
    field: Field, order: int, mode: str, cval: Any, prefilter: bool, axes: Sequence[int], dtype: str
) -> tuple[Field, int]:
    """Return the coefficients that a field is interpolated from along some axes, and their padding in points.

    Args:
        dtype: dtype of coefficients, float32 or float64.
    """
    if order < 2 or not prefilter:
        return field, 0
    padding = PADDING if mode in FREE else 0
    if padding:
        widths = [(padding * (axis in axes),) * 2 for axis in range(len(field.type.array_shape))]
        fill = {} if mode == "nearest" else {"constant_values": _as_held(cval, field)}
        field = pad(field, widths, "edge" if mode == "nearest" else "constant", **fill)
    return _filtered(field, order, axes, between_steps(field, dtype), mode), padding


def _as_held(cval: Any, field: Field) -> Any:
    """Return a number as the field's dtype represents it, for NumPy's padding."""
    return np.asarray(cval).astype(field.type.array_dtype).item()


# --- B-splines of the orders 0 to 5 -----------------------------------------------------------------------------------
# The knots of a coordinate, their weights, and the weights of spline filters.


MODES = {  # modes of SciPy, and the borders of reads of a spline's coefficients
    "constant": "reflect",
    "grid-constant": "clamp",
    "nearest": "clamp",
    "mirror": "reflect",
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "wrap": "reflect",
    "grid-wrap": "wrap",
}
FREE = ("nearest", "grid-constant")  # coordinates outside are not mapped: SciPy pads fields by PADDING instead
PADDING = 12
POLES = {  # poles of the recursive filters: M. Unser, IEEE Signal Processing Magazine 16 (6), 1999, table 1
    2: (math.sqrt(8) - 3,),
    3: (math.sqrt(3) - 2,),
    4: (-0.361341225900220177092212841325675255, -0.013725429297339121360331226939128204),
    5: (-0.430575347099973791851434783493520110, -0.043096288203264653822712376822550182),
}


@dataclass(frozen=True)
class HostOrKernel:
    """Functions of a formula: NumPy's on the host, builtins in kernels."""

    where: Callable[[Any, Any, Any], Any]
    floor: Callable[[Any], Any]
    trunc: Callable[[Any], Any]


HOST = HostOrKernel(np.where, np.floor, np.trunc)
KERNEL = HostOrKernel(k._where, k._floor, k._trunc)


def check_mode(mode: Any) -> str:
    """Check a SciPy mode of interpolation."""
    if not isinstance(mode, str) or mode not in MODES:
        raise ArgumentError(f"boundary mode not supported: `mode` is one of {', '.join(MODES)}, not {mode!r}")
    return "reflect" if mode == "grid-mirror" else mode


def check_order(order: Any, least: int = 0) -> int:
    """Check the order of a spline."""
    if order not in range(least, 6):
        raise ArgumentError(f"spline order not supported: it is an integer in {least} … 5, not {order!r}")
    return int(order)


def brought_inside(at: Any, n: int, mode: str, a: HostOrKernel) -> Any:
    """Map a coordinate into an axis of n points, in SciPy's order of operations; -1 for points outside in mode constant."""
    if mode in FREE:
        return at
    if mode == "constant":
        return a.where((at < 0) | (at > n - 1), -1.0, at)
    if n <= 1:
        return a.where((at < 0) | (at > n - 1), 0.0, at)
    return a.where(at < 0, *_PERIODS[mode](at, n, a))


def _mirror(at: Any, n: int, a: HostOrKernel) -> tuple[Any, Any]:
    period = 2.0 * n - 2
    below = period * a.trunc(-at / period) + at
    above = at - period * a.trunc(at / period)
    return a.where(below <= 1 - n, below + period, -below), a.where(above >= n, period - above, above)


def _reflect(at: Any, n: int, a: HostOrKernel) -> tuple[Any, Any]:
    period = 2.0 * n
    below = a.where(at < -period, period * a.trunc(-at / period) + at, at)
    above = at - period * a.trunc(at / period)
    return (
        a.where(below < -n, below + period, a.where(below > -1e-15, 1e-15, -below) - 1),
        a.where(above >= n, period - above - 1, above),
    )


def _wrap(at: Any, n: int, a: HostOrKernel) -> tuple[Any, Any]:
    period = n - 1.0
    above = a.where(at > n - 1, at - period * a.trunc(at / period), at)
    return at + period * (a.trunc(-at / period) + 1), above


def _grid_wrap(at: Any, n: int, a: HostOrKernel) -> tuple[Any, Any]:
    return at + n * (a.trunc((-1 - at) / n) + 1), at - n * a.trunc(at / n)


_PERIODS = {"mirror": _mirror, "reflect": _reflect, "wrap": _wrap, "grid-wrap": _grid_wrap}


def first_knot(at: Any, order: int, a: HostOrKernel) -> tuple[Any, Any]:
    """Return the first knot of a coordinate, and the coordinate minus its middle knot."""
    middle = a.floor(at if order % 2 else at + 0.5)
    return middle - order // 2, at - middle


def weights_at(x: Any, order: int) -> list[Any]:
    """Return the knots' weights at a distance from the middle one, in SciPy's order of operations."""
    if order == 0:
        return [1.0]
    first = _FIRST[order](x, 1.0 - x)
    last = 1.0
    for weight in first:
        last = last - weight
    return [*first, last]


def _square(x: Any, z: Any) -> list[Any]:
    y = 0.5 - x
    return [0.5 * y * y, 0.75 - x * x]


def _cubic(x: Any, z: Any) -> list[Any]:
    return [z * z * z / 6.0, *((y * y * (y - 2.0) * 3.0 + 4.0) / 6.0 for y in (x, z))]


def _quartic(x: Any, z: Any) -> list[Any]:
    def side(y: Any) -> Any:
        return y * (y * (y * (5.0 - y) / 6.0 - 1.25) + 5.0 / 24.0) + 55.0 / 96.0

    t, y = x * x, 0.5 - x
    low = y * y
    return [low * low / 24.0, side(1.0 + x), t * (t * 0.25 - 0.625) + 115.0 / 192.0, side(z)]


def _quintic(x: Any, z: Any) -> list[Any]:
    def near(y: Any) -> Any:
        t = y * y
        return t * (t * (0.25 - y / 12.0) - 0.5) + 0.55

    def far(y: Any) -> Any:
        return y * (y * (y * (y * (y / 24.0 - 0.375) + 1.25) - 1.75) + 0.625) + 0.425

    t = z * z
    return [z * t * t / 120.0, far(x + 1.0), near(x), near(z), far(z + 1.0)]


_FIRST: dict[int, Callable[[Any, Any], list[Any]]] = {
    1: lambda x, z: [z],
    2: _square,
    3: _cubic,
    4: _quartic,
    5: _quintic,
}


def filter_weights(order: int, dtype: str) -> tuple[float, ...]:
    """Return a coefficient's weights of its neighbours, as far as the dtype distinguishes them from 0.

    The filter is recursive, forth and back along a line with each pole z; that equals a sum with weights that decay as |z|ⁿ. The
    sum needs no initial value at a border, and each point is computed by itself.
    """
    least = 2.0 ** -(26 if dtype == "float32" else 55)
    reach = math.ceil(math.log(least) / math.log(abs(POLES[order][0])))
    steps = np.abs(np.arange(-2 * reach, 2 * reach + 1))
    result = np.ones(1)
    for z in POLES[order]:
        result = np.convolve(result, (1 - z) / (1 + z) * z**steps)
    middle = len(result) // 2
    return tuple(float(w) for w in result[middle - reach : middle + reach + 1])
