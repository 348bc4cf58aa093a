"""Correlation by Fourier transforms: products of spectra, in a time that hardly depends on the number of weights.

A field is extended by its border, so that sums do not wrap around to its other end. The transform of the weights is computed in
double precision on the host, and is a constant of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, warn
from gpuop.base.lru import BoundedCache
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import VectorField
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.lib.fft.kernels.axes import fast_length
from gpuop.lib.fft.kernels.butterflies import times
from gpuop.lib.fft.kernels.host_library import host_library
from gpuop.lib.fft.kernels.passes import read as pair_at
from gpuop.lib.fft.kernels.transform_node import fourier
from gpuop.lib.ndimage.array_arguments import is_of_an_array
from gpuop.lib.ndimage.filter_arguments import ImageEdge, computed_in
from gpuop.lib.ndimage.filters.neighbours import read_at, stored
from gpuop.lib.ndimage.filters.weighted_windows import added, has_table
from gpuop.ops.layout.gather import Place, Reading, flat, gathered, own_place
from gpuop.ops.target_choice import by_target

MANY = 256  # weights per transformed value from which on transforms are faster
DEAR = 10  # times as many, from which on the user is warned
TENTH = "takes a tenth of the time on a CPU, or less"
ROUNDED = 20 * 2.0**-53  # relative error bound of a transform in double and its inverse, per doubling of the length
_responses: BoundedCache[Any, Field] = BoundedCache(4)  # each is as large as an image


def has_transform(field: Field, window: Numbers) -> bool:
    """Return whether window and field need a transform."""
    return window.size > 1 and field.field_shape.points > 0


def by_size(name: str, field: Field, window: Numbers, shifts: Sequence[int], at: ImageEdge, dtype: str) -> Field:
    """Return the sums by the fastest of the methods with the same results.

    For a Field this is the direct one, because out-of-core programs may ask for windows of it.
    """
    told = name, field, window, shifts, at, dtype
    lengths = lengths_of(field, window)
    times_less = np.count_nonzero(window) * field.field_shape.points / (MANY * math.prod(lengths))
    if times_less < 1:
        return added(*told)
    why = _why_direct(field, window, at, dtype, TENTH if times_less >= DEAR else "does less")
    if why:
        if TENTH in why:
            warn(f"ndimage.{name} adds {window.size} weights one after the other at every point: {why}")
        return added(*told, f"one after the other: {why}")
    transformed = by_fft(*told, f"as {window.size} weights are many, and the sums are exact")
    if not has_table(field, window, at, computed_in(field, dtype)):
        return transformed
    direct = added(*told)
    return by_target(
        [
            ({"has_arrays": True, "device": "cpu"}, transformed),
            ({"has_arrays": True, "device": "gpu"}, direct),
            ({"has_arrays": False}, direct),
        ]
    )


def _why_direct(field: Field, window: Numbers, at: ImageEdge, dtype: str, less: str) -> str:
    """Return why many weights are added directly, and what transforms would save; "" if they are not."""
    if not _is_whole(field, dtype):
        return f"`method='fft'` {less}, but an infinity or NaN is then in all sums, and zeros are only near 0"
    if why := why_inexact(field, window, at):
        return f"`method='fft'` is not sure to give the same integers: {why}"
    if not is_of_an_array():
        return f"`method='fft'` {less}, and gives the same, but has no windows, in which images are computed in parts"
    return ""


def _is_whole(field: Field, dtype: str) -> bool:
    """Return whether results are integers or truth values."""
    return field.type.replace(dtype=dtype).element.kind in "iub"


def by_fft(
    name: str, field: Field, window: Numbers, shifts: Sequence[int], at: ImageEdge, dtype: str, why: str
) -> Field:
    """Return the weighted sums of neighbours; integer results are rounded to the nearest."""
    computed = computed_in(field, dtype)
    axes = [a for a, n in enumerate(window.shape) if n > 1]
    lengths = lengths_of(field, window)
    lead = 1 if field.type.planes > 1 else 0
    numbers = [a + lead for a in axes]
    spectrum = fourier(
        _extended(name, field, lengths, shifts, at, computed), "r2c", numbers, -1, _half(lengths, axes), None
    )
    product = _product(name, spectrum, response(window, lengths, axes, computed), lead, axes)
    sums = fourier(product, "c2r", numbers, 1, lengths[axes[-1]], None)
    points = "×".join(str(lengths[a]) for a in axes)
    return _cut(name, sums, field.type.replace(dtype=dtype), f"by Fourier transforms of {points} points: {why}")


def lengths_of(field: Field, window: Numbers) -> list[int]:
    """Return the extents of the transform."""
    return [n if w == 1 else fast_length(n + w - 1) for n, w in zip(field.field_shape, window.shape, strict=True)]


def check_exact(field: Field, window: Numbers, at: ImageEdge, dtype: str) -> None:
    """Refuse integer results that may differ from SciPy's."""
    if _is_whole(field, dtype) and (why := why_inexact(field, window, at)):
        raise ArgumentError(
            f"`method='fft'` rounds to the nearest integer, and truncated sums may be others: {why}; "
            "`output='float64'` gives these sums as they are"
        )


