"""Watersheds of scipy.ndimage by the image foresting transform.

A path costs its greatest step between values. Paths grow in the order of costs, from a queue for each cost (A. Falcão, J. Stolfi,
R. Lotufo, The image foresting transform, IEEE TPAMI 26 (1), 2004). Ties between markers are broken by the order in the queues, so
one CPU thread does it all, in SciPy's order.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.operators.host_operator import HostOperator
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.operators.variants import either
from gpuop.engine.jit.array_arguments import DTypeOfArray
from gpuop.engine.jit.constant_arguments import frozen
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.measure.host_results import as_array, is_lazy, measured, shape_of, wanted_dtype
from gpuop.lib.ndimage.measure.labels import structure_of
from gpuop.ops.elementwise.algebra import astype, copied
from gpuop.ops.layout.gather import flat
from gpuop.ops.layout.layouts import ravel, reshape

LABEL, COST, BEHIND, BEFORE = range(4)  # parts of a point's record,
PARTS = 4  # side by side
NONE = -1  # end of a queue: no point before or behind


def watershed_ift(input: Any, markers: Any, structure: Any = None, output: Any = None) -> Any:
    """scipy.ndimage.watershed_ift: the points that each marker reaches first, over the least steps between neighbours.

    This is sequential, as each step depends on those before it; for GPUs SciPy does it on the host, if it is installed.

    Args:
        input: a Field of scalars, or an array, of uint8 or uint16.
        markers: integers of the same shape, 0 for no marker; negative ones come after the others.
        structure: truth values, 3 along each axis: the neighbours that are connected; by default those along the axes. As in SciPy,
            the end of a row and the start of the next one are neighbours, as they are in memory.
        output: a dtype, by default that of the markers; or an array of the input's library that the result goes into.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: a wrong structure, markers of another shape or dtype; a ValueError and a RuntimeError.
        UnsupportedError: another dtype; a TypeError.
    """
    input, markers = as_array(input), as_array(markers)
    lazy, shape = is_lazy(input, markers), shape_of(input)
    dtype = wanted_dtype("watershed_ift", output, shape, lazy)
    if dtype is not None and np.dtype(dtype).kind != "i":
        raise ArgumentError(f"output should be of integer type, not {dtype}")
    if shape_of(markers) != shape:
        raise ArgumentError(f"input and markers must have equal shape, not {shape} and {shape_of(markers)}")
    result = measured(_flooded, input, markers, frozen(structure), None if dtype is None else str(dtype))
    if isinstance(dtype, DTypeOfArray):
        output[...] = result
        return output
    return np.asarray(result) if isinstance(result, np.generic) else result


def _flooded(input: Field, markers: Field, structure: Any, dtype: str | None) -> Field:
    if input.dtype not in ("uint8", "uint16") or input.tensor_shape:
        raise UnsupportedError(f"only 8 and 16 unsigned inputs are supported, not {input.type}")
    if markers.type.element.kind != "i" or markers.tensor_shape:
        raise ArgumentError(f"marker should be of integer type, with a sign, not {markers.type}")
    neighbours, shape = structure_of("watershed_ift", input, structure), tuple(input.field_shape)
    if not shape or not input.field_shape.points:
        return astype(markers, dtype or markers.dtype)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    steps = [sum(int(i - 1) * stride for i, stride in zip(at, strides, strict=True)) for at in np.argwhere(neighbours)]
    result = _queued(ravel(input), markers, [step for step in steps if step])
    result = copied(reshape(result, shape))
    if importlib.util.find_spec("scipy") is not None:
        result = either(_far_from_host(), copied(_on_host(input, markers, neighbours)), result)
    return astype(result, dtype or markers.dtype)


def _far_from_host() -> Any:
    """Return whether a thread of the target is much slower than one of the host."""
    return (k._target.device == "gpu") & (k._target.backend != "reference")


def _on_host(input: Field, markers: Field, neighbours: Numbers) -> Field:
    """Return the labels of points, by SciPy."""
    return HostOperator(_by_scipy(neighbours.shape, neighbours.tobytes()), input, markers, outputs=markers.type)  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _by_scipy(shape: tuple[int, ...], neighbours: bytes) -> Callable[[Numbers, Numbers], Any]:
    """Return SciPy's function with a structure; it is cached, so that plans are reused."""
    structure = np.frombuffer(neighbours, bool).reshape(shape)

    def watershed_ift(values: Numbers, markers: Numbers) -> Any:
        return importlib.import_module("scipy.ndimage").watershed_ift(values, markers, structure)

    return watershed_ift


def _queued(values: Field, markers: Field, steps: Sequence[int]) -> Field:
    """Return the labels of points; `steps` are the offsets of neighbours in memory."""
    count = values.field_shape[0]
    room = 2 + np.iinfo(str(values.dtype)).max
    neighbours = "int64" if markers.dtype == "int64" else "int32"
    types = FieldType(PARTS * count, (), neighbours), *(FieldType(room, (), "int32") for _ in range(2))
    top = astype(values, "int32").max()

    def body() -> None:
        k._globalThreads(1)
        _Flood(values, markers, k._readTensor(top, border="unchecked")).run(steps)

    records = library_call("watershed_ift", types, [values, markers, top], body, tuple(steps), whole=True)[0]
    return astype(records[LABEL::PARTS], markers.dtype)


