"""Cog gradients, and edge-preserving smoothing by domain transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuop.dsl import *
from gpuop.dsl.operators.decorator import operator
from gpuop.lib.cog.structure import shift, transpose
from gpuop.lib.cog.values import floating, grid_axes, reduceSum
from gpuop.lib.ndimage.filters.correlation import correlate1d

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
    kept = np.pad(field[(slice(None, -1),) * len(axes)], [(0, 1)] * len(axes) + [(0, 0)])
    return sum(kept[..., k] - shift(kept[..., k], *(int(a == k) for a in axes)) for k in axes)


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