def why_inexact(field: Field, window: Numbers, at: ImageEdge) -> str:
    """Return why integer results may differ from SciPy's; "" where no sum is off by half a unit.

    The error bound of a transform is relative to the root of the sum of squares, which bounds each single value.
    """
    if not _is_whole(field, field.dtype):
        return f"the field is of {field.dtype}"
    if not np.array_equal(window, np.rint(window)) or at.cval != np.rint(at.cval):
        return "the weights, or `cval`, are no integers"
    limits = (0, 1) if field.dtype == "bool" else (np.iinfo(field.dtype).min, np.iinfo(field.dtype).max)
    largest = max(abs(float(n)) for n in (*limits, at.cval))
    points = math.prod(n for n, w in zip(lengths_of(field, window), window.shape, strict=True) if w > 1)
    error = ROUNDED * math.log2(2 * points) * math.sqrt(points) * largest * np.abs(window).sum()
    return "" if error < 0.5 else f"their sums, of {field.dtype} with such weights, are too large to be exact"


def _half(lengths: Sequence[int], axes: Sequence[int]) -> int:
    return lengths[axes[-1]] // 2 + 1


def response(window: Numbers, lengths: Sequence[int], axes: Sequence[int], dtype: str) -> Field:
    """Return the frequency response: the transform of the weights, divided by the number of values."""

    def made() -> Field:
        library, options = host_library()
        numbers = library.rfft(window, lengths[axes[-1]], axes[-1], **options)
        for axis in axes[:-1]:
            numbers = library.fft(numbers, lengths[axis], axis, **options)
        numbers /= math.prod(lengths[axis] for axis in axes)
        return VectorField(np.stack([numbers.real, -numbers.imag], -1).astype(dtype))

    return _responses.find((window.tobytes(), window.shape, tuple(lengths), dtype), made)


def _extended(
    name: str, field: Field, lengths: Sequence[int], shifts: Sequence[int], at: ImageEdge, dtype: str
) -> Field:
    """Return the extended field as real numbers, with the elements of tensors along an axis before the grid's."""
    planes, axes = field.type.planes, [a for a, n in enumerate(field.field_shape) if lengths[a] != n]
    lead = [planes] if planes > 1 else []

    def body() -> None:
        own = own_place(len(lead) + len(lengths))
        place = [p - shifts[a] if a in axes else p for a, p in enumerate(own[len(lead) :])]
        value = read_at(field, place, axes, Reading(True, own[0] if lead else None), at)
        k._writeTensor(k._out0, k._convert(value, dtype))

    key = (tuple(lengths), tuple(shifts), at, dtype)
    return library_call(f"{name}_extend", (FieldType((*lead, *lengths), (), dtype),), [field], body, key)[0]


def _product(name: str, spectrum: Field, weights: Field, lead: int, axes: Sequence[int]) -> Field:
    def body() -> None:
        own = own_place(len(spectrum.field_shape))
        place = [p if a in axes else 0 for a, p in enumerate(own[lead:])]
        k._writeTensor(k._out0, k._vector(*times(pair_at(spectrum, own), pair_at(weights, place))))

    return library_call(f"{name}_product", (spectrum.type,), [spectrum, weights], body, (lead, tuple(axes)))[0]


def _cut(name: str, sums: Field, out: FieldType, remark: str) -> Field:
    """Return the sums at the points of a field of this type."""
    grid, whole = len(out.field_shape), out.element.kind in "iub"

    def at_point(at: Place, read: Reading) -> Any:
        element = [*at[grid:], *([] if read.part is None else [read.part])]
        lead = [flat(element, out.parts)] if out.planes > 1 else []
        value = k._readTensor(sums, *lead, *at[:grid], border="unchecked")
        return stored(k._rint(value) if whole else value, out)

    return gathered(f"{name}_fft", out, [sums], at_point, (), remark=remark)
