"""Symbolic numbers: they follow from dynamic extents, and kernels get them by value, as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.sources import HostArray
from gpuop.ir.types import SMALL_TENSOR, FieldType
from gpuop.ir.values import Leaf

Bounds = tuple[int, int]  # the least and the greatest value, for all extents
KEPT = 256


@lru_cache(maxsize=KEPT)  # fused kernels share the argument
def passed(*numbers: int) -> tuple[Field, ...]:
    """Return fields that are passed by value, of a few numbers each."""
    array = np.array(numbers, np.int32)
    pieces = (array[n : n + SMALL_TENSOR] for n in range(0, len(array), SMALL_TENSOR))
    return tuple(
        Field.of(Leaf(FieldType((), piece.shape, "int32"), HostArray(piece), by_value=True)) for piece in pieces
    )


def read(fields: Sequence[Field], bounds: Iterable[Bounds]) -> list[Any]:
    """Return the numbers in a kernel, whose text does not depend on them. They are clamped to bounds for range analysis."""
    places = [(field, element) for field in fields for element in range(field.type.planes)]
    return [
        k._max(k._min(k._readTensorElement(field, element), most), least)
        for (field, element), (least, most) in zip(places, bounds, strict=True)
    ]


def scalar(number: float, dtype: str) -> Field:
    """Return a number for an operator, which gets it by value."""
    return Field.of(Leaf(FieldType((), (), dtype), HostArray(np.array(number, dtype)), by_value=True))
