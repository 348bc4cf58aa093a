"""Rank selection in large windows, bit by bit: the result is the greatest key that at most `rank` values are less than.

Each bit is set unless too many values of the window are less than the result with it. This takes comparisons and counts only, of
keys as short as the values, which SIMD lanes are used well by; no thread waits for another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.filter_arguments import ImageEdge, rank
from gpuop.lib.ndimage.filters.neighbours import MOST, Around, Offset, neighbourhood, offsets_at
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.sort.keys import key_of, value_of


def counted(
    field: Field, offsets: Sequence[Offset], at: int, outside: ImageEdge, computed: str, dtype: str, name: str
) -> Field:
    """Return the window's value at index `at` of ascending order.

    Args:
        offsets: offsets of the window's points, in row-major order.
        computed: dtype of comparisons.
    """
    computed = "float32" if computed == "float16" else computed
    kind = field.type.replace(dtype=computed)
    keys, edge = _keys(field, kind), outside
    if outside.border == "constant":
        edge = ImageEdge("constant", _key_of_number(outside.cval, kind))
    short = "uint32" if keys.dtype == "uint64" else keys.dtype  # lanes of one width, if it can hold the count
    counts = np.promote_types(short, np.min_scalar_type(len(offsets))).name

    def found(around: Around) -> Any:
        bits = 8 * np.dtype(keys.dtype).itemsize
        made, bit = k._var(k._convert(0, keys.dtype)), k._var(k._convert(1 << (bits - 1), keys.dtype))
        with k._for(bits):
            tried, less = k._var(made | bit), k._var(k._convert(0, counts))
            _over(offsets, around, lambda value: less.assign(less + k._convert(value < tried, counts)))
            made.assign(k._where(less <= at, tried, made))
            bit.assign(bit >> 1)
        if keys is field:
            return made
        key = k._convert(made, "uint64" if bits == 64 else "uint32")
        return k._convert(value_of(key, kind), computed)

    return neighbourhood(name, keys, found, edge, keys.dtype, dtype, (tuple(offsets), at, computed))


def _over(offsets: Sequence[Offset], around: Around, each: Any) -> None:
    """Call `each` with each value of a window: boxes in loops over the axes, other windows unrolled, or from a table."""
    low, high = np.min(offsets, axis=0), np.max(offsets, axis=0)
    if np.prod(high - low + 1) == len(offsets):
        with k._for([int(n) for n in high - low + 1]) as place:
            each(around(tuple(n + int(first) for n, first in zip(place, low, strict=True))))
    elif len(offsets) <= MOST:
        for offset in offsets:
            each(around(offset))
    else:
        with k._for(len(offsets)) as n:
            each(around(offsets_at(offsets)(n)))


def _keys(field: Field, kind: FieldType) -> Field:
    """Return order-preserving unsigned keys of the field's values, of the same size."""
    if kind.element.kind == "u" and kind.dtype == field.dtype:
        return field
    size = 8 * np.dtype(kind.array_dtype).itemsize
    short = f"uint{max(size, 32) if kind.element.kind == 'f' else size}"

    def at_point(at: Place, read: Reading) -> Any:
        return k._convert(key_of(k._convert(read.at(field, at), kind.dtype), kind), short)

    return gathered("rank_filter_keys", kind.replace(dtype=short), [field], at_point, (kind.dtype, rank(field)))


def _key_of_number(number: Any, kind: FieldType) -> int:
    """Return the key of a number, as `_keys` computes it."""
    value = np.asarray(number, kind.array_dtype)
    if value.dtype.kind != "f":
        return int(value) - (int(np.iinfo(value.dtype).min) if value.dtype.kind == "i" else 0)
    value = (value + 0.0).astype(np.float64 if value.dtype.itemsize == 8 else np.float32)
    bits = int(value.view(f"u{value.dtype.itemsize}"))
    top = 1 << (8 * value.dtype.itemsize - 1)
    return 2 * top - 1 - bits if bits & top else bits | top
