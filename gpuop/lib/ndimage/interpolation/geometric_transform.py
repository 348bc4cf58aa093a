"""scipy.ndimage.geometric_transform: interpolation at places that a user function returns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.gpu_operator import GPUOperator
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.array_arguments import of_arrays, with_more
from gpuop.lib.ndimage.interpolation.coordinates import at_places, axes_placed, spline_of
from gpuop.ops.layout.gather import own_place

Mapping = Callable[..., Sequence[Any]]


def geometric_transform(
    input: Any,
    mapping: Mapping,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: Any = None,
) -> Any:
    """scipy.ndimage.geometric_transform: interpolation at the coordinates that a user function maps each point to.

    Args:
        input, output, order, mode, cval, prefilter: as in `map_coordinates`.
        mapping: gets a tuple of the point's coordinates, and the extra arguments; returns a coordinate for each axis of the grid.
            It is recorded once, with coordinates in double precision, and may use all of `gpuop.dsl`. A function that cannot be
            recorded, as it branches on values or calls other libraries, is called for each point on the host, as in SciPy.
        output_shape: shape of the result; by default that of `input`.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong orders or modes, or another number of coordinates; a ValueError and a RuntimeError.
    """
    function = with_more(mapping, extra_arguments, extra_keywords)
    return _transformed(input, function, output_shape, output, order, mode, cval, prefilter)


@of_arrays()
def _transformed(
    input: Any,
    mapping: Mapping,
    output_shape: Any,
    output: Any,
    order: int,
    mode: str,
    cval: Any,
    prefilter: bool,
) -> Field:
    spline, count = spline_of(order, mode, cval, prefilter), axes_placed(input)
    shape = tuple(input.field_shape if output_shape is None else output_shape)
    if not shape:
        raise ArgumentError("input and output rank must be > 0")
    fields: Sequence[Field] = ()
    with contextlib.suppress(Exception):  # a function that cannot be recorded is called
        fields = _recorded(mapping, shape, count)
    fields = fields or _called(mapping, shape, count)

    def places(point: Any) -> list[Any]:
        return [k._readTensor(f) for f in fields]

    return at_places("geometric_transform", input, spline, range(count), shape, output, places, fields, None)


def _checked(place: Sequence[Any], count: int) -> list[Any]:
    found = list(place)
    if len(found) != count:
        raise ArgumentError(f"the mapping gives {len(found)} coordinates, and the field has {count} axes")
    return found


def _recorded(mapping: Mapping, shape: tuple[int, ...], count: int) -> Sequence[Field]:
    """Return the places as fields that kernels compute."""
    with GPUOperator(*[FieldType(shape, (), "float64")] * count) as made:
        point = tuple(k._convert(at, "float64") for at in own_place(len(shape)))
        for n, at in enumerate(_checked(mapping(point), count)):
            k._writeTensor(getattr(k, f"_out{n}"), k._convert(at, "float64"))
    return made.outputs


def _called(mapping: Mapping, shape: tuple[int, ...], count: int) -> Sequence[Field]:
    """Return the places as fields of values, one call for each point."""
    places = np.empty((count, *shape))
    for point in np.ndindex(*shape):
        places[(slice(None), *point)] = _checked(mapping(point), count)
    return [Field(along, 0) for along in places]
