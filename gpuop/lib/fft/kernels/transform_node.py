"""One transform of a field: conversion of input and output, and the choice between library and passes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.derivative_rules import with_rule
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import is_big_tensor
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.dtype_names import complex_dtype, part_dtype
from gpuop.ir.types import FieldType
from gpuop.lib.fft.kernels.axes import along_axis, by_passes
from gpuop.lib.fft.kernels.passes import IN_REGISTERS, factors
from gpuop.lib.fft.kernels.vendor_library import by_library
from gpuop.ops.layout.gather import own_place
from gpuop.ops.target_choice import Facts, by_target

METHODS = (None, "passes", "library")
NEIGHBOURS = 64  # least columns for passes along other axes: neighbouring threads then read neighbours


def computed_in(field: Field) -> str:
    """The dtype of real numbers, and of the parts of complex numbers, during a transform."""
    return "float64" if part_dtype(field.dtype) == "float64" else "float32"


def fourier(field: Field, kind: str, axes: Sequence[int], sign: int, results: int, method: str | None) -> Field:
    """An unscaled transform, as of `by_passes`: by a library if the device has arrays for one, unless `method` decides.

    Raises:
        ArgumentError: an unknown method.
    """
    if method not in METHODS:
        raise ArgumentError(
            f'`method` is "library", "passes", or None for the faster one on the device, not {method!r}'
        )
    result = _fourier(field, kind, axes, sign, results, method)
    extent = field.field_shape[axes[-1]]

    def pulled(inputs: Sequence[Field], result: Field, cotangent: Field) -> list[Field]:
        return [_transposed(cotangent, kind, axes, sign, extent, results, method)]

    def pushed(inputs: Sequence[Field], result: Field, tangents: Sequence[Field | None]) -> Field | None:
        (tangent,) = tangents
        return None if tangent is None else fourier(tangent, kind, axes, sign, results, method)

    return with_rule(result, "fft", [field], pulled, pushed)


def _transposed(
    cotangent: Field, kind: str, axes: Sequence[int], sign: int, extent: int, results: int, method: str | None
) -> Field:
    """The cotangent of an input: the transform back. Half of the spectrum of real numbers stands for the other half too."""
    if kind == "c2c":
        return fourier(cotangent, kind, axes, -sign, extent, method)
    if kind == "r2c":
        return fourier(_weighed(cotangent, axes[-1], extent, 0.5), "c2r", axes, -sign, extent, method)
    return _weighed(fourier(cotangent, "r2c", axes, -sign, extent, method), axes[-1], results, 2.0)


def _weighed(field: Field, axis: int, count: int, weight: float) -> Field:
    """Half of a spectrum of `count` values, times a weight where it stands for two of them."""

    def body() -> None:
        at = own_place(len(field.field_shape))[axis]
        alone = (at == 0) if count % 2 else (at == 0) | (at == count // 2)
        k._writeTensor(k._out0, k._readTensor(field) * k._where(alone, 1.0, weight))

    return library_call("fft_weights", (field.type,), [field], body, (axis, count, weight))[0]


def _fourier(field: Field, kind: str, axes: Sequence[int], sign: int, results: int, method: str | None) -> Field:
    call = field, kind, axes, sign, results
    if method == "library":
        return by_library(*call)
    *others, last = sorted(axes)
    lines = kind == "c2c" and _side_by_side(field, others if last == len(field.field_shape) - 1 else axes)
    if method == "passes" or not field.field_shape.points or (lines and last < len(field.field_shape) - 1):
        return by_passes(*call)
    library = by_library(*call)
    choices: list[tuple[Facts, Field]] = [
        ({"has_arrays": True, "device": "cpu"}, _by_both(field, others, last, sign) if lines and others else library),
        ({"has_arrays": True, "device": "gpu"}, library),
        ({"has_arrays": False}, by_passes(*call)),
    ]
    return by_target(choices)


def _side_by_side(field: Field, axes: Sequence[int]) -> bool:
    """Return whether passes suit the leading axes: neighbouring threads read neighbouring lines, which libraries gather."""
    radices = [factors(field.field_shape[axis]) for axis in axes]
    return field.field_shape[-1] >= NEIGHBOURS and all(each and max(each) <= IN_REGISTERS for each in radices)


def _by_both(field: Field, axes: Sequence[int], last: int, sign: int) -> Field:
    """A complex transform: by the library along the last axis, by passes along the others."""
    field = by_library(field, "c2c", (last,), sign, field.field_shape[last])
    for axis in axes:
        field = along_axis(field, axis, sign)
    return field


def transform_input(field: Field, lengths: Mapping[int, int], real: bool = False, conjugate: bool = False) -> Field:
    """The input of a transform: a field of pairs or real numbers, with tensor elements along a new first axis.

    Args:
        lengths: new extents of axes, which are cut or padded with zeros.
    """
    grid, elements = list(field.field_shape), field.type.tensor_points
    for axis, count in lengths.items():
        grid[axis] = count
    dtype, lead = computed_in(field), () if elements == 1 else (elements,)
    border: Any = 0 if any(n > old for n, old in zip(grid, field.field_shape, strict=True)) else "unchecked"
    kind = FieldType((*lead, *grid), () if real else (2,), dtype)
    if real and kind == field.type:
        return field

    def body() -> None:
        own = own_place(len(kind.field_shape))
        point, element = own[len(lead) :], own[0] if lead else 0
        each = field.type.planes // elements
        x, *more = (k._convert(_element(field, point, element * each + n, border), dtype) for n in range(each))
        if real:
            k._writeTensor(k._out0, x)
        else:
            y = more[0] if more else k._convert(0, dtype)
            k._writeTensor(k._out0, k._vector(x, 0 - y if conjugate and more else y))

    return library_call("fft_take", (kind,), [field], body, (real, conjugate, border))[0]


def _element(field: Field, point: Sequence[Any], element: Any, border: Any) -> Any:
    if field.type.planes == 1:
        return k._readTensor(field, *point, border=border)
    return k._readTensorElement(field, *point, element, border=border)


def transform_output(field: Field, like: FieldType, scale: float, conjugate: bool = False) -> Field:
    """The output of a transform, scaled, as a field like its input: complex from pairs, real from real numbers."""
    tensor_shape, lead = like.tensor_shape, 1 if like.tensor_points > 1 else 0
    pairs = bool(field.tensor_shape)
    kind = like.replace(
        field_shape=field.field_shape[lead:], dtype=complex_dtype(field.dtype) if pairs else field.dtype
    )

    def write(element: Any) -> None:
        place = [*([element] if lead else []), *own_place(len(kind.field_shape))]
        value = k._readTensor(field, *place, border="unchecked")
        for n, part in enumerate((value.x, 0 - value.y if conjugate else value.y) if pairs else (value,)):
            part = part if scale == 1 else part * scale
            k._writeTensorElement(k._out0, part, element * (2 if pairs else 1) + n)

    def body() -> None:
        if is_big_tensor(kind):
            with k._forEachTensorElement(tensor_shape):
                write(k._tensorElement)
        else:
            for element in range(tensor_shape.points):
                write(element)

    return library_call("fft_give", (kind,), [field], body, (tensor_shape, scale, conjugate))[0]


def scale_of(norm: Any, lengths: Sequence[int], sign: int) -> float:
    """The factor of a norm.

    Raises:
        ArgumentError: an unknown norm.
    """
    if norm not in (None, "backward", "ortho", "forward"):
        raise ArgumentError(f'Invalid norm value {norm!r}, should be "backward", "ortho" or "forward"')
    count = math.prod(lengths)
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if (norm == "forward") == (sign < 0) else 1.0
