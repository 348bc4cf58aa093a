"""Spectrum filters of scipy.ndimage: products with the transforms of Gaussians, boxes, ellipsoids and shifts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import ScalarField
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.operators.operator import library_call
from gpuop.engine.jit.array_arguments import takes_arrays
from gpuop.ir.dtype_names import COMPLEX_DTYPES, dtype_name, part_dtype
from gpuop.lib.ndimage.filter_arguments import axis_of, each, rank
from gpuop.lib.ndimage.scalar_arguments import numbers_of

NEAR = 0.5  # below it, differences of a sine and a cosine are computed by their series
SERIES = (1.0, -1 / 10, 1 / 280, -1 / 15120, 1 / 1330560, -1 / 172972800)
# J₁ below 5, with its first two zeros, and above it as a wave (S. Moshier, Cephes, j1.c); powers ascend from 0.
ZEROS = (14.6819706421238932572, 49.2184563216946036703)
LOW = (3.68295732863852883286e15, -7.27494245221818276015e13, 4.52228297998194034323e11, -8.99971225705559398224e8)
LOW_BY = (
    5.32278620332680085395e18, 8.95222336184627338078e16, 7.84369607876235854894e14, 4.74914122079991414898e12,
    2.21511595479792499675e10, 8.35146791431949253037e7, 2.56987256757748830383e5, 6.20836478118054335476e2, 1.0,
)  # fmt: skip
COSINE = (
    1.0, 5.21451598682361504063, 8.42404590141772420927, 5.11207951146807644818, 1.12719608129684925192,
    7.31397056940917570436e-2, 7.62125616208173112003e-4,
)  # fmt: skip
COSINE_BY = (
    1.0, 5.20982848682361821619, 8.39985554327604159757, 5.07386386128601488557, 1.10514232634061696926,
    6.88455908754495404082e-2, 5.71323128072548699714e-4,
)  # fmt: skip
SINE = (
    2.52070205858023719784e1, 2.11688757100572135698e2, 5.97489612400613639965e2, 7.10856304998926107277e2,
    3.66779609360150777800e2, 7.58238284132545283818e1, 4.98213872951233449420, 5.10862594750176621635e-2,
)  # fmt: skip
SINE_BY = (
    3.36093607810698293419e2, 2.82619278517639096600e3, 7.99704160447350683650e3, 9.56231892404756170795e3,
    4.98641058337653607651e3, 1.05644886038262816351e3, 7.42373277035675149943e1, 1.0,
)  # fmt: skip


@takes_arrays()
def fourier_gaussian(input: Any, sigma: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """scipy.ndimage.fourier_gaussian: a spectrum times that of a Gaussian.

    Args:
        input: a Field, or an array: a result of `gpuop.fft.fftn`, or `rfftn`.
        sigma: the standard deviation in points; one for all axes, or one for each.
        n: for a transform of real numbers, the length of `axis` before it; negative for others.
        axis: axis of the transform of real numbers.
        output: a dtype, or an array; by default the dtype of `input`, float64 for integers.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong axes, dtypes, or numbers of values; a ValueError and a RuntimeError.
    """
    result = _spectrum(input, output)
    for at, frequencies, deviation in _axes(input, sigma, n, axis, "sigma"):
        result = result * _table(np.exp(-2 * (math.pi * deviation * frequencies) ** 2), at, result)
    return result


@takes_arrays()
def fourier_uniform(input: Any, size: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """scipy.ndimage.fourier_uniform: a spectrum times that of a box.

    Args:
        input, n, axis, output: as in `fourier_gaussian`.
        size: extent of the box in points; one for all axes, or one for each.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong axes, dtypes, or numbers of values; a ValueError and a RuntimeError.
    """
    result = _spectrum(input, output)
    for at, frequencies, extent in _axes(input, size, n, axis, "size"):
        result = result * _table(np.sinc(extent * frequencies), at, result)
    return result


@takes_arrays()
def fourier_shift(input: Any, shift: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """scipy.ndimage.fourier_shift: the spectrum of a shifted image.

    Args:
        input, n, axis, output: as in `fourier_gaussian`; the result is complex.
        shift: the shift in points; one for all axes, or one for each.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong axes, dtypes, or numbers of values; a ValueError and a RuntimeError.
    """
    own = input.dtype if input.dtype in COMPLEX_DTYPES else "complex128"
    kind = own if output is None else str(dtype_name(output))
    if kind not in COMPLEX_DTYPES:
        raise ArgumentError(f"output type not supported: it is complex64 or complex128, not {output}")
    result = input.astype(kind)
    for at, frequencies, distance in _axes(input, shift, n, axis, "shift"):
        turns = np.exp(-2j * math.pi * distance * frequencies)
        result = result * ScalarField(_along(turns.astype(kind), at, result))
    return result


@takes_arrays()
def fourier_ellipsoid(input: Any, size: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """scipy.ndimage.fourier_ellipsoid: a spectrum of one to three axes times that of an ellipsoid.

    Args:
        input, n, axis, output: as in `fourier_gaussian`.
        size: diameter of the ellipsoid in points; one for all axes, or one for each.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong axes, dtypes, numbers of values, or more axes; a ValueError and a RuntimeError.
    """
    if not 1 <= rank(input) <= 3:
        raise ArgumentError(f"Only 1d, 2d and 3d inputs are supported, and this one has {rank(input)} axes")
    result = _spectrum(input, output)
    squares: Any = None
    for at, frequencies, extent in _axes(input, size, n, axis, "size"):
        square = _table((math.pi * extent * frequencies) ** 2, at, result)
        squares = square if squares is None else squares + square
    return result * _ball(squares, rank(input))


def _spectrum(field: Field, output: Any) -> Field:
    """Return the field in the dtype of the result."""
    own = field.dtype if field.dtype in (*COMPLEX_DTYPES, "float32") else "float64"
    kind = own if output is None else str(dtype_name(output))
    if kind not in (*COMPLEX_DTYPES, "float32", "float64") or (own in COMPLEX_DTYPES and kind not in COMPLEX_DTYPES):
        raise ArgumentError(f"output type not supported: {kind} for a field of {field.dtype}")
    return field.astype(kind)


def _axes(field: Field, values: Any, n: int, axis: int, name: str) -> list[tuple[int, Numbers, float]]:
    """Return for each axis its index, its frequencies in cycles per point, and the value of the argument for it."""
    count, shape = rank(field), field.field_shape
    half = axis_of(axis, count)
    rows = []
    for at, value in enumerate(numbers_of(each(values, count, name), name)):
        real = at == half and n >= 0
        points = np.arange(shape[at])
        turns = points if real else np.where(points < (shape[at] + 1) // 2, points, points - shape[at])
        rows.append((at, turns / max(n if real else shape[at], 1), float(value)))
    return rows


def _along(numbers: Numbers, axis: int, field: Field) -> Numbers:
    return numbers.reshape([-1 if at == axis else 1 for at in range(rank(field))])


def _table(numbers: Numbers, axis: int, field: Field) -> Field:
    """Return factors along an axis of a field, in its precision."""
    return ScalarField(_along(numbers, axis, field).astype(part_dtype(field.dtype)))


def _ball(squares: Field, axes: int) -> Field:
    """Return the transform of a ball of one to three dimensions, at these squared radii."""

    def body() -> None:
        square = k._readTensor(squares)
        radius = k._sqrt(square)
        safe = k._where(radius > 0, radius, 1)
        value = {1: _line, 2: _disc, 3: _sphere}[axes](safe)
        k._writeTensor(k._out0, k._where(radius > 0, value, 1))

    return library_call("fourier_ellipsoid", (squares.type,), [squares], body, axes)[0]


def _line(x: Any) -> Any:
    return k._sin(x) / x


def _disc(x: Any) -> Any:
    """Return 2·J₁(x)/x."""
    square, w = k._min(x, 5) * k._min(x, 5), 5 / k._max(x, 5)
    low = 2 * _quotient(LOW, LOW_BY, square) * (square - ZEROS[0]) * (square - ZEROS[1])
    phase, z = x - 0.75 * math.pi, w * w
    wave = k._cos(phase) * _quotient(COSINE, COSINE_BY, z) - w * k._sin(phase) * _quotient(SINE, SINE_BY, z)
    return k._where(x <= 5, low, 2 * math.sqrt(2 / math.pi) * wave / (x * k._sqrt(x)))


def _sphere(x: Any) -> Any:
    """Return 3(sin x - x·cos x)/x³."""
    near = k._min(x, NEAR)
    return k._where(x < NEAR, _polynomial(SERIES, near * near), 3 * (k._sin(x) - x * k._cos(x)) / (x * x * x))


def _quotient(above: tuple[float, ...], below: tuple[float, ...], x: Any) -> Any:
    return _polynomial(above, x) / _polynomial(below, x)


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    total: Any = coefficients[-1]
    for each_one in coefficients[-2::-1]:
        total = total * x + each_one
    return total