class _Flood:
    """Queues of points, one for each cost, and the records of points, in the outputs of the kernel.

    Attributes:
        top: the greatest cost; unreached points cost one more.
        records: for each point its label, its cost (complemented once the point is final), and the points behind and before it in
            its queue: side by side, for locality.
        first, last: ends of each queue.
    """

    def __init__(self, values: Field, markers: Field, top: Any) -> None:
        self.values, self.markers, self.top = values, markers, k._var(top)
        self.count = values.field_shape[0]
        self.records, self.first, self.last = k._out0, k._out1, k._out2

    def run(self, steps: Sequence[int]) -> None:
        table = k._constantArray(np.array(steps or [0], np.int32))
        with k._for(self.top + 2) as cost:
            k._writeTensor(self.first, NONE, cost)
            k._writeTensor(self.last, NONE, cost)
        with k._for(tuple(self.markers.field_shape)) as place:
            self._begin(flat(place, self.markers.field_shape), k._readTensor(self.markers, *place, border="unchecked"))
        with k._for(self.top + 1) as cost, k._while(lambda: _at(self.first, cost) >= 0):
            point = k._var(_at(self.first, cost))
            reached = self._dequeue(point, cost)
            with k._for(len(steps), unroll=len(steps) <= 8) as n:
                beside = point + table[n]
                with k._if((beside >= 0) & (beside < self.count)):
                    self._reach(beside, *reached)

    def _get(self, part: int, point: Any) -> Any:
        """Return a part of a point's record."""
        neighbours = k._var(_at(self.records, point * PARTS + part))
        return neighbours if part == LABEL else k._convert_int(neighbours)

    def _set(self, part: int, point: Any, value: Any) -> None:
        k._writeTensor(self.records, value, point * PARTS + part)

    def _begin(self, point: Any, label: Any) -> None:
        """Queue a marker: positive ones come first."""
        for part, value in enumerate((label, k._where(label != 0, 0, self.top + 1), NONE, NONE)):
            self._set(part, point, value)
        with k._if(label != 0):
            self._put(point, k._convert_int(0), label > 0)

    def _dequeue(self, point: Any, cost: Any) -> tuple[Any, Any, Any]:
        """Dequeue the first point of a cost; return its value, cost and label, which are final."""
        following = self._get(BEHIND, point)
        k._writeTensor(self.first, following, cost)
        with k._if(following >= 0):
            self._set(BEFORE, following, NONE)
        self._set(BEFORE, point, NONE)
        self._set(BEHIND, point, NONE)
        own = self._get(COST, point)
        own = k._var(k._where(own < 0, ~own, own))  # final already if it was dequeued from a queue that it had left
        self._set(COST, point, ~own)
        return self._value(point), own, self._get(LABEL, point)

    def _value(self, point: Any) -> Any:
        return k._convert_int(k._readTensor(self.values, point, border="unchecked"))

    def _reach(self, beside: Any, own: Any, least: Any, label: Any) -> None:
        """Give a neighbour the label of a point with this value, if that lowers its cost."""
        there, was = self._value(beside), self._get(COST, beside)
        cost = k._max(least, k._max(own - there, there - own))
        with k._if(cost < was):
            self._set(COST, beside, cost)
            self._set(LABEL, beside, label)
            self._leave(beside, was)
            self._put(beside, cost, label >= 0)

    def _leave(self, point: Any, cost: Any) -> None:
        """Remove a point from its queue; as in SciPy, a queue's only point stays there too."""
        before, behind = self._get(BEFORE, point), self._get(BEHIND, point)
        with k._if((before >= 0) | (behind >= 0)):
            with k._if(_at(self.first, cost) == point):
                k._writeTensor(self.first, behind, cost)
            with k._if(_at(self.last, cost) == point):
                k._writeTensor(self.last, before, cost)
            with k._if(before >= 0):
                self._set(BEHIND, before, behind)
            with k._if(behind >= 0):
                self._set(BEFORE, behind, before)

    def _put(self, point: Any, cost: Any, in_front: Any) -> None:
        """Put a point at the front or the end of a queue."""
        with k._if(in_front):
            self._link(point, cost, self.first, BEHIND, BEFORE, self.last)
        with k._else():
            self._link(point, cost, self.last, BEFORE, BEHIND, self.first)

    def _link(self, point: Any, cost: Any, end: Any, inward: int, outward: int, other_end: Any) -> None:
        was = k._var(_at(end, cost))
        self._set(inward, point, was)
        self._set(outward, point, NONE)
        with k._if(was >= 0):
            self._set(outward, was, point)
        k._writeTensor(end, point, cost)
        with k._if(_at(other_end, cost) < 0):
            k._writeTensor(other_end, point, cost)


def _at(output: Any, place: Any) -> Any:
    return k._readTensor(output, place, border="unchecked")
