"""Cog filters: correlations with weights and with frames of filters, extremes of neighbourhoods, smoothing, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError
from gpuop.dsl import *
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Placeholder
from gpuop.dsl.operators.decorator import operator
from gpuop.ir.dtype_names import COMPLEX_DTYPES, FLOATS, complex_dtype, part_dtype
from gpuop.ir.types import FieldType
from gpuop.lib.cog import structure
from gpuop.lib.cog.structure import (
    BorderClamp,
    BorderCyclic,
    BorderFull,
    BorderValid,
    BorderZero,
    of_border,
    shift,
    transpose,
)
from gpuop.lib.cog.values import complex as of_parts
from gpuop.lib.cog.values import floating, grid_axes, reduceSum
from gpuop.lib.ndimage.filters.correlation import correlate1d
from gpuop.lib.ndimage.filters.extrema import maximum_filter, minimum_filter
from gpuop.lib.ndimage.filters.ranks import median_filter

OUTSIDE = {BorderClamp: "clamp", BorderZero: "zero", BorderCyclic: "wrap", BorderValid: "unchecked", BorderFull: "zero"}


def crossCorrelate(field: Any, filter: Any, border: str, upsample: int = 1, downsample: int = 1) -> Any:
    """The cross-correlation with a filter along all axes of the grid.

    Tensors are correlated element by element, or one side has scalars. A matrix field with a scalar field is a bank of filters:
    each of its matrices is a filter, and gives an element of the result's vectors.

    Args:
        field: a real or complex field of 1 to 3 dimensions.
        filter: a field of as many dimensions, or an array, whose further axes are tensor axes and which is converted to the
            field's dtype; complex weights are conjugated. Its middle is `n // 2`; in Cog extents are odd.
        border: BorderClamp, BorderZero, BorderCyclic; BorderValid gives the points whose window is inside, BorderFull all points
            that a window reaches, among zeros.
        upsample: Cog UpsampleInputConvolution: the spacing of the field's points, among zeros, before correlation.
        downsample: Cog DownsampleOutputConvolution: the spacing of the result's points.

    Returns:
        A lazy Field.
    """
    filter = _weights(field, filter, len(field.field_shape))
    return _sampled(field, filter.conj() if filter.dtype in COMPLEX_DTYPES else filter, border, upsample, downsample)


def convolve(field: Any, filter: Any, border: str, upsample: int = 1, downsample: int = 1) -> Any:
    """The convolution: `crossCorrelate` with weights that are flipped along every axis, and not conjugated."""
    filter = _weights(field, filter, len(field.field_shape))
    turned = structure.flip(filter)
    if len(filter.tensor_shape) == 2 and not field.tensor_shape:
        turned = np.flip(filter, (-2, -1))
    return _sampled(field, turned, border, upsample, downsample)


def _weights(field: Any, filter: Any, dimensions: int) -> Any:
    """Weights as a field; an array is converted to the field's dtype, to float32 for integer fields, unless it is complex."""
    if isinstance(filter, Field):
        return filter
    array = filter if isinstance(filter, Placeholder) else np.asarray(filter)
    real = part_dtype(field.dtype) if field.dtype in FLOATS else "float32"
    dtype = complex_dtype(field.dtype) if str(array.dtype) in COMPLEX_DTYPES else real
    return Field(array, max(array.ndim - dimensions, 0), dtype)


def _sampled(field: Any, filter: Any, border: str, upsample: int, downsample: int) -> Any:
    of_border("crossCorrelate", border, OUTSIDE)
    if len(field.field_shape) != len(filter.field_shape) and len(filter.tensor_shape) < 2:
        raise ArgumentError(
            f"cog.crossCorrelate: {filter.type} weights and a {field.type} field differ in their number of dimensions"
        )
    if len(filter.tensor_shape) == 2 and not field.tensor_shape:
        filter = _of_bank(filter)
    result = _by_parts(structure.upsample(field, upsample) if upsample > 1 else field, filter, border)
    return structure.downsample(result, downsample) if downsample > 1 else result


def _of_bank(filter: Any) -> Any:
    """The matrices of a field as one field of vectors, whose grid has the shape of a matrix."""
    rows: Any = np.reshape(filter, (-1, *filter.tensor_shape))
    planes: Any = np.moveaxis(rows.with_tensor_order(0), 0, -1)
    return planes.with_tensor_order(1)


