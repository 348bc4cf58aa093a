"""The kernels that count values in bins, and that sum weights in bins.

Counts do not depend on the order, so threads count in the result, or in copies of it if that is faster
(`passes/schedules/common/privatize.py`). Sums of floats do: each thread sums a chunk of the values in order, and then the
sums of the chunks are added. Chunks depend on the shape alone, so results are equal on every device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise.algebra import astype
from gpuop.ops.layout.layouts import ravel, reshape
from gpuop.ops.reduce.bins import Bins
from gpuop.ops.reduce.kernels import planes_of
from gpuop.ops.reduce.reducers import TURN

WORTH = 8  # values of a chunk for each bin
MOST_CHUNKS = 1 << 14
Reads = Callable[[Any], Any]  # returns the sum of a bin
Writes = Callable[[Any, Any], None]
LOCAL = 1 << 12  # bins whose sums a thread has in local memory


def counted(name: str, values: Field, bins: Bins) -> Field:
    """Return the number of values in each bin: int64."""
    points = values.type.array_shape.points
    out = FieldType(bins.count, (), "int32" if points < 2**31 else "int64")
    if not points or bins.how == "none":
        return filled(out.replace(dtype="int64"), 0)
    given = values if values.field_shape else reshape(values, (1, *values.tensor_shape))
    planes = planes_of(given.type)

    def body() -> None:
        k._globalThreads(given.field_shape, planes)
        value = k._readTensorElement(given, k._tensorElement) if planes else k._readTensor(given)
        k._atomic_inc(k._pointerTo(k._out0, bins.place(value)))

    return astype(library_call(name, (out,), [given, *bins.fields], body, bins.key)[0], "int64")


def weighed(name: str, values: Field, weights: Field, bins: Bins, held: str, runs: bool = False) -> Field:
    """Return the sums of weights in each bin, in the accumulator's dtype.

    Args:
        runs: whether neighbouring values often belong to one bin, as labels do: then its sum stays in a variable.
    """
    values, weights = ravel(values), ravel(weights)
    points = values.field_shape.points
    if not points or bins.how == "none":
        return filled(FieldType(bins.count, (), held), 0)
    chunks = min(max(points // (WORTH * bins.count), 1), MOST_CHUNKS)
    size = -(-points // chunks)
    chunks = -(-points // size)

    def body() -> None:
        k._globalThreads(chunks)
        k._localThreads(1)
        add, write = _sums(bins.count, held, runs)
        first = k._column * size
        stop = k._min(first + size, points)
        whole = first + (stop - first) / TURN * TURN
        with k._for(first, whole, TURN) as at:
            _add_turn(values, weights, bins, add, at, TURN)
        with k._for(whole, stop) as at:
            _add_turn(values, weights, bins, add, at, 1)
        write()

    kind = FieldType((chunks, bins.count), (), held)
    key = ("weighed", size, runs, *bins.key)
    return library_call(name, (kind,), [values, weights, *bins.fields], body, key, whole=True)[0].sum(axis=0)


def _add_turn(values: Field, weights: Field, bins: Bins, add: Callable[..., None], at: Any, count: int) -> None:
    """Read a few values and their weights, then add these in order."""
    places = [bins.place(k._readTensor(values, at + n, border="unchecked")) for n in range(count)]
    given = [k._readTensor(weights, at + n, border="unchecked") for n in range(count)]
    for place, weight in zip(places, given, strict=True):
        with k._if((place >= 0) & (place < bins.count)):
            add(place, weight)


def _sums(count: int, held: str, runs: bool) -> tuple[Callable[..., None], Callable[[], None]]:
    """Return functions that add to the sum of a bin, and that write all sums at the end; many sums are in the result itself."""
    adding = _adding_to_runs if runs else _adding
    if count > LOCAL:
        with k._for(count) as n:
            k._writeTensor(k._out0, 0, k._column, n)
        return adding(
            held,
            lambda place: k._readTensor(k._out0, k._column, place),
            lambda place, total: k._writeTensor(k._out0, total, k._column, place),
        )
    arrays = {"float64": k._doubleArray, "int64": k._longArray, "uint64": k._ulongArray}
    sums = k._local(arrays[held](count))
    with k._for(count) as n:
        sums[n] = 0
    add, write_last = adding(held, lambda place: sums[place], sums.__setitem__)

    def write() -> None:
        write_last()
        with k._for(count) as n:
            k._writeTensor(k._out0, sums[n], k._column, n)

    return add, write


def _adding(held: str, read: Reads, write: Writes) -> tuple[Callable[..., None], Callable[[], None]]:
    return lambda place, weight: write(place, read(place) + k._convert(weight, held)), lambda: None


def _adding_to_runs(held: str, read: Reads, write: Writes) -> tuple[Callable[..., None], Callable[[], None]]:
    """Return the same functions, with the sum of the last bin in a variable."""
    own, total = k._var(0), k._var(k._convert(0, held))

    def add(place: Any, weight: Any) -> None:
        with k._if(place != own):
            write(own, total)
            own.assign(place)
            total.assign(read(place))
        total.assign(total + k._convert(weight, held))

    return add, lambda: write(own, total)
