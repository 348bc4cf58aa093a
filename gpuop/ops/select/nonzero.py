"""The places of true values: each chunk counts its own, then writes after those of the chunks before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.operators.variants import either
from gpuop.ir.types import FieldType
from gpuop.ops.data_dependent_shapes import integers, on_device
from gpuop.ops.layout.layouts import reshape
from gpuop.ops.reduce.kernels import Partial, by_groups
from gpuop.ops.reduce.reducers import Split, reducer_of
from gpuop.ops.scan.kernels import along_grid
from gpuop.ops.sort.radix_sort import single

LANES, SHARE = 256, 32  # threads for a chunk, and the values of each


def true_places(name: str, advice: str, mask: Field, dtype: str) -> Field:
    """Return the places of true values in a grid of one dimension, in order; evaluated, as the number of them is unknown."""
    mask = on_device(name, advice, mask)
    (points,) = mask.field_shape
    parts = Split(points, LANES, SHARE, -(-points // (LANES * SHARE)))
    adder = replace(reducer_of("sum", mask.type, 1), held="int32", result="int32")
    counts = reshape(by_groups(adder, Partial(mask), 1, False, parts).values, (parts.chunks,))
    ends = on_device(name, advice, along_grid(adder, counts, 0, True))
    (count,) = integers(ends[-1])
    out, key = FieldType(count, (), dtype), (parts, dtype)

    def alone() -> None:
        _alone(mask, ends, parts)

    def together() -> None:
        _together(mask, ends, parts)

    ways = (
        library_call(name, (out,), [mask, ends], way, (*key, way.__name__), whole=True)[0] for way in (alone, together)
    )
    return either(single(), *ways)


def _start(ends: Field) -> Any:
    """Return the number of true values before a group's chunk."""
    before = k._readTensor(ends, k._max(k._groupColumn - 1, 0), border="unchecked")
    return k._where(k._groupColumn == 0, 0, before)


def _alone(mask: Field, ends: Field, parts: Split) -> None:
    """Write with one thread for a chunk. It writes at each value without a branch: false values write the last place again."""
    k._globalThreads(parts.chunks)
    k._localThreads(1)
    first = k._groupColumn * parts.size
    start, end = _start(ends), k._readTensor(ends, k._groupColumn, border="unchecked")
    with k._if(start < end):
        written, place = k._var(start), k._var(first)
        with k._for(first, k._min(first + parts.size, parts.count)) as at:
            truth = k._readTensor(mask, at, border="unchecked")
            place.assign(k._where(truth, at, place))
            written.assign(written + k._convert_int(truth))
            k._writeTensor(k._out0, place, k._max(written - 1, start))


def _together(mask: Field, ends: Field, parts: Split) -> None:
    """Write with a work-group for a chunk: neighbours take neighbouring values, and write side by side."""
    k._globalThreads(parts.chunks * parts.width)
    k._localThreads(parts.width)
    written = k._var(_start(ends))
    with k._for(parts.share) as turn:
        at = k._groupColumn * parts.size + turn * parts.width + k._localColumn
        truth = k._readTensor(mask, k._min(at, parts.count - 1), border="unchecked") & (at < parts.count)
        upto = k._scanGroup(k._convert_int(truth), lambda a, b: a + b)
        with k._if(truth):
            k._writeTensor(k._out0, at, written + upto - 1)
        written.assign(written + k._broadcastGroup(upto, parts.width - 1))