def _by_parts(field: Any, filter: Any, border: str) -> Any:
    if field.dtype in COMPLEX_DTYPES:
        return of_parts(*(_by_parts(part, filter, border) for part in (field.real, field.imag)))
    if filter.dtype in COMPLEX_DTYPES:
        return of_parts(*(_by_parts(field, part, border) for part in (filter.real, filter.imag)))
    return _correlated(field, filter, border)


def _output(field: Any, filter: Any, border: str) -> FieldType:
    more = {BorderValid: -1, BorderFull: 1}.get(border, 0)
    shape = tuple(n + more * (k - 1) for n, k in zip(field.field_shape, filter.field_shape, strict=True))
    return FieldType(shape, field.tensor_shape or filter.tensor_shape, np.result_type(field, filter))


@operator(outputs=_output, name="crossCorrelate")
def _correlated(field: Any, filter: Any, border: str) -> None:
    extents = filter.field_shape
    first = [{BorderValid: 0, BorderFull: k - 1}.get(border, k // 2) for k in extents]
    own = (_layer, _row, _column)[3 - len(extents) :]
    with _forEachTensorElement(field.tensor_shape or filter.tensor_shape):
        of_field, of_filter = (_tensorElement if f.tensor_shape else 0 for f in (field, filter))
        total = _var(_convert(0, np.result_type(field, filter)))
        with _for(tuple(extents)) as at:
            place = [here + a - before for here, a, before in zip(own, at, first, strict=True)]
            total += _readTensorElement(field, *place, of_field, border=OUTSIDE[border]) * _readTensorElement(
                filter, *at, of_filter
            )
        _writeTensorElement(_out0, total, _tensorElement)


def crossCorrelateSeparable(field: Any, row_filter: Any, column_filter: Any, border: str) -> Any:
    """`crossCorrelate` with a row of weights, then with a column of weights; both are fields or arrays of one dimension."""
    row_filter, column_filter = (_weights(field, weights, 1) for weights in (row_filter, column_filter))
    return crossCorrelate(crossCorrelate(field, row_filter[np.newaxis], border), column_filter[:, np.newaxis], border)


def convolveSeparable(field: Any, row_filter: Any, column_filter: Any, border: str) -> Any:
    """`convolve` with a row of weights, then with a column of weights; both are fields or arrays of one dimension."""
    row_filter, column_filter = (_weights(field, weights, 1) for weights in (row_filter, column_filter))
    return convolve(convolve(field, row_filter[np.newaxis], border), column_filter[:, np.newaxis], border)


# --- frames of filters: N planes of an image, K filters of as many planes, for each image of a batch ----------------------


def projectFrame(field: Any, filter: Any, border: str, batch: int = 1, **sampling: int) -> Any:
    """K·N planes of an image's N planes, one for each plane of a frame of K filters of N planes.

    Plane e correlates plane e % N with plane e of the frame: `blockReduceSum(…, N)` of it has a plane for each filter.

    Args:
        field: an image of N planes as vectors, or `batch` images one after the other.
        filter: the frame.
        border, sampling: as of `crossCorrelate`.
        batch: the number of images.
    """
    n, frame = _planes(field) // batch, _planes(filter)
    pairs = [(b * n + e % n, e) for b in range(batch) for e in range(frame)]
    return _paired(crossCorrelate, field, filter, border, pairs, sampling)


def backProjectFrame(field: Any, filter: Any, border: str, batch: int = 1, **sampling: int) -> Any:
    """K·N planes of N planes and a frame of N filters of K planes: `blockReduceSum(…, N)` of it is an image of K planes.

    Plane e convolves plane e % N with plane K · (e % N) + e // N of the frame. Arguments are those of `projectFrame`.
    """
    n, frame = _planes(field) // batch, _planes(filter)
    pairs = [(b * n + e % n, frame // n * (e % n) + e // n) for b in range(batch) for e in range(frame)]
    return _paired(convolve, field, filter, border, pairs, sampling)


def crossCorrelateFilterAdjoint(field: Any, filter: Any, border: str, batch: int = 1, **sampling: int) -> Any:
    """K·N planes of N planes and K planes: plane e correlates plane e % N with plane e // N, for each image of a batch."""
    return _paired(crossCorrelate, field, filter, border, _adjoint(field, filter, batch), sampling)


def convolveFilterAdjoint(field: Any, filter: Any, border: str, batch: int = 1, **sampling: int) -> Any:
    """`crossCorrelateFilterAdjoint` with flipped weights."""
    return _paired(convolve, field, filter, border, _adjoint(field, filter, batch), sampling)


def _adjoint(field: Any, filter: Any, batch: int) -> list[tuple[int, int]]:
    n, k = _planes(field) // batch, _planes(filter) // batch
    return [(b * n + e % n, b * k + e // n) for b in range(batch) for e in range(n * k)]


def _planes(field: Any) -> int:
    return int(field.tensor_shape.points)


def _paired(
    by: Callable[..., Any], field: Any, filter: Any, border: str, pairs: Sequence[tuple[int, int]], sampling: Any
) -> Any:
    """The correlation of pairs of planes of both sides."""
    sides = [f if f.tensor_shape else np.stack([f], axis=-1) for f in (field, filter)]
    planes = (np.take(side, [pair[n] for pair in pairs], axis=-1) for n, side in enumerate(sides))
    return by(*planes, border, **sampling)


# --- neighbours -----------------------------------------------------------------------------------------------------------


def medianFilter(field: Any) -> Any:
    """The median of 3 points along each axis, clamped at the border. Cog supports 2D scalar fields only."""
    return median_filter(field, 3, mode="nearest")


def localMax(field: Any, neighborhood: Any) -> Any:
    """The greatest of the points around each one where the neighborhood, an array of odd extents, is not 0; clamped."""
    return maximum_filter(field, footprint=np.asarray(neighborhood) != 0, mode="nearest")


def localMin(field: Any, neighborhood: Any) -> Any:
    """The least of the points around each one where the neighborhood, an array of odd extents, is not 0; clamped."""
    return minimum_filter(field, footprint=np.asarray(neighborhood) != 0, mode="nearest")


def localMaxPosition(field: Any, neighborhood: Any) -> Any:
    """The offset from each point to the greatest one around it, the first in row-major order, as vectors along the axes.

    Points outside of the field do not count; without points inside the offset is 0.
    """
    return _place_of_extreme(field, np.asarray(neighborhood) != 0, False)


def localMinPosition(field: Any, neighborhood: Any) -> Any:
    """The offset from each point to the least one around it, as of `localMaxPosition`."""
    return _place_of_extreme(field, np.asarray(neighborhood) != 0, True)


@operator(outputs=lambda field, *_: FieldType(field.field_shape, len(field.field_shape), "float32"))
def _place_of_extreme(field: Any, neighborhood: Any, least: bool) -> None:
    middle, outside = [n // 2 for n in neighborhood.shape], math.inf if least else -math.inf
    most = _var(_highest(field) if least else _lowest(field))
    place = [_floatVar() for _ in middle]
    for at in np.argwhere(neighborhood):
        offset = [int(n - m) for n, m in zip(at, middle, strict=True)]
        value = _readTensor(field, offset=offset, border=outside)
        with _if(value < most if least else value > most):
            most @= value
            for each, n in zip(place, offset, strict=True):
                each @= n
    for k, each in enumerate(place):
        _writeTensorElement(_out0, each, k)


def nonMaximumSuppression(field: Any) -> Any:
    """0 where one of the 3 points along each axis is greater; for each element of the tensors."""
    return field * (field >= maximum_filter(field, 3, mode="nearest"))


def orientedNonMaximumSuppression(field: Any, orientation: Any) -> Any:
    """0 where a point at distance 1.3 on either side, across an orientation (0 is vertical, ±π/2 horizontal), is as great.

    Points are interpolated linearly. The Cog kernel is documented as not working: it blends rows with the wrong weights.
    """
    return _oriented(floating(field), orientation)


@operator(name="orientedNonMaximumSuppression")
def _oriented(field: Any, orientation: Any) -> Any:
    angle, own = math.pi - _readTensor(orientation), _readTensor(field)
    x, y = 1.3 * _cos(angle), 1.3 * _sin(angle)
    sides = [_sampleTensor(field, _row - side * y, _column + side * x) for side in (1.0, -1.0)]
    return _where((own > sides[0]) & (own > sides[1]), own, 0)


def bilateralFilter(field: Any, spatial: Any, range_sigma: float) -> Any:
    """Means of the points around each one, weighted by spatial weights times exp(-(d / sigma)²) of the difference d of values.

    A Gaussian would have 2 · sigma² there. Tensor elements are filtered separately; the border is clamped.
    """
    return _bilateral(floating(field), np.asarray(spatial, "float32"), float(range_sigma))


@operator(name="bilateralFilter")
def _bilateral(field: Any, spatial: Any, sigma: float) -> None:
    with _forEachTensorElement(field.tensor_shape):
        own = _readTensorElement(field, _tensorElement, offset=(0,) * spatial.ndim)
        total, weights = _floatVar(), _floatVar()
        with _window(spatial) as (offset, near):
            value = _readTensorElement(field, _tensorElement, offset=offset)
            weight = near * _exp(-(((own - value) / sigma) ** 2))
            weights += weight
            total += weight * value
        _writeTensorElement(_out0, total / _max(weights, 1e-10), _tensorElement)


# --- gradients ----------------------------------------------------------------------------------------------------------


def forwardGradient(field: Any) -> Any:
    """Forward differences along each axis, as vectors; all elements are 0 at the last points of every axis."""
    return _gradient(field, slice(None, -1), (0, 1))


def backwardGradient(field: Any) -> Any:
    """Backward differences along each axis, as vectors; all elements are 0 at the first points of every axis."""
    return _gradient(field, slice(1, None), (1, 0))


def _gradient(field: Any, inner: slice, frame: tuple[int, int]) -> Any:
    axes, field = grid_axes(field), floating(field)
    slopes = [np.diff(field, axis=k)[tuple(slice(None) if a == k else inner for a in axes)] for k in axes]
    vectors: Any = np.stack(slopes, axis=-1)
    return np.pad(vectors, [frame] * len(axes) + [(0, 0)] * len(vectors.tensor_shape))


def centralGradient(field: Any) -> Any:
    """Central differences along each axis, as vectors; clamped at the border."""
    slopes = [correlate1d(floating(field), [-0.5, 0, 0.5], axis=k, mode="nearest") for k in grid_axes(field)]
    return np.stack(slopes, axis=-1)


def backwardDivergence(field: Any) -> Any:
    """The divergence of vectors by backward differences: minus the adjoint of `forwardGradient`, borders included."""
    axes = grid_axes(field)
    inner = np.pad(field[(slice(None, -1),) * len(axes)], [(0, 1)] * len(axes) + [(0, 0)])
    return sum(inner[..., k] - shift(inner[..., k], *(int(a == k) for a in axes)) for k in axes)


# --- domain transforms --------------------------------------------------------------------------------------------------


def domainTransformRows(field: Any, space_sigma: float, range_sigma: float) -> Any:
    """The domain transform of each row: its arc length up to each point, equation 11 of Gastal and Oliveira, 2011.

    Tensor elements are transformed separately; of a colour field the changes of red, green and blue are added.
    """
    across, values = grid_axes(field)[-1], floating(field)
    steps = abs(np.diff(values, axis=across, prepend=values[(*(slice(None),) * across, slice(1))]))
    changes = reduceSum(steps) if field.dtype == "unorm8" else steps
    return np.cumsum(1 + changes * (space_sigma / range_sigma), axis=across)


def domainFilterRows(field: Any, domain_transform: Any, radius: Any) -> Any:
    """The mean, at each point, of the points of its row whose transform differs by no more than a radius.

    Args:
        field: a field of any tensors.
        domain_transform: the result of `domainTransformRows` for a guide: scalars, or as many elements as the field has.
        radius: a number, or a 0D field.
    """
    return _between_edges(np.cumsum(floating(field), axis=grid_axes(field)[-1]), domain_transform, radius)


def domainFilterColumns(field: Any, domain_transform: Any, radius: Any) -> Any:
    """`domainFilterRows` along columns; the transform is that of the transposed guide, as in Cog."""
    return transpose(domainFilterRows(transpose(field), domain_transform, radius))


@operator(name="domainFilterRows")
def _between_edges(sums: Any, transform: Any, radius: Any) -> None:
    columns, reach = sums.field_shape[-1], _readTensor(radius)
    line = (_layer, _row)[3 - len(sums.field_shape) :]
    with _forEachTensorElement(sums.tensor_shape):
        guide = _tensorElement if transform.tensor_shape else 0
        first, last = _intVar(_column), _intVar(_column)
        own = _readTensorElement(transform, *line, _column, guide)
        for stride in (1 << level for level in reversed(range(columns.bit_length()))):
            before, behind = _max(first - stride, 0), _min(last + stride, columns - 1)
            with _if(_readTensorElement(transform, *line, before, guide) >= own - reach):
                first @= before
            with _if(_readTensorElement(transform, *line, behind, guide) <= own + reach):
                last @= behind
        whole = _readTensorElement(sums, *line, last, _tensorElement)
        earlier = _readTensorElement(sums, *line, first - 1, _tensorElement, border="zero")
        _writeTensorElement(_out0, (whole - earlier) / _convert_float(last - first + 1), _tensorElement)
